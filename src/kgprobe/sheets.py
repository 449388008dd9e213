"""Config and sheets: read with line numbers, checked before anything runs.

Imports nothing heavy, because the Snakefile reads the sheets at every start.
"""

import csv
import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema

#: Where the real test data lie when KGPROBE_DATA does not say otherwise.
DEFAULT_DATA = "../shared/data"

#: Legal (method, kind) pairs: which kinds of model answer which call (see README, "Methods").
KINDS_OF_METHOD: dict[str, tuple[str, ...]] = {
    "sentence": ("masked", "causal", "seq2seq"),
    "cloze": ("masked", "seq2seq"),
    "soft": ("masked", "causal", "seq2seq"),
    "reason": ("masked", "causal", "seq2seq"),
    "fill": ("masked", "causal", "seq2seq", "api"),
    "choice": ("masked", "causal", "seq2seq", "api"),
    "predict": ("masked", "causal"),
    "low_data": ("masked", "causal"),
    "grid": ("masked", "causal"),
}

#: Legal (paper, method) pairs: whose tables show which answers.
METHODS_OF_PAPER: dict[str, tuple[str, ...]] = {
    "bear": ("sentence",),
    "ontoprobe": ("cloze", "soft", "reason", "sentence", "choice"),
    "kg": ("fill", "sentence"),
    "autoprompt": ("predict", "low_data", "grid"),
}


class SheetError(ValueError):
    """A config key or sheet cell is wrong; the message names file, line, value and legal values."""


def read_sheet(path: str | Path, schema: Mapping[str, Any]) -> list[dict[str, str]]:
    """Rows of a tab-separated sheet, each checked against `schema`; empty cells are "".

    Every row also holds its line number under "_line". Lines starting with # are comments.
    Raises SheetError with file and line for bad bytes, columns and values.
    """
    text = read_text(path)
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(n, line) for n, line in lines if not line.startswith("#")]
    if not lines:
        raise SheetError(f"{path}: empty; expected the columns {list(schema['properties'])}")
    reader = list(csv.reader([line for _, line in lines], delimiter="\t", quoting=csv.QUOTE_NONE))
    header, legal = reader[0], list(schema["properties"])
    for column in header:
        if column not in legal:
            raise SheetError(
                f"{path}, line {lines[0][0]}: unknown column {column!r}; legal: {legal}"
            )
    for column in schema["required"]:
        if column not in header:
            raise SheetError(f"{path}, line {lines[0][0]}: missing column {column!r}")
    rows = []
    for (number, _), cells in zip(lines[1:], reader[1:], strict=True):
        if len(cells) > len(header):
            raise SheetError(f"{path}, line {number}: {len(cells)} cells, expected {len(header)}")
        row = dict(zip(header, cells + [""] * (len(header) - len(cells)), strict=True))
        for problem in jsonschema.Draft202012Validator(schema).iter_errors(row):
            column = ".".join(map(str, problem.path)) or "row"
            raise SheetError(f"{path}, line {number}, column {column!r}: {problem.message}")
        rows.append({**row, "_line": str(number)})
    return rows


def read_table(path: str | Path) -> list[dict[str, str]]:
    """Rows of a tab-separated resource with a header line; # starts a comment line.

    Raises SheetError with the line number for a row of another width.
    """
    numbered = enumerate(read_text(path).splitlines(), 1)
    lines = [(n, t.split("\t")) for n, t in numbered if t.strip() and not t.startswith("#")]
    if not lines:
        raise SheetError(f"{path}: empty; expected a header line")
    header = lines[0][1]
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            raise SheetError(f"{path}, line {number}: {len(cells)} cells, expected {len(header)}")
    return [dict(zip(header, cells, strict=True)) for _, cells in lines[1:]]


def manual_templates(rows: Iterable[Mapping[str, str]]) -> dict[str, list[tuple[int, str]]]:
    """(index, text) of the hand-written templates per relation, from rows of templates.tsv."""
    found: dict[str, list[tuple[int, str]]] = {}
    for row in rows:
        if row["kind"] == "manual":
            found.setdefault(row["relation"], []).append((int(row["index"]), row["text"]))
    return {relation: sorted(texts) for relation, texts in found.items()}


def read_text(path: str | Path) -> str:
    """The UTF-8 text of a file; SheetError names the line and byte of the first bad one."""
    if not Path(path).is_file():
        raise SheetError(f"{path}: no such file (working folder: {Path.cwd().name})")
    data = Path(path).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SheetError(
            f"{path}, line {line}: byte {error.start} (0x{data[error.start]:02x}) is not UTF-8; "
            "save the file as UTF-8"
        ) from error


def read_schema(path: str | Path) -> dict[str, Any]:
    """A JSON schema file."""
    return dict(json.loads(read_text(path)))


def check_config(config: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Raise SheetError for the first few unknown keys or illegal values of the merged config."""
    problems = []
    for problem in jsonschema.Draft202012Validator(schema).iter_errors(dict(config)):
        where = ".".join(map(str, problem.absolute_path)) or "(top level)"
        problems.append(f"{where}: {_message(problem)}")
    if problems:
        more = f"\n  ... and {len(problems) - 8} more" if len(problems) > 8 else ""
        raise SheetError("config: " + "\n  ".join(["wrong keys or values", *problems[:8]]) + more)


def _message(problem: jsonschema.ValidationError) -> str:
    """jsonschema's message; for unknown keys also the legal ones."""
    if problem.validator == "additionalProperties":
        legal = sorted(problem.schema.get("properties", {}))
        unknown = sorted(set(problem.instance) - set(legal))
        return f"unknown key {', '.join(map(repr, unknown))}; legal: {', '.join(legal)}"
    return str(problem.message)


def expand(path: str) -> str:
    """`path` with environment variables filled in; KGPROBE_DATA has a default."""
    return re.sub(
        r"\$\{(\w+)\}",
        lambda m: os.environ.get(m[1], DEFAULT_DATA if m[1] == "KGPROBE_DATA" else m[0]),
        path,
    )


def by_name(rows: list[dict[str, str]], path: str | Path) -> dict[str, dict[str, str]]:
    """Rows of the model sheet by model name; hub models need a revision, names are unique."""
    models: dict[str, dict[str, str]] = {}
    for row in rows:
        where = f"{path}, line {row['_line']}"
        if row["model"] in models:
            first = models[row["model"]]["_line"]
            raise SheetError(f"{where}: model {row['model']!r} already stands in line {first}")
        if row["source"].startswith("hub:") and not row.get("revision"):
            raise SheetError(
                f"{where}: hub model {row['model']!r} has no revision; write its full commit hash"
            )
        if (row["kind"] == "causal") == (row["bos"] == "-"):
            raise SheetError(
                f"{where}: bos is {row['bos']!r} for the {row['kind']} model {row['model']!r}; "
                "causal models need none, default or forced, all others -"
            )
        if (row["kind"] == "api") != row["source"].startswith("api:"):
            raise SheetError(
                f"{where}: source {row['source']!r} for the {row['kind']} model {row['model']!r}; "
                "models of kind api have the source api:NAME, all others one of their own"
            )
        models[row["model"]] = row
    return models


def require_name(
    row: Mapping[str, str], path: str | Path, column: str, legal: Iterable[str]
) -> None:
    """Raise SheetError unless the row's cell is one of `legal`; near misses are suggested."""
    names = sorted(legal)
    value = row[column]
    if value not in names:
        close = difflib.get_close_matches(value, names, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise SheetError(
            f"{path}, line {row['_line']}: unknown {column} {value!r}{hint}; "
            f"legal: {', '.join(names)}"
        )


def check_experiments(
    rows: list[dict[str, str]],
    path: str | Path,
    models: Mapping[str, Mapping[str, str]],
    benchmarks: Iterable[str],
    prompts: Iterable[str],
) -> None:
    """Check every name of the experiment sheet, and that the model's kind answers the method.

    A variant of a method is written after a hyphen: `sentence-original` is module `sentence`.
    Raises SheetError with file, line, value and the legal values.
    """
    seen: dict[tuple[str, ...], str] = {}
    for row in rows:
        require_name(row, path, "benchmark", benchmarks)
        require_name(row, path, "prompt", prompts)
        require_name(row, path, "model", models)
        method = row["method"].split("-")[0]
        require_name({**row, "method": method}, path, "method", KINDS_OF_METHOD)
        kind = models[row["model"]]["kind"]
        if kind not in KINDS_OF_METHOD[method]:
            raise SheetError(
                f"{path}, line {row['_line']}: method {method!r} does not work with the {kind} "
                f"model {row['model']!r}; legal kinds: {', '.join(KINDS_OF_METHOD[method])}"
            )
        key = tuple(row[c] for c in ("benchmark", "prompt", "method", "model"))
        if key in seen:
            raise SheetError(f"{path}, line {row['_line']}: same probe as in line {seen[key]}")
        seen[key] = row["_line"]


def check_papers(rows: list[dict[str, str]], path: str | Path, papers: Mapping[str, str]) -> None:
    """Check that some table shows every row; `papers`: benchmark -> the paper it belongs to.

    Prompts of autoprompt are checked in `prompt_settings`. Raises SheetError with file, line, value
    and the legal values.
    """
    for row in rows:
        where, paper, method = f"{path}, line {row['_line']}", row["paper"], row["method"]
        legal = METHODS_OF_PAPER[paper]
        if method.split("-")[0] not in legal:
            raise SheetError(
                f"{where}: method {method!r} with paper {paper}; legal: {', '.join(legal)}"
            )
        if papers[row["benchmark"]] != paper:
            own = ", ".join(name for name, of in papers.items() if of == paper)
            raise SheetError(
                f"{where}: benchmark {row['benchmark']!r} with paper {paper}; legal: {own}"
            )
        if method in ("reason", "choice") and row["benchmark"].endswith("_lite"):
            whole = row["benchmark"].removesuffix("_lite")
            raise SheetError(f"{where}: method {method!r} needs the whole set, {whole!r}")
        prompt = "soft" if method == "soft" else "templates"
        if paper != "autoprompt" and row["prompt"] != prompt:
            raise SheetError(
                f"{where}: prompt {row['prompt']!r} with method {method!r}; legal: {prompt}"
            )
