"""Facts that control models are trained on, in a module that does not import torch."""

from typing import NamedTuple


class TrainingFact(NamedTuple):
    """A fact in words: relation id, label of the subject, label of the object."""

    relation: str
    subject: str
    object: str
