"""From benchmark frames to rank ranges of large candidate sets: one job per model, all tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch

from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.scoring import cloze
from kgprobe.probes.scoring.gap_text import Question, questions
from kgprobe.schema import RANKS, TOPS

UNKNOWN = ("keep", "leave_out")


@dataclass(frozen=True)
class Kept:
    """The options of a set that are ranked, their places in the whole set, and those left out."""

    labels: list[str]
    places: list[int]
    left_out: list[str]


def rank_frame(
    spec: ModelSpec,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    progress: Callable[..., Any],
    *,
    space: str = "auto",
    unknown: str = "keep",
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """RANKS and TOPS of a model in all configurations, and the record of how they were made.

    A candidate without tokens is left out of its set, under `unknown` leave_out one with an unknown
    token, too; questions whose gold is left out are not ranked. All are named in the record. Raises
    ValueError for a kind of model without a gap to fill.
    """
    if spec.kind not in ("masked", "seq2seq"):
        raise ValueError(
            f"{spec.model}: cloze ranking needs a mask token or a sentinel, a {spec.kind} model "
            "has none; score its options as sentences (method sentence)"
        )
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    loaded = load_model(spec)
    kept = rankable(loaded, labels_of(candidates), unknown)
    asked, missing = _asked(items, prompts, kept)
    bar = progress(total=len(asked), desc=spec.model, unit="prompt")
    found = cloze.rank(
        loaded, asked, {n: k.labels for n, k in kept.items()}, space=space, progress=bar.update
    )
    bar.close()
    record = {
        **found.record,
        "prompts": len(asked),
        "candidates_left_out": {n: k.left_out for n, k in kept.items() if k.left_out},
        "items_without_gold": missing,
    }
    names = dict(items.select("item", "candidates").rows())
    ranks = _placed(found.ranks, "gold", names, kept, RANKS.columns)
    return ranks, _placed(found.top, "candidate", names, kept, TOPS.columns), record


def labels_of(candidates: pl.DataFrame) -> dict[str, list[str]]:
    """CANDIDATES as labels per set, in the order of their index."""
    found: dict[str, list[str]] = {}
    for name, label in candidates.sort("set", "index").select("set", "label").rows():
        found.setdefault(name, []).append(label)
    return found


def rankable(
    loaded: Loaded, options: Mapping[str, Sequence[str]], unknown: str = "keep"
) -> dict[str, Kept]:
    """The options of every set that the model's tokenizer can spell."""
    if unknown not in UNKNOWN:
        raise ValueError(f"unknown_candidates {unknown!r}; legal: {', '.join(UNKNOWN)}")
    found = {}
    mark = loaded.tokenizer.unk_token_id
    for name, labels in options.items():
        coded = loaded.tokenizer(list(labels), add_special_tokens=False)["input_ids"]
        out = [
            not ids or (unknown == "leave_out" and mark is not None and mark in ids)
            for ids in coded
        ]
        found[name] = Kept(
            [label for label, gone in zip(labels, out, strict=True) if not gone],
            [place for place, gone in enumerate(out) if not gone],
            [label for label, gone in zip(labels, out, strict=True) if gone],
        )
    return found


def _asked(
    items: pl.DataFrame, prompts: pl.DataFrame, kept: Mapping[str, Kept]
) -> tuple[list[Question], list[str]]:
    """Every item in every template of its relation, and the items whose golds are all left out."""
    new = {n: {old: place for place, old in enumerate(k.places)} for n, k in kept.items()}
    rows, missing = [], []
    columns = ("item", "relation", "subject", "candidates", "answers")
    for item, relation, subject, name, answers in (
        items.sort("relation", "row", "item").select(columns).rows()
    ):
        golds = tuple(new[name][a] for a in answers if a in new[name])
        if golds:
            rows.append((item, relation, subject, name, golds))
        else:
            missing.append(item)
    found: dict[str, list[tuple[int, str]]] = {}
    for relation, index, text in (
        prompts.sort("relation", "index").select("relation", "index", "text").rows()
    ):
        found.setdefault(relation, []).append((index, text))
    return list(questions(rows, dict(found))), missing


def _placed(
    columns: Mapping[str, Any],
    name: str,
    sets: Mapping[str, str],
    kept: Mapping[str, Kept],
    dtypes: Mapping[str, Any],
) -> pl.DataFrame:
    """The columns as a frame, with the candidate's place in the whole set."""
    frame = pl.DataFrame(
        {k: pl.Series(k, list(v) if v.dtype == object else v) for k, v in columns.items()}
    )
    if any(k.left_out for k in kept.values()):
        pairs = zip(frame["item"].to_list(), frame[name].to_list(), strict=True)
        places = [kept[sets[item]].places[place] for item, place in pairs]
        frame = frame.with_columns(pl.Series(name, places, dtype=pl.Int32))
    return frame.select([pl.col(k).cast(d) for k, d in dtypes.items()])
