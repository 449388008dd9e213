"""What a reader of any form gives: statements and labels as they stand in files, with places."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

PLACE = {"file": pl.String, "line": pl.Int64}
STATEMENTS = {"subject": pl.String, "relation": pl.String, "object": pl.String, **PLACE}
#: `order`: labels of a lower number are better; of an id only the best count
LABELS = {"id": pl.String, "label": pl.String, "order": pl.Int64, **PLACE}


class Raw:
    """The frames `statements` and `labels` of rows with the columns above.

    `literals`: relation -> number of its statements whose object is a text. `templates`: rows as in
    templates.tsv. `named`: ids are labels where nothing else is.
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
