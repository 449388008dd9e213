"""Report the data that a run could not get, and how to get it, at the end of the run."""

from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.contracts import WHOLE

FEW = 5


def describe_missing(results: str | Path) -> list[str]:
    """Return lines on the relations in a run's folder that were not obtained completely."""
    lines = []
    for path in sorted(Path(results).glob("sources/*/coverage.parquet")):
        coverage = schema.read(path, schema.COVERAGE).filter(~pl.col("way").is_in(WHOLE))
        for (way,), rows in sorted(coverage.group_by("way")):
            named = ", ".join(rows["relation"].head(FEW)) + (" ..." if rows.height > FEW else "")
            came = "are missing" if way == "left out" else f"came in another way ({way})"
            lines.append(f"{path.parent.name}: {rows.height} relations {came}: {named}")
            lines.append(f"  {rows['relation'][0]}: {rows['reason'][0]}")
        if coverage.filter(pl.col("way") == "left out").height:
            lines.append(
                "  to include them: name a dump of Wikidata in sources.dumps and in "
                f"sources.wikidata.dump, remove {path}, and run snakemake again"
            )
    return lines
