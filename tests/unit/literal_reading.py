"""Find the end of a generated answer, character by character.

A full stop ends an answer if a space and a capital follow and no single letter, listed abbreviation
or word with dots precedes it, or if a word that begins sentences follows; a line end and the end of
the text always end it.
"""

from kgprobe.probes.scoring.fill.reading import ABBREVIATIONS, OPENERS


def word_before(text, place):
    start = place
    while start and (text[start - 1].isalnum() or text[start - 1] in "._"):
        start -= 1
    return text[start:place]


def is_name_dot(word):
    return (
        (len(word) == 1 and word.isalpha())
        or "." in word
        or (word.casefold() in ABBREVIATIONS and word != word.upper())
    )  # fmt: skip


def stop_place(text, finished=True):
    """Return the position of the stop or line end that ends the answer, or None."""
    for place, character in enumerate(text):
        if character == "\n":
            return place
        if character != ".":
            continue
        after = place + 1
        while after < len(text) and text[after].isspace() and text[after] != "\n":
            after += 1
        if after == place + 1 or after == len(text) or not text[after].isupper():
            continue
        if not is_name_dot(word_before(text, place)):
            return place
        end = after
        while end < len(text) and text[end].isalpha():
            end += 1
        unfinished = end == len(text)
        follower = "" if unfinished else text[end]
        if text[after:end] in OPENERS and follower != "." and (finished or not unfinished):
            return place
    return None


def literal_answer(text):
    """Return the text before its end, without a final stop unless the stop belongs to a name."""
    place = stop_place(text)
    kept = text if place is None else text[:place]
    if place is not None and text[place] == ".":
        kept += "."
    kept = kept.strip()
    if not kept.endswith("."):
        return kept
    word = word_before(kept, len(kept) - 1)
    if word.endswith(".."):
        return kept if not word.endswith("...") else kept[:-1]
    if word.endswith("."):
        return kept[:-1].rstrip()
    pieces = word.split(".")
    if len(pieces) > 1 and all(piece.isalpha() and len(piece) < 3 for piece in pieces):
        return kept
    last = pieces[-1]
    if last.casefold() in ABBREVIATIONS and last != last.upper():
        return kept
    return kept[:-1].rstrip()
