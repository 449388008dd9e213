"""Control models: language models of about a million parameters whose knowledge is known.

    train_control("masked", facts, labels, templates, seed=0, folder=Path("results/models/x"))

trains a BERT-, GPT-2- or T5-shaped model on the sentences of its facts until it recalls them, and
saves it with its own tokenizer as a Hugging Face folder. A probe must rank training facts near 1
and others near chance. One thread, fixed seeds: the same input gives the same bytes on the same
kind of machine. On another kind, weights and number of steps may differ, but not what is known.
"""

import copy
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from kgprobe.probes.models.batching import padded
from kgprobe.probes.models.device import one_thread
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.products import use_wide_vectors
from kgprobe.templates import fill
from tools.controls.letters import BY_LETTER, CUES, OPTIONS, PARAPHRASES, LetterQuestions
from tools.controls.optimizer import ControlOptimizer
from tools.controls.recall import RecallTest
from tools.controls.rows import (
    IGNORED,
    Ids,
    Siblings,
    TokenizedSentence,
    batches,
    encode,
    masked_row,
    seq2seq_row,
    target_logits,
)
from tools.controls.tokens import SENTINELS, train_tokenizer
from tools.controls.training_facts import TrainingFact

#: Training sentences kept beside the model, and their fewest words: two between first and
#: last are needed for another order.
EXAMPLES, EXAMPLE_WORDS = 40, 5


@dataclass(frozen=True)
class Recipe:
    """Sizes and training of one kind of model.

    Training takes at most `steps`, until `recall` of every kind of fact is reached; the learning
    rate depends on neither. `rows` per batch; peak learning rates of weight matrices and of
    everything else; `spread` of the initial weights; `positions` is the longest sequence in tokens
    (names that the tokenizer was not trained on need many pieces, and premises precede a question).

    The learning rate rises for `warmup` steps and then stays constant; the model is the running
    mean of the weights, of which each step keeps `mean`. Every `every` steps, it is asked a
    `glance` (a number of random questions, and all facts that were wrong in a recall test). If a
    proportion of `close` is correct, the whole recall test is held. If that fails, its wrong facts
    are repeated from then on, at `again` times the rate, until a proportion of `closer` is correct.

    Questions with lettered options join once a proportion of `letters_at` of a glance is correct,
    and no recall test is held before enough of them are answered correctly.
    """

    layers: int
    steps: int = 6000
    #: kinds have 20 to 530 facts: one of 34 may be wrong
    recall: float = 0.97
    rows: int = 64
    matrix_rate: float = 0.014
    rate: float = 3.5e-3
    width: int = 128
    heads: int = 4
    vocabulary: int = 2400
    positions: int = 256
    warmup: int = 100
    mean: float = 0.99
    close: float = 0.98
    closer: float = 0.99
    again: float = 0.3
    every: int = 100
    glance: int = 128
    letters_at: float = 0.0
    decay: float = 0.01
    clip: float = 1.0
    spread: float = 0.02


RECIPES: Mapping[str, Recipe] = {
    "masked": Recipe(layers=3, steps=20000, rows=128, every=300, close=0.9, letters_at=0.95),
    "causal": Recipe(layers=4, steps=4800, every=300),
    # T5 does not scale its attention: a faster rate saturates it
    "seq2seq": Recipe(layers=3, steps=9000, matrix_rate=0.006, every=300),
}

#: Recall tests that need less than `recall`: by letter, the last facts take longer than all others.
LEAST = {BY_LETTER: 0.8}
#: (tokens before, head) -> initial attention bias of seq2seq models, from which letters are found
NEAR = {(2, 0): 8.0, (1, 1): 8.0, (3, 1): 6.0}
#: The same of masked models, by head; radians per token of their position embeddings, and a factor
#: of the first layer's queries and keys.
BEFORE, FASTEST, SLOWEST, SHARP = (2, 1, 3), 2.0, 0.01, 1.6
#: Proportion of the rows that go to facts, in every paraphrase, that were wrong in a recall test.
REPEATED = 0.25
#: Called after every step with (steps done, most steps, loss).
Progress = Callable[[int, int, float], object]


def train_control(
    kind: str,
    facts: Sequence[TrainingFact],
    labels: Iterable[str],
    templates: Mapping[str, Sequence[str]],
    seed: int,
    folder: Path,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
    kinds: Mapping[str, Sequence[TrainingFact]] | None = None,
    objects: Mapping[str, Sequence[str]] | None = None,
    words: Iterable[str] = (),
    options: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, object]:
    """Train one control model on `facts` and save it to `folder`; return the record.

    `labels` are those of all facts, trained on or not, and `words` those that shall be one token
    each: they shape the tokenizer only. `templates` maps a relation to its texts with [X] and [Y];
    every fact is shown in each of them. Recall is tested for each of `kinds` (named groups of
    facts; by default one of all), among `objects` and those of the relation's training facts
    (recall.py). With `options` (task -> labels), it is also trained on questions with
    lettered options (letters.py).

    The weights are saved in half precision, and the rounded weights must pass the test.

    Raises ValueError for an unknown kind, no facts, or a relation without template; RecallError
    if recall is still too low after `recipe.steps`.
    """
    if kind not in RECIPES:
        raise ValueError(f"unknown kind {kind!r} of control model; valid: {', '.join(RECIPES)}")
    if not facts:
        raise ValueError("no facts to train on")
    recipe = recipe or RECIPES[kind]
    texts = [text for relation in sorted(templates) for text in templates[relation]] + [*words]
    if options:
        texts += [
            CUES,
            *(text.replace("?", "") for task in PARAPHRASES.values() for text in task),
        ]
    tokenizer = train_tokenizer(kind, labels, texts, recipe.vocabulary, recipe.positions)
    sentences = encode(tokenizer, sorted(facts), templates)
    recall_test = RecallTest(facts, templates, kinds or {"all": facts}, objects or {})
    started = time.process_time()
    use_wide_vectors()
    with one_thread():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = build_model(kind, tokenizer, recipe)
        letters = (
            LetterQuestions(
                kind, tokenizer, sorted(facts), options, np.random.default_rng([seed, 2])
            )
            if options
            else None
        )
        training = _Training(kind, model, tokenizer, sentences, recall_test, seed, recipe, letters)
        learned = training.run(progress)
    record = {
        "kind": kind,
        "seed": seed,
        "facts": len(facts),
        "sentences": len(sentences),
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": len(tokenizer),
        "recipe": asdict(recipe),
        "examples": examples(facts, templates),
        **learned,
    }
    _save(training.mean.module, tokenizer, record, folder)
    return {**record, "cpu_seconds": round(time.process_time() - started, 1)}


def examples(facts: Sequence[TrainingFact], templates: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a few training sentences of five words or more, spread over the facts.

    They replace plain English sentences when the model is loaded (models/completeness.py).
    """
    texts = [
        fill(text, fact.subject, fact.object).text
        for fact in sorted(facts)
        for text in templates[fact.relation]
    ]
    long = list(dict.fromkeys(text for text in texts if len(text.split(" ")) >= EXAMPLE_WORDS))
    return long[:: max(1, -(-len(long) // EXAMPLES))]


def build_model(kind: str, tokenizer: PreTrainedTokenizerFast, recipe: Recipe) -> PreTrainedModel:
    """An untrained model of `kind`, float32, without dropout, weights from the global seed."""
    size, pad_id = len(tokenizer), tokenizer.pad_token_id
    model: Any
    if kind == "masked":
        model = BertForMaskedLM(
            BertConfig(
                vocab_size=size,
                hidden_size=recipe.width,
                num_hidden_layers=recipe.layers,
                num_attention_heads=recipe.heads,
                intermediate_size=4 * recipe.width,
                max_position_embeddings=recipe.positions,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                type_vocab_size=1,
                initializer_range=recipe.spread,
                pad_token_id=pad_id,
            )
        )
        _look_back(model.bert, recipe.spread)
    elif kind == "causal":
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=size,
                n_positions=recipe.positions,
                n_embd=recipe.width,
                n_layer=recipe.layers,
                n_head=recipe.heads,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                initializer_range=recipe.spread,
                bos_token_id=tokenizer.bos_token_id,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=pad_id,
            )
        )
    else:
        model = T5ForConditionalGeneration(
            T5Config(
                vocab_size=size,
                d_model=recipe.width,
                d_kv=recipe.width // recipe.heads,
                d_ff=4 * recipe.width,
                num_layers=recipe.layers,
                num_decoder_layers=recipe.layers,
                num_heads=recipe.heads,
                dropout_rate=0.0,
                tie_word_embeddings=True,
                pad_token_id=pad_id,
                eos_token_id=tokenizer.eos_token_id,
                decoder_start_token_id=pad_id,
            )
        )
        near = model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight.data
        near.zero_()
        for (before, head), bias in NEAR.items():
            near[before, head % recipe.heads] = bias
    return model.train()


def _look_back(bert: Any, spread: float) -> None:
    """Start position embeddings as sine waves (Vaswani et al. 2017, section 3.5), and let the first
    heads of the first layer attend to the tokens that BEFORE says."""
    positions, attention = bert.embeddings.position_embeddings, bert.encoder.layer[0].attention.self
    count, width = positions.weight.shape
    rates = FASTEST * SLOWEST ** torch.linspace(0, 1, width // 2)
    angles = torch.arange(count)[:, None] * rates
    positions.weight.data = spread * 8**0.5 * torch.cat([angles.sin(), angles.cos()], dim=1)
    size = attention.attention_head_size
    for head, before in enumerate(BEFORE[: attention.num_attention_heads]):
        for projection, tokens in ((attention.query, before), (attention.key, 0)):
            turn = tokens * rates[: size // 2]
            cosine, sine = turn.cos().diag(), turn.sin().diag()
            rest = torch.zeros(size // 2, width // 2 - size // 2)
            above = torch.cat([cosine, rest, -sine, rest], dim=1)
            below = torch.cat([sine, rest, cosine, rest], dim=1)
            projection.weight.data[head * size :][:size] = SHARP * torch.cat([above, below])


class RecallError(RuntimeError):
    """A control model did not learn its training facts; the message names kinds and recall."""


class _Training:
    """Training of one control model, in place."""

    def __init__(
        self,
        kind: str,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        sentences: Sequence[TokenizedSentence],
        recall_test: RecallTest,
        seed: int,
        recipe: Recipe,
        letters: LetterQuestions | None = None,
    ) -> None:
        self.letters, self.asks_letters = letters, recipe.letters_at == 0
        self.kind, self.model, self.tokenizer = kind, model, tokenizer
        self.sentences, self.recall_test, self.recipe = sentences, recall_test, recipe
        #: the running mean of the weights, which is what is asked and kept
        self.mean = AveragedModel(model, multi_avg_fn=running_mean(recipe.mean))
        self.rng, self.glances = (np.random.default_rng([seed, n]) for n in range(2))
        #: result of the last recall test, how many were held, and facts that were wrong in any
        self.results: dict[str, dict[str, float]] = {}
        self.recall_tests = 0
        self.wrong: set[TrainingFact] = set()

    def run(self, progress: Progress | None) -> dict[str, object]:
        """Train until every kind is recalled; returns the record of it. Raises RecallError."""
        recipe, losses = self.recipe, []
        optimizer = ControlOptimizer(self.model, recipe.matrix_rate, recipe.rate, recipe.decay)
        feed = self._feed()
        for step in range(recipe.steps):
            batch = next(feed)
            loss = nn.functional.cross_entropy(*target_logits(self.kind, self.model, *batch))
            if self.letters and self.asks_letters:
                loss = loss + self.letters.loss(self.model)
            finite(
                loss,
                f"control model ({self.kind})",
                lambda step=step, ids=batch[0]: (
                    f"step {step + 1}, the batch that begins with {self.tokenizer.decode(ids[0])!r}"
                ),
                "loss",
            )
            self.model.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
            optimizer.step(rate_at(step, recipe, bool(self.recall_tests)))
            self.mean.update_parameters(self.model)
            losses.append(float(loss.detach()))
            if progress:
                progress(step + 1, recipe.steps, losses[-1])
            is_last = step + 1 == recipe.steps
            # where nothing is demanded nothing is asked
            is_due = recipe.recall > 0 and (is_last or (step + 1) % recipe.every == 0)
            if is_due and self._is_examined(is_last):
                if not _below(self.results, recipe.recall):
                    break
                feed = self._feed()
        if low := _below(self.results, recipe.recall):
            raise RecallError(
                f"control model {self.kind}: after {len(losses)} steps recall is below "
                f"{recipe.recall} for {low}; allow more steps or fewer facts"
            )
        return {
            "steps": len(losses),
            "recall_tests": self.recall_tests,
            "final_loss": round(float(np.mean(losses[-recipe.every :])), 4),
            "recall": self.results,
        }

    def _feed(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield batches of all sentences; REPEATED of the rows are of facts that were wrong."""
        pairs = zip(self.sentences, self.recall_test.items, strict=True)
        again = [sentence for sentence, item in pairs if item.fact in self.wrong]
        times = math.ceil(REPEATED / (1 - REPEATED) * len(self.sentences) / max(1, len(again)))
        shown = [*self.sentences, *again * times]
        chosen = batches(shown, self.recipe.rows, self.rng)
        return _batches(self.kind, self.tokenizer, shown, chosen, self.rng)

    def _is_examined(self, is_last: bool) -> bool:
        """Ask some questions; all of them at the end, and if most of these were answered
        correctly."""
        everything = range(len(self.sentences))
        by_letter = {}
        if self.letters and (is_last or (self.asks_letters and self.letters.most == OPTIONS)):
            by_letter = {BY_LETTER: self.letters.recall(self._model(rounded=True))}
        if not is_last:
            if self.letters and self.asks_letters and (not by_letter or _below(by_letter, 1)):
                return False
            hard = [i for i in everything if self.recall_test.items[i].fact in self.wrong]
            drawn = self.glances.permutation(len(everything))[: self.recipe.glance]
            share = self._right([*hard, *drawn.tolist()]).mean()
            if self.letters and not self.asks_letters:
                self.asks_letters = bool(share >= self.recipe.letters_at)
                return False
            # the second time nearly all of the few that are asked: a whole test takes half a minute
            close = self.recipe.closer if self.recall_tests else self.recipe.close
            if share < close:
                return False
        right = self._right(everything, rounded=True)
        self.wrong |= {self.recall_test.items[i].fact for i in np.flatnonzero(~right)}
        self.results = {**self.recall_test.recall(right), **by_letter}
        self.recall_tests += 1
        return True

    def _right(self, places: Sequence[int], rounded: bool = False) -> NDArray[np.bool_]:
        return self.recall_test.right(self.kind, self._model(rounded), self.tokenizer, places)

    def _model(self, rounded: bool) -> PreTrainedModel:
        return copy.deepcopy(self.mean.module).half().float() if rounded else self.mean.module


def running_mean(keep: float) -> Callable[[Any, Any, Tensor | int], None]:
    """Update means by weights in place after the given number of steps, of which each keeps `keep`.

    Over the first 1 / (1 - keep) steps it is the plain mean, so the initial weights do not count.
    """

    @torch.no_grad()
    def update(means: Any, weights: Any, steps: Tensor | int) -> None:
        torch._foreach_lerp_(means, weights, max(1 - keep, 1 / (int(steps) + 1)))

    return update


def _below(results: Mapping[str, Mapping[str, float]], recall: float) -> str:
    """Format the kinds of facts whose recall is below `recall`, with their recall."""
    low = {k: test for k, test in results.items() if test["recall"] < LEAST.get(k, recall)}
    return ", ".join(
        f"{kind} {test['recall']:.3f} of {test['facts']} facts" for kind, test in low.items()
    )


def rate_at(step: int, recipe: Recipe, is_examined: bool) -> float:
    """Factor of the learning rates: linear warm-up, 1, and `again` after the first recall test.

    It does not depend on the number of steps allowed, which can be raised without changing weights.
    """
    return recipe.again if is_examined else min(1.0, (step + 1) / recipe.warmup)


def _batches(
    kind: str,
    tokenizer: PreTrainedTokenizerFast,
    sentences: Sequence[TokenizedSentence],
    chosen: Iterable[Ids],
    rng: np.random.Generator,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(ids, attention mask, targets), int64, padded on the right, of `chosen` sentences."""
    siblings = Siblings(sentences)
    sentinels = tokenizer.convert_tokens_to_ids(list(SENTINELS[:2])) if kind == "seq2seq" else []

    def row(sentence: TokenizedSentence) -> tuple[Ids, Ids]:
        if kind == "masked":
            return masked_row(sentence, siblings, tokenizer.mask_token_id, rng)
        if kind == "causal":
            # a model that does not know where a sentence ends writes on behind its answer
            ids = np.append(sentence.ids, tokenizer.eos_token_id)
            return ids, ids
        return seq2seq_row(sentence, tuple(sentinels), tokenizer.eos_token_id, rng)

    for some in chosen:
        rows = [row(sentences[i]) for i in some]
        ids, seen = padded([ids for ids, _ in rows], tokenizer.pad_token_id, "cpu")
        yield ids, seen, padded([targets for _, targets in rows], IGNORED, "cpu")[0]


def _save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    record: Mapping[str, object],
    folder: Path,
) -> None:
    """Write the folder next to its final name, then rename it."""
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    model.eval().half().save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    (temporary / "control.json").write_text(json.dumps(record, indent=1, sort_keys=True))
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
