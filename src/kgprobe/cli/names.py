"""Names of models, benchmarks, methods, prompts and runs: what a shell completes while one types.

`kgprobe --install-completion` sets it up. A key that is pressed waits for this, so nothing here
imports torch, and models and runs come without polars. Where a table or a folder cannot be read
nothing is offered: the command itself says what is wrong with it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer


def rows() -> list[dict[str, str]]:
    """The table of models, the working folder's own first. Raises TableError."""
    from kgprobe import experiments

    legal = experiments.read_schema(experiments.located("workflow/schemas/models.schema.json"))
    return experiments.read_rows(experiments.located("config/models.tsv"), legal)


def folders() -> list[Path]:
    """The folders of runs below results/ of the working folder."""
    return sorted(path for path in Path("results").glob("*") if path.is_dir())


def models() -> list[str]:
    return _offered(lambda: [row["model"] for row in rows()])


def benchmarks() -> list[str]:
    from kgprobe.questions import packaged

    return _offered(packaged)


def runs() -> list[str]:
    return [path.name for path in folders() if any(path.glob("tables/*.parquet"))]


def methods() -> list[str]:
    """Methods of `kgprobe probe`: sentence, and what each kind of model has of it."""
    from kgprobe.questions import METHODS

    return list(METHODS)


def prompts(ctx: typer.Context) -> list[str]:
    """All templates, and the index of each that the benchmark of `--on` has."""
    return _offered(lambda: _prompts(ctx.params.get("on")))


def _prompts(name: Any) -> list[str]:
    from kgprobe.questions import OWN, benchmark

    indices = benchmark(name).prompts["index"].unique().sort().to_list() if name else []
    return [OWN, *map(str, indices)]


def items(ctx: typer.Context) -> list[str]:
    """The items of the benchmark that was typed before."""
    return _offered(lambda: _items(ctx.params.get("benchmark")))


def _items(name: Any) -> list[str]:
    from kgprobe.questions import benchmark

    return benchmark(name).items["item"].sort().to_list() if name else []


def forms() -> list[str]:
    """What questions are exported as."""
    from kgprobe.tables.exports import formats

    return list(formats.NAMES)


def among(*names: str) -> Callable[[], list[str]]:
    """Some words that are always the same."""
    return lambda: list(names)


def _offered(source: Callable[[], Sequence[str]]) -> list[str]:
    try:
        return list(source())
    except (ValueError, OSError):
        return []
