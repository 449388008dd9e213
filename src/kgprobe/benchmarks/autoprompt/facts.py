"""Fact retrieval: LAMA's facts as examples (docs/papers/autoprompt.md, Tasks).

    Original          LAMA's test facts; up to 1000 other facts per relation for search, 80-20
    T-REx             the facts for search, split 60 / 20 / 20
    Original-RoBERTa  Original, objects in the common vocabulary of BERT and RoBERTa

The files hold only labels. Module own creates facts for search from our own pulls.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgprobe.benchmarks.autoprompt import frames, templates
from kgprobe.benchmarks.autoprompt.frames import FLAGS, SPLITS, Example, Task, TaskError, existing
from kgprobe.benchmarks.autoprompt.overlap import Fact, flags, others, settle
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import json_rows, text_lines
from kgprobe.knowledge.facts import by_number
from kgprobe.settings.benchmarks import PromptFacts
from kgprobe.templates import answer_is_last


def read_facts(folder: Path, relations: Sequence[str] | None = None) -> list[Fact]:
    """Read `folder/{relation}/{train,dev,test}.jsonl` in file order, relations by number.

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
            facts += [Fact(relation, split, row["sub"], row["obj"]) for _, row in rows]
    return facts


def read_vocabulary(path: Path) -> list[str]:
    """Read a file with one word per line; return the distinct words, sorted."""
    existing(path, "common vocabulary", "lama")
    return sorted({word for _, word in text_lines(path)})


def build(
    facts: Sequence[Fact],
    vocabulary: Sequence[str],
    task: dict[str, Any],
    settings: PromptFacts,
    keep: Callable[[str], bool] | None = None,
    reason: str = "",
    funnel: Funnel | None = None,
) -> Task:
    """Build a task from `facts`.

    `keep` tells which objects stay; `reason` names this filter in the funnel. Facts whose object is
    not in the vocabulary are counted but stay, since models differ in what they can predict.
    `funnel` already holds the counts from gathering the facts.
    """
    name = task["benchmark"]
    funnel = funnel or Funnel(name)
    known = set(vocabulary)
    left = []
    for group in dict.fromkeys(fact.group for fact in facts):
        group_facts = [f for f in facts if f.group == group]
        for split in SPLITS:
            rows = [f for f in group_facts if f.split == split]
            stay = [f for f in rows if keep(f.object)] if keep else rows
            funnel.add(group, f"{split} facts", len(rows), len(rows), *ends(rows))
            if keep:
                funnel.add(group, f"{split}: {reason}", len(rows), len(stay), *ends(stay))
            inside = [f for f in stay if f.object in known]
            step = f"{split}: object in the vocabulary (others stay)"
            funnel.add(group, step, len(stay), len(inside), *ends(inside))
            left += stay
    left = settle(left, settings.overlap, funnel, name)
    items = examples(left)
    _count_flags(items, funnel)
    remedy = "name fewer relations, or pull more facts"
    frames.require(frames.sizes(items, task["groups"]), settings.least, name, remedy)
    task["groups"] = sorted({e.group for e in items}, key=by_number)
    return Task(frames.frame(items), sorted(known), task, funnel.frame())


def examples(facts: Sequence[Fact]) -> list[Example]:
    """Return one example per fact; a label pair repeated in its split keeps all its rows."""
    rows: dict[tuple[str, str], int] = {}
    seen: dict[tuple[str, ...], int] = {}
    items = []
    for fact, flagged, right in zip(facts, flags(facts), others(facts), strict=True):
        place = rows.get((fact.group, fact.split), 0)
        rows[fact.group, fact.split] = place + 1
        times = seen.get(fact[:4], 0) + 1
        seen[fact[:4]] = times
        key = fact.key or f"{fact.group}/{fact.subject}/{fact.object}"
        name = key if times == 1 else f"{key}#{times}"
        cells = (f"{place:05d}", name, {"sub": fact.subject}, fact.object)
        items.append(Example(fact.group, fact.split, *cells, others=right, flags=flagged))
    return items


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


def ends(facts: Sequence[Fact]) -> tuple[list[str], list[str]]:
    """Return (subjects, objects) of facts."""
    return [f.subject for f in facts], [f.object for f in facts]


def count_splits(funnel: Funnel, relation: str, facts: Sequence[Fact], step: str) -> None:
    """Add a step for each split of a relation's facts; `step` formats its name."""
    for split in SPLITS:
        some = [fact for fact in facts if fact.split == split]
        funnel.add(relation, step.format(split), len(facts), len(some), *ends(some))


def _count_flags(examples: Sequence[Example], funnel: Funnel) -> None:
    """Add steps for the no-overlap subset: test facts without each flag, then without any."""
    for group in dict.fromkeys(e.group for e in examples):
        test = [e for e in examples if e.group == group and e.split == "test"]
        for flag in FLAGS:
            clean = [e for e in test if flag not in e.flags]
            funnel.add(group, f"test: not {flag}", len(test), len(clean))
        clean = [e for e in test if not e.flags]
        both = [e.fields["sub"] for e in clean], [e.label for e in clean]
        funnel.add(group, "test: no-overlap subset", len(test), len(clean), *both)
