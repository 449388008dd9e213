"""Tables of experiments and models, and other tables named in the config: read with line numbers
and checked before anything runs.

Imports nothing heavy, because the Snakefile reads the tables at every start.
"""

import difflib
import fnmatch
import itertools
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema

from kgprobe.files import ROOT, not_utf8
from kgprobe.templates import FORMS

#: Required note of a hub model without a commit hash: its branch, and so its numbers, may change.
UNSEEN = "revision not confirmed by a public file"

#: Default location of the real test data, overridden by KGPROBE_DATA.
DEFAULT_DATA = "../shared/data"

#: Legal (method, kind) pairs: which kinds of model support which method (README, "Methods").
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

#: Legal variants of method `sentence`, by kind of model (probes/scoring/sentence); the first one
#: of "masked" stands for the default of every kind.
VARIANTS_OF_KIND: dict[str, tuple[str, ...]] = {
    "masked": (
        "within_word_l2r",
        "original",
        "sentence_l2r",
        "sentence_l2r_keep_sep",
        "answer_l2r+word_l2r",
    ),
    "causal": ("sum",),
    "seq2seq": ("span", "pll", "full"),
}

#: Names of guessing baselines in result tables, which are not models.
GUESSES = ("random", "majority", "frequency", "constant")

#: Legal (paper, method) pairs: the paper's tables show results of these methods.
METHODS_OF_PAPER: dict[str, tuple[str, ...]] = {
    "bear": ("sentence",),
    "ontoprobe": ("cloze", "soft", "reason", "sentence", "choice"),
    "attributes": ("fill", "sentence"),
    "autoprompt": ("predict", "low_data", "grid"),
}
#: old names of keys and columns -> new names, of which at most one is valid in a given section
RENAMED = {
    "pseudoword_centre": ("pseudoword_center",),
    "quantised": ("quantized",),
    "floors": ("baselines",),
    "twin": ("baselines",),
    "ways": ("scorings",),
    "wording": ("attribute_prompts", "phrasing"),
    "mc_wording": ("mc_phrasing",),
    "pins": ("lock_file",),
    "two_up": ("two_hop",),
    "sheets": ("tables",),
}


class TableError(ValueError):
    """A config key or a cell is wrong; the message names file, line, value and valid values."""


def read_rows(path: str | Path, schema: Mapping[str, Any]) -> list[dict[str, str]]:
    """Read the rows of a tab-separated table and check each against `schema`; empty cells are "".

    Every row also holds its line number under "_line". Lines starting with # are comments.
    Raises TableError with file and line for bytes that are not UTF-8, wrong columns and values.
    """
    lines = [(n, line.split("\t")) for n, line in text_lines(path) if not line.startswith("#")]
    legal = [column for column in schema["properties"] if column != "_line"]
    if not lines:
        raise TableError(f"{path}: empty; expected the columns {legal}")
    first, header = lines[0]
    for column in header:
        if column not in legal:
            text = f"unknown column {column!r}{hint(column, legal)}; valid: {legal}"
            raise TableError(f"{path}, line {first}: {text}")
        if header.count(column) > 1:
            raise TableError(
                f"{path}, line {first}: column {column!r} appears twice; leave one out"
            )
    for column in schema["required"]:
        if column not in header:
            raise TableError(f"{path}, line {first}: missing column {column!r}")
    rows = []
    for number, cells in lines[1:]:
        if len(cells) > len(header):
            raise TableError(f"{path}, line {number}: {len(cells)} cells, expected {len(header)}")
        row = dict(zip(header, cells + [""] * (len(header) - len(cells)), strict=True))
        for problem in jsonschema.Draft202012Validator(schema).iter_errors(row):
            column, text = ".".join(map(str, problem.path)) or "row", problem.message
            if problem.validator == "pattern":
                text = f"{problem.instance!r}; expected {problem.schema['description']}"
            raise TableError(f"{path}, line {number}, column {column!r}: {text}")
        rows.append({**row, "_line": str(number)})
    if not rows:
        raise TableError(f"{path}: no row below its header; expected one at least")
    return rows


def read_table(path: str | Path) -> list[dict[str, str]]:
    """Read the rows of a tab-separated resource with a header line; # starts a comment line.

    Raises TableError with the line number for a column that is there twice, and for a row whose
    number of cells differs from the header.
    """
    lines = [(n, t.split("\t")) for n, t in text_lines(path) if not t.startswith("#")]
    if not lines:
        raise TableError(f"{path}: empty; expected a header line")
    first, header = lines[0]
    if twice := [name for name in header if header.count(name) > 1]:
        raise TableError(f"{path}, line {first}: column {twice[0]!r} appears twice; leave one out")
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            raise TableError(f"{path}, line {number}: {len(cells)} cells, expected {len(header)}")
    return [dict(zip(header, cells, strict=True)) for _, cells in lines[1:]]


def manual_templates(rows: Iterable[Mapping[str, str]]) -> dict[str, list[tuple[int, str]]]:
    """Return (index, text) of the manual templates per relation, from rows of templates.tsv."""
    templates: dict[str, list[tuple[int, str]]] = {}
    for row in rows:
        if row["kind"] == "manual":
            templates.setdefault(row["relation"], []).append((int(row["index"]), row["text"]))
    return {relation: sorted(texts) for relation, texts in templates.items()}


def text_lines(path: str | Path) -> list[tuple[int, str]]:
    """Return (number from 1, text) of the lines of a UTF-8 file that are not blank.

    Lines end at a line feed, with or without a carriage return before it, and nowhere else:
    U+2028, U+0085 and form feeds are characters of a label. A byte order mark at the start of a
    line, as in concatenated files, is skipped. Raises TableError like `read_text`.
    """
    return _numbered(read_text(path).split("\n"))


def json_lines(path: str | Path) -> list[tuple[int, str]]:
    """Return `text_lines` of JSON Lines; in a file without line feeds, lines end at a carriage
    return, which JSON does not have inside a text."""
    text = read_text(path)
    return _numbered(text.split("\n" if "\n" in text else "\r"))


def _numbered(texts: Iterable[str]) -> list[tuple[int, str]]:
    lines = enumerate((line.removeprefix("\ufeff") for line in texts), 1)
    return [(number, line.removesuffix("\r")) for number, line in lines if line.strip()]


def read_text(path: str | Path) -> str:
    """Read a UTF-8 file; TableError names line and byte of the first byte that is not UTF-8."""
    if not Path(path).is_file():
        what = "a folder; expected a file" if Path(path).is_dir() else "no such file"
        raise TableError(f"{path}: {what} (working folder: {Path.cwd().name})")
    data = Path(path).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{path}, line {line}: byte {error.start} (0x{data[error.start]:02x}) is not UTF-8; "
            "save the file as UTF-8"
        ) from error


def read_json(path: str | Path, error: type[ValueError]) -> Any:
    """Read a JSON file. Raises `error` naming file and line if it is not JSON, or the first
    text that is not UTF-8."""
    try:
        value = json.loads(read_text(path))
        json.dumps(value, ensure_ascii=False).encode()  # an unpaired surrogate is not valid text
    except json.JSONDecodeError as wrong:
        raise error(f"{path}, line {wrong.lineno}: not JSON ({wrong.msg})") from wrong
    except UnicodeEncodeError as wrong:
        raise error(f"{path}: {not_utf8(wrong)}") from wrong
    return value


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dictionary. Raises ValueError for a key that appears twice."""
    values = dict[str, Any]()
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{key!r} appears twice")
        values[key] = value
    return values


def json_rows(
    path: str | Path,
    error: type[ValueError],
    lines: Iterable[tuple[int, str | bytes]] | None = None,
    texts: Collection[str] = (),
) -> list[tuple[int, dict[str, Any]]]:
    """Read (line number from 1, object) from a file with one JSON object per line; blank lines are
    skipped. `lines`: those of a compressed file, already read. Raises `error` naming file and
    line for a line that is not a JSON object, or whose `texts` keys are not non-blank strings."""
    rows = []
    for number, line in json_lines(path) if lines is None else lines:
        try:
            # U+2028 and the like, which may surround an object, are blanks of a text
            text = (line if isinstance(line, str) else line.decode()).strip()
            if not text:
                continue
            row = json.loads(text)
            json.dumps(row, ensure_ascii=False).encode()  # an unpaired surrogate is not valid text
        except (json.JSONDecodeError, UnicodeError) as wrong:
            raise error(f"{path}, line {number}: not JSON ({wrong})") from wrong
        if not isinstance(row, dict):
            raise error(f"{path}, line {number}: {line[:80]!r}; expected a JSON object, {{...}}")
        for name in texts:
            if not (isinstance(row.get(name), str) and row[name].strip()):
                shown = repr(row.get(name))[:80]
                raise error(f"{path}, line {number}: {name} is {shown}, expected text")
        rows.append((number, row))
    return rows


def read_schema(path: str | Path) -> dict[str, Any]:
    """Read a JSON schema file."""
    return dict(json.loads(read_text(path)))


def expand(path: str) -> str:
    """Expand environment variables in `path`; KGPROBE_DATA has a default."""
    return re.sub(
        r"\$\{(\w+)\}",
        lambda m: os.environ.get(m[1], DEFAULT_DATA if m[1] == "KGPROBE_DATA" else m[0]),
        path,
    )


def located(path: str) -> str:
    """Expand a path of the config; if missing in the working folder, look in the project's."""
    expanded = expand(path)
    in_project = ROOT / expanded
    return expanded if Path(expanded).exists() or not in_project.exists() else str(in_project)


def snakefile() -> list[str]:
    """Return Snakemake's option for the package's workflow, if this folder has no Snakefile."""
    names = ("Snakefile", "workflow/Snakefile")
    is_here = any(Path(name).is_file() for name in names)
    return [] if is_here else ["--snakefile", located("Snakefile")]


def by_name(rows: list[dict[str, str]], path: str | Path) -> dict[str, dict[str, str]]:
    """Return the rows of the table of models by name; names are unique, hub models need a revision.

    A revision is a full commit hash, or a branch (`main`, or that of a training step) if the
    note says so (UNSEEN). Raises TableError with file, line, value and the expected value.
    """
    models: dict[str, dict[str, str]] = {}
    spelled: dict[str, dict[str, str]] = {}
    for row in rows:
        where = f"{path}, line {row['_line']}"
        if row["model"] in models:
            first = models[row["model"]]["_line"]
            raise TableError(f"{where}: model {row['model']!r} already stands in line {first}")
        if (other := spelled.setdefault(row["model"].casefold(), row))["model"] != row["model"]:
            raise TableError(
                f"{where}: model {row['model']!r} and {other['model']!r} in line {other['_line']} "
                "differ in case only, so their files and pages could collide; rename one"
            )
        if row["model"] in GUESSES:
            raise TableError(f"{where}: {guess_fault(row['model'])}")
        if row["source"].startswith("hub:") and not row.get("revision"):
            raise TableError(
                f"{where}: hub model {row['model']!r} has no revision; write its full commit hash"
            )
        branch = row.get("revision", "")
        if branch.startswith(("main", "step")) and UNSEEN not in row.get("note", ""):
            raise TableError(
                f"{where}: revision {branch!r} of {row['model']!r} may move; write its full commit "
                f"hash, or {UNSEEN!r} into its note"
            )
        if (row["kind"] == "causal") == (row["bos"] == "-"):
            raise TableError(
                f"{where}: bos is {row['bos']!r} for the {row['kind']} model {row['model']!r}; "
                "causal models need none, default or forced, all others -"
            )
        if (row["kind"] == "api") != row["source"].startswith("api:"):
            raise TableError(
                f"{where}: source {row['source']!r} for the {row['kind']} model {row['model']!r}; "
                "models of kind api have the source api:NAME, all others one of their own"
            )
        if fault := _besides(row):
            raise TableError(f"{where}: {fault} ({row['model']!r})")
        models[row["model"]] = row
    for row in rows:
        for group in set(row.get("groups", "").split(",")) & models.keys():
            raise TableError(f"{path}, line {row['_line']}: group {group!r} is the name of a model")
    return models


def guess_fault(model: str) -> str:
    """Return the error message for a model that has the name of a guessing baseline."""
    return f"a model called {model!r}, as a guess is in all tables; give it another name"


def _besides(row: Mapping[str, str]) -> str:
    """Describe an error in a model's quantized, adapter, device_map or published column, or ""."""
    loading = [name for name in ("quantized", "adapter", "device_map") if row.get(name)]
    changed = [name for name in loading if name != "device_map"]
    if loading and row["kind"] == "api":
        return f"{loading[0]} {row[loading[0]]!r} for a model of kind api, which is not loaded here"
    if changed and row.get("published"):
        return f"{changed[0]} makes another model than the published one: leave published empty"
    return ""


def hint(name: str, names: Collection[str]) -> str:
    """Return the new name of a renamed key or column, or a hint at the nearest of `names`."""
    now = next((new for new in RENAMED.get(name, ()) if new in names), "")
    return f", which is {now!r} now" if now else nearest(name, names)


def nearest(value: str, names: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` if a name is close, else an empty string."""
    close = difflib.get_close_matches(value, list(names), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def is_control(model: Mapping[str, str]) -> bool:
    """Return whether a row of models.tsv is of a control model, which knows only our facts."""
    return model["source"].startswith("control:")


def products(
    rows: list[dict[str, str]],
    path: str | Path,
    models: Mapping[str, Mapping[str, str]],
    papers: Mapping[str, str],
    prompts: Iterable[str],
) -> list[dict[str, str]]:
    """Expand rows of experiments into probes: each row is the product of its cells.

    A cell holds names, patterns (`control-*`) and groups of models, separated by commas; a pattern
    matches all models, but only the benchmarks of the row's paper. `papers`: benchmark -> its
    paper. Models vary slowest, then benchmarks; a probe keeps the line number of its row.
    Raises TableError with file, line, value and the valid values.
    """
    groups: dict[str, list[str]] = {}
    for name, model in models.items():
        for group in filter(None, model.get("groups", "").split(",")):
            groups.setdefault(group, []).append(name)
    probes = []
    for row in rows:
        sets = [name for name, paper in papers.items() if paper == row["paper"]]
        legal = {
            "model": {**{name: [name] for name in models}, **groups},
            "benchmark": {name: [name] for name in (*sets, *(p for p in papers if p not in sets))},
            "prompt": {name: [name] for name in prompts},
            "method": {name: [name] for name in KINDS_OF_METHOD},
        }
        matched: dict[str, list[str]] = {name: list(values) for name, values in legal.items()}
        matched |= {"model": list(models), "benchmark": sets}
        where = f"{path}, line {row['_line']}"
        cells = [_names(row, where, c, legal[c], matched[c]) for c in legal]
        for values in itertools.product(*cells):
            probes.append({**row, **dict(zip(legal, values, strict=True))})
    return probes


def _names(
    row: Mapping[str, str],
    where: str,
    column: str,
    legal: Mapping[str, list[str]],
    matched: list[str],
) -> list[str]:
    """Return the names a cell stands for, each once; `legal`: valid value -> its names, `matched`:
    names that a pattern may match. A method variant (`sentence-original`) counts as one name."""
    chosen: dict[str, None] = {}
    for value in (part.strip() for part in row[column].split(",")):
        if set(value) & set("*?["):
            names = fnmatch.filter(matched, value)
            what = f"no {column} matches {value!r}"
        else:
            is_variant = column == "method" and value.split("-")[0] in legal
            names = [value] if is_variant else legal.get(value, [])
            what = f"unknown {column} {value!r}{nearest(value, legal)}"
        if not names:
            raise TableError(f"{where}: {what}; valid: {', '.join(sorted(legal))}")
        chosen |= dict.fromkeys(names)
    return list(chosen)


def describe_rows(rows: list[dict[str, str]], path: str | Path) -> str:
    """Describe the probes of each row of experiments: their number, and the values of each cell."""
    lines: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        lines.setdefault(row["_line"], []).append(row)
    shown = [f"{path}: {len(rows)} probes"]
    for line, probes in lines.items():
        cells = [
            ", ".join(dict.fromkeys(probe[column] for probe in probes))
            for column in ("paper", "benchmark", "prompt", "method", "model")
        ]
        shown.append(f"  line {line}: {len(probes)} = {' x '.join(cells)}")
    return "\n".join(shown)


def check_experiments(
    rows: list[dict[str, str]], path: str | Path, models: Mapping[str, Mapping[str, str]]
) -> None:
    """Check that each model's kind supports the probe's method and its variant, and that no probe
    is repeated.

    A variant of a method is written after a hyphen: `sentence-original` is module `sentence`.
    Raises TableError with file, line, value and the valid values.
    """
    seen: dict[tuple[str, ...], str] = {}
    for row in rows:
        method, hyphen, variant = row["method"].partition("-")
        kind = models[row["model"]]["kind"]
        if kind not in KINDS_OF_METHOD[method]:
            raise TableError(
                f"{path}, line {row['_line']}: method {method!r} does not work with the {kind} "
                f"model {row['model']!r}; valid kinds: {', '.join(KINDS_OF_METHOD[method])}"
            )
        known = VARIANTS_OF_KIND.get(kind, ()) if method == "sentence" else ()
        default = VARIANTS_OF_KIND["masked"][:1] if method == "sentence" else ()
        if hyphen and variant not in (*known, *default):
            legal = ", ".join([method, *(f"{method}-{name}" for name in known)])
            raise TableError(
                f"{path}, line {row['_line']}: unknown method {row['method']!r} with the {kind} "
                f"model {row['model']!r}; valid: {legal}"
            )
        key = tuple(row[c] for c in ("benchmark", "prompt", "method", "model"))
        if key in seen:
            raise TableError(
                f"{path}, line {row['_line']}: same probe as in line {seen[key]}: {' '.join(key)}"
            )
        seen[key] = row["_line"]


def check_papers(rows: list[dict[str, str]], path: str | Path, papers: Mapping[str, str]) -> None:
    """Check that the paper of every row has a table for it; `papers`: benchmark -> its paper.

    Prompts of autoprompt are checked in `prompt_settings`. Raises TableError with file, line, value
    and the valid values.
    """
    for row in rows:
        where, paper, method = f"{path}, line {row['_line']}", row["paper"], row["method"]
        legal = METHODS_OF_PAPER[paper]
        if method.split("-")[0] not in legal:
            raise TableError(
                f"{where}: method {method!r} with paper {paper}; valid: {', '.join(legal)}"
            )
        if papers[row["benchmark"]] != paper:
            names = ", ".join(name for name, of in papers.items() if of == paper)
            raise TableError(
                f"{where}: benchmark {row['benchmark']!r} with paper {paper}; valid: {names}"
            )
        if method == "choice" and row["benchmark"].endswith("_lite"):
            whole = row["benchmark"].removesuffix("_lite")
            raise TableError(f"{where}: method {method!r} needs the whole set, {whole!r}")
        prompt = "soft" if method == "soft" else "templates"
        legal = (prompt,)
        if paper in ("attributes", "ontoprobe") and method.split("-")[0] in ("sentence", "fill"):
            legal = (prompt, *FORMS)
        if paper != "autoprompt" and row["prompt"] not in legal:
            raise TableError(
                f"{where}: prompt {row['prompt']!r} with method {method!r}; valid: "
                f"{', '.join(legal)}"
            )


def with_raw(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the probes, followed by missing probes with plain templates, to which probes with
    other prompt forms (FORMS) are compared."""
    names = ("benchmark", "prompt", "method", "model")
    probes = {tuple(row[name] for name in names): row for row in rows}
    for row in rows:
        if row["prompt"] in FORMS:
            raw = {**row, "prompt": "templates"}
            probes.setdefault(tuple(raw[name] for name in names), raw)
    return list(probes.values())
