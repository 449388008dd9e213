"""Queries from files, and the page, count and listing queries derived from them.

A `.rq` file is a valid query by itself, without ORDER BY and LIMIT, and starts with comments of
the form `# name: value`:

    band        the range of row counts that a public service is expected to have
    property    the property in the text, such as P36, which callers replace by theirs
    values      a variable whose one value in the text callers replace by theirs
    listing     the pattern that lists all these values, if the caller gives none
    parts       a variable whose hashes are divided among pages

A page asks for some of the `values`, or for a range of the keys of `parts`: the first digits of the
MD5 of a name. Unlike names, all services compare these alike; they give pages of equal size, and
the lowest keys are a sample. No page depends on another's rows or on an order: each is requested
together with its own row count, and both must agree.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kgprobe.settings.types import LANGUAGES

#: Hexadecimal digits of a key; PARTS is the number of keys, and so of the smallest pages.
DIGITS = 3
PARTS = 16**DIGITS
#: Number of good pages after which pages become larger again.
GOOD_PAGES = 10

SELECT = re.compile(r"^SELECT DISTINCT (\?\w+(?: \?\w+)*)$", re.M)
PREFIX = re.compile(r"^PREFIX (\w*): <([^>]*)>$", re.M)
HEADER = re.compile(r"^# (band|property|values|listing|parts): *(.*)$", re.M)
OPTIONAL = re.compile(r"^ *OPTIONAL .*\n", re.M)
ORDERED = re.compile(r"^(ORDER BY|LIMIT|OFFSET)\b.*", re.M | re.I)
IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")


#: The line of a query in which its pages differ.
VALUES, KEYS = "VALUES ?{} {{", 'FILTER(REGEX(MD5(STR(?{})), "^"))'


class QueryError(ValueError):
    """A query file or a parameter is invalid; the message names the file and the error."""


def key(value: str) -> int:
    """Return the key of a name, below PARTS."""
    return int(hashlib.md5(value.encode()).hexdigest()[:DIGITS], 16)


@dataclass
class Cuts:
    """Divides 0..total into pages, and halves them after a response that was too large."""

    total: int
    full: int
    start: int = 0
    good: int = 0
    now: int = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.full = max(1, min(self.full, self.total))

    @property
    def page(self) -> tuple[int, int]:
        """The next page: from, to (exclusive)."""
        return self.start, min(self.start + self.now, self.total)

    @property
    def ended(self) -> bool:
        """Whether all pages have been requested."""
        return self.start >= self.total

    def smaller(self) -> bool:
        """Halve the next page after a response that was too large; return whether that worked."""
        before, self.now, self.good = self.now, max(1, self.now // 2), 0
        return self.now < before

    def accepted(self) -> None:
        """Move on after a good page, and make pages larger again after GOOD_PAGES of them."""
        self.start, self.good = self.page[1], self.good + 1
        if self.good >= GOOD_PAGES and self.now < self.full:
            self.now, self.good = min(self.full, self.now * 2), 0


@dataclass(frozen=True)
class Query:
    """A query with its parameters and languages filled in, ready to be requested in pages.

    `name` is the snapshot's folder (`facts@P36`); pages ask for `values`, or else for `parts`.
    `most`: how many values of the divided variable suffice, those with the lowest keys; 0: all.
    """

    path: Path
    source: str
    name: str
    text: str
    header: dict[str, str]
    parameters: dict[str, list[str]]
    values: tuple[str, ...] = ()
    most: int = 0

    @property
    def variables(self) -> list[str]:
        """The names of the result columns."""
        return [name.lstrip("?") for name in SELECT.findall(self.text)[0].split()]

    @property
    def in_batches(self) -> bool:
        """Whether a page asks for some values of a variable instead of a range of its keys."""
        return "parts" not in self.header

    @property
    def divided(self) -> str:
        """The variable whose values or keys are divided among pages."""
        return self.header["values" if self.in_batches else "parts"]

    @property
    def total(self) -> int:
        """The number of pages of the smallest possible size."""
        return len(self.values) if self.in_batches else PARTS

    def build_page_filters(self, start: int, stop: int) -> dict[str, Callable[[str], bool]]:
        """Return functions that test if a value belongs to a page: of the divided variable, and of
        one whose values all pages have; counts have neither."""
        tests: dict[str, Callable[[str], bool]] = {}
        if self.in_batches:
            tests[self.divided] = frozenset(self.values[start:stop]).__contains__
        else:
            tests[self.divided] = lambda value: start <= key(value) < stop
            given = self.header.get("values", "")
            if values := self.parameters.get(given):
                tests[given] = lambda value: f"<{value}>" in values
        return {name: test for name, test in tests.items() if name in self.variables}

    def rows(self, start: int, stop: int) -> str:
        """Return the plain query for the rows of a page."""
        if self.in_batches:
            return self.with_values(self.values[start:stop])
        line, mark = "", KEYS.format(self.divided)
        if (start, stop) != (0, PARTS):
            keys = "|".join(prefixes(start, stop))
            line = "  " + mark.replace("^", f"^({keys})") + "\n"
        return self.text.replace(_line_of(self.text, mark), line)

    def with_values(self, values: Sequence[str]) -> str:
        """Return the query with these values instead of the one in the text."""
        mark = VALUES.format(self.header["values"])
        line = f"  {mark} {' '.join(map(iri, values))} }}\n"
        return self.text.replace(_line_of(self.text, mark), line)

    def page(self, start: int, stop: int) -> str:
        """Return the query sent for a page: its rows, and a row with their number as `?rows`."""
        head, body = _split(self.rows(start, stop))
        names = " ".join(f"?{name}" for name in ("rows", *self.variables))
        either = f"{{\n{body}}}\nUNION\n{{\n{self._count(body)}}}\n"
        return f"{head}SELECT {names}\nWHERE {{\n{either}}}\n"

    def count(self) -> str:
        """Return the derived count query for the number of rows, as `?rows`; if `most` is set, of
        values, without the query's optional parts."""
        head, body = _split(self.rows(0, PARTS))
        if self.most:
            one = f"SELECT (COUNT(DISTINCT ?{self.divided}) AS ?rows)"
            return head + SELECT.sub(lambda _: one, OPTIONAL.sub("", body))
        return head + self._count(body)

    def _count(self, body: str) -> str:
        if len(self.variables) == 1:  # engines may look this number up, but not a sub-query's
            one = f"SELECT (COUNT(DISTINCT ?{self.variables[0]}) AS ?rows)"
            return SELECT.sub(lambda _: one, body)
        return f"SELECT (COUNT(*) AS ?rows)\nWHERE {{\n{body}}}\n"

    def listing(self) -> "Query":
        """Return the query that lists all values to be requested in batches."""
        name = self.divided
        select = f"{_split(self.text)[0]}SELECT DISTINCT ?{name}\nWHERE {{\n"
        text = f"{select}  {self.header['listing']}\n  {KEYS.format(name)}\n}}\n"
        return replace(self, name=f"{self.name}.{name}", text=text, header={"parts": name})

    @property
    def sha256(self) -> str:
        """Hash of the whole query, equal for two pulls of the same rows."""
        lines = [self.text, *self.values]
        if self.most:
            lines.append(f"about {self.most}")
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _split(text: str) -> tuple[str, str]:
    """Return the prefixes, and the query after them."""
    start = text.index("SELECT DISTINCT ")
    return text[:start], text[start:]


def _line_of(text: str, mark: str) -> str:
    """Return the line that contains a mark."""
    return next(line for line in text.splitlines(keepends=True) if mark in line)


def prefixes(start: int, stop: int) -> list[str]:
    """Return the fewest hexadecimal prefixes that cover the numbers from `start` to `stop` - 1.

    >>> prefixes(0x0FF, 0x202)
    ['0ff', '1', '200', '201']
    """
    texts = []
    while start < stop:
        digits, size = DIGITS, 1
        while digits > 1 and start % (size * 16) == 0 and start + size * 16 <= stop:
            digits, size = digits - 1, size * 16
        texts.append(f"{start:0{DIGITS}x}"[:digits])
        start += size
    return texts


def read_query(
    path: str | Path,
    parameters: Mapping[str, str | int | Sequence[str]] | None = None,
    languages: Sequence[str] = LANGUAGES,
) -> Query:
    """Read a `.rq` file, fill in `parameters` and `languages`; its folder names the source.

    Parameters are `property`, a name such as P36; the variable of `values`, with IRIs or local
    names; and, if there is a listing, `least`: minimum sitelinks of a value. Raises QueryError.
    """
    path, given = Path(path), dict(parameters or {})
    text, terms, named = _read(path), dict[str, list[str]](), list[str]()
    if default := dict(HEADER.findall(text)).get("property"):
        value = str(given.pop("property", default))
        if not re.fullmatch(r"[A-Za-z]\w*", value):
            what = f"is {value!r}, expected a name like {default}"
            raise QueryError(f"{path}: parameter 'property' {what}")
        terms["property"], named = [value], [value]
        text = re.sub(rf":{default}\b", f":{value}", text)
    header = dict(HEADER.findall(text))
    # comments and blank lines do not make another query
    lines = (line.rstrip() for line in text.splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith("#")) + "\n"
    variable, values = header.get("values", ""), list[str]()
    if listing := header.get("listing"):
        least = given.pop("least", 0)
        terms["least"] = [str(least)]
        if least:
            named.append(f"least{least}")
            known = f"?{variable} wikibase:sitelinks ?known . FILTER(?known >= {least})"
            header["listing"] = f"{listing}\n  {known}"
            text = text.replace(listing, header["listing"])
    if variable in given:
        values = _values(path, text, variable, given.pop(variable))
        terms[variable] = [iri(value) for value in values]
        named.append(_short(values))
    if given:
        raise QueryError(f"{path}: no parameters {sorted(given)}; it has {sorted(terms)}")
    in_languages = _in_languages(text, languages)
    if in_languages != text:  # the file has the default languages
        named.append("-".join(languages))
    name = path.stem + (f"@{'.'.join(named)}" if named else "")
    source = path.resolve().parent.name
    query = Query(path, source, name, in_languages, header, terms, tuple(values))
    if query.in_batches:
        return query
    # if keys are divided, each page has all values
    return replace(query, text=query.with_values(values), values=()) if values else query


def _read(path: Path) -> str:
    """Read a query file. Raises QueryError if no pages can be derived from it."""
    text = path.read_text(encoding="utf-8")
    if len(SELECT.findall(text)) != 1:
        raise QueryError(f"{path}: exactly one line `SELECT DISTINCT ?column ...` is needed")
    header, marks = dict(HEADER.findall(text)), {"values": VALUES, "parts": KEYS}
    lines = [mark.format(header[name]) for name, mark in marks.items() if name in header]
    if not lines:
        raise QueryError(f"{path}: a comment `# parts: column` or `# values: column` is needed")
    for line in lines:
        if text.count(line) != 1:
            raise QueryError(f"{path}: exactly one line `{line}` is needed")
    if match := ORDERED.search(text):
        raise QueryError(f"{path}: `{match[0]}`: pages are parts or batches, without an order")
    return text


def _values(path: Path, text: str, variable: str, wanted: str | int | Sequence[str]) -> list[str]:
    """Return the IRIs that a caller gives; local names get the prefix of the text's example."""
    several = [str(wanted)] if isinstance(wanted, str | int) else wanted
    if not several:
        raise QueryError(f"{path}: parameter '{variable}' has no value")
    prefix = _line_of(text, VALUES.format(variable)).split("{ ")[1].split(":")[0]
    start, where = dict(PREFIX.findall(text)).get(prefix, ""), f"{path}: parameter '{variable}'"
    whole = {value if "://" in value else start + value for value in several}
    return sorted(whole, key=lambda value: iri(value, where))


def _in_languages(text: str, languages: Sequence[str]) -> str:
    """Return the text, which has lines for `en` and `mul`, with a line for every language."""
    every = ", ".join(f'"{tag}"' for tag in languages)
    lines: list[str] = []
    for line in text.replace('IN ("en", "mul")', f"IN ({every})").splitlines(keepends=True):
        if ') = "en")' in line:
            lines += [line.replace('"en"', f'"{tag}"') for tag in languages]
        elif ') = "mul")' not in line:
            lines.append(line)
    return "".join(lines)


def _short(values: Sequence[str]) -> str:
    """Return the local name of a single value; for several, or an unusual name, a short hash."""
    local = re.split(r"[/#:]", values[0])[-1]
    if len(values) == 1 and re.fullmatch(r"[A-Za-z0-9_-]{1,80}", local):
        return local
    return hashlib.sha256("\n".join(map(iri, values)).encode()).hexdigest()[:12]


def iri(value: str, where: str = "value") -> str:
    """Format `value` as `<IRI>`. Raises QueryError if it is not an absolute IRI."""
    if not IRI.fullmatch(value):
        raise QueryError(f"{where}: {value!r} is not an absolute IRI")
    return f"<{value}>"
