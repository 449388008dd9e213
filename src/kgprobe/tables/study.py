"""A study: questions of a benchmark, and the judged answers of the probes that were asked them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.answers import SUBJECT, Probe, gold_ids
from kgprobe.tables.estimate import estimate
from kgprobe.tables.results import Number

#: Columns of the optional frame of relations.
RELATIONS = {"relation": pl.String, "cardinality": pl.String, "domains": pl.List(pl.String)}


Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class BaselineAnswers:
    """Judged answers of a baseline of `probe` (its index), asked `without` one of WITHOUT. Some
    items and templates may be missing."""

    probe: int
    without: str
    answers: pl.DataFrame


def by_item(answers: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Average judged answers by item: item, relation, columns (means over templates), templates
    (number), in the order of items."""
    means = ordered_mean(columns or ["hit"])
    return answers.group_by("item", "relation").agg(means, templates=pl.len()).sort("item")


@dataclass(frozen=True)
class Study:
    """Questions, and judged answers (`answers.judge`) of probes, all on the same items and
    templates.

    `aggregation`: the probes' own; "" is BEAR's, which is not named in RESULTS. `group`: the subset
    of the benchmark with these items. `relations` (columns of RELATIONS) has cardinality and
    domains; without it there is no table by domain, and a relation counts as one-to-one if its
    items have as many options as there are items and no answer occurs twice. `numbers`: numbers
    from the probes' SCORES (`scored.numbers_of`). `trained_on`: item -> whether control models were
    trained on it, if known.
    """

    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame
    seed: int = 0
    aggregation: str = ""
    group: str = ""
    benchmark: str = ""
    probes: Sequence[tuple[Probe, pl.DataFrame]] = ()
    relations: pl.DataFrame | None = None
    numbers: Sequence[Number] = ()
    baselines: Sequence[BaselineAnswers] = ()
    trained_on: Mapping[str, bool] = field(default_factory=dict)
    #: (relation, id) of the correct answers that determine the constant guess; None: the items'
    golds: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        keys = [tuple(probe.dimensions.values()) for probe, _ in self.probes]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"{self.benchmark}: two probes are the same: {', '.join(key)}")
        for probe, answers in self.probes:
            if probe.benchmark != self.benchmark:
                raise ValueError(f"{probe.model}: not a probe of {self.benchmark}")
            if not self.matches(answers):
                raise ValueError(
                    f"{probe.model}: other items or templates than {self.probes[0][0].model}; "
                    "differences are paired, so all probes of a benchmark need the same"
                )

    def matches(self, answers: pl.DataFrame) -> bool:
        """Return whether judged answers have the items and templates of the first probe."""
        first = self.probes[0][1]
        return answers.select("item", "template").equals(first.select("item", "template"))

    @property
    def of(self) -> Number:
        """The dimensions of all measures over these items."""
        setting = {"aggregation": self.aggregation} if self.aggregation else {}
        return Number(benchmark=self.benchmark, group=self.group, setting=setting)

    def of_probe(self, index: int, **setting: str) -> Number:
        """Return the dimensions of a probe's measures over these items, under a further setting."""
        return self.of.but(setting=setting, **self.probes[index][0].dimensions)

    @cached_property
    def ordered(self) -> pl.DataFrame:
        """The items in the order of ids, which is the order of all arrays."""
        return self.items.sort("item")

    @cached_property
    def splits(self) -> tuple[Bools, Bools] | None:
        """Which of the ordered items are trained on, and held out; None unless both occur."""
        status = [self.trained_on.get(item) for item in self.ordered["item"]]
        yes, no = (np.array([one is split for one in status]) for split in (True, False))
        return (yes, no) if yes.any() and no.any() else None

    @cached_property
    def templates(self) -> list[int]:
        """The template indices that were scored."""
        return sorted(self.probes[0][1]["template"].unique().to_list())

    @cached_property
    def hits(self) -> list[pl.DataFrame]:
        """`item_hits` of every probe."""
        return [self.item_hits(answers) for _, answers in self.probes]

    def item_hits(self, answers: pl.DataFrame) -> pl.DataFrame:
        """Return item, relation, hit, templates of every item: 0 if it was not asked."""
        rows = by_item(answers).drop("relation")
        every = self.ordered.select("item", "relation")
        rows = every.join(rows, on="item", how="left", maintain_order="left")
        return rows.with_columns(pl.col("hit", "templates").fill_null(0))

    @cached_property
    def clusters(self) -> pl.DataFrame:
        """item, cluster: the items of a subject within a relation, which depend on each other; if
        no relation asks for a subject twice, every item by itself."""
        named = self.items.select("item", "relation", subject=SUBJECT)
        if not named.select("relation", "subject").is_duplicated().any():
            return named.select("item", cluster="item")
        return named.select("item", cluster=pl.concat_str("relation", "subject", separator="\n"))

    def count(self, items: pl.Series) -> int:
        """Return n of some items: the number of their clusters."""
        return self.clusters.filter(pl.col("item").is_in(items.implode()))["cluster"].n_unique()

    def estimate(self, rows: pl.DataFrame, value: str, **more: Any) -> dict[str, Any]:
        """Apply `estimate` to rows of items, drawn within their relation by whole clusters."""
        if self.clusters["cluster"].is_duplicated().any():
            rows = rows.join(self.clusters, on="item", how="left", maintain_order="left")
            more["cluster"] = "cluster"
        return estimate(rows, value, stratum="relation", seed=self.seed, **more)

    def gaps(self, rows: pl.DataFrame, less: str) -> NDArray[np.float64]:
        """Return the hits of items minus the values of `less`: of every item, or of every subject
        the sum over its items, scaled to the same mean."""
        rows = rows.join(self.clusters, on="item", how="left", maintain_order="left")
        gap = (pl.col("hit") - pl.col(less)).sum()
        sums = rows.group_by("cluster", maintain_order=True).agg(gap=gap)["gap"]
        return sums.to_numpy() * (len(sums) / rows.height)

    @cached_property
    def options(self) -> NDArray[np.float64]:
        """Number of options, per item."""
        sizes = self.candidates.group_by(candidates="set").len("size")
        joined = self.ordered.join(sizes, on="candidates", how="left", maintain_order="left")
        return joined["size"].to_numpy().astype(float)

    @cached_property
    def random(self) -> NDArray[np.float64]:
        """Accuracy of a random guess, per item."""
        return self.ordered["answers"].list.len().to_numpy() / self.options

    @cached_property
    def majority(self) -> NDArray[np.float64]:
        """Per item, whether the constant guess of its relation's most frequent answer is right.

        Answers are identified by their ids, since items of a relation may have their own options.
        For a sample the guess is that of the full set (`golds`): chosen from a few questions it
        would be right in most of them. Ties between answers go to the lowest id; the mean over the
        full set does not depend on that.
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
        """relation -> its domains; empty if the benchmark has none."""
        if self.relations is None or "domains" not in self.relations.columns:
            return {}
        return dict(self.relations.select("relation", "domains").drop_nulls().iter_rows())


def relations_of(path: Path) -> pl.DataFrame | None:
    """Read cardinality and domains of the relations, if the benchmark has them. Raises ValueError
    for a file that is not parquet."""
    if not path.is_file():
        return None
    try:
        frame = pl.read_parquet(path, glob=False)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path}: not a readable parquet file: {error}") from error
    columns = [column for column in RELATIONS if column in frame.columns]
    return frame.select(columns) if len(columns) > 1 and "relation" in columns else None
