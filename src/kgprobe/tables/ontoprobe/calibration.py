"""Validity of OntoProbe's probes: trained-on and held-out statements, and what makes these right.

A control model is trained on the finest class of each subject, in every template
(tools/controls/split.py), so a held-out subject can be right without being known: its name may
give the class away, the same class was trained on of others, or it is the class that most answers
share.
"""

import re
from collections.abc import Iterator

import polars as pl

from kgprobe.metrics.ranking import auc
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.ontoprobe.memorizing import Answers, Sets
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, proportion

#: tasks whose statements the control models are trained on
TASKS = ("TP", "SCO")
WORLD = "onto_world"
#: why a held-out statement may be right
REASONS = (
    "a gold shares a word with the subject",
    "a gold was trained on of another subject",
    "... whose name shares a word with this one",
    "a gold is the answer trained on most often",
)
ANY = "any of these"


def find_trained_on(
    probe: Probe, rows: pl.DataFrame, facts: pl.DataFrame | None
) -> dict[str, bool]:
    """item -> whether its statement was trained on (`facts`: TRAINED_ON, "task/subject"), of rows
    (item, task, label) for which TRAINED_ON says so."""
    if facts is None or not probe.benchmark.startswith(WORLD):
        return {}
    known = facts.select("trained_on", task="relation", label="subject")
    known = known.filter(pl.col("task").is_in(TASKS)).unique(["task", "label"], keep="last")
    return dict(rows.join(known, on=["task", "label"]).select("item", "trained_on").rows())


def check_validity(answers: Answers, sets: Sets, facts: pl.DataFrame) -> Iterator[Number]:
    """Trained-on and held-out halves of each probe of the embedded world and task, in the
    configuration laid down beforehand: R@1 in per cent, AUC by MRR, and MRR beside them; of control
    models above the limit `explain_held_out`. A control probe that fails on one task stands as
    failed on all; real models were trained on neither half and are a reference."""
    for probe, values in answers.items():
        rows, verdicts = per_item.in_fixed(values.filter(role="test")), []
        trained_on = find_trained_on(probe, rows, facts)
        splits = pl.Series([trained_on.get(item) for item in rows["item"]], dtype=pl.Boolean)
        rows = rows.with_columns(trained_on=splits)
        for task in TASKS:
            yes, no = (rows.filter(task=task, trained_on=split) for split in (True, False))
            if not (yes.height and no.height):
                continue
            of = Number(**probe.dimensions, group=task)
            no = with_golds(no, *sets[probe.benchmark])
            one, other = (validity.share(split["R@1"].to_numpy() / 100) for split in (yes, no))
            # a random candidate is one of the golds
            chance = 100 * float((no["golds"] / no["options"]).to_numpy().mean())
            mrr = [split["MRR"].to_numpy() for split in (yes, no)]
            for name, each in zip(("trained-on", "held-out"), mrr, strict=True):
                yield of.but(metric="MRR", slice=name, n=len(each), value=float(each.mean()))
            numbers = validity.numbers(of, one, other, chance, auc(*mrr), probe.control)
            yield from numbers
            by = {x.metric: x.value or 0.0 for x in numbers}
            if probe.control:
                verdicts.append(by["valid"])
                if by["held-out"] > by["limit for held-out"]:
                    yield from explain_held_out(of, no, facts.filter(relation=task))
        if verdicts:
            yield Number(**probe.dimensions, metric="valid", n=len(verdicts), value=min(verdicts))


def with_golds(rows: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Rows with `subject`, `named` (labels of their golds) and `options` (size of their set)."""
    sized = candidates.with_columns(options=pl.len().over("set"))
    sized = sized.select("label", "options", candidates="set", answers="index")
    ids = items.join(rows, on="item", how="semi").select("item", "subject", "candidates", "answers")
    named = ids.explode("answers").join(
        sized, on=["candidates", "answers"], how="left", maintain_order="left"
    )
    known = named.group_by("item").agg(pl.col("subject", "options").first(), named="label")
    return rows.join(known, on="item", how="left", maintain_order="left")


def explain_held_out(base: Number, rows: pl.DataFrame, facts: pl.DataFrame) -> Iterator[Number]:
    """REASONS as shares, in per cent, of the held-out statements that are right and of those that
    are not; `facts`: TRAINED_ON of their task."""
    answers: dict[str, str] = dict(facts.filter("trained_on").select("subject", "object").rows())
    others: dict[str, list[str]] = {}
    for subject, answer in answers.items():
        others.setdefault(answer, []).append(subject)
    most = max(map(len, others.values()), default=0)
    commonest = {answer for answer, subjects in others.items() if len(subjects) == most}
    held: list[dict[str, bool]] = []
    for label, subject, golds in rows.select("label", "subject", "named").rows():
        siblings = [s for gold in golds for s in others.get(gold, ())]
        names = words(subject) | words(label)
        flags = (
            any(words(gold) & names for gold in golds),
            bool(siblings),
            any(words(sibling) & names for sibling in siblings),
            bool(commonest & set(golds)),
        )
        held.append(dict(zip((*REASONS, ANY), (*flags, any(flags)), strict=True)))
    reasons = pl.DataFrame(held)
    # half a hit is a tie for the first place
    is_right = rows["R@1"] >= 50.0
    for split, mask in (("right", is_right), ("wrong", ~is_right)):
        subset = reasons.filter(mask)
        for reason in reasons.columns if subset.height else ():
            number = base.but(metric=reason, slice=f"held-out, {split}")
            yield number.but(**proportion(int(subset[reason].sum()), subset.height))


def words(text: str) -> set[str]:
    """The words of a name, without case and without a plural's s.

    >>> sorted(words("Rugby clubs (women)"))
    ['club', 'rugby', 'women']
    """
    raw = re.findall(r"\w+", text.casefold())
    return {w.removesuffix("s") if len(w) > 3 else w for w in raw}
