"""Examples as text: EXAMPLES with labels and golds, and the ITEMS and CANDIDATES to probe."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import ibis
import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import (
    LITERAL,
    SAME_TEXT,
    Picked,
    Shape,
    count_label_worded,
    count_patterns,
    count_sizes,
    lengthen,
)
from kgprobe.benchmarks.attributes.frames import EXAMPLES, STEPS
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted, first
from kgprobe.knowledge.graph import UNUSABLE, Graph
from kgprobe.knowledge.ids import decode_ids
from kgprobe.schema import CANDIDATES, ITEMS
from kgprobe.templates import STEP

#: what `meta` of ITEMS tells of an example's row
META = ("object", "object_label", "origin", "pattern", "position", "object_kind", "flags")
#: an entity may have a million objects in one relation; no more golds than these are listed
MAX_GOLDS = 1000
#: examples that become text at a time
PART = 100_000


@dataclass(frozen=True)
class BuildRows:
    """The examples of one build in numbers: `wide` has a row for each, and whether it is `sampled`.

    `lengthened` makes long rows of them (see `lengthen`). `by`: where the names of examples begin
    with their pattern, (strata, pattern) in the order of the names; else None.
    """

    wide: pl.DataFrame
    lengthened: Callable[[pl.DataFrame], pl.DataFrame]
    by: pl.DataFrame | None = None

    def parts(self, size: int = PART) -> Iterator[pl.DataFrame]:
        """Long rows of whole patterns, `size` examples or more at a time, in the order of names."""
        if self.by is None:
            yield self.lengthened(self.wide)
            return
        strata = [name for name in self.by.columns if name != "pattern"]
        sizes = self.wide.group_by(strata).agg(pl.len().alias("n"))
        order = self.by.drop("pattern").join(sizes, on=strata, maintain_order="left")
        before = order["n"].cum_sum() - order["n"]
        order = order.select(*strata, part=before // size)
        for own in order.partition_by("part", maintain_order=True, include_key=False):
            yield self.lengthened(self.wide.join(own, on=strata, how="semi"))

    @property
    def probed(self) -> pl.DataFrame:
        """Long rows of what is sampled."""
        return self.lengthened(self.wide.filter("sampled"))


@dataclass(frozen=True)
class AttributeSet:
    """One benchmark: examples, what is probed of them, and what became of everything else.

    `rows` and `structural` are those of the labelled and of the structural build. Their text is
    looked up when it is asked for: a table of sensitivity wants nothing but sizes.
    """

    benchmark: str
    rows: BuildRows
    structural: BuildRows
    patterns: pl.DataFrame
    graph: Graph
    settings: AttributeSettings[object]
    funnel: Funnel

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """SIZES of both builds and of what is probed."""
        labelled = "labelled" if self.settings.shared.require_labels else "unlabelled"
        builds = {labelled: self.rows.parts(), "sampled": [self.rows.probed]}
        others = (
            count_sizes(self.benchmark, build, parts, self.settings)
            for build, parts in builds.items()
        )
        return pl.concat([self.structural_sizes, *others])

    @cached_property
    def structural_sizes(self) -> pl.DataFrame:
        """SIZES of the structural build alone."""
        return count_sizes(self.benchmark, "structural", self.structural.parts(), self.settings)

    def parts(self, size: int = PART) -> Iterator[pl.DataFrame]:
        """EXAMPLES of the labelled build in order, some patterns at a time."""
        for rows in self.rows.parts(size):
            yield verbalize_examples(rows, self.graph, self.settings)

    @cached_property
    def examples(self) -> pl.DataFrame:
        """EXAMPLES of the labelled build, all at once."""
        return pl.concat(self.parts())

    @cached_property
    def _options(self) -> pl.DataFrame:
        """CANDIDATES and `added` of what is probed."""
        return candidate_sets(self._probed_examples, self.graph, self.settings.shared.candidates)

    @cached_property
    def _probed_examples(self) -> pl.DataFrame:
        """EXAMPLES of what is probed, with `linked` golds where the graph has linked ones."""
        named = pl.col("object_label").is_not_null() & pl.col("subject_label").is_not_null()
        probed = verbalize_examples(self.rows.probed, self.graph, self.settings)
        return with_linked(probed.filter(named), self.graph)

    @property
    def candidates(self) -> pl.DataFrame:
        """CANDIDATES of what is probed."""
        return self._options.drop("added")

    @cached_property
    def items(self) -> pl.DataFrame:
        """ITEMS of what is probed."""
        return as_items(self._probed_examples, self._options)

    @cached_property
    def steps(self) -> pl.DataFrame:
        """What every step of the construction kept, up to the candidates."""
        count_label_worded(self.rows.probed, self.settings, self.funnel)
        added = int(self._options["added"].sum())
        why = f"{added} are golds that the lists lacked"
        self.funnel.kept("candidates", self._options.height, reason=why)
        if "linked" in self._probed_examples.columns:
            n, rows = self._probed_examples.select(pl.col("linked").sum(), pl.len()).row(0)
            why = "answers of the triples that Wikidata states and the graph lacks"
            self.funnel.kept("golds of Wikidata alone", n, reason=f"{why}; {rows} triples")
        return self.funnel.frame(STEPS)


def built(
    shape: Shape,
    picked: Picked,
    graph: Graph,
    settings: AttributeSettings[object],
    steps: Funnel,
    candidates: pl.DataFrame | None = None,
) -> AttributeSet:
    """The benchmark whose examples all have the triples of `shape`."""
    names, strata = [*shape.strata, *shape.ids], list(shape.strata)
    probed = picked.sampled.select(names).with_columns(sampled=pl.lit(True))
    chosen = picked.chosen.join(probed, on=names, how="left", maintain_order="left")
    wide = (
        chosen.with_columns(pl.col("sampled").fill_null(False)),
        picked.structural.with_columns(sampled=pl.lit(False)),
    )

    def lengthened(rows: pl.DataFrame) -> pl.DataFrame:
        return lengthen(shape, rows, graph)

    def build(rows: pl.DataFrame) -> BuildRows:
        if not strata:
            return BuildRows(rows, lengthened)
        patterns = shape.patterned(rows.select(strata).unique(), graph)
        # names go on with a slash
        return BuildRows(rows, lengthened, patterns.sort(pl.col("pattern") + "/"))

    patterns = count_patterns(shape, picked, graph, candidates)
    labelled, bare = map(build, wide)
    return AttributeSet(shape.benchmark, labelled, bare, patterns, graph, settings, steps)


def verbalize_examples(
    rows: pl.DataFrame, graph: Graph, settings: AttributeSettings[object]
) -> pl.DataFrame:
    """EXAMPLES of long rows of numbers."""
    rows = _same_text(rows, graph)
    names = _texts(graph, rows)
    golds = _golds(rows, graph, names)
    rows = rows.join(golds, on=["s", "predicate", "o", "origin"], how="left")
    for side, column in (("s", "subject"), ("o", "object")):
        named = names.rename(
            {"n": side, "id": column, "text": f"{column}_label", "degree": f"{column}_degree"}
        )
        rows = rows.join(named, on=side, how="left")
    kinds = pl.when(pl.col("o") < LITERAL).then(pl.lit("entity")).otherwise(pl.lit("literal"))
    rows = rows.with_columns(
        example=_example_id(rows, names),
        object_kind=kinds,
        predicate_label=pl.col("predicate").replace_strict(
            dict(settings.labels), default=None, return_dtype=pl.String
        ),
    )
    return rows.select(list(EXAMPLES.columns)).sort(list(EXAMPLES.key))


def _example_id(rows: pl.DataFrame, names: pl.DataFrame) -> pl.Series:
    """benchmark/pattern/ids; entity_centric leaves the pattern out, since its rows have several."""
    lists = rows.select("benchmark", "pattern", "ids").with_row_index("row").explode("ids")
    joined = lists.join(names.select(pl.col("n").alias("ids"), "id"), on="ids", how="left")
    joined = joined.group_by("row", maintain_order=True).agg(
        pl.col("benchmark").first(), pl.col("pattern").first(), pl.col("id")
    )
    ids = pl.col("id").list.join("/")
    whole = pl.when(pl.col("benchmark") == "entity_centric").then(
        pl.concat_str("benchmark", ids, separator="/")
    ).otherwise(pl.concat_str("benchmark", "pattern", ids, separator="/"))  # fmt: skip
    return joined.sort("row").select(whole.alias("example"))["example"]


def _texts(graph: Graph, rows: pl.DataFrame) -> pl.DataFrame:
    """(n, id, text, degree) of every number that occurs; literals have no degree."""
    used = pl.concat([rows["s"], rows["o"], rows["ids"].explode()]).unique().alias("n").to_frame()
    known = graph.frame(
        graph.entities.semi_join(_numbers(graph, used.filter(pl.col("n") < LITERAL)), [("id", "n")])
    )
    known = known.select(
        pl.col("id").cast(pl.UInt64).alias("n"),
        decode_ids("id", graph.ids.entities(known["id"].to_list())).alias("id"),
        pl.col("label").alias("text"),
        "degree",
    )
    if (used["n"] < LITERAL).all():
        return known
    codes = graph.literals.semi_join(_numbers(graph, used), [("o", "n")])
    values = graph.frame(codes.select("o", "value", "text").distinct()).select(
        pl.col("o").reinterpret(signed=False).alias("n"),
        pl.col("value").alias("id"),
        "text",
        pl.lit(None, dtype=pl.Int64).alias("degree"),
    )
    return pl.concat([known, values])


def _numbers(graph: Graph, frame: pl.DataFrame) -> Table:
    """A small table of numbers for the engine, in which codes of literals are negative."""
    return graph.engine.table(frame.select(pl.all().cast(pl.UInt64).reinterpret(signed=True)))


def _same_text(rows: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    """Adds the flag same_text to examples that hold two relations which LAMA words alike."""
    alike = [graph.ids.relation(p) for p in graph.ids.numbers(SAME_TEXT)]
    if not rows["predicate"].is_in(alike).any():
        return rows
    relation = pl.when(pl.col("predicate").is_in(alike)).then("predicate")
    several = relation.n_unique().over("benchmark", "pattern", "ids") - (
        relation.null_count().over("benchmark", "pattern", "ids") > 0
    )
    flagged = (several > 1) & pl.col("benchmark").is_in(["composite", "paths"])
    flags = pl.when(flagged).then(pl.col("flags").list.concat(pl.lit(["same_text"])))
    return rows.with_columns(flags=flags.otherwise("flags"))


def _golds(rows: pl.DataFrame, graph: Graph, names: pl.DataFrame) -> pl.DataFrame:
    """(s, predicate, o, origin, golds, gold_labels): all objects of (s, p), the row's own first.

    A gold without label has a null in its place.
    """
    asked = rows.select("s", "predicate", "o", "origin").unique()
    own = asked.with_columns(gold=pl.col("o"), first=pl.lit(0))
    # an inferred row may be worded as P279, too: its golds are two steps up all the same
    single = asked.filter(pl.col("origin") == "stored")
    keyed = single.with_columns(p=graph.ids.predicates("predicate"))
    pairs = keyed.select("s", "p").unique()
    asked_of = _numbers(graph, pairs)
    objects = pl.concat(
        graph.frame(
            part.semi_join(asked_of, ["s", "p"]).select("s", "p", o=part["o"].cast("int64"))
        ).select(pl.col("s").cast(pl.UInt64), "p", pl.col("o").reinterpret(signed=False))
        for part in (graph.edges, graph.literals)
    )
    others = keyed.join(objects.rename({"o": "gold"}), on=["s", "p"]).drop("p")
    found = [own, others.with_columns(first=pl.lit(1)).select(own.columns)]
    found += [part(asked, graph).select(own.columns) for part in (_two_up, _two_steps)]
    every = pl.concat(found).sort("first", "gold")
    every = every.unique(
        ["s", "predicate", "o", "origin", "gold"], keep="first", maintain_order=True
    )
    every = every.group_by("s", "predicate", "o", "origin", maintain_order=True).head(MAX_GOLDS)
    missing = every.select(pl.col("gold").alias("n")).unique().join(names, on="n", how="anti")
    named = pl.concat([names, _texts(graph, _as_rows(missing))]) if missing.height else names
    every = every.join(named.select(pl.col("n").alias("gold"), "id", "text"), on="gold", how="left")
    every = every.sort("first", "gold")
    return every.group_by("s", "predicate", "o", "origin").agg(
        pl.col("id").alias("golds"), pl.col("text").alias("gold_labels")
    )


def with_linked(asked: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    """Rows of EXAMPLES whose golds end in those that Wikidata alone states, `linked` of them.

    A gold has a label that no other gold of its row has. Reversed and inferred rows state nothing
    that could be looked up. Without `graph.wikidata` the rows are as they were.
    """
    if graph.wikidata is None:
        return asked
    pairs = asked.filter(origin="stored").select("subject", relation="predicate").unique()
    stated = graph.wikidata.semi_join(graph.engine.table(pairs), ["subject", "relation"])
    found = graph.frame(stated.select("subject", "relation", "object", "object_label"))
    label = pl.col("object_label").str.strip_chars()
    found = found.with_columns(label).drop_nulls().filter(
        label.str.len_chars() > 0, ~label.str.contains(UNUSABLE)
    )  # fmt: skip
    known = asked.filter(origin="stored").select(
        "subject", pl.col("predicate").alias("relation"), "golds", "gold_labels"
    )
    known = known.explode("golds", "gold_labels")
    for ours, theirs in (("golds", "object"), ("gold_labels", "object_label")):
        have = known.select("subject", "relation", pl.col(ours).alias(theirs)).unique()
        found = found.join(have, on=["subject", "relation", theirs], how="anti")
    first = found.sort("object").unique(
        ["subject", "relation", "object_label"], keep="first", maintain_order=True
    )
    more = first.group_by("subject", pl.col("relation").alias("predicate"), maintain_order=True)
    lists = more.agg(more_golds=pl.col("object"), more_labels=pl.col("object_label")).with_columns(
        pl.col("more_golds", "more_labels").list.head(MAX_GOLDS), origin=pl.lit("stored")
    )
    both = asked.join(
        lists, on=["subject", "predicate", "origin"], how="left", maintain_order="left"
    )
    none = pl.lit([], dtype=pl.List(pl.String))
    both = both.with_columns(pl.col("more_golds", "more_labels").fill_null(none))
    return both.with_columns(
        golds=pl.col("golds").list.concat("more_golds"),
        gold_labels=pl.col("gold_labels").list.concat("more_labels"),
        linked=pl.col("more_golds").list.len().cast(pl.Int64),
    ).drop("more_golds", "more_labels")


def _as_rows(numbers: pl.DataFrame) -> pl.DataFrame:
    return numbers.select(pl.col("n").alias("s"), pl.col("n").alias("o"), ids=pl.concat_list("n"))


def _two_up(asked: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    """Every class exactly two steps up, as golds of the inferred rows."""
    inferred = asked.filter(pl.col("origin") == "inferred", ~_is_steps())
    if not inferred.height:
        return inferred.with_columns(gold=pl.col("o"), first=pl.lit(1))
    up = graph.of(graph.ids.numbers([graph.ids.subclass_of])).select("s", "o")
    own = up.semi_join(_numbers(graph, inferred.select("s").unique()), "s")
    # from the few subjects that are asked for
    twice = up.select(middle="s", gold="o").inner_join(own.select("s", middle="o"), "middle")
    apart = twice.filter(twice["s"] != twice["gold"]).select("s", "gold").distinct()
    golds = graph.frame(apart).cast({"s": pl.UInt64, "gold": pl.UInt64})
    return inferred.join(golds, on="s").with_columns(first=pl.lit(1))


def _two_steps(asked: pl.DataFrame, graph: Graph) -> pl.DataFrame:
    """Every object that two different steps lead to, as golds of their inferred rows."""
    inferred = asked.filter(_is_steps())
    if not inferred.height:
        return inferred.with_columns(gold=pl.col("o"), first=pl.lit(1))
    first = pl.col("predicate").str.split(STEP).list.first()
    keyed = inferred.with_columns(_first=first).with_columns(
        s=pl.col("s").cast(pl.Int64),
        p=graph.ids.predicates("_first"),
        last=graph.ids.predicates("predicate"),
    )
    wanted = graph.engine.table(keyed.select("s", "p", "last").unique())
    own = graph.edges.inner_join(wanted, ["s", "p"]).select("s", "p", "last", middle="o")
    steps = graph.edges.select(middle="s", last="p", gold="o")
    golds = graph.frame(own.inner_join(steps, ["middle", "last"]).drop("middle").distinct())
    found = keyed.join(golds, on=["s", "p", "last"]).filter(pl.col("s") != pl.col("gold"))
    return found.with_columns(pl.col("s", "gold").cast(pl.UInt64), first=pl.lit(1))


def _is_steps() -> pl.Expr:
    return pl.col("predicate").str.contains(STEP, literal=True)


def candidate_sets(asked: pl.DataFrame, graph: Graph, size: int) -> pl.DataFrame:
    """CANDIDATES and `added`: the own golds of the sampled rows and a relation's frequent objects.

    The own golds of all rows of a relation and its most frequent objects, `size` of them or as many
    as the own golds are, make its list; further golds of a row that the list lacks are added to it,
    so that a ranking knows every true answer. Of the labels of one relation each stands once; the
    reversed rows of asymmetry are answered by subjects and have sets of their own.
    """
    golds = asked.select(
        set=_set_name(), id="object", label="object_label", predicate="predicate", rank=pl.lit(0)
    ).unique(["set", "label"], keep="first", maintain_order=True)  # fmt: skip
    wanted = golds.select("set", "predicate").unique()
    frequent = _frequent(wanted, graph, size)
    both = pl.concat(
        [golds.drop("predicate").with_columns(rank=pl.lit(0, dtype=pl.Int64)), frequent]
    )
    both = both.sort("set", "rank", "label", "id").unique(
        ["set", "label"], keep="first", maintain_order=True
    )
    place = pl.int_range(pl.len()).over("set")
    own = (pl.col("rank") == 0).sum().over("set")
    both = both.filter(place < pl.max_horizontal(own, pl.lit(size)))
    both = both.select("set", "id", "label", added=pl.lit(False))
    every = asked.select("golds", "gold_labels", set=_set_name()).explode("golds", "gold_labels")
    every = every.drop_nulls("gold_labels").unique()
    every = every.select("set", id="golds", label="gold_labels", added=pl.lit(True))
    every = every.join(both, on=["set", "label"], how="anti").sort("set", "label", "id")
    every = every.unique(["set", "label"], keep="first", maintain_order=True)
    both = pl.concat([both, every]).sort("set", "label")
    both = both.with_columns(index=pl.int_range(pl.len(), dtype=pl.Int32).over("set"))
    return both.select(*CANDIDATES.columns, "added")


def _set_name() -> pl.Expr:
    reverse = (
        pl.when(pl.col("origin") == "reversed").then(pl.lit("/reversed")).otherwise(pl.lit(""))
    )
    return pl.concat_str("benchmark", pl.lit("/"), "predicate", reverse)


def _frequent(wanted: pl.DataFrame, graph: Graph, size: int) -> pl.DataFrame:
    """(set, id, label, rank): the most frequent labelled objects of every set's relation."""
    sets = wanted.with_columns(
        p=graph.ids.predicates("predicate"), turned=pl.col("set").str.ends_with("/reversed")
    )
    parts = []
    for side, turned in (("o", False), ("s", True)):
        own = sets.filter(turned=turned).select("set", "p")
        if not own.height:
            continue
        top = _top(graph, graph.edges, own, side, size)
        named = graph.entities.select("id", "label").inner_join(top, [("id", side)])
        frame = graph.frame(named.select("p", "n", "id", "label")).join(own, on="p")
        entity = decode_ids("id", graph.ids.entities(frame["id"].unique().to_list()))
        parts.append(frame.select("set", "n", id=entity, label="label"))
        if not turned:
            top = _top(graph, graph.literals, own, "value", size, "text")
            frame = graph.frame(top).join(own, on="p")
            parts.append(frame.select("set", "n", id="value", label="text"))
    every = pl.concat(parts).sort("set", "n", "id", descending=[False, True, False])
    ranked = every.with_columns(rank=1 + pl.int_range(pl.len(), dtype=pl.Int64).over("set"))
    return ranked.filter(pl.col("label").is_not_null()).select("set", "id", "label", "rank")


def _top(graph: Graph, edges: Table, sets: pl.DataFrame, side: str, size: int, *more: str) -> Table:
    """(p, side, more, n): the most frequent values of a column in each set's relation.

    Twice as many as asked for, since some have no label.
    """
    chosen = edges.semi_join(graph.engine.table(sets.select("p").unique()), "p")
    counts = counted(chosen, ["p", side, *more])
    return first(counts, 2 * size, [ibis.desc("n"), side], ["p"])


def as_items(asked: pl.DataFrame, options: pl.DataFrame) -> pl.DataFrame:
    """ITEMS of the sampled rows of EXAMPLES; `answers`: every gold with a label, the own one first.

    `options`: candidate_sets. `meta` tells how many of an item's golds were added to its list, and
    where golds are linked how many of them, the last ones, Wikidata alone states.
    """
    columns = ("set", "label", "index", "added")
    places = {(name, label): (i, new) for name, label, i, new in options.select(columns).rows()}
    rows = []
    asked = asked.with_columns(set=_set_name()).sort("example", "position")
    for number, row in enumerate(asked.iter_rows(named=True)):
        labels = dict.fromkeys([row["object_label"], *filter(None, row["gold_labels"])])
        answers = [places[row["set"], label] for label in labels]
        meta = {key: row[key] for key in META} | {"golds_added": sum(new for _, new in answers)}
        if "linked" in row:
            meta["golds_wikidata"] = row["linked"]
        rows.append(
            (
                f"{row['example']}#{row['position']}",
                row["example"],
                row["role"],
                row["predicate"],
                row["subject_label"],
                row["subject"],
                row["set"],
                [place for place, _ in answers],
                number,
                json.dumps(meta, sort_keys=True, ensure_ascii=False),
            )
        )
    return pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row")
