"""What the nine benchmarks hold, and a reader would not guess: four figures beside their tables.

asymmetry   the reversed probe is hardly ever right: the metric is accuracy of the forward one
composite   how many examples follow a rule (a, r1, b), (b, r2, c) => (a, r3, c) that holds
paths       from how few entities they start
bias        how many of its triples are continents
"""

from collections.abc import Mapping
from functools import partial

import polars as pl

from kgprobe.metrics.sums import ordered_sum
from kgprobe.sampling import smallest
from kgprobe.tables import table
from kgprobe.tables.attributes_baselines import METHOD as BASELINE
from kgprobe.tables.attributes_study import HEADLINE
from kgprobe.tables.attributes_tables import cell

#: A rule counts from this PCA confidence on.
CONFIDENT = 0.5
#: Subjects that a rule is measured on, by hash: all of them in most, and no hub is expanded.
SUBJECTS = 1000
CONTINENT = "P30"
BUILT, PROBED = "built", "probed"


def constructs(
    examples: Mapping[str, pl.DataFrame], edges: pl.DataFrame, alphas: pl.DataFrame, seed: int = 0
) -> pl.DataFrame | None:
    """`kg_constructs`: the four figures, of all built examples and of those probed; counts.

    `examples`: EXAMPLES by benchmark, all builds' labelled rows; `edges`: of the graph; `alphas`:
    ALPHAS. n: examples. asymmetry (best prompt, @1, exact, own gold) has a row per model.
    """
    cells = _asymmetry(alphas)
    for name, figures in (("composite", _composite), ("paths", _paths), ("bias", _bias)):
        if name not in examples:
            continue
        for build in (BUILT, PROBED):
            rows = examples[name] if build == BUILT else examples[name].filter("sampled")
            n = rows["example"].n_unique()
            make = partial(cell, "kg_constructs", f"{name} | {build}", n=n)
            found = figures(rows, edges, seed)
            cells += [make(column, value=value) for column, value in found.items()]
    return table.build(cells) if cells else None


def _asymmetry(alphas: pl.DataFrame) -> list[dict[str, object]]:
    own = alphas.filter(**HEADLINE, benchmark="asymmetry").filter(pl.col("method") != BASELINE)
    sums = own.drop_nulls("alpha").group_by("model", "method", "position").agg(
        ordered_sum("alpha"), n=pl.len()
    )  # fmt: skip
    columns = ("forward probe right", "reversed probe right")
    return [
        cell("kg_constructs", f"asymmetry | {model} | {method}", columns[position], right, n)
        for model, method, position, right, n in sums.sort("model", "method", "position").rows()
    ]


def _composite(rows: pl.DataFrame, edges: pl.DataFrame, seed: int) -> dict[str, float]:
    patterns = rows.select("example", "pattern").unique()
    held = confidences(edges, patterns["pattern"].unique().to_list(), seed)
    sure = [name for name, value in held.items() if value >= CONFIDENT]
    follow = patterns.filter(pl.col("pattern").is_in(sure)).height
    return {f"follow a rule of PCA confidence of at least {CONFIDENT}": follow}


def _paths(rows: pl.DataFrame, edges: pl.DataFrame, seed: int) -> dict[str, float]:
    return {"entities that they start from": rows.filter(position=0)["subject"].n_unique()}


def _bias(rows: pl.DataFrame, edges: pl.DataFrame, seed: int) -> dict[str, float]:
    return {f"continents ({CONTINENT})": rows.filter(predicate=CONTINENT).height}


def confidences(edges: pl.DataFrame, patterns: list[str], seed: int = 0) -> dict[str, float]:
    """PCA confidence of the rules that patterns of composite (`P22>P26=P25`) name.

    Of the distinct pairs (a, c), a != c, that r1 and r2 lead to and whose a has some object of r3,
    the share with (a, r3, c). Source: Galárraga et al. 2013 (AMIE), section 4. Measured on SUBJECTS
    of the a's, by hash, where there are more.
    """
    named = {name: [int(p[1:]) for p in name.replace("=", ">").split(">")] for name in patterns}
    used = {p for relations in named.values() for p in relations}
    found = edges.filter(pl.col("p").is_in(sorted(used))).partition_by("p", as_dict=True)
    by = {key[0]: frame.select("s", "o") for key, frame in found.items()}
    return {name: _confidence([by[p] for p in own], seed) for name, own in sorted(named.items())}


def _confidence(relations: list[pl.DataFrame], seed: int) -> float:
    r1, r2, r3 = relations
    known = r1.select("s").unique().join(r3.select("s").unique(), on="s", how="semi")
    known = smallest(known, SUBJECTS, seed, ["s"], label="pca")
    steps = r1.join(known, on="s", how="semi").rename({"o": "middle"})
    pairs = steps.join(r2.rename({"s": "middle"}), on="middle").select("s", "o").unique()
    pairs = pairs.filter(pl.col("s") != pl.col("o"))
    return pairs.join(r3, on=["s", "o"], how="semi").height / max(pairs.height, 1)
