"""A pull in pages against one unpaged read.

    python -m perf.sparql_pull [rows]

A local Oxigraph with generated named things. Ours: `pull` with pages of 5,000, every check, raw
pages, table and record. Peer: one unpaged TSV answer streamed to disk, and polars to parquet from
there: no proof of completeness, no resume, no raw answer.
"""

import json
import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import polars as pl

from kgprobe.sources.sparql.paging import PARTS, read_query
from kgprobe.sources.sparql.pull import pull
from tests.contract.oxigraph import local_endpoint

REPEATS = 3
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
QUERY = """# Everything that has a name.
# parts: thing
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT DISTINCT ?thing ?label
WHERE {
  ?thing rdfs:label ?label .
  FILTER(REGEX(MD5(STR(?thing)), "^"))
}
"""


def unpaged(url: str, text: str, folder: Path) -> int:
    """Rows of one TSV answer, through a file, as parquet."""
    data = urllib.parse.urlencode({"query": text}).encode()
    accept = {"Accept": "text/tab-separated-values"}
    with (
        urllib.request.urlopen(urllib.request.Request(url, data=data, headers=accept)) as answer,
        open(folder / "rows.tsv", "wb") as stream,
    ):
        while block := answer.read(1 << 20):
            stream.write(block)
    frame = pl.read_csv(folder / "rows.tsv", separator="\t", quote_char=None)
    frame.write_parquet(folder / "rows.parquet")
    return frame.height


def main(rows: int) -> list[dict[str, object]]:
    """Measure and return the rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        query = folder / "queries" / "made" / "things.rq"
        query.parent.mkdir(parents=True)
        query.write_text(QUERY)
        with open(folder / "things.nt", "w", encoding="utf-8") as stream:
            for number in range(rows):
                place = number * 7919 % 1_000_003  # as good as shuffled
                stream.write(f'<http://example.org/{place:07}> {LABEL} "t{number}"@en .\n')
        text = read_query(query).rows(0, PARTS)
        ours, peer = [], []
        with local_endpoint([folder / "things.nt"]) as endpoint:
            for repeat in range(REPEATS):
                start = time.perf_counter()
                snapshot = pull(query, endpoint, folder / "data" / "made" / str(repeat))
                ours.append(time.perf_counter() - start)
                if snapshot.meta["rows"] != rows:
                    raise SystemExit(f"{snapshot.meta['rows']} rows pulled, expected {rows}")
                start = time.perf_counter()
                if unpaged(endpoint.url, text, folder) != rows:
                    raise SystemExit("the unpaged read lost rows")
                peer.append(time.perf_counter() - start)
    ratio = statistics.median(p / o for p, o in zip(peer, ours, strict=True))
    return [
        {
            "name": f"SPARQL pull, {rows:,} rows in pages of 5,000, local Oxigraph",
            "ours": round(rows / statistics.median(ours)),
            "peer": round(rows / statistics.median(peer)),
            "unit": "rows per second; peer: one unpaged TSV answer to parquet, unchecked",
            "ratio": round(ratio, 3),
            "target": "",
        }
    ]


if __name__ == "__main__":
    measured = main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
    out = Path("results/perf/sparql_pull.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(measured, indent=1))
    print(json.dumps(measured, indent=1))
