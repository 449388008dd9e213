"""Questions in the formats of others, each in a folder of its own.

    lm-pub-quiz    a folder for `Dataset.from_path`
    lm-eval        tasks of lm-evaluation-harness, one per template under a group
    huggingface    a data set with its card
    croissant      the same rows, described for mlcroissant
    frictionless   items, candidates and prompts as CSV with a datapackage.json

Every folder names its sources and their licences. What columns mean is said in `contracts`.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.contracts import MEANING
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS, Contract
from kgprobe.tables.exports import card, huggingface, lm_eval, lm_pub_quiz
from kgprobe.tables.exports.folders import whole_folder
from kgprobe.tables.exports.huggingface import FILE
from kgprobe.tables.exports.origins import BEAR, Source

#: what may lie in the folder of a format: pattern of paths inside
OURS = rf"README\.md|SOURCES\.md|[\w-]+/{FILE}|[\w-]+\.(yaml|py|csv|json)"
PARQUET = "application/x-parquet"  # as its readers know it
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def write(form: str, name: str, sets: Sets, sources: Sequence[Source], folder: Path) -> None:
    """Write the questions `name` in the format `form` (FORMATS) to `folder`, whole or not at all.

    Raises ExportError where the format cannot say what the questions are, or the folder holds
    something else.
    """
    if form == "lm-pub-quiz":
        # its loader takes every file in the folder for a relation
        lm_pub_quiz.export(sets, folder)
        return
    with whole_folder(folder, OURS) as temporary:
        FORMATS[form](name, sets, sources, temporary)
        (temporary / "SOURCES.md").write_text(told(name, sources), encoding="utf-8")


def told(name: str, sources: Sequence[Source]) -> str:
    """The sources of an export in words (SOURCES.md)."""
    lines = [f"# Sources of {name}", ""]
    for source in sources:
        place = f", {source.url}" if source.url else ""
        lines.append(f"* {source.title}: {source.licence}{place}. Name: {source.attribution}")
    return "\n".join(lines) + "\n"


def _huggingface(name: str, sets: Sets, sources: Sequence[Source], folder: Path) -> None:
    huggingface.write_rows(sets, folder / name / FILE)
    text = card.write({name: sets}, card.Origin(name, sources))
    (folder / "README.md").write_text(text, encoding="utf-8")


def _lm_eval(name: str, sets: Sets, sources: Sequence[Source], folder: Path) -> None:
    huggingface.write_rows(sets, folder / name / FILE)
    for file, text in lm_eval.files(name, sorted(set(sets.prompts["index"]))).items():
        (folder / file).write_text(text, encoding="utf-8")


def _croissant(name: str, sets: Sets, sources: Sequence[Source], folder: Path) -> None:
    path = folder / name / FILE
    huggingface.write_rows(sets, path)
    text = json.dumps(described(name, path, sources), indent=1, ensure_ascii=False)
    (folder / "croissant.json").write_text(text + "\n", encoding="utf-8")


def described(name: str, path: Path, sources: Sequence[Source]) -> dict[str, Any]:
    """Croissant 1.0 of the rows in the parquet file at `path`, which lies in the folder `name`."""
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{column.name}",
            "name": column.name,
            "description": MEANING["SENTENCES"][column.name],
            "dataType": "sc:Integer" if pa.types.is_integer(column.type) else "sc:Text",
            **({"repeated": True} if pa.types.is_list(column.type) else {}),
            "source": {"fileObject": {"@id": FILE}, "extract": {"column": column.name}},
        }
        for column in huggingface.COLUMNS
    ]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": card.WHAT,
        "license": [source.licence for source in sources],
        "url": next((s.url for s in sources if s.url), "https://github.com/kgprobe/kgprobe"),
        "creator": [{"@type": "sc:Organization", "name": s.attribution} for s in sources],
        "citeAs": BEAR,
        "version": "1.0.0",
        # no clock: the same questions give the same bytes
        "datePublished": "1970-01-01",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": FILE,
                "name": FILE,
                "contentUrl": f"{name}/{FILE}",
                "encodingFormat": PARQUET,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "description": "One row per question and template.",
                "field": fields,
            }
        ],
    }


#: files of a data package and their columns
RESOURCES: Mapping[str, Contract] = {
    "items": ITEMS, "candidates": CANDIDATES, "prompts": PROMPTS,
}  # fmt: skip
TYPES: Mapping[Any, str] = {pl.String: "string", pl.Int32: "integer", pl.Int64: "integer"}


def _frictionless(name: str, sets: Sets, sources: Sequence[Source], folder: Path) -> None:
    resources = []
    for place, contract in RESOURCES.items():
        frame = getattr(sets, place).sort(list(contract.key)).select(list(contract.columns))
        text = _csv(frame)
        (folder / f"{place}.csv").write_text(text, encoding="utf-8", newline="")
        resources.append(
            {
                "name": place,
                "type": "table",
                "path": f"{place}.csv",
                "scheme": "file",
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "bytes": len(text.encode()),
                "hash": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
                "schema": {
                    "fields": [
                        {
                            "name": column,
                            "type": TYPES.get(dtype, "array"),
                            "description": MEANING[contract.name][column],
                        }
                        for column, dtype in contract.columns.items()
                    ],
                    "primaryKey": list(contract.key),
                    # an empty text is a text here, nothing is missing
                    "missingValues": [],
                },
            }
        )
    package = {
        "name": name.lower().replace("_", "-"),
        "title": name,
        "description": card.WHAT,
        "licenses": [
            {"name": licence, **({"path": url} if url else {})}
            for licence, url in dict.fromkeys((s.licence, s.url) for s in sources)
        ],
        "sources": [
            {"title": s.attribution, **({"path": s.url} if s.url else {})} for s in sources
        ],
        "resources": resources,
    }
    text = json.dumps(package, indent=1, ensure_ascii=False)
    (folder / "datapackage.json").write_text(text + "\n", encoding="utf-8")


def _csv(frame: pl.DataFrame) -> str:
    """CSV with lists as JSON."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(_cells(row) for row in frame.iter_rows())
    return text.getvalue()


def _cells(row: Iterable[Any]) -> list[Any]:
    return [json.dumps(value) if isinstance(value, list) else value for value in row]


FORMATS: Mapping[str, Callable[[str, Sets, Sequence[Source], Path], None]] = {
    "lm-eval": _lm_eval,
    "huggingface": _huggingface,
    "croissant": _croissant,
    "frictionless": _frictionless,
}
NAMES = ("lm-pub-quiz", *FORMATS)
