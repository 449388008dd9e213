"""Relation extraction: sentences that state a fact, as examples (docs/papers/autoprompt.md, Tasks).

The records are LAMA's T-REx facts with evidences: a sentence whose object is [MASK], and the
surface forms of subject and object in it. The paper's own training sentences are not public, so
the facts are split, by subject: train and test share neither facts nor subjects.
"""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kgprobe.benchmarks.autoprompt import frames
from kgprobe.benchmarks.autoprompt.frames import SPLITS, Example, Task, TaskError, existing
from kgprobe.benchmarks.autoprompt.overlap import Fact, flags, others
from kgprobe.benchmarks.autoprompt.perturbed import ObjectMention, perturb, pool_of
from kgprobe.benchmarks.funnel import Funnel
from kgprobe.experiments import json_rows
from kgprobe.knowledge.facts import by_number
from kgprobe.sampling import hash_key
from kgprobe.settings.benchmarks import PromptSentences
from kgprobe.sources.dumps import stream

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
    examples: list[Example] = []
    facts: dict[str, Record] = {}
    for record in records:  # a fact may have several, each with sentences of its own
        if first := facts.get(record.fact):
            record = replace(first, evidences=first.evidences + record.evidences)
        facts[record.fact] = record
    for relation in dict.fromkeys(record.relation for record in facts.values()):
        rows = [record for record in facts.values() if record.relation == relation]
        examples += _relation(rows, settings, seed, perturbed, funnel)
    frames.require(
        frames.sizes(examples), settings.least, task["benchmark"], "name fewer relations"
    )
    task["groups"] = sorted({e.group for e in examples}, key=by_number)
    return Task(frames.frame(examples), sorted(vocabulary), task, funnel.frame())


def split_of(record: Record, shares: Sequence[float], seed: int) -> str:
    """Return train, dev or test by hash of the subject, the same in every relation."""
    place = hash_key(seed, "subject", record.subject_id) / 2**64
    return "train" if place < shares[0] else "dev" if place < sum(shares[:2]) else "test"


def _relation(
    records: Sequence[Record],
    settings: PromptSentences,
    seed: int,
    perturbed: str,
    funnel: Funnel,
) -> list[Example]:
    relation, words = records[0].relation, settings.words
    distinct, short = _distinct(records, words, funnel)
    placed = [(r, split_of(r, settings.shares, seed)) for r in records]
    facts = [Fact(r.relation, split, r.subject, r.object, r.fact) for r, split in placed]
    known = {
        fact.key: (flagged, right)
        for fact, flagged, right in zip(facts, flags(facts), others(facts), strict=True)
    }
    chosen: dict[str, list[ObjectMention]] = {}
    for record, split in placed:
        if split == "test":
            chosen[record.fact] = _contexts(short[record.fact], words)
            continue
        inside = [c for c in _contexts(distinct[record.fact], words) if c.start >= 0]
        order = sorted(inside, key=lambda c: (hash_key(seed, "sentence", record.fact, c.text), c))
        chosen[record.fact] = order[:1]
    for split in SPLITS:
        rows = [record for record, where in placed if where == split]
        left = [record for record in rows if chosen[record.fact]]
        funnel.add(relation, f"{split}: facts with a sentence", len(rows), len(left), *_ends(left))
    test = [record.fact for record, split in placed if split == "test"]
    # perturbed contexts can differ in the position that is replaced
    contexts = sum(len({c if perturbed else c.text for c in chosen[fact]}) for fact in test)
    sentences = sum(len(short[fact]) for fact in test)
    funnel.add(relation, "test: equal contexts dropped", sentences, contexts)
    if not perturbed:
        return [
            e for r, split in placed for e in _examples(r, split, chosen[r.fact], *known[r.fact])
        ]
    return _perturbed(placed, chosen, known, seed, perturbed, funnel)


def _distinct(
    records: Sequence[Record], words: int, funnel: Funnel
) -> tuple[dict[str, list[Evidence]], dict[str, list[Evidence]]]:
    """Return (distinct evidences, those of at most `words` words) by fact, and count both steps."""
    relation = records[0].relation
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
    return distinct, short


def _examples(
    record: Record,
    split: str,
    contexts: Sequence[ObjectMention],
    flagged: Sequence[str],
    right: Sequence[str],
) -> Iterator[Example]:
    """Yield an example per distinct context, with all surface forms of the object in it."""
    surfaces: dict[str, list[str]] = {}
    for context in contexts:
        surfaces.setdefault(context.text, []).append(context.surface)
    for place, (text, written) in enumerate(surfaces.items()):
        fields = {"context": text, "sub": record.subject}
        cells = (f"{record.fact}/{place:04d}", record.fact, fields, record.object)
        yield Example(record.relation, split, *cells, written, right, flagged)


def _perturbed(
    placed: Sequence[tuple[Record, str]],
    chosen: Mapping[str, list[ObjectMention]],
    known: Mapping[str, tuple[list[str], list[str]]],
    seed: int,
    mode: str,
    funnel: Funnel,
) -> list[Example]:
    """Return examples with another object of the relation; count facts without another."""
    pool = pool_of((r.object, m.surface) for r, _ in placed for m in chosen[r.fact])
    items, without, mentions = [], 0, 0
    usable = [(record, split) for record, split in placed if chosen[record.fact]]
    for record, split in usable:
        flagged, right = known[record.fact]
        changes = perturb(
            pool, record.fact, record.object, right, chosen[record.fact], seed, mode, split
        )
        without += not changes
        for place, change in enumerate(changes):
            mentions += record.object in change.text or change.old_surface in change.text
            grouped = record.fact if mode == "fact" else f"{record.fact}~{change.label}"
            fields = {"context": change.text, "sub": record.subject, "old": record.object}
            cells = (f"{record.fact}/{place:04d}", grouped, fields, change.label)
            items.append(Example(record.relation, split, *cells, [change.surface], [], flagged))
    relation = placed[0][0].relation
    funnel.add(relation, "facts: another object to put in", len(usable), len(usable) - without)
    funnel.add(relation, "contexts: old object nowhere left", len(items), len(items) - mentions)
    return items


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
        with stream.lines(path) as packed:
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
