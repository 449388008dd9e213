"""Shell completion of the names of models, benchmarks, methods, prompts and runs.

`kgprobe --install-completion` sets it up. Each key press waits for this module, so nothing here
imports torch, and models and runs do not import polars. If a table or folder cannot be read, no
completions are offered; the command itself reports the error.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

#: papers, each with a file of results in a run's folder
PAPERS = ("bear", "ontoprobe", "attributes", "autoprompt")


def rows() -> list[dict[str, str]]:
    """Read the table of models; one in the working folder takes precedence. Raises TableError."""
    from kgprobe import experiments

    legal = experiments.read_schema(experiments.located("workflow/schemas/models.schema.json"))
    return experiments.read_rows(experiments.located("config/models.tsv"), legal)


def folders() -> list[Path]:
    """Return the folders of runs in results/ of the working folder."""
    return sorted(path for path in Path("results").glob("*") if path.is_dir())


def models() -> list[str]:
    return _offered(lambda: [row["model"] for row in rows()])


def benchmarks() -> list[str]:
    from kgprobe.questions import packaged

    return _offered(packaged)


def runs() -> list[str]:
    return [path.name for path in folders() if has_numbers(path)]


def has_numbers(folder: Path) -> bool:
    """Return whether the folder of a run has results of a paper."""
    return any((folder / "tables" / f"{paper}.parquet").is_file() for paper in PAPERS)


def methods() -> list[str]:
    """List the methods of `kgprobe probe`: sentence and its variants."""
    from kgprobe.questions import METHODS

    return list(METHODS)


def prompts(ctx: typer.Context) -> list[str]:
    """List "templates" (all) and the template indices of the benchmark given by `--on`."""
    return _offered(lambda: _prompts(ctx.params.get("on")))


def _prompts(name: Any) -> list[str]:
    from kgprobe.questions import OWN, benchmark

    indices = benchmark(name).prompts["index"].unique().sort().to_list() if name else []
    return [OWN, *map(str, indices)]


def items(ctx: typer.Context) -> list[str]:
    """List the items of the benchmark typed before."""
    return _offered(lambda: _items(ctx.params.get("benchmark")))


def _items(name: Any) -> list[str]:
    from kgprobe.questions import benchmark

    return benchmark(name).items["item"].sort().to_list() if name else []


def forms() -> list[str]:
    """List the export formats."""
    from kgprobe.tables.exports import formats

    return list(formats.NAMES)


def among(*names: str) -> Callable[[], list[str]]:
    """Return a completion function for a fixed list of words."""
    return lambda: list(names)


def _offered(source: Callable[[], Sequence[str]]) -> list[str]:
    try:
        return list(source())
    except (ValueError, OSError):
        return []
