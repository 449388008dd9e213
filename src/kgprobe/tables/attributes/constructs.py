"""Contents of the nine benchmarks: sizes (Table 1), and three statistics that may be unexpected.

asymmetry   how often the reversed probe is right: hardly ever, so the metric is forward accuracy
paths       the number of start entities, which is small
bias        the number of triples whose object is a continent
"""

from collections.abc import Iterator, Mapping

import polars as pl

from kgprobe.metrics.sums import ordered_sum
from kgprobe.tables.attributes.published import PublishedAttributes
from kgprobe.tables.attributes.study import HEADLINE, SETTINGS, groups, of_row
from kgprobe.tables.results import Number, as_published

TABLE1 = "Mruthyunjaya et al. 2023, Table 1"
#: measure of a build -> its printed counterpart; printed predicates count patterns (predicates,
#: pairs or combinations), as ours do
SIZES = {
    "triples": "triples", "patterns": "predicates", "entities": "entities",
    "triples per pattern": "triples_per_predicate",
    **dict.fromkeys(("predicates", "written", "by label", "without template", "examples"), ""),
}  # fmt: skip
SAMPLED, PAPER = "sampled", "paper"
CONTINENT = "P30"
BUILT, PROBED = "built", "probed"
FIGURES = {"paths": "entities that they start from", "bias": f"continents ({CONTINENT})"}
PROBES = ("forward probe right", "reversed probe right")


def sizes(frame: pl.DataFrame, published: PublishedAttributes) -> Iterator[Number]:
    """Yield Table 1: SIZES of every build (`slice`) of every benchmark, and the printed ones."""
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


def estimates(examples: Mapping[str, pl.DataFrame], alphas: pl.DataFrame) -> Iterator[Number]:
    """Yield the three statistics, of all built EXAMPLES and of those probed; asymmetry per model,
    from `alphas` at the setting HEADLINE."""
    chosen = alphas.filter(**HEADLINE, benchmark="asymmetry").drop_nulls("alpha")
    for row, rows in groups(chosen, "benchmark", *SETTINGS, "position"):
        right = rows.select(ordered_sum("alpha")).item()
        yield of_row(row, metric=PROBES[row["position"]], value=right, n=rows.height)
    for name, metric in FIGURES.items():
        for build in (BUILT, PROBED) if name in examples else ():
            rows = examples[name] if build == BUILT else examples[name].filter("sampled")
            if name == "paths":
                value = rows.filter(position=0)["subject"].n_unique()
            else:
                if not rows["predicate"].str.contains(r"^P[0-9]+$").all():
                    continue  # a user-supplied graph has other ids
                value = rows.filter(predicate=CONTINENT).height
            n = rows["example"].n_unique()
            yield Number(metric=metric, benchmark=name, slice=build, value=value, n=n)
