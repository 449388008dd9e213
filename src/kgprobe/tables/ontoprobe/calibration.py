"""Validity of OntoProbe's probes: trained-on and held-out statements, and why the latter are right.

A control model is trained on the most specific class of each subject, in every template
(tools/controls/split.py), so a held-out subject can be right without being known: its name may
reveal the class, the class may have been trained on for other subjects, or it is the most frequent
class.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.ranking import auc
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.ontoprobe.memorizing import Answers, Sets
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, hit_rate, proportion

#: tasks whose statements the control models are trained on
TASKS = ("TP", "SCO")
WORLD = "onto_world"
#: reasons why a held-out statement may be right
REASONS = (
    "a gold answer shares a word with the subject",
    "a gold answer was trained on with another subject",
    "... whose name shares a word with this subject",
    "a gold answer is the one trained on most often",
)
ANY = "any of these"
#: reasons for which a name alone reveals the class
SHARED = (REASONS[0], REASONS[2])


def find_trained_on(
    probe: Probe, rows: pl.DataFrame, facts: pl.DataFrame | None
) -> dict[str, bool]:
    """Return item -> whether its statement was trained on (`facts`: TRAINED_ON, "task/subject"),
    for the rows (item, task, label) that TRAINED_ON covers."""
    if facts is None or not probe.benchmark.startswith(WORLD):
        return {}
    known = facts.select("trained_on", task="relation", label="subject")
    known = known.filter(pl.col("task").is_in(TASKS)).unique(["task", "label"], keep="last")
    return dict(rows.join(known, on=["task", "label"]).select("item", "trained_on").rows())


def check_validity(answers: Answers, sets: Sets, facts: pl.DataFrame) -> Iterator[Number]:
    """Yield the validity of each probe of the embedded graph by task, in the fixed configuration:
    R@1 in per cent of trained-on and held-out statements, AUC by MRR, and MRR. Chance is a random
    candidate, or the one trained on most often.

    Held-out statements whose names reveal the class are a separate stratum (slice validity.WORDS).
    For control models above the limit, REASONS are counted. A control probe that fails on one task
    is counted as failed on all; real models were trained on neither and are a reference.
    """
    for probe, values in answers.items():
        rows, verdicts = per_item.in_fixed(values.filter(role="test")), []
        rows = rows.with_columns(trained_on=_status(find_trained_on(probe, rows, facts)))
        for task in TASKS:
            yes, held_out = (rows.filter(task=task, trained_on=split) for split in (True, False))
            held_out = with_golds(held_out, *sets[probe.benchmark])
            reasons = find_reasons(held_out, facts.filter(relation=task))
            shares_words = reasons.select(pl.any_horizontal(SHARED)).to_series()
            no, others = held_out.filter(~shares_words), held_out.filter(shares_words)
            if not (yes.height and no.height):
                continue
            of = Number(**probe.dimensions, group=task)
            one, other = (hit_rate(split["R@1"].to_numpy() / 100) for split in (yes, no))
            frequent = _most_frequent(facts.filter("trained_on", relation=task))
            often = [len(frequent & set(golds)) / len(frequent) for golds in no["named"]]
            chance = 100 * max((no["golds"] / no["options"]).to_numpy().mean(), np.mean(often))
            mrr = [split["MRR"].to_numpy() for split in (yes, no)]
            for name, each in zip(("trained-on", "held-out"), mrr, strict=True):
                yield of.but(metric="MRR", slice=name, n=len(each), value=float(each.mean()))
            numbers = validity.estimates(of, one, other, chance, auc(*mrr), probe.control)
            yield from numbers
            if others.height:
                rate = hit_rate(others["R@1"].to_numpy() / 100)
                yield of.but(metric="held-out", slice=validity.WORDS, **rate)
            by = {x.metric: x.value or 0.0 for x in numbers}
            if probe.control:
                verdicts.append(by["valid"])
                if by["held-out"] > by["limit for held-out"]:
                    yield from _count_reasons(of, held_out, reasons)
        if verdicts:
            yield Number(**probe.dimensions, metric="valid", n=len(verdicts), value=min(verdicts))


def check_choices(
    probe: Probe, rows: pl.DataFrame, items: pl.DataFrame, facts: pl.DataFrame
) -> Iterator[Number]:
    """Yield the same for multiple choice, by scoring and task: per cent of the questions on
    trained-on and held-out statements whose right option was chosen; chance is a random option, or
    the one trained on most often. `rows`: CHOICES with `scoring` and `hit`."""
    labels = per_item.of_items(items).select("item", "label")
    known = rows.filter(pl.col("task").is_in(TASKS)).join(labels, on="item")
    known = known.join(items.select("item", "subject"), on="item").with_columns(
        trained_on=_status(find_trained_on(probe, known, facts)),
        named=pl.concat_list(pl.col("options").list.get(pl.col("gold"))),
    )
    for scoring, task in known.select("scoring", "task").unique().sort("scoring", "task").rows():
        subset = known.filter(scoring=scoring, task=task)
        yes, held_out = (subset.filter(trained_on=split) for split in (True, False))
        reasons = find_reasons(held_out, facts.filter(relation=task))
        no = held_out.filter(~reasons.select(pl.any_horizontal(SHARED)).to_series())
        if yes.height and no.height:
            of = Number(**probe.dimensions, group=task, setting={"scoring": scoring})
            chance = max(hit_rate(rates)["value"] for rates in _guesses(no, facts, task))
            one, other = (hit_rate(split["hit"].to_numpy()) for split in (yes, no))
            yield from validity.estimates(of, one, other, chance, is_control=probe.control)


def _status(trained_on: Mapping[str, bool]) -> pl.Expr:
    return pl.col("item").replace_strict(trained_on, default=None, return_dtype=pl.Boolean)


def _guesses(
    rows: pl.DataFrame, facts: pl.DataFrame, task: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return hit rates per question of a random option, and of the one trained on most often."""
    answers = Counter(facts.filter("trained_on", relation=task)["object"])
    often = []
    for options, gold in rows.select("options", "gold").rows():
        most = max(answers[option] for option in options)
        best = [i for i, option in enumerate(options) if answers[option] == most]
        often.append((gold in best) / len(best))
    return 1 / rows["options"].list.len().to_numpy(), np.array(often)


def with_golds(rows: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Add `subject`, `named` (labels of their golds) and `options` (size of their set) to rows."""
    sized = candidates.with_columns(options=pl.len().over("set"))
    sized = sized.select("label", "options", candidates="set", answers="index")
    ids = items.join(rows, on="item", how="semi").select("item", "subject", "candidates", "answers")
    named = ids.explode("answers").join(
        sized, on=["candidates", "answers"], how="left", maintain_order="left"
    )
    known = named.group_by("item").agg(pl.col("subject", "options").first(), named="label")
    return rows.join(known, on="item", how="left", maintain_order="left")


def find_reasons(rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Return which of REASONS apply to each held-out statement (a column each, and ANY); `facts`:
    TRAINED_ON of their task."""
    answers: dict[str, str] = dict(facts.filter("trained_on").select("subject", "object").rows())
    others: dict[str, list[str]] = {}
    for subject, answer in answers.items():
        others.setdefault(answer, []).append(subject)
    commonest = _most_frequent(facts.filter("trained_on"))
    held: list[tuple[bool, ...]] = []
    for label, subject, golds in rows.select("label", "subject", "named").rows():
        siblings = [s for gold in golds for s in others.get(gold, ())]
        names = words(subject) | words(label)
        flags = (
            any(words(gold) & names for gold in golds),
            bool(siblings),
            any(words(sibling) & names for sibling in siblings),
            bool(commonest & set(golds)),
        )
        held.append((*flags, any(flags)))
    return pl.DataFrame(held, schema=dict.fromkeys((*REASONS, ANY), pl.Boolean), orient="row")


def _most_frequent(facts: pl.DataFrame) -> set[str]:
    """Return the answers, one or several, that most of the facts have."""
    return set(facts["object"].mode())


def _count_reasons(of: Number, rows: pl.DataFrame, reasons: pl.DataFrame) -> Iterator[Number]:
    """Yield the per cent of the right and of the wrong held-out statements to which each reason
    applies."""
    # half a hit is a tie for rank 1
    is_right = rows["R@1"] >= 50.0
    for name, mask in (("right", is_right), ("wrong", ~is_right)):
        chosen = reasons.filter(mask)
        for reason in reasons.columns if chosen.height else ():
            counted = proportion(int(chosen[reason].sum()), chosen.height)
            yield of.but(metric=reason, slice=f"held-out, {name}", **counted)


def words(text: str) -> set[str]:
    """Return the words of a name, casefolded and without a plural's s.

    >>> sorted(words("Rugby clubs (women)"))
    ['club', 'rugby', 'women']
    """
    raw = re.findall(r"\w+", text.casefold())
    return {w.removesuffix("s") if len(w) > 3 else w for w in raw}
