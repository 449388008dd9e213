"""The embedded knowledge graph: real facts, typed as readable tables in resources/world.

    world = load(Path("resources/world"))

reads every table, checks it, completes inverse and symmetric statements, and returns frames of
ids. `python -m tools.world check` prints counts, or all problems at once. The formats are described
in resources/world/README.md.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tools.world.dbpedia import Dbpedia, read_dbpedia
from tools.world.facts import complete, read_facts, typed_classes
from tools.world.properties import Property, read_properties
from tools.world.tables import Problem, Report, Row, WorldError, read_table

ENTITY_COLUMNS = ("key", "id", "label", "class", "aliases", "description", "sitelinks")
CLASS_COLUMNS = ("key", "id", "label", "subclass of", "aliases", "description", "sitelinks")
_ITEM = re.compile(r"Q[1-9]\d*")


@dataclass(frozen=True)
class World:
    """The world as frames; every id is a bare "Q142" or "P36".

    entities: key, id, label?, aliases (list), description?, sitelinks?, table: one row an item,
        the classes of classes.tsv included. A null label means: no English label.
    statements: subject, relation, object, kind, rank, origin, text. `kind` is item,
        time, quantity, string, unknown or novalue; `object` is an id, a lexical form
        ("1879-03-14T00:00:00Z", "+5"), or empty for the two special values; `rank` is preferred,
        normal or deprecated; `origin` is typed, inverse, symmetric, class or parent; `text` is the
        value as typed.
        Sorted and unique by (subject, relation, object, kind).
    properties: id -> Property, with parents, inverses, constraints and equivalents.
    dbpedia: classes, properties and instances of the DBpedia side.
    """

    entities: pl.DataFrame
    statements: pl.DataFrame
    properties: dict[str, Property]
    dbpedia: Dbpedia

    def truthy(self) -> pl.DataFrame:
        """Select the statements of best rank: preferred ones if there are any, else normal ones."""
        kept = self.statements.filter(pl.col("rank") != "deprecated")
        preferred = (pl.col("rank") == "preferred").any().over("subject", "relation")
        return kept.filter((pl.col("rank") == "preferred") | ~preferred)


@dataclass(frozen=True)
class Entity:
    """One item as typed; `classes` are the keys of the classes it is an instance or subclass of."""

    key: str
    id: str
    label: str | None
    aliases: list[str]
    description: str | None
    sitelinks: int | None
    row: Row


def load(folder: str | Path) -> World:
    """Read the tables of the graph in `folder`. Raises WorldError with every problem found."""
    folder = Path(folder)
    if not (folder / "properties.tsv").is_file():
        raise FileNotFoundError(f"{folder}: no properties.tsv in it, so this is no embedded world")
    report = Report()
    entities, classes = read_entities(folder, report)
    keys = {e.key: e.id for e in entities.values()}
    properties = read_properties(folder / "properties.tsv", keys, report)
    typed = typed_classes(entities.values(), classes, keys, report)
    for path in sorted(folder.glob("facts_*.tsv")):
        typed += read_facts(path, keys, properties, report)
    statements = complete(typed, properties, report)
    named = {e.id: e.key for e in entities.values()}
    dbpedia = read_dbpedia(folder, keys, named, statements, report)
    report.finish()
    return World(_entity_frame(entities), statements, properties, dbpedia)


def read_entities(folder: Path, report: Report) -> tuple[dict[str, Entity], dict[str, Row]]:
    """Return entities by key (classes included), and the rows of classes.tsv by key."""
    entities: dict[str, Entity] = {}
    ids: dict[str, Entity] = {}
    classes: dict[str, Row] = {}
    for path in sorted(folder.glob("entities_*.tsv")):
        for row in read_table(path, ENTITY_COLUMNS, report):
            entity = _entity(row, report)
            if _is_new(entity, entities, ids, report):
                entities[entity.key] = ids[entity.id] = entity
    for row in read_table(folder / "classes.tsv", CLASS_COLUMNS, report):
        entity = _entity(row, report)
        if entity.key in classes:
            first = classes[entity.key]
            report.add(row, "key", entity.key, f"already defined on line {first.line}")
            continue
        classes[entity.key] = row
        known = entities.get(entity.key)
        if known is not None and known.id == entity.id:
            continue  # an entity that is also a class: this row only adds what it is a subclass of
        if _is_new(entity, entities, ids, report):
            entities[entity.key] = ids[entity.id] = entity
    return entities, classes


def _entity(row: Row, report: Report) -> Entity:
    key, identifier, label = row.text("key"), row.text("id"), row.text("label")
    if not key:
        report.add(row, "key", key, "an entity needs a key")
    if not _ITEM.fullmatch(identifier):
        report.add(row, "id", identifier, "a Wikidata item id such as Q142 is needed")
    typed = row.text("sitelinks")
    if typed and not typed.isdecimal():
        report.add(row, "sitelinks", typed, "a number of sitelinks, or blank for unknown")
    return Entity(
        key=key,
        id=identifier,
        label=None if label == "-" else label or key,
        aliases=row.values("aliases"),
        description=row.text("description") or None,
        sitelinks=int(typed) if typed.isdecimal() else None,
        row=row,
    )


def _is_new(
    entity: Entity, keys: dict[str, Entity], ids: dict[str, Entity], report: Report
) -> bool:
    for column, value, seen in (("key", entity.key, keys), ("id", entity.id, ids)):
        first = seen.get(value)
        if first is not None:
            place = f"{first.row.file}, line {first.row.line} ('{first.key}', {first.id})"
            report.add(entity.row, column, value, f"already defined in {place}; define it once")
            return False
    return True


def _entity_frame(entities: dict[str, Entity]) -> pl.DataFrame:
    rows = [
        (e.key, e.id, e.label, e.aliases, e.description, e.sitelinks, e.row.file)
        for e in entities.values()
    ]
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "key": pl.String,
        "id": pl.String,
        "label": pl.String,
        "aliases": pl.List(pl.String),
        "description": pl.String,
        "sitelinks": pl.Int64,
        "table": pl.String,
    }
    number = pl.col("id").str.slice(1).cast(pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row").sort(number)


def summary(world: World) -> str:
    """Format counts per table and per property."""
    lines = [f"{world.entities.height} entities, {world.statements.height} statements"]
    for table, count in sorted(world.entities["table"].value_counts().iter_rows()):
        lines.append(f"  {table:32} {count:6} entities")
    counts = world.statements.group_by("relation", "origin").len().sort("relation", "origin")
    by_relation: dict[str, list[str]] = {}
    total: dict[str, int] = {}
    for relation, origin, count in counts.iter_rows():
        by_relation.setdefault(relation, []).append(f"{count} {origin}")
        total[relation] = total.get(relation, 0) + count
    for relation in sorted(total, key=lambda r: (-total[r], r)):
        name = f"{world.properties[relation].label} ({relation})"
        lines.append(f"  {name:48} {total[relation]:6}  {', '.join(by_relation[relation])}")
    unused = [p.label for p in world.properties.values() if p.id not in total]
    lines.append(f"{len(world.properties)} properties, of which {len(unused)} without statement")
    lines.append(world.dbpedia.summary())
    return "\n".join(lines)


__all__ = ["Entity", "Problem", "World", "WorldError", "load", "summary"]
