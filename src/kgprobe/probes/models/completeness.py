"""Checks that a loaded model is complete and of the kind that is claimed.

`fault` finds what makes a model unusable: weights that are missing or of another shape, weights of
another class, token ids outside the embedding, a masked model loaded as a causal one. `familiar`
measures whether tokenizer and weights belong together: it compares the loss on a few sentences with
the loss on the same words shuffled. A model that knows its tokenizer's language prefers the former.
Words are shuffled across sentences, not within one: a T5 control model fills a slot equally well
whatever the order of the other words, since they identify the sentence.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from kgprobe.probes.models.batching import padded
from kgprobe.probes.models.head import logits_of, precise

#: Number of names that an error lists.
LISTED = 10
#: Buffers that a model's code fills itself: only some checkpoints store them.
BUFFER = re.compile(
    r"(^|\.)(position_ids|token_type_ids|inv_freq|masked_bias|final_logits_bias|attn\.bias"
    r"|attention\.bias|num_batches_tracked)$"
)
#: Unexpected weights which show that another class was saved: numbered layers (of an encoder beside
#: the decoder that is used, or beyond the configured number), and heads of other tasks. Poolers and
#: pretraining heads (next sentence, sentence order) are no such evidence.
FOREIGN = re.compile(
    r"\.\d+\.|(^|\.)(score|classifier|classification_head|regression_head|qa_outputs|logits_proj"
    r"|discriminator_predictions)\."
)
#: Lengths (tokens) at which a later token is changed, and the largest effect on earlier positions,
#: as a proportion of the effect at its own position, that counts as noise. Randomly initialized
#: masked models have some 2e-3.
LENGTHS = (5, 12)
NOISE = {torch.float64: 1e-9, torch.float32: 1e-4}
HALF_NOISE = 3e-2
#: Tokens that are put around a text or replace part of it.
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
#: Mask slots in an encoder like T5's; in the decoder the second one ends the first answer.
SENTINELS = ("<extra_id_0>", "<extra_id_1>")
#: Below this a later token counts as having no effect.
NOTHING = 1e-7
#: Number of texts in one forward pass.
ROWS = 32
#: Plain, general sentences, written for this check.
ENGLISH = (
    "The old man read his newspaper on the bench.",
    "She opened the window because it was warm.",
    "In winter the days are short and cold.",
    "He bought bread and apples at the market.",
    "The children ran across the field to school.",
    "We waited at the station for the train.",
    "My sister wants to learn to play the piano.",
    "After the rain the streets were still wet.",
    "They moved to a small village by the sea.",
    "A dog barked at the man at the door.",
)
#: Number of standard errors by which sentences must be likelier on average than their shuffled
#: words, and the fewest sentences for a verdict. With ten sentences, a model that prefers neither
#: passes with probability 0.16 % (Student's t). Over twelve shuffles SmolLM2-135M has 8 to 19; with
#: shifted ids it has -2 to 2.
ERRORS, FEWEST = 4.0, 6
SEED = 0


def fault(kind: str, model: Any, tokenizer: Any, info: Mapping[str, Any], limit: int) -> str:
    """Describe in a sentence what makes a loaded model unusable; return "" if nothing does.

    `info` is what from_pretrained returns with output_loading_info (transformers has removed tied
    weights from it); `limit` is the maximum number of tokens of a sentence.
    """
    known, special = tokenizer.get_vocab(), {*tokenizer.all_special_ids}
    ordinary = {*known.values()} - {*map(known.get, _find_unread(tokenizer))} - special
    return (
        _weights(model, info)
        or _ids(kind, model, tokenizer, known)
        or _direction(kind, model, sorted(ordinary), limit)
    )


def unexpected(info: Mapping[str, Any]) -> list[str]:
    """Return names of checkpoint weights that the model does not use, except buffers."""
    return sorted(name for name in info["unexpected_keys"] if not BUFFER.search(name))


def _weights(model: Any, info: Mapping[str, Any]) -> str:
    buffers = {name for name, _ in model.named_buffers()}
    missing = sorted(
        name for name in info["missing_keys"] if not (name in buffers and BUFFER.search(name))
    )
    shapes = [
        f"{name} ({' x '.join(map(str, stored))} stored, {' x '.join(map(str, wanted))} wanted)"
        for name, stored, wanted in sorted(info["mismatched_keys"])
    ]
    homeless = unexpected(info)
    foreign = [name for name in homeless if FOREIGN.search(name)]
    faults = {
        f"{len(missing)} of its weights are missing: ": missing,
        f"{len(shapes)} have another shape: ": shapes,
    }
    if missing or shapes:
        faults["no place for "] = homeless
    else:
        faults[
            f"{type(model).__name__} has no place for {len(foreign)} weights of the checkpoint, "
            "which was saved by another class: "
        ] = foreign
    return "; ".join(text + _format_names(names) for text, names in faults.items() if names)


def _ids(kind: str, model: Any, tokenizer: Any, vocabulary: Mapping[str, int]) -> str:
    rows, known = _rows_of(kind, model, vocabulary), {int(i): t for t, i in vocabulary.items()}
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is not None:
        known.setdefault(int(start), "decoder_start_token_id")
    unread = _find_unread(tokenizer)
    outside = [i for i in sorted(known) if i >= rows and known[i] not in unread]
    if not outside:
        return ""
    special = tokenizer.special_tokens_map
    named = [
        f"{name} {tokenizer.convert_tokens_to_ids(token)}"
        for name, token in special.items()
        if isinstance(token, str) and tokenizer.convert_tokens_to_ids(token) in outside
    ]
    beyond = [f"{known[i]!r} {i}" for i in outside]
    return (
        f"its tokenizer has ids up to {max(outside)}, its embedding has {rows} rows: "
        f"{len(beyond)} ids are outside: {_format_names([*named, *beyond])}"
    )


def _rows_of(kind: str, model: Any, vocabulary: Mapping[str, int]) -> int:
    """Return how many ids the model can read and assign a probability to."""
    read, given = (
        getattr(getattr(module, "weight", None), "shape", (sys.maxsize,))[0]
        for module in (model.get_input_embeddings(), model.get_output_embeddings())
    )
    if given < min(read, max(vocabulary.values()) + 1):
        # what an architecture names its output embedding may be an earlier layer (DeBERTa)
        ids = torch.tensor([sorted(vocabulary.values())[: LENGTHS[0]]], device=model.device)
        given = _logits(kind, model, ids, forced=ids).shape[-1]
    return int(min(read, given))


def _find_unread(tokenizer: Any) -> set[str]:
    """Return special tokens that are never used with text, such as image tokens."""
    special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    used = {getattr(tokenizer, f"{role}_token") for role in ROLES} | {*SENTINELS}
    template = str(tokenizer.chat_template or "")
    return {token for token in special - used if token not in template}


def _direction(kind: str, model: Any, ids: Sequence[int], limit: int) -> str:
    """Check on random `ids` that a causal model cannot see later tokens and a masked one can."""
    if kind not in ("causal", "masked") or len(ids) < 2:
        return ""
    rng = np.random.default_rng(SEED)
    seen = 0.0
    for length in (n for n in LENGTHS if n <= limit):
        rows = np.tile(rng.choice(ids, length), (2, 1))
        place = length // 2
        rows[1, place] = ids[0] if rows[0, place] != ids[0] else ids[1]
        logits = _logits(kind, model, torch.from_numpy(rows).to(model.device))
        # NaN and plus infinity show in the sum; a suppressed token (minus infinity) does not
        if not bool(torch.isfinite(logits.logsumexp(-1)).all()):
            return "its logits are not finite"
        effect = (logits[0] - logits[1]).abs().nan_to_num(0.0).amax(-1)
        seen = max(seen, float(effect[:place].max() / effect[place]))
    if kind == "causal" and seen > NOISE.get(model.dtype, HALF_NOISE):
        return (
            f"{type(model).__name__} reads later tokens (a changed one moves earlier logits by "
            f"{seen:.2g} of its own): this is not a causal model; kind masked?"
        )
    if kind == "masked" and seen < NOTHING:
        return (
            f"{type(model).__name__} does not read later tokens: this is not a masked model; "
            "is_decoder in its configuration, or kind causal?"
        )
    return ""


def sentences(folder: str) -> tuple[str, Sequence[str]]:
    """Return (description, sentences) that the model in `folder` should find familiar.

    A control model knows only its training sentences, which are stored in its folder.
    """
    control = Path(folder) / "control.json"
    if control.is_file():
        record = json.loads(control.read_text(encoding="utf-8"))
        if "examples" in record:
            return "training sentences", record["examples"]
    return "plain English", ENGLISH


def familiar(
    kind: str, model: Any, tokenizer: Any, bos: str, limit: int, texts: Sequence[str] = ENGLISH
) -> dict[str, Any]:
    """Return the loss (nats per token) on sentences and on the same words shuffled, and a verdict.

    First and last words stay in place; inner words are permuted across all sentences, so that a
    word and its tokens are compared with themselves in another context. Causal models score every
    inner word; masked ones too, with every third word masked at once; seq2seq ones score every
    other word, each in its own mask slot. `errors` is the mean over sentences of shuffled minus
    plain loss in standard errors, `belongs` is whether that is ERRORS or more (None for fewer than
    FEWEST sentences), `better` counts the sentences preferred to shuffled ones, and `unknown` is
    the proportion of unknown tokens. Raises ValueError if a loss is not finite.
    """
    plain = [words for words in (text.split(" ") for text in texts) if len(words) > 2]
    owners = np.array([s for s, words in enumerate(plain) for _ in words[2:]])
    dealt = _deal(owners)  # inner word i becomes word dealt[i]
    inner = [word for words in plain for word in words[1:-1]]
    pile = iter([inner[i] for i in dealt])
    shuffled = [[words[0], *(next(pile) for _ in words[2:]), words[-1]] for words in plain]
    wanted = np.arange(len(owners)) % 2 == 1 if kind == "seq2seq" else np.full(len(owners), True)
    losses = []
    for lines, mask in ((plain, wanted), (shuffled, wanted[dealt])):
        rows = list(_rows(kind, model, tokenizer, bos, lines, mask))
        if not rows or max(max(len(row.ids), len(row.forced)) for row in rows) > limit:
            return {"count": 0, "belongs": None}
        losses.append(_losses(kind, model, rows, len(owners)))
    (before, tokens), (after, _) = losses[0], losses[1][:, np.argsort(dealt)]
    if not np.isfinite([before, after]).all():
        raise ValueError("the loss of a plain sentence is not finite")
    sizes = np.bincount(owners, tokens)
    gains = np.bincount(owners, after - before)[sizes > 0] / sizes[sizes > 0]
    spread = max(float(gains.std(ddof=1)) if len(gains) > 1 else 0.0, 1e-6)
    errors = float(gains.mean()) / spread * len(gains) ** 0.5
    coded = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    unknown = [token == tokenizer.unk_token_id for ids in coded for token in ids]
    return {
        "count": len(gains),
        "unknown": round(sum(unknown) / len(unknown), 4),
        "plain": round(float(before.sum() / tokens.sum()), 2),
        "shuffled": round(float(after.sum() / tokens.sum()), 2),
        "better": int((gains > 0).sum()),
        "errors": round(errors, 1),
        "belongs": errors >= ERRORS if len(gains) >= FEWEST else None,
    }


def _deal(owners: Any) -> Any:
    """Return a permutation of words that leaves the fewest (none) in their own sentence."""
    rng = np.random.default_rng(SEED)
    tries = [rng.permutation(len(owners)) for _ in range(1000)]
    return min(tries, key=lambda order: int((owners[order] == owners).sum()))


class _ForcedRow(NamedTuple):
    """Token ids, forced decoder tokens, and scored (position of the logits, token, word number)."""

    ids: list[int]
    forced: list[int]
    targets: list[tuple[int, int, int]]


def _rows(
    kind: str,
    model: Any,
    tokenizer: Any,
    bos: str,
    lines: Sequence[Sequence[str]],
    wanted: Any,
) -> Iterator[_ForcedRow]:
    """Yield inputs and scored tokens of sentences (lists of words); inner words are numbered."""
    number = 0
    for words in lines:
        ids, tokens_of = _tokens(kind, tokenizer, bos, words)
        inner = {number + k: tokens_of[1 + k] for k in range(len(words) - 2)}
        number += len(inner)
        if kind == "causal":
            yield _ForcedRow(
                ids, [], [(t - 1, ids[t], n) for n, span in inner.items() for t in span]
            )
        elif kind == "masked":
            for turn in range(3):
                hidden = {t: n for n, span in inner.items() if n % 3 == turn for t in span}
                masked = [tokenizer.mask_token_id if t in hidden else i for t, i in enumerate(ids)]
                yield _ForcedRow(masked, [], [(t, ids[t], n) for t, n in hidden.items()])
        else:
            yield from _slots(model, tokenizer, ids, {n: o for n, o in inner.items() if wanted[n]})


def _slots(
    model: Any, tokenizer: Any, ids: list[int], words: Mapping[int, list[int]]
) -> Iterator[_ForcedRow]:
    """Yield a row for every word, with a mask slot in its position of the encoder input."""
    (opening, closing), start = slot_of(tokenizer), decoder_start(model, tokenizer)
    for number, span in words.items():
        if opening is None or not span:
            continue
        source = [*ids[: span[0]], opening, *ids[span[-1] + 1 :]]
        if closing is not None:
            targets = [(1 + k, ids[t], number) for k, t in enumerate(span)]
            yield _ForcedRow(source, [start, opening, *(ids[t] for t in span)], targets)
        else:
            yield _ForcedRow(source, [start, *ids], [(t, ids[t], number) for t in span])


def _tokens(
    kind: str, tokenizer: Any, bos: str, words: Sequence[str]
) -> tuple[list[int], list[list[int]]]:
    """Return (ids, token positions of every word) of a sentence as input to this kind of model."""
    coded = tokenizer(
        " ".join(words), add_special_tokens=kind != "causal", return_offsets_mapping=True
    )
    first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    front = [first] if kind == "causal" and bos != "none" and first is not None else []
    tokens = list(enumerate(coded["offset_mapping"], start=len(front)))
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    spans = [
        [t for t, (a, b) in tokens if a < b and a < end and b > end - len(word)]
        for word, end in zip(words, ends.tolist(), strict=True)
    ]
    return front + list(coded["input_ids"]), spans


def slot_of(tokenizer: Any) -> tuple[int | None, int | None]:
    """Return the mask slot of an encoder and the token that ends an answer in the decoder:
    SENTINELS, or a mask token and None (like BART), or None twice for a tokenizer with neither."""
    sentinels = tokenizer.convert_tokens_to_ids(list(SENTINELS))
    if not {None, tokenizer.unk_token_id} & {*sentinels}:
        return int(sentinels[0]), int(sentinels[1])
    return tokenizer.mask_token_id, None


def decoder_start(model: Any, tokenizer: Any) -> int:
    """Return the start token of a decoder."""
    start = model.config.decoder_start_token_id
    return int(tokenizer.pad_token_id if start is None else start)


@torch.inference_mode()
def _losses(kind: str, model: Any, rows: Sequence[_ForcedRow], words: int) -> Any:
    """Return a 2 x words array: summed loss and token count of every scored word."""
    totals = np.zeros((2, words))
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        ids, mask = padded([np.array(row.ids) for row in part], 0, model.device)
        forced, _ = padded([np.array(row.forced) for row in part], 0, model.device)
        for row, logits in zip(part, _logits(kind, model, ids, mask, forced), strict=True):
            if row.targets:
                places, targets, numbers = (list(c) for c in zip(*row.targets, strict=True))
                wanted = torch.tensor(targets, device=logits.device)[:, None]
                scores = logits[places].log_softmax(-1).gather(1, wanted)[:, 0]
                np.add.at(totals[0], numbers, -scores.double().cpu().numpy())
                np.add.at(totals[1], numbers, 1)
    return totals


@torch.inference_mode()
def _logits(kind: str, model: Any, ids: Any, mask: Any = None, forced: Any = None) -> Any:
    """Return `logits_of` in float32 at least."""
    return precise(logits_of(kind, model, ids, mask, forced))


def _format_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
