"""An ontology whose names carry nothing, for the test of OntoProbe's tests (tables/.../answerers).

Classes in a tree of three levels, properties with a domain, a range and a superproperty; some ends
are much commoner than others, as in real ontologies. Every row is a test row.
"""

from kgprobe.benchmarks.invented import WorldError, names
from kgprobe.benchmarks.ontoprobe.concepts import Class, ConceptRows, Concepts, Property, TaskRow
from kgprobe.sampling import hash_key

#: classes of the first and of the second level, superproperties
TOP, MIDDLE, ABOVE = 5, 20, 10


def invent_rows(rows: int, seed: int) -> ConceptRows:
    """Rows of SCO, SPO, DM and RG, `rows` of each. Raises WorldError for no rows."""
    if rows < 1:
        raise WorldError(f"an invented ontology of {rows} rows leaves every rule without rows")
    drawn = list(names(TOP + MIDDLE + 2 * rows + ABOVE, seed, "ontology"))
    top, middle = drawn[:TOP], drawn[TOP : TOP + MIDDLE]
    rest = drawn[TOP + MIDDLE :]
    low, above, below = rest[:rows], rest[rows : rows + ABOVE], rest[rows + ABOVE :]
    chains: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(middle):
        chains[name] = (top[place % TOP],)
    for name in low:
        parent = middle[_skewed(MIDDLE, seed, "parent", name)]
        chains[name] = (parent, *chains[parent])
    patterns = {name: f"[X] {name} [Y] ." for name in [*above, *below]}
    properties = tuple(
        Property(
            name, name, patterns[name],
            middle[_skewed(MIDDLE, seed, "domain", name)],
            middle[_skewed(MIDDLE, seed, "range", name)],
            (above[_skewed(ABOVE, seed, "above", name)],),
        )
        for name in below
    )  # fmt: skip
    known = Concepts(
        tuple(Class(name, name, chains.get(name, ())) for name in [*low, *middle, *top]),
        properties,
        patterns,
    )
    task_rows = [_row("SCO", n, name, chains[name]) for n, name in enumerate(low)]
    for number, one in enumerate(properties):
        task_rows.append(_row("SPO", number, one.label, one.above, one.pattern))
        for task, end in (("DM", one.domain), ("RG", one.range)):
            golds = (end, *chains[end]) if end else ()
            task_rows.append(_row(task, number, one.label, golds, one.pattern))
    return ConceptRows(known, task_rows)


def _row(
    task: str, number: int, subject: str, golds: tuple[str, ...], pattern: str | None = None
) -> TaskRow:
    where = "invented ontology"
    return TaskRow(task, number, "test", subject, subject, golds, pattern, where=where)


def _skewed(size: int, seed: int, *key: str) -> int:
    """A place of `size`, the first ones much oftener."""
    return int(size * (hash_key(seed, *key) / (1 << 64)) ** 3)
