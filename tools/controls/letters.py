"""Questions with lettered options for the control models (OntoProbe's multiple choice).

    Which class does Dante belong to? (a) lake, (b) writer, (c) ship
    Answer: (b) writer

A model that was trained on sentences alone cannot read such a list. OntoProbe's own text of the
questions is held out, and so are the same facts as ever: only training facts are asked. Masked and
seq2seq models fill a mask slot in place of the letter. In some rows the answer is "writer (b)": to
find the letter of a label that is there is easier, and the rest builds on it. Questions have few
options at first, with letters drawn from all, and more once most are answered right; at the end
they have at least half as many as OntoProbe's. Facts that were wrong in the last test are asked
more often.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from kgprobe.probes.models.batching import padded
from kgprobe.probes.scoring.choice.text import CUE, LETTERS
from tools.controls.rows import IGNORED, Ids, target_logits
from tools.controls.tokens import SENTINELS
from tools.controls.training_facts import TrainingFact

#: task -> paraphrases of its question that are trained on
PARAPHRASES: Mapping[str, Sequence[str]] = {
    "TP": ("Which class does {} belong to?", "What type is {}?", "Of what type is {}?"),
    "SCO": (
        "Which class is {} part of?",
        "What superclass has {}?",
        "Which superclass does {} have?",
    ),
}
#: name of its recall test
BY_LETTER = "by letter"
#: text whose words the tokenizer keeps whole, with the paraphrases
CUES = f"Answer ( {CUE}"
#: options of OntoProbe's questions, at first, and how many more at a time
OPTIONS, FIRST, MORE = 20, 3, 3
#: rows of a batch, proportion of those with the label before the letter
ROWS, LABEL_FIRST = 32, 0.3
#: proportion right, over so many batches, at which questions get more options
ENOUGH, BATCHES = 0.8, 40
#: proportion of the questions that are about facts that were wrong in the last test
REPEATED = 0.5
#: questions that are answered at a time in a test
PORTION = 64
#: ids, targets, and the target's position if it is a letter that comes before its label (else 0)
Row = tuple[Ids, Ids, int]


class LetterQuestions:
    """Batches of questions for a `kind` of model about `facts` of the tasks in PARAPHRASES;
    `options`: task -> labels."""

    def __init__(
        self,
        kind: str,
        tokenizer: PreTrainedTokenizerFast,
        facts: Sequence[TrainingFact],
        options: Mapping[str, Sequence[str]],
        rng: np.random.Generator,
    ) -> None:
        self.facts = [fact for fact in facts if fact.relation in PARAPHRASES]
        self.most, self.wrong = FIRST, list[TrainingFact]()
        self._kind, self._tokenizer, self._options, self._rng = kind, tokenizer, options, rng
        self._recent: deque[float] = deque(maxlen=BATCHES)
        self._letters = np.array([self._ids(f"({letter})")[-2] for letter in LETTERS])

    def loss(self, model: PreTrainedModel) -> Tensor:
        """Return the loss of a new batch (one number of options, so that little is padded): of
        labels and letters, and of the letters that come first once more."""
        rng, rows = self._rng, list[Row]()
        fewest = 2 if self.most < OPTIONS else OPTIONS // 2
        size = int(rng.integers(fewest, self.most + 1))
        while len(rows) < ROWS:
            facts = self.wrong if self.wrong and rng.random() < REPEATED else self.facts
            fact = facts[int(rng.integers(len(facts)))]
            paraphrases = PARAPHRASES[fact.relation]
            paraphrase = paraphrases[int(rng.integers(len(paraphrases)))]
            is_label_first = rng.random() < LABEL_FIRST
            row = self._row(fact, paraphrase, size, rng, bool(is_label_first))
            if len(row[0]) <= self._tokenizer.model_max_length:
                rows.append(row)
        logits, wanted, is_first = self._answers(model, rows)
        losses = cross_entropy(logits, wanted, reduction="none")
        if not is_first.any():
            return losses.mean()
        hits = self._best(logits[is_first], OPTIONS) == wanted[is_first].numpy()
        self._recent.append(float(hits.mean()))
        if len(self._recent) == BATCHES and np.mean(self._recent) > ENOUGH and self.most < OPTIONS:
            self.most = min(OPTIONS, self.most + MORE)
            self._recent.clear()
        return losses.mean() + losses[is_first].mean()

    def recall(self, model: PreTrainedModel) -> dict[str, float]:
        """Return the number of facts, and the proportion that is answered right; the others are
        asked more often from then on."""
        right = self.right(model)
        self.wrong = [
            fact for fact, is_right in zip(self.facts, right, strict=True) if not is_right
        ]
        return {"facts": len(right), "recall": float(right.mean())}

    @torch.inference_mode()
    def right(self, model: PreTrainedModel) -> NDArray[np.bool_]:
        """Return for every fact whether it is answered right in every paraphrase, with OPTIONS
        options, the same in each test."""
        rng, rows = np.random.default_rng(0), []
        for fact in self.facts:
            rows += [self._row(fact, w, OPTIONS, rng, False) for w in PARAPHRASES[fact.relation]]
        hits: list[bool] = []
        for start in range(0, len(rows), PORTION):
            logits, wanted, is_first = self._answers(model, rows[start : start + PORTION])
            best = self._best(logits[is_first], OPTIONS)
            hits += (best == wanted[is_first].numpy()).tolist()
        sizes = np.cumsum([len(PARAPHRASES[fact.relation]) for fact in self.facts])
        return np.array([all(part) for part in np.split(np.array(hits), sizes[:-1])])

    def _answers(
        self, model: PreTrainedModel, rows: Sequence[Row]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits (n, vocabulary) and ids (n) of the targets, and which of them are
        letters that come first."""
        ids, seen = padded([row[0] for row in rows], self._tokenizer.pad_token_id, "cpu")
        targets = padded([row[1] for row in rows], IGNORED, "cpu")[0]
        positions = torch.tensor([[row[2]] for row in rows])
        is_first = (torch.arange(targets.shape[1]) == positions) & (positions > 0)
        logits, wanted = target_logits(self._kind, model, ids, seen, targets)
        return logits, wanted, is_first[targets != IGNORED]

    def _row(
        self,
        fact: TrainingFact,
        paraphrase: str,
        size: int,
        rng: np.random.Generator,
        is_label_first: bool,
    ) -> Row:
        """Return a question with `size` options and letters drawn by `rng`."""
        labels = self._options[fact.relation]
        drawn = [labels[i] for i in rng.permutation(len(labels))[:size]]
        options = [label for label in drawn if label.casefold() != fact.object.casefold()]
        gold = int(rng.integers(size))
        options = options[: size - 1]
        options.insert(gold, fact.object)
        letters = np.sort(rng.permutation(OPTIONS)[:size])
        listed = ", ".join(
            f"({LETTERS[letter]}) {option}" for letter, option in zip(letters, options, strict=True)
        )
        question = self._ids(f"{paraphrase.format(fact.subject)} {listed}{CUE}")
        letter = self._letters[letters[[options.index(fact.object)]]]
        opening, closing, label = self._ids(" ("), self._ids("x)")[-1:], self._ids(fact.object)
        if self._kind == "causal":
            answer = (
                [label, opening, letter, closing]
                if is_label_first
                else [opening, letter, closing, label]
            )
            return self._causal_row([question, *answer], [letter, label], is_label_first)
        if not is_label_first:
            return self._slot_row([question, opening], letter, [closing], True)
        if rng.random() < 0.5:
            return self._slot_row([question], label, [], False)
        return self._slot_row([question, label, opening], letter, [closing], False)

    def _causal_row(self, parts: list[Ids], wanted: list[Ids], is_label_first: bool) -> Row:
        bos, eos = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        parts = [np.array([bos]), *parts, np.array([eos])]
        targets = [
            part if any(part is one for one in wanted) else np.full(len(part), IGNORED)
            for part in parts
        ]
        position = 0 if is_label_first else sum(len(part) for part in parts[:3])
        return np.concatenate(parts), np.concatenate(targets), position

    def _slot_row(self, before: list[Ids], wanted: Ids, after: list[Ids], is_first: bool) -> Row:
        """Ask a masked or seq2seq model for the tokens between `before` and `after`."""
        tokenizer: Any = self._tokenizer
        if self._kind == "seq2seq":
            first, second = tokenizer.convert_tokens_to_ids(list(SENTINELS[:2]))
            end = [tokenizer.eos_token_id]
            ids = np.concatenate([*before, [first], *after, end])
            return ids, np.array([first, *wanted, second, *end]), int(is_first)
        start, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
        slot = np.full(len(wanted), tokenizer.mask_token_id)
        ids = np.concatenate([start, *before, slot, *after, end])
        targets, position = np.full(len(ids), IGNORED), 1 + sum(map(len, before))
        targets[position : position + len(wanted)] = wanted
        return ids, targets, position if is_first else 0

    def _best(self, logits: Tensor, size: int) -> Ids:
        """Return the ids of the likeliest of the first `size` letters."""
        letters = self._letters[:size]
        return np.asarray(letters[logits[:, letters].argmax(1).numpy()])

    def _ids(self, text: str) -> Ids:
        coded: Any = self._tokenizer(text, add_special_tokens=False)
        return np.array(coded["input_ids"], dtype=np.int64)
