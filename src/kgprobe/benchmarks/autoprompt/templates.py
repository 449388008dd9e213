"""Templates of the tasks, per kind of model (docs/papers/autoprompt.md, Templates).

A template has fields {sub}, {context}, ..., trigger tokens [T] (`[T]x5` for five), and [P], the
predicted token. Causal models predict at the end: text after [P] is cut, and templates whose answer
is not last are not used for them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from kgprobe.benchmarks.autoprompt.frames import TaskError, existing
from kgprobe.experiments import json_rows
from kgprobe.templates import answer_is_last, as_prompt_template, cut, sentence


def _by_kind(text: str, causal: str = "") -> dict[str, str]:
    """Return a text for each kind of model; the causal one ends with [P]."""
    shorter = causal or text.removesuffix(".").rstrip()
    return {"masked": text, "causal": shorter, "seq2seq": text}


_WITH_CONTEXT = "{context} {sub} [T]x%d [P] ."
#: Task -> kind of model -> search template, with %d for the number of triggers. `roberta`: a
#: masked model that was not trained on segment pairs, where the released code differs.
SEARCH: Mapping[str, Mapping[str, str]] = {
    "facts": _by_kind("{sub} [T]x%d [P] ."),
    "relation_extraction": {
        **_by_kind(_WITH_CONTEXT),
        "masked": "{context} [SEP] {sub} [T]x%d [P] .",
        "roberta": _WITH_CONTEXT,
    },
    "sst2": _by_kind("{sentence} [T]x%d [P] ."),
    # in the released example [P] precedes the triggers, which causal models cannot do
    "sick": _by_kind("{prem} [P] [T]x%d {hyp}", "{prem} ? {hyp} [T]x%d [P]"),
}
#: The paper's manual prompt for sentiment and its label words; there is none for inference.
MANUAL_SST2 = _by_kind("{sentence} this movie was [P].")
WORDS_SST2 = {"negative": ["terrible"], "positive": ["fantastic"]}
#: The field that is truncated if an example exceeds the model's window.
TRUNCATE = {"facts": "", "relation_extraction": "context", "sst2": "sentence", "sick": "prem"}


def search_templates(task: str, triggers: int) -> dict[str, str]:
    """Return kind -> template with `triggers` trigger tokens."""
    return {kind: text % triggers for kind, text in SEARCH[task].items()}


def manual(text: str, context: bool = False, ending: str = "") -> dict[str, str]:
    """Return kind -> prompt template of a text with [X] and [Y], verbatim except for slot names.

    `context`: prepend the sentence as in the search. `ending`: the template for causal models if
    the answer is not last in `text`; without it they get none.
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
    """Return relation -> our first template (rows of templates.tsv) in which the answer is last."""
    texts: dict[str, str] = {}
    for row in sorted(rows, key=lambda r: (r["relation"], r["kind"] != "manual", int(r["index"]))):
        if answer_is_last(row["text"]):
            texts.setdefault(row["relation"], row["text"])
    return texts


def first_manual(rows: Iterable[Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return relation -> its first manual template in rows of templates.tsv, in the format of
    `read_templates`."""
    templates: dict[str, dict[str, str]] = {}
    for row in sorted(rows, key=lambda r: int(r["index"])):
        if row["kind"] == "manual":
            text = {"template": row["text"], "label": row["note"]}
            templates.setdefault(row["relation"], text)
    return templates


def read_templates(path: Path) -> dict[str, dict[str, str]]:
    """Read relation -> its row (template, and label and type if the file has them).

    Raises TaskError for a row without relation or template, or without one [X] and one [Y].
    """
    existing(path, "one template per relation", "lama")
    rows: dict[str, dict[str, str]] = {}
    for number, row in json_rows(path, TaskError, texts=("relation", "template")):
        sentence(row["template"], f"{path}, line {number}", TaskError)
        rows[row["relation"]] = {key: str(value) for key, value in row.items()}
    return rows
