"""The headline: each paper's principal numbers, as a view of RESULTS per benchmark, and as text."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.experiments import GUESSES
from kgprobe.tables import views
from kgprobe.tables.answers import PRIOR, PRIOR_IS
from kgprobe.tables.report import marks
from kgprobe.tables.results import DIMENSIONS
from kgprobe.tables.views import Row, View

#: paper -> its printed name, in printing order
PAPERS = {
    "bear": "BEAR",
    "ontoprobe": "OntoProbe",
    "attributes": "LMs as Symbolic KGs",
    "autoprompt": "AutoPrompt",
}
#: models excluded from summary sentences and pictures, and the prefix of control models
BASELINES, CONTROL = ("", *GUESSES), "control-"
#: descriptions of AutoPrompt's prompts, in row order: from those without a model to searched ones
PROMPTS = {
    "majority": "majority of the training facts",
    "constant": "best constant answer (oracle)",
    "linear_probe": "linear probe",
    "finetuned": "fine-tuned",
    "relation_lstm": "LSTM extractor, re-implemented, other data",
    "manual": "manual prompt",
    "demos": "demonstrations (training facts)",
    "demos_shuffled": "control: demonstrations, answers permuted",
    "demos_other": "control: demonstrations, answers of other relations",
    "lpaqa": "LPAQA, one prompt",
    "published": "published AutoPrompt prompt",
    "initial_triggers": "control: what the search starts from",
    "random_triggers": "control: random triggers",
    "shuffled_triggers": "control: found triggers shuffled",
    "searched_reinitialised": "control: search, all weights random",
    "searched_embeddings": "control: search, embeddings random",
    "searched_balanced": "AutoPrompt, balanced search data",
    "searched_words": "AutoPrompt, label words of the manual prompt",
    "transferred": "AutoPrompt found on another model",
    "searched": "AutoPrompt",
    "searched_7": "AutoPrompt, 7 triggers",
}
WORDS = {
    **{("prompt", name): words for name, words in PROMPTS.items()},
    ("prompt", "templates"): "",
    ("method", "sentence"): "",
    ("metric", "value"): "",
    ("benchmark", ""): "mean of nine",
    ("metric", "mean of those defined"): "defined only",
    ("aggregation", PRIOR): "prior-corrected (assumes balance)",
}
#: explanations of metric names
METRICS = {
    "SEM": "standard error over the templates, in points",
    "correct in all": "items right under every template, in %",
}
WHOLE = {"group": [""], "slice": [""]}


def is_external(row: Row) -> bool:
    """Return whether a row of RESULTS is of a model: no baseline and no control model."""
    return row["model"] not in BASELINES and not row["model"].startswith(CONTROL)


def _view(name: str, title: str, rows: str, **more: Any) -> View:
    """Create a view of a paper (by default the one called `name`), with `rows` separated by spaces;
    `more` are fields of View or dimensions with the values that are shown."""
    given = {key: more.pop(key) for key in ("columns", "digits", "only") if key in more}
    return View(name, title, {"paper": [name], **more}, rows.split(), **given)


#: the principal numbers of every paper, in printing order; a block per benchmark, except for the
#: attributes, whose benchmarks are columns
VIEWS = (
    _view(
        "bear", "accuracy in % with its 95 % interval", "model method prompt aggregation",
        digits={"AUC": 3},
        metric=["accuracy", "SEM", "correct in all", "trained-on", "held-out", "AUC"],
        aggregation=["", PRIOR], **WHOLE,
        **{name: [""] for name in ("instead", "mode", "template", "weighting", "without")},
    ),
    _view(
        "ontoprobe", "right at rank 1 in %, one configuration", "model method prompt choice",
        columns=["group"], metric=["R@1"], choice=["chosen", "fixed"], mode=[""], slice=[""],
        instead=[""], without=[""],
    ),
    _view(
        "choice", "multiple choice, right answers in %", "model scoring demonstrations",
        columns=["group"], paper=["ontoprobe"], method=["choice"], metric=["accuracy"],
        premise=[""], slice=[""], aggregation=[""],
    ),
    _view(
        "reasoning", "MRR of all rules, by premise: written (EX), memorized (IM) or neither (NO)",
        "model scheme", columns=["premise"], digits={"MRR": 2},
        paper=["ontoprobe"], method=["reason"], metric=["MRR"], weighting=["rows"], **WHOLE,
        only=lambda results: results.filter(pl.col("model") != ""),
    ),
    _view(
        "attributes", "metric @1 in %, numerator / denominator, best prompt (oracle)",
        "model method", columns=["benchmark", "metric"],
        metric=["value", "mean of those defined"], k=["1"], pooling=["best"],
        alpha=["exact"], gold=["own"], drawn=[""], **WHOLE,
    ),
    _view(
        "autoprompt", "right in % with its 95 % interval; facts: mean over relations",
        "model prompt method size k", metric=["P@1", "accuracy"], **WHOLE,
        **{name: [""] for name in ("weighting", "gold", "draw", "instead", "without")},
    ),
    _view(
        "sweep",
        "right on dev in %, best of the grid or with the most examples: selected, so no interval",
        "model prompt method", paper=["autoprompt"], metric=["dev accuracy"], **WHOLE,
    ),
)  # fmt: skip


def blocks(results: pl.DataFrame) -> Iterator[View]:
    """Yield the views that have numbers, one per benchmark; the title begins with its name."""
    numbers = principal(results)
    for view in VIEWS:
        chosen = view.select(numbers)
        names = chosen["benchmark"].unique(maintain_order=True).to_list()
        together = [("attributes", names)] if "benchmark" in view.columns and names else None
        for name, members in together or [(n, [n]) for n in names]:
            part = view.where_also(benchmark=members)
            texts = _notes(chosen.filter(pl.col("benchmark").is_in(members)))
            title = f"{name}: {view.title}"
            yield replace(part, title=title, words=WORDS, caption=" ".join(texts))


def notes(numbers: pl.DataFrame) -> list[str]:
    """Return the notes to print wherever the principal `numbers` are printed."""
    shown = [_notes(view.select(numbers)) for view in VIEWS]
    return list(dict.fromkeys(note for texts in shown for note in texts))


def _notes(shown: pl.DataFrame) -> list[str]:
    """Explain some metrics, and what prior-corrected numbers use and assume, if there are any."""
    metrics = set(shown["metric"])
    notes = [f"{name}: {what}." for name, what in METRICS.items() if name in metrics]
    if PRIOR in shown["aggregation"]:
        notes.append(PRIOR_IS)
    return notes


def principal(results: pl.DataFrame) -> pl.DataFrame:
    """Select the RESULTS shown by `blocks`, and the rows that determine their marks: without
    numbers of the fixed configuration if one was chosen on dev rows."""
    results = results.filter(pl.col("method") != "published")
    key = [*DIMENSIONS, "mode"]
    chosen = results.filter(choice="chosen").select(key)
    is_beaten = results.filter(choice="fixed").join(chosen, on=key, how="semi")
    return results.join(is_beaten, on=schema.RESULTS.key, how="anti")


def text(results: pl.DataFrame) -> str:
    """Format the headline as aligned text, a block per paper and benchmark."""
    numbers, lines = principal(results), []
    shown: set[str] = set()
    for view in blocks(results):
        head, *table = block(view, numbers, shown)
        lines += [head, "", *table, ""]
    texts = [*notes(numbers), *marks.notes(shown)]
    lines += [line for note in texts if note for line in (note, "")]
    return "\n".join(lines)


def block(view: View, numbers: pl.DataFrame, shown: set[str]) -> list[str]:
    """Return the title of a view and its aligned lines; formatted numbers are added to `shown`.

    `numbers`: the principal RESULTS.
    """
    printed, sign = view.of(numbers), marks.signs(numbers)

    def number(cell: Row | None, digits: int) -> str:
        if cell is None:
            return "-"
        is_plain = len(printed.columns) > 5 or cell["metric"] in PLAIN
        text = views.text({**cell, "low": None} if is_plain else cell, digits)
        text += (marks.few(cell, digits) if cell["value"] is not None else "") + sign(cell)
        shown.add(text)
        return text

    body = printed.lines(number)
    n = max((c["n"] for c in printed.cells.values() if c["metric"] == "accuracy"), default=0)
    title = view.title
    if view.name == "bear":
        (name,) = view.where["benchmark"]
        unit = "subject" if counts_subjects(numbers, name) else "item"
        title = f"{name}: {n:,} {unit}{'s' * (n != 1)}; {title.removeprefix(f'{name}: ')}"
    return [title, *_align([printed.heads, *body], len(view.rows))]


def counts_subjects(results: pl.DataFrame, benchmark: str) -> bool:
    """Return whether n of BEAR's numbers on a benchmark counts subjects that a relation asks for
    several times, not items: then whole subjects are drawn."""
    rows = results.filter(paper="bear", benchmark=benchmark)
    return bool(rows["interval"].str.contains("cluster bootstrap").any())


#: metrics that are printed without their interval
PLAIN = ("SEM", "trained-on", "held-out")


def _align(rows: list[list[str]], first: int) -> list[str]:
    """Align the first column left, the others right, with two spaces between; without the other
    `first` ones that are empty below their header."""
    aligned = []
    for i, column in enumerate(zip(*rows, strict=True)):
        if i == 0 or i >= first or any(column[1:]):
            width, justify = max(map(len, column)), str.rjust if i else str.ljust
            aligned.append([justify(cell, width) for cell in column])
    return ["  ".join(line).rstrip() for line in zip(*aligned, strict=True)]
