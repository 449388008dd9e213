"""README.md and docs/measured.md of their templates, and the pictures of docs/: their numbers are
put in from what named runs measured.

    python -m perf.readme measured RUN [COMMAND ...]   the numbers of a run that are kept
    python -m perf.readme write|check                  README.md

resources/measured/RUN.tsv holds a run's principal numbers and those that the template asks for (see
kgprobe.tables.report.measured). `bench` is no run: its file holds the rows of results/perf. In the
template,

    {{ run("embedded")(benchmark="world_lite", model="control-causal", metric="accuracy") }}

is one number with its interval and its signs, and `.value`, `.n`, `.fraction` say less of it.
"""

import csv
import datetime
import io
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import polars as pl

from kgprobe import schema
from kgprobe.contracts import SETTING
from kgprobe.tables import results, views
from kgprobe.tables.report import marks
from kgprobe.tables.report import measured as extracts
from perf import pictures

#: template -> the page that is made of it
PAGES = {"docs/README.md.in": "README.md", "docs/measured.md.in": "docs/measured.md"}
MEASURED = "resources/measured"
BENCH = "bench"
ROW_OF_BENCH = ("name", "ours", "peer", "unit", "ratio", "target")


class ReadmeError(ValueError):
    """The template asks for a number that is not there, or for several at once."""


@dataclass
class Run:
    """What one named run measured; `used` gathers the rows that were asked for."""

    name: str
    told: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    sign: Callable[[Mapping[str, Any]], str]
    used: list[Mapping[str, Any]] = field(default_factory=list)

    def row(self, **asked: object) -> Mapping[str, Any]:
        """The one number with these dimensions; those that are not named are "" and settings
        that are not named are absent, but for paper, prompt and method, which may be any.

        Raises ReadmeError where there is none, or more than one.
        """
        setting = {key: asked.pop(key) for key in list(asked) if key in SETTING}
        wanted = {"group": "", "slice": "", "benchmark": "", "model": ""} | asked
        wanted["setting"] = json.dumps(dict(sorted(setting.items())), ensure_ascii=False)
        found = [row for row in self.rows if all(row[k] == v for k, v in wanted.items())]
        if len(found) != 1:
            raise ReadmeError(f"run {self.name}: {len(found)} numbers with {wanted}; need one")
        self.used += [row for row in found if row not in self.used]
        return found[0]

    def __call__(self, digits: int = 1, **asked: object) -> str:
        """Value, interval and signs."""
        row = self.row(**asked)
        bare = {**row, "denominator": None, "published": None}
        return views.text(bare, digits) + self._signs(row, digits)

    def value(self, digits: int = 1, **asked: object) -> str:
        """The value and its signs."""
        row = self.row(**asked)
        bare = {**row, "denominator": None, "published": None, "low": None}
        return views.text(bare, digits) + self._signs(row, digits)

    def n(self, **asked: object) -> str:
        """How many distinct items stand behind a number."""
        return f"{self.row(**asked)['n']:,}"

    def fraction(self, **asked: object) -> str:
        """Numerator and denominator; "undef" for a denominator of 0."""
        row = self.row(**asked)
        if not row["denominator"]:
            return "undef"
        return f"{_short(row['numerator'])}/{_short(row['denominator'])}"

    def signs(self, **asked: object) -> str:
        """What stands behind the name of the model of a number."""
        return self.sign(self.row(**asked))

    def groups(self, **asked: object) -> int:
        """How many groups have such a number."""
        names = {row["group"] for row in self.rows if row["group"]}
        held = [name for name in sorted(names) if self._has(group=name, **asked)]
        return len([self.row(group=name, **asked) for name in held])

    def speed(self, name: str, column: str) -> str:
        """A column of the row of `make bench` whose name begins so."""
        found = [row for row in self.rows if str(row["name"]).startswith(name)]
        if len(found) != 1:
            raise ReadmeError(f"{self.name}: {len(found)} rows begin with {name!r}; need one")
        self.used += [row for row in found if row not in self.used]
        return str(found[0][column])

    def _has(self, **asked: object) -> bool:
        return any(all(row[k] == v for k, v in asked.items()) for row in self.rows)

    def _signs(self, row: Mapping[str, Any], digits: int) -> str:
        few = "" if row["value"] is None else marks.few(row, digits)
        return few + self.sign(row)


class _NotYet(Run):
    """A run that has no file while that of another is made."""

    def __init__(self, name: str) -> None:
        super().__init__(name, defaultdict(str), [], _no_sign)

    def _blank(self, *_: object, **__: object) -> Any:
        return ""

    __call__ = value = n = fraction = signs = groups = speed = _blank


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def of_results(name: str, found: pl.DataFrame, told: Mapping[str, str]) -> Run:
    """A run's RESULTS."""
    return Run(name, told, found.rows(named=True), marks.signs(found))


def _no_sign(row: Mapping[str, Any]) -> str:
    return ""


def read(path: Path) -> Run:
    """A file of measured numbers. Raises ReadmeError where it is missing or has other columns."""
    try:
        if path.stem == BENCH:
            told, body = extracts.heads(path)
            table = csv.DictReader(io.StringIO(body), delimiter="\t")
            if table.fieldnames != list(ROW_OF_BENCH):
                columns = ", ".join(ROW_OF_BENCH)
                raise ReadmeError(f"{path}: columns are not {columns}; make it anew")
            return Run(BENCH, told, list(table), _no_sign)
        found = extracts.read(path)
    except extracts.MeasuredError as problem:
        raise ReadmeError(str(problem)) from None
    return of_results(path.stem, found.results, found.told)


def rendered(root: Path, run: Callable[[str], Run]) -> dict[str, str]:
    """Page -> its template with the numbers of `run(name)` put in."""
    engine = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
                                trim_blocks=True, lstrip_blocks=True, autoescape=False)  # fmt: skip
    made = {}
    for template, page in PAGES.items():
        if (root / template).is_file():
            source = (root / template).read_text(encoding="utf-8")
            made[page] = engine.from_string(source).render(run=run)
    return made


def pages(root: Path) -> dict[str, str]:
    """All that is made of the committed measurements: path -> text."""
    known: dict[str, Run] = {}

    def run(name: str) -> Run:
        return known.setdefault(name, read(root / MEASURED / f"{name}.tsv"))

    return rendered(root, run) | pictures.of(root, run)


def measured(root: Path, name: str, command: str) -> Path:
    """resources/measured/NAME.tsv of results/NAME: the headline's numbers, and those that the
    template asks for."""
    told = {"run": name, "commit": _commit(root), "date": f"{datetime.date.today()}",
            "processor": _processor(), "command": command}  # fmt: skip
    if name == BENCH:
        files = sorted((root / "results" / "perf").glob("*.json"))
        found = [row for file in files for row in json.loads(file.read_text())]
        made = Run(name, told, [{c: row[c] for c in ROW_OF_BENCH} for row in found], _no_sign)
    else:
        place = root / "results" / name
        tables = [f for f in sorted((place / "tables").glob("*.parquet"))
                  if set(pl.read_parquet_schema(f)) == set(schema.RESULTS.columns)]  # fmt: skip
        every = results.read(tables)
        asked = {f"{extracts.ASKED}{b}": extracts.fingerprint(place / "benchmarks" / b)
                 for b in every["benchmark"].unique().sort()
                 if b and (place / "benchmarks" / b).is_dir()}  # fmt: skip
        made = of_results(name, every, {**told, **_cost(root, name), **asked})
        made.used += extracts.principal(every).to_dicts()
    folder = root / MEASURED

    def run(other: str) -> Run:
        file = folder / f"{other}.tsv"
        return made if other == name else read(file) if file.is_file() else _NotYet(other)

    rendered(root, run)
    path = folder / f"{name}.tsv"
    extracts.write(path, made.used, made.told)
    return path


def _cost(root: Path, name: str) -> dict[str, str]:
    """Jobs of a run and the minutes of all of them, as its manifest has them; of a run that has
    none, a part of one or one that goes on, the seconds that its jobs have noted."""
    path = root / "results" / name / "manifest.tsv"
    if not path.is_file():
        files = sorted((root / "logs" / name).rglob("*.jsonl"))
        noted = [json.loads(line)["cpu_time"] for f in files for line in f.open() if line.strip()]
        if not noted:
            return {}
        return {"jobs": str(len(noted)), "CPU seconds of the jobs": f"{sum(noted):.0f}"}
    columns = ["rule", "wildcards", "started", "cpu_seconds", "start_cpu_seconds"]
    jobs = pl.read_csv(path, separator="\t").select(columns).unique()
    spent, starting = (sum(jobs[name].cast(pl.Float64)) for name in columns[3:])
    return {
        "jobs": str(jobs.height),
        "CPU minutes of the jobs": f"{spent / 60:.0f}",
        "of them to start, %": f"{100 * starting / spent:.1f}",
    }


def _commit(root: Path) -> str:
    git = ["git", "-C", str(root), "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    """The processor's name and how many cores the system shows."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{len(names)} cores, {names[0] if names else 'unknown'}"


def main(arguments: Sequence[str]) -> int:
    """measured, write or check; returns the exit code."""
    root = Path.cwd()
    try:
        if arguments[:1] == ["measured"] and len(arguments) > 1:
            print(measured(root, arguments[1], " ".join(arguments[2:])))
            return 0
        if list(arguments) not in (["write"], ["check"]):
            print("usage: python -m perf.readme write|check|measured RUN [COMMAND]")
            return 2
        made = pages(root)
    except (ReadmeError, schema.ContractError, jinja2.TemplateError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    stale = []
    for name, text in made.items():
        path = root / name
        if arguments[0] == "write":
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or text != path.read_text(encoding="utf-8"):
            stale.append(name)
    if stale:
        print(f"{', '.join(stale)}: not what their templates and {MEASURED} make: make readme",
              file=sys.stderr)  # fmt: skip
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
