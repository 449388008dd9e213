"""What the nine benchmarks hold: sizes (Table 1), and four figures that a reader would not guess.

asymmetry   the reversed probe is hardly ever right: the metric is accuracy of the forward one
composite   how many examples follow a rule (a, r1, b), (b, r2, c) => (a, r3, c) that holds
paths       from how few entities they start
bias        how many of its triples are continents
"""

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from kgprobe.metrics.sums import ordered_sum
from kgprobe.sampling import smallest
from kgprobe.tables.attributes.published import PublishedAttributes
from kgprobe.tables.attributes.study import HEADLINE, SETTINGS, groups, of_row
from kgprobe.tables.results import Number, as_published

TABLE1 = "Mruthyunjaya et al. 2023, Table 1"
#: a measure of a build -> the printed column that is its counterpart; printed predicates count
#: patterns (predicates, pairs or combinations), as ours do
SIZES = {
    "triples": "triples", "patterns": "predicates", "entities": "entities",
    "triples per pattern": "triples_per_predicate",
    **dict.fromkeys(("predicates", "written", "by label", "without template", "examples"), ""),
}  # fmt: skip
SAMPLED, PAPER = "sampled", "paper"
#: A rule counts from this PCA confidence on.
CONFIDENT = 0.5
#: Subjects that a rule is measured on, by hash: all of them in most, and no hub is expanded.
SUBJECTS = 1000
CONTINENT = "P30"
BUILT, PROBED = "built", "probed"
FIGURES = {
    "composite": f"follow a rule of PCA confidence of at least {CONFIDENT}",
    "paths": "entities that they start from",
    "bias": f"continents ({CONTINENT})",
}
PROBES = ("forward probe right", "reversed probe right")


def sizes(frame: pl.DataFrame, published: PublishedAttributes) -> Iterator[Number]:
    """Table 1: SIZES of every build (`slice`) of every benchmark, and the printed ones."""
    for row in frame.iter_rows(named=True):
        known = published.sizes.get(row["benchmark"], {}) if row["build"] != SAMPLED else {}
        base = Number(benchmark=row["benchmark"], slice=row["build"], n=row["examples"])
        for metric, other in SIZES.items():
            theirs = float(known[other]) if other and known else None
            number = base.but(metric=metric, value=row[metric.replace(" ", "_")])
            yield number.but(**as_published(theirs, TABLE1))
    for benchmark in published.sizes.keys() & set(frame["benchmark"]):
        base = Number(benchmark=benchmark, slice=PAPER, method="published")
        for metric, other in ((metric, other) for metric, other in SIZES.items() if other):
            value = float(published.sizes[benchmark][other])
            yield base.but(metric=metric, value=value, **as_published(value, TABLE1))


def estimates(
    examples: Mapping[str, pl.DataFrame], edges: pl.DataFrame, alphas: pl.DataFrame, seed: int = 0
) -> Iterator[Number]:
    """The four figures, of all built EXAMPLES (with `p`, the number of the predicate) and of those
    probed; asymmetry per model, of `alphas` at the headline's setting."""
    chosen = alphas.filter(**HEADLINE, benchmark="asymmetry").drop_nulls("alpha")
    for row, rows in groups(chosen, "benchmark", *SETTINGS, "position"):
        right = rows.select(ordered_sum("alpha")).item()
        yield of_row(row, metric=PROBES[row["position"]], value=right, n=rows.height)
    for name, metric in FIGURES.items():
        for build in (BUILT, PROBED) if name in examples else ():
            rows = examples[name] if build == BUILT else examples[name].filter("sampled")
            if name == "paths":
                value = rows.filter(position=0)["subject"].n_unique()
            elif name == "bias":
                if not rows["predicate"].str.contains(r"^P[0-9]+$").all():
                    continue  # an own graph has other ids
                value = rows.filter(predicate=CONTINENT).height
            else:
                by_example = rows.sort("position").group_by("example").agg("p")
                rules = [tuple(rule) for rule in by_example["p"].to_list()]
                held = confidences(edges, set(rules), seed)
                value = sum(held[rule] >= CONFIDENT for rule in rules)
            n = rows["example"].n_unique()
            yield Number(metric=metric, benchmark=name, slice=build, value=value, n=n)


def confidences(
    edges: pl.DataFrame, rules: Collection[tuple[int, ...]], seed: int = 0
) -> dict[tuple[int, ...], float]:
    """PCA confidence (Galárraga et al. 2013, section 4) of rules, each the numbers of r1, r2, r3:
    of the distinct pairs (a, c), a != c, that r1 and r2 lead to and whose a has some object of r3,
    the fraction with (a, r3, c)."""
    held = {}
    for rule in sorted(rules):
        r1, r2, r3 = (edges.filter(p=p).select("s", "o") for p in rule)
        known = r1.select("s").unique().join(r3.select("s").unique(), on="s", how="semi")
        known = smallest(known, SUBJECTS, seed, ["s"], label="pca")
        steps = r1.join(known, on="s", how="semi").rename({"o": "middle"})
        pairs = steps.join(r2.rename({"s": "middle"}), on="middle").select("s", "o").unique()
        pairs = pairs.filter(pl.col("s") != pl.col("o"))
        held[rule] = pairs.join(r3, on=["s", "o"], how="semi").height / max(pairs.height, 1)
    return held
