"""The instances of DBpedia's classes out of its files of types and labels.

The tables are those of instance_counts.rq and instances.rq, of large classes the same part: the
instances whose IRI has the lowest hash.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgprobe.job import log, progress
from kgprobe.settings import LANGUAGES
from kgprobe.sources.dumps import iris, parts
from kgprobe.sources.dumps.facts import unread
from kgprobe.sources.dumps.parts import Reading
from kgprobe.sources.dumps.stream import BLOCK
from kgprobe.sources.sparql.canonical import terms
from kgprobe.sources.sparql.paging import DIGITS, PARTS

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True)
class Types:
    """Rows as `canonical.terms` has them, the classes that came in part, and UNREAD."""

    counts: pl.DataFrame
    types: pl.DataFrame
    in_part: dict[str, float]
    unread: pl.DataFrame


def read(
    paths: Sequence[Path],
    classes: Sequence[str],
    most: int,
    folder: Path,
    languages: Sequence[str] = LANGUAGES,
    size: int = BLOCK,
    threads: int = 1,
) -> Types:
    """Counts and instances of the `classes`, about `most` of each at most; parts lie in `folder`.

    `paths`: N-Triples with types and labels of instances. Raises like `facts.read`.
    """
    readings = [Reading(path, iris.of_triples, ([RDF_TYPE], list(languages))) for path in paths]
    tables = parts.read(readings, {"types": list(languages)}, folder, size, threads)
    stated = tables["statements"].filter(
        (pl.col("relation") == RDF_TYPE) & pl.col("object").is_in(sorted(classes))
    )
    stated = stated.select("subject", "object").unique()
    sizes = stated.group_by("object").len().sort("object").collect(engine="streaming")
    frames, in_part = [], {}
    for name, n in progress(sizes.rows(), desc="classes", unit="class"):
        instances = stated.filter(pl.col("object") == name).select("subject").collect()["subject"]
        if n > most:
            share = max(1, PARTS * most // n)
            in_part[name] = share / PARTS
            instances = instances.filter([_hash(iri) < share for iri in instances])
        frames.append(pl.DataFrame({"class": name, "id": instances}))
    if in_part:
        log.info("%d classes in part, such as %s", len(in_part), next(iter(in_part)))
    empty = pl.DataFrame(schema={"class": pl.String, "id": pl.String})
    return Types(
        terms([_bound(c, n=(str(n), INTEGER)) for c, n in sizes.rows()], ["class", "n"]),
        _labelled(pl.concat([empty, *frames]), tables["names"], languages),
        in_part,
        unread(readings, folder),
    )


def _hash(iri: str) -> int:
    return int(hashlib.md5(iri.encode()).hexdigest()[:DIGITS], 16)


def _bound(name: str, **literals: tuple[str, str]) -> dict[str, dict[str, str]]:
    made = {"class": {"type": "uri", "value": name}}
    for variable, (value, datatype) in literals.items():
        made[variable] = {"type": "literal", "value": value, "datatype": datatype}
    return made


def _labelled(
    instances: pl.DataFrame, names: pl.LazyFrame, languages: Sequence[str]
) -> pl.DataFrame:
    """Rows of instances.rq: each label in the best language that there is one in."""
    named = names.join(instances.lazy().select("id").unique(), on="id", how="semi").select(
        "id", "place", "label"
    )
    named = named.unique().filter(pl.col("place") == pl.col("place").min().over("id"))
    joined = instances.join(named.collect(engine="streaming"), on="id", how="left")
    tags = dict(enumerate(tag.lower() for tag in languages))
    iri = pl.lit("iri")
    none = pl.lit(None, dtype=pl.String)
    is_literal = pl.when(pl.col("label").is_not_null()).then(pl.lit("literal"))
    return joined.select(
        "class", iri.alias("class_type"), none.alias("class_lang"), none.alias("class_datatype"),
        pl.col("id").alias("instance"), iri.alias("instance_type"), none.alias("instance_lang"),
        none.alias("instance_datatype"), "label", is_literal.alias("label_type"),
        pl.col("place").replace_strict(tags, return_dtype=pl.String).alias("label_lang"),
        none.alias("label_datatype"),
    )  # fmt: skip
