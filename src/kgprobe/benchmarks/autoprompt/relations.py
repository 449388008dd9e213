"""Relation extraction: sentences that state a fact, as examples (docs/papers/autoprompt.md, Tasks).

The records are LAMA's T-REx facts with evidences: a sentence whose object is [MASK], and the
surface forms of subject and object in it. The paper's own training sentences are not public, so
the facts are split, by subject: train and test share neither facts nor subjects.

Perturbed contexts have another object of the relation in place of the correct one, in two modes
(docs/papers/autoprompt.md, Decisions):

fact: one new object per fact, never a correct answer of its subject, in the annotated slot only.
released: any other object; in the test set one per sentence, replacing every occurrence of the old
object, which splits the sentences of a fact into groups.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kgprobe.benchmarks.autoprompt import frames
from kgprobe.benchmarks.autoprompt.frames import SPLITS, Task, TaskError, existing
from kgprobe.benchmarks.autoprompt.overlap import annotate, facts_of
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import json_rows
from kgprobe.knowledge.facts import by_number
from kgprobe.sampling import hash_key
from kgprobe.settings.benchmarks import PromptSentences
from kgprobe.sources.dumps import stream

#: a row of EXAMPLES, for `frames.frame`
Row = tuple[Any, ...]
#: label of an object of a relation -> its surface forms in sentences, both sorted
Pool = Mapping[str, Sequence[str]]
MASK = "[MASK]"
_WORD = re.compile(r"\S+")


class Evidence(NamedTuple):
    """A sentence with [MASK] as the object, and the surface forms of both ends in it."""

    subject: str
    object: str
    sentence: str


@dataclass(frozen=True)
class Record:
    """A fact with its evidences; `fact` is relation/subject id/object id."""

    relation: str
    fact: str
    subject_id: str
    subject: str
    object: str
    evidences: tuple[Evidence, ...]


class ObjectMention(NamedTuple):
    """A context, the object's surface form in it, and its start (-1: truncated)."""

    text: str
    surface: str
    start: int


class SplitRecord(NamedTuple):
    """A record in its split, the contexts chosen for it, and its flags and others of EXAMPLES."""

    record: Record
    split: str
    contexts: Sequence[ObjectMention]
    flags: Sequence[str] = ()
    others: Sequence[str] = ()


def read_records(folder: Path, exclude: Sequence[str] = ()) -> list[Record]:
    """Read the records of every relation in `folder`: {relation}.jsonl[.gz], or the archive's form
    {relation}/test.jsonl, of which rows without evidences are skipped.

    Raises TaskError for invalid rows, for sentences without exactly one [MASK], and for no records.
    """
    existing(folder, "LAMA's facts with evidence sentences", "trex_sentences")
    records: list[Record] = []
    for relation, path in sorted(_files(folder).items(), key=lambda pair: by_number(pair[0])):
        if relation not in exclude:
            records += [_record(path, number, row) for number, row in _rows(path)]
    if not records:
        raise TaskError(f"{folder}: no P*.jsonl.gz and no P*/test.jsonl with records in it")
    return records


def build(
    records: Sequence[Record],
    vocabulary: Sequence[str],
    task: dict[str, Any],
    settings: PromptSentences,
    seed: int,
    perturbed: str = "",
) -> Task:
    """Build a task from `records`; `perturbed`: "" (original), fact (default) or released.

    Train and dev facts give one sentence, drawn once by seeded hash and cut to `settings.words`
    words; test facts give all distinct sentences of at most that many words.
    """
    funnel = Funnel(task["benchmark"])
    rows: list[Row] = []
    facts: dict[str, Record] = {}
    for record in records:  # a fact may have several, each with sentences of its own
        if first := facts.get(record.fact):
            record = replace(first, evidences=first.evidences + record.evidences)
        facts[record.fact] = record
    for relation in dict.fromkeys(record.relation for record in facts.values()):
        of_relation = [record for record in facts.values() if record.relation == relation]
        rows += _relation(of_relation, settings, seed, perturbed, funnel)
    examples, remedy = frames.frame(rows), "name fewer relations"
    frames.require(frames.sizes(examples), settings.least, task["benchmark"], remedy)
    task["groups"] = sorted(examples["group"].unique(), key=by_number)
    return Task(examples, sorted(vocabulary), task, funnel.frame())


def split_of(record: Record, shares: Sequence[float], seed: int) -> str:
    """Return train, dev or test by hash of the subject, the same in every relation."""
    place = hash_key(seed, "subject", record.subject_id) / 2**64
    return "train" if place < shares[0] else "dev" if place < sum(shares[:2]) else "test"


def _relation(
    records: Sequence[Record], settings: PromptSentences, seed: int, perturbed: str, funnel: Funnel
) -> list[Row]:
    relation, words = records[0].relation, settings.words
    distinct = {r.fact: list(dict.fromkeys(r.evidences)) for r in records}
    short = {
        f: [e for e in texts if len(e.sentence.split()) <= words] for f, texts in distinct.items()
    }
    every, once, few = (
        sum(map(len, texts))
        for texts in ((r.evidences for r in records), distinct.values(), short.values())
    )
    funnel.add(relation, "evidences: exact duplicates dropped", every, once)
    funnel.add(relation, f"evidences: over {words} words dropped", once, few)
    usable = [r for r in records if short[r.fact]]
    step = f"facts: a sentence of at most {words} words"
    funnel.add(relation, step, len(records), len(usable), *_ends(usable))
    splits = [split_of(r, settings.shares, seed) for r in records]
    placed = zip(records, splits, strict=True)
    facts = facts_of((relation, split, r.subject, r.object, r.fact) for r, split in placed)
    rows = []
    for record, split, more in zip(
        records, splits, annotate(facts).select("flags", "others").rows(), strict=True
    ):
        contexts = _contexts((short if split == "test" else distinct)[record.fact], words)
        if split != "test":
            keys = {c: hash_key(seed, "sentence", record.fact, c.text) for c in contexts}
            contexts = sorted((c for c in contexts if c.start >= 0), key=lambda c: (keys[c], c))[:1]
        rows.append(SplitRecord(record, split, contexts, *more))
    for split in SPLITS:
        of_split = [row for row in rows if row.split == split]
        left = [row.record for row in of_split if row.contexts]
        step = f"{split}: facts with a sentence"
        funnel.add(relation, step, len(of_split), len(left), *_ends(left))
    test = [row for row in rows if row.split == "test"]
    # perturbed contexts can differ in the position that is replaced
    n = sum(len({c if perturbed else c.text for c in row.contexts}) for row in test)
    sentences = sum(len(short[row.record.fact]) for row in test)
    funnel.add(relation, "test: equal contexts dropped", sentences, n)
    if perturbed:
        return _perturbed(rows, seed, perturbed, funnel)
    return [example for row in rows for example in _examples(row)]


def _examples(row: SplitRecord) -> Iterator[Row]:
    """Yield an example per distinct context, with all surface forms of the object in it."""
    surfaces: dict[str, list[str]] = {}
    for context in row.contexts:
        surfaces.setdefault(context.text, []).append(context.surface)
    for place, (text, written) in enumerate(surfaces.items()):
        yield _example(row, place, row.record.fact, text, row.record.object, written, row.others)


def _example(
    row: SplitRecord,
    place: int,
    fact: str,
    text: str,
    label: str,
    *lists: Sequence[str],
    **more: str,
) -> Row:
    record, fields = row.record, {"context": text, "sub": row.record.subject, **more}
    name = f"{record.fact}/{place:04d}"
    return record.relation, row.split, name, fact, fields, label, *lists, row.flags


def _perturbed(rows: Sequence[SplitRecord], seed: int, mode: str, funnel: Funnel) -> list[Row]:
    """Return examples with another object of the relation; count facts without another."""
    pool = pool_of((row.record.object, c.surface) for row in rows for c in row.contexts)
    items: list[Row] = []
    without = mentions = 0
    usable = [row for row in rows if row.contexts]
    for row in usable:
        fact, old = row.record.fact, row.record.object
        changes = perturb(pool, row, seed, mode)
        without += not changes
        for place, (text, label, surface) in enumerate(changes):
            mentions += old in text or row.contexts[place].surface in text
            group = fact if mode == "fact" else f"{fact}~{label}"
            items.append(_example(row, place, group, text, label, [surface], [], old=old))
    relation = rows[0].record.relation
    funnel.add(relation, "facts: another object to put in", len(usable), len(usable) - without)
    funnel.add(relation, "contexts: old object nowhere left", len(items), len(items) - mentions)
    return items


def pool_of(pairs: Iterable[tuple[str, str]]) -> Pool:
    """Return the pool of (label, surface) pairs."""
    forms: dict[str, list[str]] = {}
    for label, surface in sorted(set(pairs)):
        forms.setdefault(label, []).append(surface)
    return forms


def without(pool: Pool, barred: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return (label, surfaces) without `barred` texts, ignoring case."""
    never = {text.casefold() for text in barred}
    left = {
        label: [surface for surface in surfaces if surface.casefold() not in never]
        for label, surfaces in pool.items()
        if label.casefold() not in never
    }
    return [(label, surfaces) for label, surfaces in left.items() if surfaces]


def draw(options: Sequence[tuple[str, list[str]]], seed: int, *parts: str) -> tuple[str, str]:
    """Draw (label, surface) from `options` by hash of `parts`."""
    label, surfaces = options[hash_key(seed, "object", *parts) % len(options)]
    return label, surfaces[hash_key(seed, "surface", *parts) % len(surfaces)]


def perturb(pool: Pool, row: SplitRecord, seed: int, mode: str) -> list[tuple[str, str, str]]:
    """Return (text, label, surface) of every context with another object; none if the relation has
    no other."""
    fact, right = row.record.fact, (row.record.object, *row.others)
    barred = [row.record.object]
    if mode == "fact":
        # also exclude the surface forms of correct answers in other sentences
        forms = (surface for label in right for surface in pool.get(label, ()))
        barred = [*right, *(context.surface for context in row.contexts), *forms]
    if not (options := without(pool, barred)):
        return []
    changes = []
    for place, (text, was, start) in enumerate(row.contexts):
        if mode == "released" and row.split == "test":
            label, surface = draw(options, seed, fact, str(place))
            changed = text.replace(was, surface)
        else:
            label, surface = draw(options, seed, fact)
            changed = text[:start] + surface + text[start + len(was) :]
        changes.append((changed, label, surface))
    return changes


def _contexts(evidences: Sequence[Evidence], words: int) -> list[ObjectMention]:
    """Return the distinct sentences, cut to `words` words, with the object filled in. `start` is -1
    if the cut removes the object."""
    mentions: dict[tuple[str, str, int], None] = {}
    for evidence in evidences:
        ends = [match.end() for match in _WORD.finditer(evidence.sentence)]
        text = evidence.sentence[: ends[words - 1]] if len(ends) > words else evidence.sentence
        start = text.find(MASK)
        mentions[text.replace(MASK, evidence.object, 1), evidence.object, start] = None
    return [ObjectMention(*key) for key in mentions]


def _ends(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    return [r.subject_id for r in records], [r.object for r in records]


def _files(folder: Path) -> dict[str, Path]:
    """Return relation -> its file; of several the first by name, whatever the file system's
    order."""
    paths: dict[str, Path] = {}
    for path in sorted((*folder.glob("P*.jsonl"), *folder.glob("P*.jsonl.gz"))):
        paths.setdefault(path.name.split(".")[0], path)
    for path in sorted(folder.glob("**/P*/test.jsonl")):
        paths.setdefault(path.parent.name, path)
    return paths


def _rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    if path.suffix != ".gz":
        return [(n, row) for n, row in json_rows(path, TaskError) if "evidences" in row]
    try:
        packed = stream.lines(path)
        lines = enumerate((line.removeprefix(codecs.BOM_UTF8) for line in packed), 1)
        return json_rows(path, TaskError, ((n, line) for n, line in lines if line.strip()))
    except stream.DumpError as error:
        raise TaskError(f"{path}: damaged ({error}); fetch it again") from error


def _record(path: Path, number: int, row: Mapping[str, Any]) -> Record:
    try:
        evidences = tuple(
            Evidence(e["sub_surface"], e["obj_surface"], e["masked_sentence"])
            for e in row["evidences"]
        )
        relation, subject = row["predicate_id"], row["sub_uri"]
        fact = f"{relation}/{subject}/{row['obj_uri']}"
        ends = row["sub_label"], row["obj_label"]
        texts = (relation, subject, *ends, *(text for one in evidences for text in one))
        if wrong := [text for text in texts if not isinstance(text, str)]:
            raise TypeError(f"{wrong[0]!r} is not a string")
    except (KeyError, TypeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise TaskError(f"{path}, line {number}: {what}; expected LAMA's records") from error
    for evidence in evidences:
        if evidence.sentence.count(MASK) != 1:
            raise TaskError(f"{path}, line {number}: not exactly one {MASK}: {evidence.sentence!r}")
    return Record(relation, fact, subject, *ends, evidences)
