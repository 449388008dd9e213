"""Our ontology beside the released one: agreement, and every difference with its reason."""

import polars as pl

from kgprobe.metrics.intervals import wilson
from kgprobe.schema import TABLE, Contract

DIFFERENCES = Contract(
    "ONTOLOGY_DIFFERENCES",
    {
        "what": pl.String,
        "id": pl.String,
        "label": pl.String,
        "released": pl.String,
        "ours": pl.String,
        "reason": pl.String,
    },
    ("what", "id"),
    frozenset({"released", "ours"}),
    may_be_empty=True,
)


def chain_differences(
    released: pl.DataFrame, classes: pl.DataFrame, chains: pl.DataFrame, rejects: pl.DataFrame
) -> pl.DataFrame:
    """Classes whose superclass chain is not the released one, labels compared case-insensitively.

    `released` has class, label, superclasses; `classes` has class; `chains` and `rejects` as built.
    """
    ours: dict[str, list[str]] = {}
    for iri, ancestor in chains.sort("id", "position").select("id", "ancestor_label").rows():
        ours.setdefault(iri, []).append(ancestor)
    declared = set(classes["class"].to_list())
    stray = dict(rejects.select("child", "parent").rows())
    rows = []
    for iri, label, gold in released.select("class", "label", "superclasses").rows():
        found = ours.get(iri, [])
        if iri in declared and _folded(found) == _folded(gold):
            continue
        reason = _chain_reason(iri in declared, gold, found, stray.get(iri))
        rows.append(("chain", iri, label, " > ".join(gold), " > ".join(found), reason))
    return pl.DataFrame(rows, schema=dict(DIFFERENCES.columns), orient="row")


def _chain_reason(declared: bool, gold: list[str], found: list[str], stray: str | None) -> str:
    released, ours = set(_folded(gold)), set(_folded(found))
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
    """Differences of the released properties that have ids in both graphs.

    Rows of four kinds (`aligned`, `domain`, `range`, `superproperties`); `labels` are the classes'.
    """
    both = released.filter(pl.col("property").is_not_null() & pl.col("dbpedia").is_not_null())
    known = {row["property"]: row for row in properties.iter_rows(named=True)}
    pairs = set(alignment.select("property", "dbpedia").rows())
    ancestors: dict[str, set[str]] = {}
    for iri, name in chains.select("id", "ancestor_label").rows():
        ancestors.setdefault(iri, set()).add(name.casefold())
    rows: list[tuple[str | None, ...]] = []
    for gold in both.iter_rows(named=True):
        iri, label = gold["property"], gold["label"]
        mine = known.get(iri, {})
        if (iri, gold["dbpedia"]) not in pairs:
            others = sorted(b for a, b in pairs if a == iri)
            reason = (
                "the graphs state another equivalence" if others
                else "neither graph states this equivalence today"
            )  # fmt: skip
            rows.append(("aligned", iri, label, gold["dbpedia"], ", ".join(others), reason))
        for side in ("domain", "range"):
            ours = labels.get(mine.get(side) or "")
            if (ours or "").casefold() != (gold[side] or "").casefold():
                source = mine.get(f"{side}_source") or "neither graph"
                rows.append((side, iri, label, gold[side], ours, f"ours comes from {source}"))
        above = set(_folded(gold["superproperties"]))
        if missing := sorted(above - ancestors.get(iri, set())):
            found = ", ".join(sorted(ancestors.get(iri, set())))
            reason = f"not above it today: {', '.join(missing)}"
            row = ("superproperties", iri, label, ", ".join(gold["superproperties"]), found, reason)
            rows.append(row)
    return pl.DataFrame(rows, schema=dict(DIFFERENCES.columns), orient="row")


def agreement(
    released: pl.DataFrame, properties: pl.DataFrame, differing: pl.DataFrame
) -> pl.DataFrame:
    """TABLE of agreement in per cent: chains of the classes, four aspects of the properties."""
    both = properties.filter(pl.col("property").is_not_null() & pl.col("dbpedia").is_not_null())
    totals = {"chain": released.height} | dict.fromkeys(
        ("aligned", "domain", "range", "superproperties"), both.height
    )
    counts = dict(differing.group_by("what").len().rows())
    rows = []
    for what, n in totals.items():
        right = n - counts.get(what, 0)
        low, high = wilson(right, n)
        numbers = (100 * right / n, n, 100 * low, 100 * high, None)
        rows.append(("ontoprobe", "ontology_agreement", what, "equal to the released", *numbers))
    return pl.DataFrame(rows, schema=dict(TABLE.columns), orient="row")


def _folded(labels: list[str]) -> list[str]:
    return [label.casefold() for label in labels]
