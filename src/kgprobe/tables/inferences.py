"""Taught inference: what control models make of patterns that they were taught in part.

By phenomenon and arm (benchmarks/inferred.py): accuracy of the conclusion among its options and,
where only the parts were taught, whether the premises are recalled; in the contradicted arm, how
often the contradicting conclusion is said. A number is the mean over the models of a kind, one of
each seed. Its interval is a bootstrap that draws cases, each with what all models make of it, and
models; where no draw differs (all right, all wrong), Wilson's over cases stands in its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.benchmarks.inferred import CONCLUSION, PREMISE
from kgprobe.benchmarks.invented import ARMS, CONTRADICTED, PARTS, PHENOMENA, UNTAUGHT, WHOLE
from kgprobe.metrics.bootstrap import DRAWS, of_draws
from kgprobe.metrics.intervals import Interval, resamples, wilson
from kgprobe.sampling import hash_key
from kgprobe.settings import ATTRIBUTES
from kgprobe.tables.report import grid
from kgprobe.tables.report.chapter import Chapter
from kgprobe.tables.results import Number, spread
from kgprobe.tables.views import View

Numbers = NDArray[np.float64]
ACCURACY, KNOWN, SAID, CHANCE, INFERS = (
    "accuracy", "parts known", "contradiction said", "chance", "infers",
)  # fmt: skip
#: what a statement that was taught has to reach, in per cent, for an arm to say something
TAUGHT_AT_LEAST = 95.0
TITLE = "Taught inference: does what was taught in part lead to the rest?"
LEAD = (
    "Control models were taught an invented world, whose names carry nothing: every pattern whole, "
    "in parts (the conclusion follows, and was never said), not at all, and with another one. "
    "What they say of an untaught conclusion whose premises they know is inferred, or it is chance."
)
CAPTION = (
    "Right conclusions among ten options (fewer where the world has no more), %. Parts known: "
    "premises recalled in the arm that was taught the parts. Contradiction said: the other "
    "conclusion, where it was taught. Sentences end with their object: symmetry and bidirectional "
    "ask a pair in the direction that was not taught. A model that links names that occur together "
    "needs no rule for rdfs7; chains, classes and properties share their middle with examples that "
    "were taught whole. Infers: the interval of the parts lies wholly above that of the untaught."
)
VIEW = View(
    "inferences",
    "Conclusions by what was taught, %",
    where={
        "benchmark": ["world_inferred"], "group": list(PHENOMENA),
        "metric": [ACCURACY, KNOWN, SAID, CHANCE, INFERS], "slice": [*ARMS, ""],
    },
    rows=["model", "width", "exposures", "group"],
    columns=["metric", "slice"],
    heads={"group": "phenomenon", "exposures": "times shown"},
    words={("metric", ACCURACY): "", ("slice", ""): ""},
    caption=CAPTION,
)  # fmt: skip
VIEWS = (VIEW,)
TERMS = {
    "Arm": "What was taught of an example: the whole, its parts (the conclusion is left to infer), "
    "nothing, or the parts with another conclusion.",
    "Infers": "The accuracy of conclusions whose parts alone were taught has an interval wholly "
    "above that of untaught ones.",
}


@dataclass(frozen=True)
class Answered:
    """What one model answered; `frame`: item, group, role, part, hit (0 to 1), said (whether it
    said what contradicts; null where nothing does), chance."""

    kind: str
    width: int
    count: int
    frame: pl.DataFrame


def answered(
    model: str, items: pl.DataFrame, candidates: pl.DataFrame, judged: pl.DataFrame
) -> Answered:
    """The answers of a model that is called control-inferred-KIND-WIDTH-COUNT-SEED."""
    kind, width, count, _ = model.removeprefix("control-inferred-").split("-")
    sizes = candidates.group_by(item="set").agg(chance=1 / pl.len())
    meta = pl.col("meta").str.json_path_match
    told = items.select(
        "item", "group", "role", part=meta("$.part"), instead=meta("$.instead").cast(pl.Int32)
    )
    own = told.join(judged.select("item", "hit", "winner"), on="item").join(sizes, on="item")
    said = (pl.col("winner") == pl.col("instead")).cast(pl.Float64)
    frame = own.with_columns(said=said).drop("instead", "winner").sort("item")
    return Answered(kind, int(width), int(count), frame)


def numbers(every: Sequence[Answered], seed: int) -> dict[str, list[Number]]:
    """All numbers by paper: the phenomena of the attributes and those of the rules."""
    found: dict[str, list[Number]] = {}
    for kind, width, count in dict.fromkeys((a.kind, a.width, a.count) for a in every):
        frames = [a.frame for a in every if (a.kind, a.width, a.count) == (kind, width, count)]
        base = Number(
            benchmark="world_inferred",
            model=f"control-inferred-{kind}",
            prompt="templates",
            method="sentence",
            setting={"width": width, "exposures": count},
        )
        for name in PHENOMENA:
            own = [frame.filter(group=name) for frame in frames]
            if own[0].height:
                paper = "attributes" if name in ATTRIBUTES else "ontoprobe"
                found.setdefault(paper, []).extend(_of(own, base.but(group=name), seed))
    return found


def _of(frames: Sequence[pl.DataFrame], base: Number, seed: int) -> Iterator[Number]:
    told: dict[str, Number] = {}
    arms = [arm for arm in ARMS if frames[0].filter(role=arm).height]
    for arm in arms:
        asked = {"role": arm, "part": CONCLUSION}
        told[arm] = _mean(frames, "hit", asked, base.but(metric=ACCURACY, slice=arm), seed)
        yield told[arm]
    if PARTS in told:
        asked = {"role": PARTS, "part": PREMISE}
        yield _mean(frames, "hit", asked, base.but(metric=KNOWN, slice=PARTS), seed)
        asked = {"role": CONTRADICTED, "part": CONCLUSION}
        yield _mean(frames, "said", asked, base.but(metric=SAID, slice=CONTRADICTED), seed)
        high, low = told[PARTS].interval, told[UNTAUGHT].interval
        infers = high is not None and low is not None and high.low > low.high
        yield base.but(metric=INFERS, value=infers, n=told[PARTS].n)
    rows = frames[0].filter(role=UNTAUGHT, part=CONCLUSION)
    chance = float(rows["chance"].to_numpy().mean())
    yield base.but(metric=CHANCE, slice=UNTAUGHT, value=100 * chance, n=rows.height)


def _mean(
    frames: Sequence[pl.DataFrame], column: str, asked: Mapping[str, str], of: Number, seed: int
) -> Number:
    """Mean over models and cases, in per cent. Raises ValueError where models were asked others."""
    own = [frame.filter(**asked) for frame in frames]
    if any(not frame["item"].equals(own[0]["item"]) for frame in own):
        raise ValueError(f"{of.group}, {of.slice}: the models were asked different questions")
    values = np.stack([frame[column].to_numpy().astype(float) for frame in own])
    n, value = values.shape[1], float(values.mean())
    cases = _drawn(n, hash_key(seed, "inferences", "cases", of.group, of.slice))
    models = _drawn(len(own), hash_key(seed, "inferences", "models"))
    # einsum, as in metrics/bootstrap: no threaded product
    draws = np.einsum("dc,mc,dm->d", cases, values, models, optimize=False) / (n * len(own))
    bounds = of_draws(draws, "cluster bootstrap") or Interval(*wilson(value * n, n), "wilson")
    return of.but(value=100 * value, n=n, interval=bounds.times(100))


def _drawn(n: int, seed: int) -> Numbers:
    """draws x n: how often each of n is drawn."""
    return resamples(np.zeros(n, dtype=np.int64), DRAWS, seed).astype(float)


def chapter(results: pl.DataFrame) -> Chapter:
    """The chapter of these RESULTS: whether anything is inferred, and the table."""
    verdict, is_met = _verdict(results)
    shown = [grid.of_view(VIEW, results)]
    return Chapter(
        "inferences", TITLE, LEAD, grids=shown, verdict=verdict, is_met=is_met, terms=TERMS
    )


def _verdict(results: pl.DataFrame) -> tuple[str, bool]:
    """What the numbers say in a sentence, and whether what was taught is known where every
    statement was shown most often; what it was before is the learning curve."""
    asked = results.filter(metric=INFERS)
    yes = asked.filter(value=1.0)["group"].unique(maintain_order=True).to_list()
    taught = spread(results.filter(metric=ACCURACY, slice=WHOLE))
    shown = taught["exposures"].cast(pl.Int64)
    taught = taught.filter(shown == shown.max())
    low = taught.filter(pl.col("value") < TAUGHT_AT_LEAST)
    told = (
        f"In {len(yes)} of {asked['group'].n_unique()} phenomena ({', '.join(yes)}) conclusions "
        "that were not taught, but follow, are right more often than those of which nothing was "
        "taught."
        if yes
        else "No control model infers: no conclusion that follows from what was taught is right "
        "more often than one of which nothing was taught, at any exposure and width."
    )
    known = f" What was taught whole is known to at least {TAUGHT_AT_LEAST:g} %"
    if low.height:
        known += f" but in {', '.join(low['group'].unique(maintain_order=True))}"
    return f"{told}{known}.", not low.height
