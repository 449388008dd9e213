"""Questions in the formats of others, each in a folder of its own.

    lm-pub-quiz    a folder for `Dataset.from_path`
    lm-eval        tasks of lm-evaluation-harness, one per template under a group
    huggingface    a data set with its card
    croissant      the same rows, described for mlcroissant
    frictionless   items, candidates and prompts as CSV with a datapackage.json

What is asked: `sentences` (ITEMS under their written templates), `choices` (CHOICES of OntoProbe,
those of its rules among them) or `reasoning` (its rules with pseudowords, as tables alone).

Every folder names its sources and their licences. What columns mean is said in `contracts`.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from kgprobe import schema
from kgprobe.benchmarks.bear.frames import Sets
from kgprobe.contracts import MEANING
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS, Contract
from kgprobe.tables.exports import card, choices, huggingface, lm_eval, lm_pub_quiz
from kgprobe.tables.exports.folders import OTHERS, ExportError, whole_folder
from kgprobe.tables.exports.folders import asked as asked_of
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


#: what the name of questions of a kind ends with
CHOICES, REASONING = "choices", "reasoning"
KINDS = ("sentences", CHOICES, REASONING)
Asked = Sets | pl.DataFrame


def read(folder: Path, kind: str, sets: Callable[[], Sets]) -> Asked:
    """What a benchmark's folder asks of a kind: `sets()`, CHOICES, or a Sets of rules without
    templates. Raises ExportError where it has no such questions."""
    if kind == "sentences":
        return sets()
    path = folder / f"{kind}.parquet"
    if not path.is_file():
        raise ExportError(f"{folder}: no {path.name}; right would be a benchmark of OntoProbe in a "
                          f"run's folder, results/RUN/benchmarks/onto_world")  # fmt: skip
    if kind == CHOICES:
        return schema.read(path, schema.CHOICES)
    own, items = sets(), schema.read(path, ITEMS)
    used = own.candidates["set"].is_in(items["candidates"].unique().implode())
    return Sets(items, own.candidates.filter(used), own.prompts.clear())


def write(form: str, name: str, asked: Asked, sources: Sequence[Source], folder: Path) -> None:
    """Write the questions `name` in the format `form` (NAMES) to `folder`, whole or not at all.

    Raises ExportError where the format cannot say what the questions are, or the folder holds
    something else.
    """
    if form != "frictionless" and isinstance(asked, Sets):
        asked = replace(asked, items=asked_of(asked.items))
    if form == "lm-pub-quiz":
        if not isinstance(asked, Sets):
            raise ExportError(f"lm-pub-quiz knows no lettered questions; {OTHERS}")
        # its loader takes every file in the folder for a relation
        lm_pub_quiz.export(asked, folder)
        return
    with whole_folder(folder, OURS) as temporary:
        FORMATS[form](name, asked, sources, temporary)
        (temporary / "SOURCES.md").write_text(told(name, sources), encoding="utf-8")


def told(name: str, sources: Sequence[Source]) -> str:
    """The sources of an export in words."""
    lines = [f"# Sources of {name}", ""]
    for source in sources:
        place = f", {source.url}" if source.url else ""
        lines.append(f"* {source.title}: {source.licence}{place}. Name: {source.attribution}")
    return "\n".join(lines) + "\n"


def _rows(asked: Asked, path: Path) -> None:
    if isinstance(asked, Sets):
        huggingface.write_rows(asked, path)
    else:
        choices.write_rows(asked, path)


def _huggingface(name: str, asked: Asked, sources: Sequence[Source], folder: Path) -> None:
    _rows(asked, folder / name / FILE)
    text = (
        card.write({name: asked}, card.Origin(name, sources))
        if isinstance(asked, Sets)
        else card.of_choices(name, asked, sources)
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _lm_eval(name: str, asked: Asked, sources: Sequence[Source], folder: Path) -> None:
    _rows(asked, folder / name / FILE)
    made = (
        lm_eval.files(name, sorted(set(asked.prompts["index"])))
        if isinstance(asked, Sets)
        else lm_eval.files_of_choices(name, choices.parts(asked))
    )
    for file, text in made.items():
        (folder / file).write_text(text, encoding="utf-8")


def _croissant(name: str, asked: Asked, sources: Sequence[Source], folder: Path) -> None:
    path = folder / name / FILE
    _rows(asked, path)
    kind = "SENTENCES" if isinstance(asked, Sets) else "LETTERED"
    text = json.dumps(described(name, path, sources, kind), indent=1, ensure_ascii=False)
    (folder / "croissant.json").write_text(text + "\n", encoding="utf-8")


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind.value_type if pa.types.is_list(kind) else kind))


def described(
    name: str, path: Path, sources: Sequence[Source], kind: str = "SENTENCES"
) -> dict[str, Any]:
    """Croissant 1.0 of the rows in the parquet file at `path`, which lies in the folder `name`;
    `kind`: what MEANING calls its columns."""
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{column.name}",
            "name": column.name,
            "description": MEANING[kind][column.name],
            "dataType": "sc:Integer" if _is_whole(column.type) else "sc:Text",
            **({"repeated": True} if pa.types.is_list(column.type) else {}),
            "source": {"fileObject": {"@id": FILE}, "extract": {"column": column.name}},
        }
        for column in pq.read_schema(path)
    ]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": card.WHATS[kind],
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
                "description": ROWS[kind],
                "field": fields,
            }
        ],
    }


#: kind -> what a row is
ROWS = {"SENTENCES": "One row per question and template.", "LETTERED": "One row per question."}
#: files of a data package and their columns
RESOURCES: Mapping[str, Contract] = {
    "items": ITEMS, "candidates": CANDIDATES, "prompts": PROMPTS,
}  # fmt: skip
TYPES: Mapping[Any, str] = {pl.String: "string", pl.Int32: "integer", pl.Int64: "integer"}


def _frictionless(name: str, asked: Asked, sources: Sequence[Source], folder: Path) -> None:
    resources = []
    if isinstance(asked, Sets):
        tables = {place: (getattr(asked, place), own) for place, own in RESOURCES.items()}
        what = card.WHAT
    else:
        tables, what = {CHOICES: (asked, schema.CHOICES)}, card.WHATS["LETTERED"]
    for place, (whole, contract) in tables.items():
        if not whole.height:
            continue
        frame = whole.sort(list(contract.key)).select(list(contract.columns))
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
        "description": what,
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


FORMATS: Mapping[str, Callable[[str, Asked, Sequence[Source], Path], None]] = {
    "lm-eval": _lm_eval,
    "huggingface": _huggingface,
    "croissant": _croissant,
    "frictionless": _frictionless,
}
NAMES = ("lm-pub-quiz", *FORMATS)
