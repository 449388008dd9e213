"""From candidates to examples: labels, templates, caps, evaluation sample (kg_attributes.md, 3.1).

A candidate is one row of numbers: columns for its predicates and its entities. A `Shape` says which
triples it consists of. Both builds come from the same candidates: the structural one counts what
the graph holds, the labelled one is probed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.benchmarks.attributes.frames import PATTERNS, SIZES
from kgprobe.benchmarks.attributes.graph import Graph, GraphError
from kgprobe.benchmarks.attributes.settings import Settings, told
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.sampling import smallest

#: codes of literals begin here; every entity is below
LITERAL = 1 << 63
#: relations that LAMA asks for with one and the same text
SAME_TEXT = ("P17", "P30", "P131", "P276")

NO_LABEL = "no_label: an entity has none"

Chooser = Callable[[pl.DataFrame], pl.DataFrame]


class EmptyBenchmarkError(GraphError):
    """A benchmark without examples; the message has its thresholds and the counts before each."""


class MissingTemplatesError(GraphError):
    """Predicates of sampled triples have no template; the message lists all of them."""


@dataclass(frozen=True)
class Triple:
    """One triple of an example: names of the columns that hold it. `p` may be a fixed relation."""

    role: str
    s: str
    p: str
    o: str
    origin: str = "stored"


@dataclass(frozen=True)
class Shape:
    """What the examples of a benchmark are made of.

    `strata` are the predicate columns, `pattern` formats them, `ids` are the entity columns that
    identify an example within its pattern.
    """

    benchmark: str
    strata: tuple[str, ...]
    pattern: str
    ids: tuple[str, ...]
    triples: tuple[Triple, ...]

    @property
    def entities(self) -> list[str]:
        """All entity columns."""
        return list(dict.fromkeys(c for t in self.triples for c in (t.s, t.o)))

    def patterned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Adds `pattern` as text."""
        return frame.with_columns(pattern=pl.format(self.pattern, *self.strata))


@dataclass(frozen=True)
class Picked:
    """The chosen rows of numbers of both builds, and which of the labelled ones are probed."""

    candidates: pl.DataFrame
    structural: pl.DataFrame
    chosen: pl.DataFrame
    sampled: pl.DataFrame


def capped(shape: Shape, n: int | None, settings: Settings[object]) -> Chooser:
    """Takes at most `n` candidates of every pattern by hash; None takes all."""

    def choose(frame: pl.DataFrame) -> pl.DataFrame:
        if n is None:
            return frame.sort([*shape.strata, *shape.ids])
        return smallest(frame, n, settings.seed, shape.ids, shape.strata, shape.benchmark)

    return choose


def pick(
    shape: Shape,
    candidates: pl.DataFrame,
    graph: Graph,
    settings: Settings[object],
    steps: Funnel,
    choose: Chooser,
    evaluate: int | None,
) -> Picked:
    """Both builds of `candidates`; `evaluate` examples of the labelled one are probed (None: all).

    Raises EmptyBenchmarkError when one of them has no example, MissingTemplatesError when a sampled
    predicate has no template and `missing_template` is `error`.
    """
    usable = candidates
    totals = [candidates.height, candidates.height]
    if settings.shared.require_labels and candidates.height:
        usable = with_labels(candidates, shape.entities, graph)
        steps.kept("labels", usable.height, candidates.height, NO_LABEL)
        usable = templated(shape, usable, settings, steps)
        totals[1] = usable.height
    return pick_of(shape, candidates, usable, settings, steps, choose, evaluate, totals)


def pick_of(
    shape: Shape,
    candidates: pl.DataFrame,
    usable: pl.DataFrame,
    settings: Settings[object],
    steps: Funnel,
    choose: Chooser,
    evaluate: int | None,
    totals: Sequence[int],
) -> Picked:
    """`pick` where the usable candidates are known; `totals` are the numbers of both kinds."""
    require(candidates, shape.benchmark, settings, steps)
    structural = choose(candidates)
    why = "beyond the cap of a pattern"
    steps.kept("structural build: cap", structural.height, totals[0], why)
    require(structural, shape.benchmark, settings, steps)
    require(usable, shape.benchmark, settings, steps)
    chosen = choose(usable)
    steps.kept("cap", chosen.height, totals[1], why)
    require(chosen, shape.benchmark, settings, steps)
    seed, label = settings.seed, f"{shape.benchmark}/evaluation"
    names = [*shape.strata, *shape.ids]
    sampled = chosen if evaluate is None else smallest(chosen, evaluate, seed, names, (), label)
    steps.kept("evaluation sample", sampled.height, chosen.height, "beyond the evaluation sample")
    demand_templates(shape, sampled, settings)
    return Picked(candidates, structural, chosen, sampled)


def require(frame: pl.DataFrame, benchmark: str, settings: Settings[object], steps: Funnel) -> None:
    """Raise EmptyBenchmarkError, with the thresholds and the counts of the steps, for no rows."""
    if frame.height:
        return
    own = told(settings)
    raise EmptyBenchmarkError(
        f"{benchmark}: no example is left. Settings: {own}\n{steps.told()}\n"
        "lower a threshold (attributes.thresholds: small is meant for small graphs) or give a "
        "larger graph"
    )


def with_labels(frame: pl.DataFrame, columns: Sequence[str], graph: Graph) -> pl.DataFrame:
    """Rows whose entities all have a label; literals have their text."""
    for column in columns:
        wide = frame.schema[column] == pl.UInt64
        known = graph.labelled.select(pl.col("id").cast(frame.schema[column]).alias(column))
        if wide:
            literal = frame.filter(pl.col(column) >= LITERAL)
            frame = pl.concat([frame.join(known, on=column, how="semi"), literal])
        else:
            frame = frame.join(known, on=column, how="semi")
    return frame


def templated(
    shape: Shape, frame: pl.DataFrame, settings: Settings[object], steps: Funnel
) -> pl.DataFrame:
    """Rows whose predicates all have a template, where `missing_template` is `drop`."""
    known = settings.templates
    if known is None or settings.shared.missing_template != "drop" or not frame.height:
        return frame
    fixed = [t.p for t in shape.triples if t.p not in frame.columns and t.p not in known]
    rest = frame.clear() if fixed else frame
    lost: dict[str, int] = dict.fromkeys(fixed, frame.height)
    legal = [int(name[1:]) for name in known if "/" not in name]
    for column in shape.strata:
        wrong = rest.filter(~pl.col(column).is_in(legal))
        lost |= {f"P{p}": lost.get(f"P{p}", 0) + n for p, n in wrong[column].value_counts().rows()}
        rest = rest.filter(pl.col(column).is_in(legal))
    reason = "no template"
    if lost:
        order = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
        reason += ": " + ", ".join(f"{name} ({n})" for name, n in order)
    steps.kept("templates", rest.height, frame.height, reason)
    return rest


def demand_templates(shape: Shape, sampled: pl.DataFrame, settings: Settings[object]) -> None:
    """Raise MissingTemplatesError for sampled predicates without one, most frequent first."""
    known = settings.templates
    if known is None or not settings.shared.require_labels:
        return
    counts: dict[str, int] = {}
    for triple in shape.triples:
        if triple.p not in sampled.columns:
            counts[triple.p] = counts.get(triple.p, 0) + sampled.height
            continue
        for p, n in sampled[triple.p].value_counts().rows():
            counts[f"P{p}"] = counts.get(f"P{p}", 0) + n
    refuse_missing(shape.benchmark, counts, known)


def refuse_missing(benchmark: str, counts: Mapping[str, int], known: Sequence[str]) -> None:
    """Raise MissingTemplatesError unless every predicate of `counts` (sampled triples) is known."""
    missing = sorted((-n, name) for name, n in counts.items() if name not in set(known))
    if missing:
        listed = ", ".join(f"{name} ({-n} triples)" for n, name in missing)
        raise MissingTemplatesError(
            f"{benchmark}: {len(missing)} predicates have no template: {listed}\n"
            "add rows to resources/templates/attributes.tsv, or set "
            "attributes.missing_template to drop"
        )


def lengthen(shape: Shape, wide: pl.DataFrame, sampled: pl.DataFrame) -> pl.DataFrame:
    """One row per triple: s and o as numbers, the predicate as text, flags, sampled."""
    names = [*shape.strata, *shape.ids]
    marked = wide.join(
        sampled.select(names).with_columns(sampled=pl.lit(True)), on=names, how="left"
    ).with_columns(pl.col("sampled").fill_null(False))
    marked = shape.patterned(marked)
    if "flags" not in marked.columns:
        marked = marked.with_columns(flags=pl.lit([], dtype=pl.List(pl.String)))
    parts = []
    for position, triple in enumerate(shape.triples):
        fixed = triple.p not in wide.columns
        predicate = pl.lit(triple.p) if fixed else pl.format("P{}", triple.p)
        parts.append(
            marked.select(
                pl.lit(shape.benchmark).alias("benchmark"),
                pl.concat_list([pl.col(c).cast(pl.UInt64) for c in shape.ids]).alias("ids"),
                "pattern",
                pl.lit(position, dtype=pl.Int32).alias("position"),
                pl.lit(triple.role).alias("role"),
                pl.lit(triple.origin).alias("origin"),
                pl.col(triple.s).cast(pl.UInt64).alias("s"),
                predicate.alias("predicate"),
                pl.col(triple.o).cast(pl.UInt64).alias("o"),
                "flags",
                "sampled",
            )
        )
    return pl.concat(parts)


def count_sizes(
    benchmark: str, build: str, rows: pl.DataFrame, settings: Settings[object]
) -> pl.DataFrame:
    """SIZES of one build from its long rows (ids, pattern, s, predicate, o, origin)."""
    stored = rows.filter(pl.col("origin") == "stored")
    triples = stored.select("s", "predicate", "o").unique().height
    predicates = set(stored["predicate"].unique())
    by_label = predicates & set(settings.by_label)
    without = predicates - set(settings.templates or ())
    patterns = rows["pattern"].n_unique()
    ends = pl.concat([stored["s"], stored["o"]])
    row = (
        benchmark,
        build,
        rows.select("ids" if benchmark == "entity_centric" else ["pattern", "ids"]).unique().height,
        triples,
        patterns,
        len(predicates),
        len(predicates - by_label - without),
        len(by_label),
        len(without),
        ends.filter(ends < LITERAL).n_unique(),
        triples / max(patterns, 1),
    )
    return pl.DataFrame([row], schema=dict(SIZES.columns), orient="row")


def count_label_worded(sampled: pl.DataFrame, settings: Settings[object], steps: Funnel) -> None:
    """A step that counts the probed triples whose relation is worded by its label alone."""
    if settings.templates is None:
        return
    known = pl.col("predicate").is_in(list(settings.by_label))
    found = sampled.filter(known).select("s", "predicate", "o").unique()
    counts = found["predicate"].value_counts().sort(
        "count", "predicate", descending=[True, False]
    )  # fmt: skip
    listed = ", ".join(f"{name} ({n})" for name, n in counts.rows())
    steps.kept("of their triples, worded by the relation's label", found.height, reason=listed)


def count_patterns(shape: Shape, picked: Picked, candidates: pl.DataFrame | None) -> pl.DataFrame:
    """PATTERNS; `candidates` (strata, n) overrides the count where not all candidates are kept."""
    if candidates is None:
        candidates = picked.candidates.group_by(shape.strata).agg(pl.len().alias("n"))
    frame = candidates.rename({"n": "candidates"})
    parts = {
        "structural": picked.structural,
        "examples": picked.chosen,
        "sampled": picked.sampled,
    }
    for name, part in parts.items():
        counts = part.group_by(shape.strata).agg(pl.len().alias(name))
        frame = frame.join(counts, on=list(shape.strata), how="left")
    frame = shape.patterned(frame).with_columns(benchmark=pl.lit(shape.benchmark))
    numbers = [pl.col(c).fill_null(0).cast(pl.Int64) for c in ("candidates", *parts)]
    return frame.with_columns(numbers).select(list(PATTERNS.columns))
