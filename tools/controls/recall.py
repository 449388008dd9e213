"""Recall test of a control model: objects of its training facts ranked among other objects.

A fact counts as correct in a paraphrase if its object scores strictly above the other objects of
the relation. The score is that of the answer in its slot, token by token (masked); the same with
the sentinel that closes it (seq2seq: otherwise nothing scores above its own beginning, as "person
function" above "person"); or that of the sentence (causal: the text before the subject does not
depend on it). Other objects of a subject with the same label are not rivals: nothing in a sentence
distinguishes two people of one name. For a masked model, beginnings of the object are not rivals
either, since the slot's size shows which is meant. A fact is recalled if it is correct in every
paraphrase.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from kgprobe.probes.models.batching import budget_for, padded
from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.models.masked import Masked
from kgprobe.probes.models.seq2seq import Seq2Seq
from kgprobe.probes.scoring.sentence.score import Item, score
from kgprobe.probes.scoring.sentence.scorers import MaskedScorer
from kgprobe.probes.scoring.sentence.variants import DEFAULT, rows
from kgprobe.probes.text.encode import ANSWER, Sentences, bos_prefix, encode
from kgprobe.templates import fill
from tools.controls.training_facts import TrainingFact

Ids = NDArray[np.int64]
#: Masked models: a token of the answer is asked while it and all later ones are hidden.
IN_SLOT = "answer_l2r+word_l2r"
#: Rows that are read at a time.
PORTION = 256


class RecallItem(NamedTuple):
    """A training fact in one paraphrase, given by the number of its template."""

    fact: TrainingFact
    number: int


class RecallTest:
    """Recall test of all training facts in all paraphrases.

    `kinds` are named groups of facts; `objects` (relation -> labels) are the labels that a fact's
    object is ranked among, in addition to the objects of all facts of the relation.
    """

    def __init__(
        self,
        facts: Sequence[TrainingFact],
        templates: Mapping[str, Sequence[str]],
        kinds: Mapping[str, Sequence[TrainingFact]],
        objects: Mapping[str, Sequence[str]],
    ) -> None:
        self.kinds, self._templates = kinds, templates
        self.items = [
            RecallItem(fact, number)
            for fact in sorted(facts)
            for number in range(len(templates[fact.relation]))
        ]
        everything = {relation: set(labels) for relation, labels in objects.items()}
        golds: dict[tuple[str, str], set[str]] = {}
        for fact in facts:
            everything.setdefault(fact.relation, set()).add(fact.object)
            golds.setdefault(fact[:2], set()).add(fact.object)
        self._rivals = {fact: sorted(everything[fact.relation] - golds[fact[:2]]) for fact in facts}
        unknown = {fact for group in kinds.values() for fact in group} - set(facts)
        if unknown:
            raise ValueError(
                f"{len(unknown)} facts of a kind are not among the training facts: {min(unknown)}"
            )

    def right(
        self,
        kind: str,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        places: Sequence[int],
    ) -> NDArray[np.bool_]:
        """Return whether the model ranks the object of `self.items[i]` first, for every i in
        `places`."""
        was_training = model.training
        bos = "forced" if kind == "causal" else "-"
        loaded = Loaded(
            ModelSpec(f"control-{kind}", kind, f"control:{kind}", bos=bos),
            model.eval(),
            tokenizer,
            model.device,
            tokenizer.model_max_length,
        )
        chosen = [self.items[i] for i in places]
        try:
            return self._right(loaded, chosen)
        finally:
            model.train(was_training)

    def _right(self, loaded: Loaded, chosen: Sequence[RecallItem]) -> NDArray[np.bool_]:
        golds = [[item.fact.object] for item in chosen]
        gold_sums = np.array([sums[0] for sums in self._sums(loaded, chosen, golds)])
        rivals: list[Sequence[str]] = [self._rivals[item.fact] for item in chosen]
        if loaded.spec.kind == "masked":
            rivals = [
                [label for label in labels if not item.fact.object.startswith(label)]
                for item, labels in zip(chosen, rivals, strict=True)
            ]
        # No token adds more than 0: a rival that is below the gold's sum with its first token has
        # lost, and all rivals share what stands before it.
        bounds = self._bounds(loaded, chosen, rivals)
        left = [
            [label for label, bound in zip(labels, above, strict=True) if bound >= limit]
            for labels, above, limit in zip(rivals, bounds, gold_sums, strict=True)
        ]
        best = [sums.max(initial=-np.inf) for sums in self._sums(loaded, chosen, left)]
        return np.asarray(gold_sums > np.array(best))

    def _bounds(
        self, loaded: Loaded, chosen: Sequence[RecallItem], labels: Sequence[Sequence[str]]
    ) -> list[NDArray[np.float64]]:
        """Upper bounds of the sums of `labels[i]` in place of the object of `chosen[i]`: the part
        of each sum up to the answer's first token."""
        if loaded.spec.kind == "masked":
            logprobs = _first_of_gap(loaded, self._encoded(loaded, chosen, labels))
            return np.split(logprobs, np.cumsum([len(names) for names in labels])[:-1])
        golds = self._encoded(loaded, chosen, [[item.fact.object] for item in chosen])
        following = (_after if loaded.spec.kind == "causal" else _in_gap)(loaded, golds)
        # with the tokenizers of control models a word's tokens are the same after every subject
        pairs = {
            (item.fact.relation, item.number, label): item
            for item, names in zip(chosen, labels, strict=True)
            for label in names
        }
        sentences = self._encoded(loaded, list(pairs.values()), [[label] for *_, label in pairs])
        begun = [sentences.tokens[i][low] for i, (low, _) in enumerate(_slots(sentences))]
        first = dict(zip(pairs, begun, strict=True))
        return [
            row[[first[item.fact.relation, item.number, label] for label in names] or slice(0)]
            for row, item, names in zip(following, chosen, labels, strict=True)
        ]

    def _encoded(
        self, loaded: Loaded, chosen: Sequence[RecallItem], labels: Sequence[Sequence[str]]
    ) -> Sentences:
        """Tokenize the sentences of all `labels[i]` in place of the object of `chosen[i]`."""
        filled = [
            fill(self._templates[fact.relation][number], fact.subject, label)
            for (fact, number), names in zip(chosen, labels, strict=True)
            for label in names
        ]
        front = bos_prefix(loaded)[0] if loaded.spec.kind == "causal" else MaskedScorer.bos_ids
        return encode(loaded, filled, "sentence {}".format, front)

    def _sums(
        self,
        loaded: Loaded,
        chosen: Sequence[RecallItem],
        labels: Sequence[Sequence[str]],
    ) -> list[NDArray[np.float64]]:
        """Score each of `labels[i]` in place of the object of `chosen[i]`."""
        items, sets, texts = [], {}, {}
        for place, (fact, number) in enumerate(chosen):
            if labels[place]:
                key, template = str(place), f"{fact.relation} {number}"
                items.append(Item(key, template, fact.subject, key))
                sets[key] = labels[place]
                texts[template] = [(number, self._templates[fact.relation][number])]
        sums = [np.zeros(len(names)) for names in labels]
        kind = loaded.spec.kind
        slot = kind == "masked"
        variant = IN_SLOT if slot else DEFAULT
        columns = score(loaded, items, sets, texts, variant=variant, answer_only=slot).columns
        values = columns["continuation_sum" if kind == "seq2seq" else "sum"]
        for key, place, value in zip(columns["item"], columns["candidate"], values, strict=True):
            sums[int(key)][int(place)] = value
        return sums

    def recall(self, right: Sequence[bool] | NDArray[np.bool_]) -> dict[str, dict[str, float]]:
        """Return kind -> (number of facts, proportion recalled); `right` is parallel to
        `self.items`."""
        pairs = zip(self.items, right, strict=True)
        wrong = {item.fact for item, is_right in pairs if not is_right}
        return {
            kind: {
                "facts": len(group),
                "recall": (len(group) - len(wrong & set(group))) / len(group),
            }
            for kind, group in sorted(self.kinds.items())
            if group
        }


def _first_of_gap(loaded: Loaded, sentences: Sentences) -> NDArray[np.float64]:
    """Masked: log p of the answer's first token; answers of equal length share the row that shows
    it."""
    masked = rows(sentences, IN_SLOT, answer_only=True)
    _, first = np.unique(masked.sentence, return_index=True)
    return Masked(loaded, budget_for(loaded)).logprobs(
        sentences.tokens, masked.sentence[first], masked.position[first], masked.end[first]
    )


@torch.inference_mode()
def _after(loaded: Loaded, sentences: Sentences) -> NDArray[np.float32]:
    """Causal: log p of the text before the answer and of every token after it (rows x tokens)."""
    before = [sentences.tokens[i][:low] for i, (low, _) in enumerate(_slots(sentences))]
    sums = []
    for part in _portions(before):
        ids, mask = padded(part, loaded.tokenizer.pad_token_id, loaded.device)
        logprobs = loaded.model(input_ids=ids, attention_mask=mask).logits.log_softmax(-1)
        scores = logprobs[:, :-1].gather(2, ids[:, 1:, None])[..., 0] * mask[:, 1:]
        last = torch.tensor([len(row) - 1 for row in part])
        sums.append(scores.sum(1, keepdim=True) + logprobs[torch.arange(len(part)), last])
    return torch.cat(sums).numpy()


@torch.inference_mode()
def _in_gap(loaded: Loaded, sentences: Sentences) -> NDArray[np.float32]:
    """Seq2seq: log p of every token as the answer's first (rows x tokens)."""
    engine = Seq2Seq(loaded)
    contexts = []
    for i, (low, high) in enumerate(_slots(sentences)):
        ids = sentences.tokens[i]
        contexts.append(np.concatenate([ids[:low], [engine.opening], ids[high:]]))
    begun, logprobs = torch.tensor([[engine.start, engine.opening]]), []
    for part in _portions(contexts):
        ids, mask = padded(part, loaded.tokenizer.pad_token_id, loaded.device)
        output = loaded.model(
            input_ids=ids, attention_mask=mask, decoder_input_ids=begun.expand(len(part), -1)
        )
        logprobs.append(output.logits[:, -1].log_softmax(-1))
    return torch.cat(logprobs).numpy()


def _portions(sequences: Sequence[Ids]) -> Iterator[Sequence[Ids]]:
    for start in range(0, len(sequences), PORTION):
        yield sequences[start : start + PORTION]


def _slots(sentences: Sentences) -> list[tuple[int, int]]:
    """Positions of the answer's first token and of the one after its last."""
    answer, places = sentences.roles == ANSWER, sentences.tokens.places[sentences.roles == ANSWER]
    owners = sentences.tokens.owners[answer]
    _, first, counts = np.unique(owners, return_index=True, return_counts=True)
    low, high = places[first], places[first + counts - 1] + 1
    return list(zip(low.tolist(), high.tolist(), strict=True))
