"""The instances of all classes, class by class; of a large class the part with the lowest hashes.

A class of millions cannot be pulled, and a sample of it is all that is needed. The part is the same
for everybody and for every seed. It is consistent, too: a class has no more instances than those
above it, so that what is in the part of a class is in the part of each class below it.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from kgprobe.job import log, progress
from kgprobe.sources.sparql.canonical import terms
from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.paging import PARTS, read_query
from kgprobe.sources.sparql.pull import pull


def pull_instances(
    counts: pl.DataFrame,
    endpoint: Endpoint,
    folder: Path,
    query: str | Path,
    most: int,
    *,
    languages: Sequence[str],
    contact: str = "",
) -> tuple[pl.DataFrame, dict[str, float]]:
    """The instances of every class of `counts` (class, n), about `most` of each at most: rows as
    `canonical.terms` has them, and class -> proportion of those that came in part.

    `query` is the path of instances.rq. Raises SourceError; what is finished stays in the folder.
    """
    frames = [terms([], read_query(query).variables)]
    in_part = {}
    rows = counts.select("class", pl.col("n").cast(pl.Int64)).sort("class").rows()
    for name, n in progress(rows, desc="classes", unit="class"):
        parts = PARTS if n <= most else max(1, PARTS * most // n)
        if parts < PARTS:
            in_part[name] = parts / PARTS
        given = endpoint, folder, {"class": name}
        snapshot = pull(query, *given, languages=languages, contact=contact, parts=parts)
        frames.append(snapshot.terms())
    if in_part:
        log.info("%d classes in part, such as %s", len(in_part), next(iter(in_part)))
    return pl.concat(frames), in_part
