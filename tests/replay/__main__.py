"""The full rebuild against the replay, from scratch to the report.

    python -m tests.replay [--keep] [--cores N] [snakemake's own arguments]

Runs config/replay.yaml on two cores, or N, after deleting `data/replay` and `results/replay`
(unless --keep is given). Fails if Snakemake fails, if a host was contacted that the replay does not
know, if an address, a pinned tree, an endpoint or a query of the full configuration was not
requested, or if a file below `data/replay` is wrong.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from kgprobe.config import read
from kgprobe.settings.sources import RELEASED
from kgprobe.sources.dumps.lock_file import find_tree, read_lock_file
from kgprobe.sources.sparql.endpoint import read_endpoints
from tests.conftest import ROOT, data_folder
from tests.replay import models
from tests.replay.proxy import Proxy
from tests.replay.world import world

DATA, RESULTS = Path("data/replay"), Path("results/replay")
CONFIG = "config/replay.yaml"
#: Queries only for files on disk: best-rank dumps, which no public service serves.
LOCAL_QUERIES = {"facts_truthy"}


def requests_by_host(proxy: Proxy) -> list[str]:
    """Return the requests to every host, a line each."""
    seen = Counter((seen.request.host, seen.status) for seen in proxy.seen)
    return [
        f"{host}: {n} answers with status {status}" for (host, status), n in sorted(seen.items())
    ]


def addresses(section: Any) -> Iterator[str]:
    """Return all addresses in a section of the configuration."""
    if isinstance(section, str) and section.startswith("https://"):
        yield section
    elif isinstance(section, dict | list | tuple):
        for part in section.values() if isinstance(section, dict) else section:
            yield from addresses(part)


def unasked(proxy: Proxy) -> list[str]:
    """Return the requests of the full configuration that this run did not make."""
    path = ROOT / "config/config.yaml"
    settings = read(yaml.safe_load(path.read_text()), [path])
    asked = {seen.request.url for seen in proxy.seen}
    found = [url for url in addresses(asdict(settings.sources)) if url not in asked]
    endpoints = read_endpoints(ROOT / "resources/endpoints.tsv")
    for source in (settings.sources.wikidata, settings.sources.dbpedia):
        url = endpoints[source.endpoint].url
        found += [] if url in asked else [url]
    archives = [a for name in RELEASED for a in getattr(settings.sources, name).archives]
    trees = read_lock_file(ROOT / settings.sources.lock_file)
    used = {tree.name for a in archives if (tree := find_tree(trees, a.tree, a.url))}
    found += [f"the lock file's {name}" for name in trees if name not in used]
    made = {path.parent.name for path in DATA.rglob("meta.json")}
    names = {name.split("@")[0].split(".")[0] for name in made}
    for query in sorted((ROOT / "resources/queries").rglob("*.rq")):
        if query.stem not in names | LOCAL_QUERIES:
            found.append(str(query.relative_to(ROOT)))
    return found


def main(arguments: list[str]) -> int:
    """Run the rebuild; return Snakemake's exit code, or 1 if services were not used as expected."""
    options = argparse.ArgumentParser(allow_abbrev=False)
    options.add_argument("--keep", action="store_true")
    options.add_argument("--cores", default="2")
    own, rest = options.parse_known_args(arguments)
    if not own.keep:
        for folder in (DATA, RESULTS):
            shutil.rmtree(folder, ignore_errors=True)
    DATA.mkdir(parents=True, exist_ok=True)
    data, started = data_folder(), time.monotonic()
    models.make(data, DATA / "models")
    with world(data, DATA / ".world") as proxy:
        print(f"the world is up after {time.monotonic() - started:.0f} s", flush=True)
        command = [
            sys.executable, "-m", "snakemake", "--cores", own.cores, "--configfile", CONFIG, *rest,
        ]  # fmt: skip
        done = subprocess.run(command, env=os.environ | proxy.environment)
        print("\n".join(requests_by_host(proxy)))
        print(f"{time.monotonic() - started:.0f} s in all")
        missing = [] if own.keep or rest else unasked(proxy)
        if proxy.unknown or missing:
            print(f"unknown hosts: {proxy.unknown}; not asked for: {missing}", file=sys.stderr)
    command = [sys.executable, "-m", "kgprobe.cli", "verify", CONFIG]
    wrong = 0 if rest else subprocess.run(command).returncode
    return done.returncode or wrong or int(bool(proxy.unknown or missing))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
