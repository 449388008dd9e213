"""Match a generated text to a gold: equality after named normalization rules, never containment.

The rules are applied in sequence to the text and to the name; the match is named after the first
rule that makes them equal, so that each rule is credited with the matches that it adds.

    verbatim   Paris = Paris
    blanks     equal after Unicode's compatibility forms (NFKC) and white space
    stop       final punctuation
    case       PARIS = Paris, Straße = STRASSE
    accents    Zurich = Zürich, Lodz = Łódź
    quotes     Côte d’Ivoire = Côte d'Ivoire, "Paris" = Paris
    articles   the Netherlands = Netherlands
    initials   J.K. Rowling = J. K. Rowling, U.S. = US
    dates      January 22, 1970 = 22 January 1970 = 1970-01-22
    aliases    another name that the source has for the gold
"""

import contextlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache

ARTICLES = ("the ", "a ", "an ")
QUOTES = "\"'"
FINAL = ".,;:!?…"
VERBATIM, ALIASES = "verbatim", "aliases"
_ONE_QUOTE = str.maketrans(
    {**dict.fromkeys("’‘‚‛ʼʹ′`´", "'"), **dict.fromkeys("“”„‟«»″", '"')},
)
#: Letters with a stroke and ligatures, which have no decomposition in Unicode.
_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "þ": "th", "æ": "ae", "œ": "oe"}
)
_INITIALS = re.compile(r"(?<![^\W_])([^\W\d_](?:\.\s*|\s+))+[^\W\d_](?![^\W_])\.?")
_INITIAL = re.compile(r"(?<![^\W_])([^\W\d_])\.")
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS)
_DATES = tuple(
    re.compile(rf"^(?:{form})$")
    for form in (
        rf"(?P<d>\d\d?)(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH}|sept)\.?,? (?P<y>\d{{3,4}})",
        rf"(?P<m>{_MONTH}|sept)\.? (?P<d>\d\d?)(?:st|nd|rd|th)?,? (?P<y>\d{{3,4}})",
        r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)",
    )
)


def _blanks(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _stop(text: str) -> str:
    return text.rstrip(FINAL).strip()


def _accents(text: str) -> str:
    """Remove diacritical marks; the vowel signs of other scripts stay."""
    apart = unicodedata.normalize("NFD", text.translate(_LETTERS))
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", apart))


def _quotes(text: str) -> str:
    """Unify apostrophes and quotation marks, and strip outer ones with final punctuation."""
    plain, before = text.translate(_ONE_QUOTE), ""
    while before != plain:
        before = plain
        plain = plain.strip(QUOTES).rstrip(FINAL).strip()
    return plain


def _articles(text: str) -> str:
    for article in ARTICLES:
        if text.startswith(article) and text[len(article) :].strip():
            return _quotes(text[len(article) :].strip())
    return text


def _initials(text: str) -> str:
    """Join runs of initials without periods and spaces; remove the period of a lone initial."""
    joined = _INITIALS.sub(lambda run: re.sub(r"[\s.]", "", run[0]), text)
    return _INITIAL.sub(r"\1", joined)


def _dates(text: str) -> str:
    """Format a date of day, month and year as year-month-day; return anything else unchanged."""
    for form in _DATES:
        if match := form.match(text):
            month = match["m"]
            number = int(month) if month.isdigit() else _number(month)
            with contextlib.suppress(ValueError):  # no such day
                return date(int(match["y"]), number, int(match["d"])).isoformat()
    return text


def _number(month: str) -> int:
    return 1 + next(i for i, name in enumerate(_MONTHS) if name.startswith(month))


RULES: dict[str, Callable[[str], str]] = {
    "blanks": _blanks,
    "stop": _stop,
    "case": str.casefold,
    "accents": _accents,
    "quotes": _quotes,
    "articles": _articles,
    "initials": _initials,
    "dates": _dates,
}
#: Names of all kinds of match, in the order of counting.
RULE_NAMES = (VERBATIM, *RULES, ALIASES)


@lru_cache(maxsize=1 << 16)
def _forms(text: str) -> tuple[str, ...]:
    """Return a text as it is, then after each rule."""
    forms = [text]
    for rule in RULES.values():
        forms.append(rule(forms[-1]))
    return tuple(forms)


def normalized(text: str) -> str:
    """Normalize a text by all rules; a text of punctuation only is normalized by the first.

    >>> normalized(" The  'United Kingdom'. "), normalized("J. K. Rowling"), normalized(" !!!")
    ('united kingdom', 'jk rowling', '!!!')
    """
    return _forms(text)[-1] or _forms(text)[1]


def find_rule(text: str, label: str, aliases: Iterable[str] = ()) -> str:
    """Return the first of RULE_NAMES by which a text equals a gold, "" for none or an empty text.

    >>> find_rule("zurich", "Zürich"), find_rule("the UK", "United Kingdom", ["UK"])
    ('accents', 'aliases')
    """
    if not normalized(text):
        return ""
    forms, gold = _forms(text), _forms(label)
    for name, one, other in zip(RULE_NAMES, forms, gold, strict=False):
        if one and one == other:
            return name
    return ALIASES if any(normalized(text) == normalized(alias) for alias in aliases) else ""


def names(label: str, entity: str, aliases: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the label of an entity and its aliases (entity id -> other names), without duplicates.

    >>> names("Eswatini", "Q1050", {"Q1050": ["Swaziland", "Eswatini"]})
    ['Eswatini', 'Swaziland']
    """
    return list(dict.fromkeys([label, *aliases.get(entity, ())]))


def matched(text: str, labels: Iterable[str]) -> bool:
    """Return whether a text equals one of the labels after all rules; an empty text never does."""
    plain = normalized(text)
    return bool(plain) and any(plain == normalized(label) for label in labels)


def contained(text: str, labels: Iterable[str]) -> bool:
    """Return whether a text contains a label as whole words: counted, but never a match."""
    padded = f" {' '.join(_words(text))} "
    return any(f" {' '.join(w)} " in padded for label in labels if (w := _words(label)))


def first_match(texts: Sequence[str], labels: Iterable[str]) -> int:
    """Return the rank (from 1) of the first text that matches, or 0."""
    golds = {normalized(label) for label in labels} - {""}
    return next((n for n, text in enumerate(texts, 1) if normalized(text) in golds), 0)


def _words(text: str) -> list[str]:
    kept = (c if c.isalnum() else " " for c in normalized(text))
    return "".join(kept).split()
