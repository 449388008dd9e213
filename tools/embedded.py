"""Write the benchmarks of the embedded knowledge graph that the package contains:
resources/benchmarks.

    python -m tools.embedded write    what `make run` constructs, without a run
    python -m tools.embedded check    exit 1 if a file has other rows

They are built from the rendered dump of the embedded graph (resources/world/dumps).
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from kgprobe import config, schema
from kgprobe.benchmarks.bear import build
from kgprobe.benchmarks.bear.choice import rejected_subjects
from kgprobe.experiments import manual_templates, read_table
from kgprobe.files import ROOT
from kgprobe.settings.benchmarks import Bear
from kgprobe.sources.dumps import facts

ORIGIN = "world"
#: the configuration of `make run`
CONFIGS = ("config/config.yaml", "config/embedded.yaml")
CONTRACTS = {
    "items": schema.ITEMS,
    "candidates": schema.CANDIDATES,
    "prompts": schema.PROMPTS,
    "relations": build.RELATIONS,
}


def statements(resources: Path) -> pl.DataFrame:
    """Return STATEMENTS of the embedded graph in `resources`, read as a dump: the same as a
    pull's."""
    dump = resources / "world" / "dumps" / "wikidata.json.bz2"
    properties = [row["id"] for row in read_table(resources / "world" / "properties.tsv")]
    with tempfile.TemporaryDirectory() as folder:
        return facts.read([dump], "json", properties, Path(folder) / "parts").statements


def built(resources: Path, construction: Bear) -> build.NestedSets:
    """Build the benchmarks of the embedded graph in `resources`."""
    tables = resources / "templates"
    return build.build(
        statements(resources),
        read_table(tables / "bear_relations.tsv"),
        manual_templates(read_table(tables / "templates.tsv")),
        {row["id"]: row["form"] for row in read_table(tables / "bear_labels.tsv")},
        construction,
        ORIGIN,
        rejected_subjects(read_table(tables / "bear_review.tsv"), "bear_review.tsv"),
    )


def frames(root: Path = ROOT) -> Iterator[tuple[Path, schema.Contract, pl.DataFrame]]:
    """Yield (path below resources/benchmarks, contract, rows) of every file."""
    resources = root / "resources"
    found = built(resources, config.load([root / path for path in CONFIGS]).world)
    relations = read_table(resources / "templates" / "bear_relations.tsv")
    for size, sets in (("big", found.big), ("lite", found.lite)):
        own = {"items": sets.items, "candidates": sets.candidates, "prompts": sets.prompts}
        own["relations"] = build.relations_of(sets, relations)
        for name, frame in own.items():
            yield Path(f"{ORIGIN}_{size}") / f"{name}.parquet", CONTRACTS[name], frame


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Run `write` or `check`; return the exit status."""
    if arguments not in (["write"], ["check"]):
        print("usage: python -m tools.embedded write|check", file=sys.stderr)
        return 2
    stale = []
    for path, contract, frame in frames(root):
        target = root / "resources" / "benchmarks" / path
        if arguments == ["write"]:
            schema.write(frame, contract, target, {"source": "resources/world"})
        elif not _is_same(frame, contract, target):
            stale.append(target)
    for target in stale:
        print(f"{target} is not what resources/world makes: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


def _is_same(frame: pl.DataFrame, contract: schema.Contract, path: Path) -> bool:
    """Return whether a file has the rows of `frame`."""
    wanted = frame.sort(list(contract.key)).select(list(contract.columns))
    return path.is_file() and schema.read(path, contract).equals(wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
