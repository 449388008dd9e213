"""Dump filtering against bare decompression.

    python -m perf.dumps [megabytes]

A generated Wikidata JSON dump (gzip) of entities with made-up claims, one in a thousand with the
relation that is asked for. Rows: MB of decompressed text per CPU second, ours with the byte
prefilter, against reading the same lines without looking at them.
"""

import gzip
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kgprobe.sources.dumps import stream as dumps

REPEATS = 5


def entity(number: int, source: random.Random) -> bytes:
    """One line of a dump: an entity with 40 claims, rarely with P36."""
    claims: dict[str, list[object]] = {}
    for _ in range(40):
        relation = f"P{source.randint(100, 9000)}"
        value = {"entity-type": "item", "id": f"Q{source.randint(1, 10**8)}"}
        snak = {
            "snaktype": "value",
            "property": relation,
            "datavalue": {"value": value, "type": "wikibase-entityid"},
        }
        claims[relation] = [{"mainsnak": snak, "type": "statement", "rank": "normal"}]
    if source.random() < 0.001:
        claims["P36"] = claims.pop(next(iter(claims)))
    content = {"type": "item", "id": f"Q{number}", "labels": {}, "claims": claims}
    return json.dumps(content, separators=(",", ":")).encode()


def main(megabytes: int) -> list[dict[str, object]]:
    """Measure and return the rows."""
    source = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.json.gz"
        size, number = 0, 0
        with gzip.open(path, "wb", compresslevel=6) as stream:
            stream.write(b"[\n")
            while size < megabytes * 10**6:
                line = entity(number, source)
                size, number = size + len(line) + 2, number + 1
                stream.write(line + b",\n")
            stream.write(b"]\n")
        bare, ours, found = [], [], 0
        for _ in range(REPEATS):
            start = time.process_time()
            with dumps.lines(path) as lines:
                for _line in lines:
                    pass
            bare.append(time.process_time() - start)
            start = time.process_time()
            with dumps.lines(path) as lines:
                found = sum(1 for _ in dumps.wikidata_json(lines, ["P36"]))
            ours.append(time.process_time() - start)
    ratio = statistics.median(b / o for b, o in zip(bare, ours, strict=True))
    return [
        {
            "name": f"Wikidata dump filter, {size / 1e6:.0f} MB, {found} statements found",
            "ours": round(size / 1e6 / statistics.median(ours), 1),
            "peer": round(size / 1e6 / statistics.median(bare), 1),
            "unit": "MB of text per CPU second; peer: bare decompression of the same lines",
            "ratio": round(ratio, 3),
            "target": "",
        }
    ]


if __name__ == "__main__":
    rows = main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    out = Path("results/perf/dumps.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))
    print(json.dumps(rows, indent=1))
