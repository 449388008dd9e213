import sys
from functools import partial
from pathlib import Path

from kgprobe.http import user_agent
from kgprobe.job import job, log
from kgprobe.sources.dumps.archives import fetch
from kgprobe.sources.dumps.download import Bounds, download, place
from kgprobe.sources.dumps.lock_file import Tree

with job(snakemake) as run:
    asked = run.params
    source = run.config["sources"][asked.name]
    archive, data = source["archives"][asked.number], Path(run.config["data"])
    bounds = Bounds.of(run.config["sources"]["downloads"], archive["max_bytes"])
    kept, agent = place(data, asked.url), user_agent(asked.url, run.config["contact"])
    get = partial(download, asked.url, kept, agent=agent, sums=archive["sums"], bounds=bounds)
    tree = Tree(**asked.tree) if asked.tree else None
    folder = Path(source["folder"])
    taken = fetch(get, asked.url, kept, folder, asked.parts, tree, cut=asked.cut)
    log.info("%s: %s", asked.url, taken.describe(tree))
    if taken.missing or taken.unpinned:
        print(f"{asked.url}: {taken.describe(tree)}", file=sys.stderr)
    run.note(checked=len(taken.checked), unpinned=taken.unpinned, missing=taken.missing)
