"""What a reader of any form gives: statements and labels as they stand in files, with places."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

STATEMENTS = {
    "subject": pl.String,
    "relation": pl.String,
    "object": pl.String,
    "file": pl.String,
    "line": pl.Int64,
}
#: `order`: labels of a lower number are better; of an id only the best count
LABELS = {
    "id": pl.String,
    "label": pl.String,
    "order": pl.Int64,
    "file": pl.String,
    "line": pl.Int64,
}


@dataclass(frozen=True)
class Raw:
    """`statements` (subject, relation, object, file, line) between ids, `labels` (id, label, order,
    file, line).

    `literals`: relation -> number of its statements whose object is a text. `templates`: rows as in
    templates.tsv. `named`: ids are labels where nothing else is.
    """

    statements: pl.DataFrame
    labels: pl.DataFrame
    literals: Mapping[str, int] = field(default_factory=dict)
    templates: Sequence[Mapping[str, str]] = ()
    named: bool = False


def statements(rows: Iterable[tuple[str, str, str, str, int | None]]) -> pl.DataFrame:
    """The frame of statements."""
    return pl.DataFrame(list(rows), schema=STATEMENTS, orient="row")


def labels(rows: Iterable[tuple[str, str, int, str, int | None]]) -> pl.DataFrame:
    """The frame of labels."""
    return pl.DataFrame(list(rows), schema=LABELS, orient="row")
