"""Two steps: (s, r1, b), (b, r2, o), asked as one question, without a shortcut (ours).

    The place of birth of the mother of Ana is ...      s: Ana, b withheld, o asked

The steps lead to few objects (`objects`), every object that they reach is a gold, and nothing links
s to a gold: no statement of any relation, either way round, and no taught sentence. No name of s, b
and the golds holds another one, and none stands in the words of the question. Both hops are asked
beside it.

How far a shortcut could be guessed is told by the best rule (x, r1, y), (y, r2, z) => (x, r3, z):
its PCA confidence is the share of the pairs (x, z), x having some object of r3, that have it.
Source: Galárraga et al. 2013 (AMIE), section 4, and 2015 (AMIE+).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.examples import Chooser, Shape, TripleColumns, pick, require
from kgprobe.benchmarks.attributes.items import AttributeSet, built
from kgprobe.benchmarks.attributes.patterns import expandable
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.engine import counted
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import TwoSteps
from kgprobe.templates import STEP

SHAPE = Shape(
    "two_steps",
    ("r1", "r2"),
    "{}>{}",
    ("s", "b", "o"),
    (
        TripleColumns("hop1", "s", "r1", "b"),
        TripleColumns("hop2", "b", "r2", "o"),
        TripleColumns("two_steps", "s", f"r1{STEP}r2", "o", "inferred"),
    ),
    chain=True,
)
#: strata by the confidence of the best rule: flags of examples
NO_RULE, LOW, MIDDLE, HIGH = STRATA = (
    "no rule",
    "confidence below .1",
    "confidence .1 to .5",
    "confidence above .5",
)
#: edges of the middle stratum, which has both
EDGES = (0.1, 0.5)
ASKED = ["s", "r1", "r2"]


def build(graph: Graph, settings: AttributeSettings[TwoSteps]) -> AttributeSet:
    """At most `examples` chains of every stratum, `per_entity` with the same entity, by hash."""
    steps = Funnel(SHAPE.benchmark)
    found = candidates(graph, settings, steps)
    require(found.height, SHAPE.benchmark, settings, steps)
    rows, choose = graph.engine.table(found), capped(graph, settings)
    picked = pick(SHAPE, rows, graph, settings, steps, choose, None)
    return built(SHAPE, picked, graph, settings, steps)


def subject_gold_pairs(
    taught: Iterable[tuple[pl.DataFrame, pl.DataFrame]],
) -> frozenset[tuple[str, str]]:
    """(subject, gold) by label, of all questions of some (ITEMS, CANDIDATES): what is taught beside
    the statements of the graph is out of these."""
    found: set[tuple[str, str]] = set()
    for items, options in taught:
        golds = items.select("subject", set="candidates", index="answers").explode("index")
        found |= set(golds.join(options, on=["set", "index"]).select("subject", "label").rows())
    return frozenset(found)


def capped(graph: Graph, settings: AttributeSettings[TwoSteps]) -> Chooser:
    """Takes candidates in the order of their hash, where none of their entities has had its share
    and their stratum is not full."""
    own = settings.own

    def choose(rows: Table) -> Table:
        names = [*SHAPE.strata, *SHAPE.ids]
        keyed = graph.frame(graph.ids.keyed(rows, settings.seed, names, SHAPE.benchmark))
        used: Counter[int] = Counter()
        full: Counter[str] = Counter()
        kept = []
        for row in keyed.sort("_key", *names).drop("_key").iter_rows(named=True):
            ends = [row[name] for name in SHAPE.ids]
            if full[row["flag"]] < own.examples and all(used[e] < own.per_entity for e in ends):
                full[row["flag"]] += 1
                used.update(ends)
                kept.append(row)
        schema = {name: keyed.schema[name] for name in rows.columns}
        return graph.engine.table(pl.DataFrame(kept, schema=schema))

    return choose


def candidates(graph: Graph, settings: AttributeSettings[TwoSteps], steps: Funnel) -> pl.DataFrame:
    """(r1, r2, s, b, o, flag): one chain of every question without a shortcut, the lowest of its
    numbers; `flag` is its stratum.

    Chains begin at `subjects` entities by hash, so that no hub in the middle is met by all.
    """
    own = settings.own
    _, bounded = expandable(SHAPE, graph, settings, steps)
    edges = graph.without(graph.ids.numbers(own.exclude))
    known = edges.select("s").distinct()
    drawn = graph.smallest(known, own.subjects, settings.seed, ["s"], (), "two_steps/subjects")
    subjects = graph.engine.keep(drawn)
    n, total = (_size(graph, rows) for rows in (subjects, known))
    steps.kept("subjects", n, total, "beyond the sample of subjects")
    chains = _functional(graph, edges, subjects, own.objects, steps)
    require(chains.height, SHAPE.benchmark, settings, steps)
    chains = _open(chains, graph, own.options, steps)
    chains = _with_noun_phrases(chains, graph, settings, steps)
    chains = _apart(chains, graph, settings, steps)
    require(chains.height, SHAPE.benchmark, settings, steps)
    # a step is excluded, what a rule concludes need not be
    rules = confidences(graph, bounded, subjects, chains.select("r1", "r2").unique())
    strata = best(rules, own.support).select("r1", "r2", flag=stratum())
    first = chains.sort(*ASKED, "b", "o").unique(ASKED, keep="first", maintain_order=True)
    found = first.join(strata, on=["r1", "r2"], how="left", maintain_order="left")
    found = found.with_columns(pl.col("flag").fill_null(NO_RULE))
    counts = dict(found["flag"].value_counts().rows())
    told = ", ".join(f"{name} {counts.get(name, 0):,}" for name in STRATA)
    steps.kept("questions", found.height, found.height, told)
    return found.select("r1", "r2", "s", "b", "o", "flag")


def _functional(
    graph: Graph, edges: Table, subjects: Table, most: int, steps: Funnel
) -> pl.DataFrame:
    """(r1, r2, s, b, o) of all chains of questions whose steps have at most `most` objects each."""
    sizes = counted(edges, ["s", "p"])
    few, many = (sizes.filter(where) for where in (sizes["n"] <= most, sizes["n"] > most))
    own = edges.semi_join(subjects, "s").semi_join(few, ["s", "p"])
    one = graph.engine.keep(own.select("s", r1="p", b="o"))
    two = edges.semi_join(few, ["s", "p"]).select(b="s", r2="p", o="o")
    chains = graph.frame(one.inner_join(two, "b").select("r1", "r2", "s", "b", "o"))
    open_ = one.inner_join(many.select(b="s", r2="p"), "b").select(*ASKED).distinct()
    wide = graph.frame(open_)
    kept = chains.join(wide, on=ASKED, how="anti")
    n = _questions(kept)
    every = pl.concat([chains.select(ASKED), wide.select(ASKED)]).n_unique()
    steps.kept("questions of few objects", n, every, f"the second step has more than {most}")
    return kept


def _open(chains: pl.DataFrame, graph: Graph, least: int, steps: Funnel) -> pl.DataFrame:
    """The chains of relations that have `least` different objects: of fewer options the right one
    is guessed."""
    objects = graph.edges.group_by("p").aggregate(n=graph.edges["o"].nunique())
    wide = graph.frame(objects).filter(pl.col("n") >= least)["p"].to_list()
    kept = chains.filter(pl.col("r1").is_in(wide), pl.col("r2").is_in(wide))
    reason = f"a step has fewer than {least} different objects"
    steps.kept("options", _questions(kept), _questions(chains), reason)
    return kept


def _with_noun_phrases(
    chains: pl.DataFrame, graph: Graph, settings: AttributeSettings[TwoSteps], steps: Funnel
) -> pl.DataFrame:
    """The chains of relations that have a noun phrase; the funnel names those that have none."""
    if settings.nouns is None or not settings.shared.require_labels:
        return chains
    legal = graph.ids.templated(settings.nouns)
    kept = chains.filter(pl.col("r1").is_in(legal), pl.col("r2").is_in(legal))
    lost: Counter[int] = Counter()
    for column in ("r1", "r2"):
        wrong = chains.filter(~pl.col(column).is_in(legal)).unique(ASKED)
        lost.update(dict(wrong[column].value_counts().rows()))
    order = sorted(lost.items(), key=lambda one: (-one[1], one[0]))
    listed = ", ".join(f"{graph.ids.relation(p)} ({n:,})" for p, n in order)
    reason = f"no noun phrase: {listed}" if listed else "no noun phrase"
    steps.kept("noun phrases", _questions(kept), _questions(chains), reason)
    return kept


def _apart(
    chains: pl.DataFrame, graph: Graph, settings: AttributeSettings[TwoSteps], steps: Funnel
) -> pl.DataFrame:
    """The chains of questions that neither lead back nor have a shortcut, and name no bridge."""
    if not chains.height:
        return chains
    names = _names(chains, graph)
    pairs = chains.select("s", "o").unique()
    linked = _linked(pairs, graph)
    told = {(one.casefold(), other.casefold()) for one, other in settings.taught}
    said = {
        (r1, r2): _words(graph, settings, r1, r2)
        for r1, r2 in chains.select("r1", "r2").unique().rows()
    }

    def taught(row: _Chain) -> bool:
        ends = names.get(row.s, ""), names.get(row.o, "")
        return ends in told or ends[::-1] in told

    def held(row: _Chain) -> bool:
        known = [names[one] for one in (row.s, row.b, row.o) if one in names]
        inside = any(
            one in other for i, one in enumerate(known) for j, other in enumerate(known) if i != j
        )
        return inside or any(f" {name} " in said[row.r1, row.r2] for name in known)

    checks = (
        ("leads elsewhere", "leads back to the subject", lambda row: row.s == row.o),
        ("no shortcut", "a statement links the subject to a gold", lambda r: (r.s, r.o) in linked),
        ("no taught shortcut", "a taught sentence names both", taught),
        ("names apart", "a name holds another one, or stands in the question", held),
    )
    rows = [_Chain(*row) for row in chains.select("r1", "r2", "s", "b", "o").rows()]
    for step, reason, is_wrong in checks:
        wrong = {row.question for row in rows if is_wrong(row)}
        before = len({row.question for row in rows})
        rows = [row for row in rows if row.question not in wrong]
        steps.kept(step, before - len(wrong), before, reason)
    schema = {name: chains.schema[name] for name in ("r1", "r2", "s", "b", "o")}
    return pl.DataFrame([vars(row) for row in rows], schema=schema)


@dataclass(frozen=True)
class _Chain:
    r1: int
    r2: int
    s: int
    b: int
    o: int

    @property
    def question(self) -> tuple[int, int, int]:
        """The question, which several chains may answer."""
        return self.s, self.r1, self.r2


def _names(chains: pl.DataFrame, graph: Graph) -> dict[int, str]:
    """Entity -> its label, case folded, of those that have one."""
    used = pl.concat([chains[name] for name in SHAPE.ids]).unique().alias("id").cast(pl.Int64)
    named = graph.entities.semi_join(graph.engine.table(used.to_frame()), "id")
    rows = graph.frame(named.select("id", "label")).drop_nulls()
    return {entity: label.casefold() for entity, label in rows.rows()}


def _linked(pairs: pl.DataFrame, graph: Graph) -> set[tuple[int, int]]:
    """The pairs (s, o) that some statement links, either way round."""
    wanted = graph.engine.table(pairs)
    edges = graph.edges
    there = edges.select("s", "o").semi_join(wanted, ["s", "o"])
    back = edges.select(s="o", o="s").semi_join(wanted, ["s", "o"])
    return set(graph.frame(there.union(back).distinct()).select("s", "o").rows())


def _words(graph: Graph, settings: AttributeSettings[TwoSteps], r1: int, r2: int) -> str:
    """The noun phrases of a question, case folded, between spaces."""
    nouns = settings.nouns or {}
    told = (nouns.get(graph.ids.relation(r), ("", ""))[0] for r in (r1, r2))
    return f" {' '.join(told).casefold()} "


def confidences(graph: Graph, edges: Table, subjects: Table, pairs: pl.DataFrame) -> pl.DataFrame:
    """(r1, r2, r3, body, support) of all rules (x, r1, y), (y, r2, z) => (x, r3, z).

    `pairs`: (r1, r2) that are wanted; x are the `subjects`, steps are `edges`, r3 is any relation.
    body: distinct pairs (x, z), x != z, whose x has some object of r3; support: those that have r3.
    """
    wanted = graph.engine.table(pairs)
    one = edges.semi_join(subjects, "s").select("s", r1="p", b="o")
    chains = one.inner_join(edges.select(b="s", r2="p", o="o"), "b")
    chains = chains.semi_join(wanted, ["r1", "r2"])
    body = graph.engine.keep(
        chains.filter(chains["s"] != chains["o"]).select("r1", "r2", "s", "o").distinct()
    )
    known = graph.edges.semi_join(subjects, "s").select("s", "o", r3="p")
    has = known.select("s", "r3").distinct()
    names = ["r1", "r2", "r3"]
    bodies = graph.frame(counted(body.inner_join(has, "s"), names)).rename({"n": "body"})
    right = graph.frame(counted(body.inner_join(known, ["s", "o"]), names))
    graph.engine.drop(body)
    right = right.rename({"n": "support"})
    return bodies.join(right, on=names).sort(names)


def best(rules: pl.DataFrame, support: int) -> pl.DataFrame:
    """(r1, r2, r3, confidence) of the best rule of each pair with enough support, ties to the
    lower relation; pairs without any are left out."""
    told = rules.filter(pl.col("support") >= support).with_columns(
        confidence=pl.col("support") / pl.col("body")
    )
    order = told.sort("r1", "r2", "confidence", "r3", descending=[False, False, True, False])
    first = order.unique(["r1", "r2"], keep="first", maintain_order=True)
    return first.select("r1", "r2", "r3", "confidence")


def stratum() -> pl.Expr:
    """The stratum of a `confidence`."""
    low, high = EDGES
    value = pl.col("confidence")
    return (
        pl.when(value < low).then(pl.lit(LOW)).when(value <= high).then(pl.lit(MIDDLE))
        .otherwise(pl.lit(HIGH))
    )  # fmt: skip


def _questions(chains: pl.DataFrame) -> int:
    return chains.select(ASKED).n_unique() if chains.height else 0


def _size(graph: Graph, rows: Table) -> int:
    return graph.engine.numbers(rows.aggregate(n=rows.count()))["n"]
