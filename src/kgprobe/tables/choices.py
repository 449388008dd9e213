"""OntoProbe's Tables 5 and 6: multiple choice, memorising and reasoning, beside the printed values.

Source: Wu et al. 2023, Tables 5 and 6; ontoprobe.md, section 8. Accuracies in per cent with
Wilson's interval; an answer that cannot be read is wrong, and counted apart.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.metrics.intervals import wilson
from kgprobe.tables import grid, marks, table
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.table import columns_of

TASKS = ("TP", "SCO", "SPO", "DM", "RG")
RULES = ("rdfs2", "rdfs3", "rdfs5", "rdfs7", "rdfs9", "rdfs11")
PREMISES = ("NO", "IM", "EX")
#: Questions per rule of the released files: first premise not memorised, memorised, written.
RELEASED = {
    "rdfs2": (4, 26, 30), "rdfs3": (6, 22, 28), "rdfs5": (11, 28, 39), "rdfs7": (11, 28, 39),
    "rdfs9": (82, 418, 500), "rdfs11": (82, 418, 500),
}  # fmt: skip
#: Questions per task of the released files, as the paper asked them.
ASKED = {"TP": 500, "SCO": 500, "SPO": 39, "DM": 30, "RG": 28}
#: How the printed models were asked: ChatGPT wrote, BERT ranked the options in the manual prompt.
PRINTED_WAYS = {"gpt-3.5-turbo": "answer", "bert-base-uncased": "stem"}
READ = (
    "option", "letter", "label", "several", "contradiction", "none", "not offered", "scored",
)  # fmt: skip

TITLE = "OntoProbe: multiple choice"
LEAD = (
    "The questions of OntoProbe with their options, answered by a chat model in words or, by any "
    "other, with the option that it finds most likely (Wu et al. 2023, Tables 5 and 6). An answer "
    "that cannot be read is wrong, and counted apart."
)
SETTINGS = (
    "EX: the first premise is written; IM and NO: it is left out, and the model answers its own "
    "question rightly, or wrongly. Average: plain mean of the rules."
)
Cells = list[dict[str, object]]
#: (task or premise and rule) -> printed accuracy of one model.
Printed = Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Answered:
    """One model's answers to the questions of one benchmark."""

    label: str
    questions: pl.DataFrame
    chosen: pl.DataFrame
    #: the model's name in the paper, where it was asked the released questions; else ""
    published: str = ""
    #: rule -> question -> IM or NO, where the released split is asked for (`mc_split: shipped`)
    split: Mapping[str, Mapping[str, str]] | None = None

    def ways(self) -> list[str]:
        """The ways in which it answered, in alphabetical order."""
        return sorted(self.chosen["way"].unique())

    def printed(self, printed: Mapping[str, Printed], way: str) -> Printed:
        """The printed values that stand beside a way: same model, same questions, same way."""
        asked = self.questions.filter(pl.col("premise") == "").group_by("task").len()
        is_whole = dict(asked.rows()) == ASKED
        is_same = is_whole and PRINTED_WAYS.get(self.published) == way
        return printed.get(self.published, {}) if is_same else {}

    def hits(self, way: str) -> pl.DataFrame:
        """Questions of one way with `hit`; those that could not be asked are not among them."""
        own = self.chosen.filter(pl.col("way") == way).select("item", "chosen", "rule")
        joined: pl.DataFrame = self.questions.join(own, on="item", how="inner")
        return joined.with_columns(hit=pl.col("chosen").eq_missing(pl.col("gold")))


def memorising(answered: Sequence[Answered], printed: Mapping[str, Printed]) -> Cells:
    """`ontoprobe_table5`: row = model and way, column = task; `chance` is 1 / number of options."""
    cells: Cells = []
    for one in answered:
        for way in one.ways():
            known = one.printed(printed, way)
            hits = one.hits(way).filter(pl.col("premise") == "")
            for task in TASKS:
                part = hits.filter(pl.col("task") == task)
                if part.height:
                    row = f"{one.label} | {way}"
                    cells.append(_share("ontoprobe_table5", row, task, part, known.get((task,))))
                    chance = 100 * sum(1 / len(o) for o in part["options"]) / part.height
                    name = f"{row} | chance"
                    cells.append(_cell("ontoprobe_table5", name, task, chance, part))
    return cells


def premises(one: Answered, way: str) -> pl.DataFrame:
    """Reasoning questions with `setting`: EX, or IM / NO by the model's own memorising answer.

    EX: all rows, the first premise written. IM, NO: the premise left out, and the memorising
    question of the same row answered rightly, or wrongly, in the same way. With a shipped split the
    released files say which rows are IM and NO; rows that they do not have are left out.
    """
    hits = one.hits(way)
    if one.split is not None:
        return _shipped(hits.filter(pl.col("premise") != ""), one.split)
    known = hits.filter(pl.col("premise") == "").select(source="item", memorised="hit")
    asked = hits.filter(pl.col("premise") != "").join(known, on="source", how="left")
    setting = (
        pl.when(pl.col("premise") == "EX")
        .then(pl.lit("EX"))
        .when(pl.col("memorised"))
        .then(pl.lit("IM"))
        .when(~pl.col("memorised"))
        .then(pl.lit("NO"))
    )
    found: pl.DataFrame = asked.with_columns(setting=setting).drop_nulls("setting")
    return found


def shipped(folder: str | Path) -> dict[str, dict[str, str]]:
    """The released split: rule -> question without options -> IM or NO.

    `folder` holds rdfsN-12.jsonl (memorised, left out) and rdfsN-02.jsonl (not memorised). Raises
    FileNotFoundError naming a file that is missing.
    """
    found: dict[str, dict[str, str]] = {rule: {} for rule in RULES}
    for rule in RULES:
        for setting, code in (("IM", "12"), ("NO", "02")):
            path = Path(folder) / f"{rule}-{code}.jsonl"
            if not path.is_file():
                raise FileNotFoundError(
                    f"{path}: the released split is not there; set KGPROBE_DATA, or "
                    "ontoprobe.switches.mc_split: own"
                )
            for line in path.read_text(encoding="utf-8").splitlines():
                question = said(json.loads(line)["prompt"].split(" (a) ")[0])
                found[rule][question] = setting
    return found


def said(question: str) -> str:
    """A question without what the two wordings spell differently: articles, signs, spaces, case."""
    words = re.sub(r"\b(a|an)\b", "a", question.casefold())
    return " ".join(re.sub(r"[-()/.\s]+", " ", words).split())


def _shipped(asked: pl.DataFrame, split: Mapping[str, Mapping[str, str]]) -> pl.DataFrame:
    """`asked` with its setting; rdfs11 in its own wording takes rdfs9's (same P1)."""
    columns = ("task", "premise", "question", "source")
    settings, of_source = [], {}
    for task, premise, question, source in asked.select(columns).rows():
        found = "EX" if premise == "EX" else split.get(task, {}).get(said(question))
        settings.append(found)
        if task == "rdfs9" and premise != "EX":
            of_source[source] = found
    for number, (task, premise, _, source) in enumerate(asked.select(columns).rows()):
        if task == "rdfs11" and premise != "EX" and settings[number] is None:
            settings[number] = of_source.get(source)
    classed: pl.DataFrame = asked.with_columns(setting=pl.Series(settings, dtype=pl.String))
    return classed.drop_nulls("setting")


def reasoning(answered: Sequence[Answered], printed: Mapping[str, Printed]) -> Cells:
    """`ontoprobe_table6`: row = model and way, column = setting and rule; `average` is the plain
    mean of the rules that have questions in the setting, as are its bounds; its n counts their
    questions. Empty cells are left out.
    """
    cells: Cells = []
    for one in answered:
        for way in one.ways():
            known = one.printed(printed, way)
            rows, row = premises(one, way), f"{one.label} | {way}"
            for setting in PREMISES:
                shares, bounds, asked = [], [], 0
                for rule in RULES:
                    part = rows.filter((pl.col("setting") == setting) & (pl.col("task") == rule))
                    if part.height:
                        value = known.get((setting, rule))
                        column = f"{setting} {rule}"
                        cells.append(_share("ontoprobe_table6", row, column, part, value))
                        asked += part.height
                        shares.append(100 * float(part["hit"].mean()))  # type: ignore[arg-type]
                        bounds.append(_hundred(wilson(int(part["hit"].sum()), part.height)))
                if shares:
                    # the printed average is that of all six rules
                    is_whole = len(shares) == len(RULES)
                    printed_mean = known.get((setting, "average")) if is_whole else None
                    mean = sum(shares) / len(shares)
                    cells.append(
                        table.cell(
                            "ontoprobe_table6", row, f"{setting} average", mean, asked,
                            (sum(b[0] for b in bounds) / len(bounds),
                             sum(b[1] for b in bounds) / len(bounds)),
                            published=printed_mean, paper="ontoprobe",
                        )
                    )  # fmt: skip
    return cells


def readings(answered: Sequence[Answered]) -> Cells:
    """`ontoprobe_answers`: how the answers of each way were read, in per cent of the questions."""
    cells: Cells = []
    for one in answered:
        for way, part in one.chosen.sort("way").group_by("way", maintain_order=True):
            counts = dict(part["rule"].value_counts().rows())
            for rule in [r for r in READ if r in counts]:
                value = 100 * counts[rule] / part.height
                interval = _hundred(wilson(counts[rule], part.height))
                cells.append(
                    table.cell(
                        "ontoprobe_answers", f"{one.label} | {way[0]}", rule, value, part.height,
                        interval, paper="ontoprobe",
                    )
                )  # fmt: skip
    return cells


def fractions(printed: Printed) -> Cells:
    """`ontoprobe_table6_fractions`: printed cells that are no fraction of the released numbers.

    The value is the nearest fraction, n the number of released questions, published the printed.
    """
    cells: Cells = []
    for rule, sizes in RELEASED.items():
        for setting, n in zip(PREMISES, sizes, strict=True):
            value = printed.get((setting, rule))
            if value is None:
                continue
            nearest = 100 * round(value * n / 100) / n
            if round(nearest, 1) != value:
                cells.append(
                    table.cell(
                        "ontoprobe_table6_fractions", setting, rule, nearest, n, published=value,
                        paper="ontoprobe",
                    )
                )  # fmt: skip
    return cells


def printed_tables(memorised: pl.DataFrame, reasoned: pl.DataFrame) -> dict[str, Printed]:
    """Printed values by model: ontoprobe_choice.tsv and ontoprobe_reasoning.tsv (gpt-3.5-turbo)."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for task, model, value in memorised.select("task", "model", "accuracy").rows():
        found.setdefault(model, {})[(task,)] = float(value)
    for premise, rule, value in reasoned.select("premise", "rule", "accuracy").rows():
        found.setdefault("gpt-3.5-turbo", {})[(premise, rule)] = float(value)
    return dict(found)


def tables(answered: Sequence[Answered], printed: Mapping[str, Printed]) -> list[pl.DataFrame]:
    """Table 5, Table 6, how answers were read, the printed cells of Table 6 that cannot be."""
    made = [
        memorising(answered, printed),
        reasoning(answered, printed),
        readings(answered),
        fractions(printed["gpt-3.5-turbo"]),
    ]
    return [pl.DataFrame(cells, schema=dict(schema.TABLE.columns)) for cells in made]


def chapter(made: Sequence[pl.DataFrame]) -> Chapter:
    """The chapter of the report from what `tables` made."""
    five, six, read, impossible = made
    titles = {
        "Table 5: memorising, right answers in %": (
            five,
            "Chance: 1 / number of options. Printed values in brackets: the same model asked the "
            "released questions in the paper's way.",
        ),
        "Table 6: reasoning, right answers in %": (six, SETTINGS),
        "How answers were read, % of the questions": (read, ""),
        "Printed cells of Table 6 that are no fraction of the released numbers": (
            impossible,
            "The nearest fraction; n on hover.",
        ),
    }
    grids = [
        grid.pivot(
            frame,
            title,
            "model and way",
            {c: c for c in columns_of(frame)},
            caption=f"{told} {marks.FEW_NOTE}".strip(),
            shown=partial(grid.beside, few=True),
        )
        for title, (frame, told) in titles.items()
        if frame.height
    ]
    return Chapter("choices", TITLE, LEAD, grids=grids[:2], folded=grids[2:])


def answered(
    experiments: Sequence[Mapping[str, str]],
    models: Mapping[str, Mapping[str, str]],
    questions: Sequence[str],
    chosen: Sequence[str],
    split: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Answered]:
    """The answers of every row of the experiment sheet; `questions`, `chosen`: its files.

    `split`: the released one, for the released benchmark.
    """
    shown = marks.names(experiments, chosen)
    return [
        Answered(
            f"{shown[row['model']]} | {row['benchmark']}",
            schema.read(asked, schema.CHOICES),
            schema.read(own, schema.CHOSEN),
            printed_name(row, models[row["model"]]),
            split if row["benchmark"] == "onto_released" else None,
        )
        for row, asked, own in zip(experiments, questions, chosen, strict=True)
    ]


def printed_name(row: Mapping[str, str], model: Mapping[str, str]) -> str:
    """The paper's name of the model of a row that asks the released questions, "" for all others.

    Names of the hub and of servers are the paper's; the column `published` of models.tsv is not
    read, since it names rows of BEAR's leaderboard, where bert-base-uncased has none.
    """
    if row["benchmark"] != "onto_released":
        return ""
    kind, _, place = model["source"].partition(":")
    return {"hub": row["model"], "api": place}.get(kind, "")


def read_printed(memorised: str | Path, reasoned: str | Path) -> dict[str, Printed]:
    """The printed values of the two files in resources/published."""
    return printed_tables(
        *(pl.read_csv(path, separator="\t", comment_prefix="#") for path in (memorised, reasoned))
    )


def _share(
    name: str, row: str, column: str, part: pl.DataFrame, published: float | None
) -> dict[str, object]:
    right = int(part["hit"].sum())
    interval = _hundred(wilson(right, part.height))
    return table.cell(
        name, row, column, 100 * right / part.height, part.height, interval, published, "ontoprobe"
    )


def _cell(name: str, row: str, column: str, value: float, part: pl.DataFrame) -> dict[str, object]:
    return table.cell(name, row, column, value, part.height, paper="ontoprobe")


def _hundred(interval: tuple[float, float]) -> tuple[float, float]:
    return 100 * interval[0], 100 * interval[1]
