"""Cost of a page of statements by the size of the relation that it is a part of.

    python -m perf.sparql_pages [statements ...]
    python -m perf.sparql_pages --keep    kept as docs/page_cost.tsv; then `python docs/pictures.py`

A generated relation with statement nodes, ranks, labels and sitelinks, served by Oxigraph and by
Virtuoso (with DBpedia's limits). `listing`: all its subjects. `page`: facts.rq for a batch of
1,000 of them. Both in CPU seconds of the engine; a page also in wall seconds. A page must not cost
more because the relation is larger.
"""

import contextlib
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import requests

from kgprobe.experiments import located
from kgprobe.sources.sparql.endpoint import Endpoint, Policy
from kgprobe.sources.sparql.paging import PARTS, read_query
from perf.run import RESULTS
from tests.contract import virtuoso
from tests.contract.oxigraph import local_endpoint

#: an engine without blocks on a disk and a cache of them: what a page costs of itself
ON_DISK, IN_MEMORY = "Oxigraph on disk", "Oxigraph in memory"
DOCS = Path("docs")
ENGINES = (ON_DISK, IN_MEMORY, "Virtuoso")
SIZES = (20_000, 160_000, 1_000_000)
#: subjects of a page, and pages; none is asked for twice, as in a pull
BATCH, PAGES = 1000, 200
#: parts of a listing that are asked for; all of them take as much each
LISTED = 8
WD, RDFS = "http://www.wikidata.org/", "http://www.w3.org/2000/01/rdf-schema#"
WIKIBASE, XSD = "http://wikiba.se/ontology#", "http://www.w3.org/2001/XMLSchema#"


def triples(statements: int) -> Iterator[str]:
    """Generate N-Triples of one relation, P17, from many subjects to 200 objects."""
    for n in range(200):
        item = f"<{WD}entity/Q{n + 1}>"
        yield f'{item} <{RDFS}label> "country {n}"@en .\n'
        yield f'{item} <{WIKIBASE}sitelinks> "{n}"^^<{XSD}integer> .\n'
    for n in range(statements):
        item, node = f"<{WD}entity/Q{1000 + 7 * n}>", f"<{WD}entity/statement/Q{n}-{n:08x}>"
        yield f"{item} <{WD}prop/P17> {node} .\n"
        yield f"{node} <{WD}prop/statement/P17> <{WD}entity/Q{n * 7919 % 200 + 1}> .\n"
        yield f"{node} <{WIKIBASE}rank> <{WIKIBASE}NormalRank> .\n"
        yield f'{item} <{RDFS}label> "thing {n}"@{"en" if n % 3 else "mul"} .\n'
        yield f'{item} <{WIKIBASE}sitelinks> "{n % 50}"^^<{XSD}integer> .\n'


@contextlib.contextmanager
def served(engine: str, file: Path, folder: Path) -> Iterator[Endpoint]:
    """Serve the file with one of the engines."""
    if engine == ON_DISK:
        with local_endpoint([file]) as endpoint:
            yield endpoint
        return
    if engine == IN_MEMORY:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{free.getsockname()[1]}"
        program = str(Path(sys.executable).with_name("oxigraph"))
        server = subprocess.Popen([program, "serve", "-b", place], stderr=subprocess.DEVNULL)
        try:
            _load(f"http://{place}/store?default", file)
            yield Endpoint("local", f"http://{place}/query", Policy())
        finally:
            server.kill()
            server.wait()
        return
    with virtuoso.serving(folder / "virtuoso", [file]) as url:
        # its 10,000 rows an answer hold for listings, too
        yield Endpoint("local", url, Policy(listing=8000, batch=1000))


def _load(url: str, file: Path) -> None:
    """Send N-Triples to a server that has just started."""
    for _ in range(100):
        with contextlib.suppress(requests.ConnectionError), open(file, "rb") as stream:
            requests.post(
                url, data=stream, headers={"Content-Type": "application/n-triples"}, timeout=1800
            ).raise_for_status()
            return
        time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


def post(endpoint: Endpoint, text: str) -> tuple[float, list[dict[str, dict[str, str]]]]:
    """Return (seconds, bindings) of one query."""
    accept = {"Accept": "application/sparql-results+json"}
    started = time.perf_counter()
    answer = requests.post(endpoint.url, data={"query": text}, headers=accept, timeout=600)
    answer.raise_for_status()
    rows = answer.json()["results"]["bindings"]
    return time.perf_counter() - started, rows


def busy() -> float:
    """Return the CPU seconds that the engines below this process have used."""
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return sum(one.user + one.system for one in times)


def measured(endpoint: Endpoint, statements: int) -> tuple[float, float, float]:
    """Return (CPU seconds of the listing, of a page, median wall seconds of a page)."""
    query = read_query(located("resources/queries/wikidata/facts.rq"), {"property": "P17"})
    listing, parts = query.listing(), PARTS if endpoint.policy.listing > statements else 1
    while parts < PARTS and statements * parts * 2 // PARTS < 0.9 * endpoint.policy.listing:
        parts *= 2
    began, asked = busy(), list(range(0, PARTS, parts))[:LISTED]
    found = sum(len(post(endpoint, listing.page(at, at + parts))[1]) - 1 for at in asked)
    share = parts * len(asked) / PARTS
    if not 0.9 * share < found / statements < 1.1 * share:
        raise SystemExit(f"{found:,} subjects listed, expected {share * statements:,.0f}")
    listed = (busy() - began) / share
    subjects = sorted(f"{WD}entity/Q{1000 + 7 * n}" for n in range(statements))
    query, times = replace(query, values=tuple(subjects)), []
    pages = random.Random(0).sample(range(statements // BATCH), min(PAGES, statements // BATCH))
    began = busy()
    for page in pages:
        start = page * BATCH
        took, rows = post(endpoint, query.page(start, start + BATCH))
        if len(rows) - 1 != int(next(r for r in rows if "rows" in r)["rows"]["value"]):
            raise SystemExit(f"a page of {len(rows) - 1:,} rows is not whole")
        times.append(took)
    return listed, (busy() - began) / len(pages), statistics.median(times)


def main(
    sizes: Sequence[int],
) -> tuple[list[dict[str, object]], list[tuple[str, int, float, float]]]:
    """Measure, and return rows and points; the smallest relation is the peer of the others."""
    made: list[dict[str, object]] = []
    points: list[tuple[str, int, float, float]] = []
    for engine in ENGINES:
        first = 0.0
        for statements in sizes:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                with open(folder / "p17.nt", "w", encoding="utf-8") as stream:
                    stream.writelines(triples(statements))
                with served(engine, folder / "p17.nt", folder) as endpoint:
                    listing, page, waited = measured(endpoint, statements)
            first = first or page
            points.append((engine, statements, page, listing))
            made.append(
                {
                    "name": f"facts.rq, a page of {statements:,} statements, {engine}",
                    "ours": round(page, 4),
                    "peer": round(first, 4),
                    "unit": f"CPU s for 1,000 subjects; peer: of {sizes[0]:,} statements; "
                    f"waited {waited:.3f} s; listing all subjects: {listing:.1f} CPU s",
                    "ratio": round(first / page, 3),
                    "target": 0.8,
                }
            )
            print(made[-1], flush=True)
    return made, points


def keep(points: Sequence[tuple[str, int, float, float]]) -> None:
    """Write the points as the table from which docs/pictures.py draws the picture of
    docs/sources.md."""
    lines = ["engine\tstatements\tpage\tlisting"]
    lines += [f"{engine}\t{n}\t{page:.4f}\t{listing:.2f}" for engine, n, page, listing in points]
    (DOCS / "page_cost.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    RESULTS.mkdir(parents=True, exist_ok=True)
    sizes = [int(n) for n in sys.argv[1:] if n != "--keep"] or SIZES
    found, points = main(sizes)
    (RESULTS / "sparql_pages.json").write_text(json.dumps(found, indent=1))
    if "--keep" in sys.argv:
        keep(points)
