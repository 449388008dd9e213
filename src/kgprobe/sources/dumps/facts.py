"""Convert a dump to the tables of a pull: statements with labels, and instances of classes.

    facts = read([path], "json", ["P36"], folder)
    facts.statements, facts.coverage

A dump is read once. Its data are stored in parts, with integer ids; labels and sitelink counts are
joined to the statements at the end.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from kgprobe.contracts import COVERAGE, TYPES
from kgprobe.job import log, progress
from kgprobe.schema import STATEMENTS, Contract
from kgprobe.settings.types import LANGUAGES
from kgprobe.sources.dumps import described, entities, parts
from kgprobe.sources.dumps.stream import BLOCK, DumpError
from kgprobe.sources.labels import one_line_of
from kgprobe.sources.sparql.paging import PARTS, key
from kgprobe.sources.sparql.relations import KINDS

TRUTHY_LACKS = "ranks, deprecated statements, statements that there is no value"
#: Form of a dump -> what it is.
EXPECTED = {
    "json": "one entity of JSON per line",
    "truthy": "N-Triples on Wikidata's entities",
    "ntriples": "N-Triples with labels or statements of its `relations`",
}
#: How many of the relations a message names.
NAMED = 5
#: Passes over merged entities, each of which doubles the chain length: up to 256 merges.
MERGES = 8
_ITEM_VALUED = (
    rf"(?m)^<{described.WD}(P\d+)>\s*<{described.WIKIBASE}propertyType>\s*"
    rf"<{described.WIKIBASE}WikibaseItem>"
)
#: Lines that passed the prefilter but could not be read, or unreadable parts of a line.
_UNREAD = {"file": pl.String, "line": pl.Int64, "first": pl.String}
UNREAD = Contract("UNREAD", _UNREAD, tuple(_UNREAD), may_be_empty=True)
_NO_ALIASES = pl.LazyFrame(schema={"id": pl.UInt64, "alias": pl.String})
ALIASES = Contract(
    "ALIASES", {"entity": pl.String, "alias": pl.String}, ("entity", "alias"), may_be_empty=True
)


@dataclass(frozen=True)
class DumpFacts:
    """The content of a dump; `aliases` has id (integer) and alias, `properties` are N-Triples."""

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
    """Read a dump's facts of the wanted relations between items; its parts are in `folder`.

    The first of `paths` is the dump, in format json or truthy (Wikidata) or ntriples (relations as
    full IRIs, literals too); others are N-Triples with the labels and sitelink counts that it
    lacks. A label is in the first of `languages` for which the entity has one. `size`: bytes of
    text per part. Raises DumpError for a truncated or damaged dump (finished parts stay) and for
    one without any entity.
    """
    wanted, tags = sorted(set(relations)), list(languages)
    more = entities.of_iris if form == "ntriples" else entities.of_truthy
    first = entities.of_json if form == "json" else more
    readings = [(paths[0], partial(first, relations=wanted, languages=tags))]
    readings += [(path, partial(more, relations=wanted, languages=tags)) for path in paths[1:]]
    question = {"form": form, "relations": wanted, "languages": tags}
    tables, unread = parts.read(readings, question, folder, size, threads)
    if all(table.limit(1).collect().is_empty() for table in tables.values()):
        begun = unread.filter(file=parts.file_names(paths)[0]).select("line", "first").rows()[:1]
        shown = "".join(f"line {line} begins {first[:40]!r}; " for line, first in begun)
        raise DumpError(f"{paths[0]}: no entity in it; {shown}expected {EXPECTED[form]}")
    if form == "ntriples":
        statements = _collected(_joined(tables["statements"], tables["names"]), "dbpedia")
        nothing = pl.DataFrame(schema=dict(COVERAGE.columns))
        return DumpFacts(statements, nothing, unread, _NO_ALIASES, "")
    redirects = _redirects(tables["redirects"])
    properties = _properties(tables, languages)
    items = set(re.findall(_ITEM_VALUED, properties)) or set(wanted)
    statements = _of_wikidata(tables, redirects).filter(pl.col("relation").is_in(sorted(items)))
    lacks = _missing(form, properties, tables["names"], redirects)
    reason = f"read from a {form} dump" + (f", which lacks {lacks}" if lacks else "")
    coverage = _coverage(tables, statements, redirects, wanted, items, reason)
    if form == "truthy":  # the format has no statements of these kinds: null, not 0
        coverage = coverage.with_columns(
            pl.lit(None, pl.Int64).alias(n) for n in ("no_value", "deprecated")
        )
    others = tables["aliases"].unique().sort("id", "alias")
    return DumpFacts(statements, coverage, unread, others, properties)


def require_statements(statements: pl.DataFrame, path: Path, relations: Iterable[str]) -> None:
    """Raise DumpError, naming the relations that were read from a dump, if it has no STATEMENTS."""
    wanted = sorted(set(relations))
    if statements.is_empty():
        more = f" and {len(wanted) - NAMED} more" if len(wanted) > NAMED else ""
        raise DumpError(
            f"{path}: no statement of {', '.join(wanted[:NAMED])}{more} between its entities; "
            "expected at least one: name relations that the dump has (sources.dumps, relations)"
        )


def _redirects(redirects: pl.LazyFrame) -> pl.DataFrame:
    """Return merged entities by id, each with its final target, which is not merged itself."""
    known = redirects.collect().sort("id", "target").unique("id", keep="first", maintain_order=True)
    for _ in range(MERGES):
        onward = known.rename({"id": "target", "target": "last"})
        followed = known.join(onward, on="target", how="left")
        if followed["last"].null_count() == followed.height:
            break
        known = followed.select("id", pl.coalesce("last", "target").alias("target"))
    # drop cycles, which have no final target
    return known.join(known, left_on="target", right_on="id", how="anti")


def _of_wikidata(tables: dict[str, pl.LazyFrame], redirects: pl.DataFrame) -> pl.DataFrame:
    """Return STATEMENTS from integer tables; merged entities are replaced by their targets."""
    stated = tables["statements"]
    for side in ("subject", "object"):
        merged = redirects.lazy().rename({"id": side})
        target = pl.coalesce("target", side).alias(side)
        stated = stated.join(merged, on=side, how="left").with_columns(target).drop("target")
    relation = pl.concat_str(pl.lit("P"), pl.col("relation").cast(pl.String))
    ends = {side: entities.name_of(side) for side in ("subject", "object")}
    joined = _joined(stated, tables["names"])
    named = joined.with_columns(relation=relation, object_kind=pl.lit("item"), **ends)
    return _collected(named, "wikidata")


def _collected(rows: pl.LazyFrame, kg: str) -> pl.DataFrame:
    """Return the STATEMENTS of a graph, sorted by their key."""
    statements = rows.with_columns(kg=pl.lit(kg)).select(list(STATEMENTS.columns))
    return statements.collect(engine="streaming").sort(list(STATEMENTS.key))


def _joined(statements: pl.LazyFrame, names: pl.LazyFrame) -> pl.LazyFrame:
    """Join label and sitelinks of both ends to statements: the label in the best language, the
    first by code point if there are several, and the largest sitelink count."""
    statements, names = statements.unique(), names.with_columns(one_line_of("label"))
    ends = pl.concat([statements.select(id=side) for side in ("subject", "object")]).unique()
    best = pl.col("label").sort_by("place", "label", nulls_last=True).first()
    one = names.join(ends, on="id", how="semi").group_by("id").agg(best, pl.col("sitelinks").max())
    for side in ("subject", "object"):
        names_of = {"id": side, "label": f"{side}_label", "sitelinks": f"{side}_sitelinks"}
        statements = statements.join(one.rename(names_of), on=side, how="left")
    return statements


def _properties(tables: dict[str, pl.LazyFrame], languages: Sequence[str]) -> str:
    """Return the N-Triples of the properties, with labels of the classes that constraints use."""
    lines = set(tables["properties"].collect()["line"])
    pattern = rf"<{described.PROP}qualifier/P2308>\s*<{described.WD}Q(\d+)>"
    classes = pl.DataFrame({"line": sorted(lines)}, schema={"line": pl.String}).select(
        id=pl.col("line").str.extract(pattern).cast(pl.UInt64) * 4
    )
    labels = tables["names"].filter(pl.col("label").is_not_null())
    labels = labels.join(classes.drop_nulls().unique().lazy(), on="id", how="semi")
    named = labels.select("place", "label", name=entities.name_of("id")).collect(engine="streaming")
    lines |= {described.label(name, text, languages[at]) for at, text, name in named.rows()}
    return "".join(f"{line}\n" for line in sorted(lines))


def _missing(form: str, properties: str, names: pl.LazyFrame, redirects: pl.DataFrame) -> str:
    """Describe and log what neither the dump nor the additional files contain."""
    lacks = [TRUTHY_LACKS] if form == "truthy" else []
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
    items: Collection[str],
    reason: str,
) -> pl.DataFrame:
    """Return COVERAGE: all item-valued relations, `items`, are complete, for this reason."""
    is_deprecated = pl.col("rank") == "deprecated"
    counted = tables["counted"].group_by("relation", is_deprecated, "kind").agg(pl.col("n").sum())
    numbers = {(f"P{r}", late, kind): n for r, late, kind, n in counted.collect().rows()}
    kept = dict(statements.group_by("relation").len().rows())
    stated = tables["statements"].unique().join(redirects.lazy(), left_on="object", right_on="id")
    merged = dict(stated.group_by("relation").len().collect().rows())
    rows: list[tuple[object, ...]] = []
    for relation in sorted(wanted, key=lambda name: int(name[1:])):
        if relation not in items:
            why = "no property of the source whose values are items"
            rows.append((relation, "left out", 0, why, *[None] * 7))
            continue
        cells: list[int | None] = [numbers.get((relation, False, kind), 0) for kind in KINDS]
        cells.append(sum(n for (r, late, _), n in numbers.items() if r == relation and late))
        redirected = None if redirects.is_empty() else merged.get(int(relation[1:]), 0)
        rows.append((relation, "read", kept.get(relation, 0), reason, *cells, redirected))
    return pl.DataFrame(rows, schema=dict(COVERAGE.columns), orient="row")


def aliases(table: pl.LazyFrame, wanted: Collection[str]) -> pl.DataFrame:
    """Return the ALIASES of the wanted entities from the table that `read` returned."""
    numbers = [number for name in wanted if (number := entities.number(name)) is not None]
    ids = pl.LazyFrame({"id": numbers}, schema={"id": pl.UInt64})
    rows = table.join(ids, on="id", how="semi").select(
        "alias", entity=pl.lit(described.WD) + entities.name_of("id")
    )
    return tidy_aliases(rows).collect(engine="streaming")


def tidy_aliases(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return ALIASES of rows with entity and alias; each name on one line and once."""
    return rows.select("entity", one_line_of("alias")).drop_nulls().unique().sort("entity", "alias")


def read_types(
    paths: Sequence[Path],
    classes: Sequence[str],
    most: int,
    folder: Path,
    languages: Sequence[str] = LANGUAGES,
    threads: int = 1,
) -> tuple[pl.DataFrame, dict[str, float], pl.DataFrame]:
    """Read instances of the `classes`, at most about `most` of each; parts are in `folder`. Return
    TYPES, class -> proportion for classes of which only a part was taken, and UNREAD.

    `paths`: N-Triples with types and labels of instances. Large classes are sampled as by
    instances.rq: the instances whose IRIs have the lowest hashes. Raises like `read`.
    """
    reader = partial(entities.of_iris, relations=[described.RDF_TYPE], languages=list(languages))
    readings = [(path, reader) for path in paths]
    tables, unread = parts.read(readings, {"types": list(languages)}, folder, threads=threads)
    stated = tables["statements"].filter(
        (pl.col("relation") == described.RDF_TYPE) & pl.col("object").is_in(sorted(classes))
    )
    stated = stated.select("subject", "object").unique()
    sizes = stated.group_by("object").len().sort("object").collect(engine="streaming")
    frames, in_part = [], {}
    for name, n in progress(sizes.rows(), desc="classes", unit="class"):
        ids = stated.filter(pl.col("object") == name).select("subject").collect()["subject"]
        if n > most:
            proportion = max(1, PARTS * most // n)
            in_part[name] = proportion / PARTS
            ids = ids.filter([key(iri) < proportion for iri in ids])
        frames.append(pl.DataFrame({"class": name, "id": ids}))
    if in_part:
        log.info("%d classes in part, such as %s", len(in_part), next(iter(in_part)))
    empty = pl.DataFrame(schema={"class": pl.String, "id": pl.String})
    instances = pl.concat([empty, *frames])
    named = tables["names"].join(instances.lazy(), on="id", how="semi")
    named = named.select("id", "place", "label").unique()
    # each label in the best language available
    best = named.filter(pl.col("place") == pl.col("place").min().over("id"))
    types = instances.join(best.collect(engine="streaming"), on="id", how="left")
    types = types.rename({"id": "instance"}).select(list(TYPES.columns))
    return types, in_part, unread
