"""Write docs/sources.md, from two tables: how the public services behave and what their answers
mean.

python -m tools.documented
"""

from collections.abc import Iterator

from kgprobe.experiments import read_table
from kgprobe.files import atomic
from kgprobe.sources.sparql.answers import ANY_STATUS, SIGNS, Sign
from tests.conftest import ROOT
from tests.replay.world import SERVICES

PAGE = ROOT / "docs/sources.md"
#: what `python -m perf.sparql_pages --keep` measured
COSTS = ROOT / "docs/page_cost.tsv"
HEAD = """# How the public services behave

What each public service really does, where that is documented, what the client does about it, and
which test shows it. `make replay` runs the full configuration against an imitation of these
services that behaves the same way (`tests/replay`); `tests/contract` tests single faults. This page
is generated from `tests/replay/world.py` and `kgprobe/sources/sparql/answers.py` by `make docs`.

| source | what it does | documented | what the client does | test |
|---|---|---|---|---|
"""
MEANINGS = """
## What an answer means

The first matching line of the table decides. An answer with rows and without any of the headers
is accepted as rows, which are then checked against the page's own count. Words match in any case.

| sent by | status | header or words | meaning | what the client does |
|---|---|---|---|---|
"""
REACTIONS = {
    "": "stops at once",
    "again": "waits, asks again",
    "smaller": "waits, asks for less",
    "smaller now": "asks for less at once",
}
COST = """
## What a page costs

Facts are pulled in two steps: the subjects of a relation are listed once, unordered and in parts
if the endpoint caps its answers; then their facts are requested, 1,000 subjects per page, each page
with its own count. CPU seconds of the engine, measured with `python -m perf.sparql_pages --keep` on
one generated relation with statement nodes, labels and sitelinks:

| engine | statements | a page of 1,000 subjects | relative to the smallest | listing all subjects |
|---|---:|---:|---:|---:|
{rows}

![CPU seconds of a page and of the listing, by the size of the relation](page_cost.svg)

The in-memory engine shows the cost of the query itself. An engine that reads from disk through a
small cache also pays for the size of its store: the cache of Oxigraph on disk, which
`access: local` uses, holds 20,000 statements but not a million. The listing grows with the
relation, and faster than that if answers are capped: Virtuoso returns at most 10,000 rows, so a
million subjects take 128 answers, each of which scans all of them. Relations of that size are
counted first and read from a dump (`sources.wikidata.large`).
"""


def text() -> str:
    """Return the whole page."""
    lines = [
        f"| {line.source} | {line.does} | {line.documented} | {line.client} | `{line.test}` |"
        for line in SERVICES
    ]
    meanings = "\n".join(meaning(sign) for sign in SIGNS) + "\n"
    return (
        HEAD + "\n".join(lines) + "\n" + MEANINGS + meanings + COST.format(rows="\n".join(costs()))
    )


def meaning(sign: Sign) -> str:
    """Format a row of the table of answers' meanings."""
    numbers, shown = sign.status, sign.header or sign.words.decode().replace("|", "\\|")
    status = ", ".join(map(str, numbers))
    if isinstance(numbers, range):
        status = "any" if numbers == ANY_STATUS else f"{numbers[0]} to {numbers[-1]}"
    words = f"`{shown}`" if shown else ""
    cells = (sign.services, status, words, f"`{sign.meaning.__name__}`")
    does = REACTIONS[sign.meaning.reaction]
    return f"| {' | '.join(cells)} | {does} |"


def costs() -> Iterator[str]:
    """Format the table's row for each engine and size that was measured."""
    first: dict[str, float] = {}
    for row in read_table(COSTS):
        page, listing = float(row["page"]), float(row["listing"])
        over = page / first.setdefault(row["engine"], page)
        yield (
            f"| {row['engine']} | {int(row['statements']):,} | {page:.3f} s | {over:.2f} | "
            f"{listing:.1f} s |"
        )


if __name__ == "__main__":
    with atomic(PAGE) as temporary:
        temporary.write_text(text(), encoding="utf-8")
