"""From a run's answers on the nine benchmarks to the alphas that the metrics take.

fillings or scores  ->  alpha per prompt  ->  pooled over prompts  ->  alpha of every triple
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.metrics import attributes
from kgprobe.tables.answers import Probe, questions
from kgprobe.tables.attributes import alpha
from kgprobe.tables.results import Number

#: Who answered, in the words of the sheet.
WHO = ("model", "prompt", "method")
#: What a number depends on, beside benchmark and pattern.
SETTINGS = (*WHO, "pooling", "k", "kind", "gold")
#: The setting of figures and of single numbers.
HEADLINE = {"k": 1, "kind": "exact", "gold": "own", "pooling": "best"}
#: The id of a triple's question.
ITEM = pl.format("{}#{}", "example", "position").alias("item")
#: Methods whose alphas are made of generated text or of tokens at masks, and of ranked candidates.
FILLED, RANKED = "fill", "sentence"
#: Alpha per prompt (alpha.ALPHA), and first texts of those who write (alpha.FIRSTS).
Answers = tuple[pl.DataFrame, pl.DataFrame]


@dataclass(frozen=True)
class Benchmark:
    """One of the nine as it was probed: EXAMPLES in the evaluation sample, ITEMS, CANDIDATES."""

    name: str
    examples: pl.DataFrame
    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame


@dataclass(frozen=True)
class Study:
    """All of a run: benchmarks by name, answers by probe, baselines, and what follows."""

    benchmarks: Mapping[str, Benchmark]
    answers: Mapping[Probe, Answers]
    baselines: pl.DataFrame
    ambiguous_denominator: str = "or"
    seed: int = 0
    #: example ids that some model could not be asked, left out for all of them
    left_out: frozenset[str] = field(default_factory=frozenset)

    def alphas(self) -> pl.DataFrame:
        """Alphas of all probes and baselines under every setting, left-out examples taken away."""
        parts = [
            triples(probe, found, self.benchmarks[probe.benchmark])
            for probe, (found, _) in self.answers.items()
        ]
        parts += [self.baselines.select(parts[0].columns)] if self.baselines.height else []
        return pl.concat(parts).filter(~pl.col("example").is_in(sorted(self.left_out)))

    def measure(self, alphas: pl.DataFrame, *further: str, patterns: bool = False) -> pl.DataFrame:
        """The metric under every setting (and `further` columns); see metrics.attributes."""
        return attributes.measure(
            alphas, [*SETTINGS, *further], patterns, self.seed, self.ambiguous_denominator
        )

    def parts(self, alphas: pl.DataFrame) -> pl.DataFrame:
        """Numerator, denominator and partial score of every example."""
        return attributes.parts(alphas, SETTINGS, self.ambiguous_denominator)


def is_ranked(method: str) -> bool:
    """Whether candidates were ranked, and nothing was filled or generated."""
    return method.split("-")[0] == RANKED


def filled() -> pl.Expr:
    """Rows of probes that fill or generate: no baselines, no ranked candidates."""
    return pl.col("method").str.starts_with(FILLED)


def groups(frame: pl.DataFrame, *keys: str) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """The rows of every key, which is a mapping, in the order of the keys."""
    for key, rows in frame.sort(keys, maintain_order=True).group_by(keys, maintain_order=True):
        yield dict(zip(keys, key, strict=True)), rows


def of_row(row: Mapping[str, Any], **further: Any) -> Number:
    """A number with the benchmark and setting of a row of alphas, or of what is made of them."""
    names = {"k": "k", "alpha": "kind", "gold": "gold", "pooling": "pooling"}
    setting = {name: row[column] for name, column in names.items() if row[column] != ""}
    who = {name: row[name] for name in WHO}
    return Number(benchmark=row["benchmark"], setting=setting, **who, **further)


def read_benchmark(folder: str | Path) -> Benchmark:
    """The frames of one benchmark's folder."""
    examples = schema.read(Path(folder) / "examples.parquet", EXAMPLES).filter("sampled")
    return Benchmark(Path(folder).name, examples, *questions(folder))


def read_answers(
    probe: Probe,
    benchmark: Benchmark,
    path: str | Path,
    aliases: alpha.Aliases | None = None,
    may_be_empty: bool = False,
) -> Answers:
    """The answers of a probe from its FILLS (with their golds beside them) or SCORES; with
    `aliases` a text may equal one of them, `may_be_empty` the FILLS of a baseline's few blanks."""
    path, nothing = Path(path), pl.DataFrame(schema=alpha.FIRSTS)
    if is_ranked(probe.method):
        return alpha.of_candidates(schema.read(path, schema.SCORES), benchmark.items), nothing
    fills = schema.read(path, replace(schema.FILLS, may_be_empty=may_be_empty))
    if probe.kind == "masked":
        golds = schema.read(path.with_name(f"{path.stem}.golds.parquet"), schema.FILL_GOLDS)
        return alpha.of_masks(fills, golds, alpha.linked(benchmark.items)), nothing
    names = alpha.gold_names(benchmark.examples, aliases)
    more = alpha.linked_names(benchmark.items, benchmark.candidates, aliases)
    return alpha.of_texts(fills, names, more), alpha.firsts(fills, names)


def triples(probe: Probe, alphas: pl.DataFrame, benchmark: Benchmark) -> pl.DataFrame:
    """Every triple of every sampled example under every setting, from alphas per prompt; one that
    was not asked, or whose gold was too long, has a null alpha: missing, not wrong."""
    found, how = alpha.pooled(alphas), ["k", "kind", "gold", "pooling"]
    every = benchmark.examples.select("benchmark", "example", "pattern", "position", ITEM)
    every = every.join(found.select(how).unique(), how="cross")
    every = every.join(found, on=["item", *how], how="left")
    named = every.with_columns(pl.lit(getattr(probe, name)).alias(name) for name in WHO)
    return named.select("benchmark", "example", "pattern", "position", "alpha", *SETTINGS)


def study(
    answers: Mapping[Probe, Answers],
    benchmarks: Mapping[str, Benchmark],
    guesses: pl.DataFrame | None = None,
    ambiguous_denominator: str = "or",
    intersect: bool = True,
    seed: int = 0,
) -> Study:
    """The study of a run; `guesses`: `baselines.guesses`. `intersect`: an example that some model
    could not be asked completely is left out for all alike, so that they stay comparable."""
    none = pl.DataFrame() if guesses is None else guesses
    made = Study(benchmarks, answers, none, ambiguous_denominator, seed)
    if not intersect:
        return made
    missing = made.alphas().filter(pl.col("alpha").is_null())["example"]
    return replace(made, left_out=frozenset(missing))
