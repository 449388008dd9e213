"""What the sources gave and how what is rebuilt from them stands to what was released."""

from collections.abc import Mapping, Sequence

import polars as pl

from kgprobe.benchmarks.bear_drift import STATES
from kgprobe.knowledge.facts import best_rank
from kgprobe.metrics.intervals import wilson
from kgprobe.tables import bear_drift, grid, table
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.grid import Grid

LEAD = (
    "Everything here is rebuilt from its sources by the same queries and rules. This chapter says "
    "how the ways of access agree with one another, and what became of the released data sets."
)
#: shown when the collection of statements holds the released BEAR itself
CIRCULAR = (
    "The collection of statements that was used holds the released BEAR-big itself. What is built "
    "from it agrees with BEAR by construction: these figures test the rules of the construction, "
    "and say nothing of how Wikidata has changed since. A live pull does."
)
#: what was compared with the released ontology -> words
ASPECTS = {
    "chain": "superclass chains of classes",
    "aligned": "properties aligned with DBpedia",
    "domain": "domains of properties",
    "range": "ranges of properties",
    "superproperties": "all superproperties found",
}


def access(pulled: pl.DataFrame, dumps: Mapping[str, tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """TABLE `access_agreement`: statements read from dumps against the pull over SPARQL.

    `dumps`: name -> (form, STATEMENTS). Only items as objects and relations of the dump are
    compared; a truthy dump with the best ranks of the pull. Columns: statements in both, of all
    that either has (n); of those in both, equal in labels and sitelink counts.
    """
    cells = []
    key = ["subject", "relation", "object", "rank"]
    content = ["subject_label", "object_label", "subject_sitelinks", "object_sitelinks"]
    for name, (form, found) in dumps.items():
        asked = found["relation"].unique()
        theirs = best_rank(pulled) if form == "truthy" else pulled
        theirs = theirs.filter(pl.col("relation").is_in(asked.implode()))
        ours = found.filter(pl.col("object_kind") == "item")
        if form == "truthy":
            ours, theirs = (f.with_columns(rank=pl.lit("normal")) for f in (ours, theirs))
        ours, theirs = (f.select(key + content).unique(key) for f in (ours, theirs))
        both = ours.join(theirs, on=key, suffix="_pulled")
        union = ours.height + theirs.height - both.height
        same = both.filter(
            pl.all_horizontal(pl.col(c).eq_missing(pl.col(f"{c}_pulled")) for c in content)
        )
        cells += [
            _share("access_agreement", name, "statements in both, %", both.height, union),
            _share(
                "access_agreement", name, "labels and sitelinks equal, %", same.height, both.height
            ),
        ]
    return table.build(cells)


def _share(name: str, row: str, column: str, count: int, n: int) -> dict[str, object]:
    low, high = wilson(count, n) if n else (0.0, 0.0)
    value = 100 * count / n if n else 0.0
    return table.cell(name, row, column, value, n, (100 * low, 100 * high), paper="sources")


def chapter(
    tables: Mapping[str, pl.DataFrame],
    differences: pl.DataFrame | None,
    funnels: Mapping[str, pl.DataFrame],
    choices: Mapping[str, pl.DataFrame],
    names: Mapping[str, str],
    circular: bool,
) -> Chapter:
    """The chapter on sources from the tables that were made.

    `tables`: TABLE frames by name; `funnels` and `choices` by constructed set; `names`: relation ->
    name; `circular`: the statements hold the released set, which `CIRCULAR` then says.
    """
    shown: list[Grid] = []
    folded: list[Grid] = []
    if "access_agreement" in tables:
        shown.append(_access(tables["access_agreement"]))
    if "ontology_agreement" in tables:
        shown.append(_ontology(tables["ontology_agreement"]))
        if differences is not None:
            title = f"Every difference from the released ontology, and why ({differences.height})"
            folded.append(grid.records(title, differences.iter_rows(named=True)))
    if "bear_drift" in tables:
        shown.append(_drift(tables["bear_drift"], circular))
        folded.append(_drift_by_relation(tables["bear_drift"], names))
    for name, frame in funnels.items():
        shown.append(_titled(grid.funnel(frame), f"Construction of {name}: steps, all relations"))
        by_relation = grid.funnel_by_relation(frame, names)
        folded.append(_titled(by_relation, f"Construction of {name}: relation by relation"))
    for name, frame in choices.items():
        folded.append(_choice(frame, name))
    notes = [CIRCULAR] if circular and "bear_drift" in tables else []
    return Chapter("sources", "Sources: rebuilt and released", LEAD, notes, shown, folded)


def _titled(found: Grid, title: str) -> Grid:
    return Grid(title, found.heads, found.rows, found.numeric, found.caption)


def _access(frame: pl.DataFrame) -> Grid:
    columns = {c: c for c in frame["column"].unique(maintain_order=True)}
    caption = "Of all statements that the dump or the pull over SPARQL has, those in both."
    return grid.pivot(frame, "Dumps against SPARQL", "dump", columns, caption=caption)


def _ontology(frame: pl.DataFrame) -> Grid:
    caption = "Share that is equal to the released ontology; 95 % interval in small print."
    rows = {key: name for key, name in ASPECTS.items() if key in set(frame["row"])}
    columns = {"equal to the released": "equal, %"}
    found = grid.pivot(
        frame, "Our ontology against the released one", "what", columns, rows, caption
    )
    n = {row["row"]: row["n"] for row in frame.iter_rows(named=True)}
    body = [[*cells, grid.text(int(n[key]))] for key, cells in zip(rows, found.rows, strict=True)]
    return Grid(found.title, [*found.heads, "of"], body, frozenset({1, 2}), caption)


def _drift(frame: pl.DataFrame, circular: bool) -> Grid:
    cells = table.lookup(frame)
    rows = []
    for state in STATES:
        share = cells[bear_drift.ALL, state]
        count = cells[bear_drift.ALL, f"{state}, count"]
        counted = grid.text(int(count["value"]))
        rows.append([grid.text(state.replace("_", " ")), counted, grid.measured(share)])
    for column in ("found in the pull", "answers, Jaccard", "instances, Jaccard", "popularity AUC"):
        if (bear_drift.ALL, column) in cells:
            cell = cells[bear_drift.ALL, column]
            size, digits = grid.text(int(cell["n"])), 3 if "AUC" in column else 1
            rows.append([grid.text(f"{column} (n beside)"), size, grid.measured(cell, digits)])
    title = "The released BEAR in this pull" + (
        " (holds BEAR: by construction)" if circular else ""
    )
    caption = "One state an instance, the first that holds; share of the released instances in %."
    return Grid(title, ["state", "instances", "%"], rows, frozenset({1, 2}), caption)


def _drift_by_relation(frame: pl.DataFrame, names: Mapping[str, str]) -> Grid:
    cells = table.lookup(frame)
    relations = [r for r in dict.fromkeys(frame["row"]) if r != bear_drift.ALL]
    shown = ["same", "statement_gone", "answer_changed", "multi_valued", "label_changed"]
    extra: Sequence[str] = ("answers, Jaccard", "instances, Jaccard")
    rows = [
        [
            grid.titled(relation, names),
            *(grid.measured(cells.get((relation, c))) for c in (*shown, *extra)),
        ]
        for relation in sorted(relations, key=grid.property_order)
    ]
    heads = ["relation", *(f"{c.replace('_', ' ')}, %" for c in (*shown, *extra))]
    return Grid("Drift, relation by relation", heads, rows, frozenset(range(1, len(heads))))


def _choice(frame: pl.DataFrame, name: str) -> Grid:
    """The choice of answers and instances, as it was made."""
    rows = frame.filter(pl.col("benchmark").str.starts_with(name)).iter_rows(named=True)
    caption = (
        "answers × instances per answer; popularity of the last taken and the first left out, of "
        "answers and of instances"
    )
    return grid.records(f"Construction of {name}: choice of answers and instances", rows, caption)
