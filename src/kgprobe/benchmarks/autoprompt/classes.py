"""Sentiment (SST-2) and inference (SICK-E) as examples (docs/papers/autoprompt.md, Tasks).

SICK-E has three forms: all pairs, three classes of equal size, and contradiction against
entailment of equal size. The paper does not say how it balanced: here every class is undersampled
to the smallest within each split, by seeded hash, in several draws. A draw is a group with its own
prompt, and the table gives mean and range.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.autoprompt import frames, templates
from kgprobe.benchmarks.autoprompt.frames import SPLITS, Task, TaskError, existing
from kgprobe.benchmarks.autoprompt.overlap import IN_EARLIER, IN_LATER, with_places
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import text_lines
from kgprobe.sampling import keys
from kgprobe.schema import EXAMPLES
from kgprobe.settings.benchmarks import PromptClasses, Rows

SENTIMENT = {"0": "negative", "1": "positive"}
INFERENCE = ("contradiction", "entailment", "neutral")
#: form of SICK-E -> its classes, and whether they are balanced
FORMS: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "sick": (INFERENCE, False),
    "sick_3way": (INFERENCE, True),
    "sick_2way": (("contradiction", "entailment"), True),
}
_SICK = {"train": "SICK_train.txt", "dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}


def read_sst2(folder: Path) -> pl.DataFrame:
    """Read EXAMPLES from sentiment-{train,dev,test}: sentence, tab, 0 or 1; sentences are stripped.

    Raises TaskError for missing files and invalid lines.
    """
    examples = []
    for split in SPLITS:
        path = existing(folder / f"sentiment-{split}", "SST-2", "sst2")
        for number, line in text_lines(path):
            sentence, label = (text.strip() for text in line.rpartition("\t")[::2])
            if label not in SENTIMENT or not sentence:
                raise TaskError(f"{path}, line {number}: {line!r}; expected a sentence, a tab, 0|1")
            fields = {"sentence": sentence}
            examples.append(_example(split, number, "sst2", fields, SENTIMENT[label]))
    return frames.frame(examples)


def read_sick(folder: Path) -> pl.DataFrame:
    """Read EXAMPLES of the official split of SICK (4,500 / 500 / 4,927 pairs).

    The paper did not use the later, smaller one-file release. Raises TaskError.
    """
    examples = []
    for split, name in _SICK.items():
        path = existing(folder / name, "the official split of SICK", "sick")
        lines = text_lines(path)
        columns = lines[0][1].split("\t") if lines else []
        wanted = ["pair_ID", "sentence_A", "sentence_B", "entailment_judgment"]
        if missing := [column for column in wanted if column not in columns]:
            raise TaskError(f"{path}: no column {', '.join(missing)} in {columns}")
        for number, line in lines[1:]:
            cells = dict(zip(columns, line.split("\t"), strict=False))
            label = cells.get("entailment_judgment", "").lower()
            if label not in INFERENCE:
                legal = ", ".join(INFERENCE)
                raise TaskError(f"{path}, line {number}: class {label!r}; valid: {legal}")
            if not (pair := cells["pair_ID"]).isdecimal():
                raise TaskError(f"{path}, line {number}: pair_ID {pair!r}; expected a number")
            fields = {"prem": cells["sentence_A"], "hyp": cells["sentence_B"]}
            examples.append(_example(split, int(pair), "sick", fields, label))
    return frames.frame(examples)


def build(
    examples: pl.DataFrame, name: str, settings: PromptClasses, triggers: int, seed: int
) -> Task:
    """Build the task `auto_{name}`: sst2, sick, sick_3way or sick_2way."""
    funnel = Funnel(f"auto_{name}")
    settled = _settle(examples, settings.overlap, funnel)
    classes, balanced = FORMS.get(name, (tuple(sorted(SENTIMENT.values())), False))
    chosen = settled.filter(pl.col("label").is_in(classes))
    if balanced:
        draws = (balance(chosen, f"draw{n}", name, seed) for n in range(settings.draws))
        chosen = pl.concat(draws)
    groups = chosen["group"].unique().sort().to_list()
    for group in groups:
        for split in SPLITS:
            before, labels = (
                rows.filter(split=split)["label"] for rows in (settled, chosen.filter(group=group))
            )
            funnel.add(group, f"{split}: examples", len(before), len(labels), (), labels)
    least = Rows(*[len(classes)] * 3)
    frames.require(frames.sizes(chosen), least, f"auto_{name}", "check the files")
    task = _describe(name, groups, triggers)
    return Task(chosen, sorted(classes), task, funnel.frame())


def balance(examples: pl.DataFrame, group: str, name: str, seed: int) -> pl.DataFrame:
    """Undersample every class of every split to the smallest one, by seeded hash of the facts; a
    split that lacks one of the classes becomes empty."""
    key = keys(examples, seed, ["split", "fact"], name, group)
    ordered = examples.with_columns(group=pl.lit(group), _key=key).sort("_key", "fact")
    counts = [(pl.col("label") == label).sum().over("split") for label in FORMS[name][0]]
    turn = pl.int_range(pl.len()).over("split", "label")
    return ordered.filter(turn < pl.min_horizontal(counts)).drop("_key")


def _example(split: str, number: int, source: str, *texts: Any) -> tuple[Any, ...]:
    """Return a row of EXAMPLES from its fields and label."""
    return "", split, f"{number:05d}", f"{source}/{split}/{number:05d}", *texts, (), (), ()


def _settle(examples: pl.DataFrame, switch: str, funnel: Funnel) -> pl.DataFrame:
    """Count and flag texts that also are in an earlier split, and treat them as `switch` says."""
    pair = pl.when(IN_EARLIER).then(pl.lit("pair"))
    placed = with_places(examples, "fields").with_columns(
        flags=pl.concat_list(pair).list.drop_nulls()
    )
    kept = placed.filter(~IN_LATER) if switch == "remove_train" else placed
    for split in SPLITS:
        rows = placed.filter(split=split)
        shared = rows.filter(IN_EARLIER)["fields"]
        funnel.add("", f"{split}: distinct texts", rows.height, rows["fields"].n_unique())
        if split != "train":
            step = f"{split}: text in no earlier split"
            funnel.add("", step, rows.height, rows.height - len(shared))
        if split == "test" and len(shared) and switch == "error":
            # the premise before the hypothesis
            fields = dict(sorted(json.loads(shared[0]).items(), reverse=True))
            raise TaskError(
                f"{funnel.benchmark}: {len(shared)} test texts occur in train or dev, such as "
                f"{fields}; write overlap: remove_train or keep"
            )
        if switch == "remove_train":
            left = kept.filter(split=split).height
            funnel.add("", f"{split}: text in no later split", rows.height, left)
    return kept.select(list(EXAMPLES.columns))


def _describe(name: str, groups: Sequence[str], triggers: int) -> dict[str, Any]:
    is_sentiment = name == "sst2"
    task = "sst2" if is_sentiment else "sick"
    return {
        "benchmark": f"auto_{name}",
        "task": "classification",
        "groups": list(groups),
        "names": {group: name if not group else f"{name}, {group}" for group in groups},
        "types": {},
        "truncate": templates.TRUNCATE[task],
        "search": templates.search_templates(task, triggers),
        "prompts": {"manual": {"": templates.MANUAL_SST2}} if is_sentiment else {},
        "label_words": templates.WORDS_SST2 if is_sentiment else {},
        "notes": [] if groups == [""] else [f"{len(groups)} draws of balanced classes"],
    }
