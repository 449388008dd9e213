"""Sentiment (SST-2) and inference (SICK-E) as examples (docs/papers/autoprompt.md, Tasks).

SICK-E has three forms: all pairs, three classes of equal size, and contradiction against
entailment of equal size. The paper does not say how it balanced: here every class is undersampled
to the smallest within each split, by seeded hash, in several draws. A draw is a group with its own
prompt, and the table gives mean and range.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgprobe.benchmarks.autoprompt import frames, templates
from kgprobe.benchmarks.autoprompt.frames import SPLITS, Example, Task, TaskError, existing
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import text_lines
from kgprobe.sampling import hash_key
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


def read_sst2(folder: Path) -> list[Example]:
    """Read examples from sentiment-{train,dev,test}: sentence, tab, 0 or 1; sentences are stripped.

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
    return examples


def read_sick(folder: Path) -> list[Example]:
    """Read the official split of SICK (4,500 / 500 / 4,927 pairs) with its classes.

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
    return examples


def build(
    examples: Sequence[Example], name: str, settings: PromptClasses, triggers: int, seed: int
) -> Task:
    """Build the task `auto_{name}`: sst2, sick, sick_3way or sick_2way."""
    funnel = Funnel(f"auto_{name}")
    settled = _settle(examples, settings.overlap, funnel)
    classes, balanced = FORMS.get(name, (tuple(sorted(SENTIMENT.values())), False))
    inside = [e for e in settled if e.label in classes]
    chosen = inside
    if balanced:
        draws = range(settings.draws)
        chosen = [e for draw in draws for e in balance(inside, f"draw{draw}", name, seed)]
    groups = sorted({e.group for e in chosen})
    for group in groups:
        for split in SPLITS:
            rows = [e for e in chosen if (e.group, e.split) == (group, split)]
            before = sum(e.split == split for e in settled)
            funnel.add(group, f"{split}: examples", before, len(rows), (), (e.label for e in rows))
    frames.require(
        frames.sizes(chosen), Rows(*[len(classes)] * 3), f"auto_{name}", "check the files"
    )
    task = _describe(name, groups, triggers)
    return Task(frames.frame(chosen), sorted(classes), task, funnel.frame())


def balance(examples: Sequence[Example], group: str, name: str, seed: int) -> list[Example]:
    """Undersample every class of every split to the smallest one, by seeded hash of the facts; a
    split that lacks one of the classes becomes empty."""
    kept = []
    labels, _ = FORMS[name]
    for split in SPLITS:
        rows = [e for e in examples if e.split == split]
        counts = Counter(e.label for e in rows)
        least = min(counts[label] for label in labels)
        for label in labels:
            facts = [e.fact for e in rows if e.label == label]
            order = sorted((hash_key(seed, name, group, split, fact), fact) for fact in facts)
            chosen = {fact for _, fact in order[:least]}
            kept += [replace(e, group=group) for e in rows if e.fact in chosen]
    return kept


def _example(split: str, number: int, source: str, *texts: Any) -> Example:
    """Create an example of a source from its fields and label."""
    return Example("", split, f"{number:05d}", f"{source}/{split}/{number:05d}", *texts)


def _settle(examples: Sequence[Example], switch: str, funnel: Funnel) -> list[Example]:
    """Count and flag texts that also are in an earlier split, and treat them as `switch` says."""
    texts = {
        split: {tuple(sorted(e.fields.items())) for e in examples if e.split == split}
        for split in SPLITS
    }
    earlier = {"train": set(), "dev": texts["train"], "test": texts["train"] | texts["dev"]}
    later = {"train": texts["dev"] | texts["test"], "dev": texts["test"], "test": set()}
    kept = []
    for split in SPLITS:
        rows = [e for e in examples if e.split == split]
        keys = [tuple(sorted(e.fields.items())) for e in rows]
        shared = [key in earlier[split] for key in keys]
        funnel.add("", f"{split}: distinct texts", len(rows), len(set(keys)))
        if split != "train":
            step = f"{split}: text in no earlier split"
            funnel.add("", step, len(rows), len(rows) - sum(shared))
        if split == "test" and any(shared) and switch == "error":
            raise TaskError(
                f"{funnel.benchmark}: {sum(shared)} test texts occur in train or dev, such as "
                f"{dict(rows[shared.index(True)].fields)}; write overlap: remove_train or keep"
            )
        for example, key, known in zip(rows, keys, shared, strict=True):
            if switch == "remove_train" and key in later[split]:
                continue
            kept.append(replace(example, flags=["pair"]) if known else example)
        if switch == "remove_train":
            left = sum(e.split == split for e in kept)
            funnel.add("", f"{split}: text in no later split", len(rows), left)
    return kept


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
