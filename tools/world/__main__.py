"""The files of the embedded graph that the workflow reads, rendered from its tables.

python -m tools.world check [FOLDER]    counts, or every error of a table; exit 1 for a
                                        rendered file that differs from the tables
python -m tools.world write [FOLDER]    render them again
"""

import bz2
import gzip
import io
import sys
import zipfile
from pathlib import Path

from kgprobe.files import atomic
from tools.world import dumps, rdf, trex
from tools.world.build import World, WorldError, load, summary

FOLDER = Path(__file__).parents[2] / "resources" / "world"


def rendered(world: World) -> dict[str, bytes]:
    """Return path below the folder -> content of the file, uncompressed."""
    wikidata = rdf.render_wikidata(world)
    return {
        "wikidata.nt.gz": wikidata.encode(),
        "dbpedia.nt.gz": rdf.render_dbpedia(world).encode(),
        "trex.zip": trex.dump_trex(trex.render_trex(world)),
        "dumps/wikidata.json.bz2": dumps.render_json(world),
        "dumps/wikidata.nt.bz2": dumps.render_truthy(wikidata),
        "dumps/wikidata_names.nt.bz2": dumps.render_names(wikidata),
    }


def packed(name: str, data: bytes) -> bytes:
    """Return the compressed bytes of a file, without a time stamp."""
    if name.endswith(".zip"):
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            member = zipfile.ZipInfo(trex.FILE_NAME)  # of 1980
            archive.writestr(member, data, zipfile.ZIP_DEFLATED, 9)
        return zipped.getvalue()
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else bz2.compress(data)


def unpacked(name: str, data: bytes) -> bytes:
    """Return a file's content: the compressed bytes may differ between releases of a compressor."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(trex.FILE_NAME)
    return gzip.decompress(data) if name.endswith(".gz") else bz2.decompress(data)


def main(arguments: list[str]) -> int:
    """Run `check` or `write`; return the exit status."""
    if not arguments or arguments[0] not in ("check", "write") or len(arguments) > 2:
        print("usage: python -m tools.world check|write [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[1]) if len(arguments) == 2 else FOLDER
    try:
        world = load(folder)
    except WorldError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        print(f"{len(error.problems)} problems", file=sys.stderr)
        return 1
    print(summary(world))
    stale = []
    for name, data in rendered(world).items():
        path = folder / name
        if path.is_file() and unpacked(name, path.read_bytes()) == data:
            continue
        stale.append(path)
        if arguments[0] == "write":
            with atomic(path) as temporary:
                temporary.write_bytes(packed(name, data))
    if arguments[0] == "write":
        return 0
    for path in stale:
        print(f"{path} is not what the tables say: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
