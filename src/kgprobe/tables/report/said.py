"""Questions of a benchmark with their gold answers, and for each probe the top answer and the rank
of the gold one, under the first template or configuration."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.tables.judged import of_first
from kgprobe.tables.report.grid import Cell, Grid, property_order, with_id
from kgprobe.tables.report.section import Section

Row = Mapping[str, str]
#: questions shown per relation, examples on a benchmark's page, relations per page
OF_RELATION, EXAMPLES, RELATIONS = 8, 12, 60
#: kinds of questions other than a benchmark's own -> file in its folder, and prefix of its tables'
#: headings
CHOICE, REASON = "choice", "reason"
FILES = {CHOICE: "choices.parquet", REASON: "reasoning.parquet"}
HEADS = {"": "Example questions", CHOICE: "Multiple choice", REASON: "Reasoning"}
#: premises written in a prompt (JUDGED) -> suffix of its column's header
PREMISES = {"P1 EX, P2 EX": "premises written", "P1 out, P2 out": "conclusion alone"}
HOW = (
    "The top answer of each model with the first template or configuration, and the rank of the "
    "(best) right answer."
)
HOWS = {
    "": HOW,
    CHOICE: (
        "The right option with its letter, and what each model chose in each scoring mode: its "
        "generated text, or the most likely letter, option text, or option in the manual prompt."
    ),
    REASON: (
        "The rank of the (best) right answer among all concepts, with both premises in the prompt "
        "and with the conclusion alone, for the first template and pair of pseudowords."
    ),
}


@dataclass(frozen=True)
class Question:
    """A question: its relation or task, subject, gold answers, and any lettered options."""

    item: str
    relation: str
    subject: str
    right: Sequence[str]
    options: Sequence[str] = ()


def questions(folder: Path, kind: str = "") -> list[Question]:
    """Return the first OF_RELATION questions of every relation of a benchmark, its own or of
    another `kind` (CHOICE, REASON); [] if it has none."""
    if kind:
        read = {CHOICE: _choices, REASON: _reasoning}[kind]
        path = folder / FILES[kind]
        return read(path) if path.is_file() else []
    if (folder / "items.parquet").is_file():
        rows = schema.read(folder / "items.parquet", schema.ITEMS)
        return [Question(row["item"], row["relation"], row["subject"], right) for row, right in
                _first(folder, rows)]  # fmt: skip
    if (folder / "examples.parquet").is_file():
        rows = pl.read_parquet(folder / "examples.parquet", glob=False).filter(split="test")
        rows = rows.sort("group", "example")
        rows = rows.group_by("group", maintain_order=True).head(OF_RELATION)
        return [
            Question(
                f"{r['group']}/{r['example']}",
                r["group"],
                "; ".join(map(str, json.loads(r["fields"]).values())),
                [r["label"]],
            )
            for r in rows.rows(named=True)
        ]
    return []


def _first(folder: Path, items: pl.DataFrame) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the first ITEMS of every relation, each with the labels of its gold answers."""
    items = items.sort("relation", "row", "item")
    items = items.group_by("relation", maintain_order=True).head(OF_RELATION)
    sets = pl.scan_parquet(folder / "candidates.parquet", glob=False)
    wanted = sets.filter(pl.col("set").is_in(items["candidates"].unique().implode())).collect()
    labels = {(name, i): label for name, i, label in wanted.select("set", "index", "label").rows()}
    for row in items.rows(named=True):
        yield row, [labels[row["candidates"], i] for i in row["answers"]]


def _choices(path: Path) -> list[Question]:
    """Return lettered questions; those of a rule without their first premise, then with it."""
    rows = schema.read(path, schema.CHOICES).sort("task", "row", "premise", descending=[False,
           False, True])  # fmt: skip
    return [
        Question(r["item"], r["task"], r["question"], [_lettered(r["options"], r["gold"])],
                 r["options"])
        for r in rows.group_by("task", maintain_order=True).head(OF_RELATION).rows(named=True)
    ]  # fmt: skip


def _lettered(options: Sequence[str], place: int) -> str:
    return f"({ascii_lowercase[place]}) {options[place]}"


def _reasoning(path: Path) -> list[Question]:
    """Return test rows of the rules, formatted as the written prompt with both premises."""
    # a graph that supports only TP has no rules
    items = schema.read(path, replace(schema.ITEMS, may_be_empty=True))
    rows = _first(path.parent, items.filter(role="test"))
    text = "{p1} {p2} Therefore, {h}"
    return [Question(row["item"], row["relation"], text.format(**json.loads(row["meta"])), right)
            for row, right in rows]  # fmt: skip


Said = dict[str, Cell]


def _cell(row: Mapping[str, Any]) -> Cell:
    """Format an answer of JUDGED, and the rank of the gold one if ranks are stored."""
    low, high, of = row["rank_low"], row["rank_high"], row["options"]
    if row["hit"] is None:
        return Cell("not asked", muted=True)
    notes = ["✓"] if row["hit"] == 1 else []
    if low is not None:
        ties = "" if low == high else f" to {high}"
        among = "" if row["method"].startswith("fill") else f" of {of}"
        notes.append(f"right at {low}{ties}{among}")
    elif of is not None and row["hit"] == 0:
        notes.append(f"right answer not among {of}")
    place = float(low or (1 if row["hit"] else math.inf))
    text = " ".join(notes)
    return Cell(text, "", place) if row["answer"] is None else Cell(row["answer"], text, place)


def _ways(rows: pl.DataFrame, questions: Sequence[Question]) -> Said:
    """Return the choices by scoring mode; answers that cannot be parsed are quoted."""
    texts, hits = dict[str, list[str]](), dict[str, float]()
    options = {one.item: one.options for one in questions}
    # sums instead of means over tokens are not a separate mode
    rows = rows.filter(~pl.col("scoring").str.ends_with("_sum")).sort("item", "scoring")
    for row in rows.rows(named=True):
        item, answer = row["item"], row["answer"]
        shown = answer if answer in options[item] else f"“{answer.strip()[:40]}”"
        texts.setdefault(item, []).append(f"{row['scoring']}: {shown}{' ✓' * (row['hit'] == 1)}")
        hits[item] = hits.get(item, 0) + row["hit"]
    return {item: Cell(one[0], "; ".join(one[1:]), -hits[item]) for item, one in texts.items()}


def _columns(
    rows: pl.DataFrame, questions: Sequence[Question], kind: str
) -> Iterator[tuple[str, Said]]:
    """Yield the columns of a probe's answers, by the suffix of their header."""
    if kind == CHOICE:
        yield "", _ways(rows, questions)
    else:
        for premise, end in PREMISES.items() if kind else [("", "")]:
            some = rows.filter(premise=premise).rows(named=True)
            yield end, {row["item"]: _cell(row) for row in some}


def answered(
    folder: Path, experiments: Sequence[Row], judged: pl.DataFrame, kind: str = ""
) -> tuple[list[Question], dict[str, Said]]:
    """Return questions of a benchmark of a `kind`, and its probes' answers by column header.

    `judged`: JUDGED of the probes of `experiments`.
    """
    items, columns = questions(folder, kind), dict[str, Said]()
    if not items:
        return [], columns
    wanted = pl.col("item").is_in([one.item for one in items])
    first = of_first(judged.filter(wanted, benchmark=folder.name))
    probes = [row for row in experiments if row["benchmark"] == folder.name]
    for row in probes:
        if (row["method"] if row["method"] in FILES else "") != kind:
            continue
        rows = first.filter(**{name: row[name] for name in ("model", "prompt", "method")})
        rivals = [r for r in probes if r["model"] == row["model"]]
        apart = () if kind else ("method", "prompt")
        parts = [row[d] for d in apart if len({r[d] for r in rivals}) > 1]
        for end, cells in _columns(rows, items, kind):
            if cells:
                columns[", ".join(filter(None, [row["model"], *parts, end]))] = cells
    return items, columns


def examples(questions: Sequence[Question], said: Mapping[str, Said], kind: str = "") -> Grid:
    """Tabulate questions of all relations in turn, up to EXAMPLES."""
    relations = [[*group] for _, group in groupby(questions, key=lambda one: one.relation)]
    ordered = [one for turn in zip_longest(*relations) for one in turn if one]
    return _table(HEADS[kind], ordered[:EXAMPLES], said, HOWS[kind], shows_relation=True)


def by_relation(
    name: str,
    questions: Sequence[Question],
    said: Mapping[str, Said],
    titles: Mapping[str, str],
    prompts: Mapping[str, str],
    kind: str = "",
) -> Iterator[Section]:
    """Yield pages of RELATIONS relations each, with their first questions of a `kind`."""
    relations = sorted({one.relation for one in questions}, key=property_order)
    lead = f"The first {OF_RELATION} questions of every relation or task. {HOWS[kind]}"
    of = f", {HEADS[kind].lower()}" if kind else ""
    for start in range(0, len(relations), RELATIONS):
        number = start // RELATIONS
        grids = [
            _table(
                with_id(relation, titles),
                [one for one in questions if one.relation == relation],
                said,
                "" if kind else prompts.get(relation, ""),
            )
            for relation in relations[start : start + RELATIONS]
        ]
        more = [str(number + 1)] * bool(number)
        page = "-".join(["relations", name, *([kind] if kind else []), *more])
        head = ", ".join([f"{name}{of}: relation by relation", *more])
        yield Section(page, head, lead, grids=grids)


def _table(
    head: str,
    questions: Sequence[Question],
    said: Mapping[str, Said],
    caption: str,
    shows_relation: bool = False,
) -> Grid:
    heads = ["subject", "right", *said]
    rows = [
        [
            Cell(one.subject, one.relation if shows_relation else "", one.subject.casefold()),
            Cell(", ".join(one.right[:4]) + (" …" if len(one.right) > 4 else "")),
            *(cells.get(one.item, Cell("–", muted=True)) for cells in said.values()),
        ]
        for one in questions
    ]
    return Grid(head, heads, rows, caption=caption)


def first_templates(folder: Path) -> dict[str, str]:
    """Return relation -> its first template."""
    path = folder / "prompts.parquet"
    if not path.is_file():
        return {}
    rows = schema.read(path, schema.PROMPTS).sort("relation", "index", descending=True)
    return {relation: f"First template: {text}" for relation, text in
            rows.select("relation", "text").rows()}  # fmt: skip
