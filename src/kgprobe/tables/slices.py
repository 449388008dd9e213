"""Accuracy by slice of a benchmark: by subject, options, answer, and training status.

Bins are fixed, so that they are the same in every run. In each of them every probe is compared with
chance and with its baselines: the same questions without the subject, and asked of the same
architecture with random weights. Differences are from the best probe over all items and from the
baselines; p is corrected for these comparisons in all bins of a slice (Holm), and the minimum
detectable difference for that many items is given.

Items of a bin are drawn, as everywhere, within their whole relation, so that the number drawn from
the bin also varies. A difference is tested under the null hypothesis by exchanging the answers of
both to an item at random (metrics/tests.py), or to all items of a subject that a relation asks for
several times: the spread over resamples would be zero if a bin has one item of a relation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.contracts import COUNTS, WITHOUT
from kgprobe.tables import baselines
from kgprobe.tables.aggregations import EVERY, PROBE
from kgprobe.tables.answers import OPTION, choosable
from kgprobe.tables.results import Number, family
from kgprobe.tables.study import Bools, Study, relations_of
from kgprobe.tables.views import View

Floats = NDArray[np.float64]
UNKNOWN = "unknown"
#: facts that control models were trained on, that were held out, and those in neither split
HALVES = ("trained-on", "held-out", "neither")


@dataclass(frozen=True)
class Slice:
    """A property that groups items. `edges`: lower edges of its bins, the last of which is open;
    without them the bins are `names`; those of domains come from the relations."""

    name: str
    title: str
    axis: str
    edges: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def bin(self, value: int | None) -> str:
        """Return the bin of a value.

        >>> Slice("sitelinks", "", "", (0, 1, 5)).bin(3)
        '1-4'
        """
        if value is None:
            return UNKNOWN
        place = sum(value >= edge for edge in self.edges) - 1
        if place < 0:
            raise ValueError(f"{self.name} {value}: below the first edge, {self.edges[0]}")
        low = self.edges[place]
        if place + 1 == len(self.edges):
            return f"{low}+"
        high = self.edges[place + 1] - 1
        return f"{low}-{high}" if high > low else str(low)

    @property
    def bins(self) -> list[str]:
        """All bins, in order."""
        return [*map(self.bin, self.edges), UNKNOWN] if self.edges else list(self.names)

    def label(self, value: str) -> str:
        """Return a bin's label in `slice` of RESULTS: "sitelinks: 1-4"; for cardinality the bin."""
        return value if self.name == "cardinality" else f"{self.name}: {value}"


#: In printing order. Of several right answers, the first one counts.
SLICES = (
    Slice("sitelinks", "popularity of the subject", "sitelinks of the subject", (0, 1, 5, 20, 100)),
    Slice(
        "statements",
        "popularity of the subject",
        "statements of the source with the subject",
        (0, 1, 5, 20, 100),
    ),
    Slice("options", "number of options", "options", (2, 5, 10, 20, 50, 100)),
    Slice(
        "frequency",
        "frequency of the answer",
        "items of the benchmark with the same answer",
        (1, 2, 5, 10, 20, 50),
    ),
    Slice("length", "length of the answer", "characters of the answer", (1, 5, 10, 15, 20)),
    Slice("cardinality", "cardinality", "subjects of an answer", names=("1:1", "1:N")),
    Slice("domain", "domain", "domain of the relation"),
    Slice("facts", "what was trained on", "facts of the control models", names=HALVES),
)


#: slices of any benchmark; statements only if it has them
EVERYWHERE = ("statements", "options", "frequency", "length", "facts")
_BINS = [one.label(b) for one in SLICES if one.name in EVERYWHERE for b in one.bins]
#: by task or benchmark; a paper adds its `aggregation` to `where`
ACCURACY = View(
    "slices",
    "Accuracy by slice, %",
    where={**EVERY, "metric": ["accuracy"], "slice": _BINS, "without": ["", *WITHOUT]},
    rows=["benchmark", "slice"],
    columns=["without", *PROBE],
    heads={"slice": "items"},
    words={**baselines.WORDS, ("prompt", "templates"): "", ("method", "sentence"): ""},
    caption="Statements: the number in the graph with the subject (its popularity); options: "
    "their number; frequency: items with the same answer; length: characters of the "
    "answer; facts: trained-on, held-out, or in neither half of the control models. If "
    f"several answers are right, the first one counts. {baselines.ARE}",
)
DIFFERENCES = View(
    "slices_differences",
    "Differences by slice",
    where={
        **{name: values for name, values in EVERY.items() if name != "instead"},
        "metric": ["accuracy", "p after Holm", "detectable difference"],
        "slice": _BINS,
    },
    rows=["benchmark", "slice", *PROBE, "instead"],
    heads={"slice": "items", "instead": "minus"},
    words={**baselines.WORDS, ("metric", "accuracy"): "accuracy, points"},
    digits={"p after Holm": 3},
    caption="Paired, on the items and templates that both were asked: each probe compared with the "
    "one that is best over all items, and with its own baselines. p: answers of both "
    "exchanged at random, with Holm correction over all these comparisons in all parts of "
    "a slice. The minimum detectable difference would be significant at 5 % in 80 of 100 "
    "samples of this size; above 100, no difference would be.",
    only=lambda results: results.filter(pl.col("instead") != ""),
)


@dataclass(frozen=True)
class Bin:
    """Some items: `name` as in RESULTS, `weights` per item (0: not in the bin)."""

    name: str
    weights: Floats
    setting: Mapping[str, str] = field(default_factory=dict)


#: no slice
EVERY_ITEM = Bin("", np.ones(1))


def bins_of(study: Study, slices: Sequence[Slice] = SLICES) -> Iterator[tuple[Slice, list[Bin]]]:
    """Yield the bins of every slice that this benchmark has values for; an item is in one bin of
    each, except for domains: a relation counts fully in all of its own."""
    known = _values(study)
    for one in slices:
        if one.edges:
            inside = [one.bin(value) for value in known.get(one.name, [])]
            members = [(b, np.array([i == b for i in inside])) for b in one.bins if b in inside]
        else:
            members = [(b, np.asarray(rows)) for b, rows in _named_bins(study, one) if any(rows)]
        if members:
            yield one, [Bin(one.label(value), rows.astype(float)) for value, rows in members]


def items_of(
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    part: str,
    relations: Path | None = None,
) -> pl.DataFrame:
    """Return the ITEMS in a bin named as in `slice` of RESULTS, none if its values are not
    available; `relations`: the benchmark's file of cardinalities and domains."""
    if not items.height:
        return items
    known = relations_of(relations) if relations else None
    # the others have no answers, and no number of options with a bin
    items = choosable(items, candidates)
    study = Study(items, candidates, prompts, relations=known)
    for _, bins in bins_of(study):
        for one in bins:
            if one.name == part:
                return study.ordered.filter(pl.Series(one.weights > 0))
    return items.clear()


def _values(study: Study) -> dict[str, list[int | None]]:
    """Return slice -> the value of every item, in the order of ids."""
    fields = pl.Struct(dict.fromkeys(COUNTS, pl.Int64))
    meta = study.ordered["meta"].str.json_decode(fields).struct.unnest()
    # OntoProbe's instances store their number of statements in the graph as popularity
    meta = meta.with_columns(pl.coalesce("statements", "popularity").alias("statements"))
    popularity = "statements" if meta["sitelinks"].null_count() == len(meta) else "sitelinks"
    names = study.candidates.select("label", id=OPTION, candidates="set", first="index")
    gold = study.ordered.select("item", "candidates", first=pl.col("answers").list.first())
    gold = gold.join(names, on=["candidates", "first"], how="left", maintain_order="left")
    values = {
        "options": study.options.astype(int).tolist(),
        "length": [len(normalize("NFC", label)) for label in gold["label"]],
    }
    # a sample does not show how often the whole benchmark has an answer
    golds = study.ordered["answers"].list.len().sum()
    if study.golds is None or study.golds.height == golds:
        values["frequency"] = gold.select(pl.len().over("id")).to_series().to_list()
    if meta[popularity].null_count() < len(meta):
        values[popularity] = meta[popularity].to_list()
    return values


def _named_bins(study: Study, one: Slice) -> Iterator[tuple[str, Sequence[bool] | Bools]]:
    """Yield (bin, which items are in it) of a slice whose bins are names."""
    relations = study.ordered["relation"].to_list()
    if one.name == "cardinality":
        for kind in one.names:
            yield kind, [study.cardinality.get(r) == kind for r in relations]
    elif one.name == "domain":
        domains = study.domains
        for domain in sorted({d for names in domains.values() for d in names}):
            yield domain, [domain in domains.get(r, ()) for r in relations]
    elif splits := study.splits:
        yield from zip(one.names, (*splits, ~(splits[0] | splits[1])), strict=True)


#: comparisons: the number of one side, with what it is compared with; and for every item both hits
#: and the number of templates that both were asked
Pairs = Sequence[tuple[Number, pl.DataFrame]]


def estimates(study: Study) -> Iterator[Number]:
    """Yield accuracy of every probe, chance and baselines (setting `without`) by slice, and
    differences of probes from the best or their baselines (`instead`) with "p after Holm" and
    "detectable difference"; over all items only those of the baselines. Domains also have the
    weighting "split": a relation's weight divided by their number."""
    for of, rows in _baselines(study):
        yield from _accuracy(study, of, rows, EVERY_ITEM)
    for one in study.baselines:
        for (index,), rows in one.answers.group_by("template", maintain_order=True):
            of = study.of_probe(one.probe, without=one.without, template=str(index))
            yield of.but(metric="accuracy", **study.estimate(rows, "hit", is_proportion=True))
    yield from differences(study, _above_baselines(study), [EVERY_ITEM])
    yield from slice_numbers(study)


def slice_numbers(study: Study, slices: Sequence[Slice] = SLICES) -> Iterator[Number]:
    """Yield the same for these slices only, without the numbers of all items."""
    probes = [(study.of_probe(index), rows) for index, rows in enumerate(study.hits)]
    baselines, pairs = _baselines(study), [*with_best(study), *_above_baselines(study)]
    for one, bins in bins_of(study, slices):
        for part in bins:
            yield from _chance(study, part)
            for of, rows in [*probes, *baselines]:
                yield from _accuracy(study, of, rows, part)
        yield from differences(study, pairs, bins)
        if one.name == "domain":
            for part in bins:
                for of, rows in probes:
                    yield from _accuracy(study, of, rows, _split(study, part))


def with_best(study: Study) -> Pairs:
    """Pair each probe with the best one (the first among equals), in the order of the probes. All
    pairs would leave a test of forty models no power. `instead`: the other's model and what else
    differs."""
    pairs = []
    best = int(np.argmax([rows["hit"].to_numpy().mean() for rows in study.hits]))
    for i, j in (sorted((i, best)) for i in range(len(study.probes)) if i != best):
        one, other = study.probes[i][0].dimensions, study.probes[j][0].dimensions
        differ = [other[d] for d in ("prompt", "method") if other[d] != one[d]]
        of = study.of_probe(i, instead=", ".join([other["model"], *differ]))
        pairs.append((of, study.hits[i].with_columns(other=study.hits[j]["hit"])))
    return pairs


def _above_baselines(study: Study) -> Pairs:
    """Pair each baseline with its probe, on the items and templates that both were asked."""
    pairs = []
    for baseline in study.baselines:
        _, answers = study.probes[baseline.probe]
        both = answers.join(baseline.answers, on=["item", "template"], how="semi")
        other = study.item_hits(baseline.answers)["hit"]
        of = study.of_probe(baseline.probe, instead=f"without {baseline.without}")
        pairs.append((of, study.item_hits(both).with_columns(other=other)))
    return pairs


def _baselines(study: Study) -> list[tuple[Number, pl.DataFrame]]:
    return [
        (study.of_probe(one.probe, without=one.without), study.item_hits(one.answers))
        for one in study.baselines
    ]


def _split(study: Study, part: Bin) -> Bin:
    """Weight the relations of a domain by the inverse of their number of domains."""
    shares = [1 / len(study.domains.get(r) or [""]) for r in study.ordered["relation"]]
    return Bin(part.name, part.weights * np.array(shares), {"weighting": "split"})


def _chance(study: Study, part: Bin) -> Iterator[Number]:
    """Yield random and majority accuracy, which are exact."""
    inside = part.weights > 0
    n = study.count(study.ordered["item"].filter(pl.Series(inside)))
    for model, values in (("random", study.random), ("majority", study.majority)):
        number = study.of.but(metric="accuracy", model=model, slice=part.name)
        yield number.but(value=100 * float(values[inside].mean()), n=n)


def _within(rows: pl.DataFrame, part: Bin) -> pl.DataFrame:
    """Add `weight` to rows of all items: that of the bin for items that were asked, else 0."""
    weights = np.broadcast_to(part.weights, rows.height)
    return rows.with_columns(weight=pl.Series(weights) * (pl.col("templates") > 0))


def _accuracy(study: Study, of: Number, rows: pl.DataFrame, part: Bin) -> Iterator[Number]:
    rows = _within(rows, part)
    if not rows["weight"].sum():
        return
    is_proportion = rows["templates"].max() == 1 and not part.setting
    value = study.estimate(rows, "hit", weight="weight", is_proportion=is_proportion)
    yield of.but(metric="accuracy", slice=part.name, setting=part.setting, **value)


def differences(study: Study, pairs: Pairs, bins: Sequence[Bin]) -> Iterator[Number]:
    """Yield the differences of all pairs in every bin, as one family of tests."""
    tested: list[tuple[Number, NDArray[np.float64]]] = []
    for part in bins:
        for of, every in pairs:
            rows = _within(every, part)
            inside = rows.filter(pl.col("weight") > 0)
            if inside.height:
                of = of.but(slice=part.name, n=study.count(inside["item"]))
                gap = study.estimate(rows, "hit", less="other", weight="weight")
                yield of.but(metric="accuracy", **gap)
                tested.append((of, study.gaps(inside, "other")))
    yield from family(tested)


def list_bins(one: Slice, results: pl.DataFrame) -> dict[str, str]:
    """Return the bins of a slice that RESULTS have, in order: name in RESULTS -> printed name."""
    names, start = set(results["slice"].unique()), one.label("")
    bins = one.bins or sorted(n.removeprefix(start) for n in names if n.startswith(start))
    return {one.label(value): value for value in bins if one.label(value) in names}


def unknown_slices(results: pl.DataFrame) -> list[str]:
    """Return the titles of the slices that RESULTS of one benchmark do not have."""
    known = {one.title: bool(list_bins(one, results)) for one in SLICES}
    known |= {one.title: True for one in SLICES if list_bins(one, results)}
    return [title for title, is_known in known.items() if not is_known]
