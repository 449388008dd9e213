"""A generic template made of a property's label, for relations that nobody wrote one for.

It was read by nobody, and not every label makes good English of it: prompts and counts name it
`label`, apart from what was written (docs/papers/attributes.md, Prompts).
"""

import re

import polars as pl

#: the kind of such a template, and the end of its id
LABEL = "label"
ITEM = "http://wikiba.se/ontology#WikibaseItem"
#: what slots of a template are written with
SLOTS = set("[]{}")
#: labels that are predicates already: "has tense", "is pollinated by"
PREDICATE = re.compile(r"(has|is) \w")
#: labels that lack no more than a verb: "capital of", "based on"
OPEN = re.compile(r"\w (after|as|at|by|for|from|in|into|of|on|to|with|within)$")


def template_of(label: str) -> str | None:
    """The sentence with [X] and [Y], the answer last; None for a label that makes none.

    >>> template_of("airline hub")
    'The airline hub of [X] is [Y].'
    >>> template_of("capital of")
    '[X] is capital of [Y].'
    >>> template_of("has tense")
    '[X] has tense [Y].'
    """
    label = " ".join(label.split())
    if not label or set(label) & SLOTS:
        return None
    if PREDICATE.match(label):
        return f"[X] {label} [Y]."
    if OPEN.search(label):
        return f"[X] is {label} [Y]."
    return f"The {label} of [X] is [Y]."


def label_templates(properties: pl.DataFrame) -> dict[str, str]:
    """relation -> template, for every item property with a label.

    `properties` are the rows of properties.rq: property (IRI), datatype (IRI), label (may be null).
    Of several labels the first in order of the alphabet counts.
    """
    items = properties.filter(pl.col("datatype") == ITEM).drop_nulls("label")
    items = items.select(pl.col("property").str.split("/").list.last(), "label")
    texts: dict[str, str] = {}
    for relation, label in items.sort("property", "label").rows():
        if text := template_of(label):
            texts.setdefault(relation, text)
    return texts
