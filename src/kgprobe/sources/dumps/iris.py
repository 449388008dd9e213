"""What a block of an N-Triples dump says whose ids are IRIs, such as DBpedia's.

IRIs stay text: they have no number of their own. Parquet keeps each once a part.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.sources.dumps.entities import RDFS_LABEL
from kgprobe.sources.dumps.stream import Block
from kgprobe.sources.dumps.triples import Unread, prefilter, triples

STATEMENTS = dict.fromkeys(("subject", "relation", "object", "object_kind", "rank"), pl.String)
NAMES = {"id": pl.String, "place": pl.Int64, "label": pl.String, "sitelinks": pl.Int64}
UNREAD = {"line": pl.Int64, "first": pl.String}


@dataclass(frozen=True)
class OntologyRows:
    """Rows of the three tables."""

    statements: list[tuple[str, str, str, str, str]]
    names: list[tuple[str, int, str, None]]
    unread: list[tuple[int, str]]

    def frames(self) -> Mapping[str, pl.DataFrame]:
        """Each table, rows once and in order."""
        made = {
            "statements": pl.DataFrame(self.statements, schema=STATEMENTS, orient="row"),
            "names": pl.DataFrame(self.names, schema=NAMES, orient="row"),
            "unread": pl.DataFrame(self.unread, schema=UNREAD, orient="row"),
        }
        return {name: frame.unique().sort(frame.columns) for name, frame in made.items()}


def of_triples(block: Block, predicates: Sequence[str], languages: Sequence[str]) -> OntologyRows:
    """Statements of the wanted predicate IRIs, and labels in the `languages`."""
    found, unread = OntologyRows([], [], []), Unread()
    wanted = {*predicates, RDFS_LABEL}
    passed = prefilter(re.escape(f"<{predicate}>".encode()) for predicate in sorted(wanted))
    places = {tag.lower(): place for place, tag in enumerate(languages)}
    for triple in triples(block, passed, unread):
        if triple.predicate == RDFS_LABEL and triple.language in places:
            found.names.append((triple.subject, places[triple.language], triple.text or "", None))
        if triple.predicate not in predicates:
            continue
        kind = "special" if triple.node else "literal" if triple.iri is None else "item"
        value = "somevalue" if triple.node else triple.text if triple.iri is None else triple.iri
        found.statements.append((triple.subject, triple.predicate, value or "", kind, "normal"))
    return OntologyRows(found.statements, found.names, unread.rows)
