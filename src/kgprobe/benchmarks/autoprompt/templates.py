"""Templates of the tasks, per kind of model (docs/papers/autoprompt.md, Templates).

A template has fields {sub}, {context}, ..., trigger tokens [T] (`[T]x5` for five), and [P], the
predicted token. Causal models answer at the end: what stands behind [P] is cut, and a template
whose answer is not last is none for them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from kgprobe.benchmarks.autoprompt.frames import TaskError, existing
from kgprobe.experiments import json_rows
from kgprobe.templates import answer_is_last, as_prompt_template, cut, sentence


def _by_kind(text: str, causal: str = "") -> dict[str, str]:
    """A text for each kind of model; a causal one ends with the prediction."""
    shorter = causal or text.removesuffix(".").rstrip()
    return {"masked": text, "causal": shorter, "seq2seq": text}


_WITH_CONTEXT = "{context} {sub} [T]x%d [P] ."
#: Task -> kind of model -> template of the search, with %d for the number of triggers. `roberta`:
#: a masked model that was not trained on pairs of segments, where the released code differs.
SEARCH: Mapping[str, Mapping[str, str]] = {
    "facts": _by_kind("{sub} [T]x%d [P] ."),
    "relation_extraction": {
        **_by_kind(_WITH_CONTEXT),
        "masked": "{context} [SEP] {sub} [T]x%d [P] .",
        "roberta": _WITH_CONTEXT,
    },
    "sst2": _by_kind("{sentence} [T]x%d [P] ."),
    # the released example has the prediction before the trigger; a causal model cannot
    "sick": _by_kind("{prem} [P] [T]x%d {hyp}", "{prem} ? {hyp} [T]x%d [P]"),
}
#: The manual prompt of the paper for sentiment and its label words; inference has none.
MANUAL_SST2 = _by_kind("{sentence} this movie was [P].")
WORDS_SST2 = {"negative": ["terrible"], "positive": ["fantastic"]}
#: The field that loses words when an example is longer than the model's window.
TRUNCATE = {"facts": "", "relation_extraction": "context", "sst2": "sentence", "sick": "prem"}


def search_templates(task: str, triggers: int) -> dict[str, str]:
    """kind -> template with `triggers` trigger tokens."""
    return {kind: text % triggers for kind, text in SEARCH[task].items()}


def manual(text: str, context: bool = False, ending: str = "") -> dict[str, str]:
    """kind -> prompt template of a text with [X] and [Y]; verbatim but for the slots' names.

    `context`: the same sentence stands in front as in the search. `ending`: a template that causal
    models get instead where the answer is not last in `text`. Without one they get none.
    """
    by_kind = {"masked": text, "seq2seq": text}
    if causal := text if answer_is_last(text) else ending:
        by_kind["causal"] = cut(causal)[0]
    by_kind = {kind: as_prompt_template(template.strip()) for kind, template in by_kind.items()}
    if not context:
        return by_kind
    front = {"masked": "{context} [SEP] "}
    with_it = {kind: front.get(kind, "{context} ") + template for kind, template in by_kind.items()}
    return {**with_it, "roberta": "{context} " + by_kind["masked"]}


def own_endings(rows: list[dict[str, str]]) -> dict[str, str]:
    """relation -> the first of our own templates (rows of templates.tsv) whose answer is last."""
    texts: dict[str, str] = {}
    for row in sorted(rows, key=lambda r: (r["relation"], r["kind"] != "manual", int(r["index"]))):
        if answer_is_last(row["text"]):
            texts.setdefault(row["relation"], row["text"])
    return texts


def first_manual(rows: Iterable[Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """relation -> its first manual template in rows of templates.tsv, as a row of a file of
    templates."""
    templates: dict[str, dict[str, str]] = {}
    for row in sorted(rows, key=lambda r: int(r["index"])):
        if row["kind"] == "manual":
            text = {"template": row["text"], "label": row["note"]}
            templates.setdefault(row["relation"], text)
    return templates


def read_templates(path: Path) -> dict[str, dict[str, str]]:
    """relation -> its row (template, and label and type where the file has them).

    Raises TaskError for a row without relation or with another number of [X] or [Y] than one.
    """
    existing(path, "one template per relation", "lama")
    rows: dict[str, dict[str, str]] = {}
    for number, row in json_rows(path, TaskError, texts=("relation", "template")):
        sentence(row["template"], f"{path}, line {number}", TaskError)
        rows[row["relation"]] = {key: str(value) for key, value in row.items()}
    return rows
