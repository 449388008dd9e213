"""Reading a dump whole against unpacking it.

    python -m perf.dumps [megabytes of text] [processes]

A generated Wikidata JSON dump (bzip2): a segment of entities, packed once and put together as
many times as the text needs, as bzip2 allows; 20,000 megabytes are the measure that counts. Ours
(statements of BEAR's relations, labels, aliases, properties; written as parts and joined) against
unpacking the same file on as many threads, looking at nothing.

Rows: MB of text per second of wall time, which says something on quiet cores alone (the load
stands beside it, and a ratio above 1 is noise: ours unpacks, too); the same per CPU second of all
processes, which other work disturbs less; the most memory that one of our processes took.
"""

import bz2
import itertools
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kgprobe.experiments import located, read_table
from kgprobe.sources.dumps import facts
from kgprobe.sources.dumps.stream import blocks

REPEATS = 3
#: Megabytes of text in a segment.
SEGMENT = 50
#: Languages that labels and descriptions of an entity are in.
LANGUAGES = ("en", "mul", "de", "fr", "es", "ru", "zh", "ar", "nl", "sv", "ceb", "vi")


def entity(number: int, source: random.Random, relations: list[str]) -> bytes:
    """Return one line of a dump, about as long as the average one: terms, 25 claims, sitelinks."""
    claims: dict[str, list[object]] = {}
    for n in range(25):
        # a statement in ten is of a relation that is asked for
        relation = source.choice(relations) if n % 10 == 0 else f"P{source.randint(2000, 12000)}"
        value = {"entity-type": "item", "numeric-id": 1, "id": f"Q{source.randint(1, 10**8)}"}
        told = {"value": value, "type": "wikibase-entityid"}
        snak = {
            "snaktype": "value",
            "property": relation,
            "hash": f"{source.getrandbits(160):040x}",
        }
        claims[relation] = [
            {
                "mainsnak": {**snak, "datavalue": told, "datatype": "wikibase-item"},
                "type": "statement",
                "id": f"Q{number}${source.getrandbits(128):032X}",
                "rank": "normal",
            }
        ]
    words = [f"{source.getrandbits(40):x} {source.getrandbits(24):x}" for _ in LANGUAGES]
    terms = {t: {"language": t, "value": w} for t, w in zip(LANGUAGES, words, strict=True)}
    links = {f"{tag}wiki": {"site": f"{tag}wiki", "title": "x", "badges": []} for tag in LANGUAGES}
    content = {
        "type": "item",
        "id": f"Q{number}",
        "labels": terms,
        "descriptions": terms,
        "aliases": {"en": [{"language": "en", "value": words[0]}]},
        "claims": claims,
        "sitelinks": links,
    }
    return json.dumps(content, separators=(",", ":")).encode() + b",\n"


def generated(path: Path, megabytes: int, relations: list[str]) -> int:
    """Write the dump; returns the bytes of its text."""
    source, segment, size = random.Random(0), [], 0
    for number in itertools.count(1):
        segment.append(entity(number, source, relations))
        size += len(segment[-1])
        if size >= min(megabytes, SEGMENT) * 10**6:
            break
    packed, times = bz2.compress(b"".join(segment)), -(-megabytes * 10**6 // size)
    with open(path, "wb") as stream:
        stream.write(bz2.compress(b"[\n"))
        for _ in range(times):
            stream.write(packed)
        stream.write(bz2.compress(b"]\n"))
    return size * times


def clock() -> np.ndarray:
    """Return wall seconds, and CPU seconds of this process and of the children it waited for."""
    return np.array([time.perf_counter(), sum(os.times()[:4])])


def main(megabytes: int, processes: int) -> list[dict[str, object]]:
    """Measure and return the rows."""
    relations = [
        r["relation"] for r in read_table(located("resources/templates/bear_relations.tsv"))
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dump.json.bz2"
        size = generated(path, megabytes, relations)
        bare, ours, found = [], [], 0
        for repeat in range(REPEATS if megabytes <= 1000 else 1):
            start = clock()
            for _ in blocks(path, threads=processes):
                pass
            bare.append(clock() - start)
            start = clock()
            parts = Path(folder) / f"parts{repeat}"
            read_out = facts.read([path], "json", relations, parts, threads=processes)
            found = read_out.statements.height
            ours.append(clock() - start)
        # processes that read, and this one that unpacks
        peaks = [
            resource.getrusage(who).ru_maxrss // 1024
            for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
        ]
    what = f"Wikidata dump, {size / 1e6:,.0f} MB of text, {processes} processes, {found} statements"
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return [
        *(
            {
                "name": name,
                "ours": round(size / 1e6 / statistics.median(o[place] for o in ours), 1),
                "peer": round(size / 1e6 / statistics.median(b[place] for b in bare), 1),
                "unit": f"MB of text per {second}; peer: unpacking the same file alone",
                "ratio": round(
                    statistics.median(b[place] / o[place] for b, o in zip(bare, ours, strict=True)),
                    3,
                ),
                "target": 0.7,
            }
            for place, (name, second) in enumerate(
                ((what, f"second ({load})"), ("Wikidata dump, CPU", "CPU second"))
            )
        ),
        *(
            {
                "name": f"Wikidata dump, most memory of a process that {what}",
                "ours": peak,
                "peer": "",
                "unit": "MB",
                "ratio": "",
                "target": "<= 1000",
            }
            for what, peak in zip(("reads", "unpacks and joins"), peaks, strict=True)
        ),
    ]


if __name__ == "__main__":
    rows = main(*(int(word) for word in (sys.argv[1:] + ["400", "2"][len(sys.argv) - 1 :])))
    out = Path("results/perf/dumps.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))
    print(json.dumps(rows, indent=1))
