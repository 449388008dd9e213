"""A study: one benchmark under one set of prompts, answered by several probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.contracts import WITHOUT
from kgprobe.metrics.bootstrap import DRAWS, Bootstrap, bootstrap
from kgprobe.metrics.intervals import Interval
from kgprobe.tables.answers import Probe, gold_ids
from kgprobe.tables.results import Number

#: Columns of the optional frame that says what a relation is.
RELATIONS = {"relation": pl.String, "cardinality": pl.String, "domains": pl.List(pl.String)}


SUBJECT, WEIGHTS = WITHOUT


@dataclass(frozen=True)
class Baseline:
    """Judged answers that stand below those of `probe` (its number), asked `without` one of
    WITHOUT. Some items and templates may lack."""

    probe: int
    without: str
    answers: pl.DataFrame


#: the dimensions of a probe: benchmark, model, prompt, method
Asked = tuple[str, ...]


def random_init_by_probe(
    rows: Sequence[Mapping[str, str]], paths: Sequence[str | Path]
) -> dict[Asked, str | Path]:
    """SCORES of models with random weights by the probe that they stand below; `rows` of the sheet
    have them in the order of `paths`."""
    keys = [tuple(row[d] for d in ("benchmark", "model", "prompt", "method")) for row in rows]
    return dict(zip(keys, paths, strict=True))


@dataclass(frozen=True)
class Study:
    """Judged answers (`answers.judge`) of every probe on the same items and templates.

    `relations` (columns of RELATIONS) says cardinality and domains; without it there is no table by
    domain, and a relation counts as one-to-one when its items have as many options as there are
    items and no answer occurs twice. `readings`, a mapping for every probe: what its scores say
    under other aggregations, too (`aggregations.readings`). `aggregation`: their own, "" where
    RESULTS do not name it; `group`: the part of the benchmark that these items are.
    """

    benchmark: str
    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame
    probes: Sequence[tuple[Probe, pl.DataFrame]]
    relations: pl.DataFrame | None = None
    seed: int = 0
    resamples: int = DRAWS
    readings: Sequence[Mapping[tuple[str, str], pl.DataFrame]] = ()
    baselines: Sequence[Baseline] = ()
    aggregation: str = ""
    group: str = ""
    #: (relation, id) of the correct answers that the constant guess is chosen by; None: the items'
    golds: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        if not self.probes:
            raise ValueError(f"{self.benchmark}: no probe answered this benchmark")
        keys = [tuple(probe.dimensions.values()) for probe, _ in self.probes]
        if len(set(keys)) < len(keys):
            raise ValueError(f"{self.benchmark}: two probes are the same: {sorted(keys)}")
        expected = self.probes[0][1].select("item", "template")
        for probe, answers in self.probes:
            if probe.benchmark != self.benchmark:
                raise ValueError(f"{probe.model}: not a probe of {self.benchmark}")
            if not answers.select("item", "template").equals(expected):
                raise ValueError(
                    f"{probe.model}: other items or templates than {keys[0]}; differences are "
                    "paired, so all probes of a benchmark need the same"
                )

    @property
    def of(self) -> Number:
        """The dimensions of whatever is measured of these items."""
        setting = {"aggregation": self.aggregation} if self.aggregation else {}
        return Number(benchmark=self.benchmark, group=self.group, setting=setting)

    @cached_property
    def ordered(self) -> pl.DataFrame:
        """The items in the order of all matrices (by item id)."""
        return self.items.sort("item")

    @cached_property
    def templates(self) -> list[int]:
        """Template indices that were scored."""
        return sorted(self.probes[0][1]["template"].unique().to_list())

    def hits(self, probe: int, column: str = "hit") -> NDArray[np.float64]:
        """items x templates: a column of the judged answers."""
        answers = self.probes[probe][1].sort("item", "template")
        shape = (self.items.height, len(self.templates))
        return answers[column].cast(pl.Float64).to_numpy().reshape(shape)

    def spread(self, answers: pl.DataFrame) -> NDArray[np.float64]:
        """items x templates: hits of judged answers, NaN where nothing was asked."""
        grid = np.full((self.items.height, len(self.templates)), np.nan)
        rows = {item: place for place, item in enumerate(self.ordered["item"])}
        columns = {template: place for place, template in enumerate(self.templates)}
        for item, template, hit in answers.select("item", "template", "hit").rows():
            grid[rows[item], columns[template]] = hit
        return grid

    def instead(self, one: Probe, other: Probe) -> str:
        """What a difference from `one` is taken to: the other's model and what else differs."""
        fields = other.dimensions
        differ = [d for d in ("prompt", "method") if fields[d] != one.dimensions[d]]
        return ", ".join([fields["model"], *(fields[d] for d in differ)])

    @cached_property
    def with_best(self) -> list[tuple[int, int]]:
        """Pairs of probes that are compared: each with the best one (of equal ones the first), in
        the order of the probes. All pairs would leave a test of forty models no power."""
        count = len(self.probes)
        rates = [np.nanmean(self.spread(answers), axis=1).mean() for _, answers in self.probes]
        best = int(np.argmax(rates))
        return [(min(i, best), max(i, best)) for i in range(count) if i != best]

    @cached_property
    def resampled(self) -> Bootstrap:
        """Paired bootstrap of every probe's accuracy, mean over templates; a column is a probe."""
        means = [self.hits(i).mean(axis=1) for i in range(len(self.probes))]
        return self.resample(np.column_stack(means))

    def interval(self, probe: int, weights: NDArray[np.float64] | None = None) -> Interval:
        """95 % interval, in per cent, of a probe's (weighted) accuracy.

        Wilson's for the proportion of items on one template, the bootstrap for means over several
        templates and for other weights. Where every resample is the same (all right, all wrong,
        one item a relation) the bootstrap says nothing, and Wilson's takes its place.
        """
        all_or_none = weights is None or set(weights.tolist()) <= {0.0, 1.0}
        is_proportion = len(self.templates) == 1 and all_or_none
        return self.resampled.interval(probe, weights, is_proportion).times(100)

    def resample(self, values: NDArray[np.float64]) -> Bootstrap:
        """Bootstrap of item values (items x columns) with the study's draws."""
        relations = self.ordered["relation"].to_list()
        return bootstrap(values, relations, seed=self.seed, draws=self.resamples)

    def totals(self, *values: NDArray[np.float64]) -> Bootstrap:
        """Sums per relation of item values that need no interval; a column per argument."""
        relations = self.ordered["relation"].to_list()
        return bootstrap(np.column_stack(values), relations, draws=0)

    @cached_property
    def options(self) -> NDArray[np.float64]:
        """Number of options, per item."""
        sizes = self.candidates.group_by(candidates="set").len("size")
        joined = self.ordered.join(sizes, on="candidates", how="left", maintain_order="left")
        return joined["size"].to_numpy().astype(float)

    @cached_property
    def random(self) -> NDArray[np.float64]:
        """Chance of a random guess, per item."""
        return self.ordered["answers"].list.len().to_numpy() / self.options

    @cached_property
    def majority(self) -> NDArray[np.float64]:
        """Per item, whether the constant guess of its relation's most frequent answer is right.

        Answers are known by their ids, since items of a relation may have options of their own. Of
        a sample the guess is that of the whole set (`golds`): chosen by a few questions it would be
        right in most of them. Ties between answers go to the lowest id; the mean over the whole
        does not depend on that.
        """
        gold = gold_ids(self.ordered, self.candidates)
        best = (
            (gold if self.golds is None else self.golds)
            .group_by("relation", "id")
            .len()
            .sort(["relation", "len", "id"], descending=[False, True, False])
            .unique("relation", keep="first", maintain_order=True)
        )
        right = gold.join(best, on=["relation", "id"], how="semi")["item"]
        return self.ordered["item"].is_in(right.implode()).to_numpy().astype(float)

    @cached_property
    def cardinality(self) -> dict[str, str]:
        """relation -> "1:1" or "1:N"."""
        if self.relations is not None and "cardinality" in self.relations.columns:
            return dict(self.relations.select("relation", "cardinality").iter_rows())
        sized = self.ordered.with_columns(size=pl.Series(self.options))
        answers = pl.col("answers").list.first().n_unique()
        one = (pl.col("size").max() == pl.len()) & (answers == pl.len())
        rows = sized.group_by("relation").agg(one=one).rows()
        return {relation: "1:1" if is_one else "1:N" for relation, is_one in rows}

    @cached_property
    def domains(self) -> dict[str, list[str]]:
        """relation -> its domains; empty when the benchmark says nothing about them."""
        if self.relations is None or "domains" not in self.relations.columns:
            return {}
        return dict(self.relations.select("relation", "domains").drop_nulls().iter_rows())

    def among(self, relation: str) -> NDArray[np.float64]:
        """1 for this relation, 0 for the others, in the order of `resampled`."""
        return np.array([float(name == relation) for name in self.resampled.strata])


def relations_of(path: Path) -> pl.DataFrame | None:
    """Cardinality and domains of the relations, where the benchmark has them."""
    if not path.is_file():
        return None
    frame = pl.read_parquet(path)
    columns = [column for column in RELATIONS if column in frame.columns]
    return frame.select(columns) if len(columns) > 1 and "relation" in columns else None
