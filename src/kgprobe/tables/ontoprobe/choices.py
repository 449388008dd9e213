"""OntoProbe's Tables 5 and 6: multiple choice, memorizing and reasoning, beside the printed values.

Source: Wu et al. 2023, Tables 5 and 6; docs/papers/ontoprobe.md, Multiple choice. Accuracies in per
cent with Wilson's interval; an answer that cannot be read is wrong, and counted apart.

Ways that score options have other aggregations beside their own (`aggregate`). What an option is,
and so what its prior is, depends on the way: of `letter` it is the place, so that the prior is what
a model gives that letter whatever the question of the task; of `text` and `stem` it is the label,
so that the prior is what the model gives it in the other questions of the task that offer it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from kgprobe.benchmarks.ontoprobe.choices import NEARER
from kgprobe.metrics.intervals import Interval
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS
from kgprobe.sheets import json_rows
from kgprobe.tables import aggregations
from kgprobe.tables.answers import PRIOR, Probe
from kgprobe.tables.answers import judge as judge_answers
from kgprobe.tables.estimate import estimate
from kgprobe.tables.judged import ANY
from kgprobe.tables.ontoprobe.memorizing import as_published
from kgprobe.tables.ontoprobe.reasoning import RULES
from kgprobe.tables.results import Number, proportion
from kgprobe.tables.study import Study

#: what becomes of the first premise: left out and not memorized, left out and memorized, written
PREMISES = ("NO", "IM", "EX")
#: Questions per rule of the released files, by PREMISES.
RELEASED = {
    "rdfs2": (4, 26, 30), "rdfs3": (6, 22, 28), "rdfs5": (11, 28, 39), "rdfs7": (11, 28, 39),
    "rdfs9": (82, 418, 500), "rdfs11": (82, 418, 500),
}  # fmt: skip
#: Questions per task of the released files, as the paper asked them.
TASK_SIZES = {"TP": 500, "SCO": 500, "SPO": 39, "DM": 30, "RG": 28}
CHATGPT = "gpt-3.5-turbo"
#: How the printed models were asked: ChatGPT wrote, BERT ranked the options in the manual prompt.
PRINTED_WAYS = {CHATGPT: "answer", "bert-base-uncased": "stem"}
#: how an answer was read
READ = (
    "option", "letter", "label", "several", "contradiction", "none", "not offered", "scored",
)  # fmt: skip
#: options that the paper draws, among all candidates
PAPERS = "all classes"
#: the own aggregation of ways that score options, and those beside it; letters are of one length
DEFAULT = "mean"
REDUCED = {
    "letter": (PRIOR,),
    "text": ("sum", "byte_mean", PRIOR),
    "stem": ("sum", "byte_mean", PRIOR),
}
#: rule -> question -> IM or NO, as the released files part the questions
Split = Mapping[str, Mapping[str, str | None]]


def score_choices(
    probe: Probe,
    questions: pl.DataFrame,
    picked: pl.DataFrame,
    given: Mapping[str, pl.DataFrame],
    split: Split | None = None,
) -> Iterator[Number]:
    """One model's numbers by the way of answering. `questions`: CHOICES, `picked`: CHOSEN, `given`:
    the printed tables; `split`: the released one (`mc_split: shipped`), for its benchmark."""
    plain = questions.filter(options_of="")
    sizes = plain.filter(premise="").group_by("task").len()
    # names of the hub and of servers are the paper's; those of BEAR's leaderboard are not asked
    kind, _, index = probe.source.partition(":")
    name = {"hub": probe.model, "api": index}.get(kind, "")
    is_paper = probe.benchmark == "onto_released" and dict(sizes.rows()) == TASK_SIZES
    split = split if probe.benchmark == "onto_released" else None
    for (way,), subset in picked.sort("way").group_by("way", maintain_order=True):
        base = Number(**probe.dimensions, setting={"way": way})
        is_same = is_paper and PRINTED_WAYS.get(name) == way
        every = hits(questions, subset)
        rows = every.filter(options_of="")
        five = given["choice"].filter(model=name if is_same else "")
        known = dict(five.select("task", "accuracy").rows())
        for (task,), group in rows.filter(premise="").group_by("task", maintain_order=True):
            of, theirs = base.but(group=task), as_published(known.get(str(task)), "Table 5")
            yield of.but(metric="accuracy", **theirs, **_rate(group))
            # 1 / number of options
            chance = 100 * sum(1 / len(o) for o in group["options"]) / group.height
            yield of.but(metric="chance", n=group.height, value=chance)
        six = _read_table6(given["reasoning"].filter(pl.lit(is_same and name == CHATGPT)))
        yield from _table6(base, premises(rows, split), six)
        for rule in READ:
            if n := rows.filter(rule=rule).height:
                yield base.but(metric="answers", slice=rule, **proportion(n, rows.height))
        yield from nearer(base, every)


def aggregate(
    probe: Probe,
    questions: pl.DataFrame,
    scores: pl.DataFrame,
    seed: int,
    facts: Mapping[str, bool] = MappingProxyType({}),
) -> Iterator[Number]:
    """One model's options under other aggregations: of each task, and of each rule with its first
    premise written (Table 6 parts those without it by what the way itself chose). `questions`:
    CHOICES, of which the paper's are read; `scores`: OPTION_SCORES; `facts`: whether a memorizing
    question is a training fact, where known. Ties share a hit, which in Table 5 the first has."""
    subjects = questions.filter(premise="").select(source="item", subject_id="question")
    plain = questions.filter(pl.col("premise").is_in(["", PREMISES[2]]), options_of="").sort("item")
    plain = plain.join(subjects, on="source", how="left", maintain_order="left")
    plain = plain.with_columns(pl.coalesce("subject_id", "question"))
    for way in REDUCED:
        rows = scores.filter(way=way).select(
            "item", "sum", "count", template=pl.lit(0, dtype=pl.Int32), candidate="option",
            answer_sum="sum", answer_count="count", continuation_sum=pl.lit(None, dtype=pl.Float64),
        )  # fmt: skip
        answered = plain.join(rows, on="item", how="semi", maintain_order="left")
        for (_, premise), group in answered.group_by("task", "premise", maintain_order=True):
            asks = _as_items(group, way, seed)
            subset = rows.join(group.select("item"), on="item", how="semi")
            where = f"{probe.model}, {probe.benchmark}, way {way}"
            first = judge_answers(subset, asks.items, asks.candidates, DEFAULT, where)
            if not premise:
                named = group.select("item", "source").rows()
                asks = replace(asks, trained_on={i: facts[s] for i, s in named if s in facts})
            judged = aggregations.readings(first, subset, asks)
            setting = {"way": way, **({"premise": str(premise)} if premise else {})}
            for number in aggregations.numbers(asks, [(probe, judged)]):
                # of the questions alone: their labels are counted where all candidates are ranked
                if number.model:
                    yield number.but(setting=setting)


def _as_items(questions: pl.DataFrame, way: str, seed: int) -> Study:
    """CHOICES of one task as ITEMS, each with its `subject_id`; an item's options are its letters,
    which it shares with all that have as many, or its labels."""
    by_label, task = way != "letter", str(questions["task"][0])
    letters = pl.format("{} letters", pl.col("options").list.len())
    named = questions.with_columns(candidates=pl.col("item") if by_label else letters)
    items = named.select(
        "item", "subject_id", "candidates", "row", relation="task", answers=pl.concat_list("gold"),
        role=pl.lit("test"), meta=pl.lit("{}"),
        **{column: pl.lit("") for column in ("group", "subject")},
    ).select(list(ITEMS.columns))  # fmt: skip
    options = [
        (name, index, "", label if by_label else f"{name}: {index}")
        for name, labels in dict(named.select("candidates", "options").rows()).items()
        for index, label in enumerate(labels)
    ]
    candidates = pl.DataFrame(options, schema=dict(CANDIDATES.columns), orient="row")
    # bytes, as tokens, are the option's
    text = [("0", task, 0, "[X][Y]", "")]
    prompts = pl.DataFrame(text, schema=dict(PROMPTS.columns), orient="row")
    return Study(
        items, candidates, prompts, seed, aggregation=DEFAULT, group=task, others=REDUCED[way]
    )


def hits(questions: pl.DataFrame, picked: pl.DataFrame) -> pl.DataFrame:
    """Questions of one way with `hit`; those that could not be asked are not among them."""
    joined = questions.join(picked, on="item")
    return joined.with_columns(hit=pl.col("chosen").eq_missing(pl.col("gold")).cast(pl.Float64))


def judge(questions: pl.DataFrame, picked: pl.DataFrame) -> pl.DataFrame:
    """What JUDGED has of CHOICES and CHOSEN; an answer that cannot be read stands as written."""
    return hits(questions, picked).select(
        "item", "way", "premise", "margin", "hit",
        group="task", relation="task", subject="source", matching=pl.lit(ANY),
        options=pl.col("options").list.len(),
        answer=pl.coalesce(pl.col("options").list.get(pl.col("chosen")), "text"),
    )  # fmt: skip


def nearer(base: Number, rows: pl.DataFrame) -> Iterator[Number]:
    """Questions with siblings as options and with NONE, beside the same ones with the paper's; of
    one way, by the depth of the class. None of these is missed where it is right and another option
    is chosen, or none can be read, and wrongly chosen beside the gold."""
    more = rows.filter(pl.col("options_of") != "")
    plain = rows.filter(premise="", options_of="").join(more, left_on="item", right_on="source",
                                                        how="semi")  # fmt: skip
    last = pl.col("chosen").eq_missing(pl.col("options").list.len() - 1)
    both = pl.concat([plain, more]).with_columns(last=last.cast(pl.Float64), miss=1 - pl.col("hit"))
    more_of = {NEARER[1]: {"none of these, wrongly": "last"},
               NEARER[2]: {"none of these missed": "miss"}}  # fmt: skip
    depth = pl.format("depth {}", "depth")
    groups = pl.concat([both.with_columns(slice=name) for name in (pl.lit(""), depth)])
    for (task, name), subset in groups.group_by("task", "slice", maintain_order=True):
        of = base.but(group=task, slice=name)
        for (options,), group in subset.group_by("options_of", maintain_order=True):
            number = of.but(setting={"form": options or PAPERS})
            metrics = {"right by options": "hit", **more_of.get(str(options), {})}
            for metric, column in metrics.items():
                yield number.but(metric=metric, **_rate(group, column))
        near = subset.filter(options_of=NEARER[0]).select("source", near="hit")
        pair = (
            subset.filter(options_of="").join(near, left_on="item", right_on="source").sort("item")
        )
        if pair.height:
            difference = of.but(metric="siblings less the paper's")
            yield difference.but(**estimate(pair, "near", less="hit"))


def _rate(rows: pl.DataFrame, column: str = "hit") -> dict[str, Any]:
    return proportion(float(rows[column].sum()), rows.height)


def _table6(
    base: Number, rows: pl.DataFrame, known: Mapping[tuple[str, str], float]
) -> Iterator[Number]:
    """Accuracy by rule, and the plain mean of the rules that have questions, as are its bounds."""
    for premise in PREMISES:
        cell = base.but(metric="accuracy", setting={"premise": premise})
        numbers = [
            cell.but(
                group=rule,
                **as_published(known.get((premise, rule)), "Table 6"),
                **_rate(subset),
            )
            for rule in RULES
            if (subset := rows.filter(setting=premise, task=rule)).height
        ]
        yield from numbers
        if numbers:
            # the printed average is that of all six rules
            whole = len(numbers) == len(RULES)
            theirs = as_published(known.get((premise, "average")) if whole else None, "Table 6")
            value = sum(x.value or 0.0 for x in numbers) / len(numbers)
            low, high = np.mean([x.interval[:2] for x in numbers if x.interval], axis=0).tolist()
            interval = Interval(low, high, "mean of wilson")
            yield cell.but(n=sum(x.n for x in numbers), value=value, interval=interval, **theirs)


def _read_table6(given: pl.DataFrame) -> dict[tuple[str, str], float]:
    """(premise, rule) -> the printed accuracy."""
    return {(p, r): v for p, r, v in given.select("premise", "rule", "accuracy").rows()}


def premises(rows: pl.DataFrame, split: Split | None = None) -> pl.DataFrame:
    """Reasoning questions with `setting`: EX, the first premise written; or, left out, IM where the
    memorizing question of the same row was answered rightly in the same way, NO where wrongly. A
    released split says which rows are IM and NO; rows that it does not have are left out."""
    questions = rows.filter(pl.col("premise") != "")
    if split is None:
        known = rows.filter(premise="").select(source="item", memorized="hit")
        questions = questions.join(known, on="source", how="left")
        memorized = pl.col("memorized").replace_strict({1.0: "IM", 0.0: "NO"}, default=None)
    else:
        texts = questions.select("task", "question").rows()
        splits = [split.get(task, {}).get(normalize_question(text)) for task, text in texts]
        questions = questions.with_columns(memorized=pl.Series(splits, dtype=pl.String))
        # rdfs11 in another form takes rdfs9's (same P1)
        nine = questions.filter(pl.col("premise") != "EX", task="rdfs9")
        nine = nine.unique("source", keep="last")
        nine = nine.select("source", task=pl.lit("rdfs11"), nine="memorized")
        questions = questions.join(nine, ["source", "task"], how="left", maintain_order="left")
        memorized = pl.coalesce("memorized", "nine")
    setting = pl.when(premise="EX").then(pl.lit("EX")).otherwise(memorized)
    return questions.with_columns(setting=setting).drop_nulls("setting")


def shipped(folder: str | Path) -> Split:
    """The released split; `folder` holds rdfsN-12.jsonl (memorized, left out) and rdfsN-02.jsonl
    (not memorized)."""
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
    """A question without the differences of the two forms: articles, signs, spaces, case."""
    words = re.sub(r"\b(a|an)\b", "a", question.casefold())
    return " ".join(re.sub(r"[-()/.\s]+", " ", words).split())


def fractions(given: pl.DataFrame) -> Iterator[Number]:
    """Printed cells of Table 6 that are no fraction of the released numbers of questions: the value
    is the nearest fraction, n the number of released questions."""
    known = _read_table6(given)
    for rule, sizes in RELEASED.items():
        for premise, n in zip(PREMISES, sizes, strict=True):
            value = known.get((premise, rule))
            nearest = 100 * round((value or 0.0) * n / 100) / n
            if value is not None and round(nearest, 1) != value:
                base = Number(metric="nearest fraction", n=n, value=nearest, group=rule)
                base = base.but(benchmark="onto_released", model=CHATGPT, method="published")
                yield base.but(setting={"premise": premise}, **as_published(value, "Table 6"))
