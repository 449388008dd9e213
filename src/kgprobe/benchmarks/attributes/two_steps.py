"""Two steps: (s, r1, b), (b, r2, o), asked as one question, without a shortcut (ours).

    The place of birth of the mother of Ana is ...      s: Ana, b withheld, o asked

The steps lead to few objects (`objects`), every object that they reach is a gold, and nothing links
s to a gold: no statement of any relation, either way round, and no training sentence. No name of s,
b and the golds holds another one, and none stands in the words of the question. Both hops are asked
beside it. The best rule measures how far a shortcut could be guessed (`shortcuts`).
"""

from collections import Counter

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes import shortcuts
from kgprobe.benchmarks.attributes.chains import edges_to_expand
from kgprobe.benchmarks.attributes.construct import Benchmark, Sample, construct
from kgprobe.benchmarks.attributes.definition import Definition, Setup, Triple
from kgprobe.benchmarks.attributes.settings import AttributeSettings
from kgprobe.benchmarks.attributes.shortcuts import QUESTION, count_questions, leave_out
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import TwoSteps
from kgprobe.templates import STEP

HOPS = (Triple("hop1", "s", "r1", "b"), Triple("hop2", "b", "r2", "o"))
TRIPLES = (*HOPS, Triple("two_steps", "s", f"r1{STEP}r2", "o", "inferred"))
ENTITIES = ("s", "b", "o")
DEFINITION = Definition("two_steps", ("r1", "r2"), "{}>{}", ENTITIES, TRIPLES, is_chain=True)


def build(graph: Graph, settings: AttributeSettings[TwoSteps]) -> Benchmark:
    """At most `examples` chains of every stratum, `per_entity` with the same entity, by hash."""
    setup = Setup(DEFINITION, graph, settings)
    rows = query(setup)
    setup.require(rows.height)
    return construct(setup, graph.engine.table(rows), capped(setup), None)


def query(setup: Setup[TwoSteps]) -> pl.DataFrame:
    """(r1, r2, s, b, o, flag): one chain of every question without a shortcut, the lowest of its
    numbers; `flag` is its stratum.

    Chains begin at `subjects` entities by hash, so that no hub in the middle is met by all.
    """
    graph, engine, section = setup.graph, setup.engine, setup.section
    _, bounded = edges_to_expand(setup)
    edges = graph.without(graph.relations.numbers(section.exclude))
    known = edges.select("s").distinct()
    drawn = graph.smallest(known, section.subjects, setup.seed, ["s"], (), "two_steps/subjects")
    subjects = engine.keep(drawn)
    why = "beyond the sample of subjects"
    setup.count("subjects", engine.count(subjects), engine.count(known), why)
    chains = _of_few_objects(setup, edges, subjects)
    setup.require(chains.height)
    chains = _with_options(setup, chains)
    if setup.settings.nouns is not None and setup.shared.require_labels:
        chains = _with_noun_phrases(setup, chains)
    setup.require(chains.height)
    chains = shortcuts.without_shortcut(setup, chains)
    setup.require(chains.height)
    # a step is excluded, what a rule concludes need not be
    rules = shortcuts.confidences(graph, bounded, subjects, chains.select("r1", "r2").unique())
    chains = chains.sort(*QUESTION, "b", "o").unique(QUESTION, keep="first", maintain_order=True)
    strata = shortcuts.strata(rules, section.support)
    chains = chains.join(strata, on=["r1", "r2"], how="left", maintain_order="left")
    chains = chains.with_columns(pl.col("flag").fill_null(shortcuts.NO_RULE))
    counts = dict(chains["flag"].value_counts().rows())
    why = ", ".join(f"{name} {counts.get(name, 0):,}" for name in shortcuts.STRATA)
    setup.count("questions", chains.height, chains.height, why)
    return chains.select("r1", "r2", "s", "b", "o", "flag")


def capped(setup: Setup[TwoSteps]) -> Sample:
    """Take candidates in the order of their hash, as long as none of their entities stands in
    `per_entity` of them and their stratum has less than `examples`."""
    graph, section = setup.graph, setup.section

    def sample(rows: Table) -> Table:
        names = DEFINITION.key
        keyed = graph.frame(graph.keyed(rows, setup.seed, names, "two_steps"))
        used: Counter[int] = Counter()
        sizes: Counter[str] = Counter()
        kept = []
        for row in keyed.sort("_key", *names).drop("_key").iter_rows(named=True):
            ends = [row[name] for name in DEFINITION.entities]
            is_free = all(used[end] < section.per_entity for end in ends)
            if is_free and sizes[row["flag"]] < section.examples:
                sizes[row["flag"]] += 1
                used.update(ends)
                kept.append(row)
        schema = {name: keyed.schema[name] for name in rows.columns}
        return graph.engine.table(pl.DataFrame(kept, schema=schema))

    return sample


def _of_few_objects(setup: Setup[TwoSteps], edges: Table, subjects: Table) -> pl.DataFrame:
    """(r1, r2, s, b, o) of all chains of questions whose steps have at most `objects` each."""
    graph, most = setup.graph, setup.section.objects
    sizes = count_rows(edges, ["s", "p"])
    few, many = sizes.filter(sizes["n"] <= most), sizes.filter(sizes["n"] > most)
    one = edges.semi_join(subjects, "s").semi_join(few, ["s", "p"])
    one = graph.engine.keep(one.select("s", r1="p", b="o"))
    two = edges.semi_join(few, ["s", "p"]).select(b="s", r2="p", o="o")
    chains = graph.frame(one.inner_join(two, "b").select("r1", "r2", "s", "b", "o"))
    wide = one.inner_join(many.select(b="s", r2="p"), "b").select(*QUESTION).distinct()
    wide = graph.frame(wide)
    kept = chains.join(wide, on=QUESTION, how="anti")
    n = pl.concat([chains.select(QUESTION), wide.select(QUESTION)]).n_unique()
    why = f"the second step has more than {most}"
    setup.count("questions of few objects", count_questions(kept), n, why)
    return kept


def _with_options(setup: Setup[TwoSteps], chains: pl.DataFrame) -> pl.DataFrame:
    """The chains of relations that have `options` different objects: of fewer the right one is
    guessed."""
    graph, least = setup.graph, setup.section.options
    objects = graph.edges.group_by("p").aggregate(n=graph.edges["o"].nunique())
    wide = graph.frame(objects).filter(pl.col("n") >= least)["p"].to_list()
    why = f"a step has fewer than {least} different objects"
    wrong = ~(pl.col("r1").is_in(wide) & pl.col("r2").is_in(wide))
    return leave_out(setup, chains, wrong, "options", why)


def _with_noun_phrases(setup: Setup[TwoSteps], chains: pl.DataFrame) -> pl.DataFrame:
    """The chains of relations that have a noun phrase; the funnel names those that have none."""
    relations, nouns = setup.graph.relations, setup.settings.nouns or ()
    known = [n for name in nouns if (n := relations.number(name)) is not None]
    missing: Counter[int] = Counter()
    for column in ("r1", "r2"):
        lacking = chains.filter(~pl.col(column).is_in(known)).unique(QUESTION)
        missing.update(dict(lacking[column].value_counts().rows()))
    order = sorted(missing.items(), key=lambda one: (-one[1], one[0]))
    names = ", ".join(f"{relations.name(p)} ({n:,})" for p, n in order)
    why = f"no noun phrase: {names}" if names else "no noun phrase"
    wrong = ~(pl.col("r1").is_in(known) & pl.col("r2").is_in(known))
    return leave_out(setup, chains, wrong, "noun phrases", why)
