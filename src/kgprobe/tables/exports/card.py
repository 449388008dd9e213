"""The card (README.md) of a Hugging Face data set of BEAR sets (bear.md, section 10.3)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.tables.exports.huggingface import FILE

PAPER = """Jacek Wiland, Max Ploner, Alan Akbik: *BEAR: A Unified Framework for Evaluating
Relational Knowledge in Causal and Masked Language Models*. Findings of NAACL 2024,
arXiv:2404.04113."""
LICENCES = {
    "cc-by-sa-4.0": "CC BY-SA 4.0, that of the released BEAR.",
    "cc0-1.0": "The statements come from Wikidata, which is in the public domain (CC0).",
}
COLUMNS = """| column | content |
|---|---|
| composite_id | relation, row of the instance in its relation, template: `P36-0-2` |
| relation | Wikidata property |
| item | relation and subject: `P36/Q142` |
| template_index, template | which template, and its text: `[X]` subject, `[Y]` answer |
| subject | label of the subject |
| answer_options | labels of all options of the relation, in one order for all instances |
| correct | index of the correct option |
| text_options | the template filled with each option, first character upper-cased |"""


@dataclass(frozen=True)
class Origin:
    """Where the sets of a card come from. What does not apply stays empty."""

    title: str
    #: released: the paper's own data, unchanged; else constructed by kgprobe
    released: bool
    #: where and when the statements were pulled
    source: str = ""
    time: str = ""
    #: configuration of the construction
    parameters: Mapping[str, object] | None = None
    #: FUNNEL of the construction
    funnel: pl.DataFrame | None = None
    #: RESULTS of the drift against the released set
    drift: pl.DataFrame | None = None
    language: str = "en"


def write(configurations: Mapping[str, Sets], origin: Origin) -> str:
    """The text of README.md: YAML header, what it is, columns, construction, balance, drift."""
    parts = [_header(configurations, origin), f"# {origin.title}", _what(origin)]
    parts += ["## Columns", COLUMNS, "## Size, balance and baselines", _balance(configurations)]
    if origin.parameters:
        parts += ["## Construction", _parameters(origin.parameters)]
    if origin.funnel is not None:
        parts += ["## What was dropped", _funnel(origin.funnel)]
    if origin.drift is not None:
        parts += ["## Drift against the released set", _drift(origin.drift)]
    licence = LICENCES[_licence(origin)]
    parts += ["## Licence", licence, "## Citation", PAPER]
    return "\n\n".join(parts) + "\n"


def _licence(origin: Origin) -> str:
    return "cc-by-sa-4.0" if origin.released else "cc0-1.0"


def _header(configurations: Mapping[str, Sets], origin: Origin) -> str:
    rows = max(_rows(sets) for sets in configurations.values())
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")]
    size = next((name for bound, name in bounds if rows < bound), "100K<n<1M")
    lines = ["---", f"license: {_licence(origin)}", f"pretty_name: {json.dumps(origin.title)}"]
    lines += ["language:", f"- {origin.language}", "task_categories:", "- multiple-choice"]
    lines += ["size_categories:", f"- {size}", "configs:"]
    for name in configurations:
        lines += [f"- config_name: {name}", "  data_files:", "  - split: test"]
        lines += [f"    path: {name}/{FILE}"]
    return "\n".join([*lines, "---"])


def _what(origin: Origin) -> str:
    text = (
        "Relational knowledge as multiple choice: a sentence for every answer option, ranked by a "
        "language model's (pseudo) log-likelihood. Every relation is balanced: each of its answers "
        "has the same number of instances, so that a constant guess scores as low as chance."
    )
    if origin.released:
        released = "This is the released BEAR with its sentences filled in, unchanged otherwise."
        return f"{text}\n\n{released}"
    pulled = " ".join(w for w in (origin.source, origin.time and f"on {origin.time}") if w)
    source = f" The statements were pulled from {pulled}." if pulled else ""
    return (
        f"{text}\n\nThis set was constructed anew by kgprobe after the paper's description."
        f"{source} **It is not the paper's set**, and scores on it are not the paper's."
    )


def _balance(configurations: Mapping[str, Sets]) -> str:
    heads = ["configuration", "relations", "instances", "rows", "options"]
    heads += ["random = majority baseline", "answer in subject", "any option in subject"]
    lines = []
    for name, sets in configurations.items():
        sizes = sets.candidates.group_by(candidates="set").len("k")
        options = sets.items.join(sizes, on="candidates")["k"].to_numpy()
        relations, instances = sets.items["relation"].n_unique(), sets.items.height
        counts = [relations, f"{instances:,}", f"{_rows(sets):,}"]
        chance = f"{float((100 / options).mean()):.3f} %"
        bounds = f"{options.min()} to {options.max()}"
        lines.append([name, *counts, bounds, chance, *overlaps(sets)])
    return _table(heads, lines)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown of a table."""
    lines = ["".join(f"| {cell} " if cell != "" else "| " for cell in r) for r in (heads, *rows)]
    return "\n".join([f"{lines[0]}|", "|---" * len(heads) + "|", *(f"{x}|" for x in lines[1:])])


def overlaps(sets: Sets) -> tuple[int, int]:
    """Items whose subject contains (in any case) its answer; whose subject contains any option."""
    labels = {
        str(name[0]): [label.casefold() for label in group.sort("index")["label"]]
        for name, group in sets.candidates.group_by("set")
    }
    own = anyone = 0
    for subject, options, answers in sets.items.select("subject", "candidates", "answers").rows():
        held = [label in subject.casefold() for label in labels[options]]
        own += held[answers[0]]
        anyone += any(held)
    return own, anyone


def _rows(sets: Sets) -> int:
    """Rows of the data set: instances times templates."""
    templates = sets.prompts.group_by("relation").len("templates")
    return int(sets.items.join(templates, on="relation")["templates"].sum())


def _parameters(parameters: Mapping[str, object]) -> str:
    rows = [(key, f"`{json.dumps(v, sort_keys=True)}`") for key, v in parameters.items()]
    return _table(["parameter", "value"], rows)


def _funnel(funnel: pl.DataFrame) -> str:
    steps = funnel.group_by("position", "step").agg(pl.col("rows_in", "rows_out").sum())
    found = steps.sort("position").select("step", "rows_in", "rows_out").rows()
    rows = [(step, f"{into:,}", f"{into - out:,}", f"{out:,}") for step, into, out in found]
    return _table(["step", "statements", "dropped", "kept"], rows)


def _drift(drift: pl.DataFrame) -> str:
    found = drift.filter(group="").select("metric", "slice", "value", "low", "high", "n").rows()
    rows = []
    for metric, state, value, low, high, n in found:
        bounds = "" if low is None else f"{low:.2f} to {high:.2f}"
        rows.append((state or metric, f"{value:.2f}", bounds, f"{n:,}"))
    return _table(["", "value", "95 % interval", "n"], rows)
