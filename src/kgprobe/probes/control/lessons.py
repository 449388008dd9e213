"""What a control model is taught, one fact at a time; apart from the rows, which need torch."""

from typing import NamedTuple


class Lesson(NamedTuple):
    """A fact in words: relation id, label of the subject, label of the object."""

    relation: str
    subject: str
    object: str
