"""Turn candidates into a benchmark: labels, templates, cap, evaluation sample, questions.

The order of these steps: docs/papers/attributes.md, Benchmarks.

A candidate is one row of numbers: columns for its relations and its entities, and `flag`, a word
or null. Candidates are an expression; only the chosen ones leave the engine. Two builds use the
same candidates: the structural one counts what the graph holds, the labeled one is probed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import ibis
import polars as pl
from ibis.expr.types import BooleanValue, StringValue, Table

from kgprobe.benchmarks.attributes.definition import Setup
from kgprobe.benchmarks.attributes.examples import PART, in_parts, lengthen, verbalize
from kgprobe.benchmarks.attributes.frames import PATTERNS, SIZES, STEPS
from kgprobe.benchmarks.attributes.items import as_items, candidate_sets
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.knowledge.ids import GraphError

#: chooses candidates, or is the most of every pattern, by hash (None: all)
Sample = Callable[[Table], Table] | int | None


class MissingTemplatesError(GraphError):
    """Predicates of sampled triples have no template; the message lists all of them."""


@dataclass(frozen=True)
class BuiltAttribute:
    """The examples of an attribute, its probed items, and reports on its construction.

    `labeled` and `structural`: the chosen candidates of both builds, and which are `sampled`;
    `counts` (relations, n): the candidates of every pattern. Texts are looked up only when needed:
    a sensitivity table only needs sizes.
    """

    setup: Setup[object]
    labeled: pl.DataFrame
    structural: pl.DataFrame
    counts: pl.DataFrame

    def parts(self, size: int = PART) -> Iterator[pl.DataFrame]:
        """Yield EXAMPLES of the labeled build in order, some patterns at a time."""
        for rows in in_parts(self.setup, self.labeled, size):
            yield verbalize(self.setup, rows)

    @cached_property
    def examples(self) -> pl.DataFrame:
        """EXAMPLES of the labeled build, all at once."""
        return pl.concat(self.parts())

    @cached_property
    def _sampled(self) -> pl.DataFrame:
        return self.labeled.filter("sampled")

    @cached_property
    def _probed(self) -> pl.DataFrame:
        """EXAMPLES of the evaluation sample."""
        examples = verbalize(self.setup, self._sampled)
        return examples.drop_nulls(["object_label", "subject_label"])

    @cached_property
    def _options(self) -> pl.DataFrame:
        return candidate_sets(self._probed, self.setup.graph, self.setup.shared.candidates)

    @property
    def candidates(self) -> pl.DataFrame:
        """CANDIDATES of the evaluation sample."""
        return self._options.drop("added")

    @cached_property
    def items(self) -> pl.DataFrame:
        """ITEMS of the evaluation sample."""
        return as_items(self._probed, self._options)

    @cached_property
    def patterns(self) -> pl.DataFrame:
        """PATTERNS; for groups they count candidates, since an example has several patterns."""
        definition, relations = self.setup.definition, self.setup.definition.relations
        frame = self.counts.select(*relations, pl.col("n").alias("candidates"))
        parts = {"structural": self.structural, "examples": self.labeled, "sampled": self._sampled}
        for name, part in parts.items():
            n = part.group_by(relations).agg(pl.len().alias(name))
            frame = frame.join(n, on=relations, how="left")
        frame = definition.with_pattern(frame, self.setup.graph)
        numbers = [pl.col(c).fill_null(0).cast(pl.Int64) for c in ("candidates", *parts)]
        rows = frame.with_columns(numbers, benchmark=pl.lit(self.setup.name))
        return rows.select(list(PATTERNS.columns))

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """SIZES of both builds and of the evaluation sample."""
        build = "labeled" if self.setup.shared.require_labels else "unlabeled"
        rows = [self._size(build, self.labeled), self._size("sampled", self._sampled)]
        return pl.concat([self.structural_sizes, *rows])

    @cached_property
    def structural_sizes(self) -> pl.DataFrame:
        """SIZES of the structural build alone."""
        return self._size("structural", self.structural)

    def _size(self, build: str, rows: pl.DataFrame) -> pl.DataFrame:
        definition, settings = self.setup.definition, self.setup.settings
        stored = [t for t in definition.triples if t.origin == "stored"]
        triples = pl.concat(rows.select(s=t.s, p=t.p, o=t.o) for t in stored).unique()
        predicates = set(self.setup.graph.relations.names_of(triples["p"].unique()))
        by_label = predicates & set(settings.by_label)
        without = predicates - set(settings.templates or ())
        ends = pl.concat([triples["s"], triples["o"]])
        groups = definition.entities if definition.is_group else definition.key
        patterns = rows.select(definition.relations).n_unique()
        row = {
            "benchmark": self.setup.name, "build": build,
            "examples": rows.select(groups).n_unique(), "triples": triples.height,
            "patterns": patterns, "predicates": len(predicates),
            "written": len(predicates - by_label - without), "by_label": len(by_label),
            "without_template": len(without), "entities": ends.filter(ends >= 0).n_unique(),
            "triples_per_pattern": triples.height / patterns,
        }  # fmt: skip
        return pl.DataFrame([row], schema=dict(SIZES.columns))

    @cached_property
    def steps(self) -> pl.DataFrame:
        """The number of rows kept by every step of the construction, up to the candidate sets."""
        if self.setup.settings.templates is not None:
            rows = lengthen(self.setup, self._sampled)
            generic = rows.filter(pl.col("predicate").is_in(list(self.setup.settings.by_label)))
            generic = generic.select("_s", "predicate", "_o").unique()
            counts = generic["predicate"].value_counts()
            counts = counts.sort("count", "predicate", descending=[True, False])
            reason = ", ".join(f"{name} ({n})" for name, n in counts.rows())
            step = "of their triples, worded by the relation's label"
            self.setup.count(step, generic.height, reason=reason)
        added = int(self._options["added"].sum())
        why = f"{added} are golds that the lists lacked"
        self.setup.count("candidates", self._options.height, reason=why)
        return self.setup.funnel.frame(STEPS)


def construct(
    setup: Setup[object], candidates: Table, sample: Sample, evaluate_all: bool = False
) -> BuiltAttribute:
    """Build a benchmark from `candidates`, from which `sample` chooses those of each build; as many
    examples of the labeled one are probed as the settings say, or all.

    Raises EmptyBenchmarkError if a build has no example, MissingTemplatesError if a sampled
    predicate has no template and `missing_template` is `error`.
    """
    graph, relations = setup.graph, list(setup.definition.relations)
    kept = graph.engine.keep(with_labeled(setup, candidates))
    counts = graph.frame(count_rows(kept, relations, labeled=kept["labeled"].sum())).sort(relations)
    total = n_usable = int(counts["n"].sum())
    setup.require(total)
    usable = kept
    if setup.shared.require_labels:
        usable = kept.filter(kept["labeled"])
        n_usable = count_labels(setup, counts, "labels")
        if n_usable and drops_relations(setup):
            patterns, n_usable = with_templates(setup, counts)
            usable = usable.semi_join(graph.engine.table(patterns), relations)
    structural = _collect(setup, kept, sample)
    why = "beyond the cap of a pattern"
    setup.count("structural build: cap", structural.height, total, why)
    setup.require(structural.height)
    setup.require(n_usable)
    labeled = _collect(setup, usable, sample) if setup.shared.require_labels else structural
    setup.count("cap", labeled.height, n_usable, why)
    setup.require(labeled.height)
    sampled = labeled.select(setup.definition.key)
    if not evaluate_all and setup.shared.eval_examples is not None:
        sampled = draw(setup, sampled, setup.shared.eval_examples, "evaluation")
    why = "beyond the evaluation sample"
    setup.count("evaluation sample", sampled.height, labeled.height, why)
    return finish(setup, labeled, sampled, structural, counts)


def finish(
    setup: Setup[object],
    labeled: pl.DataFrame,
    sampled: pl.DataFrame,
    structural: pl.DataFrame,
    counts: pl.DataFrame,
) -> BuiltAttribute:
    """Return the benchmark of the chosen candidates; rows that match `sampled` are probed."""
    marked = sampled.with_columns(sampled=pl.lit(True))
    labeled = labeled.join(marked, on=sampled.columns, how="left", maintain_order="left")
    labeled = labeled.with_columns(pl.col("sampled").fill_null(False))
    demand_templates(setup, labeled.filter("sampled"))
    return BuiltAttribute(setup, labeled, structural.with_columns(sampled=pl.lit(False)), counts)


def draw(setup: Setup[object], rows: pl.DataFrame, n: int, what: str) -> pl.DataFrame:
    """Sample at most `n` rows by hash of all their columns, and sort them."""
    if rows.height > n:
        table, label = setup.engine.table(rows), f"{setup.name}/{what}"
        chosen = setup.graph.smallest(table, n, setup.seed, rows.columns, (), label)
        rows = setup.graph.frame(chosen)
    return rows.sort(rows.columns)


def flag(word: str, where: BooleanValue) -> StringValue:
    """Return `word` where a condition holds, else null: the column `flag` of candidates."""
    return ibis.ifelse(where, word, ibis.null("string"))


def with_labeled(setup: Setup[object], candidates: Table) -> Table:
    """Add `labeled`: whether all entities of a candidate have a label; literals have a text."""
    labeled, rows = ibis.literal(True), candidates
    if setup.shared.require_labels:
        for column in setup.definition.numbers:
            known = setup.graph.labeled.select(**{f"_{column}": "id"})
            rows = rows.left_join(known, [(column, f"_{column}")])
        for column in setup.definition.numbers:
            labeled &= rows[f"_{column}"].notnull() | (rows[column] < 0)
    return rows.select(*candidates.columns, labeled=labeled)


def count_labels(setup: Setup[object], counts: pl.DataFrame, step: str) -> int:
    """Count the labeled candidates of all patterns, also in the funnel."""
    labeled, n = int(counts["labeled"].sum()), int(counts["n"].sum())
    setup.count(step, labeled, n, "no_label: an entity has none")
    return labeled


def drops_relations(setup: Setup[object]) -> bool:
    """Return whether candidates of relations without a template are dropped."""
    return setup.settings.templates is not None and setup.shared.missing_template == "drop"


def _collect(setup: Setup[object], rows: Table, sample: Sample) -> pl.DataFrame:
    """Collect a sample sorted by its key. Raises ValueError if keys repeat, since sampling would be
    arbitrary."""
    graph, definition, key = setup.graph, setup.definition, setup.definition.key
    if isinstance(sample, int):
        ids, strata = definition.entities, definition.relations
        rows = graph.smallest(rows, sample, setup.seed, ids, strata, setup.name)
    elif sample:
        rows = sample(rows)
    frame = graph.frame(rows.drop("labeled"))
    if frame.select(key).is_duplicated().any():
        raise ValueError(f"{setup.name}: {key} repeat in the candidates")
    return frame.sort(key)


def with_templates(
    setup: Setup[object], counts: pl.DataFrame, step: str = "templates"
) -> tuple[pl.DataFrame, int]:
    """Return the patterns whose relations all have a template, and their labeled candidates.

    The funnel names the relations without one and their candidates: for a chain at each position
    of a pattern, else at the first position without a template.
    """
    definition, names_of = setup.definition, setup.graph.relations.names_of
    known, total = setup.settings.templates or (), int(counts["labeled"].sum())
    is_chain, by_number = definition.is_chain, definition.is_chain or definition.is_group
    fixed = [t.p for t in definition.triples if t.p not in (*definition.relations, *known)]
    rest = counts.clear() if fixed else counts
    missing: dict[str, int] = dict.fromkeys(fixed, total)
    numbers: dict[str, int] = {}
    for column in definition.relations:
        rows = counts if is_chain else rest
        names = names_of(rows[column])
        wrong = rows.with_columns(name=names).filter(~names.is_in(known), pl.col("labeled") > 0)
        for name, p, n in wrong.group_by("name", column).agg(pl.col("labeled").sum()).rows():
            missing[name] = missing.get(name, 0) + n
            numbers[name] = p if by_number else 0
        rest = rest.filter(names_of(rest[column]).is_in(known))
    order = sorted(missing.items(), key=lambda one: (-one[1], numbers.get(one[0], 0), one[0]))
    shown = [f"{name} ({n:,})" if is_chain else f"{name} ({n})" for name, n in order]
    n = int(rest["labeled"].sum())
    colon = ": " if shown or definition.is_group else ""
    setup.count(step, n, total, f"no template{colon}{', '.join(shown)}")
    return rest.select(definition.relations), n


def demand_templates(setup: Setup[object], sampled: pl.DataFrame) -> None:
    """Raise MissingTemplatesError unless all predicates of the sampled triples have a template.

    The message lists the missing ones of the sample and of the whole graph, most frequent first, so
    that other benchmarks will not need more.
    """
    known = setup.settings.templates
    if known is None or not setup.shared.require_labels:
        return
    predicates = lengthen(setup, sampled)["predicate"]
    if not (lacking := _without_template(dict(predicates.value_counts().rows()), known)):
        return
    everywhere = _without_template(_labeled_statements(setup.graph), known)
    listed = ", ".join(f"{name} ({n} triples)" for name, n in lacking)
    every = ", ".join(f"{name} ({n})" for name, n in everywhere)
    raise MissingTemplatesError(
        f"{setup.name}: {len(lacking)} predicates have no template: {listed}\n"
        "add rows to resources/templates/attributes.tsv, or set "
        "attributes.missing_template to drop\n"
        f"in the whole graph {len(everywhere)} relations with labeled statements have none "
        f"(number of statements in brackets): {every}"
    )


def _without_template(counts: Mapping[str, int], known: Collection[str]) -> list[tuple[str, int]]:
    lacking = [(name, n) for name, n in counts.items() if name not in set(known)]
    return sorted(lacking, key=lambda one: (-one[1], one[0]))


def _labeled_statements(graph: Graph) -> dict[str, int]:
    """Return relation -> number of statements whose ends have labels."""
    ids = graph.labeled
    edges = graph.edges.semi_join(ids, [("s", "id")]).semi_join(ids, [("o", "id")])
    dates = graph.literals.semi_join(ids, [("s", "id")])
    counts = graph.frame(count_rows(edges.select("p").union(dates.select("p")), ["p"]))
    return {graph.relations.name(p): n for p, n in counts.select("p", "n").rows()}
