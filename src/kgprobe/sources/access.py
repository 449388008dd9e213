"""Where a source comes from: a public endpoint, or files served by a local one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.sources.endpoint import local_endpoint
from kgprobe.sources.policy import Endpoint, read_endpoints
from kgprobe.sources.snapshots import snapshot_name

ENDPOINTS = Path("resources/endpoints.tsv")


@contextmanager
def opened(
    source: str, settings: Mapping[str, Any], rdf: Sequence[str], data: str | Path
) -> Iterator[tuple[Endpoint, Path]]:
    """The endpoint of a source and the folder of its snapshot, while the body runs.

    `settings` are the source's keys of the config (access, endpoint, snapshot). Anything but `live`
    is served from the `rdf` files by a local endpoint, whose store is kept below `data`.
    """
    access = settings["access"]
    name = snapshot_name(access, settings["snapshot"], [str(path) for path in rdf])
    folder = Path(data) / source / name
    if access == "live":
        known = read_endpoints(ENDPOINTS)
        if settings["endpoint"] not in known:
            raise ValueError(
                f"config: sources.{source}.endpoint is {settings['endpoint']!r}; "
                f"{ENDPOINTS} has {', '.join(sorted(known))}"
            )
        yield known[settings["endpoint"]], folder
        return
    with local_endpoint(rdf, Path(data) / ".stores") as endpoint:
        yield endpoint, folder


def relations_of(properties: pl.DataFrame, wanted: Sequence[str] | None) -> list[str]:
    """Ids of the item-valued properties of a pull, in the order of their numbers.

    With `wanted` only those; each of them must be there, else ValueError names the missing ones.
    """
    items = properties.filter(pl.col("datatype").str.ends_with("#WikibaseItem"))
    found = {iri.rsplit("/", 1)[-1] for iri in items["property"].to_list()}
    if wanted is not None:
        if missing := sorted(set(wanted) - found):
            raise ValueError(
                f"{', '.join(missing)}: no item-valued property of the source; it has {len(found)}"
            )
        found &= set(wanted)
    return sorted(found, key=lambda relation: int(relation[1:]))
