"""What is wrong with an ontology and its questions: gathered task by task, told at the end."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kgprobe.benchmarks.ontoprobe_concepts import Concepts, Row

#: problems of one task that are told in full
SHOWN = 5


class Problems:
    """Problems by task (or "ontology"): one bad task hides none of another."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.found: dict[str, list[str]] = {}

    def add(self, task: str, message: str) -> None:
        """Note one problem; the message names file, row and remedy."""
        self.found.setdefault(task, []).append(message)

    @contextmanager
    def of(self, task: str) -> Iterator[None]:
        """A ValueError inside becomes a problem of the task."""
        try:
            yield
        except ValueError as error:
            self.add(task, str(error))

    def check(self) -> None:
        """Raise one ValueError that tells them all; do nothing when there are none."""
        if not self.found:
            return
        lines = [f"{self.what}: {', '.join(self.found)} cannot be built"]
        for task, messages in self.found.items():
            lines += [f"  {task}: {message}" for message in messages[:SHOWN]]
            if len(messages) > SHOWN:
                lines.append(f"  {task}: ... and {len(messages) - SHOWN} more")
        raise ValueError("\n".join(lines))


def distinct(rows: Sequence[Row], where: str, problems: Problems) -> None:
    """Note every question of the test that is asked in train or dev already."""
    seen = {(r.task, r.subject, frozenset(r.golds)): r for r in rows if r.role != "test"}
    for row in rows:
        other = seen.get((row.task, row.subject, frozenset(row.golds)))
        if row.role == "test" and other:
            problems.add(
                row.task,
                f"{row.where or where}: {row.task} row {row.row} ({row.subject!r}) is also row "
                f"{other.row}, which is for {other.role}; remove one of them",
            )


def concepts_known(rows: Sequence[Row], known: Concepts, files: str, problems: Problems) -> None:
    """Note rows about a class without instances (TP), a property without domain or range (DM, RG).

    `files` says where the ontology stands.
    """
    members = {c.label: len(c.instances) for c in known.classes}
    ends = {p.label: {"DM": p.domain, "RG": p.range} for p in known.properties}
    for row in rows:
        if row.task == "TP" and members.get(row.golds[0]) == 0:
            problems.add(
                "TP",
                f"{row.where}: TP row {row.row} ({row.subject!r}) is of the class "
                f"{row.golds[0]!r}, which has no instance in {files}; add the instance there or "
                "remove the row",
            )
        if row.task in ("DM", "RG") and not _end(row, ends):
            end = "domain" if row.task == "DM" else "range"
            problems.add(
                row.task,
                f"{row.where}: {row.task} row {row.row} ({row.subject!r}): the property has no "
                f"{end} in {files}; add it there or remove the row",
            )


def _end(row: Row, ends: Mapping[str, Mapping[str, str | None]]) -> bool:
    """Whether the property of a row has the end that is asked for, or is not in the ontology."""
    return row.subject not in ends or bool(ends[row.subject][row.task])
