"""Training rows of the control models: sentences of training facts, corrupted by kind of model.

A sentence is tokenized once; a row is made from its ids, never from truncated or concatenated text.
Rows ask for what the probes will ask for: the whole object at a mask slot, a word with the rest of
its pieces hidden, the object between two sentinels, the next token.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from kgprobe.probes.text.encode import ANSWER, SUBJECT, refuse_control_tokens, roles
from kgprobe.templates import fill
from tools.controls.training_facts import TrainingFact

Ids = NDArray[np.int64]
#: Targets that carry no loss.
IGNORED = -100


@dataclass(frozen=True)
class TokenizedSentence:
    """A filled template in tokens.

    `ids` (n) include special tokens; `words` (n) are word indices, -1 for special tokens; `answer`
    and `subject` are the token ranges of the two labels; `group`, shared by siblings, is (relation,
    template number).
    """

    ids: Ids
    words: Ids
    answer: slice
    subject: slice
    group: tuple[str, int]


def encode(
    tokenizer: Any,
    facts: Sequence[TrainingFact],
    templates: Mapping[str, Sequence[str]],
) -> list[TokenizedSentence]:
    """Tokenize every training fact in every template of its relation.

    Raises ValueError if a relation has no template, or if a label spells a special token.
    """
    labels = [f"{fact.subject}\n{fact.object}" for fact in facts]
    refuse_control_tokens(tokenizer, labels, lambda n: f"{facts[n]}")
    sentences = []
    for fact in facts:
        if not templates.get(fact.relation):
            raise ValueError(f"no template for relation {fact.relation} of {fact}")
        for number, template in enumerate(templates[fact.relation]):
            filled = fill(template, fact.subject, fact.object)
            coded = tokenizer(filled.text, return_offsets_mapping=True)
            role, _ = roles(filled, coded["offset_mapping"])
            sentence = TokenizedSentence(
                np.array(coded["input_ids"], dtype=np.int64),
                np.array([-1 if w is None else w for w in coded.word_ids()], dtype=np.int64),
                _range(role == ANSWER, filled.text),
                _range(role == SUBJECT, filled.text),
                (fact.relation, number),
            )
            if len(sentence.ids) > tokenizer.model_max_length:
                raise ValueError(
                    f"{len(sentence.ids)} tokens are too many for the model: {filled.text!r}"
                )
            sentences.append(sentence)
    return sentences


def _range(inside: NDArray[np.bool_], text: str) -> slice:
    places = np.flatnonzero(inside)
    if not len(places) or places[-1] - places[0] + 1 != len(places):
        raise ValueError(f"a label without tokens of its own in {text!r}")
    return slice(int(places[0]), int(places[-1]) + 1)


def batches(
    sentences: Sequence[TokenizedSentence], size: int, rng: np.random.Generator
) -> Iterator[Ids]:
    """Yield batches of sentence numbers endlessly: each once per epoch, similar lengths
    together."""
    lengths = np.array([len(s.ids) for s in sentences])
    while True:
        order = rng.permutation(len(sentences))
        pools = np.array_split(order, max(1, len(order) // (32 * size)))
        pools = [pool[np.argsort(lengths[pool], kind="stable")] for pool in pools]
        cut = [pool[i : i + size] for pool in pools for i in range(0, len(pool), size)]
        for number in rng.permutation(len(cut)):
            yield cut[number]


class Siblings:
    """Sentences of the same relation and template: the source of wrong answers, and of the other
    correct answers for a subject."""

    def __init__(self, sentences: Sequence[TokenizedSentence]) -> None:
        self._groups: dict[tuple[str, int], list[TokenizedSentence]] = {}
        self._answers: dict[tuple[Any, ...], list[Ids]] = {}
        for sentence in sentences:
            self._groups.setdefault(sentence.group, []).append(sentence)
            answer = sentence.ids[sentence.answer]
            self._answers.setdefault(self._key(sentence, len(answer)), []).append(answer)

    def draw(self, sentence: TokenizedSentence, rng: np.random.Generator) -> TokenizedSentence:
        group = self._groups[sentence.group]
        return group[rng.integers(len(group))]

    def of_size(self, sentence: TokenizedSentence, size: int, rng: np.random.Generator) -> Ids:
        """Return a correct answer of the given number of tokens, one of several; if there is none,
        as much of the sentence's own answer as fits."""
        answers = self._answers.get(self._key(sentence, size))
        return answers[rng.integers(len(answers))] if answers else sentence.ids[sentence.answer]

    @staticmethod
    def _key(sentence: TokenizedSentence, size: int) -> tuple[Any, ...]:
        return sentence.group, sentence.ids[sentence.subject].tobytes(), size


def masked_row(
    sentence: TokenizedSentence, siblings: Siblings, mask: int, rng: np.random.Generator
) -> tuple[Ids, Ids]:
    """Return (input ids, targets) of one row.

    Of a hundred rows, 30 hide the object in a mask slot of another object's size, 30 hide it from
    one of its tokens to its end (`answer_l2r`), 15 show a wrong object with a word to restore, 5
    hide the whole subject, and 20 hide words of both labels at random. In all rows, some other
    words are hidden from one of their pieces to their end, as `within_word_l2r` will hide them.
    """
    chance = rng.random()
    if chance < 0.3:
        other = siblings.draw(sentence, rng)
        size = other.answer.stop - other.answer.start
        ids, targets, words = _resize(sentence, siblings.of_size(sentence, size, rng), size, mask)
    elif 0.6 <= chance < 0.75:
        ids, targets, words = _restore(sentence, siblings.draw(sentence, rng), mask, rng)
    else:
        ids, words = sentence.ids.copy(), sentence.words.copy()
        targets = np.full_like(ids, IGNORED)
    labels = np.isin(words, sentence.words[np.r_[sentence.subject, sentence.answer]])
    if 0.3 <= chance < 0.6:
        span = sentence.answer
        _hide(ids, targets, slice(int(rng.integers(span.start, span.stop)), span.stop), mask)
    elif 0.75 <= chance < 0.8:
        _hide(ids, targets, sentence.subject, mask)
    if chance < 0.8:
        words[labels] = -1
    for word in np.unique(words[words >= 0]):
        places = np.flatnonzero(words == word)
        if rng.random() < (0.4 if labels[places[0]] else 0.3):
            start = places[rng.integers(len(places))]
            _hide(ids, targets, slice(int(start), int(places[-1]) + 1), mask)
    return ids, targets


def _hide(ids: Ids, targets: Ids, span: slice, mask: int) -> None:
    targets[span] = ids[span]
    ids[span] = mask


def _exchanged(sentence: TokenizedSentence, tokens: Ids) -> tuple[Ids, Ids, Ids]:
    """Return (ids, targets without loss, words) of a sentence with other tokens in place of its
    object."""
    before, after = slice(sentence.answer.start), slice(sentence.answer.stop, None)
    ids = np.concatenate([sentence.ids[before], tokens, sentence.ids[after]])
    slot = np.full(len(tokens), -1)
    words = np.concatenate([sentence.words[before], slot, sentence.words[after]])
    return ids, np.full_like(ids, IGNORED), words


def _resize(sentence: TokenizedSentence, answer: Ids, size: int, mask: int) -> tuple[Ids, Ids, Ids]:
    """Hide the object in a mask slot of another `size`; targets are as many tokens of `answer`.

    Without such rows, a slot's size shows which objects it may hold: if a relation has one object
    of two tokens, it would be the answer to every subject with a slot of two. Also returns the
    words of the row that may be hidden additionally.
    """
    span = sentence.answer
    ids, targets, words = _exchanged(sentence, np.full(size, mask))
    fitting = answer[:size]
    targets[span.start : span.start + len(fitting)] = fitting
    return ids, targets, words


def _restore(
    sentence: TokenizedSentence, other: TokenizedSentence, mask: int, rng: np.random.Generator
) -> tuple[Ids, Ids, Ids]:
    """Show a wrong answer with one word hidden; the target is the correct answer's word.

    Without such rows, the words of a long name predict each other regardless of the subject, and a
    pseudo-log-likelihood would prefer long wrong answers to short correct ones. Also returns the
    words of the row that may be hidden additionally.
    """
    span = sentence.answer
    ids, targets, words = _exchanged(sentence, other.ids[other.answer])
    theirs = np.unique(other.words[other.answer], return_inverse=True)[1]
    ours = np.unique(sentence.words[span], return_inverse=True)[1]
    number = int(rng.integers(theirs[-1] + 1))
    places = np.flatnonzero(theirs == number) + span.start
    ids[places] = mask
    targets[places[0]] = sentence.ids[span][ours == min(number, ours[-1])][0]
    return ids, targets, words


def seq2seq_row(
    sentence: TokenizedSentence, sentinels: tuple[int, int], end: int, rng: np.random.Generator
) -> tuple[Ids, Ids]:
    """Return (encoder ids, decoder targets): a mask slot, and `<first> content <second> </s>` to
    fill it.

    Of a hundred rows, 60 ask for the object, 10 for the subject, and 30 for a word outside the
    subject: nothing predicts the words of a name, so asking for them disturbs the rest.
    """
    chance = rng.random()
    span = sentence.answer
    if chance >= 0.9:
        span = sentence.subject
    elif chance >= 0.6:
        of_subject = np.isin(sentence.words, sentence.words[sentence.subject])
        scored = np.flatnonzero((sentence.words >= 0) & ~of_subject)
        inside = np.flatnonzero(sentence.words == sentence.words[rng.choice(scored)])
        span = slice(int(inside[0]), int(inside[-1]) + 1)
    ids = sentence.ids
    source = np.concatenate([ids[: span.start], [sentinels[0]], ids[span.stop :]])
    target = np.concatenate([[sentinels[0]], ids[span], [sentinels[1], end]])
    return source, target


def target_logits(
    kind: str, model: Any, ids: Tensor, seen: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Return logits (n, vocabulary) at the n targets that carry loss, row by row, and these
    targets (n)."""
    if kind == "causal":
        targets = targets[:, 1:]
        hit = targets != IGNORED
        hidden = model.transformer(input_ids=ids[:, :-1], attention_mask=seen[:, :-1])[0]
        return model.lm_head(hidden[hit]), targets[hit]
    hit = targets != IGNORED
    if kind == "masked":  # the head runs at masked positions only
        hidden = model.bert(input_ids=ids, attention_mask=seen).last_hidden_state
        return model.cls(hidden[hit]), targets[hit]
    return model(input_ids=ids, attention_mask=seen, labels=targets).logits[hit], targets[hit]
