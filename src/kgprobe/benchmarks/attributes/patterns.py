"""What composite and paths share: frequent patterns capped, rare ones whole, or a fallback."""

from collections.abc import Callable, Sequence

import polars as pl

from kgprobe.benchmarks.attributes.examples import (
    NO_LABEL,
    Chooser,
    Picked,
    Shape,
    pick_of,
    with_labels,
)
from kgprobe.benchmarks.attributes.graph import Graph
from kgprobe.benchmarks.attributes.settings import Settings
from kgprobe.benchmarks.attributes.wedges import Collected
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.sampling import smallest
from kgprobe.settings import Composite, Paths

Filter = Callable[[pl.DataFrame], pl.DataFrame]


def frequent_or_fallback(
    shape: Shape,
    counts: pl.DataFrame,
    settings: Settings[Composite | Paths],
    fallback: int,
    per: Sequence[str],
) -> Chooser:
    """Chooses by the complete `counts` (strata, n): `cap` of the patterns with `min_combo` or more.

    Patterns below it are kept whole where `keep_rare`. When no pattern is frequent, `fallback`
    random examples (of each `per`) are taken, whatever their pattern.
    """
    strata = list(shape.strata)
    common = counts.filter(pl.col("n") >= settings.own.min_combo).select(strata)
    names = [*strata, *shape.ids]

    def choose(frame: pl.DataFrame) -> pl.DataFrame:
        seed, label = settings.seed, shape.benchmark
        if not common.height:
            rest = [name for name in names if name not in per]
            return smallest(frame, fallback, seed, rest, per, f"{label}/fallback").sort(names)
        frequent = frame.join(common, on=strata, how="semi")
        parts = [smallest(frequent, settings.own.cap, seed, shape.ids, strata, label)]
        if settings.own.keep_rare:
            parts.append(frame.join(common, on=strata, how="anti"))
        return pl.concat(parts).sort(names)

    return choose


def usable_filters(shape: Shape, graph: Graph, settings: Settings[object]) -> tuple[Filter, Filter]:
    """Filters for labels, and for templates where missing ones are dropped."""
    if not settings.shared.require_labels:
        return (lambda frame: frame), (lambda frame: frame)
    known = settings.templates
    legal = [int(name[1:]) for name in known or () if "/" not in name]

    def labelled(frame: pl.DataFrame) -> pl.DataFrame:
        return with_labels(frame, shape.entities, graph)

    def templated(frame: pl.DataFrame) -> pl.DataFrame:
        if known is None or settings.shared.missing_template != "drop":
            return frame
        return frame.filter(pl.all_horizontal(pl.col(c).is_in(legal) for c in shape.strata))

    return labelled, templated


def usable_steps(found: Collected, settings: Settings[object], steps: Funnel) -> pl.DataFrame:
    """The usable candidates, with their steps in the funnel; all missing templates are named."""
    total = int(found.counts["n"].sum())
    if not settings.shared.require_labels:
        return found.structural
    steps.kept("labels", found.labelled, total, NO_LABEL)
    known = settings.templates
    if known is not None and settings.shared.missing_template == "drop":
        lost = sorted(found.untemplated.items(), key=lambda item: (-item[1], item[0]))
        names = [f"P{p} ({n:,})" for p, n in lost if f"P{p}" not in set(known)]
        why = "no template: " + ", ".join(names) if names else "no template"
        steps.kept("templates", found.templated, found.labelled, why)
    return found.usable


def pick_collected(
    shape: Shape, found: Collected, settings: Settings[object], steps: Funnel, choose: Chooser
) -> Picked:
    """`pick_of` for candidates that came out of parts, of which some are kept and all counted."""
    usable = usable_steps(found, settings, steps)
    totals = (int(found.counts["n"].sum()), found.templated)
    evaluate = settings.shared.eval_examples
    return pick_of(shape, found.structural, usable, settings, steps, choose, evaluate, totals)
