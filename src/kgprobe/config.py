"""Check configurations against `kgprobe.settings`, and write the files generated from it.

python -m kgprobe.config write    write the JSON schema, the table in config/README.md, config.yaml
python -m kgprobe.config check    exit with 1 if one of them is out of date
python -m kgprobe.config name F ...   print the run name of the merged files; later files override
"""

import ast
import contextlib
import datetime
import difflib
import inspect
import itertools
import json
import math
import operator
import os
import re
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import jsonschema
import yaml

from kgprobe import experiments
from kgprobe.experiments import hint, nearest
from kgprobe.settings import NamedRun, Settings
from kgprobe.settings.probes import Api
from kgprobe.settings.sources import RELEASED, Dbpedia, Dump, OwnGraph, Wikidata
from kgprobe.settings.types import Length, PartOf, Pattern, Range, hints, keys, typed

#: JSON schema names of Python's plain types
PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}
WORDS = {
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "text",
}
SCHEMA, README, CONFIG = (
    "workflow/schemas/config.schema.json",
    "config/README.md",
    "config/config.yaml",
)
BEGIN, END = "<!-- generated from src/kgprobe/settings -->", "<!-- end of the generated part -->"
HEAD = """\
# yaml-language-server: $schema=../workflow/schemas/config.schema.json
# The full rebuild, as run by `snakemake --cores 8`. Generated from src/kgprobe/settings by `make
# docs`; override values with --configfile FILE. config/README.md documents every key.
"""
#: sections of sources with checks across values
_GRAPHS = {"wikidata": Wikidata, "dbpedia": Dbpedia}
BASE = "config/config.yaml"
#: marks a key that is not in a file
MISSING = object()
#: maximum width of comments in config.yaml
WIDTH = 98

#: YAML tags of keys: a string, and `<<`
STR, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


class ConfigError(ValueError):
    """Keys or values are wrong; the message names the file, the key and the valid values."""


# -- reading --------------------------------------------------------------------------------------


def read(config: Mapping[str, Any], files: Sequence[str | Path] = ()) -> Settings:
    """Return the settings of a merged configuration; `files` are the merged files, in order.

    Raises ConfigError for unknown keys and invalid values; it shows the first eight.
    """
    problems = list(_unnamed(config, files))
    for problem in jsonschema.Draft202012Validator(document()).iter_errors(dict(config)):
        problems += list(_describe_problem(problem, files))
    if problems:
        more = f"\n  ... and {len(problems) - 8} more" if len(problems) > 8 else ""
        raise ConfigError("wrong keys or values\n  " + "\n  ".join(problems[:8]) + more)
    sources = config.get("sources", {})
    checked: list[tuple[type, list[str]]] = [
        (Dump, ["sources", "dumps", name]) for name in sources.get("dumps", {})
    ]
    checked += [(OwnGraph, ["sources", "graphs", name]) for name in sources.get("graphs", {})]
    checked += [(kind, ["sources", name]) for name, kind in _GRAPHS.items() if name in sources]
    checked += [(Api, ["api"])] * ("api" in config)
    for kind, key in checked:
        try:
            typed(kind, reduce(operator.getitem, key, config))
        except ValueError as problem:
            raise ConfigError(f"{file_of(key, files)}: {'.'.join(key)}: {problem}") from None
    return _expanded(typed(Settings, config, Settings()), files)


def _expanded(settings: Settings, files: Sequence[str | Path]) -> Settings:
    """Expand environment variables in the paths that a run writes to: `data`, downloads, and joins.
    Raises ConfigError for one that is not set."""

    def expand(section: Any, name: str, *key: str) -> Any:
        given = getattr(section, name)
        path = experiments.expand(given)
        if "{" in path or "}" in path:
            where = f"{file_of([*key, name], files)}: {'.'.join([*key, name])}"
            raise ConfigError(
                f"{where}: {given!r}; set the environment variable, or take out the braces, which "
                "are Snakemake's wildcards"
            )
        return replace(section, **{name: path})

    sources = settings.sources
    names = [name for name in ("trex", *RELEASED) if getattr(sources, name).access == "live"]
    live = {
        name: expand(
            getattr(sources, name), "path" if name == "trex" else "folder", "sources", name
        )
        for name in names
    }
    dumps = {
        name: expand(dump, "file", "sources", "dumps", name) if dump.access == "live" else dump
        for name, dump in sources.dumps.items()
    }
    joins = expand(settings.joins, "folder", "joins")
    settings = replace(settings, joins=joins, sources=replace(sources, dumps=dumps, **live))
    whole: Settings = expand(settings, "data")
    return whole


def load(files: Sequence[str | Path]) -> Settings:
    """Return the settings of files merged key by key; later files override earlier ones. Raises
    TableError for a file that is missing or not a configuration."""
    from snakemake.utils import update_config

    config: dict[str, Any] = {}
    for path in files:
        update_config(config, _mapping(str(path)))
    return read(config, files)


def settings_of(configs: Sequence[str]) -> Settings:
    """Return the settings of the files merged over config.yaml, as Snakemake does. Raises
    TableError for a file that is missing or not a configuration, ValueError for invalid content."""
    return load(files_of(configs))


def files_of(configs: Sequence[str]) -> list[str]:
    """Return the files that `settings_of` merges: config.yaml, then the others."""
    base = experiments.located(BASE)
    others = (path for c in configs if not _is_same(path := experiments.located(c), base))
    return [base, *others]


def _is_same(path: str, other: str) -> bool:
    return Path(path).resolve() == Path(other).resolve()


def models_of(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the rows of the table of models by name."""
    path = experiments.located(settings.tables.models)
    schema = experiments.read_schema(experiments.located("workflow/schemas/models.schema.json"))
    return experiments.by_name(experiments.read_rows(path, schema), path)


def _mapping(path: str) -> dict[str, Any]:
    if Path(path).is_dir():
        inside = ", ".join(sorted(map(str, Path(path).glob("*.y*ml"))))
        raise experiments.TableError(f"{path}: a folder; expected {inside or 'a file'}")
    if not Path(path).is_file():
        ours = sorted(Path(experiments.located("config")).glob("**/*.yaml"))
        named = {file.stem: f"config/{str(file).partition('config/')[2]}" for file in ours}
        # a file next to it may differ only in its suffix
        named |= {file.stem: str(file) for file in Path(path).parent.glob("*.y*ml")}
        close = difflib.get_close_matches(Path(path).stem, named, n=1, cutoff=0.7)
        hint = f" (did you mean {named[close[0]]!r}?)" if close else ""
        raise experiments.TableError(f"{path}: no such file{hint}")
    content = _content(path)
    if not isinstance(content, dict):
        raise experiments.TableError(f"{path}: a {type(content).__name__}; expected keys "
                                     "with values, as `run: {name: mine}`")  # fmt: skip
    return content


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML loader that accepts only string keys, each once per section (PyYAML silently takes the
    last one), only finite decimal numbers, and no anchor that contains itself."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node in self.recursive_objects:
            raise yaml.MarkedYAMLError(
                problem="an anchor contains its own alias", problem_mark=node.start_mark
            )
        # depth first, so that the nodes above this one are still in recursive_objects
        return super().construct_object(node, deep=True)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set[str]()
        for key, _ in node.value:
            is_text = key.tag in (STR, MERGE)
            name = key.value if isinstance(key, yaml.ScalarNode) else "that is not a single word"
            if not is_text or name in seen:
                what = "appears twice in its section" if is_text else "is not a string: quote it"
                raise yaml.MarkedYAMLError(
                    problem=f"the key {name} {what}", problem_mark=key.start_mark
                )
            seen.add(name)
        return dict(super().construct_mapping(node, deep))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        value = float(super().construct_yaml_float(node))
        if not math.isfinite(value):
            raise _not(node, "finite")
        if ":" in node.value:  # YAML 1.1 reads 1:30.5 as 90.5
            raise _not(node, "decimal")
        return value

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        # YAML 1.1 reads 010 as 8, 0x10 as 16 and 1:30 as 90
        if re.match(r"[-+]?0[0-9_bx]|.*:", node.value):
            raise _not(node, "decimal")
        return int(super().construct_yaml_int(node))


def _not(node: yaml.ScalarNode, kind: str) -> yaml.MarkedYAMLError:
    """Return the error for a number that is not of a kind."""
    text = f"{node.value} is not a {kind} number"
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _content(path: str | Path) -> Any:
    """Return the content of a YAML file. Raises TableError with the line if it is not YAML."""
    try:
        return yaml.load(experiments.read_text(path), _Loader) or {}
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", error)
        line = f", line {mark.line + 1}" if mark else ""
        raise experiments.TableError(f"{path}{line}: not valid YAML: {problem}") from error


def _unnamed(config: Mapping[str, Any], files: Sequence[str | Path]) -> Iterator[str]:
    """Yield an error message if the run has no name, or if files merged over the first one inherit
    its name, and so would write into its run."""
    key = ["run", "name"]
    names = [_at(path, key) for path in files]
    inherited = len(names) > 1 and all(name is MISSING for name in names[1:])
    run = config.get("run") or {}
    if not isinstance(run, Mapping):
        return  # reported by the schema
    if "name" not in run or (inherited and run["name"] == names[0]):
        where = files[-1] if files else "config"
        yield f"{where}: run.name is missing; valid: {legal(schema(hints(NamedRun)['name']))}"


def _describe_problem(
    problem: jsonschema.ValidationError, files: Sequence[str | Path]
) -> Iterator[str]:
    """Yield a message for each error: file, key, value, nearest name and valid values."""
    key = [str(part) for part in problem.absolute_path]
    rules: Mapping[str, Any] = problem.schema
    if problem.validator == "additionalProperties":
        names = sorted(rules["properties"])
        for name in sorted(set(problem.instance) - set(names)):
            where = f"{file_of([*key, name], files)}: {'.'.join(key) or 'top level'}"
            text = hint(name, names)
            yield f"{where}: unknown key {name!r}{text}; valid: {', '.join(names)}"
        return
    where = f"{file_of(key, files)}: {'.'.join(key) or 'top level'}"
    if problem.validator in ("required", "minProperties", "propertyNames", "pattern"):
        text = problem.message if problem.validator == "required" else f"{problem.instance!r}"
        yield f"{where}: {text}; valid: {legal(rules)}"
    elif problem.instance is None and rules.get("type") == "object":
        yield f"{where}: empty; write keys below it or take it out; valid: {legal(rules)}"
    else:
        close = nearest(str(problem.instance), [str(v) for v in rules.get("enum", [])])
        if rules.get("type") == "number" and isinstance(problem.instance, str):
            with contextlib.suppress(ValueError):  # YAML 1.1 reads 1e-5, without a dot, as text
                plain = re.sub(r"^(-?\d+)e", r"\1.0e", repr(float(problem.instance)))
                close = f" (did you mean {plain}?)"
        shown = repr(problem.instance)
        if isinstance(problem.instance, datetime.date):  # YAML reads 2026-11-29 as one
            shown, close = str(problem.instance), ", which is a date unless it is quoted"
        yield f"{where}: {shown}{close}; valid: {legal(rules)}"


def file_of(key: Sequence[str], files: Sequence[str | Path]) -> str:
    """Return the last of the files that has the key, or "--config" for the command line."""
    paths = (str(path) for path in reversed(files) if _at(path, key) is not MISSING)
    return next(paths, "--config")


def _at(path: str | Path, key: Sequence[str]) -> Any:
    """Return the value of a key in a file, or MISSING."""
    place = _content(path)
    for part in key:
        if isinstance(place, Mapping) and part in place:
            place = place[part]
        elif isinstance(place, list) and part.isdigit() and int(part) < len(place):
            place = place[int(part)]
        else:
            return MISSING
    return place


# -- the JSON schema ------------------------------------------------------------------------------


def schema_line(folder: str | Path) -> str:
    """Return the first line of a configuration in `folder`, which tells editors its schema."""
    path = Path(experiments.located(SCHEMA)).absolute()
    is_inside = Path(folder).absolute().is_relative_to(path.parents[2])
    place = os.path.relpath(path, folder) if is_inside else path.as_uri()
    return f"# yaml-language-server: $schema={place}\n"


def document() -> dict[str, Any]:
    """Return the JSON schema of a configuration, with the description of every key."""
    sections = {section.__name__: section for _, section in _sections()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": "#/$defs/Settings",
        "$defs": {name: _section(section) for name, section in sorted(sections.items())},
    }


def schema(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; sections are given by reference."""
    kind, inside = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if kind is Annotated:
        return _narrowed(schema(inside[0]), inside[1:])
    if kind is Literal:
        return {"enum": list(inside)}
    if kind in (Union, types.UnionType):
        return _union(
            [schema(one) for one in inside if one is not type(None)], type(None) in inside
        )
    if kind is tuple:
        return {"type": "array", "items": schema(inside[0])}
    if kind is dict:
        names = schema(inside[0])
        named = {"propertyNames": names} if "pattern" in names else {}
        return {"type": "object", **named, "additionalProperties": schema(inside[1])}
    return {} if hint is Any else {"type": PLAIN[hint]}


def _section(section: type) -> dict[str, Any]:
    known, texts = hints(section), meanings(section)
    props = {f.name: {**schema(known[f.name]), "description": texts[f.name]} for f in keys(section)}
    needed = [f.name for f in keys(section) if f.default is f.default_factory]
    rules = {"type": "object", "additionalProperties": False, "properties": props}
    return {**rules, "required": needed} if needed else rules


def _narrowed(rules: dict[str, Any], marks: Sequence[object]) -> dict[str, Any]:
    """Return a schema narrowed by the marks that `Annotated` adds to a type."""
    for mark in marks:
        if isinstance(mark, PartOf):
            rules = schema(mark.section)
        elif isinstance(mark, Pattern):
            # "$" matches only at the end in JSON schema, but also before a final newline in Python
            regex = mark.regex.replace("$", r"$(?!\n)")
            rules |= {"pattern": regex, "title": mark.words}
        elif isinstance(mark, Length) and rules["type"] == "object":
            rules["minProperties"] = mark.least
        elif isinstance(mark, Length):
            known = {"minItems": mark.least, "maxItems": mark.most, "uniqueItems": mark.distinct}
            rules |= {name: value for name, value in known.items() if value}
        elif isinstance(mark, Range):
            names = (
                ("exclusiveMinimum", "exclusiveMaximum") if mark.inside else ("minimum", "maximum")
            )
            ends = zip(names, (mark.least, mark.most), strict=True)
            rules |= {name: value for name, value in ends if value is not None}
    return rules


def _union(parts: list[dict[str, Any]], or_null: bool) -> dict[str, Any]:
    if len(parts) > 1:
        return {"anyOf": [*parts, {"type": "null"}] if or_null else parts}
    (rules,) = parts
    if "enum" in rules:
        return {**rules, "enum": [*rules["enum"], None]}
    return {**rules, "type": [rules["type"], "null"]}


def legal(rules: Mapping[str, Any]) -> str:
    """Describe the values that a schema allows."""
    if "$ref" in rules:
        return "a section"
    if "title" in rules:
        null = " or null" if isinstance(rules.get("type"), list) else ""
        return f"{rules['title']}{null}"
    if "enum" in rules:
        return ", ".join("null" if value is None else repr(value) for value in rules["enum"])
    if "anyOf" in rules:
        return " or ".join(legal(one) for one in rules["anyOf"])
    kinds = [rules["type"]] if isinstance(rules["type"], str) else rules["type"]
    null = " or null" if "null" in kinds else ""
    if kinds[0] == "array":
        what = "distinct values" if rules.get("uniqueItems") else "values"
        least, most = rules.get("minItems", 0), rules.get("maxItems")
        count = f"{most} " if most else "at least one of " if least else ""
        return f"list, {count}{what}: {legal(rules['items'])}{null}"
    if kinds[0] == "object":
        if "properties" in rules:
            return f"mapping of {', '.join(rules['properties'])}"
        names = legal(rules["propertyNames"]) if "propertyNames" in rules else "name"
        return f"mapping, {names}: {legal(rules['additionalProperties'])}"
    ends = [
        f"{word} {rules[name]:g}"
        for name, word in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if name in rules
    ]
    return WORDS[kinds[0]] + (f", {', '.join(ends)}" if ends else "") + null


# -- what is written ------------------------------------------------------------------------------


def meanings(section: type) -> dict[str, str]:
    """Return field -> description: the string below it in the class or in a base class."""
    above = [_texts(known) for known in reversed(section.__mro__[:-1])]
    return {name: text for texts in above for name, text in texts.items()}


@cache
def _texts(section: type) -> dict[str, str]:
    """Return field -> the string below it. These strings are not part of a rule's code hash."""
    texts: dict[str, str] = {}
    (node,) = ast.parse(inspect.getsource(section)).body
    for field, below in itertools.pairwise(getattr(node, "body", [])):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts


def table() -> str:
    """Return a Markdown heading and table of the keys of every section."""
    lines = []
    for key, section in _sections():
        text = " ".join((inspect.getdoc(section) or "").split())
        known, below = hints(section), meanings(section)
        lines += [f"### {key or 'top level'}", "", text, ""]
        lines += ["| key | valid values | meaning |", "|---|---|---|"]
        for one in keys(section):
            cells = (f"`{one.name}`", legal(schema(known[one.name])), below[one.name])
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _sections() -> list[tuple[str, type]]:
    """Return (keys, section) of all sections, each once, with the first keys that use it."""
    sections: dict[type, list[str]] = {}

    def walk(section: type, key: str) -> None:
        sections.setdefault(section, []).append(key)
        for one in keys(section):
            for inner in _inside(hints(section)[one.name]):
                walk(inner, f"{key}.{one.name}" if key else one.name)

    walk(Settings, "")
    return [
        (", ".join(keys[:3]) + (" ..." if len(keys) > 3 else ""), section)
        for section, keys in sections.items()
    ]


def _inside(hint: Any) -> Iterator[type]:
    """Yield the sections that a type hint contains."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, PartOf):
            yield mark.section
    for one in get_args(hint):
        yield from _inside(one)


def _lines(section: Any, depth: int) -> Iterator[str]:
    """Yield the lines of config.yaml: every key with its default, below its description."""
    indent, texts = "  " * depth, meanings(type(section))
    for one in keys(section):
        value = getattr(section, one.name)
        comment = textwrap.wrap(texts[one.name], WIDTH - len(indent) - 2)
        yield "" if depth else "\n"
        yield from (f"{indent}# {line}\n" for line in comment)
        if is_dataclass(value):
            yield f"{indent}{one.name}:\n"
            yield from _lines(value, depth + 1)
        else:
            yield f"{indent}{one.name}: {_flow(value)}\n"


def _flow(value: Any) -> str:
    """Format a value as one line of YAML, quoted only where necessary."""
    if is_dataclass(value) and not isinstance(value, type):
        # in a list, leave out keys that have their default
        given = [(f, getattr(value, f.name)) for f in fields(value)]
        value = {f.name: one for f, one in given if one != f.default}
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    is_plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w./+-]*", value)
    return str(value) if is_plain and yaml.safe_load(value) == value else json.dumps(value)


def generated_files(root: Path) -> dict[Path, str]:
    """Return path -> expected text of every generated file."""
    before, _, rest = (root / README).read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return {
        root / SCHEMA: json.dumps(document(), indent=1) + "\n",
        root / README: f"{before}{BEGIN}\n\n{table()}{END}{after}",
        root / CONFIG: HEAD + "".join(_lines(Settings(), 0)),
    }


def main(arguments: Sequence[str]) -> int:
    """Run the command write, check or name; return the exit code."""
    if arguments[:1] == ["name"] and len(arguments) > 1:
        try:
            print(settings_of(arguments[1:]).run.name)
        except ValueError as problem:
            print(problem, file=sys.stderr)
            return 1
        return 0
    if list(arguments) not in (["write"], ["check"]):
        print("usage: python -m kgprobe.config write|check|name FILE ...", file=sys.stderr)
        return 2
    stale = {
        p: t for p, t in generated_files(Path.cwd()).items() if p.read_text(encoding="utf-8") != t
    }
    for path, text in stale.items():
        if arguments[0] == "write":
            path.write_text(text, encoding="utf-8")
        else:
            print(f"{path.relative_to(Path.cwd())} differs from kgprobe.settings: make docs")
    return int(bool(stale) and arguments[0] == "check")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
