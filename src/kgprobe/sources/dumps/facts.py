"""STATEMENTS out of a dump, in shards that survive a stop (sources.md, section 9).

The dump is read twice: once for the statements of the wanted relations, once for the labels and
sitelink counts of the entities that they name. After every `LINES` lines a shard is finished; a
run that follows a stop decompresses what was read before, parses none of it, and goes on.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import orjson
import polars as pl

from kgprobe import schema
from kgprobe.job import log, progress
from kgprobe.schema import STATEMENTS, Contract
from kgprobe.settings import LANGUAGES
from kgprobe.sources.dumps import stream
from kgprobe.sources.dumps.stream import DumpError, Position, Statement

#: lines of the dump in one shard
LINES = 100_000
FORMS = ("json", "truthy", "ntriples")
ONTOLOGY = "http://dbpedia.org/ontology/"
FOUND = Contract(
    "FOUND",
    {
        "subject": pl.String,
        "relation": pl.String,
        "object": pl.String,
        "object_kind": pl.String,
        "rank": pl.String,
    },
    ("subject", "relation", "object", "object_kind", "rank"),
    may_be_empty=True,
)
NAMES = Contract(
    "NAMES",
    # `place`: which of the languages the label is in
    {"id": pl.String, "label": pl.String, "place": pl.Int64, "sitelinks": pl.Int64},
    ("id", "label", "place", "sitelinks"),
    frozenset({"label", "place", "sitelinks"}),
    may_be_empty=True,
)
Parser = Callable[[Iterable[bytes]], Iterator[tuple[object, ...]]]


def read(
    path: Path,
    form: str,
    relations: Collection[str],
    folder: Path,
    languages: Sequence[str] = LANGUAGES,
    lines: int = LINES,
) -> pl.DataFrame:
    """STATEMENTS of the wanted relations of a dump; shards lie in `folder`.

    `form` is json or truthy (Wikidata) or ntriples (DBpedia, relations as full IRIs). A label is in
    the first of the `languages` that an entity has one in. Raises DumpError for a cut or damaged
    dump (finished shards stay), and ValueError when `folder` holds shards of another dump or other
    relations.
    """
    if form not in FORMS:
        raise ValueError(f"{path}: form {form!r}; legal: {', '.join(FORMS)}")
    wanted = sorted(set(relations))
    _same_question(path, form, wanted, languages, lines, folder)
    found = _shards(path, folder / "statements", FOUND, _statements(form, wanted), lines)
    statements = found.unique(maintain_order=True)
    items = statements.filter(pl.col("object_kind") == "item")
    ids = set(statements["subject"]) | set(items["object"])
    names = _shards(path, folder / "names", NAMES, _names(form, ids, languages), lines)
    return _joined(statements, names, "dbpedia" if form == "ntriples" else "wikidata")


def _same_question(
    path: Path,
    form: str,
    relations: list[str],
    languages: Sequence[str],
    lines: int,
    folder: Path,
) -> None:
    """Shards may only be continued for the dump and the question that they were begun for."""
    asked = {
        "dump": path.name,
        "bytes": path.stat().st_size if path.exists() else 0,
        "form": form,
        "relations": relations,
        "languages": list(languages),
        "lines": lines,
    }
    note = folder / "question.json"
    if note.exists():
        before = json.loads(note.read_text())
        if differing := [key for key in asked if asked[key] != before.get(key)]:
            raise ValueError(
                f"{folder}: begun for another {' and '.join(differing)} "
                f"({before[differing[0]]!r}, now {asked[differing[0]]!r}); name another snapshot "
                "in the config or remove the folder"
            )
        return
    with schema.atomic(note) as temporary:
        temporary.write_text(json.dumps(asked, indent=1, sort_keys=True) + "\n")


def _shards(path: Path, folder: Path, contract: Contract, parse: Parser, size: int) -> pl.DataFrame:
    """All rows of a pass; each shard is written once it is whole, finished ones are not parsed."""
    done = len(list(folder.glob("part-*.parquet")))
    complete = folder / "complete"
    place = Position()
    if not complete.exists():
        if done:
            log.info("%s: %d shards are there, reading on behind them", folder, done)
        bar = progress(
            total=path.stat().st_size if path.exists() else None, desc=path.name, unit="B"
        )
        with stream.piped_lines(path, place) as source:
            number = 0
            while batch := list(islice(source, size)):
                number += 1
                if number > done:
                    rows = pl.DataFrame(
                        list(parse(batch)), schema=dict(contract.columns), orient="row"
                    )
                    part = folder / f"part-{number:05d}.parquet"
                    schema.write(rows.unique(list(contract.key)), contract, part)
                bar.update(place.compressed - bar.n)
        bar.close()
        if not number:
            raise DumpError(f"{path}: the dump is empty")
        with schema.atomic(complete) as temporary:
            temporary.write_text(f"{number}\n")
    parts = sorted(folder.glob("part-*.parquet"))
    return pl.concat([schema.read(part, contract) for part in parts])


def _statements(form: str, relations: list[str]) -> Parser:
    def parse(lines: Iterable[bytes]) -> Iterator[tuple[object, ...]]:
        read_form = {
            "json": stream.wikidata_json,
            "truthy": stream.wikidata_truthy,
            "ntriples": stream.ntriples,
        }[form]
        for found in read_form(lines, relations):
            yield _row(found)

    return parse


def _row(found: Statement) -> tuple[object, ...]:
    return (found.subject, found.relation, found.object, found.kind, found.rank)


_OWN_ID = re.compile(rb'^\{"type":"item","id":"([^"]+)"')


def _names(form: str, ids: set[str], languages: Sequence[str]) -> Parser:
    """Labels and sitelink counts of the entities `ids`."""
    if form == "json":
        return lambda lines: _names_of_json(lines, ids, languages)
    return lambda lines: _names_of_triples(lines, ids, languages)


def _names_of_json(
    lines: Iterable[bytes], ids: set[str], languages: Sequence[str]
) -> Iterator[tuple[object, ...]]:
    known = {name.encode() for name in ids}
    for line in lines:
        if len(line) < 3:
            continue
        own = _OWN_ID.match(line)
        # another order of members costs a parse, never an entity
        if own is not None and own[1] not in known:
            continue
        entity = orjson.loads(line.rstrip(b","))
        if entity.get("id") in ids:
            labels = entity.get("labels") or {}
            place = next((i for i, tag in enumerate(languages) if tag in labels), None)
            label = None if place is None else labels[languages[place]]["value"]
            links = entity.get("sitelinks")
            yield entity["id"], label, place, None if links is None else len(links)


_NAME = re.compile(
    rb"^<(?:http://www\.wikidata\.org/(?:entity/|wiki/Special:EntityData/))?([^>]+)> "
    rb"<(?:(http://www\.w3\.org/2000/01/rdf-schema#label)|http://wikiba\.se/ontology#sitelinks)> "
    rb"(\".*) \.$"
)


def _names_of_triples(
    lines: Iterable[bytes], ids: set[str], languages: Sequence[str]
) -> Iterator[tuple[object, ...]]:
    """Labels and counts stand on lines of their own: rows that `_joined` puts together."""
    tags = {tag.encode(): place for place, tag in enumerate(languages)}
    for line in lines:
        if b"rdf-schema#label> " not in line and b"ontology#sitelinks> " not in line:
            continue
        match = _NAME.match(line)
        if match is None:
            continue
        subject, is_label, literal = match.groups()
        entity = stream.unescaped(subject)
        place = tags.get(literal.rpartition(b'"@')[2])
        if entity not in ids or (is_label and place is None):
            continue
        text = stream.text(literal)
        yield (entity, text, place, None) if is_label else (entity, None, None, int(text))


def _joined(statements: pl.DataFrame, names: pl.DataFrame, kg: str) -> pl.DataFrame:
    """STATEMENTS from both passes: the label in the best language, the first by code point where
    there are several, and the greatest number of sitelinks.
    """
    best = pl.col("label").sort_by("place", "label", nulls_last=True).first()
    one = names.group_by("id").agg(best, pl.col("sitelinks").max())
    for side in ("subject", "object"):
        named = one.select(
            pl.col("id").alias(side),
            pl.col("label").alias(f"{side}_label"),
            pl.col("sitelinks").alias(f"{side}_sitelinks"),
        )
        statements = statements.join(named, on=side, how="left")
    columns = list(STATEMENTS.columns)
    return statements.with_columns(kg=pl.lit(kg)).select(columns).sort(list(STATEMENTS.key))
