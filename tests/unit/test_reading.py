"""The end of a generated answer, against a character-by-character implementation of the rule."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as run
from hypothesis import strategies as st

from kgprobe.probes.scoring.fill.reading import answer, ends_at
from kgprobe.probes.scoring.fill.rows import FillSettings, Names
from kgprobe.probes.scoring.fill.written import DistinctPrompt, _Writer
from tests.unit.literal_reading import literal_answer, stop_place

PIECES = ["J", "St", "Mr.", "D.C", "Paris", "It", "is", "in", "A", "CF", "Jr", ".", "...", " ",
          "\n", "3", "é", "Öl", "(", "'", "The"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris. It is the capital", "Paris"),
        ("Paris. Lyon is", "Paris"),
        ("Paris.", "Paris"),
        ("Paris", "Paris"),
        ("Paris\nLyon", "Paris"),
        ("Paris.\nLyon", "Paris"),
        ("Paris. and Lyon", "Paris. and Lyon"),
        ("No. 5", "No. 5"),
        ("J. R. R. Tolkien", "J. R. R. Tolkien"),
        ("J. R. R. Tolkien. He wrote", "J. R. R. Tolkien"),
        ("E. T. A. Hoffmann", "E. T. A. Hoffmann"),
        ("George W. Bush. In 2001", "George W. Bush"),
        ("Washington, D.C.", "Washington, D.C."),
        ("Washington, D.C. It was founded", "Washington, D.C."),
        ("Washington, D.C.. It was founded", "Washington, D.C."),
        ("Washington, D.C. United", "Washington, D.C. United"),
        ("St. Louis, Missouri. It", "St. Louis, Missouri"),
        ("Mt. Everest", "Mt. Everest"),
        ("Dr. No. The film", "Dr. No"),
        ("Warner Bros. The studio", "Warner Bros."),
        ("Malcolm X. He was", "Malcolm X"),
        ("Elizabeth I. Her reign", "Elizabeth I"),
        ("I Am.... It is", "I Am..."),
        ("Real Madrid CF. It won", "Real Madrid CF"),
        ("the 3.5 million", "the 3.5 million"),
        ("e.g. Paris", "e.g. Paris"),
        ("", ""),
        (".", ""),
        ("\n", ""),
    ],
)
def test_an_answer_ends_where_a_sentence_does(text, expected):
    assert answer(text) == expected == literal_answer(text)


def test_a_text_that_may_continue_has_not_ended():
    assert ends_at("Paris. I", final=False) == 5
    assert ends_at("Paris. ", final=False) is None
    assert ends_at("Paris.", final=False) is None
    # "It" may become "Itzhak"
    assert ends_at("J. It", final=False) is None
    assert ends_at("J. It", final=True) == 1
    assert ends_at("J. It is", final=False) == 1


def test_other_stops_end_the_answer_at_their_position():
    assert answer("Rome, Italy. It", ",") == "Rome"
    assert answer("Rome. It\nis", "") == "Rome. It\nis"
    assert answer("Rome.", "\n") == "Rome."


@run(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_the_end_equals_the_character_by_character_rule(text):
    for final in (True, False):
        assert ends_at(text, final=final) == stop_place(text, final)
    assert answer(text) == literal_answer(text)


#: a special token without a role, as chat templates have
END = "<|end|>"
PIECES_OF_A_MODEL = [" J", ".", " R", " Tolkien", " It", " was", " Washington", ",", " D", ".C",
                     "\n", " the", " He", " The", " In", " and", " on", END]  # fmt: skip


class Script:
    """A stand-in model: `p` gives probabilities of pieces after a text; others share the rest."""

    def __init__(self, p):
        self.p, self.rows = p, [()]

    @property
    def logits(self):
        return torch.tensor([self.row(ids) for ids in self.rows]).log()

    def row(self, ids):
        own = self.p("".join(PIECES_OF_A_MODEL[i] for i in ids))
        rest = (1 - sum(own.values())) / (len(PIECES_OF_A_MODEL) - len(own))
        return [own.get(piece, rest) for piece in PIECES_OF_A_MODEL]

    def advance(self, parents, tokens):
        self.rows = [(*self.rows[p], t) for p, t in zip(parents, tokens, strict=True)]

    def fork(self):
        return copy.copy(self)


def written(p, k=1):
    """Return [(parsed text, raw text, log p)] of the best phrases that a script generates."""
    special = {PIECES_OF_A_MODEL.index(END): SimpleNamespace(special=True)}
    tokenizer = SimpleNamespace(
        all_special_ids=[], added_tokens_decoder=special,
        decode=lambda ids, **_: "".join(PIECES_OF_A_MODEL[i] for i in ids if i not in special),
    )  # fmt: skip
    spec = SimpleNamespace(model="m")
    model = SimpleNamespace(
        loaded=SimpleNamespace(tokenizer=tokenizer, spec=spec), step=lambda name, compute: compute()
    )
    names = Names(tokenizer)
    writer = _Writer(model, FillSettings(k=k, beams=2), 9, names)
    prompt = DistinctPrompt(np.zeros(1, dtype=np.int64), "item", {0: [0]})
    _, _, phrases = writer.write(Script(p), [prompt])[0][0]
    return list(phrases)


@pytest.mark.parametrize(
    ("pieces", "text", "raw", "counted"),
    [
        ([" J", ".", " R", ".", " Tolkien", ".", " It"], "J. R. Tolkien", "J. R. Tolkien. It", 6),
        ([" Washington", ",", " D", ".C", ".", " It", " was"], "Washington, D.C.",
         "Washington, D.C. It was", 6),
        ([" Tolkien", ".", "\n"], "Tolkien", "Tolkien.", 2),
        ([" Tolkien", END, " the"], "Tolkien", "Tolkien", 2),
        ([" Tolkien", " the", ".", " It"], "Tolkien the", "Tolkien the. It", 3),
    ],
)  # fmt: skip
def test_generation_continues_through_dots_of_a_name(pieces, text, raw, counted):
    following = {"".join(pieces[:i]): {piece: 0.9} for i, piece in enumerate(pieces)}
    ((found, said, logprob),) = written(lambda so_far: following.get(so_far, {" the": 0.9}))
    assert (found, said) == (text, raw)
    # a token that only confirms the stop is not counted
    assert logprob == pytest.approx(counted * np.log(0.9), abs=0.03)


def test_many_possible_next_sentences_do_not_lower_an_answer():
    """Ten pieces are equally likely after the stop; the longer phrase has a likelier piece."""
    following = {
        "": {" Tolkien": 0.9},
        " Tolkien": {".": 0.5, ",": 0.4},
        " Tolkien.": dict.fromkeys([" It", " He", " The", " In", " Washington"], 0.19),
    }
    found = written(lambda so_far: following.get(so_far, {" and": 0.99}), k=2)
    assert found[0][:2] == ("Tolkien", "Tolkien. It")
    assert found[0][2] == pytest.approx(np.log(0.9 * 0.5), abs=0.02)


def test_an_initial_does_not_end_an_answer():
    """After "J." a name has p .9; a nearly impossible sentence does not make "J" an answer."""
    following = {"": {" J": 0.9}, " J": {".": 0.9}, " J.": {" Tolkien": 0.9, " It": 0.05},
                 " J. Tolkien": {".": 0.9}, " J. Tolkien.": {" It": 0.9}}  # fmt: skip
    found = written(lambda so_far: following.get(so_far, {" was": 0.9}), k=2)
    assert found[0][0] == "J. Tolkien"
