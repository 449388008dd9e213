"""Reasoning apart from priming: what each form of premises changes (ours).

A change is paired: the reciprocal rank of one gold after the premises, less that of the same gold
of the same row after the empty prompt of the same model and pseudowords.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import polars as pl

from kgprobe.benchmarks.ontoprobe.premises import EMPTY, FORMS
from kgprobe.metrics.ranking import reciprocal_rank
from kgprobe.metrics.sums import ordered_mean
from kgprobe.metrics.tests import equivalence
from kgprobe.tables.answers import Probe
from kgprobe.tables.estimate import estimate
from kgprobe.tables.ontoprobe.reasoning import RULES, reciprocal
from kgprobe.tables.results import Number

#: a mean change of MRR within these bounds counts as none
BOUND = 0.02
CHANGE, EQUIVALENCE, LEFT_OUT = "change", f"p of a change beyond {BOUND}", "left out"
MRR, CORRECTED = "MRR", "prior-corrected MRR"
METRICS = (MRR, CORRECTED, CHANGE, EQUIVALENCE, LEFT_OUT)
#: what each form is
CAPTION = " ".join(f"{form[0].upper()}{form[1:]}: {text}." for form, text in FORMS.items())
#: golds by whether a premise names them, and all
SLICES = {"": None, "gold not named": False, "gold named": True}
#: a row of a rule in one draw of what other rows lend it
ROW = ("rule", "item", "draw")


def levels(ranks: pl.DataFrame) -> pl.DataFrame:
    """rule, item, form, MRR and prior-corrected MRR (0 to 1) of FORM_RANKS: means over draws."""
    key = ["rule", "item", "form", "draw"]
    corrected = ranks.select(*key, best="corrected_best", worst="corrected_worst")
    both = reciprocal(ranks, key).select(*key, pl.col("MRR").alias(MRR))
    adjusted = reciprocal(corrected, key).select(*key, pl.col("MRR").alias(CORRECTED))
    means = both.join(adjusted, on=key).group_by("rule", "item", "form")
    return means.agg(ordered_mean([MRR, CORRECTED])).sort("rule", "item", "form")


def changes(ranks: pl.DataFrame) -> pl.DataFrame:
    """rule, item, form, slice, change (-1 to 1), draws of FORM_RANKS: means over the golds of a
    slice, then over draws, where both sides of the pair and a gold of the slice are there."""
    values = reciprocal_rank(ranks["best"].to_numpy(), ranks["worst"].to_numpy())
    rows = ranks.select(*ROW, "form", "gold", "named", rr=pl.Series(values))
    empty = rows.filter(form="none").select(*ROW, "gold", prior="rr")
    both = rows.join(empty, on=[*ROW, "gold"]).with_columns(change=pl.col("rr") - pl.col("prior"))
    frames_of = []
    for name, is_named in SLICES.items():
        chosen = both if is_named is None else both.filter(named=is_named)
        by_row = chosen.group_by(*ROW, "form").agg(ordered_mean("change"))
        by_item = by_row.group_by("rule", "item", "form")
        means = by_item.agg(ordered_mean("change"), draws=pl.len())
        frames_of.append(means.with_columns(slice=pl.lit(name)))
    return pl.concat(frames_of).sort("rule", "item", "form", "slice")


def numbers(frames: Mapping[Probe, pl.DataFrame], seed: int) -> Iterator[Number]:
    """Every number of the forms, of every rule and of all with each row weighing the same;
    `frames`: FORM_RANKS of each probe. n counts distinct rows, the units of intervals and tests,
    and `denominator` these with their draws."""
    mean = partial(estimate, stratum="rule", seed=seed, scale=1)
    for probe, ranks in frames.items():
        every = levels(ranks), changes(ranks), ranks
        for rule in (*(r for r in RULES if r in ranks["rule"].unique()), ""):
            level, change, rows = (f.filter(rule=rule) if rule else f for f in every)
            drawn = {form: rows.filter(form=form).select(ROW).unique() for form in FORMS}
            for form, ranked in drawn.items():
                base = Number(**probe.dimensions, group=rule, setting={"form": form})
                lacking, n = (
                    drawn["none"].height - ranked.height,
                    drawn["none"]["item"].n_unique(),
                )
                yield base.but(metric=LEFT_OUT, value=lacking, n=n)
                some = level.filter(form=form)
                for metric in (MRR, CORRECTED) if some.height else ():
                    yield base.but(metric=metric, **mean(some, metric))
                for (name,), subset in change.filter(form=form).group_by("slice"):
                    subset = subset.with_columns(none=0.0)
                    number = base.but(slice=name, denominator=float(subset["draws"].sum()))
                    yield number.but(metric=CHANGE, **mean(subset, "change", less="none"))
                    if form in EMPTY and not name:
                        p = equivalence(subset["change"].to_numpy(), BOUND)
                        yield number.but(metric=EQUIVALENCE, value=p, n=subset.height)
