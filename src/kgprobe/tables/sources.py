"""RESULTS on the sources: dumps against SPARQL, rebuilt data against released data."""

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from kgprobe.benchmarks.bear.against_released import STATES
from kgprobe.contracts import WHOLE
from kgprobe.knowledge.facts import best_rank
from kgprobe.metrics.sums import ordered_sum
from kgprobe.schema import Contract
from kgprobe.tables.report import grid
from kgprobe.tables.report.section import Section
from kgprobe.tables.results import Number, frame, proportion
from kgprobe.tables.views import View

#: proportion of the released instances in a state (`slice`)
STATE = "instances in a state"


def against_released(states: pl.DataFrame, agreement: pl.DataFrame) -> pl.DataFrame:
    """Compute RESULTS from RELEASED_STATES and AGREEMENT of each relation (`group`) and of all.
    Each state in per cent of instances (Wilson; n: released instances, numerator: those in it);
    released instances found in the pull; Jaccard of answers and of instances in per cent (n: size
    of the union); AUC of popularity, 0 to 1 (n: pairs compared)."""
    numbers: list[Number] = []
    for relation in ["", *sorted(states["relation"].unique())]:
        of = Number(metric=STATE, benchmark="bear_big_released", group=relation)
        rows, near = (
            frame.filter(relation=relation) if relation else frame for frame in (states, agreement)
        )
        for state in STATES:
            count = rows.filter(state=state).height
            both = {"numerator": count, "denominator": rows.height}
            numbers.append(of.but(slice=state, **{**proportion(count, rows.height), **both}))
        if not near.height:
            continue
        total = near.drop("relation", "auc").sum().row(0, named=True)
        found = proportion(total["found"], total["released"])
        numbers.append(of.but(metric="found in the pull", **found))
        for kind in ("answers", "instances"):
            n = total[f"{kind}_all"]
            value = 100 * total[f"{kind}_shared"] / n
            numbers.append(of.but(metric=f"{kind}, Jaccard", value=value, n=n))
        if n := total["pairs"]:
            weighted = near.select(ordered_sum(pl.col("auc").fill_null(0) * pl.col("pairs"))).item()
            numbers.append(of.but(metric="popularity AUC", value=weighted / n, n=n))
    return frame("sources", numbers)


EQUAL = "equal to the released"
#: aspects compared with the released ontology -> description
ASPECTS = {
    "chain": "superclass chains of classes",
    "aligned": "properties aligned with DBpedia",
    "domain": "domains of properties",
    "range": "ranges of properties",
    "superproperties": "all superproperties found",
}

DIFFERENCES = Contract(
    "ONTOLOGY_DIFFERENCES",
    dict.fromkeys(("what", "id", "label", "released", "ours", "reason"), pl.String),
    ("what", "id"),
    frozenset({"released", "ours"}),
    may_be_empty=True,
)


def chain_differences(
    released: pl.DataFrame, classes: pl.DataFrame, chains: pl.DataFrame, rejects: pl.DataFrame
) -> pl.DataFrame:
    """Return classes whose superclass chain differs from the released one, ignoring case in labels.

    `released` has class, label, superclasses; `classes` has class; `chains` and `rejects` as built.
    """
    by_id = chains.sort("position").group_by("id").agg("ancestor_label")
    ours: dict[str, list[str]] = dict(by_id.rows())
    declared = set(classes["class"].to_list())
    stray = dict(rejects.select("child", "parent").rows())
    rows = []
    for iri, label, gold in released.select("class", "label", "superclasses").rows():
        chain = ours.get(iri, [])
        if iri in declared and _casefold(chain) == _casefold(gold):
            continue
        reason = _chain_reason(iri in declared, gold, chain, stray.get(iri))
        rows.append(("chain", iri, label, " > ".join(gold), " > ".join(chain), reason))
    return pl.DataFrame(rows, schema=dict(DIFFERENCES.columns), orient="row")


def _chain_reason(declared: bool, gold: list[str], chain: list[str], stray: str | None) -> str:
    released, ours = set(_casefold(gold)), set(_casefold(chain))
    if not declared:
        return "the class is not in this snapshot (renamed or removed)"
    if stray:
        return f"its parent {stray.rsplit('/', 1)[-1]} is not declared in this snapshot"
    if released == ours:
        return "the released chain is not ordered finest first"
    gone, new = sorted(released - ours), sorted(ours - released)
    parts = [f"no longer below {', '.join(gone)}"] if gone else []
    parts += [f"now below {', '.join(new)}"] if new else []
    return "; ".join(parts)


def property_differences(
    released: pl.DataFrame,
    properties: pl.DataFrame,
    chains: pl.DataFrame,
    alignment: pl.DataFrame,
    labels: dict[str, str],
) -> pl.DataFrame:
    """Return differences of the released properties that have ids in both graphs.

    Rows of four kinds (`aligned`, `domain`, `range`, `superproperties`); `labels` are the classes'.
    """
    both = released.filter(pl.col("property").is_not_null() & pl.col("dbpedia").is_not_null())
    known = {row["property"]: row for row in properties.iter_rows(named=True)}
    pairs = set(alignment.select("property", "dbpedia").rows())
    by_id = chains.group_by("id").agg("ancestor_label")
    ancestors = {iri: set(_casefold(names)) for iri, names in by_id.rows()}
    rows: list[tuple[str | None, ...]] = []
    for gold in both.iter_rows(named=True):
        iri, label = gold["property"], gold["label"]
        mine = known.get(iri, {})
        if (iri, gold["dbpedia"]) not in pairs:
            others = sorted(b for a, b in pairs if a == iri)
            reason = (
                "the graphs state a different equivalence" if others
                else "neither graph states this equivalence today"
            )  # fmt: skip
            rows.append(("aligned", iri, label, gold["dbpedia"], ", ".join(others), reason))
        for side in ("domain", "range"):
            ours = labels.get(mine.get(side) or "")
            if (ours or "").casefold() != (gold[side] or "").casefold():
                source = mine.get(f"{side}_source") or "neither graph"
                rows.append((side, iri, label, gold[side], ours, f"ours comes from {source}"))
        above = set(_casefold(gold["superproperties"]))
        if missing := sorted(above - ancestors.get(iri, set())):
            text = ", ".join(sorted(ancestors.get(iri, set())))
            reason = f"not an ancestor today: {', '.join(missing)}"
            row = ("superproperties", iri, label, ", ".join(gold["superproperties"]), text, reason)
            rows.append(row)
    return pl.DataFrame(rows, schema=dict(DIFFERENCES.columns), orient="row")


def agreement(
    released: pl.DataFrame, properties: pl.DataFrame, differing: pl.DataFrame
) -> pl.DataFrame:
    """Compute RESULTS of agreement in per cent: chains of classes, four aspects of properties."""
    both = properties.filter(pl.col("property").is_not_null() & pl.col("dbpedia").is_not_null())
    totals = dict.fromkeys(ASPECTS, both.height) | {"chain": released.height}
    counts = dict(differing.group_by("what").len().rows())
    equal = {what: proportion(n - counts.get(what, 0), n) for what, n in totals.items()}
    of = Number(metric=EQUAL, benchmark="onto_released")
    return frame("sources", (of.but(slice=what, **each) for what, each in equal.items()))


def _casefold(labels: list[str]) -> list[str]:
    return [label.casefold() for label in labels]


LEAD = (
    "Everything here is rebuilt from its sources with the same queries and rules. This section "
    "shows how well the types of access agree with each other, and what happened to the released "
    "data sets."
)
#: shown if the collection of statements contains the released BEAR itself
CIRCULAR = (
    "The collection of statements used here includes the released BEAR-big, so what is built from "
    "it agrees with BEAR by construction: these figures test the rules of the construction and say "
    "nothing about how Wikidata has changed. A live pull does."
)
CHOSEN = (
    "answers × instances per answer; popularity of the last one chosen and the first one not "
    "chosen, for answers and for instances"
)
#: metrics of a dump
ACCESS = ("statements in both", "labels and sitelinks equal")
PAPER = {"paper": ["sources"]}
AGREEMENT = View(
    "access_agreement",
    "Dumps against SPARQL",
    where={**PAPER, "metric": ACCESS},
    rows=["benchmark"],
    heads={"benchmark": "dump"},
    words={name: f"{name}, %" for name in ACCESS},
    caption="Of all statements in the dump or the SPARQL pull, the proportion in both.",
)
ONTOLOGY = View(
    "ontology_agreement",
    "Our ontology compared with the released one",
    where={**PAPER, "metric": [EQUAL], "slice": list(ASPECTS)},
    rows=["slice"],
    heads={"slice": "what"},
    words={**ASPECTS, EQUAL: "equal, %"},
    caption="Proportion equal to the released ontology; 95 % intervals in small print.",
)
RELEASED = View(
    "bear_against_released",
    "The released BEAR in this pull",
    where={**PAPER, "benchmark": ["bear_big_released"], "group": [""]},
    rows=["metric", "slice"],
    columns=["benchmark"],
    heads={"metric": "what", "slice": "state"},
    words={"bear_big_released": "per cent"} | {s: s.replace("_", " ") for s in STATES},
    digits={"popularity AUC": 3},
    caption="One state per instance, the first that applies; in % of the released instances.",
)
BY_RELATION = View(
    "bear_against_released_relations",
    "The released BEAR in this pull, relation by relation",
    where={
        **PAPER,
        "benchmark": ["bear_big_released"],
        "metric": [STATE, "answers, Jaccard", "instances, Jaccard"],
        "slice": ["same", "statement_gone", "answer_changed", "multi_valued", "label_changed", ""],
    },
    rows=["group"],
    columns=["metric", "slice"],
    heads={"group": "relation"},
    words={(STATE): ""} | {s: f"{s.replace('_', ' ')}, %" for s in STATES},
)


def access(pulled: pl.DataFrame, dumps: Mapping[str, tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Compute RESULTS of statements read from `dumps` (name -> (form, STATEMENTS)) against the
    SPARQL pull; `benchmark`: the dump. Only of items as objects and the dump's relations, for a
    truthy dump of the pull's best ranks: statements in both, of all in either (n); of those in
    both, those equal in labels and sitelink counts."""
    numbers = []
    key = ["subject", "relation", "object", "rank"]
    content = ["subject_label", "object_label", "subject_sitelinks", "object_sitelinks"]
    for name, (form, statements) in dumps.items():
        relations = statements["relation"].unique()
        theirs = best_rank(pulled) if form == "truthy" else pulled
        theirs = theirs.filter(pl.col("relation").is_in(relations.implode()))
        ours = statements.filter(pl.col("object_kind") == "item")
        if form == "truthy":
            ours, theirs = (f.with_columns(rank=pl.lit("normal")) for f in (ours, theirs))
        ours, theirs = (f.select(key + content).unique(key) for f in (ours, theirs))
        both = ours.join(theirs, on=key, suffix="_pulled")
        union = ours.height + theirs.height - both.height
        same = both.filter(*(pl.col(c).eq_missing(pl.col(f"{c}_pulled")) for c in content))
        numbers += [
            Number(metric=ACCESS[0], benchmark=name, **proportion(both.height, union)),
            Number(metric=ACCESS[1], benchmark=name, **proportion(same.height, both.height)),
        ]
    return frame("sources", numbers)


def section(
    results: pl.DataFrame,
    differences: pl.DataFrame | None,
    funnels: Mapping[str, pl.DataFrame],
    choices: Mapping[str, pl.DataFrame],
    names: Mapping[str, str],
    circular: bool,
    coverage: pl.DataFrame | None = None,
) -> Section:
    """Build the section on sources from the available tables.

    `results`: RESULTS of the comparisons; `funnels` and `choices` by constructed set; `names`:
    relation -> name; `circular`: the statements contain the released set, which `CIRCULAR` then
    warns about; `coverage`: COVERAGE of the pull that sets are constructed from.
    """
    part = " (holds BEAR: by construction)" if circular else ""
    released = replace(RELEASED, title=RELEASED.title + part)
    heads = {("group", r): grid.titled(r, names) for r in results["group"].unique() if r}
    ordered = sorted((r for _, r in heads), key=grid.property_order)
    shown = [grid.of_view(view, results, False) for view in (AGREEMENT, ONTOLOGY, released)]
    folded = [grid.of_view(BY_RELATION.where_also(group=ordered), results, False, heads)]
    if differences is not None:
        title = f"Every difference from the released ontology, and why ({differences.height})"
        folded.insert(0, grid.records(title, differences.iter_rows(named=True)))
    for name, steps in funnels.items():
        shown.append(grid.funnel(steps, f"Construction of {name}"))
        folded.append(grid.funnel_by_relation(steps, names, f"Construction of {name}"))
    if coverage is not None:
        partly = coverage.filter(~pl.col("way").is_in(WHOLE)).sort("relation")
        title = f"Incomplete relations, and why ({partly.height})"
        shown.append(grid.records(title, partly.iter_rows(named=True)))
        folded.append(grid.records("Statements by kind of value", coverage.iter_rows(named=True)))
    for name, choice in choices.items():
        rows = choice.filter(pl.col("benchmark").str.starts_with(name)).iter_rows(named=True)
        title = f"Construction of {name}: selection of answers and instances"
        folded.append(grid.records(title, rows, CHOSEN))
    notes = [CIRCULAR] if circular and STATE in results["metric"] else []
    tables = grid.filled_in(shown), grid.filled_in(folded)
    return Section("sources", "Sources: rebuilt and released", LEAD, notes, *tables)
