"""When a generated text is the gold: equality after normalisation, never containment."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

ARTICLES = ("the ", "a ", "an ")
QUOTES = "\"'`“”‘’«»„‚"
FINAL = ".,;:!?…"
#: What a text may equal: the label of the gold (the paper's), or one of its aliases, too.
MATCHES = ("label", "aliases")


def normalised(text: str) -> str:
    """NFKC, case fold, white space collapsed; quotes around, final punctuation, article taken off.

    >>> normalised(" The  'United Kingdom'. ")
    'united kingdom'
    """
    found = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    before = ""
    while before != found:
        before = found
        found = found.strip(QUOTES).rstrip(FINAL).strip()
    for article in ARTICLES:
        if found.startswith(article) and found[len(article) :].strip():
            return found[len(article) :].strip(QUOTES + " ")
    return found


def names(label: str, entity: str, aliases: Mapping[str, Sequence[str]]) -> list[str]:
    """The label of an entity, then its aliases (entity id -> other names), each once.

    >>> names("Eswatini", "Q1050", {"Q1050": ["Swaziland", "Eswatini"]})
    ['Eswatini', 'Swaziland']
    """
    return list(dict.fromkeys([label, *aliases.get(entity, ())]))


def matched(text: str, labels: Iterable[str]) -> bool:
    """Whether a text equals one of the labels after normalisation; an empty text never does."""
    own = normalised(text)
    return bool(own) and any(own == normalised(label) for label in labels)


def contained(text: str, labels: Iterable[str]) -> bool:
    """Whether a label stands inside a text as whole words: counted, never a match."""
    own = f" {' '.join(_words(text))} "
    return any(f" {' '.join(w)} " in own for label in labels if (w := _words(label)))


def first_match(texts: Sequence[str], labels: Iterable[str]) -> int:
    """Rank (from 1) of the first text that matches, 0 when none does."""
    golds = list(labels)
    return next((n for n, text in enumerate(texts, 1) if matched(text, golds)), 0)


def _words(text: str) -> list[str]:
    kept = (c if c.isalnum() else " " for c in normalised(text))
    return "".join(kept).split()
