"""Where paper and released code of OntoProbe disagree: named switches, three modes that set all.

Source: Wu et al. 2023, the released code at cc95300, and the table of ontoprobe.md, section 9.
"""

from collections.abc import Mapping
from dataclasses import dataclass

MODES = ("default", "paper", "released")
STAGES = ("questions", "answers", "tables")


@dataclass(frozen=True)
class Switch:
    """One point: its value in each mode, all legal values, its number in the list of points.

    `stage` says what it changes: the questions, the models' answers, or how tables read them.
    `assumed` says that the paper is silent, so that its value is our reading. Point 0 stands for
    switches outside of the numbered list.
    """

    point: int
    paper: str
    released: str
    default: str
    legal: tuple[str, ...]
    stage: str
    assumed: bool = False


def _switch(
    stage: str, point: int, paper: str, released: str, default: str, legal: str = ""
) -> Switch:
    """A leading "?" marks a value that the paper does not state."""
    own = paper.lstrip("?")
    values = tuple(dict.fromkeys([own, released, default, *legal.split()]))
    return Switch(point, own, released, default, values, stage, paper.startswith("?"))


SWITCHES: dict[str, Switch] = {
    "tp_rows": _switch("tables", 1, "?all", "all", "distinct"),
    "properties": _switch("questions", 2, "50", "52", "as_they_are"),
    "instances_per_class": _switch("questions", 2, "20", "as_they_are", "as_they_are"),
    "item_limit": _switch("questions", 3, "none", "500", "none"),
    "split": _switch("questions", 4, "10/10", "10/10", "10/10"),
    "sco_m2": _switch("questions", 5, "superclass", "class", "superclass"),
    "wording": _switch("questions", 6, "paper", "released", "repaired"),
    "upper_first": _switch("questions", 7, "keep_rest", "lower_rest", "keep_rest"),
    "candidate_space": _switch("answers", 8, "?none", "none", "auto"),
    "recall": _switch("tables", 9, "?hit", "hit", "hit", "share"),
    "ties": _switch("tables", 10, "?mean_rank", "index_order", "expectation"),
    "select": _switch("tables", 11, "?oracle", "oracle", "dev"),
    "soft_init": _switch("answers", 12, "random", "words", "random"),
    "warmup": _switch("answers", 13, "?20", "0", "0"),
    "nll_gold": _switch("answers", 14, "sampled", "every", "every"),
    "dev_scores": _switch("answers", 15, "?log_probabilities", "logits", "log_probabilities"),
    "dev_metric": _switch("answers", 15, "?MRRa", "MRRa", "MRRa", "MRR"),
    "pseudoword_slots": _switch("answers", 16, "all", "pattern_rules", "all"),
    "pseudoword_centre": _switch("answers", 16, "mask", "tokenizer_default", "mask"),
    "alpha": _switch("answers", 16, "0.5", "0.5", "0.5"),
    "pseudoword_pairs": _switch("answers", 17, "10", "1", "10"),
    "rdfs11_text": _switch("questions", 18, "?superclass", "rdfs9", "superclass"),
    "premise": _switch("tables", 19, "halves", "halves_dropped", "halves", "threshold"),
    "premise_test": _switch("questions", 19, "?own", "p1", "own"),
    "premise_words": _switch("answers", 20, "pseudowords", "random_tokens", "pseudowords"),
    "conj_train": _switch("answers", 21, "?memorising", "test_rows", "memorising"),
    "missing_candidate": _switch("answers", 22, "?append", "skip", "append"),
    "mc_split": _switch("tables", 23, "shipped", "shipped", "own"),
    "average": _switch("tables", 24, "?rows", "rows", "weighted"),
    "seed": _switch("answers", 25, "?0", "none", "0"),
    "max_length": _switch("answers", 0, "?none", "padded", "none"),
    "article": _switch("questions", 0, "?always_a", "always_a", "by_letter"),
    "negatives": _switch("questions", 0, "?released", "released", "clean"),
    "mc_wording": _switch("questions", 0, "?released", "released", "default"),
    "softmax_rows": _switch("answers", 0, "?vocabulary", "all", "vocabulary"),
    "labels": _switch("questions", 0, "?ascii_drop", "ascii_drop", "unicode"),
    "patterns": _switch("questions", 0, "?released", "released", "released", "corrected"),
    "premise_order": _switch("answers", 0, "P2_P1", "P1_P2", "P1_P2"),
    "soft_implies": _switch("answers", 0, "?left_out", "kept", "left_out"),
    "soft_stop": _switch("questions", 0, "?kept", "left_out", "kept"),
    "unknown_candidates": _switch("answers", 0, "?keep", "keep", "keep", "leave_out"),
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


#: switches that take any number, and the one that takes two
NUMBERS = (
    "alpha",
    "pseudoword_pairs",
    "item_limit",
    "seed",
    "properties",
    "instances_per_class",
    "warmup",
)


def _open(key: str, value: str) -> bool:
    """Whether a switch of numbers takes this number (split: rows of train/rows of dev)."""
    if key == "split":
        parts = value.split("/")
        return len(parts) == 2 and all(p.isdigit() and int(p) > 0 for p in parts)
    if key == "alpha":
        return value.replace(".", "", 1).isdigit() and float(value) > 0
    return key in NUMBERS and value.isdigit()


def parts(switches: Mapping[str, str]) -> tuple[int, int]:
    """(rows of train, rows of dev) under the switch `split`."""
    train, dev = switches["split"].split("/")
    return int(train), int(dev)
