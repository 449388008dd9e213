"""Queries as files, and the page, count and listing queries that are made of them.

A `.rq` file is a valid query as it stands, without an order and without a limit. What the client
changes are marked lines:

    VALUES ?class { dbo:Publisher }  # parameter       one term, given by the caller
    ?subject p:P36 ?statement .  # property            for the header's `property: P36`
    OPTIONAL { ... FILTER(LANG(?l) = "en") }  # language    for every language, best first
    FILTER(LANG(?alias) IN ("en", "mul"))  # languages      all of them
    FILTER(REGEX(MD5(STR(?class)), "^"))  # part       the classes with some of 4,096 hashes
    VALUES ?subject { wd:Q142 }  # batch               some of the subjects
    #least ?subject wikibase:sitelinks ?n FILTER(?n >= 0)   only where `least` is given

A page is a part or a batch. No page needs another's rows or an order, which engines see
differently: every page is asked for together with its own number of rows, and both must agree.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kgprobe.settings import LANGUAGES

#: Digits of a hash that tell parts apart, and so the number of the smallest parts there are.
DIGITS = 3
PARTS = 16**DIGITS
#: Most values of a batch: about 60 kB of a POST body.
MOST_VALUES = 1000
#: Good pages after which a page is made larger again.
GOOD_PAGES = 10

SELECT = re.compile(r"^SELECT DISTINCT (\?\w+(?: \?\w+)*)$", re.M)
PREFIX = re.compile(r"^PREFIX (\w*): <([^>]*)>$", re.M)
HEADER = re.compile(r"^# (identity|group|band|property): *(.*)$", re.M)
PARAMETER = re.compile(r"^( *VALUES \?(\w+) \{ )(\S.*?)( \}  # parameter)$", re.M)
PART = re.compile(r'^ *FILTER\(REGEX\(MD5\(STR\(\?(\w+)\)\), "\^"\)\)  # part\n', re.M)
BATCH = re.compile(r"^ *VALUES \?(\w+) \{ (\w*):\S+ \}  # batch\n", re.M)
LISTED = re.compile(r"^ .*  # (?:property, )?listing\n", re.M)
LEAST = re.compile(r"^#least( .* >= )0(\).*)$", re.M)
LANGUAGE = re.compile(r'^( .*LANG\(\?\w+\) = ")\w+("\).*  # language)\n', re.M)
EVERY_LANGUAGE = re.compile(r"^( .*LANG\(\?\w+\) IN \()[^)]*(\).*  # languages)$", re.M)
TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_NOT_IN_IRI = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'[\\"\x00-\x1f\x7f]')
_QUOTED_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|<[^<>\s]*>|#[^\n]*')


class QueryError(ValueError):
    """A query file or a parameter is not as it must be; the message names file and line."""


@dataclass
class Cuts:
    """Cuts 0..total into pages: half as large after an answer that was too much, and back again."""

    total: int
    full: int
    start: int = 0
    good: int = 0
    now: int = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.full = max(1, min(self.full, self.total))

    @property
    def page(self) -> tuple[int, int]:
        """The next page: from, to (not included)."""
        return self.start, min(self.start + self.now, self.total)

    @property
    def ended(self) -> bool:
        """Whether all is asked."""
        return self.start >= self.total

    def smaller(self) -> bool:
        """Whether the next page is smaller, after an answer that was too much."""
        before, self.now, self.good = self.now, max(1, self.now // 2), 0
        return self.now < before

    def accepted(self) -> None:
        """After a good page."""
        self.start, self.good = self.page[1], self.good + 1
        if self.good >= GOOD_PAGES and self.now < self.full:
            self.now, self.good = min(self.full, self.now * 2), 0


@dataclass(frozen=True)
class Query:
    """A query with its parameters and languages filled in, ready to be asked page by page.

    `name` is the snapshot's folder (`facts@P36`), `variables` the columns, `identity` those that
    say which thing a row is about, `band` the number of rows that a public service is expected to
    have (empty: any). `asked` is the variable whose values are asked for in batches, or "" where
    the parts are those of a hash; its values are `values`, or those of `listing()`. `parts`: how
    many of the parts are asked for, all or those with the lowest hashes.
    """

    path: Path
    source: str
    name: str
    variables: tuple[str, ...]
    identity: tuple[str, ...]
    group: tuple[str, ...]
    band: tuple[int, ...]
    parameters: dict[str, list[str]]
    text: str
    asked: str = ""
    values: tuple[str, ...] = ()
    parts: int = PARTS

    @property
    def divided(self) -> str:
        """The variable whose values, or the hashes of whose values, are divided among pages.

        "" where rows are counts of parts, and do not show it.
        """
        found = PART.search(self.text)
        divided = found[1] if found else self.asked
        return divided if divided in self.variables else ""

    def hashes(self, value: str, start: int, stop: int) -> bool:
        """Whether the hash of a value of `divided` lies in the part from `start` to `stop`."""
        return start <= int(hashlib.md5(value.encode()).hexdigest()[:DIGITS], 16) < stop

    @property
    def total(self) -> int:
        """How many of the smallest pages there are."""
        return len(self.values) if self.asked else self.parts

    def rows(self, start: int, stop: int) -> str:
        """The plain query for the rows of a page."""
        if self.asked:
            terms = " ".join(iri(value) for value in self.values[start:stop])
            return BATCH.sub(lambda m: f"  VALUES ?{m[1]} {{ {terms} }}\n", self.text)
        if (start, stop) == (0, PARTS):
            return PART.sub("", self.text)
        hashes = f"^({'|'.join(prefixes(start, stop))})"
        return PART.sub(lambda m: f'  FILTER(REGEX(MD5(STR(?{m[1]})), "{hashes}"))\n', self.text)

    def page(self, start: int, stop: int) -> str:
        """The text that is sent for a page: its rows, and beside them their number, as `?rows`.

        Normalised: SPARQLWrapper looks for verbs of updates in comments, too.
        """
        head, body = _split(self.rows(start, stop))
        names = " ".join(f"?{name}" for name in ("rows", *self.variables))
        either = f"{{\n{body}}}\nUNION\n{{\n{self._count(body)}}}\n"
        return normalise(f"{head}SELECT {names}\nWHERE {{\n{either}}}\n")

    def count(self) -> str:
        """The derived count query: how many rows there are, as `?rows`."""
        head, body = _split(self.rows(0, self.parts))
        return normalise(head + self._count(body))

    def _count(self, body: str) -> str:
        if len(self.variables) == 1:  # engines may look this number up; that of a sub-query not
            one = f"SELECT (COUNT(DISTINCT ?{self.variables[0]}) AS ?rows)"
            return SELECT.sub(lambda _: one, body)
        return f"SELECT (COUNT(*) AS ?rows)\nWHERE {{\n{body}}}\n"

    def listing(self) -> "Query":
        """The query for all values that are asked for in batches."""
        head, body = _split(self.text)
        lines = "".join(LISTED.findall(body))
        part = f'  FILTER(REGEX(MD5(STR(?{self.asked})), "^"))  # part\n'
        return replace(
            self,
            name=f"{self.name}.{self.asked}",
            variables=(self.asked,),
            identity=(self.asked,),
            group=(),
            band=(),
            text=f"{head}SELECT DISTINCT ?{self.asked}\nWHERE {{\n{lines}{part}}}\n",
            asked="",
        )

    @property
    def sha256(self) -> str:
        """Hash of all that is asked: whether two pulls ask the same."""
        asked = [normalise(self.text), *self.values]
        if self.parts != PARTS:
            asked.append(f"{self.parts} of {PARTS} parts")
        return hashlib.sha256("\n".join(asked).encode()).hexdigest()


def _split(text: str) -> tuple[str, str]:
    """Prefixes, and the query behind them."""
    found = SELECT.search(text)
    assert found  # read_query has seen it
    return text[: found.start()], text[found.start() :]


def prefixes(start: int, stop: int) -> list[str]:
    """The fewest hexadecimal prefixes of the numbers from `start` to `stop`, written in DIGITS.

    >>> prefixes(0x0FF, 0x202)
    ['0ff', '1', '200', '201']
    """
    found = []
    while start < stop:
        digits, size = DIGITS, 1
        while digits > 1 and start % (size * 16) == 0 and start + size * 16 <= stop:
            digits, size = digits - 1, size * 16
        found.append(f"{start:0{DIGITS}x}"[:digits])
        start += size
    return found


def read_query(
    path: str | Path,
    parameters: Mapping[str, str | int | Sequence[str]] | None = None,
    languages: Sequence[str] = LANGUAGES,
) -> Query:
    """Read a `.rq` file, fill in `parameters` and `languages`; its folder names the source.

    Parameters are those that the file marks, by name: an IRI or its local name (`P36`), a text;
    `least`, a number; the values of the batch, where they are not listed by the query itself.
    Raises QueryError.
    """
    path, given = Path(path), dict(parameters or {})
    text = _text(path)
    header = dict(HEADER.findall(text))
    variables = tuple(v.lstrip("?") for v in SELECT.findall(text)[0].split())
    identity = tuple(header.get("identity", "").split()) or variables
    if unknown := (set(identity) | set(header.get("group", "").split())) - set(variables):
        raise QueryError(f"{path}: header names {sorted(unknown)}, which the query does not select")
    filling = _Filling(path, text, given)
    filling.put_terms()
    filling.put_property(header.get("property", ""))
    filling.put_least()
    asked, values = filling.batch()
    filling.put_languages(languages)
    if given:
        raise QueryError(f"{path}: no parameters {sorted(given)}; it has {sorted(filling.terms)}")
    parts = path.resolve().parts
    below = parts.index("queries") + 1 if "queries" in parts[:-2] else len(parts) - 2
    name = ".".join(parts[below + 1 :]).removesuffix(".rq")
    return Query(
        path=path,
        source=parts[below],
        name="@".join([name, *([".".join(filling.named)] if filling.named else [])]),
        variables=variables,
        identity=identity,
        group=tuple(header.get("group", "").split()),
        band=tuple(int(bound) for bound in header.get("band", "").split()),
        parameters=filling.terms,
        text=filling.text,
        asked=asked,
        values=values,
    )


def _text(path: Path) -> str:
    """The text of a query file with its marks."""
    if not path.is_file():
        raise QueryError(f"{path}: no such query file")
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    if len(SELECT.findall(text)) != 1 and not re.search(r"^SELECT DISTINCT \?", text, re.M):
        raise QueryError(f"{path}: exactly one line `SELECT DISTINCT ?column ...` is needed")
    if len(PART.findall(text)) + len(BATCH.findall(text)) != 1:
        raise QueryError(
            f'{path}: exactly one line `FILTER(REGEX(MD5(STR(?column)), "^"))  # part` or '
            "`VALUES ?column { prefix:name }  # batch` is needed"
        )
    if found := re.search(r"^(ORDER BY|LIMIT|OFFSET)\b.*", text, re.M | re.I):
        raise QueryError(f"{path}: `{found[0]}`: pages are parts or batches, without an order")
    return text


@dataclass
class _Filling:
    """A text whose marked lines are filled in, one kind after the other.

    `given` loses what is used; `terms` keeps what was put in, `named` what names the snapshot.
    """

    path: Path
    text: str
    given: dict[str, str | int | Sequence[str]]
    terms: dict[str, list[str]] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.prefixes = dict(PREFIX.findall(self.text))

    def put_terms(self) -> None:
        """One term for each line that is marked `parameter`, of the kind that the file's has."""
        for _, name, default, _ in PARAMETER.findall(self.text):
            quoted = default.startswith('"')
            value = self.given.pop(name, default.split(":")[-1].strip('"'))
            if not isinstance(value, str):
                raise self._wrong(name, "takes one value; ask for each by itself")
            term = literal(value) if quoted else self._iri(name, value, default.split(":")[0])
            if not quoted or term != default:
                self.named.append(_short([value if quoted else term]))
            self.terms[name] = [term]
        self.text = PARAMETER.sub(lambda m: f"{m[1]}{self.terms[m[2]][0]}{m[4]}", self.text)

    def put_property(self, default: str) -> None:
        """The property in place of the header's."""
        if not default:
            return
        value = str(self.given.pop("property", default)).rsplit("/", 1)[-1]
        if not re.fullmatch(r"[A-Za-z]\w*", value):
            raise self._wrong("property", f"is {value!r}, expected a name like {default}")
        self.terms["property"] = [value]
        self.named.append(value)
        mark = re.compile(rf"^( .*):{re.escape(default)}\b(.*  # property(?:, listing)?)$", re.M)
        self.text = mark.sub(lambda m: f"{m[1]}:{value}{m[2]}", self.text)

    def put_least(self) -> None:
        """The line of a least number, where one is asked for."""
        line = LEAST.search(self.text)
        if not line:
            return
        value = str(self.given.pop("least", 0))
        if not value.isdecimal():
            raise self._wrong("least", f"is {value!r}, expected a number")
        self.terms["least"] = [value]
        if int(value):
            self.named.append(f"least{value}")
        made = f" {line[1]}{value}{line[2]}  # listing" if int(value) else "#"
        self.text = self.text.replace(line[0], made)

    def batch(self) -> tuple[str, tuple[str, ...]]:
        """The variable that is asked for in batches; its values as IRIs, if they are given."""
        found = BATCH.search(self.text)
        if not found:
            return "", ()
        asked = found[1]
        if asked not in self.given:
            if not LISTED.search(self.text):
                raise self._wrong(asked, "has no values, and no line lists them")
            return asked, ()
        wanted = self.given.pop(asked)
        several = [wanted] if isinstance(wanted, str | int) else list(wanted)
        if not several:
            raise self._wrong(asked, "has no value")
        terms = sorted({self._iri(asked, str(value), found[2]) for value in several})
        self.terms[asked] = terms
        self.named.append(_short(terms))
        return asked, tuple(term.strip("<>") for term in terms)

    def put_languages(self, languages: Sequence[str]) -> None:
        """One line for every language in place of each run of lines that are marked `language`."""
        if wrong := [tag for tag in languages if not TAG.fullmatch(tag)] or not languages:
            told = wrong or "none"
            raise QueryError(f"{self.path}: languages {told}, expected codes such as en or mul")
        lines: list[str] = []
        for line in self.text.splitlines(keepends=True):
            found = LANGUAGE.fullmatch(line)
            made = [f"{found[1]}{tag}{found[2]}\n" for tag in languages] if found else [line]
            if lines[-len(made) :] != made or not found:
                lines += made
        every = ", ".join(f'"{tag}"' for tag in languages)
        spoken = EVERY_LANGUAGE.sub(lambda m: f"{m[1]}{every}{m[2]}", "".join(lines))
        if spoken != self.text:  # the file has the usual ones
            self.named.append("-".join(languages))
        self.text = spoken

    def _iri(self, name: str, value: str, prefix: str) -> str:
        whole = value if "://" in value else self.prefixes.get(prefix, "") + value
        return iri(whole, f"{self.path}: parameter '{name}'")

    def _wrong(self, name: str, what: str) -> QueryError:
        return QueryError(f"{self.path}: parameter '{name}' {what}")


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
