"""From a run's answers on the nine benchmarks to the alphas that the metrics take.

fillings or scores  ->  alpha per prompt  ->  pooled over prompts  ->  ALPHAS  ->  METRICS
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.graph_frames import EXAMPLES
from kgprobe.metrics import attributes
from kgprobe.tables import attributes_alpha as alpha
from kgprobe.tables import attributes_baselines as baselines
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes_published import BENCHMARKS

#: What a number depends on, beside benchmark and pattern.
SETTINGS = ("model", "method", "pooling", "k", "kind", "gold")
#: The setting of figures and of single numbers.
HEADLINE = {"k": 1, "kind": "exact", "gold": "own", "pooling": "best"}
METRICS = schema.Contract(
    "METRICS",
    {
        "model": pl.String,
        "method": pl.String,
        "pooling": pl.String,
        "benchmark": pl.String,
        "pattern": pl.String,
        "k": pl.Int32,
        "kind": pl.String,
        "gold": pl.String,
        "value_pooled": pl.Float64,
        "value_mean": pl.Float64,
        "numerator": pl.Float64,
        "denominator": pl.Float64,
        "examples": pl.Int64,
        "undefined": pl.Int64,
        "missing": pl.Int64,
        "low": pl.Float64,
        "high": pl.Float64,
        "interval": pl.String,
    },
    (*SETTINGS, "benchmark", "pattern"),
    frozenset({"value_pooled", "value_mean", "low", "high"}),
)
#: Methods whose alphas are made of generated text or of tokens at masks, and of ranked candidates.
FILLED, RANKED = "fill", "sentence"


@dataclass(frozen=True)
class Answers:
    """What one probe answered: alpha per prompt, and how many first texts were verbose, of all.

    `ways`: how first texts came to be right (`attributes_alpha.by_way`); of those who write.
    """

    probe: Probe
    alphas: pl.DataFrame
    verbose: tuple[int, int] = (0, 0)
    ways: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """One of the nine as it was probed: EXAMPLES in the evaluation sample, ITEMS, CANDIDATES."""

    name: str
    examples: pl.DataFrame
    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame

    @property
    def rows(self) -> pl.DataFrame:
        """A row per triple of an example, with the item that asks it."""
        item = pl.format("{}#{}", "example", "position").alias("item")
        return self.examples.select("benchmark", "example", "pattern", "position", item)


@dataclass(frozen=True)
class Study:
    """All of a run: benchmarks by name, answers, baselines as ALPHAS, and what follows."""

    benchmarks: Mapping[str, Benchmark]
    answers: Sequence[Answers]
    baselines: pl.DataFrame
    ambiguous_denominator: str = "or"
    seed: int = 0
    #: example ids that some model could not be asked, left out for all of them
    left_out: frozenset[str] = field(default_factory=frozenset)

    def alphas(self) -> pl.DataFrame:
        """ALPHAS of all probes and baselines under every setting, left-out examples taken away."""
        parts = [triples(a, self.benchmarks[a.probe.benchmark]) for a in self.answers]
        both = pl.concat([*parts, self.baselines.select(parts[0].columns)])
        return both.filter(~pl.col("example").is_in(sorted(self.left_out)))


def read_benchmark(folder: str | Path) -> Benchmark:
    """The frames of one benchmark's folder."""
    folder = Path(folder)
    examples = schema.read(folder / "examples.parquet", EXAMPLES)
    return Benchmark(
        folder.name,
        examples.filter("sampled"),
        schema.read(folder / "items.parquet", schema.ITEMS),
        schema.read(folder / "candidates.parquet", schema.CANDIDATES),
        schema.read(folder / "prompts.parquet", schema.PROMPTS),
    )


def read_answers(
    probe: Probe, benchmark: Benchmark, path: str | Path, aliases: alpha.Aliases | None = None
) -> Answers:
    """The answers of a probe from its FILLS (with their golds beside them) or SCORES.

    With `aliases` a generated text may also equal one of them; masks and candidates know labels.
    """
    path = Path(path)
    if probe.method.split("-")[0] == RANKED:
        scores = schema.read(path, schema.SCORES)
        return Answers(probe, alpha.of_candidates(scores, benchmark.items))
    fills = schema.read(path, schema.FILLS)
    if probe.kind == "masked":
        golds = schema.read(path.with_name(f"{path.stem}.golds.parquet"), schema.FILL_GOLDS)
        return Answers(probe, alpha.of_masks(fills, golds))
    names = alpha.gold_names(benchmark.examples, aliases)
    alphas, ways = alpha.of_texts(fills, names), alpha.by_way(fills, names)
    return Answers(probe, alphas, alpha.verbose(fills, names), ways)


def triples(answers: Answers, benchmark: Benchmark) -> pl.DataFrame:
    """ALPHAS of one probe: every triple of every sampled example under every setting.

    A triple that was not asked, or whose gold was too long, has a null alpha: missing, not wrong.
    """
    found = alpha.pooled(answers.alphas).rename({"alpha_kind": "kind"})
    settings = found.select("k", "kind", "gold", "pooling").unique()
    every = benchmark.rows.join(settings, how="cross")
    every = every.join(found, on=["item", "k", "kind", "gold", "pooling"], how="left")
    named = every.with_columns(
        model=pl.lit(answers.probe.model), method=pl.lit(answers.probe.method)
    )
    return named.select("benchmark", "example", "pattern", "position", "alpha", *SETTINGS)


def read(
    probes: Sequence[Probe],
    paths: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    edges: pl.DataFrame,
    literals: pl.DataFrame,
    aliases: alpha.Aliases | None = None,
    **options: Any,
) -> Study:
    """The study of a run's files: `paths` holds the answers of `probes`, in the same order.

    `folders`: benchmark -> its folder; `aliases` as in `read_answers`; `options` as in `study`.
    """
    benchmarks = {name: read_benchmark(folders[name]) for name in ordered(list(folders))}
    pairs = zip(probes, paths, strict=True)
    answers = [
        read_answers(probe, benchmarks[probe.benchmark], path, aliases) for probe, path in pairs
    ]
    return study(answers, benchmarks, edges, literals, **options)


def study(
    answers: Sequence[Answers],
    benchmarks: Mapping[str, Benchmark],
    edges: pl.DataFrame,
    literals: pl.DataFrame,
    ambiguous_denominator: str = "or",
    intersect: bool = True,
    seed: int = 0,
) -> Study:
    """The study of a run; `edges` and `literals` are those of the graph, for the baselines.

    `intersect`: an example that some model could not be asked completely (a gold of too many
    tokens, a failed request) is left out for all models alike, so that they stay comparable.
    """
    counted = baselines.frequencies(edges, literals, benchmarks.values())
    made = [baselines.alphas(b.examples, counted) for b in benchmarks.values()]
    base = Study(benchmarks, answers, pl.concat(made), ambiguous_denominator, seed)
    if not intersect:
        return base
    missing = {
        example
        for a in answers
        for example in triples(a, benchmarks[a.probe.benchmark])
        .filter(pl.col("alpha").is_null())["example"]
        .unique()
    }
    left_out = frozenset(missing)
    return Study(benchmarks, answers, base.baselines, ambiguous_denominator, seed, left_out)


def parts(made: Study, alphas: pl.DataFrame) -> pl.DataFrame:
    """Numerator, denominator and partial score of every example in the headline's setting."""
    own = alphas.filter(**HEADLINE)
    return attributes.parts(own, by=SETTINGS, ambiguous_denominator=made.ambiguous_denominator)


def measure(made: Study, alphas: pl.DataFrame) -> pl.DataFrame:
    """METRICS of a study: the nine metrics under every setting."""
    return _metrics(made, alphas, patterns=False)


def measure_patterns(made: Study, alphas: pl.DataFrame) -> pl.DataFrame:
    """METRICS of every pattern under the headline's setting.

    Hierarchy has one pattern: it is broken by the class two up.
    """
    own = alphas.filter(**HEADLINE)
    if "hierarchy" in made.benchmarks:
        tops = made.benchmarks["hierarchy"].examples.filter(role="two_up")
        names = tops.select("example", top=pl.format("{} ({})", "object_label", "object"))
        own = own.join(names, on="example", how="left")
        own = own.with_columns(pattern=pl.coalesce("top", "pattern")).drop("top")
    return _metrics(made, own, patterns=True)


def _metrics(made: Study, alphas: pl.DataFrame, patterns: bool) -> pl.DataFrame:
    found = attributes.measure(
        alphas,
        by=SETTINGS,
        patterns=patterns,
        ambiguous_denominator=made.ambiguous_denominator,
        seed=made.seed,
    )
    return found.select([pl.col(n).cast(t) for n, t in METRICS.columns.items()])


def ordered(names: Sequence[str]) -> list[str]:
    """Benchmarks in the order of the paper's Table 2."""
    return [name for name in BENCHMARKS if name in names]


def example_rows(
    answers: Answers, benchmark: Benchmark, fills: pl.DataFrame
) -> tuple[str, list[dict[str, Any]]]:
    """(example id, its triples with first prompt, first texts and alpha): one worked example.

    The first example, in order of its id, of which the model has some triple right at 1; else the
    first.
    """
    own = answers.alphas.filter((pl.col("k") == 1) & (pl.col("gold") == "own"))
    own = own.filter(pl.col("alpha_kind") == "exact")
    first = own.filter(pl.col("template") == pl.col("template").min().over("item"))
    right = first.filter(pl.col("alpha") == 1)["item"].str.split("#").list.first()
    chosen = min(right, default=min(benchmark.rows["example"]))
    texts = {
        (r, i): text for r, i, text in benchmark.prompts.select("relation", "index", "text").rows()
    }
    rows = []
    for row in benchmark.examples.filter(example=chosen).sort("position").iter_rows(named=True):
        item = f"{chosen}#{row['position']}"
        asked = first.filter(item=item)
        template = asked["template"][0] if asked.height else None
        said = fills.filter(
            (pl.col("item") == item)
            & (pl.col("template") == (template if template is not None else -1))
            & (pl.col("position") == alpha.WHOLE)
        ).sort("rank")
        text = texts.get((row["predicate"], template), "")
        rows.append(
            {
                "role": row["role"],
                "prompt": text.replace("[X]", row["subject_label"] or "?").replace("[Y]", "…"),
                "object": row["object_label"],
                "first answers": "; ".join(said["text"].unique(maintain_order=True).head(3)),
                "right": "yes" if asked.height and asked["alpha"][0] == 1 else "no",
            }
        )
    return chosen, rows


def worked_examples(
    probes: Sequence[Probe],
    paths: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    model: str,
    aliases: alpha.Aliases | None = None,
) -> list[dict[str, Any]]:
    """One worked example of every benchmark that `model` ("model | method") filled.

    A model that only ranked candidates wrote nothing that could be shown. None of bias: its
    subjects are little known persons, and it is shown in aggregate only.
    """
    found = []
    for probe, path in zip(probes, paths, strict=True):
        is_filled = probe.method.split("-")[0] == FILLED
        if is_filled and f"{probe.model} | {probe.method}" == model and probe.benchmark != "bias":
            benchmark = read_benchmark(folders[probe.benchmark])
            answers = read_answers(probe, benchmark, path, aliases)
            fills = schema.read(path, schema.FILLS)
            _, rows = example_rows(answers, benchmark, fills)
            found += [{"benchmark": probe.benchmark, "model": probe.model, **row} for row in rows]
    return found
