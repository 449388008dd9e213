"""Accuracy by parts of a benchmark: by subject, options, answer, and what was trained on.

Bins are fixed, so that they are the same in every run. In each of them every probe stands beside
chance and beside its baselines: the same questions without the subject, and asked of the same
architecture with random weights. Each probe is compared with the best one of all
items and with its baselines; p is corrected for these comparisons in all bins of a slice (Holm),
and beside it stands the least difference that as many items would show.

Items of a bin are drawn as everywhere, within their whole relation, so that how many of the bin are
drawn varies, too. The error of a difference is that under the hypothesis of none, the answers of
both to an item exchanged at random: sqrt(sum of squared differences) over n, as in McNemar's test.
The spread over resamples would be none at all where a bin has one item of a relation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.contracts import WITHOUT
from kgprobe.metrics.bootstrap import Bootstrap, subsets
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.tables import baselines
from kgprobe.tables.aggregations import EVERY, PROBE
from kgprobe.tables.answers import Probe
from kgprobe.tables.results import Number, family, hit_rate
from kgprobe.tables.study import Study, relations_of
from kgprobe.tables.views import View

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
UNKNOWN = "unknown"
#: facts that control models were trained on, that were held out, and those in neither half
HALVES = ("trained-on", "held-out", "neither")


@dataclass(frozen=True)
class Slice:
    """A property that groups items. `edges`: the lower ones of its bins, the last of which is open;
    without them the bins are `names`, those of domains as the relations have them."""

    name: str
    title: str
    axis: str
    edges: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def bin(self, value: int | None) -> str:
        """The bin of a value.

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
        """The label of a bin in `slice` of RESULTS: "sitelinks: 1-4"; of cardinality the bin."""
        return value if self.name == "cardinality" else f"{self.name}: {value}"


#: In the order of printing. The first answer counts of those that are right.
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


#: slices of any benchmark; statements where it knows them
EVERYWHERE = ("statements", "options", "frequency", "length", "facts")
_BINS = [one.label(b) for one in SLICES if one.name in EVERYWHERE for b in one.bins]
#: by task or benchmark; `where` of a paper has its `aggregation` as well
ACCURACY = View(
    "slices",
    "Accuracy by parts of the items, %",
    where={**EVERY, "metric": ["accuracy"], "slice": _BINS, "without": ["", *WITHOUT]},
    rows=["benchmark", "slice"],
    columns=["without", *PROBE],
    heads={"slice": "items"},
    words={**baselines.WORDS, ("prompt", "templates"): "", ("method", "sentence"): ""},
    caption="Statements: those of the graph with the subject, its popularity; options: their "
    "number; frequency: items with the same answer; length: characters of the answer; facts: what "
    "control models were trained on, were not, or what is in neither half. The first answer counts "
    f"of those that are right. {baselines.ARE}",
)
DIFFERENCES = View(
    "slices_differences",
    "Differences by parts of the items",
    where={
        **{name: values for name, values in EVERY.items() if name != "instead"},
        "metric": ["accuracy", "p after Holm", "detectable difference"],
        "slice": _BINS,
    },
    rows=["benchmark", "slice", *PROBE, "instead"],
    heads={"slice": "items", "instead": "minus"},
    words={**baselines.WORDS, ("metric", "accuracy"): "accuracy, points"},
    digits={"p after Holm": 3},
    caption="Paired, on the items and templates that both were asked: each probe with the one that "
    "is best of all items, and with its own baselines. p: answers of both exchanged at random, "
    "corrected for all these comparisons in all parts of a slice (Holm). The least difference "
    "would be found at 5 % in 80 of 100 samples of as many items; above 100 none would.",
    only=lambda results: results.filter(pl.col("instead") != ""),
)


@dataclass(frozen=True)
class Bin:
    """Some items: `name` as it stands in RESULTS, `weights` per item (0: not in it)."""

    name: str
    weights: Floats
    setting: Mapping[str, str] = field(default_factory=dict)


def bins_of(
    study: Study, splits: tuple[Bools, Bools] | None = None, slices: Sequence[Slice] = SLICES
) -> Iterator[tuple[Slice, list[Bin]]]:
    """The bins of every slice that this benchmark has values for; an item lies in one of each, but
    for domains: a relation counts fully in all of its own. `splits`: the items, in order of ids,
    trained on, and held out."""
    known = _values(study)
    for one in slices:
        if one.edges:
            inside = [one.bin(value) for value in known.get(one.name, [])]
            members = [(b, np.array([i == b for i in inside])) for b in one.bins if b in inside]
        else:
            members = [
                (b, np.asarray(rows)) for b, rows in _named_bins(study, one, splits) if any(rows)
            ]
        if members:
            yield one, [Bin(one.label(value), rows.astype(float)) for value, rows in members]


def items_of(
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    part: str,
    relations: Path | None = None,
) -> pl.DataFrame:
    """The ITEMS in a bin as `slice` of RESULTS has it, none where they do not have its values;
    `relations`: the benchmark's file of cardinalities and domains."""
    if not items.height:
        return items
    probe = Probe("", "", "", "", "")
    answers = items.select("item", template=pl.lit(0))
    known = relations_of(relations) if relations else None
    study = Study("", items, candidates, prompts, [(probe, answers)], known)
    for _, bins in bins_of(study):
        for one in bins:
            if one.name == part:
                return study.ordered.filter(pl.Series(one.weights > 0))
    return items.clear()


def _values(study: Study) -> dict[str, list[int | None]]:
    """Slice -> the value of every item, in the order of ids."""
    fields = pl.Struct(dict.fromkeys(("sitelinks", "statements", "popularity"), pl.Int64))
    meta = study.ordered["meta"].str.json_decode(fields).struct.unnest()
    # what OntoProbe's instances have: in how many statements of the graph they stand
    meta = meta.with_columns(pl.coalesce("statements", "popularity").alias("statements"))
    popularity = "statements" if meta["sitelinks"].null_count() == len(meta) else "sitelinks"
    names = study.candidates.select("id", "label", candidates="set", first="index")
    gold = study.ordered.select("item", "candidates", first=pl.col("answers").list.first()).join(
        names, on=["candidates", "first"], how="left", maintain_order="left"
    )
    values = {
        "options": study.options.astype(int).tolist(),
        "frequency": gold.select(pl.len().over("id")).to_series().to_list(),
        "length": [len(normalize("NFC", label)) for label in gold["label"]],
    }
    if meta[popularity].null_count() < len(meta):
        values[popularity] = meta[popularity].to_list()
    return values


def _named_bins(
    study: Study, one: Slice, splits: tuple[Bools, Bools] | None
) -> Iterator[tuple[str, Sequence[bool] | Bools]]:
    """(bin, which items are in it) of a slice whose bins are names."""
    relations = study.ordered["relation"].to_list()
    if one.name == "cardinality":
        for kind in one.names:
            yield kind, [study.cardinality.get(r) == kind for r in relations]
    elif one.name == "domain":
        domains = study.domains
        for domain in sorted({d for names in domains.values() for d in names}):
            yield domain, [domain in domains.get(r, ()) for r in relations]
    elif splits:
        yield from zip(one.names, (*splits, ~(splits[0] | splits[1])), strict=True)


@dataclass(frozen=True)
class _Answers:
    """Answers of a probe or a baseline: hits (items x templates, NaN where it was not asked)."""

    of: Number
    hits: Floats

    @property
    def mask(self) -> Floats:
        """1 for items that it was asked, else 0."""
        return np.asarray(~np.isnan(self.hits).all(axis=1), dtype=float)

    @property
    def right(self) -> Floats:
        """Mean over the templates asked, 0 where none was."""
        count = (~np.isnan(self.hits)).sum(axis=1)
        return np.asarray(np.nansum(self.hits, axis=1) / np.maximum(count, 1))

    @property
    def is_proportion(self) -> bool:
        """Whether every item was asked under one template at most."""
        return bool(((~np.isnan(self.hits)).sum(axis=1) <= 1).all())

    def like(self, other: "_Answers") -> "_Answers":
        """What the other was asked, too."""
        return _Answers(self.of, np.where(np.isnan(other.hits), np.nan, self.hits))


@dataclass(frozen=True)
class _Pair:
    """Two columns of one matrix that are compared, and what the second is in words."""

    of: Number
    instead: str
    one: int
    other: int


@dataclass(frozen=True)
class _Table:
    """What is resampled together: for each of `entries` the column of its right answers and, behind
    it, that of the items it was asked."""

    entries: list[_Answers]
    printed: int  #: so many of them are printed, the others are there to be compared
    pairs: list[_Pair]

    @property
    def columns(self) -> Floats:
        """items x (2 entries)."""
        return np.column_stack([c for e in self.entries for c in (e.right * e.mask, e.mask)])


def _table(study: Study) -> _Table:
    probes = [
        _Answers(study.of.but(**p.dimensions), study.spread(answers)) for p, answers in study.probes
    ]
    entries, pairs = [*probes], []
    for i, j in study.with_best:
        instead = study.instead(study.probes[i][0], study.probes[j][0])
        pairs.append(_Pair(probes[i].of, instead, i, j))
    for baseline in study.baselines:
        of = probes[baseline.probe].of.but(setting={"without": baseline.without})
        entries.append(_Answers(of, study.spread(baseline.answers)))
    shown = len(entries)
    for place, baseline in enumerate(study.baselines, len(probes)):
        answers = probes[baseline.probe]
        pairs.append(_Pair(answers.of, f"without {baseline.without}", len(entries), place))
        entries.append(answers.like(entries[place]))
    return _Table(entries, shown, pairs)


def numbers(study: Study, splits: tuple[Bools, Bools] | None = None) -> Iterator[Number]:
    """accuracy of every probe, of chance and of baselines (setting `without`) by slice, of probes
    minus the best or their baselines (`instead`) with "p after Holm" and "detectable difference";
    of all items those of the baselines alone. Domains have the weighting "split" as well: a
    relation's weight divided by their number."""
    table = _table(study)
    every = Bin("", np.ones(study.items.height))
    if study.baselines:
        probes = len(study.probes)
        subset = _Table(table.entries, table.printed, [p for p in table.pairs if p.other >= probes])
        (boot,) = _resample(study, subset, [every])
        yield from _accuracies(subset, every, boot, range(probes, subset.printed))
        yield from _by_template(study, table.entries[probes : subset.printed])
        yield from _compare(subset, [every], [boot])
    yield from slice_numbers(study, splits)


def slice_numbers(
    study: Study, splits: tuple[Bools, Bools] | None = None, slices: Sequence[Slice] = SLICES
) -> Iterator[Number]:
    """The same of these slices alone, without the numbers of all items."""
    table = _table(study)
    for one, bins in bins_of(study, splits, slices):
        drawn = _resample(study, table, bins)
        for part, boot in zip(bins, drawn, strict=True):
            yield from _baselines(study, part)
            yield from _accuracies(table, part, boot, range(table.printed))
        yield from _compare(table, bins, drawn)
        if one.name == "domain":
            split = [_split(study, part) for part in bins]
            for part, boot in zip(split, _resample(study, table, split), strict=True):
                yield from _accuracies(table, part, boot, range(len(study.probes)))


def _by_template(study: Study, baselines: Sequence[_Answers]) -> Iterator[Number]:
    for baseline in baselines:
        for column, index in enumerate(study.templates):
            hits = baseline.hits[:, column]
            if (~np.isnan(hits)).any():
                rate = hit_rate(hits[~np.isnan(hits)])
                yield baseline.of.but(metric="accuracy", setting={"template": index}, **rate)


def _resample(study: Study, table: _Table, bins: Sequence[Bin]) -> list[Bootstrap]:
    relations = study.ordered["relation"].to_list()
    weights = [part.weights for part in bins]
    return subsets(table.columns, weights, relations, study.seed, study.resamples)


def _split(study: Study, part: Bin) -> Bin:
    """A domain whose relations weigh less by the number of domains they have."""
    shares = [1 / len(study.domains.get(r) or [""]) for r in study.ordered["relation"]]
    return Bin(part.name, part.weights * np.array(shares), {"weighting": "split"})


def _baselines(study: Study, part: Bin) -> Iterator[Number]:
    """Random and majority, exact."""
    inside = part.weights > 0
    for model, values in (("random", study.random), ("majority", study.majority)):
        number = study.of.but(metric="accuracy", model=model, slice=part.name)
        yield number.but(value=100 * float(values[inside].mean()), n=int(inside.sum()))


def _accuracies(
    table: _Table, part: Bin, boot: Bootstrap, which: Sequence[int]
) -> Iterator[Number]:
    for place in which:
        entry = table.entries[place]
        n = int((entry.mask * (part.weights > 0)).sum())
        if not n:
            continue
        value, interval = boot.ratio(2 * place, 2 * place + 1)
        if interval is None or (entry.is_proportion and not part.setting):
            interval = Interval(*wilson(min(value, 1.0) * n, n), "wilson")
        number = entry.of.but(metric="accuracy", slice=part.name, setting=part.setting)
        yield number.but(value=100 * value, interval=interval.times(100), n=n)


def _compare(table: _Table, bins: Sequence[Bin], drawn: Sequence[Bootstrap]) -> Iterator[Number]:
    """Probes with the best one and with their baselines in every bin, as one family of tests."""
    tested: list[tuple[Number, NDArray[np.float64]]] = []
    for part, boot in zip(bins, drawn, strict=True):
        for pair in table.pairs:
            one, other = table.entries[pair.one], table.entries[pair.other]
            inside = (part.weights * one.mask * other.mask) > 0
            if not inside.any():
                continue
            gaps, n = (one.right - other.right)[inside], int(inside.sum())
            of = pair.of.but(slice=part.name, n=n, setting={"instead": pair.instead})
            value, interval = boot.ratio(2 * pair.one, 2 * pair.one + 1, less=2 * pair.other)
            bounds = interval and interval.times(100)
            yield of.but(metric="accuracy", value=100 * value, interval=bounds)
            tested.append((of, gaps))
    yield from family(tested)


def list_bins(one: Slice, results: pl.DataFrame) -> dict[str, str]:
    """The bins of a slice that RESULTS have, in order: as they stand there -> as they are printed;
    none where the slice has no values."""
    names = set(results["slice"].unique())
    bins = one.bins or sorted(
        name.removeprefix(one.label("")) for name in names if name.startswith(one.label(""))
    )
    return {one.label(value): value for value in bins if one.label(value) in names}


def unknown_slices(results: pl.DataFrame) -> list[str]:
    """Titles of the slices that RESULTS of one benchmark do not have."""
    known = {one.title: bool(list_bins(one, results)) for one in SLICES}
    known |= {one.title: True for one in SLICES if list_bins(one, results)}
    return [title for title, is_known in known.items() if not is_known]
