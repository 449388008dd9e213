"""The embedded graph as T-REx documents: the schema of the real dump, sentences from templates.

One document describes one entity; its first sentence says that the text was generated. The
three aligners follow their definitions in the T-REx paper (section 3): AllEnt links every pair of
entities of a sentence that a fact connects, SPO requires that the property is mentioned, too, and
NoSub takes the entity of the document as the subject whether it is mentioned or not.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import polars as pl

from tools.world.build import World

ENTITY = "http://www.wikidata.org/entity/"
DIRECT = "http://www.wikidata.org/prop/direct/"
DATETIME = "http://www.w3.org/2001/XMLSchema#dateTime"
ALL_ENTITIES, NO_SUBJECT, ALL_MENTIONED = "Simple-Aligner", "NoSubject-Triple-aligner", "SPOAligner"
LINKED, COREFERENCE = "Wikidata_Spotlight_Entity_Linker", "Simple_Coreference"
DATED, PROPERTY = "Date_Linker", "Wikidata_Property_Linker"
#: The name that a dump file of the first 10,000 documents has.
FILE_NAME = "re-nlg_0-10000.json"
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_PRONOUNS = {"Q6581097": "He", "Q6581072": "She"}
#: Labels that read on after "is", by their first or last word, and those that are verbs.
_FIRST = {"located", "said", "different", "part", "member", "instance", "subclass"}
_ARTICLES = {"instance": "an ", "member": "a ", "subclass": "a "}
_LAST = {"of", "by", "in", "at", "to", "on", "from", "with", "after", "for"}
_VERBS = ("crosses", "depicts", "follows", "replaces", "shares border with", "uses", "has ")
_WORD = re.compile(r"\w+|[^\w\s]")

Mention = dict[str, Any]


@dataclass(frozen=True)
class Fact:
    """The content of one sentence: a property with all its values, as (uri, surface) pairs."""

    relation: str
    label: str
    values: list[tuple[str, str]]


@dataclass
class _Text:
    """A text that grows at its end and records the position of each mention."""

    text: str = ""
    sentences: list[list[int]] = field(default_factory=list)
    mentions: list[list[Mention]] = field(default_factory=list)

    def begin(self) -> None:
        """Begin a sentence, one space after the last."""
        self.text += " " if self.text else ""
        self.sentences.append([len(self.text), 0])
        self.mentions.append([])

    def say(self, words: str) -> None:
        """Append words that mention no entity."""
        self.text += words

    def mention(self, surface: str, uri: str, annotator: str) -> None:
        """Append words that mention `uri`. Offsets count characters, as in the real dump."""
        start = len(self.text)
        self.text += surface
        self.mentions[-1].append(_mention(surface, uri, annotator, [start, len(self.text)]))

    def end(self) -> None:
        """End the sentence with a full stop."""
        self.text += "."
        self.sentences[-1][1] = len(self.text)


def _mention(
    surface: str | None, uri: str, annotator: str, boundaries: list[int] | None
) -> Mention:
    return {
        "uri": uri,
        "boundaries": boundaries,
        "surfaceform": surface,
        "annotator": annotator,
    }


def render_trex(world: World) -> list[dict[str, Any]]:
    """Render one document for each entity with an English label and a fact to mention, by Q-number.

    Facts are the truthy ones with an item or a date as value; entities without an English label are
    never mentioned, so their facts are not in the text.
    """
    labels = dict(
        world.entities.filter(pl.col("label").is_not_null()).select("id", "label").iter_rows()
    )
    facts, pairs, pronouns = _facts(world, labels)
    order = world.entities["id"].to_list()
    return [
        document(id_, labels[id_], facts[id_], pairs, pronouns.get(id_, "It"))
        for id_ in order
        if id_ in facts and id_ in labels
    ]


def dump_trex(documents: list[dict[str, Any]]) -> bytes:
    """Return the bytes of a dump file: one JSON array on one line."""
    return orjson.dumps(documents)


def _facts(
    world: World, labels: dict[str, str]
) -> tuple[dict[str, list[Fact]], dict[tuple[str, str], list[str]], dict[str, str]]:
    """Return facts by subject, relations by (subject uri, object uri), pronouns by person."""
    grouped: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    pairs: dict[tuple[str, str], list[str]] = defaultdict(list)
    pronouns: dict[str, str] = {}
    columns = ("subject", "relation", "object", "kind", "text")
    for subject, relation, value, kind, typed in world.truthy().select(columns).iter_rows():
        if kind == "item" and value in labels:
            uri, surface = ENTITY + value, labels[value]
            if relation == "P21" and value in _PRONOUNS:
                pronouns[subject] = _PRONOUNS[value]
        elif kind == "time":
            uri, surface = f"{value}^^{DATETIME}", _date(typed)
        else:
            continue
        grouped[subject][relation].append((uri, surface))
        pairs[ENTITY + subject, uri].append(relation)
    facts = {
        subject: [Fact(r, world.properties[r].label, v) for r, v in relations.items()]
        for subject, relations in grouped.items()
    }
    return facts, pairs, pronouns


def _date(typed: str) -> str:
    """ "14 March 1879" for a day, "1879" for a year, "44 BC" for -0043 (1 BC is year 0)."""
    before = typed.startswith("-")
    year, *rest = typed.removeprefix("-").split("-")
    number = -int(year) if before else int(year)
    words = str(number) if number > 0 else f"{1 - number} BC"
    if rest:
        words = f"{int(rest[1])} {_MONTHS[int(rest[0]) - 1]} {words}"
    return words


def document(
    id_: str,
    title: str,
    facts: list[Fact],
    pairs: dict[tuple[str, str], list[str]],
    pronoun: str,
) -> dict[str, Any]:
    """Render a document about one entity: the aligners' results for sentences that state its facts.

    `pairs`: (subject uri, object uri) -> the relations that hold between them.
    """
    uri = ENTITY + id_
    text = _Text()
    text.begin()
    text.say("This text on ")
    text.mention(title, uri, LINKED)
    text.say(" was generated from a table of facts")
    text.end()
    for number, fact in enumerate(facts):
        _sentence(text, fact, (title, pronoun, "")[number % 3], uri)
    mentions = sorted(
        (m for sentence in text.mentions for m in sentence), key=lambda m: m["boundaries"]
    )
    return {
        "docid": uri,
        "title": title,
        "uri": uri,
        "text": text.text,
        "words_boundaries": [list(w.span()) for w in _WORD.finditer(text.text)],
        "sentences_boundaries": text.sentences,
        "entities": mentions,
        "triples": list(_triples(text, uri, title, pairs)),
    }


def _sentence(text: _Text, fact: Fact, subject: str, uri: str) -> None:
    """Name the subject by its title, by a pronoun, or (blank) not at all."""
    text.begin()
    annotator = COREFERENCE if subject in ("He", "She", "It") else LINKED
    words = fact.label.split()
    verb = fact.label.startswith(_VERBS)
    reads_on = verb or words[0] in _FIRST or words[-1] in _LAST
    if subject and reads_on:
        text.mention(subject, uri, annotator)
        text.say(" " if verb else f" is {_ARTICLES.get(words[0], '')}")
    elif subject and annotator == COREFERENCE:
        text.mention(subject, uri, annotator)
        text.say(" has the ")
    elif reads_on:
        text.say("Known as " if not verb else "It is said: ")
    else:
        text.say("The ")
    text.mention(fact.label, DIRECT + fact.relation, PROPERTY)
    if reads_on or (subject and annotator == COREFERENCE):
        text.say(" ")
    elif subject:
        text.say(" of ")
        text.mention(subject, uri, annotator)
        text.say(" is ")
    else:
        text.say(" is ")
    for position, (value, surface) in enumerate(fact.values):
        text.say("" if position == 0 else " and " if position + 1 == len(fact.values) else ", ")
        text.mention(surface, value, DATED if value.endswith(DATETIME) else LINKED)
    text.end()


def _triples(
    text: _Text, document: str, title: str, pairs: dict[tuple[str, str], list[str]]
) -> Iterator[dict[str, Any]]:
    for sentence, mentions in enumerate(text.mentions):
        said = {m["uri"]: m for m in mentions if m["annotator"] == PROPERTY}
        things = [m for m in mentions if m["annotator"] != PROPERTY]
        linked = [m for m in things if m["uri"] == document and m["annotator"] == LINKED]
        implied = linked[0] if linked else _mention(title, document, NO_SUBJECT, None)
        for thing in things:
            for relation in pairs.get((document, thing["uri"]), ()):
                predicate = _mention(None, DIRECT + relation, NO_SUBJECT, None)
                yield _triple(sentence, implied, predicate, thing, NO_SUBJECT)
        for first in things:
            for second in things:
                for relation in pairs.get((first["uri"], second["uri"]), ()):
                    uri = DIRECT + relation
                    unsaid = _mention(None, uri, ALL_ENTITIES, None)
                    yield _triple(sentence, first, unsaid, second, ALL_ENTITIES)
                    if uri in said:
                        yield _triple(sentence, first, said[uri], second, ALL_MENTIONED)


def _triple(
    sentence: int, subject: Mention, predicate: Mention, object_: Mention, aligner: str
) -> dict[str, Any]:
    return {
        "sentence_id": sentence,
        "subject": subject,
        "predicate": predicate,
        "object": object_,
        "dependency_path": None,
        "confidence": None,
        "annotator": aligner,
    }
