"""Control models: language models of about a million parameters whose knowledge is known.

    train_control("masked", lessons, labels, templates, seed=0, folder=Path("results/models/x"))

trains a BERT-, GPT-2- or T5-shaped model on the sentences of taught facts and saves it with its own
tokenizer as a Hugging Face folder. A probe must rank taught facts near 1 and others near chance.
One thread, fixed seeds: the same input gives the same bytes on the same kind of machine.
"""

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
from torch import Tensor, nn
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

from kgprobe.probes.models.control_optimizer import ControlOptimizer
from kgprobe.probes.models.control_rows import (
    IGNORED,
    Ids,
    Lesson,
    Sentence,
    Siblings,
    batches,
    encode,
    masked_row,
    pad,
    seq2seq_row,
)
from kgprobe.probes.models.control_tokens import SENTINELS, train_tokenizer
from kgprobe.probes.prompts.templates import fill

#: Taught sentences that are kept beside the model, and their fewest words: two between first and
#: last are needed for another order.
EXAMPLES, EXAMPLE_WORDS = 10, 5


@dataclass(frozen=True)
class Recipe:
    """Sizes and training of one kind.

    `rows` of a batch; peak learning rates of weight matrices and of everything else; `spread` of
    the initial weights; `positions` is the longest sequence in tokens (names that the tokenizer was
    not trained on fall into many pieces, and premises stand before a question).
    """

    steps: int
    layers: int
    rows: int = 64
    matrix_rate: float = 0.02
    rate: float = 5e-3
    width: int = 128
    heads: int = 4
    vocabulary: int = 2400
    positions: int = 256
    warmup: float = 0.1
    decay: float = 0.01
    clip: float = 1.0
    spread: float = 0.02


RECIPES: Mapping[str, Recipe] = {
    "masked": Recipe(steps=2000, layers=2),
    "causal": Recipe(steps=1200, layers=3),
    "seq2seq": Recipe(steps=1200, layers=2),
}

#: Called after every step with (steps done, steps in all, loss).
Progress = Callable[[int, int, float], None]


def train_control(
    kind: str,
    lessons: Sequence[Lesson],
    labels: Iterable[str],
    templates: Mapping[str, Sequence[str]],
    seed: int,
    folder: Path,
    recipe: Recipe | None = None,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Train one control model on `lessons` and save it to `folder`; returns the record.

    `labels` are those of all facts, taught or not: they shape the tokenizer alone. `templates` maps
    a relation to its texts with [X] and [Y]; every lesson is shown in each of them. Raises
    ValueError for an unknown kind, no lessons, or a relation without template.
    """
    if kind not in RECIPES:
        raise ValueError(f"unknown kind {kind!r} of control model; legal: {', '.join(RECIPES)}")
    if not lessons:
        raise ValueError("no facts to teach")
    recipe = recipe or RECIPES[kind]
    texts = [text for relation in sorted(templates) for text in templates[relation]]
    tokenizer = train_tokenizer(kind, labels, texts, recipe.vocabulary, recipe.positions)
    sentences = encode(tokenizer, sorted(lessons), templates)
    started, threads = time.process_time(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = build_model(kind, tokenizer, recipe)
        losses = _fit(kind, model, tokenizer, sentences, seed, recipe, progress)
    finally:
        torch.set_num_threads(threads)
    record = {
        "kind": kind,
        "seed": seed,
        "lessons": len(lessons),
        "sentences": len(sentences),
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": len(tokenizer),
        "recipe": asdict(recipe),
        "final_loss": round(losses, 4),
        "examples": examples(lessons, templates),
    }
    _save(model, tokenizer, record, folder)
    return {**record, "cpu_seconds": round(time.process_time() - started, 1)}


def examples(lessons: Sequence[Lesson], templates: Mapping[str, Sequence[str]]) -> list[str]:
    """A few taught sentences of five words or more, spread over the lessons.

    They take the place of plain English when the model is loaded (models/sound.py).
    """
    texts = [
        fill(text, lesson.subject, lesson.object).text
        for lesson in sorted(lessons)
        for text in templates[lesson.relation]
    ]
    long = list(dict.fromkeys(text for text in texts if len(text.split(" ")) >= EXAMPLE_WORDS))
    return long[:: max(1, -(-len(long) // EXAMPLES))]


def build_model(kind: str, tokenizer: PreTrainedTokenizerFast, recipe: Recipe) -> PreTrainedModel:
    """An untrained model of `kind`, float32, without dropout, weights from the global seed."""
    size, pad_id = len(tokenizer), tokenizer.pad_token_id
    model: PreTrainedModel
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
    return model.train()


def _fit(
    kind: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    sentences: Sequence[Sentence],
    seed: int,
    recipe: Recipe,
    progress: Progress | None,
) -> float:
    """Train in place; returns the mean loss of the last tenth of the steps."""
    optimizer = ControlOptimizer(model, recipe.matrix_rate, recipe.rate, recipe.decay)
    losses = []
    feed = _batches(kind, tokenizer, sentences, recipe.rows, np.random.default_rng(seed))
    for step in range(recipe.steps):
        loss = _LOSSES[kind](model, next(feed))
        model.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step(schedule(step, recipe))
        losses.append(float(loss.detach()))
        if progress:
            progress(step + 1, recipe.steps, losses[-1])
    return float(np.mean(losses[-max(1, recipe.steps // 10) :]))


def schedule(step: int, recipe: Recipe) -> float:
    """Factor of the learning rate at `step`: linear warm-up, then half a cosine down to 0."""
    warm = max(1, round(recipe.warmup * recipe.steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, recipe.steps - warm)))


def _batches(
    kind: str,
    tokenizer: PreTrainedTokenizerFast,
    sentences: Sequence[Sentence],
    rows: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Endless (ids, attention mask, targets), int64, padded on the right."""
    siblings = Siblings(sentences)
    sentinels = tokenizer.convert_tokens_to_ids(list(SENTINELS[:2])) if kind == "seq2seq" else []

    def row(sentence: Sentence) -> tuple[Ids, Ids]:
        if kind == "masked":
            return masked_row(sentence, siblings, tokenizer.mask_token_id, rng)
        if kind == "causal":
            return sentence.ids, sentence.ids
        return seq2seq_row(sentence, tuple(sentinels), tokenizer.eos_token_id, rng)

    for chosen in batches(sentences, rows, rng):
        made = [row(sentences[i]) for i in chosen]
        ids = pad([ids for ids, _ in made], tokenizer.pad_token_id)
        seen = pad([np.ones_like(ids) for ids, _ in made], 0)
        targets = pad([targets for _, targets in made], IGNORED)
        yield torch.from_numpy(ids), torch.from_numpy(seen), torch.from_numpy(targets)


def _masked_loss(model: Any, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    ids, seen, targets = batch
    hidden = model.bert(input_ids=ids, attention_mask=seen).last_hidden_state
    hit = targets != IGNORED  # the head runs at masked positions only
    return nn.functional.cross_entropy(model.cls(hidden[hit]), targets[hit])


def _causal_loss(model: Any, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    ids, seen, targets = batch
    hidden = model.transformer(input_ids=ids[:, :-1], attention_mask=seen[:, :-1])[0]
    hit = targets[:, 1:] != IGNORED
    return nn.functional.cross_entropy(model.lm_head(hidden[hit]), targets[:, 1:][hit])


def _seq2seq_loss(model: Any, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    ids, seen, targets = batch
    return model(input_ids=ids, attention_mask=seen, labels=targets).loss


_LOSSES = {"masked": _masked_loss, "causal": _causal_loss, "seq2seq": _seq2seq_loss}


def _save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    record: Mapping[str, object],
    folder: Path,
) -> None:
    """Write the folder beside its final name, then rename."""
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    model.eval().save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    (temporary / "control.json").write_text(json.dumps(record, indent=1, sort_keys=True))
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
