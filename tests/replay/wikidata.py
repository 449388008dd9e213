"""The replay of Wikidata, generated from the real excerpt of best-rank statements.

The excerpt has only truthy triples. Each becomes a statement as in the query service: a node with
its rank, sometimes a date, and the truthy triple. Values missing in the excerpt are derived
deterministically from a hash of the entity's id: the number of sitelinks, whether the label is in
`en` or only in `mul`, and dates. Labels, statements and ids are real.
"""

import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

WD, PROP = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/"
WIKIBASE = "http://wikiba.se/ontology#"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
_TRUTHY = re.compile(rf"<{WD}(Q\d+)> <{PROP}direct/(P\d+)> <{WD}(Q\d+)> \.\n", re.A)
_NAMED = re.compile(rf'<{WD}(Q\d+)> {re.escape(LABEL)} (".*")@en \.\n', re.A)
#: One label in this many is only in `mul`.
MUL = 5


def number(text: str) -> int:
    """Return a number that depends only on the text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest())


def sitelinks(item: str) -> int:
    """Return a number of sitelinks, mostly small: half below 8, one in 64 above 250."""
    return int(2 ** (number(item) % 600 / 75))


def rendered(lines: Iterable[str]) -> Iterator[str]:
    """Yield N-Triples as in the query service."""
    known: set[str] = set()
    for line in lines:
        if found := _NAMED.match(line):
            item, text = found.groups()
            language = "mul" if number("label " + item) % MUL == 0 else "en"
            yield f"<{WD}{item}> {LABEL} {text}@{language} .\n"
        else:
            yield line
        if not (found := _TRUTHY.match(line)):
            continue
        subject, relation, value = found.groups()
        code = number(f"{subject} {relation} {value}")
        node = f"<{WD}statement/{subject}-{code:012X}>"
        yield f"<{WD}{subject}> <{PROP}{relation}> {node} .\n"
        yield f"{node} <{PROP}statement/{relation}> <{WD}{value}> .\n"
        yield f"{node} <{WIKIBASE}rank> <{WIKIBASE}NormalRank> .\n"
        for item in (subject, value):
            if item not in known:
                known.add(item)
                links = f'"{sitelinks(item)}"^^{INTEGER}'
                yield f"<{WD}{item}> <{WIKIBASE}sitelinks> {links} .\n"


def render(excerpt: Path, target: Path) -> Path:
    """Write the excerpt (N-Triples, gzip) in the form of the query service."""
    with (
        gzip.open(excerpt, "rt", encoding="utf-8", newline="\n") as lines,
        open(target, "w", encoding="utf-8", newline="\n") as stream,
    ):
        stream.writelines(rendered(lines))
    return target
