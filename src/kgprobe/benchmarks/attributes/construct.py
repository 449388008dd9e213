"""From candidates to a benchmark: labels, templates, cap, evaluation sample, questions.

The order of these steps: docs/papers/attributes.md, Benchmarks.

A candidate is one row of numbers: columns for its relations and its entities, and `flag`, a word
or null. Candidates are an expression; only the chosen ones leave the engine. Two builds come from
the same candidates: the structural one counts what the graph holds, the labeled one is probed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import ibis
import polars as pl
from ibis.expr.types import BooleanValue, StringValue, Table

from kgprobe.benchmarks.attributes.examples import (
    PART,
    Definition,
    in_parts,
    lengthen,
    verbalize,
)
from kgprobe.benchmarks.attributes.frames import PATTERNS, SIZES, STEPS
from kgprobe.benchmarks.attributes.items import as_items, candidate_sets, with_wikidata_golds
from kgprobe.benchmarks.attributes.settings import AttributeSettings, as_record
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError
from kgprobe.templates import STEP

#: the step that names relations of the settings which the graph lacks
SETTLED = "relations of the settings"
NO_LABEL = "no_label: an entity has none"

Sample = Callable[[Table], Table]


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
class Benchmark:
    """The examples of an attribute, what is probed of them, and what became of everything else.

    `labeled` and `structural`: the chosen candidates of both builds, and which are `sampled`;
    `counts` (relations, n): the candidates of every pattern. Texts are looked up when they are
    asked for: a table of sensitivity wants nothing but sizes.
    """

    definition: Definition
    labeled: pl.DataFrame
    structural: pl.DataFrame
    counts: pl.DataFrame
    graph: Graph
    settings: AttributeSettings[object]
    funnel: Funnel

    def parts(self, size: int = PART) -> Iterator[pl.DataFrame]:
        """EXAMPLES of the labeled build in order, some patterns at a time."""
        for rows in in_parts(self.definition, self.labeled, self.graph, size):
            yield verbalize(self.definition, rows, self.graph, self.settings)

    @cached_property
    def examples(self) -> pl.DataFrame:
        """EXAMPLES of the labeled build, all at once."""
        return pl.concat(self.parts())

    @cached_property
    def _probed(self) -> pl.DataFrame:
        """EXAMPLES of what is probed, with golds of Wikidata where the graph has linked ones."""
        rows = self.labeled.filter("sampled")
        examples = verbalize(self.definition, rows, self.graph, self.settings)
        return with_wikidata_golds(
            examples.drop_nulls(["object_label", "subject_label"]), self.graph
        )

    @cached_property
    def _options(self) -> pl.DataFrame:
        return candidate_sets(self._probed, self.graph, self.settings.shared.candidates)

    @property
    def candidates(self) -> pl.DataFrame:
        """CANDIDATES of what is probed."""
        return self._options.drop("added")

    @cached_property
    def items(self) -> pl.DataFrame:
        """ITEMS of what is probed."""
        return as_items(self._probed, self._options)

    @cached_property
    def patterns(self) -> pl.DataFrame:
        """PATTERNS; of groups they count candidates, since an example has several patterns."""
        relations = list(self.definition.relations)
        frame = self.counts.select(*relations, pl.col("n").alias("candidates"))
        parts = {
            "structural": self.structural,
            "examples": self.labeled,
            "sampled": self.labeled.filter("sampled"),
        }
        for name, part in parts.items():
            n = part.group_by(relations).agg(pl.len().alias(name))
            frame = frame.join(n, on=relations, how="left")
        frame = self.definition.with_pattern(frame, self.graph)
        numbers = [pl.col(c).fill_null(0).cast(pl.Int64) for c in ("candidates", *parts)]
        benchmark = pl.lit(self.definition.benchmark)
        return frame.with_columns(numbers, benchmark=benchmark).select(list(PATTERNS.columns))

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """SIZES of both builds and of what is probed."""
        build = "labeled" if self.settings.shared.require_labels else "unlabeled"
        rows = [self._size(build, self.labeled)]
        rows.append(self._size("sampled", self.labeled.filter("sampled")))
        return pl.concat([self.structural_sizes, *rows])

    @cached_property
    def structural_sizes(self) -> pl.DataFrame:
        """SIZES of the structural build alone."""
        return self._size("structural", self.structural)

    def _size(self, build: str, rows: pl.DataFrame) -> pl.DataFrame:
        stored = [t for t in self.definition.triples if t.origin == "stored"]
        triples = pl.concat(rows.select(s=t.s, p=t.p, o=t.o) for t in stored).unique()
        patterns = rows.select(self.definition.relations).n_unique()
        predicates = set(self.graph.relations.names_of(triples["p"].unique()))
        by_label = predicates & set(self.settings.by_label)
        without = predicates - set(self.settings.templates or ())
        is_group = self.definition.is_group
        examples = rows.select(self.definition.entities).n_unique() if is_group else rows.height
        ends = pl.concat([triples["s"], triples["o"]])
        row = (
            self.definition.benchmark,
            build,
            examples,
            triples.height,
            patterns,
            len(predicates),
            len(predicates - by_label - without),
            len(by_label),
            len(without),
            ends.filter(ends >= 0).n_unique(),
            triples.height / patterns,
        )
        return pl.DataFrame([row], schema=dict(SIZES.columns), orient="row")

    @cached_property
    def steps(self) -> pl.DataFrame:
        """What every step of the construction kept, up to the candidates."""
        if self.settings.templates is not None:
            self._count_worded_by_label()
        added = int(self._options["added"].sum())
        why = f"{added} are golds that the lists lacked"
        self.funnel.count("candidates", self._options.height, reason=why)
        if "linked" in self._probed.columns:
            n, rows = self._probed.select(pl.col("linked").sum(), pl.len()).row(0)
            why = "answers of the triples that Wikidata states and the graph lacks"
            self.funnel.count("golds of Wikidata alone", n, reason=f"{why}; {rows} triples")
        return self.funnel.frame(STEPS)

    def _count_worded_by_label(self) -> None:
        rows = lengthen(self.definition, self.labeled.filter("sampled"), self.graph)
        worded = rows.filter(pl.col("predicate").is_in(list(self.settings.by_label)))
        worded = worded.select("_s", "predicate", "_o").unique()
        counts = worded["predicate"].value_counts()
        counts = counts.sort("count", "predicate", descending=[True, False])
        reason = ", ".join(f"{name} ({n})" for name, n in counts.rows())
        step = "of their triples, worded by the relation's label"
        self.funnel.count(step, worded.height, reason=reason)


def construct(
    definition: Definition,
    candidates: Table,
    graph: Graph,
    settings: AttributeSettings[object],
    funnel: Funnel,
    sample: Sample,
    evaluate: int | None,
) -> Benchmark:
    """The benchmark of `candidates`, of which `sample` takes those of each build; `evaluate`
    examples of the labeled one are probed (None: all).

    Raises EmptyBenchmarkError when a build has no example, MissingTemplatesError when a sampled
    predicate has no template and `missing_template` is `error`.
    """
    benchmark, relations = definition.benchmark, list(definition.relations)
    kept = graph.engine.keep(with_labeled(definition, candidates, graph, settings))
    counts = graph.frame(count_rows(kept, relations, labeled=kept["labeled"].sum())).sort(relations)
    total = n_usable = int(counts["n"].sum())
    require(total, benchmark, settings, funnel)
    usable = kept
    if settings.shared.require_labels:
        usable = kept.filter(kept["labeled"])
        n_usable = int(counts["labeled"].sum())
        funnel.count("labels", n_usable, total, NO_LABEL)
        is_dropped = settings.templates is not None and settings.shared.missing_template == "drop"
        if is_dropped and n_usable:
            patterns, n_usable = with_templates(definition, counts, graph, settings, funnel)
            usable = usable.semi_join(graph.engine.table(patterns), relations)
    structural = _collect(definition, sample(kept), graph)
    why = "beyond the cap of a pattern"
    funnel.count("structural build: cap", structural.height, total, why)
    require(structural.height, benchmark, settings, funnel)
    require(n_usable, benchmark, settings, funnel)
    labeled = structural
    if settings.shared.require_labels:
        labeled = _collect(definition, sample(usable), graph)
    funnel.count("cap", labeled.height, n_usable, why)
    require(labeled.height, benchmark, settings, funnel)
    key = definition.key
    sampled = labeled.select(key)
    if evaluate is not None:
        sampled = draw(sampled, evaluate, graph, settings, f"{benchmark}/evaluation")
    why = "beyond the evaluation sample"
    funnel.count("evaluation sample", sampled.height, labeled.height, why)
    labeled = with_sampled(labeled, sampled)
    demand_templates(definition, labeled.filter("sampled"), graph, settings)
    structural = structural.with_columns(sampled=pl.lit(False))
    return Benchmark(definition, labeled, structural, counts, graph, settings, funnel)


def capped(
    definition: Definition, n: int | None, graph: Graph, settings: AttributeSettings[object]
) -> Sample:
    """Take at most `n` candidates of every pattern, by hash; None takes all."""

    def sample(rows: Table) -> Table:
        if n is None:
            return rows
        ids, strata = definition.entities, definition.relations
        return graph.smallest(rows, n, settings.seed, ids, strata, definition.benchmark)

    return sample


def draw(
    rows: pl.DataFrame, n: int, graph: Graph, settings: AttributeSettings[object], label: str
) -> pl.DataFrame:
    """At most `n` rows, by hash of all their columns, in order."""
    if rows.height > n:
        table = graph.engine.table(rows)
        rows = graph.frame(graph.smallest(table, n, settings.seed, rows.columns, (), label))
    return rows.sort(rows.columns)


def with_sampled(rows: pl.DataFrame, sampled: pl.DataFrame) -> pl.DataFrame:
    """Adds `sampled`: whether the columns of `sampled` stand there."""
    marked = sampled.with_columns(sampled=pl.lit(True))
    joined = rows.join(marked, on=sampled.columns, how="left", maintain_order="left")
    return joined.with_columns(pl.col("sampled").fill_null(False))


def relations_of(names: Collection[str], graph: Graph, funnel: Funnel) -> list[int]:
    """The numbers of relations that settings name; the funnel has those that the graph lacks."""
    numbers = graph.relations.numbers(names)
    if missing := graph.relations.missing(names):
        why = f"roles and known of sources.graphs name none for {', '.join(missing)}"
        funnel.count(SETTLED, len(names) - len(missing), len(names), why)
    return numbers


def flag(word: str, where: BooleanValue) -> StringValue:
    """`word` where a condition holds, else null: the column `flag` of candidates."""
    return ibis.ifelse(where, word, ibis.null("string"))


def with_labeled(
    definition: Definition, candidates: Table, graph: Graph, settings: AttributeSettings[object]
) -> Table:
    """Candidates with `labeled`: all their entities have a label; literals have their text."""
    labeled, rows = ibis.literal(True), candidates
    if settings.shared.require_labels:
        for column in definition.numbers:
            known = graph.labeled.select(**{f"_{column}": "id"})
            rows = rows.left_join(known, [(column, f"_{column}")])
        for column in definition.numbers:
            labeled &= rows[f"_{column}"].notnull() | (rows[column] < 0)
    return rows.select(*candidates.columns, labeled=labeled)


def _collect(definition: Definition, rows: Table, graph: Graph) -> pl.DataFrame:
    """Rows in the order of their key. Raises ValueError when it repeats, since a sample would be
    arbitrary."""
    frame = graph.frame(rows.drop("labeled"))
    if frame.select(definition.key).is_duplicated().any():
        raise ValueError(f"{definition.benchmark}: {definition.key} repeat in the candidates")
    return frame.sort(definition.key)


def require(n: int, benchmark: str, settings: AttributeSettings[object], funnel: Funnel) -> None:
    """Raise EmptyBenchmarkError, with the thresholds and the counts of the steps, for no rows."""
    if n:
        return
    raise EmptyBenchmarkError(
        f"{benchmark}: no example is left. Settings: {as_record(settings)}\n{funnel.describe()}\n"
        "lower a threshold (attributes.thresholds: small is meant for small graphs) or give a "
        "larger graph",
        funnel.describe([r for r in funnel.rows if r["step"] == SETTLED or not r["kept"]][:2]),
    )


def with_templates(
    definition: Definition,
    counts: pl.DataFrame,
    graph: Graph,
    settings: AttributeSettings[object],
    funnel: Funnel,
    step: str = "templates",
) -> tuple[pl.DataFrame, int]:
    """The patterns all of whose relations have a template, and their labeled candidates.

    The funnel names the relations without one and their candidates: of a chain at each of its
    places, else at the first place that lacks one.
    """
    known, total = settings.templates or (), int(counts["labeled"].sum())
    is_chain, by_number = definition.is_chain, definition.is_chain or definition.is_group
    fixed = [t.p for t in definition.triples if not definition.columns(t) and t.p not in known]
    rest = counts.clear() if fixed else counts
    missing: dict[str, int] = dict.fromkeys(fixed, total)
    numbers: dict[str, int] = {}
    for column in definition.relations:
        rows = counts if is_chain else rest
        names = graph.relations.names_of(rows[column])
        wrong = rows.with_columns(name=names).filter(~names.is_in(known), pl.col("labeled") > 0)
        for name, p, n in wrong.group_by("name", column).agg(pl.col("labeled").sum()).rows():
            missing[name] = missing.get(name, 0) + n
            numbers[name] = p if by_number else 0
        rest = rest.filter(graph.relations.names_of(rest[column]).is_in(known))
    order = sorted(missing.items(), key=lambda one: (-one[1], numbers.get(one[0], 0), one[0]))
    shown = [f"{name} ({n:,})" if is_chain else f"{name} ({n})" for name, n in order]
    n = int(rest["labeled"].sum())
    colon = ": " if shown or definition.is_group else ""
    funnel.count(step, n, total, f"no template{colon}{', '.join(shown)}")
    return rest.select(definition.relations), n


def demand_templates(
    definition: Definition,
    sampled: pl.DataFrame,
    graph: Graph,
    settings: AttributeSettings[object],
) -> None:
    """Raise MissingTemplatesError unless all predicates of the sampled triples have a template.

    The message lists those of the sample and of the whole graph, most frequent first, so that the
    other benchmarks bring no new ones.
    """
    known = settings.templates
    if known is None or not settings.shared.require_labels:
        return
    # two steps are worded by the noun phrases of each
    roles = [triple.role for triple in definition.triples if STEP not in triple.p]
    rows = lengthen(definition, sampled, graph).filter(pl.col("role").is_in(roles))
    predicates = rows["predicate"]
    lacking = _without_template(dict(predicates.value_counts().rows()), known)
    if not lacking:
        return
    everywhere = _without_template(_labeled_statements(graph), known)
    listed = ", ".join(f"{name} ({n} triples)" for name, n in lacking)
    every = ", ".join(f"{name} ({n})" for name, n in everywhere)
    raise MissingTemplatesError(
        f"{definition.benchmark}: {len(lacking)} predicates have no template: {listed}\n"
        "add rows to resources/templates/attributes.tsv, or set "
        "attributes.missing_template to drop\n"
        f"in the whole graph {len(everywhere)} relations with labeled statements have none "
        f"(number of statements in brackets): {every}"
    )


def _without_template(counts: Mapping[str, int], known: Collection[str]) -> list[tuple[str, int]]:
    lacking = [(name, n) for name, n in counts.items() if name not in set(known)]
    return sorted(lacking, key=lambda one: (-one[1], one[0]))


def _labeled_statements(graph: Graph) -> dict[str, int]:
    """relation -> statements whose ends have labels."""
    ids = graph.labeled
    edges = graph.edges.semi_join(ids, [("s", "id")]).semi_join(ids, [("o", "id")])
    dates = graph.literals.semi_join(ids, [("s", "id")])
    counts = graph.frame(count_rows(edges.select("p").union(dates.select("p")), ["p"]))
    return {graph.relations.name(p): n for p, n in counts.select("p", "n").rows()}
