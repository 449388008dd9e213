"""Generic templates built from property labels, for relations without a manual template.

Nobody has checked them, and not every label gives good English: prompts and counts mark them as
`label`, as opposed to manual templates (docs/papers/attributes.md, Prompts).
"""

import re

import polars as pl

#: the kind of such templates, and the suffix of their ids
LABEL = "label"
ITEM = "http://wikiba.se/ontology#WikibaseItem"
#: characters of template slots
SLOTS = set("[]{}")
#: labels that already are predicates: "has tense", "was born in", "lives in", "shares border with"
PREDICATE = re.compile(
    r"(are|can|did|does|had|has|have|is|was|were|will) \w|"
    r"[a-z]+[^\Waiu]s (.* )?(after|as|at|by|for|from|in|into|on|to|with|within)$"
)
#: labels that only need a verb: "capital of", "based on"
OPEN = re.compile(r"\w (after|as|at|by|for|from|in|into|of|on|to|with|within)$")
#: names as in programs: "wasBornIn", "isA", "place_of_birth"
CAMEL, SNAKE = re.compile(r"[a-z]{2,}([A-Z][a-z]+)*[A-Z][a-z]*"), re.compile(r"\w+_\w+")


def template_of(label: str) -> str | None:
    """Return a sentence with [X] and, last, [Y]; None if the label is empty or has slot characters.

    >>> template_of("airline hub")
    'The airline hub of [X] is [Y].'
    >>> template_of("capital of")
    '[X] is capital of [Y].'
    >>> template_of("has tense")
    '[X] has tense [Y].'
    >>> template_of("wasBornIn")
    '[X] was born in [Y].'
    """
    if CAMEL.fullmatch(label):
        label = re.sub("([A-Z])", r" \1", label).lower()
    elif SNAKE.fullmatch(label):
        label = label.replace("_", " ")
    label = " ".join(label.split())
    if not label or set(label) & SLOTS:
        return None
    if PREDICATE.match(label):
        return f"[X] {label} [Y]."
    if OPEN.search(label):
        return f"[X] is {label} [Y]."
    return f"The {label} of [X] is [Y]."


def label_templates(properties: pl.DataFrame) -> dict[str, str]:
    """Return relation -> template for every item-valued property with a usable label.

    `properties` are the rows of properties.rq: property (IRI), datatype (IRI), label (may be null).
    If a property has several labels, the alphabetically first usable one counts.
    """
    items = properties.filter(pl.col("datatype") == ITEM).drop_nulls("label")
    items = items.select(pl.col("property").str.split("/").list.last(), "label")
    texts: dict[str, str] = {}
    for relation, label in items.sort("property", "label").rows():
        if text := template_of(label):
            texts.setdefault(relation, text)
    return texts
