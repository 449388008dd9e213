"""Switches for all points where OntoProbe's paper and code disagree, and three modes of them.

Source: Wu et al. 2023, the released code at cc95300; docs/papers/ontoprobe.md, Decisions.
"""

import re
from collections.abc import Mapping
from dataclasses import Field, asdict, dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from kgprobe.experiments import hint
from kgprobe.settings.types import typed

MODES = ("default", "paper", "released")
#: regular expressions of numbers that are legal beside the listed values
NATURAL, COUNT = "[0-9]+", "0*[1-9][0-9]*"
RATE = r"(?=.*[1-9])([0-9]+\.?[0-9]*|\.[0-9]+)"


@dataclass(frozen=True)
class Switch:
    """One point of disagreement: its value in each mode, all legal values, and its number in the
    list of points (0: not listed). `stage` says what it affects: the questions, the models'
    answers, or the tables; `assumed` that the paper is silent, so its value is our assumption;
    `numbers` is a regular expression of further legal values."""

    point: int
    paper: str
    released: str
    default: str
    legal: tuple[str, ...]
    stage: str
    assumed: bool
    numbers: str

    def takes(self, value: object) -> bool:
        """Return whether a value is valid."""
        if not isinstance(value, str):
            return False
        return value in self.legal or bool(self.numbers and re.fullmatch(self.numbers, value))


Value = TypeVar("Value", bound=str)


def _stated(
    stage: str,
    point: int,
    paper: Value,
    released: Value,
    default: Value | None = None,
    numbers: str = "",
    assumed: bool = False,
) -> Value:
    """Declare a field of `Switches`; `default` if ours differs from the paper's value."""
    modes = {"paper": paper, "released": released, "default": default or paper}
    notes = {"stage": stage, "point": point, "numbers": numbers, "assumed": assumed}
    return field(default=default or paper, metadata={**modes, **notes})


#: a switch whose value the paper does not state
_silent = partial(_stated, assumed=True)


@dataclass(frozen=True)
class Switches:
    """The value of every switch, by default that of mode `default`."""

    tp_rows: Literal["all", "distinct"] = _silent("tables", 1, "all", "all", "distinct")
    properties: str = _stated("questions", 2, "50", "52", "as_they_are", numbers=COUNT)
    instances_per_class: str = _stated(
        "questions", 2, "20", "as_they_are", "as_they_are", numbers=COUNT)  # fmt: skip
    item_limit: str = _stated("questions", 3, "none", "500", numbers=COUNT)
    split: str = _stated("questions", 4, "10/10", "10/10", numbers=f"{COUNT}/{COUNT}")
    sco_m2: Literal["superclass", "class"] = _stated("questions", 5, "superclass", "class")
    phrasing: Literal["paper", "released", "repaired"] = _stated(
        "questions", 6, "paper", "released", "repaired")  # fmt: skip
    upper_first: Literal["keep_rest", "lower_rest"] = _stated(
        "questions", 7, "keep_rest", "lower_rest")  # fmt: skip
    candidate_space: Literal["none", "auto"] = _silent("answers", 8, "none", "none", "auto")
    recall: Literal["hit", "share"] = _silent("tables", 9, "hit", "hit")
    ties: Literal["mean_rank", "index_order", "expectation"] = _silent(
        "tables", 10, "mean_rank", "index_order", "expectation")  # fmt: skip
    select: Literal["oracle", "dev"] = _silent("tables", 11, "oracle", "oracle", "dev")
    soft_init: Literal["random", "words"] = _stated("answers", 12, "random", "words")
    warmup: str = _silent("answers", 13, "20", "0", "0", numbers=NATURAL)
    nll_gold: Literal["sampled", "every"] = _stated("answers", 14, "sampled", "every", "every")
    dev_scores: Literal["log_probabilities", "logits"] = _silent(
        "answers", 15, "log_probabilities", "logits")  # fmt: skip
    dev_metric: Literal["MRRa", "MRR"] = _silent("answers", 15, "MRRa", "MRRa")
    pseudoword_slots: Literal["all", "pattern_rules"] = _stated(
        "answers", 16, "all", "pattern_rules")  # fmt: skip
    pseudoword_center: Literal["mask", "tokenizer_default"] = _stated(
        "answers", 16, "mask", "tokenizer_default")  # fmt: skip
    alpha: str = _stated("answers", 16, "0.5", "0.5", numbers=RATE)
    pseudoword_pairs: str = _stated("answers", 17, "10", "1", numbers=COUNT)
    rdfs11_text: Literal["superclass", "rdfs9"] = _silent("questions", 18, "superclass", "rdfs9")
    premise: Literal["halves", "halves_dropped", "threshold"] = _stated(
        "tables", 19, "halves", "halves_dropped")  # fmt: skip
    premise_test: Literal["own", "p1"] = _silent("questions", 19, "own", "p1")
    premise_words: Literal["pseudowords", "random_tokens"] = _stated(
        "answers", 20, "pseudowords", "random_tokens")  # fmt: skip
    conj_train: Literal["memorizing", "test_rows"] = _silent(
        "answers", 21, "memorizing", "test_rows")  # fmt: skip
    missing_candidate: Literal["append", "skip"] = _silent("answers", 22, "append", "skip")
    mc_split: Literal["shipped", "own"] = _stated("tables", 23, "shipped", "shipped", "own")
    average: Literal["rows", "weighted"] = _silent("tables", 24, "rows", "rows", "weighted")
    seed: str = _silent("answers", 25, "0", "none", numbers=NATURAL)
    max_length: Literal["none", "padded"] = _silent("answers", 0, "none", "padded")
    article: Literal["always_a", "by_letter"] = _silent(
        "questions", 0, "always_a", "always_a", "by_letter")  # fmt: skip
    negatives: Literal["released", "clean"] = _silent(
        "questions", 0, "released", "released", "clean")  # fmt: skip
    mc_phrasing: Literal["released", "default"] = _silent(
        "questions", 0, "released", "released", "default")  # fmt: skip
    softmax_rows: Literal["vocabulary", "all"] = _silent("answers", 0, "vocabulary", "all")
    labels: Literal["ascii_drop", "unicode"] = _silent(
        "questions", 0, "ascii_drop", "ascii_drop", "unicode")  # fmt: skip
    patterns: Literal["released", "corrected"] = _silent("questions", 0, "released", "released")
    premise_order: Literal["P2_P1", "P1_P2"] = _stated("answers", 0, "P2_P1", "P1_P2", "P1_P2")
    soft_implies: Literal["left_out", "kept"] = _silent("answers", 0, "left_out", "kept")
    soft_stop: Literal["kept", "left_out"] = _silent("questions", 0, "kept", "left_out")
    unknown_candidates: Literal["keep", "leave_out"] = _silent("answers", 0, "keep", "keep")

    @property
    def parts(self) -> tuple[int, int]:
        """Numbers of (train rows, dev rows) of every task."""
        train, dev = self.split.split("/")
        return int(train), int(dev)

    @property
    def first_seed(self) -> int:
        """The seed; 0 if the released code sets none."""
        return int(self.seed) if self.seed.isdigit() else 0


def _switch(one: Field[Any]) -> Switch:
    """Return a field's switch; legal are its values in the modes, then the others of its type."""
    values = [one.metadata[mode] for mode in ("paper", "released", "default")]
    return Switch(legal=tuple(dict.fromkeys([*values, *get_args(one.type)])), **one.metadata)


SWITCHES = {one.name: _switch(one) for one in fields(Switches)}


def resolve(mode: str, overrides: Mapping[str, str] | None = None) -> Switches:
    """Return the value of every switch in `mode`, with single values replaced by `overrides`."""
    if mode not in MODES:
        raise ValueError(f"ontoprobe.mode: {mode!r}; valid: {', '.join(MODES)}")
    values = {key: getattr(switch, mode) for key, switch in SWITCHES.items()}
    for key, value in (overrides or {}).items():
        if key not in SWITCHES:
            text = f"unknown {key!r}{hint(key, SWITCHES)}; valid: {', '.join(SWITCHES)}"
            raise ValueError(f"ontoprobe.switches: {text}")
        if not SWITCHES[key].takes(value):
            legal = ", ".join(SWITCHES[key].legal)
            raise ValueError(f"ontoprobe.switches.{key}: {value!r}; valid: {legal}")
        values[key] = value
    return typed(Switches, values)


def changed(values: Switches) -> dict[str, str]:
    """Return the switches that are not at their default, for captions."""
    return {k: v for k, v in asdict(values).items() if v != SWITCHES[k].default}
