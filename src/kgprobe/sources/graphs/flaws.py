"""What may be wrong with a graph that is given: how often, where first, and what would be right.

A flaw ends the reading with an error that names all of them, unless the section leaves it out.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import get_args

import polars as pl

from kgprobe.schema import Contract
from kgprobe.settings import Flaw

#: characters of the longest id; IRIs in use are far below
LONGEST = 1000
#: flaw -> what would be right
RIGHT: dict[str, str] = {
    "missing_label": "give it a label: a column or predicate of labels, or a row in `labels`",
    "two_labels": "keep one label for an id; a list of languages (`languages`) chooses among tags",
    "relation_as_entity": "give the entity or the relation another id",
    "loop": "take one of these statements out: nothing is above itself",
    "long_id": f"ids have at most {LONGEST:,} characters; a text in place of an id is a label",
    "blank_node": "give it an IRI; unnamed classes of OWL (restrictions, unions) cannot be asked",
    "import": "add its file to `files`: nothing is fetched while a file is read",
}
assert set(RIGHT) == set(get_args(Flaw))

#: A flaw that was left out: how often, and where first.
PROBLEMS = Contract(
    "PROBLEMS",
    {"flaw": pl.String, "n": pl.Int64, "first": pl.String},
    ("flaw",),
    may_be_empty=True,
)


class GraphFileError(ValueError):
    """A graph cannot be read; the message names file, line or id, and what would be right."""


@dataclass
class Flaws:
    """The flaws of one graph: `left_out` are counted, all others end in an error."""

    name: str
    left_out: Collection[str] = ()
    found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, flaw: str, first: str, n: int = 1) -> None:
        """So many more of a flaw; `first` says where the first is and what it is."""
        count, told = self.found.get(flaw, (0, first))
        self.found[flaw] = (count + n, told)

    def rows(self, flaw: str, wrong: pl.DataFrame, text: str) -> None:
        """Statements (columns file, line) that have a flaw; `text` formats one."""
        if wrong.height:
            row = wrong.row(0, named=True)
            shown = {k: short(v) if isinstance(v, str) else v for k, v in row.items()}
            self.note(
                flaw, f"{place(row['file'], row['line'])}: {text.format(**shown)}", wrong.height
            )

    def check(self) -> None:
        """Raise GraphFileError, with all flaws that are not left out."""
        wrong = [name for name in RIGHT if name in self.found and name not in self.left_out]
        if not wrong:
            return
        lines = [f"sources.graphs.{self.name}: the graph has {len(wrong)} kinds of flaws"]
        for name in wrong:
            n, first = self.found[name]
            times = "" if n == 1 else f" ({n:,} times, this is the first)"
            lines.append(f"  {name}: {first}{times}\n    {RIGHT[name]}")
        lines.append(f"  or count them and go on: leave_out: [{', '.join(wrong)}]")
        raise GraphFileError("\n".join(lines))

    def frame(self) -> pl.DataFrame:
        """PROBLEMS."""
        rows = [(name, *self.found[name]) for name in RIGHT if name in self.found]
        return pl.DataFrame(rows, schema=dict(PROBLEMS.columns), orient="row")


def short(text: str) -> str:
    """A text as a message shows it."""
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text):,} characters)"


def place(file: str, line: int | None) -> str:
    """Where something stands."""
    return file if line is None else f"{file}, line {line}"
