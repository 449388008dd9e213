"""Rows of the memorizing tasks in the soft template, checked before a model's weights are read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.probes.jobs.frames import index_golds, labels_of
from kgprobe.probes.models.load import Loaded, ModelSpec, outline
from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.scoring.cloze.gradient import LEGAL
from kgprobe.probes.text.gaps import ClozePrompt, question
from kgprobe.probes.text.spelling import SpelledOptions, check_windows, left_out, rankable

#: What `soft_init: words` starts from, by task (released scripts).
WORDS = {
    "TP": "is a particular",
    "SCO": "is a particular",
    "SPO": "implies the property",
    "DM": "'s domain is",
    "RG": "'s range is",
}
#: Tasks whose subject is a property label, written as it is; the others begin a sentence.
AS_WRITTEN = ("DM", "RG")
TOKENS = 3
#: Longest prompts of the released code, in tokens, by role (`max_length: padded`). It cuts longer
#: ones; here they are refused, and none is padded: that costs time and changes no score.
PADDED = {"train": 64, "dev": 64, "test": 512}


@dataclass(frozen=True)
class Prepared:
    """A model without weights, and the items and candidates that its tokenizer can spell."""

    light: Loaded
    items: pl.DataFrame
    options: dict[str, Sequence[str]]
    kept: dict[str, SpelledOptions]
    missing: list[str] = field(default_factory=list)

    @property
    def record(self) -> dict[str, object]:
        """What was left out, by name."""
        return {
            "candidates_left_out": left_out(self.kept),
            "items_without_gold": self.missing,
        }


def prepared(
    spec: ModelSpec, items: pl.DataFrame, candidates: pl.DataFrame, switches: Switches
) -> Prepared:
    """Items and candidates as far as the model can spell them (switch `unknown_candidates`).

    Raises ValueError for a kind of model without an input embedding.
    """
    if spec.kind not in LEGAL:
        raise ValueError(
            f"{spec.model}: soft prompts and pseudowords need the input embedding of the model; "
            f"kind {spec.kind!r} has none; legal: {', '.join(LEGAL)}"
        )
    light = outline(spec)
    kept = rankable(light, labels_of(candidates), switches.unknown_candidates)
    rows, missing = index_golds(items, kept)
    options: dict[str, Sequence[str]] = {name: spelled.labels for name, spelled in kept.items()}
    return Prepared(light, rows, options, kept, missing)


def check_tasks(
    ready: Prepared, switches: Switches, tokens: Mapping[str, int], roles: Sequence[str]
) -> None:
    """Raise one ValueError that names every task whose rows of `roles` cannot be used.

    That is: none of a role, a row in two splits, a prompt that is too long. `tokens`: vectors of
    each task's template.
    """
    problems = []
    for task, count in tokens.items():
        rows = ready.items.filter(pl.col("relation") == task)
        try:
            check_parts(rows, task)
            for role in roles:
                prompts = questions(rows, count, role)
                if not prompts:
                    raise ValueError(f"no {role} rows; the split is larger than the data")
                most = PADDED[role] if switches.max_length == "padded" else None
                space = switches.candidate_space
                check_windows(ready.light, {task: prompts}, ready.options, space, most)
        except ValueError as error:
            problems.append(f"{task}: {error}")
    if problems:
        raise ValueError(
            f"{ready.light.spec.model}: tasks that cannot be asked\n" + "\n".join(problems)
        )


def template_tokens(light: Loaded, task: str, init: str) -> int:
    """How many vectors the template of a task has (switch `soft_init`)."""
    if init != "words":
        return TOKENS
    return len(light.tokenizer(WORDS[task], add_special_tokens=False)["input_ids"])


def questions(items: pl.DataFrame, tokens: int, role: str | None = None) -> list[ClozePrompt]:
    """The items in the soft template, in file order."""
    rows = items if role is None else items.filter(pl.col("role") == role)
    text = soft.template(tokens)
    return [
        question(item, 0, text, subject_of(task, subject, meta), name, tuple(golds), False)
        for item, task, subject, meta, name, golds in rows.sort("relation", "row", "item")
        .select("item", "relation", "subject", "meta", "candidates", "answers")
        .rows()
    ]


def subject_of(task: str, subject: str, meta: str) -> str:
    """The subject of the soft template: the property's label, or what begins the sentence."""
    if task in AS_WRITTEN:
        return str(json.loads(meta)["soft_subject"])
    return subject[:1].upper() + subject[1:]


def check_parts(items: pl.DataFrame, task: str) -> None:
    """Raise ValueError for a row that is trained on and tested as well (same subject and golds)."""
    golds = pl.col("answers").cast(pl.List(pl.String)).list.join(",")
    keyed = items.with_columns(
        row_key=pl.concat_str("subject", "subject_id", golds, separator="\n")
    )
    trained = keyed.filter(pl.col("role") != "test")["row_key"].to_list()
    both = keyed.filter((pl.col("role") == "test") & pl.col("row_key").is_in(trained))
    if both.height:
        item, subject = both.select("item", "subject").row(0)
        raise ValueError(
            f"{both.height} rows of the test part of {task} stand in train or dev as well, first "
            f"{item} ({subject!r}); take them out of one part"
        )
