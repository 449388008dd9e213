"""The papers' printed figures (resources/published), read and matched to our probes."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from kgprobe.experiments import VARIANTS_OF_KIND
from kgprobe.tables.answers import Probe
from kgprobe.tables.published import read_tsv

#: Items and templates of the complete released BEAR. A published figure is given next to ours only
#: if ours covers all of it; a figure of other items is no reference.
COMPLETE_ITEMS, COMPLETE_TEMPLATES = 7731, [0, 1, 2]
LEADERBOARD = {
    "model": pl.String,
    "kind": pl.String,
    "parameters": pl.Int64,
    "year": pl.Int32,
    "score": pl.Float64,
    "sem": pl.Float64,
    "listed": pl.String,
    # "added": the model's tokenizer prepends a BOS by default, "none": it adds none
    "bos": pl.String,
}
REMEASURED = {"model": pl.String, "lm_pub_quiz": pl.Float64, "lm_eval": pl.Float64}

#: sources of the two tables
LEADERBOARD_SOURCE = "lm-pub-quiz leaderboard, 2025-03-27"
REMEASURED_SOURCE = "lm-evaluation-harness, pull request 3496"

#: our BOS policy -> the tokenizer defaults under which the leaderboard's score is comparable
ALIKE = {"forced": ("added",), "default": ("added", "none"), "none": ("none",)}


@dataclass(frozen=True)
class Published:
    """BEAR's published scores in per cent: the leaderboard, and the later measurement."""

    leaderboard: pl.DataFrame
    remeasured: pl.DataFrame

    def score(self, probe: Probe, items: int, templates: list[int]) -> tuple[float, str] | None:
        """Return the published score of the same weights on the same items and its source, or None.

        Only under the BOS policy of the figure (docs/papers/bear.md, Published scores): the
        leaderboard used the tokenizers' defaults for causal models, the later measurement prepended
        a BOS to all of them, so both of OPT's figures have one. Masked models were scored by the
        default pseudo-log-likelihood; no other variant is compared with a figure.
        """
        method, _, variant = probe.method.partition("-")
        is_other = method != "sentence" or variant in VARIANTS_OF_KIND["masked"][1:]
        if not probe.published or is_other:
            return None
        if not self.complete(probe.benchmark, items) or templates != COMPLETE_TEMPLATES:
            return None
        known = {row["model"]: row for row in self.leaderboard.iter_rows(named=True)}
        if probe.published not in known:
            legal = ", ".join(sorted(known))
            raise ValueError(
                f"no published score of {probe.published!r} (models.tsv); valid: {legal}"
            )
        figure = known[probe.published]
        later = self.remeasured.filter(model=probe.published)["lm_pub_quiz"]
        if probe.kind == "causal" and probe.bos == "forced" and len(later):
            return later[0], REMEASURED_SOURCE
        is_alike = probe.kind != "causal" or figure["bos"] in ALIKE[probe.bos]
        return (figure["score"], LEADERBOARD_SOURCE) if is_alike else None

    def baseline(self, benchmark: str, items: int) -> float | None:
        """Return the published random baseline if the set is the complete released one."""
        if not self.complete(benchmark, items):
            return None
        rows = self.leaderboard.filter(pl.col("kind") == "baseline")
        return float(rows["score"][0]) if rows.height else None

    def complete(self, benchmark: str, items: int) -> bool:
        """Return whether `items` is the number of items of the complete released set."""
        return benchmark == "bear_released" and items == COMPLETE_ITEMS

    def models(self) -> pl.DataFrame:
        """Return the leaderboard rows of models (without the baseline)."""
        return self.leaderboard.filter(pl.col("kind") != "baseline")


def read(folder: str | Path) -> Published:
    """Read `bear_leaderboard.tsv` and `bear_remeasured.tsv` in the folder of published figures."""
    folder = Path(folder)
    return Published(
        read_tsv(folder / "bear_leaderboard.tsv", LEADERBOARD),
        read_tsv(folder / "bear_remeasured.tsv", REMEASURED),
    )
