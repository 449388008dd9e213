"""The output of all graph readers: statements and labels as in the files, with file and line."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from kgprobe.sources.labels import one_line

PLACE = {"file": pl.String, "line": pl.Int64}
STATEMENTS = {"subject": pl.String, "relation": pl.String, "object": pl.String, **PLACE}
#: `order`: priority of a label, lower is better; only the best labels of an id are used
LABELS = {"id": pl.String, "label": pl.String, "order": pl.Int64, **PLACE}


def composed(name: str) -> str:
    """Return an id on one line and with composed letters (NFC): two files may write one id in both
    forms. IRIs are never changed."""
    return unicodedata.normalize("NFC", one_line(name))


class Raw:
    """The frames `statements` and `labels`, with the columns above.

    `literals`: relation -> number of its statements whose object is a literal. `templates`: rows as
    in templates.tsv. `named`: whether ids are used as labels because no entity has another.
    """

    def __init__(
        self,
        statements: Iterable[tuple[Any, ...]],
        labels: Iterable[tuple[Any, ...]],
        literals: Mapping[str, int] | None = None,
        templates: Sequence[Mapping[str, str]] = (),
        named: bool = False,
    ) -> None:
        self.statements = pl.DataFrame(list(statements), schema=STATEMENTS, orient="row")
        self.labels = pl.DataFrame(list(labels), schema=LABELS, orient="row")
        self.literals, self.templates, self.named = literals or {}, templates, named
