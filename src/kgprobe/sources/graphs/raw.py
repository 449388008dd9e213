"""A user-supplied graph as in its files: statements, labels and problems, each with its location.

Problems end the reading with one error that lists them all, unless the section leaves them out.
"""

import contextlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import orjson
import polars as pl

from kgprobe.experiments import TableError, unique_keys
from kgprobe.schema import Contract
from kgprobe.settings.sources import ProblemKind
from kgprobe.sources.labels import one_line

PLACE = {"file": pl.String, "line": pl.Int64}
STATED = {"subject": pl.String, "relation": pl.String, "object": pl.String, **PLACE}
#: `order`: priority of a label, lower is better; only the best labels of an id are used
LABELS = {"id": pl.String, "label": pl.String, "order": pl.Int64, **PLACE}
#: the end of a JSON key, or what looks like one in a text
KEY = re.compile(r'"\s*:')
#: maximum number of characters of an id; real IRIs are far below it
LONGEST = 1000
#: how many examples of a problem, and how many unreadable rows, a message shows
SHOWN = 20
#: problem -> how to fix it
RIGHT: dict[str, str] = {
    "missing_label": "give it a label: a column, a row in `labels`, or in RDF a label predicate, "
    "without a language tag or with one of `languages` (en-US is not en)",
    "two_labels": "keep one label per id; `languages` selects among language tags",
    "relation_as_entity": "give the entity or the relation a different id",
    "loop": "remove one of these statements: nothing can be its own superclass",
    "long_id": f"ids have at most {LONGEST:,} characters; a longer text is probably a label",
    "blank_node": "give it an IRI; unnamed OWL classes (restrictions, unions) cannot be asked",
    "bad_iri": "write it without white space, quotes and <>{}|^`\\, or percent-encoded (%20)",
    "import": "add its file to `files`: imports are not downloaded",
}
assert set(RIGHT) == set(get_args(ProblemKind))

#: A problem whose statements were left out: how often it occurs, and where first.
PROBLEMS = Contract(
    "PROBLEMS",
    {"problem": pl.String, "n": pl.Int64, "first": pl.String},
    ("problem",),
    may_be_empty=True,
)


class GraphFileError(ValueError):
    """A graph cannot be read; the message names file, line or id, and what is expected."""


@dataclass
class RawGraph:
    """What a reader collects of one graph. Problems in `left_out` are counted, all others raise an
    error.

    `statements` and `labels` are rows of STATED and LABELS. `literals`: relation -> number of
    its statements whose object is a literal. `templates`: rows as in templates.tsv. `named`:
    whether ids are used as labels because no entity has another. `cases`: count and first examples
    per problem; `unread`: rows and files that cannot be read.
    """

    name: str
    left_out: Collection[str] = ()
    statements: list[tuple[str, str, str, str, int | None]] = field(default_factory=list)
    labels: list[tuple[str, str, int, str, int | None]] = field(default_factory=list)
    literals: Counter[str] = field(default_factory=Counter)
    templates: list[Mapping[str, str]] = field(default_factory=list)
    named: bool = False
    cases: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    #: whether a whole file is unread: missing labels, for example, may be in it
    lost: bool = False

    def note(self, problem: str, *texts: str, n: int = 0) -> None:
        """Count more cases of a problem: `n`, or one per text (its location and description)."""
        count, examples = self.cases.get(problem, (0, []))
        self.cases[problem] = (count + (n or len(texts)), [*examples, *texts][:SHOWN])

    def drop(self, problem: str, rows: pl.DataFrame, is_wrong: pl.Expr, text: str) -> pl.DataFrame:
        """Drop and count statements (columns file, line) with a problem; `text` formats one."""
        wrong, texts = rows.filter(is_wrong), []
        for row in wrong.head(SHOWN).iter_rows(named=True):
            shown = {k: short(v) if isinstance(v, str) else v for k, v in row.items()}
            texts.append(f"{place(row['file'], row['line'])}: {text.format(**shown)}")
        if texts:
            self.note(problem, *texts, n=wrong.height)
        return rows.filter(~is_wrong)

    @contextlib.contextmanager
    def going_on(self, whole: bool = True) -> Iterator[None]:
        """Record why a file, or a row of it, cannot be read, so that reading continues."""
        try:
            yield
        except (GraphFileError, TableError) as problem:
            self.unread.append(str(problem))
            self.lost |= whole

    def check(self) -> None:
        """Raise GraphFileError with all problems that are not left out and everything unread."""
        wrong = [name for name in RIGHT if name in self.cases and name not in self.left_out]
        lines = []
        if self.unread:
            n, shown = len(self.unread), self.unread[:SHOWN]
            lines = [f"sources.graphs.{self.name}: {n:,} rows or files cannot be read"]
            lines += [f"  {text}" for text in shown]
            if n == 1:
                lines = [f"sources.graphs.{self.name}: {shown[0]}"]
            lines += [f"  and {n - SHOWN:,} more"] if n > SHOWN else []
        if wrong:
            kinds = "1 kind" if len(wrong) == 1 else f"{len(wrong)} kinds"
            lines.append(f"sources.graphs.{self.name}: the graph has {kinds} of problems")
        for name in wrong:
            n, (first, *others) = self.cases[name]
            times = "" if n == 1 else f" ({n:,} times, this is the first)"
            lines += [f"  {name}: {first}{times}", *(f"    {text}" for text in others)]
            lines.append(f"    {RIGHT[name]}")
        if wrong:
            lines.append(f"  or count and skip them: leave_out: [{', '.join(wrong)}]")
        if lines:
            raise GraphFileError("\n".join(lines))

    def frame(self) -> pl.DataFrame:
        """Return the counted problems as PROBLEMS."""
        problems = [(name, *self.cases[name]) for name in RIGHT if name in self.cases]
        rows = [(name, n, texts[0]) for name, n, texts in problems]
        return pl.DataFrame(rows, schema=dict(PROBLEMS.columns), orient="row")


def composed(name: str) -> str:
    """Return an id on one line and with composed letters (NFC): two files may write one id in both
    forms. IRIs are never changed."""
    return unicodedata.normalize("NFC", one_line(name))


def short(text: str) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text):,} characters)"


def place(file: str, line: int | None) -> str:
    """Format a location: the file, and the line if it is known."""
    return file if line is None else f"{file}, line {line}"


def check_text(path: str | Path, line: int, name: str, value: object) -> None:
    """Raise GraphFileError for an id or label that is not a string, an integer or null."""
    if value is not None and type(value) not in (str, int):
        raise GraphFileError(
            f"{path}, line {line}: {name} is {short(repr(value))}; ids and labels are texts or "
            "whole numbers"
        )


def json_object(path: str | Path, text: str, line: int | None) -> dict[str, Any]:
    """Parse a JSON object, from a whole file or one line of it. Raises GraphFileError."""
    # around a line, U+2028 and the like are blanks
    text = text if line is None else text.strip()
    try:
        entry = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        where = f"line {line or problem.lineno}"
        raise GraphFileError(f"{path}, {where}: not valid JSON: {problem.msg}") from problem
    if not isinstance(entry, dict):
        raise GraphFileError(f"{path}, line {line or 1}: expected an object of JSON, {{...}}")
    if len(KEY.findall(text)) != len(entry):  # nested, or twice: orjson keeps the last value
        try:
            json.loads(text, object_pairs_hook=unique_keys, parse_int=str)
        except ValueError as problem:
            raise GraphFileError(f"{path}, line {line or 1}: {problem}") from problem
    return entry
