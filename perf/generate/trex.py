"""Generated T-REx dumps for tests and measurements: the schema and shape of the real one.

Names, sentences and ids are made up by a seeded generator, and every document says so in its title.
Per document about as many sentences, words, entities and alignments as the real dump has on
average (4.65 M documents with 17.5 M alignments of three aligners). Entities follow Zipf's law.
"""

import random
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from kgprobe.schema import atomic
from kgprobe.sources.dumps.trex import ALIGNERS, DIRECT, ENTITY, SPOTLIGHT

SYLLABLES = (
    "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu zan ber lin dor mar".split()
)
VERBS = (
    "was born in, lies near, belongs to, was written by, is part of, borders on, stems from".split(
        ", "
    )
)
AVERAGE_ALIGNMENTS = 4
DATE = "{year}-01-22T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime"


class Names:
    """Made-up names of entities; entity number -> the same name on every call."""

    def __init__(self, entities: int) -> None:
        self.entities = entities
        # Zipf: the weight of rank r is 1 / r; cumulative weights make drawing logarithmic
        self.weights = list(accumulate(1.0 / rank for rank in range(1, entities + 1)))

    def draw(self, source: random.Random) -> int:
        """An entity number, popular ones more often."""
        return source.choices(range(self.entities), cum_weights=self.weights)[0]

    def __getitem__(self, number: int) -> str:
        parts = []
        while True:
            number, digit = divmod(number, len(SYLLABLES))
            parts.append(SYLLABLES[digit])
            if not number and len(parts) > 1:
                return "".join(parts).capitalize()


def write_dump(
    folder: Path, files: int, documents: int = 10_000, entities: int = 200_000, seed: int = 0
) -> list[Path]:
    """Writes `files` files of `documents` documents each, named like the real ones."""
    names = Names(entities)
    paths = []
    for number in range(files):
        start = number * documents
        path = folder / f"re-nlg_{start}-{start + documents}.json"
        source = random.Random(f"{seed}/{number}")
        content = [document(start + i, names, source) for i in range(documents)]
        with atomic(path) as temporary:
            temporary.write_bytes(orjson.dumps(content))
        paths.append(path)
    return paths


def document(number: int, names: Names, source: random.Random) -> dict[str, Any]:
    """One document about entity 1,000,000 + `number`, with sentences, entities and triples."""
    topic = f"{ENTITY}Q{1_000_000 + number}"
    title = names[number]
    text, sentences, entities, triples = "", [], [], []
    for sentence in range(source.randint(2, 7)):
        start = len(text)
        head = title if source.random() < 0.6 else "It"
        annotator = SPOTLIGHT if head == title else "Simple_Coreference"
        subject = _entity(topic, start, head, annotator)
        text += f"{head} {source.choice(VERBS)} "
        other = names.draw(source)
        place = _entity(f"{ENTITY}Q{1 + other}", len(text), names[other], SPOTLIGHT)
        text += names[other]
        entities += [subject, place]
        if source.random() < 0.3:
            year = str(source.randint(1500, 2017))
            text += " in "
            date = _entity(DATE.format(year=year), len(text), year, "Date_Linker")
            entities.append(date)
            text += year
        text += f", as the generated text of {names[source.randrange(names.entities)]} says. "
        sentences.append([start, len(text) - 1])
        if source.random() < AVERAGE_ALIGNMENTS / 4.5:
            relation = 1 + int(source.paretovariate(0.6)) % 640
            for aligner in source.sample(sorted(ALIGNERS), source.choice((1, 1, 2))):
                triples.append(_triple(sentence, subject, relation, place, aligner))
    return {
        "docid": topic,
        "uri": topic,
        "title": f"{title} (generated)",
        "text": text,
        "words_boundaries": _words(text),
        "sentences_boundaries": sentences,
        "entities": entities,
        "triples": triples,
    }


def _entity(uri: str, start: int, surface: str, annotator: str) -> dict[str, Any]:
    bounds = [start, start + len(surface)]
    return {"uri": uri, "boundaries": bounds, "surfaceform": surface, "annotator": annotator}


def _triple(
    sentence: int, subject: dict[str, Any], relation: int, obj: dict[str, Any], aligner: str
) -> dict[str, Any]:
    predicate = {
        "uri": f"{DIRECT}P{relation}",
        "boundaries": None,
        "surfaceform": None,
        "annotator": aligner,
    }
    if aligner == "NoSubject-Triple-aligner":
        subject = {**subject, "boundaries": None, "surfaceform": None, "annotator": aligner}
    return {
        "sentence_id": sentence,
        "subject": subject,
        "predicate": predicate,
        "object": obj,
        "dependency_path": None,
        "confidence": None,
        "annotator": aligner,
    }


def _words(text: str) -> list[list[int]]:
    bounds, start = [], 0
    for word in text.split(" "):
        if word:
            bounds.append([start, start + len(word)])
        start += len(word) + 1
    return bounds
