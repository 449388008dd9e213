"""Where paper and released code of OntoProbe disagree: named switches, three modes that set all.

Source: Wu et al. 2023, the released code at cc95300, and the table of ontoprobe.md, section 9.
"""

from collections.abc import Mapping
from dataclasses import dataclass

MODES = ("default", "paper", "released")


@dataclass(frozen=True)
class Switch:
    """One point: its value in each mode, all legal values, its number in the list of points.

    `assumed` says that the paper is silent, so that its value is our reading. Point 0 stands for
    switches outside of the numbered list.
    """

    point: int
    paper: str
    released: str
    default: str
    legal: tuple[str, ...]
    assumed: bool = False


def _switch(point: int, paper: str, released: str, default: str, legal: str = "") -> Switch:
    """A leading "?" marks a value that the paper does not state."""
    own = paper.lstrip("?")
    values = tuple(dict.fromkeys([own, released, default, *legal.split()]))
    return Switch(point, own, released, default, values, paper.startswith("?"))


SWITCHES: dict[str, Switch] = {
    "tp_rows": _switch(1, "?all", "all", "distinct"),
    "properties": _switch(2, "50", "52", "as_they_are"),
    "instances_per_class": _switch(2, "20", "as_they_are", "as_they_are"),
    "item_limit": _switch(3, "none", "500", "none"),
    "split": _switch(4, "10/10", "10/10", "10/10"),
    "sco_m2": _switch(5, "superclass", "class", "superclass"),
    "wording": _switch(6, "paper", "released", "repaired"),
    "upper_first": _switch(7, "keep_rest", "lower_rest", "keep_rest"),
    "candidate_space": _switch(8, "?none", "none", "auto"),
    "recall": _switch(9, "?hit", "hit", "hit", "share"),
    "ties": _switch(10, "?mean_rank", "index_order", "expectation"),
    "select": _switch(11, "?oracle", "oracle", "dev"),
    "soft_init": _switch(12, "random", "words", "random"),
    "warmup": _switch(13, "?20", "0", "0"),
    "nll_gold": _switch(14, "sampled", "every", "every"),
    "dev_scores": _switch(15, "?log_probabilities", "logits", "log_probabilities"),
    "dev_metric": _switch(15, "?MRRa", "MRRa", "MRRa", "MRR"),
    "pseudoword_slots": _switch(16, "all", "pattern_rules", "all"),
    "pseudoword_centre": _switch(16, "mask", "tokenizer_default", "mask"),
    "alpha": _switch(16, "0.5", "0.5", "0.5"),
    "pseudoword_pairs": _switch(17, "10", "1", "10"),
    "rdfs11_text": _switch(18, "?superclass", "rdfs9", "superclass"),
    "premise": _switch(19, "halves", "halves_dropped", "halves", "threshold"),
    "premise_words": _switch(20, "pseudowords", "random_tokens", "pseudowords"),
    "conj_train": _switch(21, "?memorising", "test_rows", "memorising"),
    "missing_candidate": _switch(22, "?append", "skip", "append"),
    "mc_split": _switch(23, "shipped", "shipped", "own"),
    "average": _switch(24, "?rows", "rows", "weighted"),
    "seed": _switch(25, "?0", "none", "0"),
    "max_length": _switch(0, "?none", "padded", "none"),
    "article": _switch(0, "?always_a", "always_a", "by_letter"),
    "negatives": _switch(0, "?released", "released", "no_gold"),
    "softmax_rows": _switch(0, "?vocabulary", "all", "vocabulary"),
    "labels": _switch(0, "?ascii_drop", "ascii_drop", "unicode"),
    "patterns": _switch(0, "?released", "released", "released", "corrected"),
    "premise_order": _switch(0, "P2_P1", "P1_P2", "P1_P2"),
    "soft_implies": _switch(0, "?left_out", "kept", "left_out"),
    "unknown_candidates": _switch(0, "?keep", "keep", "keep", "leave_out"),
}


def resolve(mode: str, overrides: Mapping[str, str] | None = None) -> dict[str, str]:
    """The value of every switch in `mode`, single ones replaced by `overrides`.

    Raises ValueError for an unknown mode, switch or value, with the legal ones.
    """
    if mode not in MODES:
        raise ValueError(f"ontoprobe.mode: {mode!r}; legal: {', '.join(MODES)}")
    values = {key: str(getattr(switch, mode)) for key, switch in SWITCHES.items()}
    for key, value in (overrides or {}).items():
        if key not in SWITCHES:
            raise ValueError(f"ontoprobe.switches: unknown {key!r}; legal: {', '.join(SWITCHES)}")
        legal = SWITCHES[key].legal
        if not isinstance(value, str) or (value not in legal and not _open(key, value)):
            raise ValueError(f"ontoprobe.switches.{key}: {value!r}; legal: {', '.join(legal)}")
        values[key] = value
    return values


def assumed(mode: str) -> list[str]:
    """Switches whose value in this mode the paper does not state."""
    return [key for key, switch in SWITCHES.items() if mode == "paper" and switch.assumed]


def changed(values: Mapping[str, str]) -> dict[str, str]:
    """The switches that are not at their default, for captions."""
    return {k: v for k, v in values.items() if v != SWITCHES[k].default}


def _open(key: str, value: str) -> bool:
    """Whether a switch of numbers takes this number."""
    try:
        return key in ("alpha", "pseudoword_pairs", "item_limit", "seed") and float(value) >= 0
    except ValueError:
        return False
