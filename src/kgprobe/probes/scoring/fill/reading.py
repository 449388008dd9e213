"""Where a written answer ends in generated text, whatever kind of model wrote it.

    "Paris. It is the capital"            Paris
    "J. R. R. Tolkien\\nJ. R. R. ..."      J. R. R. Tolkien
    "Washington, D.C. It was founded"     Washington, D.C.

A full stop ends an answer when a blank and a capital follow and what stands before it cannot be a
part of a name: a single letter (`J.`), a listed abbreviation (`St.`) or a word with dots in it
(`D.C.`). After those a name may go on, and it ends only where a word follows that begins sentences
(`Malcolm X. It ...`): 98.9 % of 59,691 labels of Wikidata survive without that exception, 99.9 with
it. A line end and the end of the text always end it.
"""

import re

STOPS = ".\n"
#: Words after whose dot a name or title goes on, case folded; in capitals they are names (SS, CF).
ABBREVIATIONS = frozenset(
    "st ste sta sto ss sct mt mts ft pt dr drs prof mr mrs ms mme mlle messrs rev hon gov rep "
    "pres gen col maj capt cpt cmdr lt sgt adm msgr jr sr esq bros inc ltd co corp cie vs "
    "vol vols op ave blvd rd sq subg subsp subfam sect ser ssp sp spp var cf ca hrs ph phil "
    "séc".split()
)
#: Words that begin a sentence and no second half of a name.
OPENERS = frozenset(
    "It Its He She They We You His Her Hers Their Our Your My The A An This That These Those There "
    "Here In On At By For From With Within Without During After Before Since Until While When "
    "Where Who Which What Why How If As Although Though Because But And Or So Yet Then Thus "
    "However Also Both Some Many Most Other Another Each Is Was Are Were".split()
)
_DOT = re.compile(r"\.(?=[^\S\n]+(?P<word>[^\W\d_]+)(?P<after>.?))")
_WORD = re.compile(r"[\w.]+$")


def ends_at(text: str, stops: str = STOPS, final: bool = True) -> int | None:
    """Place of the character that ends the answer, None where nothing does before the text's end.

    A dot among `stops` ends it by the rule above, other characters wherever they stand. With
    `final` false the text may go on, so that its last word may be unfinished.

    >>> ends_at("Paris. It"), ends_at("St. Louis, Mo"), ends_at("Malcolm X. It", final=False)
    (5, None, None)
    """
    places = [text.find(stop) for stop in stops if stop != "." and stop in text]
    dots = _DOT.finditer(text) if "." in stops else ()
    places += [dot.start() for dot in dots if _closes(text, dot, final)]
    return min(places, default=None)


def answer(text: str, stops: str = STOPS) -> str:
    """The answer that a generated text begins with, without the full stop that closes it.

    The dot of an abbreviation stays, also where it closes the sentence.

    >>> answer("Washington, D.C. It is"), answer("Malcolm X. He"), answer("Paris.\\nRome")
    ('Washington, D.C.', 'Malcolm X', 'Paris')
    """
    end = ends_at(text, stops)
    kept = text if end is None else text[: end + (text[end] == ".")]
    kept = kept.strip()
    if "." in stops and kept.endswith(".") and not _is_part_of_name(kept[:-1]):
        return kept[:-1].rstrip()
    return kept


def _closes(text: str, dot: re.Match[str], final: bool) -> bool:
    """Whether a dot that a blank and a word follow ends an answer."""
    word, after = dot["word"], dot["after"]
    if not word[0].isupper():
        return False
    if not _is_within_name(text[: dot.start()]):
        return True
    # "E. T. A. Hoffmann": what a dot follows is an initial
    return word in OPENERS and after != "." and bool(after or final)


def _is_within_name(before: str) -> bool:
    """Whether a dot after this text may stand within a name."""
    word = _last(before)
    return (len(word) == 1 and word.isalpha()) or "." in word or _abbreviated(word)


def _is_part_of_name(before: str) -> bool:
    """Whether a dot after this text belongs to the name: an abbreviation's, an ellipsis."""
    dots = len(before) - len(before.rstrip("."))
    if dots:
        return dots == 2
    pieces = _last(before).split(".")
    spelled = len(pieces) > 1 and all(len(p) <= 2 and p.isalpha() for p in pieces)
    return spelled or _abbreviated(pieces[-1])


def _abbreviated(word: str) -> bool:
    return word.casefold() in ABBREVIATIONS and not word.isupper()


def _last(before: str) -> str:
    match = _WORD.search(before)
    return match[0] if match else ""
