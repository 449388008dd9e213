"""Effects of the answer distribution on accuracy: option priors, permuted golds, skewed golds.

A prior is the score that a model gives an option regardless of the question. Subtracting its mean
over other questions uses their texts and no label, and it helps where answers are balanced: there a
model that favors some options is wrong more often than necessary. (Subtracting the mean over all
other questions gives the same ranking as subtracting the mean over all: nothing is held out.)

Permuted golds show the accuracy due to the distributions alone. With the golds of a relation
permuted, the expected accuracy is the sum over options of (fraction of questions with this answer)
times (fraction of questions with this gold), whatever the model knows.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgprobe.sampling import hash_key

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FOLDS = 5
PERMUTATIONS = 200


def folds(subjects: Sequence[str], seed: int, relation: str, number: int = FOLDS) -> Ints:
    """Assign a fold to each question: subjects are kept whole, folds differ by at most one subject.

    Subjects are dealt out in turn, ordered by their keys under `seed`, so that two subjects are
    never in one fold while another fold is empty.
    """
    order = sorted(set(subjects), key=lambda s: (hash_key(seed, "prior fold", relation, s), s))
    place = {subject: i % number for i, subject in enumerate(order)}
    return np.array([place[subject] for subject in subjects], dtype=np.int64)


def prior_corrected(scores: Floats, fold: Ints) -> Floats:
    """Subtract from each option's log-probabilities its mean over the other folds.

    `scores` (questions x options): NaN means that a question does not offer the option. The result
    is also NaN if no question of another fold offers it: a missing prior is not a prior of zero.
    """
    corrected = np.full(scores.shape, np.nan)
    offered = ~np.isnan(scores)
    sums = np.where(offered, scores, 0.0)
    for number in np.unique(fold):
        inside = fold == number
        with np.errstate(invalid="ignore"):  # 0 of 0
            prior = sums[~inside].sum(axis=0) / offered[~inside].sum(axis=0)
        corrected[inside] = scores[inside] - prior
    return corrected


def permute_golds(
    answered: Floats, golds: Floats, seed: int, draws: int = PERMUTATIONS
) -> tuple[Floats, float]:
    """Return (sum of hits in each permutation of a relation's golds, its expectation).

    `answered` (questions x options): 1 at the top-ranked option, split among ties and among the
    templates of a question; `golds` (questions x options): 1 at each correct option. Questions keep
    their answers and get each other's golds. Raises ValueError for shapes that differ or are empty.
    """
    if answered.shape != golds.shape or not len(answered):
        raise ValueError(f"answers {answered.shape} and golds {golds.shape} of no, or other, items")
    generator = np.random.default_rng(seed)
    orders = generator.permuted(np.tile(np.arange(len(golds)), (draws, 1)), axis=1)
    question, option = np.nonzero(answered)
    # sums, not matrix products, whose order of addition depends on the number of cores
    hits = (golds[orders[:, question], option] * answered[question, option]).sum(axis=1)
    expected = float((answered.sum(axis=0) * golds.sum(axis=0)).sum()) / len(golds)
    return np.asarray(hits, dtype=np.float64), expected


def zipf_sample(answers: Sequence[str], ids: Sequence[str], seed: int, relation: str) -> Bools:
    """Subsample the questions of a relation: the r-th answer keeps 1/r of its questions.

    Answers are ranked, and their questions chosen, by keys under `seed`. Counts are rounded down
    along their running sum, so that rounding loses less than one question of a relation.
    """

    def key(kind: str, name: str) -> tuple[int, str]:
        return hash_key(seed, kind, relation, name), name

    kept = np.zeros(len(ids), dtype=bool)
    exact = 0.0
    for rank, answer in enumerate(sorted(set(answers), key=lambda a: key("zipf answer", a)), 1):
        rows = [i for i, a in enumerate(answers) if a == answer]
        rows.sort(key=lambda i: key("zipf item", ids[i]))
        before, exact = exact, exact + len(rows) / rank
        # a sum of fractions that equals a whole number may fall slightly below it
        kept[rows[: int(exact + 1e-9) - int(before + 1e-9)]] = True
    return kept
