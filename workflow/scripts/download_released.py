import sys
from pathlib import Path

from kgprobe.http import user_agent
from kgprobe.job import job, log
from kgprobe.sources.dumps.archives import set_aside, unpack
from kgprobe.sources.dumps.download import Bounds, download, place
from kgprobe.sources.dumps.lock_file import Tree

with job(snakemake) as run:
    params = run.params
    source = run.config["sources"][params.name]
    archive, data = source["archives"][params.number], Path(run.config["data"])
    bounds = Bounds.of(run.config["sources"]["downloads"], archive["max_bytes"])
    kept, agent = place(data, params.url), user_agent(params.url, run.config["contact"])
    download(params.url, kept, agent=agent, sums=archive["sums"], bounds=bounds)
    tree = Tree(**params.tree) if params.tree else None
    folder = Path(source["folder"])
    with set_aside(kept):
        contents = unpack(kept, folder, params.parts, tree, url=params.url, cut=params.cut)
    log.info("%s: %s", params.url, contents.describe(tree))
    if contents.missing or contents.unpinned:
        print(f"{params.url}: {contents.describe(tree)}", file=sys.stderr)
    run.note(checked=len(contents.checked), unpinned=contents.unpinned, missing=contents.missing)
