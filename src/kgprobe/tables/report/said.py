"""Questions of a benchmark with their right answers, and for each probe the answer that came first
and the place of the right one, under the first template or configuration.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.metrics.matching import first_match, names
from kgprobe.tables.answers import read_aliases
from kgprobe.tables.report.chapter import Chapter
from kgprobe.tables.report.grid import Cell, Grid, property_order

Row = Mapping[str, str]
#: questions shown of every relation, examples on a benchmark's page, relations on a page
OF_RELATION, EXAMPLES, RELATIONS = 8, 12, 60
#: kind of questions beside a benchmark's own -> the file of its folder, how the heads of its tables
#: begin, and how they read
CHOICE, REASON = "choice", "reason"
FILES = {CHOICE: "choices.parquet", REASON: "reasoning.parquet"}
HEADS = {"": "Example questions", CHOICE: "Multiple choice", REASON: "Reasoning"}
HOW = (
    "What each model put first, under the first template or configuration alone, and the place of "
    "the (best) right answer."
)
HOWS = {
    "": HOW,
    CHOICE: (
        "The right option with its letter, and what each model chose in each way of answering: it "
        "writes, or the likeliest letter, option's text or filling of the written prompt counts."
    ),
    REASON: (
        "The place of the (best) right answer among all concepts, with both premises written and "
        "with the conclusion alone, under the first template and pair of pseudowords."
    ),
}


@dataclass(frozen=True)
class Question:
    """One question: its relation or task, what is asked about, the options (none: free text)."""

    item: str
    relation: str
    subject: str
    right: Sequence[str]
    options: Sequence[str] = ()
    answers: Sequence[int] = ()
    #: what a written answer may equal: labels of right answers, and their aliases where the tables
    #: take them, too
    names: Sequence[str] = ()


def questions(folder: Path, kind: str = "") -> list[Question]:
    """The first OF_RELATION questions of every relation of a benchmark, of its own or of another
    `kind` (CHOICE, REASON); [] where it has none."""
    if kind:
        read = {CHOICE: _choices, REASON: _reasoning}[kind]
        path = folder / FILES[kind]
        return read(folder, path) if path.is_file() else []
    if (folder / "items.parquet").is_file():
        return _items(folder)
    if (folder / "examples.parquet").is_file():
        rows = pl.read_parquet(folder / "examples.parquet").filter(split="test")
        rows = rows.sort("group", "example")
        rows = rows.group_by("group", maintain_order=True).head(OF_RELATION)
        return [
            Question(f"{r['group']}/{r['example']}", r["group"], _fields(r["fields"]), [r["label"]])
            for r in rows.rows(named=True)
        ]
    return []


def _items(folder: Path) -> list[Question]:
    path = folder.parent / "graph/aliases.parquet"
    aliases = read_aliases(path) if path.is_file() else {}
    questions = []
    for row, options in _first(folder, schema.read(folder / "items.parquet", schema.ITEMS)):
        right, labels = [options[i] for i in row["answers"]], [label for _, label in options]
        accepted = [name for entity, label in right for name in names(label, entity, aliases)]
        questions.append(Question(row["item"], row["relation"], row["subject"],
                                  [label for _, label in right], labels, row["answers"],
                                  accepted))  # fmt: skip
    return questions


def _first(
    folder: Path, items: pl.DataFrame
) -> Iterator[tuple[dict[str, Any], list[tuple[str, str]]]]:
    """The first ITEMS of every relation, each with its options: ids and labels."""
    items = items.sort("relation", "row", "item")
    items = items.group_by("relation", maintain_order=True).head(OF_RELATION)
    sets = pl.scan_parquet(folder / "candidates.parquet").sort("set", "index")
    wanted = sets.filter(pl.col("set").is_in(items["candidates"].unique().implode())).collect()
    options: dict[str, list[tuple[str, str]]] = {}
    for name, entity, label in wanted.select("set", "id", "label").rows():
        options.setdefault(name, []).append((entity, label))
    yield from ((row, options[row["candidates"]]) for row in items.rows(named=True))


def _choices(_: Path, path: Path) -> list[Question]:
    """Questions with letters; those of a rule stand without their first premise, then with it."""
    rows = schema.read(path, schema.CHOICES).sort("task", "row", "premise", descending=[False,
           False, True])  # fmt: skip
    return [
        Question(r["item"], r["task"], r["question"], [_lettered(r["options"], r["gold"])],
                 r["options"], [r["gold"]])
        for r in rows.group_by("task", maintain_order=True).head(OF_RELATION).rows(named=True)
    ]  # fmt: skip


def _lettered(options: Sequence[str], place: int) -> str:
    return f"({ascii_lowercase[place]}) {options[place]}"


def _reasoning(folder: Path, path: Path) -> list[Question]:
    """Rules' test rows in the words of the written prompt with both premises."""
    questions = []
    rows = schema.read(path, schema.ITEMS).filter(role="test")
    for row, options in _first(folder, rows):
        meta = json.loads(row["meta"])
        text = f"{meta['p1']} {meta['p2']} Therefore, {meta['h']}"
        labels = [label for _, label in options]
        questions.append(Question(row["item"], row["relation"], text,
                                  [labels[i] for i in row["answers"]], labels,
                                  row["answers"]))  # fmt: skip
    return questions


def _fields(text: str) -> str:
    return "; ".join(str(value) for value in json.loads(text).values())


Said = dict[str, Cell]


def _cell(text: str, place: int | None, of: int = 0, most: int = 0) -> Cell:
    """An answer, and the place of the right one among `of` options or the first `most` texts."""
    if place is None:
        note = f"right one not among {most}" if most else ""
        return Cell(text, note, float("inf"))
    sign = "✓ " if place == 1 else ""
    among = f" of {of}" if of else ""
    return Cell(text, f"{sign}right at {place}{among}", float(place))


def _sentence(path: Path, questions: Sequence[Question]) -> Said:
    scores = _of(path, questions)
    scores = scores.filter(pl.col("template") == pl.col("template").min().over("item"))
    cells = {}
    by_item = {key[0]: rows for key, rows in scores.partition_by("item", as_dict=True).items()}
    for one in questions:
        if one.item in by_item:
            rows = by_item[one.item].sort("sum", "candidate", descending=[True, False])
            best = rows.filter(pl.col("candidate").is_in(list(one.answers)))["sum"].max()
            place = 1 + rows.filter(pl.col("sum") > best).height
            cells[one.item] = _cell(one.options[rows["candidate"][0]], place, rows.height)
    return cells


def _cloze(path: Path, questions: Sequence[Question]) -> Said:
    ranks, top = _of(path, questions), _of(path.with_suffix(".top.parquet"), questions)
    same = ["template", "masks", "pooling"]
    order = [pl.col("pooling") != "mean", "template", "masks", "pooling"]
    first = ranks.sort(order).group_by("item", maintain_order=True).first().select("item", *same)
    places = ranks.join(first, on=["item", *same]).group_by("item").agg(pl.col("in_order").min())
    leads = top.filter(place=1).join(first, on=["item", *same]).select("item", "candidate")
    both = {item: rest for item, *rest in places.join(leads, on="item").rows()}
    return {
        one.item: _cell(one.options[both[one.item][1]], both[one.item][0], len(one.options))
        for one in questions
        if one.item in both
    }


def _soft(path: Path, questions: Sequence[Question]) -> Said:
    """Soft prompts keep no more than the places of right answers."""
    ranks, same = _of(path, questions), ["masks", "pooling", "loss", "seed"]
    first = ranks.sort(same).group_by("item", maintain_order=True).first().select("item", *same)
    places = dict(
        ranks.join(first, on=["item", *same]).group_by("item").agg(pl.col("in_order").min()).rows()
    )
    return {
        one.item: Cell(f"right at {places[one.item]} of {len(one.options)}")
        for one in questions
        if one.item in places
    }


def _fill(path: Path, questions: Sequence[Question]) -> Said:
    fills = _of(path, questions).filter(position=-1)
    fills = fills.filter(pl.col("template") == pl.col("template").min().over("item"))
    fills = fills.sort("item", "logprob", "rank", descending=[False, True, False], nulls_last=True)
    cells = {}
    by_item = {key[0]: rows for key, rows in fills.partition_by("item", as_dict=True).items()}
    for one in questions:
        if one.item in by_item:
            texts = list(dict.fromkeys(by_item[one.item]["text"]))
            place = first_match(texts, one.names) or None
            cells[one.item] = _cell(texts[0], place, most=len(texts))
    return cells


def _choice(path: Path, questions: Sequence[Question]) -> dict[str, Said]:
    """What was chosen in each way of answering; what cannot be read as an option as it was written.

    Sums instead of means over tokens are no other way, and have no place here.
    """
    known = {one.item: one for one in questions}
    rows = _of(path, questions).filter(~pl.col("way").str.ends_with("_sum")).sort("item", "way")
    by_item: dict[str, list[tuple[str, bool]]] = {}
    for item, way, chosen, text in rows.select("item", "way", "chosen", "text").rows():
        one = known[item]
        is_right = chosen in one.answers
        answer = f"“{text.strip()[:40]}”" if chosen is None else one.options[chosen]
        by_item.setdefault(item, []).append((f"{way}: {answer}{' ✓' * is_right}", is_right))
    cells = {
        item: Cell(ways[0][0], "; ".join(text for text, _ in ways[1:]), -sum(h for _, h in ways))
        for item, ways in by_item.items()
    }
    return {"": cells} if cells else {}


def _reason(path: Path, questions: Sequence[Question]) -> dict[str, Said]:
    """Both premises written, and none; ranks alone are kept."""
    cells: dict[str, Said] = {}
    rows = _of(path, questions).filter(pl.col("p1") == pl.col("p2"))
    rows = rows.sort("item", "scheme", "pair", "best")
    rows = rows.unique(["item", "p1"], keep="first", maintain_order=True)
    options = {one.item: len(one.options) for one in questions}
    for item, is_written, place in rows.sort("p1", descending=True).select(
        "item", "p1", "in_order"
    ).rows():  # fmt: skip
        head = "premises written" if is_written else "conclusion alone"
        cell = Cell(f"right at {place} of {options[item]}", "✓" * (place == 1), float(place))
        cells.setdefault(head, {})[item] = cell
    return cells


def _predict(path: Path, questions: Sequence[Question], prompt: str = "") -> Said:
    rows = pl.read_parquet(path).filter(split="test", prompt=prompt)
    places = {f"{g}/{e}": (best, of) for g, e, best, of in
              rows.select("group", "example", "best", "options").rows()}  # fmt: skip
    return {
        one.item: Cell("not asked", muted=True) if places[one.item][0] is None
        else Cell(f"right at {places[one.item][0]} of {places[one.item][1]}")
        for one in questions
        if one.item in places
    }  # fmt: skip


def _of(path: Path, questions: Sequence[Question]) -> pl.DataFrame:
    """The rows of a file of answers that belong to some questions."""
    wanted = pl.Series([one.item for one in questions], dtype=pl.String)
    return pl.scan_parquet(path).filter(pl.col("item").is_in(wanted.implode())).collect()


#: method -> the answers to a benchmark's own questions
METHODS: Mapping[str, Callable[..., Said]] = {
    "sentence": _sentence, "cloze": _cloze, "soft": _soft, "fill": _fill, "predict": _predict,
}  # fmt: skip


#: method that asks a kind of questions of its own -> the answers, by more than the model
ASIDE: Mapping[str, Callable[..., dict[str, Said]]] = {CHOICE: _choice, REASON: _reason}


def answered(
    folder: Path, experiments: Sequence[Row], answers: Sequence[str | Path], kind: str = ""
) -> tuple[list[Question], dict[str, Said]]:
    """Questions of a benchmark of a `kind`, and its probes' answers by the head of their column.

    `answers`: the file of each of `experiments`.
    """
    items = questions(folder, kind)
    columns: dict[str, Said] = {}
    for row, path in zip(experiments, answers, strict=True):
        method = row["method"].partition("-")[0]
        if row["benchmark"] != folder.name or not items:
            continue
        if kind and method == kind:
            apart = ASIDE[kind](Path(path), items)
            columns |= {", ".join(filter(None, [row["model"], head])): cells
                        for head, cells in apart.items()}  # fmt: skip
        if kind or method not in METHODS:
            continue
        also = {"prompt": row["prompt"]} if method == "predict" else {}
        said = METHODS[method](Path(path), items, **also)
        rivals = [r for r in experiments
                  if (r["benchmark"], r["model"]) == (row["benchmark"], row["model"])]  # fmt: skip
        parts = [row[d] for d in ("method", "prompt") if len({r[d] for r in rivals}) > 1]
        if said:
            columns[", ".join([row["model"], *parts])] = said
    return items, columns


def title(relation: str, titles: Mapping[str, str]) -> str:
    """A relation as the heading of its questions."""
    return f"{titles[relation]} ({relation})" if titles.get(relation) else relation


def examples(questions: Sequence[Question], said: Mapping[str, Said], kind: str = "") -> Grid:
    """A question of each relation, as far as EXAMPLES go round."""
    turns: dict[str, list[Question]] = {}
    for one in questions:
        turns.setdefault(one.relation, []).append(one)
    ordered = [group[i] for i in range(OF_RELATION) for group in turns.values() if i < len(group)]
    return _table(HEADS[kind], ordered[:EXAMPLES], said, HOWS[kind], shows_relation=True)


def by_relation(
    name: str,
    questions: Sequence[Question],
    said: Mapping[str, Said],
    titles: Mapping[str, str],
    prompts: Mapping[str, str],
    kind: str = "",
) -> Iterator[Chapter]:
    """Pages of RELATIONS relations each, with their first questions of a `kind`."""
    relations = sorted({one.relation for one in questions}, key=property_order)
    lead = f"The first {OF_RELATION} questions of every relation or task. {HOWS[kind]}"
    of = f", {HEADS[kind].lower()}" if kind else ""
    for start in range(0, len(relations), RELATIONS):
        number = start // RELATIONS
        grids = [
            _table(
                title(relation, titles),
                [one for one in questions if one.relation == relation],
                said,
                "" if kind else prompts.get(relation, ""),
            )
            for relation in relations[start : start + RELATIONS]
        ]
        page = (
            f"relations-{name}"
            + (f"-{kind}" if kind else "")
            + (f"-{number + 1}" if number else "")
        )
        head = f"{name}{of}: relation by relation" + (f", {number + 1}" if number else "")
        yield Chapter(page, head, lead, grids=grids)


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


def wordings(folder: Path) -> dict[str, str]:
    """Relation -> its first template."""
    path = folder / "prompts.parquet"
    if not path.is_file():
        return {}
    rows = schema.read(path, schema.PROMPTS).sort("relation", "index", descending=True)
    return {relation: f"First template: {text}" for relation, text in
            rows.select("relation", "text").rows()}  # fmt: skip
