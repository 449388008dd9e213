"""Facts for search from our own pulls of T-REx and Wikidata.

The released procedure: T-REx facts first; if there are fewer than 1000, Wikidata facts that pass
every filter; no test facts; a random split. There is no filter subject != object.
"""

import itertools
from collections.abc import Collection, Sequence

import polars as pl

from kgprobe.benchmarks.autoprompt.overlap import FACT
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.knowledge.facts import fact_id
from kgprobe.sampling import keys

#: Proportions of the splits (paper), for tasks with their own test facts and for those without.
PROPORTIONS = {
    "original": {"train": 0.8, "dev": 0.2},
    "trex": {"train": 0.6, "dev": 0.2, "test": 0.2},
    "roberta": {"train": 0.8, "dev": 0.2},
}
COLUMNS = ("relation", "subject", "subject_label", "object", "object_label")


def collect(
    relations: Sequence[str],
    test: pl.DataFrame,
    trex: pl.DataFrame,
    wikidata: pl.DataFrame,
    pages: Collection[str] | None,
    vocabulary: Collection[str],
    most: int,
    variant: str,
    seed: int,
    funnel: Funnel,
) -> pl.DataFrame:
    """Collect at most `most` facts of every relation, split as the task's `variant` requires.

    test: facts to exclude, as label pairs (the published files have no ids). trex, wikidata: FACTS.
    pages: ids of the subjects with a Wikipedia page, None if unknown. vocabulary: the objects that
    can be predicted. Facts must be labeled, not in the test, and have an object in the vocabulary;
    those from Wikidata also need a subject with a page and a label other than its id. `funnel`
    counts what each filter drops.
    """
    never = test.select(relation="group", subject_label="subject", object_label="object")
    facts = []
    for relation in relations:

        def usable(facts: pl.DataFrame, source: str, relation: str = relation) -> pl.DataFrame:
            rows = facts.filter(relation=relation).select(COLUMNS).drop_nulls()
            rows = rows.unique(["subject", "object"]).sort("subject", "object")
            apart = rows.join(never, on=never.columns, how="anti", maintain_order="left")
            inside = apart.filter(pl.col("object_label").is_in(list(vocabulary)))
            funnel.add(relation, f"{source}: not in the test", rows.height, apart.height)
            step = f"{source}: object in the vocabulary"
            funnel.add(relation, step, apart.height, inside.height)
            return inside

        rows = usable(trex, "T-REx")
        chosen = _shuffle(rows, seed, "search").head(most)
        funnel.add(relation, f"T-REx: at most {most}", rows.height, chosen.height)
        if chosen.height < most:
            more = usable(wikidata, "Wikidata")
            left = more.filter(pl.col("subject_label") != pl.col("subject"))
            step = "Wikidata: a page and a label" if pages is not None else "Wikidata: a label"
            if pages is not None:
                left = left.filter(pl.col("subject").is_in(list(pages)))
            funnel.add(relation, step, more.height, left.height)
            fresh = left.join(chosen, on=["subject", "object"], how="anti", maintain_order="left")
            extra = _shuffle(fresh, seed, "search").head(most - chosen.height)
            funnel.add(relation, "Wikidata: topped up", fresh.height, extra.height)
            chosen = pl.concat([chosen, extra])
        facts.append(_split(chosen, PROPORTIONS[variant], seed))
    return pl.concat(facts)


def with_page(statements: pl.DataFrame) -> set[str] | None:
    """Return the subjects of STATEMENTS that have sitelinks; None if no sitelinks are known."""
    known = statements.drop_nulls("subject_sitelinks")
    return set(known.filter(pl.col("subject_sitelinks") > 0)["subject"]) if known.height else None


def _shuffle(rows: pl.DataFrame, seed: int, label: str) -> pl.DataFrame:
    """Sort by seeded hash of the ids: new facts change few of the first."""
    key = keys(rows, seed, ["relation", "subject", "object"], label)
    return rows.with_columns(_key=key).sort("_key", *COLUMNS).drop("_key")


def _split(rows: pl.DataFrame, proportions: dict[str, float], seed: int) -> pl.DataFrame:
    ends = [round(total * rows.height) for total in itertools.accumulate(proportions.values())]
    places = zip(proportions, [0, *ends], ends, strict=False)
    splits = [split for split, start, end in places for _ in range(start, end)]
    named = _shuffle(rows, seed, "split").with_columns(split=pl.Series(splits, dtype=pl.String))
    labels = {"subject": "subject_label", "object": "object_label"}
    return named.select(group="relation", split="split", key=fact_id(), **labels).select(*FACT)
