"""Soft prompts: vectors in place of a template's words, trained while the model is frozen.

    {subject} <s1> <s2> <s3> [mask slot] .

Wu et al. 2023, section 3.1.1 and appendix A: AdamW, rate 0.5, 100 epochs, ten training rows, the
epoch that is best on ten development rows. Settings that the paper leaves open or the released code
changes are fields of `SoftPromptRecipe` (benchmarks.ontoprobe.modes). Soft prompt files
contain all their settings, and are rejected by any other model.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialized
from torch.nn.functional import binary_cross_entropy_with_logits

from kgprobe.probes.models.device import one_thread
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.head import precise
from kgprobe.probes.models.load import Loaded, differing
from kgprobe.probes.scoring.cloze.gradient import ScoresWithGradient
from kgprobe.probes.text.mask_slots import Ids, PromptIds
from kgprobe.probes.text.vectors import inserted
from kgprobe.schema import atomic
from kgprobe.templates import marks


@dataclass(frozen=True)
class SoftPromptRecipe:
    """Hyper-parameters (appendix A of the paper) and settings that the paper leaves open.

    tokens       number of vectors; with init `words` as many as the words have tokens
    init         random: N(0, 1), seeded. words: the embeddings of `words`
    batch        rows per step, in file order: 8 + 2
    warmup       steps of linear warm-up before the linear decay to 0
    nll_gold     every: all golds of a row in every step. sampled: one of them (seeded)
    dev_scores   log_probabilities, or logits: the released code ranks raw logits on these rows
    dev_metric   metric that selects the best epoch: MRRa or MRR
    """

    tokens: int = 3
    init: str = "random"
    words: str = ""
    epochs: int = 100
    batch: int = 8
    rate: float = 0.5
    decay: float = 0.01
    warmup: int = 0
    loss: str = "bce"
    nll_gold: str = "every"
    dev_scores: str = "log_probabilities"
    dev_metric: str = "MRRa"
    masks: str = "multi"
    pooling: str = "mean"
    seed: int = 0


@dataclass
class SoftPrompt:
    """Trained vectors (slots x width, numpy) and all that is needed to use them again."""

    vectors: Any
    record: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptRows:
    """Prompts with slots as token ids, the indices of their golds, and their names in messages."""

    prompts: Sequence[PromptIds]
    golds: Sequence[tuple[int, ...]]
    names: Sequence[str] = ()

    def name(self, row: int) -> str:
        """Return the name of a prompt, or its number."""
        return self.names[row] if self.names else f"prompt {row}"


def template(tokens: int) -> str:
    """Return the soft template with so many vectors."""
    return f"[X] {marks(0, tokens)} [Y] ."


def initial(loaded: Loaded, recipe: SoftPromptRecipe) -> torch.Tensor:
    """Return the initial vectors in float32 (float64 for a float64 model), since steps of AdamW are
    smaller than the resolution of half precision."""
    weight = loaded.model.get_input_embeddings().weight.detach()
    if recipe.init == "words":
        ids = loaded.tokenizer(recipe.words, add_special_tokens=False)["input_ids"]
        if not ids:
            raise ValueError(f"soft_init words: {recipe.words!r} has no tokens")
        initial: torch.Tensor = precise(weight[ids])
        return initial.clone()
    generator = torch.Generator().manual_seed(recipe.seed)
    drawn = torch.randn(recipe.tokens, weight.shape[1], generator=generator, dtype=torch.float64)
    return drawn.to(device=weight.device, dtype=precise(weight[:0]).dtype)


def loss_of(
    scores: Any, golds: Sequence[tuple[int, ...]], recipe: SoftPromptRecipe, draw: Any = None
) -> Any:
    """Compute the training loss of scores (prompt x candidate, pooled log-probabilities).

    bce: every candidate's score is the logit of "is a gold"; mean over prompts x candidates.
    nll: minus the gold's score, mean over (prompt, gold) pairs; `draw` is the random generator that
    selects one gold of each prompt for `nll_gold: sampled`.
    """
    if recipe.loss == "bce":
        target = torch.zeros_like(scores)
        for row, ids in enumerate(golds):
            target[row, list(ids)] = 1
        return binary_cross_entropy_with_logits(scores, target)
    if recipe.nll_gold == "sampled":
        golds = [(ids[int(draw.integers(len(ids)))],) for ids in golds]
    pairs = [(row, gold) for row, ids in enumerate(golds) for gold in ids]
    rows, columns = zip(*pairs, strict=True)
    return -scores[list(rows), list(columns)].mean()


def reciprocal(scores: Any, golds: Sequence[tuple[int, ...]], metric: str = "MRRa") -> float:
    """Return MRRa, the mean of 1 / (mean gold rank), or MRR, of 1 / (best rank); ties averaged."""
    values = scores.detach().cpu().numpy()
    terms = []
    for row, ids in zip(values, golds, strict=True):
        ranks = [(row > row[g]).sum() + ((row == row[g]).sum() + 1) / 2 for g in ids]
        terms.append(len(ranks) / float(sum(ranks)) if metric == "MRRa" else 1 / float(min(ranks)))
    return float(np.mean(terms))


def fit(
    loaded: Loaded,
    train: PromptRows,
    dev: PromptRows,
    ids: Sequence[Ids],
    start: torch.Tensor,
    recipe: SoftPromptRecipe,
    fixed: torch.Tensor | None = None,
    progress: Callable[[int], object] = lambda epochs: None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Return (trained vectors, record): slots 0 on start as `start`, later ones are `fixed`.

    `ids` are the tokens of the candidates. The returned vectors are those of the epoch with the
    strictly highest `dev_metric` on `dev`, the first on ties; `start` if it is never above 0. One
    CPU thread is used, so that results do not depend on the number of cores. Raises NotFiniteError
    for scores and losses that are not finite.
    """
    with one_thread():
        start = precise(start.detach())
        vectors = start.clone().requires_grad_(True)
        used, golds = list(range(len(ids))), list(train.golds)
        if recipe.loss != "bce" and loaded.spec.kind != "masked":
            # only golds matter; every other candidate would need separate passes
            used = sorted({gold for row in golds for gold in row})
            number = {candidate: i for i, candidate in enumerate(used)}
            golds = [tuple(number[gold] for gold in row) for row in golds]
        form, raw = (recipe.masks, recipe.pooling), recipe.dev_scores == "logits"
        learned = ScoresWithGradient(
            loaded, train.prompts, [ids[c] for c in used], *form, names=train.name
        )
        tested = ScoresWithGradient(loaded, dev.prompts, ids, *form, raw, dev.name)
        optimizer = torch.optim.AdamW([vectors], lr=recipe.rate, weight_decay=recipe.decay)
        batches = [b.tolist() for b in torch.arange(len(train.prompts)).split(recipe.batch)]
        total, step = recipe.epochs * len(batches), 0
        draw = np.random.default_rng(recipe.seed)
        best, kept, chosen = 0.0, start.clone(), -1
        curve: list[tuple[float, float]] = []
        with inserted(loaded, lambda: vectors if fixed is None else torch.cat([vectors, fixed])):
            for epoch in range(recipe.epochs):
                losses = []
                for batch in batches:
                    optimizer.param_groups[0]["lr"] = recipe.rate * schedule(
                        step, total, recipe.warmup
                    )
                    loss = loss_of(learned(batch), [golds[i] for i in batch], recipe, draw)
                    rows = ", ".join(map(train.name, batch))
                    finite(loss, loaded.spec.model, lambda at=f"step {step}, {rows}": at, "loss")
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    step += 1
                    losses.append(float(loss.detach()))
                with torch.no_grad():
                    score = reciprocal(
                        tested(range(len(dev.prompts))), dev.golds, recipe.dev_metric
                    )
                curve.append((float(np.mean(losses)), score))
                if score > best:
                    best, kept, chosen = score, vectors.detach().clone(), epoch
                progress(1)
    return kept, {
        "recipe": asdict(recipe),
        "curve": [[round(a, 6), round(b, 6)] for a, b in curve],
        "epoch": chosen,
        "dev_best": best,
        "train_rows": len(train.prompts),
        "dev_rows": len(dev.prompts),
        "positions_fed": learned.positions_fed + tested.positions_fed,
    }


def schedule(step: int, total: int, warmup: int) -> float:
    """Return the learning rate factor: linear warmup from 0, then linear decay to 0 at `total`."""
    if step < warmup:
        return step / warmup
    return (total - step) / max(total - warmup, 1)


class PromptError(ValueError):
    """A soft prompt file cannot be used; the message names file, model and remedy."""


def save(prompt: SoftPrompt, loaded: Loaded, path: str | Path) -> None:
    """Write vectors and record at `path` atomically; the same prompt gives the same bytes."""
    record = {**prompt.record, "made_for": loaded.identity}
    text = json.dumps(record, sort_keys=True, ensure_ascii=True)
    # a single metadata key, since the file does not preserve the order of several
    data = serialized({"vectors": np.ascontiguousarray(prompt.vectors)}, {"kgprobe": text})
    with atomic(path) as temporary:
        temporary.write_bytes(data)


def load(path: str | Path, loaded: Loaded) -> SoftPrompt:
    """Load the soft prompt at `path`; raise PromptError unless model and tokenizer match.

    `loaded` may be the model without its weights (`load.outline`).
    """
    if not Path(path).is_file():
        raise PromptError(f"{path}: no such soft prompt; the rule prompts_<model> makes it")
    try:
        with safe_open(str(path), framework="numpy") as stream:
            text = (stream.metadata() or {}).get("kgprobe")
            vectors = stream.get_tensor("vectors")
    except SafetensorError as error:
        raise PromptError(f"{path}: not a soft prompt file: {error}") from error
    if text is None:
        raise PromptError(f"{path}: holds vectors without the record of what made them")
    record = json.loads(text)
    names = ("hidden_size", "tokenizer", "weights", "revision")
    if other := differing(record.get("made_for", {}), loaded.identity, names):
        raise PromptError(f"{path}: made for {other}; train the prompt again for this model")
    return SoftPrompt(vectors, record)
