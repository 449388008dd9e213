"""OntoProbe's Tables 5 and 6: multiple choice, memorizing and reasoning, with the printed values.

Source: Wu et al. 2023, Tables 5 and 6; docs/papers/ontoprobe.md, Multiple choice. Accuracies in per
cent with Wilson's interval, their mean over rules with that of questions resampled within each
rule; an answer that cannot be parsed is wrong, and counted separately.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from kgprobe.experiments import json_rows
from kgprobe.tables.answers import Probe
from kgprobe.tables.estimate import estimate
from kgprobe.tables.judged import ANY
from kgprobe.tables.ontoprobe.memorizing import as_published
from kgprobe.tables.ontoprobe.reasoning import RULES
from kgprobe.tables.results import Number, hit_rate, proportion

#: the first premise: left out and not memorized, left out and memorized, written
PREMISES = ("NO", "IM", "EX")
#: Questions per rule of the released files, by PREMISES.
RELEASED = {
    "rdfs2": (4, 26, 30), "rdfs3": (6, 22, 28), "rdfs5": (11, 28, 39), "rdfs7": (11, 28, 39),
    "rdfs9": (82, 418, 500), "rdfs11": (82, 418, 500),
}  # fmt: skip
#: Questions per task of the released files, as the paper asked them.
TASK_SIZES = {"TP": 500, "SCO": 500, "SPO": 39, "DM": 30, "RG": 28}
CHATGPT = "gpt-3.5-turbo"
#: Scoring modes of the printed models: ChatGPT generated, BERT ranked options in the manual prompt.
PRINTED_MODES = {CHATGPT: "answer", "bert-base-uncased": "stem"}
#: how an answer was parsed
READ = (
    "option", "letter", "label", "several", "contradiction", "none", "not offered", "scored",
)  # fmt: skip
#: rule -> question -> IM or NO, as split in the released files
Split = Mapping[str, Mapping[str, str | None]]


def score_choices(
    probe: Probe,
    questions: pl.DataFrame,
    picked: pl.DataFrame,
    given: Mapping[str, pl.DataFrame],
    split: Split | None = None,
    seed: int = 0,
) -> Iterator[Number]:
    """Yield one model's numbers by scoring mode. `questions`: CHOICES, `picked`: CHOSEN, `given`:
    the printed tables; `split`: the released one (`mc_split: shipped`), for its benchmark."""
    sizes = questions.filter(premise="").group_by("task").len()
    # names on the hub and on servers are the paper's; those of BEAR's leaderboard are not used
    kind, _, index = probe.source.partition(":")
    name = {"hub": probe.model, "api": index}.get(kind, "")
    is_paper = probe.benchmark == "onto_released" and dict(sizes.rows()) == TASK_SIZES
    split = split if probe.benchmark == "onto_released" else None
    for (scoring,), subset in picked.sort("scoring").group_by("scoring", maintain_order=True):
        base = Number(**probe.dimensions, setting={"scoring": scoring})
        is_same = is_paper and PRINTED_MODES.get(name) == scoring
        rows = hits(questions, subset)
        five = given["choice"].filter(model=name if is_same else "")
        known = dict(five.select("task", "accuracy").rows())
        for (task,), group in rows.filter(premise="").group_by("task", maintain_order=True):
            of, theirs = base.but(group=task), as_published(known.get(str(task)), "Table 5")
            yield of.but(metric="accuracy", **theirs, **hit_rate(group["hit"].to_numpy()))
            # 1 / number of options
            chance = 100 * sum(1 / len(o) for o in group["options"]) / group.height
            yield of.but(metric="chance", n=group.height, value=chance)
        six = _read_table6(given["reasoning"].filter(pl.lit(is_same and name == CHATGPT)))
        yield from _table6(base, premises(rows, split), six, seed)
        for rule in READ:
            if n := rows.filter(rule=rule).height:
                yield base.but(metric="answers", slice=rule, **proportion(n, rows.height))


def hits(questions: pl.DataFrame, picked: pl.DataFrame) -> pl.DataFrame:
    """Join questions of one scoring mode with `hit`, dropping those that could not be asked."""
    joined = questions.join(picked, on="item")
    return joined.with_columns(hit=pl.col("chosen").eq_missing(pl.col("gold")).cast(pl.Float64))


def judge(questions: pl.DataFrame, picked: pl.DataFrame) -> pl.DataFrame:
    """Convert CHOICES and CHOSEN to JUDGED; an answer that cannot be parsed is kept verbatim."""
    return hits(questions, picked).select(
        "item", "scoring", "premise", "margin", "hit",
        group="task", relation="task", subject="source", matching=pl.lit(ANY),
        options=pl.col("options").list.len(),
        answer=pl.coalesce(pl.col("options").list.get(pl.col("chosen")), "text"),
    )  # fmt: skip


def _table6(
    base: Number, rows: pl.DataFrame, known: Mapping[tuple[str, str], float], seed: int
) -> Iterator[Number]:
    """Yield accuracy by rule, and the unweighted mean over asked rules."""
    for premise in PREMISES:
        cell = base.but(metric="accuracy", setting={"premise": premise})
        part = rows.filter(pl.col("task").is_in(RULES), setting=premise).sort("item")
        rules = [rule for rule in RULES if rule in part["task"]]
        for rule in rules:
            theirs = as_published(known.get((premise, rule)), "Table 6")
            hits_of = part.filter(task=rule)["hit"].to_numpy()
            yield cell.but(group=rule, **theirs, **hit_rate(hits_of))
        if rules:
            # the printed average is over all six rules
            whole = len(rules) == len(RULES)
            theirs = as_published(known.get((premise, "average")) if whole else None, "Table 6")
            mean = estimate(part, "hit", stratum="task", is_macro=True, seed=seed)
            yield cell.but(**mean, **theirs)


def _read_table6(given: pl.DataFrame) -> dict[tuple[str, str], float]:
    """Return (premise, rule) -> the printed accuracy."""
    return {(p, r): v for p, r, v in given.select("premise", "rule", "accuracy").rows()}


def premises(rows: pl.DataFrame, split: Split | None = None) -> pl.DataFrame:
    """Add `setting` to reasoning questions: EX if the first premise is written; if it is left out,
    IM where the memorizing question of the same row was answered right in the same scoring mode, NO
    where wrong. A released split determines IM and NO; rows that it lacks are dropped."""
    questions = rows.filter(pl.col("premise") != "")
    if split is None:
        known = rows.filter(premise="").select(source="item", memorized="hit")
        questions = questions.join(known, on="source", how="left")
        memorized = pl.col("memorized").replace_strict({1.0: "IM", 0.0: "NO"}, default=None)
    else:
        texts = questions.select("task", "question").rows()
        splits = [split.get(task, {}).get(normalize_question(text)) for task, text in texts]
        questions = questions.with_columns(memorized=pl.Series(splits, dtype=pl.String))
        # rdfs11 questions in another form use the split of rdfs9 (same P1)
        nine = questions.filter(pl.col("premise") != "EX", task="rdfs9")
        nine = nine.unique("source", keep="last")
        nine = nine.select("source", task=pl.lit("rdfs11"), nine="memorized")
        questions = questions.join(nine, ["source", "task"], how="left", maintain_order="left")
        memorized = pl.coalesce("memorized", "nine")
    setting = pl.when(premise="EX").then(pl.lit("EX")).otherwise(memorized)
    return questions.with_columns(setting=setting).drop_nulls("setting")


def shipped(folder: str | Path) -> Split:
    """Read the released split; `folder` contains rdfsN-12.jsonl (memorized, left out) and
    rdfsN-02.jsonl (not memorized)."""
    split: dict[str, dict[str, str | None]] = {rule: {} for rule in RULES}
    for rule in RULES:
        for setting, code in (("IM", "12"), ("NO", "02")):
            path = Path(folder) / f"{rule}-{code}.jsonl"
            if not path.is_file():
                raise FileNotFoundError(
                    f"{path}: the released split is not there; set KGPROBE_DATA, or "
                    "ontoprobe.switches.mc_split: own"
                )
            for _, row in json_rows(path, ValueError):
                question = normalize_question(row["prompt"].partition(" (a) ")[0])
                split[rule][question] = setting
    return split


def normalize_question(question: str) -> str:
    """Remove the differences of two forms of a question: articles, punctuation, spaces, case."""
    words = re.sub(r"\b(a|an)\b", "a", question.casefold())
    return " ".join(re.sub(r"[-()/.\s]+", " ", words).split())


def fractions(given: pl.DataFrame) -> Iterator[Number]:
    """Yield printed cells of Table 6 that are not a fraction of the released numbers of questions:
    the value is the nearest fraction, n the number of released questions."""
    known = _read_table6(given)
    for rule, sizes in RELEASED.items():
        for premise, n in zip(PREMISES, sizes, strict=True):
            value = known.get((premise, rule))
            nearest = 100 * round((value or 0.0) * n / 100) / n
            if value is not None and round(nearest, 1) != value:
                base = Number(metric="nearest fraction", n=n, value=nearest, group=rule)
                base = base.but(benchmark="onto_released", model=CHATGPT, method="published")
                yield base.but(setting={"premise": premise}, **as_published(value, "Table 6"))
