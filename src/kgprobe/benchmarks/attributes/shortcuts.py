"""Shortcuts of two steps: which questions have one, and how far one could be guessed.

The PCA confidence of a rule (x, r1, y), (y, r2, z) => (x, r3, z) is the proportion of the pairs
(x, z), x having some object of r3, that have it. Source: Galárraga et al. 2013 (AMIE), section 4,
and 2015 (AMIE+).
"""

from itertools import permutations

import polars as pl
from ibis.expr.types import Table

from kgprobe.benchmarks.attributes.definition import Setup
from kgprobe.knowledge.engine import count_rows
from kgprobe.knowledge.graph import Graph
from kgprobe.settings import TwoSteps

QUESTION = ["s", "r1", "r2"]
#: strata by the confidence of the best rule: flags of examples
STRATA = ("no rule", "confidence below .1", "confidence .1 to .5", "confidence above .5")
NO_RULE, LOW, MIDDLE, HIGH = STRATA
#: the lowest and the highest confidence of the middle stratum
LIMITS = (0.1, 0.5)
LINKED = "a statement links the subject to a gold"


def confidences(graph: Graph, edges: Table, subjects: Table, pairs: pl.DataFrame) -> pl.DataFrame:
    """(r1, r2, r3, body, support) of all rules (x, r1, y), (y, r2, z) => (x, r3, z).

    `pairs`: (r1, r2) that are wanted; x are the `subjects`, steps are `edges`, r3 is any relation.
    body: distinct pairs (x, z), x != z, whose x has some object of r3; support: those that have r3.
    """
    one = edges.semi_join(subjects, "s").select("s", r1="p", b="o")
    chains = one.inner_join(edges.select(b="s", r2="p", o="o"), "b")
    chains = chains.semi_join(graph.engine.table(pairs), ["r1", "r2"])
    chains = chains.filter(chains["s"] != chains["o"])
    ends = graph.engine.keep(chains.select("r1", "r2", "s", "o").distinct())
    known = graph.edges.semi_join(subjects, "s").select("s", "o", r3="p")
    has = known.select("s", "r3").distinct()
    names = ["r1", "r2", "r3"]
    body = graph.frame(count_rows(ends.inner_join(has, "s"), names)).rename({"n": "body"})
    support = graph.frame(count_rows(ends.inner_join(known, ["s", "o"]), names))
    return body.join(support.rename({"n": "support"}), on=names).sort(names)


def strata(rules: pl.DataFrame, support: int) -> pl.DataFrame:
    """(r1, r2, flag): the stratum of the best rule of each pair with enough support; pairs without
    any are left out."""
    low, high = LIMITS
    enough = rules.filter(pl.col("support") >= support)
    confidence = (pl.col("support") / pl.col("body")).max()
    best = enough.group_by("r1", "r2").agg(confidence=confidence)
    flag = (
        pl.when(pl.col("confidence") < low).then(pl.lit(LOW))
        .when(pl.col("confidence") <= high).then(pl.lit(MIDDLE))
        .otherwise(pl.lit(HIGH))
    )  # fmt: skip
    return best.select("r1", "r2", flag=flag)


def without_shortcut(setup: Setup[TwoSteps], chains: pl.DataFrame) -> pl.DataFrame:
    """The chains of questions that neither lead back nor have a shortcut, and name no bridge."""
    graph, settings = setup.graph, setup.settings
    texts = graph.texts(pl.concat([chains[end] for end in "sbo"])).drop_nulls("text")
    names = {n: text.casefold() for n, text in texts.select("n", "text").rows()}
    wanted = graph.engine.table(chains.select("s", "o").unique())
    links = graph.edges.select("s", "o").union(graph.edges.select(s="o", o="s"))
    linked = graph.frame(links.semi_join(wanted, ["s", "o"]).distinct()).select("s", "o")
    pairs = {(one.casefold(), other.casefold()) for one, other in settings.trained_on}
    pairs |= {(other, one) for one, other in pairs}
    relations = {*chains["r1"], *chains["r2"]}
    nouns = {p: (settings.nouns or {}).get(graph.relations.name(p), ("",)) for p in relations}
    noun = {p: phrase[0].casefold() for p, phrase in nouns.items()}
    ends, columns = chains.select("s", "o").rows(), [pl.col(f"{end}_name") for end in "sbo"]
    is_trained_on = [(names.get(s, ""), names.get(o, "")) in pairs for s, o in ends]
    chains = chains.with_columns(
        *(
            pl.Series(f"{end}_name", [names.get(n) for n in chains[end]], dtype=pl.String)
            for end in "sbo"
        ),
        words=pl.Series([f" {noun[p]} {noun[q]} " for p, q in chains.select("r1", "r2").rows()]),
        trained_on=pl.Series(is_trained_on, dtype=pl.Boolean),
    )
    linked = linked.with_columns(linked=True)
    chains = chains.join(linked, on=["s", "o"], how="left", maintain_order="left")
    in_training = pl.col("trained_on")
    held = [one.str.contains(other, literal=True) for one, other in permutations(columns, 2)]
    spaced = (pl.concat_str(pl.lit(" "), name, pl.lit(" ")) for name in columns)
    held += [pl.col("words").str.contains(name, literal=True) for name in spaced]
    holds = pl.any_horizontal(condition.fill_null(False) for condition in held)
    steps = {
        ("leads elsewhere", "leads back to the subject"): pl.col("s") == pl.col("o"),
        ("no shortcut", LINKED): pl.col("linked").is_not_null(),
        ("no shortcut in training sentences", "a training sentence names both"): in_training,
        ("names apart", "a name holds another one, or stands in the question"): holds,
    }
    for (step, why), wrong in steps.items():
        chains = leave_out(setup, chains, wrong, step, why)
    return chains.select("r1", "r2", "s", "b", "o")


def leave_out(
    setup: Setup[TwoSteps], chains: pl.DataFrame, wrong: pl.Expr, step: str, why: str
) -> pl.DataFrame:
    """The chains of questions none of whose chains is `wrong`, counted."""
    kept = chains.filter(~wrong.any().over(QUESTION))
    setup.count(step, count_questions(kept), count_questions(chains), why)
    return kept


def count_questions(chains: pl.DataFrame) -> int:
    """The number of different questions."""
    return chains.select(QUESTION).n_unique() if chains.height else 0
