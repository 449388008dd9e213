"""LAMA's T-REx facts as multiple choice (docs/papers/bear.md, LAMA; facts: Petroni et al. 2019).

LAMA ranks the words of a vocabulary. Here a model chooses among objects of the same relation, as in
BEAR, so that models of every kind can answer, however their tokenizers split words.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from kgprobe.benchmarks.bear.build import relations_of
from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.experiments import json_rows
from kgprobe.knowledge.facts import by_number
from kgprobe.sampling import hash_key
from kgprobe.settings.benchmarks import LamaOptions
from kgprobe.templates import sentence

SPLITS = ("train", "dev", "test")


class LamaError(ValueError):
    """A folder of LAMA's facts is incomplete or damaged; the message names file and line."""


def load(
    folder: Path, templates: Path, settings: LamaOptions, seed: int, benchmark: str = "lama"
) -> BearFrames:
    """Return ITEMS, CANDIDATES and PROMPTS of the test facts in `folder/{relation}/test.jsonl`.

    There is one question per subject, with one of the objects of its test facts as the answer.
    `settings.facts` subjects are drawn per relation, and for each its object and other objects of
    the relation's test facts, up to `settings.options`, all by hash of their names. Objects that
    facts of any split state of a subject of that name are not distractors. Ids are names, as the
    files have no ids. Raises LamaError, and TableError for a missing file.
    """
    if not folder.is_dir():
        raise LamaError(f"{folder}: no such folder; LAMA's facts were expected there")
    texts = {
        row["relation"]: row["template"]
        for _, row in json_rows(templates, LamaError, texts=("relation", "template"))
    }
    parts = []
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    for relation in sorted(names, key=by_number):
        if relation not in texts:
            raise LamaError(f"{templates}: no template for {relation}, which {folder} has")
        text = texts[relation]
        sentence(text, f"{templates}, {relation}", LamaError)
        stated = {split: _facts(folder / relation / f"{split}.jsonl") for split in SPLITS}
        parts.append(_questions(benchmark, relation, text, stated, settings, seed))
    return BearFrames.joined(parts)


def relations(templates: Path, sets: BearFrames) -> pl.DataFrame:
    """Return RELATIONS: 1:1 if LAMA says so, else 1:N (several subjects share an answer)."""
    rows = json_rows(templates, LamaError, texts=("relation", "type"))
    single = [{**row, "cardinality": "1:1"} for _, row in rows if row["type"] == "1-1"]
    return relations_of(sets, single)


def _questions(
    benchmark: str,
    relation: str,
    text: str,
    stated: Mapping[str, Mapping[str, list[str]]],
    settings: LamaOptions,
    seed: int,
) -> BearFrames:
    """Return the questions of one relation, in the order of the draw, each with its own options."""
    test_facts = stated["test"]
    objects = {value for values in test_facts.values() for value in values}

    def order_by_hash(names: Iterable[str], *of: str) -> list[str]:
        return sorted(names, key=lambda name: (hash_key(seed, "lama", relation, *of, name), name))

    items: list[tuple[object, ...]] = []
    candidates: list[tuple[object, ...]] = []
    for row, subject in enumerate(order_by_hash(test_facts)[: settings.facts]):
        gold = order_by_hash(test_facts[subject], subject)[0]
        known = {value for facts in stated.values() for value in facts.get(subject, ())}
        others = order_by_hash(objects - known, subject)[: settings.options - 1]
        options = sorted([gold, *others], key=by_number)
        name = f"{benchmark}/{relation}/{subject}"
        candidates += [(name, i, option, option) for i, option in enumerate(options)]
        cells = (relation, subject, subject, name, [options.index(gold)], row, "{}")
        items.append((f"{relation}/{subject}", relation, "fact", *cells))
    return BearFrames.of(items, candidates, relation, [(0, text)])


def _facts(path: Path) -> dict[str, list[str]]:
    """Return subject -> its objects, in file order."""
    objects: dict[str, list[str]] = {}
    for _, row in json_rows(path, LamaError, texts=("sub", "obj")):
        objects.setdefault(row["sub"], []).append(row["obj"])
    return objects
