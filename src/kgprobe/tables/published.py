"""The papers' printed figures (resources/published), read and matched to our probes."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgprobe.tables.answers import Probe

#: Items and templates of the complete released BEAR. A published figure stands beside ours only
#: when ours covers all of it; a figure of other items is no reference.
COMPLETE_ITEMS, COMPLETE_TEMPLATES = 7731, [0, 1, 2]
LEADERBOARD = {
    "model": pl.String,
    "kind": pl.String,
    "parameters": pl.Int64,
    "year": pl.Int32,
    "score": pl.Float64,
    "sem": pl.Float64,
    "listed": pl.String,
    # "added": the model's tokenizer puts a BOS in front by itself, "none": it adds none
    "bos": pl.String,
}
REMEASURED = {"model": pl.String, "lm_pub_quiz": pl.Float64, "lm_eval": pl.Float64}

#: BOS policy of ours -> what a tokenizer does by itself where the leaderboard was measured alike.
ALIKE = {"forced": ("added",), "default": ("added", "none"), "none": ("none",)}


@dataclass(frozen=True)
class Published:
    """BEAR's published scores in per cent: the leaderboard, and the later measurement."""

    leaderboard: pl.DataFrame
    remeasured: pl.DataFrame

    def score(self, probe: Probe, items: int, templates: list[int]) -> float | None:
        """The published score of the same weights on the same items, or None.

        Under the BOS policy of the figure alone (bear.md, section 7): the leaderboard's causal
        models stood behind what their tokenizers add by themselves, the later measurement put a
        BOS in front of all of them. So OPT's figures of both have one.
        """
        if not probe.published or probe.method.split("-")[0] != "sentence":
            return None
        if not self.complete(probe.benchmark, items) or templates != COMPLETE_TEMPLATES:
            return None
        printed = _value(self.leaderboard, probe.published, "score", required=True)
        if probe.kind != "causal":
            return printed
        own = self.leaderboard.filter(pl.col("model") == probe.published)["bos"][0]
        forced = probe.bos == "forced"
        later = _value(self.remeasured, probe.published, "lm_pub_quiz") if forced else None
        if later is not None:
            return later
        return printed if own in ALIKE[probe.bos] else None

    def baseline(self, benchmark: str, items: int) -> float | None:
        """The published random baseline where the set is the complete released one."""
        if not self.complete(benchmark, items):
            return None
        rows = self.leaderboard.filter(pl.col("kind") == "baseline")
        return float(rows["score"][0]) if rows.height else None

    def complete(self, benchmark: str, items: int) -> bool:
        """Whether `items` is the number of items of the whole released set."""
        return benchmark == "bear_released" and items == COMPLETE_ITEMS

    def models(self) -> pl.DataFrame:
        """Leaderboard rows of models (without the baseline)."""
        return self.leaderboard.filter(pl.col("kind") != "baseline")


def read(folder: str | Path) -> Published:
    """Read `bear_leaderboard.tsv` and `bear_remeasured.tsv` of the folder of published figures."""
    folder = Path(folder)
    return Published(
        read_tsv(folder / "bear_leaderboard.tsv", LEADERBOARD),
        read_tsv(folder / "bear_remeasured.tsv", REMEASURED),
    )


def read_tsv(path: str | Path, schema: dict[str, type[pl.DataType]] | None = None) -> pl.DataFrame:
    """A table of published figures; without a schema all cells are text, as printed.

    Raises ValueError when the file is missing or its columns are not those of `schema`.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such table of published figures")
    text = pl.read_csv(path, separator="\t", infer_schema=False, quote_char=None)
    if schema is None:
        return text
    if text.columns != list(schema):
        raise ValueError(f"{path}: columns {text.columns}, expected {list(schema)}")
    try:
        return text.cast(dict(schema))  # type: ignore[arg-type]
    except pl.exceptions.InvalidOperationError as error:
        raise ValueError(f"{path}: a cell is not a number: {error}") from error


def _value(frame: pl.DataFrame, model: str, column: str, required: bool = False) -> float | None:
    rows = frame.filter(pl.col("model") == model)
    if rows.height:
        return float(rows[column][0])
    if required:
        names = ", ".join(sorted(frame["model"].to_list()))
        raise ValueError(f"no published score of {model!r} (models.tsv); legal: {names}")
    return None
