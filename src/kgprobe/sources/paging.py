"""Queries as files, and the pages, count and key queries that are made of them.

A `.rq` file is a valid query as it stands. Three kinds of marked lines are what changes: the page
filter, the page size and the parameters. Pages are keysets: the rows after the last key, in order.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE_FILTER = re.compile(r'^ *FILTER\(\?key > ""\)  # page filter$', re.M)
PAGE_SIZE = re.compile(r"^LIMIT (\d+)  # page size$", re.M)
PARAMETER = re.compile(r"^( *VALUES \?(\w+) \{ )(\S.*?)( \}  # parameter)$", re.M)
PREFIX = re.compile(r"^PREFIX (\w*): <([^>]*)>$", re.M)
SELECT = re.compile(r"^SELECT DISTINCT (\?key(?: \?\w+)+)$", re.M)
HEADER = re.compile(r"^# (identity|group|band):(.*)$", re.M)
#: Most values of one parameter in one request (a long list is asked for in several)
MOST_VALUES = 200
SMALLEST_PAGE, GOOD_PAGES = 100, 10
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'[\\"\x00-\x1f\x7f]')
_QUOTED_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|<[^<>\s]*>|#[^\n]*')

Values = str | Sequence[str]


class QueryError(ValueError):
    """A query file or a parameter is not as it must be; the message names file and line."""


@dataclass
class PageSize:
    """Rows to ask for: halves when an answer was too much, doubles back after ten good pages."""

    full: int
    now: int = 0
    good: int = 0

    def __post_init__(self) -> None:
        self.now = self.full

    def smaller(self) -> None:
        """After an answer that was too much."""
        self.now, self.good = max(min(SMALLEST_PAGE, self.full), self.now // 2), 0

    def accepted(self) -> None:
        """After a good page."""
        self.good += 1
        if self.good >= GOOD_PAGES and self.now < self.full:
            self.now, self.good = min(self.full, self.now * 2), 0


@dataclass(frozen=True)
class Query:
    """A query with its parameters filled in, ready to be asked page by page.

    `name` is the snapshot's folder (`facts@P36`), `variables` the columns without the key,
    `identity` those that say which thing a row is about, `band` the number of rows that a public
    service is expected to have (empty: any). `chunks` are the texts to be paged one
    after the other: more than one where a list of values is too long for one request.
    """

    path: Path
    source: str
    name: str
    variables: tuple[str, ...]
    identity: tuple[str, ...]
    group: tuple[str, ...]
    band: tuple[int, ...]
    parameters: dict[str, list[str]]
    chunks: tuple[str, ...]

    def page(self, chunk: int, last: str, size: int) -> str:
        """The text for at most `size` rows of a chunk, with keys greater than `last`.

        Normalised: SPARQLWrapper looks for verbs of updates in comments, too.
        """
        text = self.chunks[chunk]
        line = f"  FILTER(?key > {literal(last)})"
        text = PAGE_FILTER.sub(lambda _: line, text)
        return normalise(PAGE_SIZE.sub(f"LIMIT {size}", text))

    def count(self) -> str:
        """The derived count query: the rows of the same pattern, in one variable `rows`."""
        head, select, rest = self._parts(0)
        body = re.sub(r"\nORDER BY \?key\nLIMIT.*", "", PAGE_FILTER.sub("", rest))
        text = f"{head}SELECT (COUNT(*) AS ?rows)\nWHERE {{\n{select}{body}\n}}\n"
        return normalise(text)

    def keys(self, chunk: int, last: str, size: int) -> str:
        """Like `page`, but only the keys: what a second look at a doubtful pull asks for."""
        text = self.page(chunk, last, size)
        return SELECT.sub("SELECT DISTINCT ?key", text, count=1)

    @property
    def sha256(self) -> str:
        """Hash of the normalised text with its parameters: whether two pulls ask the same."""
        return hashlib.sha256("\n".join(map(normalise, self.chunks)).encode()).hexdigest()

    def _parts(self, chunk: int) -> tuple[str, str, str]:
        text = self.chunks[chunk]
        found = SELECT.search(text)
        assert found  # read_query has seen it
        return text[: found.start()], text[found.start() : found.end()], text[found.end() :]


def read_query(path: str | Path, parameters: Mapping[str, Values] | None = None) -> Query:
    """Read a `.rq` file and fill in `parameters`; its folder names the source.

    The value of an IRI parameter is an IRI or a local name (`P36`), which gets the namespace of the
    value in the file. A list is asked for in chunks of MOST_VALUES, in order of code points.
    Raises QueryError.
    """
    path = Path(path)
    text = _text(path)
    header = dict(HEADER.findall(text))
    variables = tuple(v.lstrip("?") for v in SELECT.findall(text)[0].split()[1:])
    identity = tuple(header.get("identity", "").split()) or variables
    if unknown := (set(identity) | set(header.get("group", "").split())) - set(variables):
        raise QueryError(f"{path}: header names {sorted(unknown)}, which the query does not select")
    filled, chunks, named = _filled(path, text, parameters or {})
    parts = path.resolve().parts
    below = parts.index("queries") + 1 if "queries" in parts[:-2] else len(parts) - 2
    name = ".".join(parts[below + 1 :]).removesuffix(".rq")
    return Query(
        path=path,
        source=parts[below],
        name=f"{name}@{named}" if named else name,
        variables=variables,
        identity=identity,
        group=tuple(header.get("group", "").split()),
        band=tuple(int(bound) for bound in header.get("band", "").split()),
        parameters=filled,
        chunks=chunks,
    )


def _text(path: Path) -> str:
    """The text of a query file, which has each marked line once."""
    if not path.is_file():
        raise QueryError(f"{path}: no such query file")
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    for what, pattern in (
        ('FILTER(?key > "")  # page filter', PAGE_FILTER),
        ("LIMIT 5000  # page size", PAGE_SIZE),
        ("SELECT DISTINCT ?key ?column ...", SELECT),
        ("ORDER BY ?key", re.compile(r"^ORDER BY \?key$", re.M)),
    ):
        if len(pattern.findall(text)) != 1:
            raise QueryError(f"{path}: exactly one line `{what}` is needed")
    return text


def _filled(
    path: Path, text: str, given: Mapping[str, Values]
) -> tuple[dict[str, list[str]], tuple[str, ...], str]:
    """Parameters as terms, the text for every chunk of values, and what names the snapshot."""
    prefixes = dict(PREFIX.findall(text))
    defaults = {m[1]: m[2] for m in PARAMETER.findall(text)}
    if unknown := sorted(set(given) - set(defaults)):
        raise QueryError(f"{path}: no parameters {unknown}; it has {sorted(defaults)}")
    terms: dict[str, list[str]] = {}
    named = []
    for name, default in defaults.items():
        value = given.get(name, default.split(":")[-1].strip('"'))
        values = [value] if isinstance(value, str) else sorted(set(value))
        if not values:
            raise QueryError(f"{path}: parameter '{name}' has no value")
        terms[name] = values = [_term(path, name, v, default, prefixes) for v in values]
        if not default.startswith('"') and not default[0].isdigit():
            named.append(_short(values))
        elif values != [default]:
            named.append(values[0].strip('"'))
    if long := [name for name, values in terms.items() if len(values) > 1]:
        if len(long) > 1:
            raise QueryError(f"{path}: only one parameter may be a list, not {sorted(long)}")
        if f"CONCAT(STR(?{long[0]})," not in text:
            raise QueryError(
                f"{path}: parameter '{long[0]}' takes one value; ask for each value by itself"
            )
        # keys start with the value, so that they rise across chunks when the values do
        pieces = [
            terms[long[0]][i : i + MOST_VALUES] for i in range(0, len(terms[long[0]]), MOST_VALUES)
        ]
        chunks = [terms | {long[0]: piece} for piece in pieces]
    else:
        chunks = [terms]
    return terms, tuple(_put(text, chunk) for chunk in chunks), ".".join(named)


def _put(text: str, terms: Mapping[str, Sequence[str]]) -> str:
    return PARAMETER.sub(lambda m: f"{m[1]}{' '.join(terms[m[2]])}{m[4]}", text)


def _term(path: Path, name: str, value: str, default: str, prefixes: Mapping[str, str]) -> str:
    """A value as a SPARQL term, of the kind that the default in the file has."""
    if default.startswith('"'):
        return literal(value)
    if default[0].isdigit():
        if not value.isdigit():
            raise QueryError(f"{path}: parameter '{name}' is {value!r}, expected a number")
        return value
    if "://" not in value:
        prefix = default.split(":")[0]
        value = prefixes.get(prefix, "") + value
    return iri(value, f"{path}: parameter '{name}'")


def _short(terms: Sequence[str]) -> str:
    """The local name of a single term; for a list or an awkward name the start of a hash."""
    local = re.split(r"[/#:]", terms[0].strip("<>"))[-1]
    if len(terms) == 1 and re.fullmatch(r"[A-Za-z0-9_-]{1,80}", local):
        return local
    return hashlib.sha256("\n".join(terms).encode()).hexdigest()[:12]


def iri(value: str, where: str = "value") -> str:
    """`value` as `<IRI>`. Raises QueryError for what is no absolute IRI."""
    if _NOT_IN_IRI.search(value) or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value):
        raise QueryError(f"{where}: {value!r} is no absolute IRI")
    return f"<{value}>"


def literal(value: str) -> str:
    """`value` as a quoted SPARQL string: quotes, backslashes, control characters escaped."""
    escaped = _SPECIAL.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", value)
    return f'"{escaped}"'


def normalise(text: str) -> str:
    """Line ends to LF, comments and trailing blanks dropped; quotes and `<>` stay as they are."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _QUOTED_OR_COMMENT.sub(lambda m: "" if m[0].startswith("#") else m[0], text)
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"
