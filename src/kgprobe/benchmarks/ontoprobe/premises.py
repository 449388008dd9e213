"""Premises of OntoProbe's rules in six forms, to separate inference from a repeated word (ours).

P1 and P2 of a row, here of rdfs9; X' is another pseudoword:

    none             (the empty prompt)
    true             A dog is a mammal . X is a dog .
    irrelevant       A river is a stream . X' is a river .       another row's, about another thing
    counterfactual   A dog is a stream . X is a dog .            a wrong class or property
    shuffled names   A song is a stream . X' is a planet .       every name that of another row
    name only        mammal .                                    the gold's name, without a relation
"""

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kgprobe.sampling import hash_key

#: form -> its description in tables
FORMS = {
    "none": "no premise: the empty prompt, one text for all rows of a rule",
    "true": "both premises of the row, from which the gold follows",
    "irrelevant": "both premises of another row, about another pseudoword: nothing follows",
    "counterfactual": "the row's premises with a wrong class or property in place of the gold",
    "shuffled names": "the premises' wording with every name, the pseudoword too, that of another "
    "row, each drawn apart: nothing follows",
    "name only": "the finest gold's name without the relation: nothing follows, a word is repeated",
}
#: forms from which nothing follows and that name no gold: they should change nothing
EMPTY = ("irrelevant", "shuffled names")


@dataclass(frozen=True)
class Premises:
    """The premises of one row: P1 cut around its finest gold, P2, and of every gold, finest first,
    its candidate and its name in a premise."""

    item: str
    subject: str
    p1: tuple[str, str, str]
    p2: str
    names: Sequence[tuple[str, str]]

    def is_named_in(self, *texts: str) -> bool:
        """Whether any gold of the row is named in one of the texts."""
        return any(occurs_in(n, text) for pair in self.names for n in pair for text in texts)


@dataclass(frozen=True)
class Formed:
    """One row with premises in one form; "" where one is left out. `foreign`: P2 speaks of another
    pseudoword than the conclusion."""

    item: str
    form: str
    draw: int
    p1: str
    p2: str
    foreign: bool = False


#: rows beyond the number of draws, of which some will not go with each other
SPARE = 8
#: what a form takes of another row -> the texts of it that are read, which must name no gold
READ: Mapping[str, Callable[[Premises], Sequence[str]]] = {
    "row": lambda other: [*other.p1, other.p2],
    "wrong": lambda other: [other.p1[1]],
    "subject": lambda other: [other.p1[0], other.p1[2]],
    "object": lambda other: [other.p1[1]],
    "second": lambda other: [other.p2],
}


def parse_premises(item: str, subject: str, meta: str) -> Premises:
    """The premises of an item of reasoning."""
    fields = json.loads(meta)
    return Premises(item, subject, tuple(fields["p1_parts"]), fields["p2"], fields["names"])


def occurs_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as whole words, in any case.

    >>> occurs_in("work", "A song is a musical work ."), occurs_in("art", "An artist paints .")
    (True, False)
    """
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE))


def build_forms(rows: Sequence[Premises], draws: int, seed: int, rule: str) -> list[Formed]:
    """Every row of a rule in every form, `draws` times; what a form takes from other rows is taken
    in the order of a hash of seed, rule, item and the other's item. A form for which no other row
    will do (none without the row's golds) is left out."""
    forms = []
    for row in rows:
        others = [one for one in rows if one.subject != row.subject]
        turns = {}
        for role, texts in READ.items():
            key = partial(hash_key, seed, rule, row.item, role)
            order = sorted(others, key=lambda o: (key(o.item), o.item))
            fitting = (o for o in order if not row.is_named_in(*texts(o)))
            # more than draws: the three of shuffled names must differ
            turns[role] = list(itertools.islice(fitting, draws + SPARE))
        for draw in range(draws):
            forms += _of_draw(row, turns, draw)
    return forms


def _of_draw(row: Premises, turns: Mapping[str, Sequence[Premises]], draw: int) -> list[Formed]:
    """The forms of one row in one draw."""
    first, _, last = row.p1
    texts = {"none": ("", ""), "true": ("".join(row.p1), row.p2)}
    texts["name only"] = (f"{row.names[0][1]} .", "")
    if turns["row"]:
        other = turns["row"][draw % len(turns["row"])]
        texts["irrelevant"] = ("".join(other.p1), other.p2)
    if turns["wrong"]:
        wrong = turns["wrong"][draw % len(turns["wrong"])].p1[1]
        texts["counterfactual"] = (f"{first}{wrong}{last}", row.p2)
    if apart := _apart(turns, draw):
        one, two, three = apart
        texts["shuffled names"] = (f"{one.p1[0]}{two.p1[1]}{one.p1[2]}", three.p2)
    # those from which nothing follows are about another pseudoword
    return [Formed(row.item, form, draw, *p, form in EMPTY) for form, p in texts.items()]


def _apart(turns: Mapping[str, Sequence[Premises]], draw: int) -> list[Premises]:
    """The rows that lend P1's two names and P2's: three, so that the premises share no name, the
    second with another gold than the first, so that P1 is not true. Empty where there are none."""
    rows: list[Premises] = []
    for role in ("subject", "object", "second"):
        left = [o for o in turns[role] if all(o.subject != other.subject for other in rows)]
        if role == "object":
            left = [o for o in left if o.p1[1] != rows[0].p1[1]]
        if not left:
            return []
        rows.append(left[draw % len(left)])
    return rows
