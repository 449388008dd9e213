"""From candidates to examples: labels, templates, caps, evaluation sample.

The order of these steps: docs/papers/attributes.md, Benchmarks.

A candidate is one row of numbers: columns for its predicates and its entities, and `flag`, a word
or null. A `Shape` says which triples it consists of. Candidates are an expression; only the chosen
ones leave the engine. Both builds come from the same candidates: the structural one counts what the
graph holds, the labelled one is probed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import ibis
import polars as pl
from ibis.expr.types import BooleanValue, StringValue, Table

from kgprobe.benchmarks.attributes.frames import PATTERNS, SIZES
from kgprobe.benchmarks.attributes.settings import AttributeSettings, as_record
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge import engine
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError
from kgprobe.templates import STEP

#: codes of literals begin here; every entity is below
LITERAL = 1 << 63
#: relations that LAMA asks for with one and the same text
SAME_TEXT = ("P17", "P30", "P131", "P276")

#: the step that names relations of the settings which the graph lacks
SETTLED = "relations of the settings"
NO_LABEL = "no_label: an entity has none"

Chooser = Callable[[Table], Table]


class EmptyBenchmarkError(GraphError):
    """A benchmark without examples; the message has its thresholds and the counts before each.

    `reason`: the first step that left nothing, and the relations that the graph lacks.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class MissingTemplatesError(GraphError):
    """Predicates of sampled triples have no template; the message lists all of them."""


@dataclass(frozen=True)
class TripleColumns:
    """One triple of an example: names of the columns that hold it. `p` may be a fixed relation, or
    two columns with STEP between them, for two steps."""

    role: str
    s: str
    p: str
    o: str
    origin: str = "stored"

    def relation(self, columns: Collection[str], graph: Graph) -> pl.Expr:
        """The relation as text, of rows of numbers with these columns."""
        parts = self.p.split(STEP)
        if not {*parts} <= {*columns}:
            return pl.lit(self.p)
        return pl.concat_str([graph.ids.relations(name) for name in parts], separator=STEP)

    def is_fixed(self, columns: Collection[str]) -> bool:
        """Whether the relation is none of these columns, and no two of them."""
        return not {*self.p.split(STEP)} <= {*columns}


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
    triples: tuple[TripleColumns, ...]
    #: whether its relations follow each other, each as important as the first
    chain: bool = False

    @property
    def entities(self) -> list[str]:
        """All entity columns."""
        return list(dict.fromkeys(c for t in self.triples for c in (t.s, t.o)))

    def patterned(self, frame: pl.DataFrame, graph: Graph) -> pl.DataFrame:
        """Adds `pattern` as text."""
        told = (graph.ids.relations(name) for name in self.strata)
        return frame.with_columns(pattern=pl.format(self.pattern, *told))


@dataclass(frozen=True)
class Picked:
    """The chosen rows of numbers of both builds, and which of the labelled ones are probed.

    `counts` (strata, n, labelled): the candidates of every pattern.
    """

    counts: pl.DataFrame
    structural: pl.DataFrame
    chosen: pl.DataFrame
    sampled: pl.DataFrame


def capped(
    shape: Shape, n: int | None, graph: Graph, settings: AttributeSettings[object]
) -> Chooser:
    """Takes at most `n` candidates of every pattern by hash; None takes all."""

    def choose(rows: Table) -> Table:
        if n is None:
            return rows
        return graph.smallest(rows, n, settings.seed, shape.ids, shape.strata, shape.benchmark)

    return choose


def told_relations(names: Collection[str], graph: Graph, steps: Funnel) -> list[int]:
    """The numbers of relations that settings name; the funnel tells those that the graph lacks."""
    found = graph.ids.numbers(names)
    if lacking := graph.ids.lacking(names):
        why = f"roles and known of sources.graphs name none for {', '.join(lacking)}"
        steps.kept(SETTLED, len(names) - len(lacking), len(names), why)
    return found


def flag(word: str, where: BooleanValue) -> StringValue:
    """`word` where a condition holds, else null: the column `flag` of candidates."""
    return ibis.ifelse(where, word, ibis.null("string"))


def pick(
    shape: Shape,
    candidates: Table,
    graph: Graph,
    settings: AttributeSettings[object],
    steps: Funnel,
    choose: Chooser,
    evaluate: int | None,
) -> Picked:
    """Both builds of `candidates`; `evaluate` examples of the labelled one are probed (None: all).

    Raises EmptyBenchmarkError when one of them has no example, MissingTemplatesError when a sampled
    predicate has no template and `missing_template` is `error`.
    """
    kept = graph.engine.keep(marked(shape, candidates, graph, settings))
    strata, ids = list(shape.strata), list(shape.ids)
    grouped = engine.counted(kept, strata, labelled=kept["labelled"].sum())
    counts = graph.frame(grouped).cast(pl.Int64).sort(strata)
    total = usable = int(counts["n"].sum())
    require(total, shape.benchmark, settings, steps)
    worded = kept.filter(kept["labelled"])
    if settings.shared.require_labels:
        usable = int(counts["labelled"].sum())
        steps.kept("labels", usable, total, NO_LABEL)
        legal, usable = templated(shape, counts, graph, settings, steps)
        if legal is not None:
            worded = worded.semi_join(graph.engine.table(legal), strata)
    structural = _collected(graph, choose(kept), shape)
    why = "beyond the cap of a pattern"
    steps.kept("structural build: cap", structural.height, total, why)
    require(structural.height, shape.benchmark, settings, steps)
    require(usable, shape.benchmark, settings, steps)
    chosen = structural
    if settings.shared.require_labels:
        chosen = _collected(graph, choose(worded), shape)
    steps.kept("cap", chosen.height, usable, why)
    require(chosen.height, shape.benchmark, settings, steps)
    graph.engine.drop(kept)
    seed, label = settings.seed, f"{shape.benchmark}/evaluation"
    names = [*strata, *ids]
    sampled = chosen
    if evaluate is not None:
        sampled = graph.ids.sample(chosen, evaluate, seed, names, label)
    steps.kept("evaluation sample", sampled.height, chosen.height, "beyond the evaluation sample")
    demand_templates(shape, sampled, graph, settings)
    return Picked(counts, structural, chosen, sampled)


def _collected(graph: Graph, rows: Table, shape: Shape) -> pl.DataFrame:
    """Rows in the order of their key: relations Int64, entities UInt64.

    Raises ValueError when the key repeats, since a sample would be arbitrary.
    """
    key = [*shape.strata, *shape.ids]
    # codes of literals are negative inside the engine: the same 64 bits
    entities = pl.col(shape.entities).cast(pl.Int64).reinterpret(signed=False)
    frame = graph.frame(rows.drop("labelled")).with_columns(
        entities, pl.col(shape.strata).cast(pl.Int64)
    )
    if frame.select(key).is_duplicated().any():
        raise ValueError(f"{shape.benchmark}: {key} repeat in the chosen candidates")
    return frame.sort(key)


def marked(
    shape: Shape, candidates: Table, graph: Graph, settings: AttributeSettings[object]
) -> Table:
    """Candidates with `labelled`: all their entities have a label; literals have their text."""
    found = ibis.literal(True)
    rows = candidates
    if settings.shared.require_labels:
        for column in shape.entities:
            known = graph.labelled.select(**{f"_{column}": "id"})
            rows = rows.left_join(known, [(column, f"_{column}")])
        for column in shape.entities:
            found &= rows[f"_{column}"].notnull() | (rows[column] < 0)
    return rows.select(*candidates.columns, labelled=found)


def require(n: int, benchmark: str, settings: AttributeSettings[object], steps: Funnel) -> None:
    """Raise EmptyBenchmarkError, with the thresholds and the counts of the steps, for no rows."""
    if n:
        return
    own = as_record(settings)
    raise EmptyBenchmarkError(
        f"{benchmark}: no example is left. Settings: {own}\n{steps.describe()}\n"
        "lower a threshold (attributes.thresholds: small is meant for small graphs) or give a "
        "larger graph",
        steps.describe([r for r in steps.rows if r["step"] == SETTLED or not r["kept"]][:2]),
    )


def templated(
    shape: Shape,
    counts: pl.DataFrame,
    graph: Graph,
    settings: AttributeSettings[object],
    steps: Funnel,
) -> tuple[pl.DataFrame | None, int]:
    """(strata, candidates) with a template for all predicates, where `missing_template` is `drop`.

    None stands for all strata. The funnel names the predicates without one and their candidates:
    of a chain at each of its places, else at the first place that lacks one.
    """
    known, total = settings.templates, int(counts["labelled"].sum())
    if known is None or settings.shared.missing_template != "drop" or not total:
        return None, total
    fixed = [t.p for t in shape.triples if t.is_fixed(counts.columns) and t.p not in known]
    rest = counts.clear() if fixed else counts
    lost: dict[str, int] = dict.fromkeys(fixed, total)
    legal = graph.ids.templated(known)
    places: dict[str, int] = {}
    for column in shape.strata:
        wrong = (counts if shape.chain else rest).filter(~pl.col(column).is_in(legal))
        rest = rest.filter(pl.col(column).is_in(legal))
        for p, n in wrong.group_by(column).agg(pl.col("labelled").sum()).rows():
            if n:
                name = graph.ids.relation(p)
                lost[name] = lost.get(name, 0) + n
                places[name] = p if shape.chain else 0
    # relations with as many candidates: those of chains by number, others by text
    order = sorted(lost.items(), key=lambda item: (-item[1], places.get(item[0], 0), item[0]))
    shown = [f"{name} ({n:,})" if shape.chain else f"{name} ({n})" for name, n in order]
    worded = int(rest["labelled"].sum())
    reason = "no template" + (": " if shown else "") + ", ".join(shown)
    steps.kept("templates", worded, total, reason)
    return rest.select(shape.strata), worded


def demand_templates(
    shape: Shape, sampled: pl.DataFrame, graph: Graph, settings: AttributeSettings[object]
) -> None:
    """Raise MissingTemplatesError for sampled predicates without one, most frequent first."""
    known = settings.templates
    if known is None or not settings.shared.require_labels:
        return
    counts: dict[str, int] = {}
    for triple in shape.triples:
        if STEP in triple.p:
            continue  # worded by the noun phrases of its steps
        if triple.is_fixed(sampled.columns):
            counts[triple.p] = counts.get(triple.p, 0) + sampled.height
            continue
        for p, n in sampled[triple.p].value_counts().rows():
            name = graph.ids.relation(p)
            counts[name] = counts.get(name, 0) + n
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


def lengthen(shape: Shape, wide: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    """One row per triple: s and o as numbers, the predicate as text, flags, sampled."""
    marked = shape.patterned(wide, graph)
    none = pl.lit([], dtype=pl.List(pl.String))
    if "flag" in marked.columns:
        none = pl.when(pl.col("flag").is_null()).then(none).otherwise(pl.concat_list("flag"))
    marked = marked.with_columns(flags=none)
    parts = []
    for position, triple in enumerate(shape.triples):
        predicate = triple.relation(wide.columns, graph)
        parts.append(
            marked.select(
                pl.lit(shape.benchmark).alias("benchmark"),
                pl.concat_list(shape.ids).alias("ids"),
                "pattern",
                pl.lit(position, dtype=pl.Int32).alias("position"),
                pl.lit(triple.role).alias("role"),
                pl.lit(triple.origin).alias("origin"),
                pl.col(triple.s).alias("s"),
                predicate.alias("predicate"),
                pl.col(triple.o).alias("o"),
                "flags",
                "sampled",
            )
        )
    return pl.concat(parts)


def count_sizes(
    benchmark: str, build: str, parts: Iterable[pl.DataFrame], settings: AttributeSettings[object]
) -> pl.DataFrame:
    """SIZES of one build from its long rows (position, pattern, s, predicate, o, origin)."""
    examples, names, found = 0, set[str](), []
    for rows in parts:
        # examples differ in their key: each has one first triple
        examples += int((rows["position"] == 0).sum())
        names |= set(rows["pattern"].unique())
        stored = rows.filter(pl.col("origin") == "stored")
        predicate = pl.col("predicate").cast(pl.Categorical)
        found.append(stored.select("s", predicate, "o").unique())
    triples = pl.concat(found).unique()
    predicates = set(triples["predicate"].cast(pl.String).unique())
    by_label = predicates & set(settings.by_label)
    without = predicates - set(settings.templates or ())
    ends = pl.concat([triples["s"], triples["o"]])
    row = (
        benchmark,
        build,
        examples,
        triples.height,
        len(names),
        len(predicates),
        len(predicates - by_label - without),
        len(by_label),
        len(without),
        ends.filter(ends < LITERAL).n_unique(),
        triples.height / max(len(names), 1),
    )
    return pl.DataFrame([row], schema=dict(SIZES.columns), orient="row")


def count_label_worded(
    sampled: pl.DataFrame, settings: AttributeSettings[object], steps: Funnel
) -> None:
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


def count_patterns(
    shape: Shape, picked: Picked, graph: Graph, candidates: pl.DataFrame | None
) -> pl.DataFrame:
    """PATTERNS; `candidates` (strata, n) where they are counted otherwise."""
    counts = picked.counts if candidates is None else candidates
    frame = counts.select(*shape.strata, pl.col("n").alias("candidates"))
    parts = {
        "structural": picked.structural,
        "examples": picked.chosen,
        "sampled": picked.sampled,
    }
    for name, part in parts.items():
        found = part.group_by(shape.strata).agg(pl.len().alias(name))
        frame = frame.join(found, on=list(shape.strata), how="left")
    frame = shape.patterned(frame, graph).with_columns(benchmark=pl.lit(shape.benchmark))
    numbers = [pl.col(c).fill_null(0).cast(pl.Int64) for c in ("candidates", *parts)]
    return frame.with_columns(numbers).select(list(PATTERNS.columns))
