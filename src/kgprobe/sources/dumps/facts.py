"""Statements of a dump with their labels: STATEMENTS, COVERAGE and what a pull gives besides.

    found = read([path], "json", ["P36"], folder)
    found.statements, found.coverage

A dump is read once. What it says of any entity lies in its parts, by integers; labels and numbers
of sitelinks are joined to the statements at the end.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgprobe.contracts import COVERAGE
from kgprobe.job import log
from kgprobe.schema import STATEMENTS, Contract
from kgprobe.settings import LANGUAGES
from kgprobe.sources.dumps import described, entities, iris, parts
from kgprobe.sources.dumps.parts import Reading
from kgprobe.sources.dumps.stream import BLOCK
from kgprobe.sources.labels import one_line_of

FORMS = ("json", "truthy", "ntriples")
#: What a form does not have, by name.
LACKS = {
    "json": "",
    "truthy": "ranks, deprecated statements, statements that there is no value",
    "ntriples": "ranks, sitelinks",
}
#: Merges of merged entities that are followed.
MERGES = 8
_ITEM_VALUED = (
    rf"(?m)^<{described.WD}(P\d+)>\s*<{described.WIKIBASE}propertyType>\s*"
    rf"<{described.WIKIBASE}WikibaseItem>"
)
#: Lines that passed a filter and are not what they should be.
UNREAD = Contract(
    "UNREAD",
    {"file": pl.String, "line": pl.Int64, "first": pl.String},
    ("file", "line"),
    may_be_empty=True,
)
_NO_ALIASES = pl.LazyFrame(schema={"id": pl.UInt64, "alias": pl.String})
ALIASES = Contract(
    "ALIASES", {"entity": pl.String, "alias": pl.String}, ("entity", "alias"), may_be_empty=True
)


@dataclass(frozen=True)
class DumpFacts:
    """What was read; `aliases` has id (integer) and alias, `properties` are N-Triples."""

    statements: pl.DataFrame
    coverage: pl.DataFrame
    unread: pl.DataFrame
    aliases: pl.LazyFrame
    properties: str


def read(
    paths: Sequence[Path],
    form: str,
    relations: Collection[str],
    folder: Path,
    languages: Sequence[str] = LANGUAGES,
    size: int = BLOCK,
    threads: int = 1,
) -> DumpFacts:
    """What a dump says of the wanted relations between items; its parts lie in `folder`.

    The first of the `paths` is the dump, of form json or truthy (Wikidata) or ntriples (relations
    as full IRIs, literals too); others are N-Triples with the labels and numbers of sitelinks that
    it lacks. A label is in the first of the `languages` that an entity has one in. `size`: bytes of
    text of a part. Raises DumpError for a cut or damaged dump (finished parts stay), and ValueError
    when `folder` holds parts of another dump or other relations.
    """
    if form not in FORMS:
        raise ValueError(f"{paths[0]}: form {form!r}; legal: {', '.join(FORMS)}")
    wanted = sorted(set(relations))
    more = iris.of_triples if form == "ntriples" else entities.of_truthy
    first = entities.of_json if form == "json" else more
    arguments = (wanted, list(languages))
    readings = [Reading(paths[0], first, arguments, closed=form == "json")]
    readings += [Reading(path, more, arguments) for path in paths[1:]]
    asked = {"form": form, "relations": wanted, "languages": list(languages)}
    tables = parts.read(readings, asked, folder, size, threads)
    not_read = unread(readings, folder)
    if form == "ntriples":
        statements = _joined(tables["statements"], tables["names"]).collect(engine="streaming")
        made = statements.with_columns(kg=pl.lit("dbpedia"))
        made = made.select(list(STATEMENTS.columns))
        nothing = pl.DataFrame(schema=dict(COVERAGE.columns))
        return DumpFacts(made.sort(list(STATEMENTS.key)), nothing, not_read, _NO_ALIASES, "")
    redirects = _redirects(tables["redirects"])
    properties = _properties(tables, languages)
    items = set(re.findall(_ITEM_VALUED, properties)) or set(wanted)
    statements = _of_wikidata(tables, redirects).filter(pl.col("relation").is_in(sorted(items)))
    return DumpFacts(
        statements,
        _coverage(tables, statements, redirects, wanted, form, properties),
        not_read,
        tables["aliases"].unique().sort("id", "alias"),
        properties,
    )


def _redirects(found: pl.LazyFrame) -> pl.DataFrame:
    """Merged entities by id, each with the one that stands for it: a target has none itself."""
    known = found.collect().sort("id", "target").unique("id", keep="first", maintain_order=True)
    onward = known.rename({"id": "target", "target": "last"})
    for _ in range(MERGES):
        followed = known.join(onward, on="target", how="left")
        if followed["last"].null_count() == followed.height:
            break
        known = followed.select("id", pl.coalesce("last", "target").alias("target"))
    return known


def _of_wikidata(tables: dict[str, pl.LazyFrame], redirects: pl.DataFrame) -> pl.DataFrame:
    """STATEMENTS from integers; merged entities are the ones that stand for them."""
    stated = tables["statements"]
    for side in ("subject", "object"):
        merged = redirects.lazy().rename({"id": side})
        stated = stated.join(merged, on=side, how="left").select(
            *(c for c in ("subject", "relation", "object", "rank") if c != side),
            pl.coalesce("target", side).alias(side),
        )
    made = _joined(stated, tables["names"]).select(
        kg=pl.lit("wikidata"),
        relation=pl.concat_str(pl.lit("P"), pl.col("relation").cast(pl.String)),
        subject=entities.name_of("subject"),
        subject_label="subject_label",
        subject_sitelinks="subject_sitelinks",
        object=entities.name_of("object"),
        object_label="object_label",
        object_sitelinks="object_sitelinks",
        object_kind=pl.lit("item"),
        rank="rank",
    )
    return made.collect(engine="streaming").sort(list(STATEMENTS.key))


def _joined(statements: pl.LazyFrame, names: pl.LazyFrame) -> pl.LazyFrame:
    """Statements with label and sitelinks of both ends: the label in the best language, the first
    by code point where there are several, and the greatest number of sitelinks.
    """
    statements, names = statements.unique(), names.with_columns(one_line_of("label"))
    ends = pl.concat([statements.select(id=side) for side in ("subject", "object")]).unique()
    best = pl.col("label").sort_by("place", "label", nulls_last=True).first()
    one = names.join(ends, on="id", how="semi").group_by("id").agg(best, pl.col("sitelinks").max())
    for side in ("subject", "object"):
        named = one.select(
            pl.col("id").alias(side),
            pl.col("label").alias(f"{side}_label"),
            pl.col("sitelinks").alias(f"{side}_sitelinks"),
        )
        statements = statements.join(named, on=side, how="left")
    return statements


def unread(readings: Sequence[Reading], folder: Path) -> pl.DataFrame:
    """UNREAD of all parts, which is shown, too."""
    frames = [
        pl.read_parquet(path).select(pl.lit(one.path.name).alias("file"), "line", "first")
        for number, one in enumerate(readings)
        for path in sorted(folder.glob(f"{number}-*/part-*/unread.parquet"))
    ]
    found = pl.concat(frames).sort("file", "line")
    for file, line, first in found.head(5).rows():
        log.warning("%s, line %d is not read: %s", file, line, first[:80])
    if found.height:
        log.warning("%d lines passed a filter and were not read", found.height)
    return found


def _properties(tables: dict[str, pl.LazyFrame], languages: Sequence[str]) -> str:
    """N-Triples of the properties, with the labels of the classes that constraints name."""
    lines = set(tables["properties"].collect()["line"])
    pattern = rf"<{described.PROP}qualifier/P2308>\s*<{described.WD}Q(\d+)>"
    classes = pl.DataFrame({"line": sorted(lines)}, schema={"line": pl.String}).select(
        id=pl.col("line").str.extract(pattern).cast(pl.UInt64) * 4
    )
    named = (
        tables["names"]
        .filter(pl.col("label").is_not_null())
        .join(classes.drop_nulls().unique().lazy(), on="id", how="semi")
        .select("place", "label", name=entities.name_of("id"))
        .collect(engine="streaming")
    )
    lines |= {described.label(name, text, languages[at]) for at, text, name in named.rows()}
    return "".join(f"{line}\n" for line in sorted(lines))


def _missing(form: str, properties: str, names: pl.LazyFrame, redirects: pl.DataFrame) -> str:
    """By name, what neither the dump nor the files beside it have."""
    lacks = [LACKS[form]] if LACKS[form] else []
    if redirects.is_empty():
        lacks.append("redirects of merged entities (owl:sameAs)")
    if not names.select(pl.col("sitelinks").is_not_null().any()).collect().item():
        lacks.append("sitelinks")
    for table, needed in described.NEEDED.items():
        if needed not in properties:
            lacks.append(f"{table} ({needed})")
    if lacks:
        log.warning("the dump lacks: %s", "; ".join(lacks))
    return "; ".join(lacks)


def _coverage(
    tables: dict[str, pl.LazyFrame],
    statements: pl.DataFrame,
    redirects: pl.DataFrame,
    wanted: Sequence[str],
    form: str,
    properties: str,
) -> pl.DataFrame:
    """COVERAGE: every relation whose values are items came whole; what the dump lacks is named."""
    lacks = _missing(form, properties, tables["names"], redirects)
    counted = tables["counted"].group_by("relation", "kind", "rank").agg(pl.col("n").sum())
    numbers = {(f"P{r}", kind, rank): n for r, kind, rank, n in counted.collect().rows()}
    kept = dict(statements.group_by("relation").len().rows())
    stated = tables["statements"].unique().join(redirects.lazy(), left_on="object", right_on="id")
    merged = dict(stated.group_by("relation").len().collect().rows())
    reason = f"read from a {form} dump" + (f", which lacks {lacks}" if lacks else "")
    items = set(re.findall(_ITEM_VALUED, properties))
    rows: list[tuple[object, ...]] = []
    for relation in sorted(wanted, key=lambda name: int(name[1:])):
        if items and relation not in items:
            why = "no property of the source whose values are items"
            rows.append((relation, "left out", 0, why, *[None] * 7))
            continue
        own = [(kind, rank, n) for (r, kind, rank), n in numbers.items() if r == relation]
        kinds = [
            sum(n for k, rank, n in own if k == kind and rank != "deprecated")
            for kind in ("item", "unknown", "no value", "literal", "other")
        ]
        deprecated: int | None = sum(n for _, rank, n in own if rank == "deprecated")
        # no value and deprecated ones are not in the form: not counted, which is not none
        told: list[int | None] = [*kinds]
        if form == "truthy":
            told[2] = deprecated = None
        redirected = None if redirects.is_empty() else merged.get(int(relation[1:]), 0)
        rows.append(
            (relation, "read", kept.get(relation, 0), reason, *told, deprecated, redirected)
        )
    return pl.DataFrame(rows, schema=dict(COVERAGE.columns), orient="row")


def aliases(found: pl.LazyFrame, wanted: Collection[str]) -> pl.DataFrame:
    """ALIASES of the wanted entities, out of the table that `read` gave."""
    numbers = {number: name for name in wanted if (number := entities.number(name)) is not None}
    ids = pl.LazyFrame({"id": list(numbers)}, schema={"id": pl.UInt64})
    rows = found.join(ids, on="id", how="semi").select(
        entity=pl.lit(described.WD) + entities.name_of("id"), alias="alias"
    )
    return rows.unique().sort("entity", "alias").collect(engine="streaming")
