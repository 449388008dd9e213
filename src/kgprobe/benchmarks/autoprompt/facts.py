"""Fact retrieval: LAMA's facts as examples (docs/papers/autoprompt.md, Tasks).

    Original          LAMA's test facts; up to 1000 other facts per relation for search, 80-20
    T-REx             the facts for search, split 60 / 20 / 20
    Original-RoBERTa  Original, objects in the common vocabulary of BERT and RoBERTa

The files hold only labels. Module own creates facts for search from our own pulls.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.benchmarks.autoprompt import frames, templates
from kgprobe.benchmarks.autoprompt.frames import FLAGS, SPLITS, Task, TaskError, existing
from kgprobe.benchmarks.autoprompt.overlap import annotate, facts_of, settle
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import json_rows, text_lines
from kgprobe.knowledge.facts import by_number, fact_id
from kgprobe.schema import EXAMPLES
from kgprobe.settings.benchmarks import PromptFacts
from kgprobe.templates import answer_is_last


def read_facts(folder: Path, relations: Sequence[str] | None = None) -> pl.DataFrame:
    """Read the facts of `folder/{relation}/{train,dev,test}.jsonl`, relations by number.

    Raises TaskError for missing files, and for lines without `sub` or `obj`.
    """
    existing(folder, "LAMA's facts", "lama")
    present = {path.name for path in folder.iterdir() if path.is_dir()}
    chosen = sorted(present if relations is None else relations, key=by_number)
    if missing := [relation for relation in chosen if relation not in present]:
        raise TaskError(f"{folder}: no folder for {', '.join(missing)}; it has {len(present)}")
    facts = []
    for relation in chosen:
        for split in SPLITS:
            path = existing(folder / relation / f"{split}.jsonl", "LAMA's facts", "lama")
            rows = json_rows(path, TaskError, texts=("sub", "obj"))
            facts += [(relation, split, row["sub"], row["obj"]) for _, row in rows]
    return facts_of(facts)


def read_vocabulary(path: Path) -> list[str]:
    """Read a file with one word per line; return the distinct words, sorted."""
    existing(path, "common vocabulary", "lama")
    return sorted({word for _, word in text_lines(path)})


def build(
    facts: pl.DataFrame,
    vocabulary: Sequence[str],
    task: dict[str, Any],
    settings: PromptFacts,
    keep: Collection[str] | None = None,
    reason: str = "",
    funnel: Funnel | None = None,
) -> Task:
    """Build a task from `facts`.

    `keep`: the objects that stay, null for all; `reason` names this filter in the funnel. Facts
    whose object is not in the vocabulary are counted but stay, since models differ in what they can
    predict. `funnel` already holds the counts from gathering the facts.
    """
    name = task["benchmark"]
    funnel = funnel or Funnel(name)
    known = sorted(set(vocabulary))
    marked = facts.with_columns(
        stays=pl.lit(True) if keep is None else pl.col("object").is_in(list(keep)),
        inside=pl.col("object").is_in(known),
    )
    left = []
    for (group,), group_facts in marked.group_by("group", maintain_order=True):
        for split in SPLITS:
            rows = group_facts.filter(split=split)
            stay = rows.filter("stays")
            steps = [(" facts", rows, rows), (f": {reason}", rows, stay)][: 1 + (keep is not None)]
            inside = ": object in the vocabulary (others stay)", stay, stay.filter("inside")
            for step, before, after in (*steps, inside):
                funnel.add(str(group), f"{split}{step}", before.height, after.height, *ends(after))
            left.append(stay.select(facts.columns))
    settled = annotate(settle(pl.concat(left), settings.overlap, funnel, name))
    _count_flags(settled, funnel)
    items, remedy = examples(settled), "name fewer relations, or pull more facts"
    frames.require(frames.sizes(items, task["groups"]), settings.least, name, remedy)
    task["groups"] = sorted(items["group"].unique(), key=by_number)
    return Task(items, known, task, funnel.frame())


def examples(facts: pl.DataFrame) -> pl.DataFrame:
    """Return one of EXAMPLES per fact of `annotate`; a label pair repeated in its split keeps all
    its rows."""
    place = pl.int_range(pl.len()).over("group", "split")
    times = pl.int_range(1, 1 + pl.len()).over("group", "split", "subject", "object")
    key = pl.when(pl.col("key") != "").then("key").otherwise(fact_id("group"))
    return facts.select(
        "group",
        "split",
        example=place.cast(pl.String).str.zfill(5),
        fact=pl.when(times > 1).then(pl.format("{}#{}", key, times)).otherwise(key),
        fields=pl.col("subject").map_elements(
            lambda subject: frames.as_json({"sub": subject}), return_dtype=pl.String
        ),
        label="object",
        surfaces=pl.lit([], EXAMPLES.columns["surfaces"]),
        others="others",
        flags="flags",
    )


def describe(
    benchmark: str,
    task: str,
    relations: Iterable[str],
    published: Mapping[str, Mapping[str, Mapping[str, str]]],
    template_rows: Sequence[dict[str, str]],
    triggers: int,
) -> dict[str, Any]:
    """Return task.json: templates for search and published prompts, names and types of relations.

    `published`: prompt (manual, lpaqa) -> relation -> row of its file. `template_rows`: rows of
    templates.tsv, used for causal models if a published manual template does not end in [Y].
    """
    chosen = sorted(set(relations), key=by_number)
    endings = templates.own_endings(list(template_rows))
    context = task == "relation_extraction"
    prompts: dict[str, dict[str, dict[str, str]]] = {}
    notes = []
    for prompt, rows in published.items():
        spare = endings if prompt == "manual" else {}
        texts = {r: rows[r]["template"] for r in chosen if r in rows}
        prompts[prompt] = {
            r: templates.manual(text, context, spare.get(r, "")) for r, text in texts.items()
        }
        if turned := [r for r, text in texts.items() if not answer_is_last(text)]:
            what = "our own template" if prompt == "manual" else "no such prompt"
            notes.append(f"{prompt}: causal models get {what} for {', '.join(turned)}")
    first: Mapping[str, Mapping[str, str]] = next(iter(published.values()), {})
    if idle := sorted(set(first) - set(chosen), key=by_number):
        notes.append(f"relations with a template and without facts here: {', '.join(idle)}")
    return {
        "benchmark": benchmark,
        "task": task,
        "groups": chosen,
        "names": {r: first.get(r, {}).get("label", r) for r in chosen},
        "types": {r: first[r]["type"] for r in chosen if "type" in first.get(r, {})},
        "truncate": templates.TRUNCATE[task],
        "search": templates.search_templates(task, triggers),
        "prompts": prompts,
        "label_words": {},
        "notes": notes,
    }


def read_published(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Read LAMA's manual templates and LPAQA's best single ones from a folder of LAMA's files."""
    return {
        "manual": templates.read_templates(folder / "relations.jsonl"),
        "lpaqa": templates.read_templates(folder / "optiprompt" / "LPAQA_relations.jsonl"),
    }


def ends(facts: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Return (subjects, objects) of facts."""
    return facts["subject"], facts["object"]


def count_splits(funnel: Funnel, relation: str, facts: pl.DataFrame, step: str) -> None:
    """Add a step for each split of a relation's facts; `step` formats its name."""
    for split in SPLITS:
        some = facts.filter(split=split)
        funnel.add(relation, step.format(split), facts.height, some.height, *ends(some))


def _count_flags(facts: pl.DataFrame, funnel: Funnel) -> None:
    """Add steps for the no-overlap subset: test facts without each flag, then without any."""
    for (group,), rows in facts.group_by("group", maintain_order=True):
        test = rows.filter(split="test")
        for flag in FLAGS:
            clean = test.filter(~pl.col("flags").list.contains(flag))
            funnel.add(str(group), f"test: not {flag}", test.height, clean.height)
        clean = test.filter(pl.col("flags").list.len() == 0)
        step = "test: no-overlap subset"
        funnel.add(str(group), step, test.height, clean.height, *ends(clean))
