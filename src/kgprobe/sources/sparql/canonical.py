"""SPARQL result rows as frames, and a hash that is the same on every engine.

A term is kept completely: value, type (iri, literal, bnode), language and datatype. Insignificant
differences between engines (`typed-literal`, `xsd:string`, case of language tags, order of
members, labels of blank nodes) are normalized here and nowhere else.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe.schema import METADATA_KEY, atomic

TYPES = {"uri": "iri", "literal": "literal", "typed-literal": "literal", "bnode": "bnode"}
PLAIN = {
    "http://www.w3.org/2001/XMLSchema#string",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
}
PARTS = ("", "_type", "_lang", "_datatype")

Bindings = Sequence[Mapping[str, Mapping[str, str]]]


def terms(bindings: Bindings, variables: Sequence[str]) -> pl.DataFrame:
    """Return one row per binding: String columns v, v_type, v_lang, v_datatype per variable v.

    Unbound is null in all four, and so distinct from the empty string.
    Raises ValueError for a term of unknown type.
    """
    columns: dict[str, list[str | None]] = {}
    for variable in variables:
        cells = [binding.get(variable) for binding in bindings]
        kinds = [TYPES.get(cell["type"], "") if cell else None for cell in cells]
        if "" in kinds:
            cell = cells[kinds.index("")]
            raise ValueError(f"?{variable} is {cell}, expected a type among {sorted(TYPES)}")
        tags = [cell.get("xml:lang") if cell else None for cell in cells]
        datatypes = [cell.get("datatype") if cell else None for cell in cells]
        columns[variable] = [cell["value"] if cell else None for cell in cells]
        columns[f"{variable}_type"] = kinds
        columns[f"{variable}_lang"] = [tag.lower() if tag else None for tag in tags]
        columns[f"{variable}_datatype"] = [None if d in PLAIN else d for d in datatypes]
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))


def variables_of(frame: pl.DataFrame) -> list[str]:
    """Return the variables of a frame made by `terms`."""
    return frame.columns[:: len(PARTS)]


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows of `terms` by its columns, unbound first, strings by code point."""
    return frame.sort(frame.columns, nulls_last=False) if frame.width else frame


def row_hash(frame: pl.DataFrame) -> str:
    """Return the canonical hash of the rows of `terms`: sha256 over the sorted rows.

    It does not depend on page size, order of arrival or engine; labels of blank nodes, which
    engines choose, count as equal.
    """
    kept = variables_of(frame)
    frame = frame.with_columns(
        pl.when(pl.col(f"{v}_type") == "bnode").then(pl.lit("")).otherwise(pl.col(v)).alias(v)
        for v in kept
    )
    digest = hashlib.sha256(orjson.dumps(kept))
    for rows in in_order(frame).iter_slices(10_000):
        digest.update(orjson.dumps(rows.rows()))
    return digest.hexdigest()


def write_result(frame: pl.DataFrame, path: Path, provenance: Mapping[str, Any]) -> None:
    """Write `terms` as parquet: sorted, with type columns only where types vary.

    A type, language or datatype that is constant in a column is in the metadata under `terms`.
    """
    constant: dict[str, dict[str, str]] = {}
    columns = []
    for variable in variables_of(frame):
        columns.append(variable)
        bound = frame.filter(pl.col(variable).is_not_null())
        for part in PARTS[1:]:
            values = bound[f"{variable}{part}"].unique().to_list()
            if len(values) > 1:
                columns.append(f"{variable}{part}")
            elif values and values[0] is not None:
                constant.setdefault(variable, {})[part[1:]] = values[0]
    table = in_order(frame).select(columns).to_arrow(compat_level=pl.CompatLevel.oldest())
    table = table.cast(pa.schema([(c, pa.string()) for c in columns]))
    metadata = json.dumps({**provenance, "terms": constant}, sort_keys=True, ensure_ascii=True)
    table = table.replace_schema_metadata({METADATA_KEY: metadata.encode()})
    with atomic(path) as temporary:
        pq.write_table(
            table, temporary, compression="zstd", use_dictionary=True, row_group_size=1 << 17
        )


def read_terms(path: str | Path) -> pl.DataFrame:
    """Read a result.parquet with types, languages and datatypes, as `terms` made them."""
    frame = pl.read_parquet(path)
    metadata = pq.read_schema(path).metadata[METADATA_KEY]
    constant = json.loads(metadata)["terms"]
    suffixes = tuple(PARTS[1:])
    columns = []
    for variable in [c for c in frame.columns if not c.endswith(suffixes)]:
        columns.append(pl.col(variable))
        for part in PARTS[1:]:
            name, value = f"{variable}{part}", constant.get(variable, {}).get(part[1:])
            bound = pl.when(pl.col(variable).is_not_null()).then(pl.lit(value, pl.String))
            columns.append(pl.col(name) if name in frame.columns else bound.alias(name))
    return frame.select(columns)
