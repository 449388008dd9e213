"""The released OntoProbe ontology, read from its folder (OntoProbe's class.json, property.json)."""

import json
from pathlib import Path
from typing import Any

import polars as pl

CLASSES: dict[str, Any] = {
    "class": pl.String,
    "label": pl.String,
    "superclasses": pl.List(pl.String),
    "instances": pl.List(pl.String),
}
PROPERTIES: dict[str, Any] = {
    "number": pl.Int32,
    "label": pl.String,
    "property": pl.String,
    "dbpedia": pl.String,
    "domain": pl.String,
    "range": pl.String,
    "superproperties": pl.List(pl.String),
    "pattern": pl.String,
}
WIKIDATA = "http://www.wikidata.org/entity/"


def classes(folder: Path) -> pl.DataFrame:
    """One row per class: IRI, label, superclass labels (as released, finest first), instances."""
    rows = [
        (
            entry["rdfs:Class"],
            entry["rdfs:label"],
            entry.get("rdfs:subClassOf") or [],
            entry.get("is rdf:type of") or [],
        )
        for entry in _entries(folder / "class.json")
    ]
    return pl.DataFrame(rows, schema=CLASSES, orient="row")


def properties(folder: Path) -> pl.DataFrame:
    """One row per property.

    The file spells the key of the range `rdf:range`, and some of DBpedia's IRIs with https, which
    name nothing: they are read as what DBpedia calls them.
    """
    rows = []
    for entry in _entries(folder / "property.json"):
        iris = entry["rdf:Property"]
        iris = [iris] if isinstance(iris, str) else iris
        wikidata = [i.rsplit(":", 1)[-1] for i in iris if "wikidata.org" in i]
        dbpedia = [i.replace("https:", "http:", 1) for i in iris if "dbpedia.org" in i]
        rows.append(
            (
                entry["id"],
                entry["rdfs:label"],
                WIKIDATA + wikidata[0] if wikidata else None,
                dbpedia[0] if dbpedia else None,
                entry.get("rdfs:domain") or None,
                entry.get("rdf:range") or None,
                sorted(entry.get("rdfs:subPropertyOf") or {}),
                entry.get("pattern") or None,
            )
        )
    return pl.DataFrame(rows, schema=PROPERTIES, orient="row")


def _entries(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the released ontology is not there; set KGPROBE_DATA")
    entries = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(entries, list):
        raise ValueError(f"{path}: holds {type(entries).__name__}, expected a list")
    return list(entries)
