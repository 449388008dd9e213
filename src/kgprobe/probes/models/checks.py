"""Checks that a model's outputs stay the same under the shortcuts that make engines fast.

    row by row, the whole model   the definition of every number
    padded together               must change nothing, else only equal lengths are batched
    body and head separated, the last layer at one position, prefixes shared
                                  must change nothing, else the slower method is used

A shortcut is tried on a few rows; one that fails or gives other numbers is disabled, and the
reason goes into the engine's notes. A model that cannot score rows without shortcuts is rejected.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch

from kgprobe.probes.models.batching import Ints, is_memory, padded
from kgprobe.probes.models.head import HALF, apart, logits_of
from kgprobe.probes.models.load import Loaded, ModelError

#: Errors from a model's code when it is called with unsupported arguments.
STRANGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)
T = TypeVar("T")
#: Largest difference (nats) between two scoring methods that a check accepts, by dtype. Another
#: order of sums moves a log-probability by some 1e-5 in float32 (in which some architectures
#: compute regardless of the dtype of the weights: hence the first value) and by some 0.1 in half
#: precision; a wrong scale, mask or position moves some token of a sample by 0.01 to several nats,
#: so all of these checks run in float32 if the weights can be cast to it.
AGREEMENT = {torch.float64: 1e-5, torch.float32: 1e-3}
HALF_AGREEMENT = 0.5
#: Lengths (tokens) of the rows that padding is tried on.
LENGTHS = (11, 7, 3)
#: Configuration keys for the number of tokens that attention reaches back.
WINDOWS = ("sliding_window", "attention_window_size", "attention_chunk_size", "window_size")
#: Maximum characters of a reason.
SHOWN = 200


def tolerance(loaded: Loaded) -> float:
    """Return the largest difference (nats) that counts as noise of the model's arithmetic."""
    if loaded.spec.quantized == "int8":  # rounding of activations amplifies last bits
        return HALF_AGREEMENT
    return AGREEMENT.get(loaded.model.dtype, HALF_AGREEMENT)


def objection(worst: Callable[[], float], most: float) -> str:
    """Return why a shortcut is rejected: it fails, or is off by more than `most` nats; else empty.

    `worst` tries the shortcut and returns the largest difference. Running out of memory is not an
    objection: that error propagates.
    """
    try:
        off = worst()
    except STRANGE as error:
        if is_memory(error):
            raise
        first = (str(error).strip().splitlines() or [""])[0][:SHOWN]
        return f"{type(error).__name__}: {first}"
    # a comparison with NaN is false, so NaN is rejected
    return "" if off <= most else f"it is off by {off:.2g}"


def float32_objection(loaded: Loaded, worst: Callable[[], float]) -> str:
    """Return the `objection` to a shortcut, checked in float32 whatever the model's precision.

    Rounding in half precision is far larger than the effect of a wrong mask. A shortcut that cannot
    be tried in float32 (8- or 4-bit weights, not twice their memory) is not used.
    """
    if not loaded.spec.quantized and loaded.model.dtype in AGREEMENT:
        return objection(worst, tolerance(loaded))
    try:
        with in_float32(loaded):
            return objection(worst, AGREEMENT[torch.float32])
    except UncheckedError as error:
        return str(error)


def window_objection(loaded: Loaded, longest: int) -> str:
    """Return why rows of so many tokens must not share prefixes; empty if attention reaches back to
    their first token, and positions mean the same in rows of every length."""
    if 0 < (border := position_border(loaded)) < longest:
        return f"rows of more than {border} tokens have other positions"
    config = loaded.model.config.get_text_config()
    window = min((w for n in WINDOWS if (w := getattr(config, n, None))), default=longest)
    is_short = window < longest
    return f"sentences are longer than the attention window of {window}" if is_short else ""


def position_border(loaded: Loaded) -> int:
    """Return the length in tokens above which the longest row of a batch changes the positions of
    all rows (LongRoPE: Ding et al. 2024); 0 if there is none."""
    ropes = getattr(loaded.model.config.get_text_config(), "rope_parameters", None) or {}
    # some architectures have separate parameters for each kind of layer
    nested = [ropes, *(rope for rope in ropes.values() if isinstance(rope, dict))]
    return max(
        (rope["original_max_position_embeddings"] for rope in nested
         if rope.get("rope_type") == "longrope"), default=0,
    )  # fmt: skip


class UncheckedError(ValueError):
    """Something cannot be tried with weights in float32; the message is an `objection`."""


@contextlib.contextmanager
def in_float32(loaded: Loaded) -> Iterator[None]:
    """Cast all weights of the model to float32 inside the context, and restore them afterwards.

    Raises UncheckedError for weights in 8 or 4 bit, for weights on the meta device, and if memory
    runs out.
    """
    tensors = [t for t in (*loaded.model.parameters(), *loaded.model.buffers()) if t.dtype in HALF]
    reason = f"its weights are {loaded.spec.quantized}" if loaded.spec.quantized else ""
    if not reason and any(t.is_meta for t in tensors):
        reason = "its weights are not all in memory"
    if reason:
        raise UncheckedError(f"it cannot be tried in float32: {reason}")
    originals: list[tuple[Any, Any]] = []
    # a tensor created in inference mode cannot replace a parameter
    with torch.inference_mode(False), torch.no_grad():
        try:
            for tensor in tensors:
                originals.append((tensor, tensor.data))
                tensor.data = tensor.data.float()
            with torch.inference_mode():
                yield
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, ModelError) or not is_memory(error):
                raise
            raise UncheckedError("there is no memory to try it in float32") from None
        finally:
            for tensor, data in originals:
                tensor.data = data


def preferably_in_float32(loaded: Loaded, check: Callable[[], T]) -> T:
    """Run `check` in float32 if the weights can be cast to it, else in the model's own precision,
    whose rounding hides small errors."""
    with contextlib.suppress(UncheckedError), in_float32(loaded):
        return check()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return check()


def refuse_padding(loaded: Loaded, purpose: str) -> None:
    """Raise ModelError if padding changes the model's outputs and `purpose` requires padding.

    `purpose` is the subject of the error message: "soft prompts".
    """
    reason = padding(loaded)
    if reason:
        raise ModelError(
            f"{loaded.spec.model}: {purpose} need padded batches, but {reason}; "
            "use a model that minds its attention mask"
        )


def padding(loaded: Loaded) -> str:
    """Return why rows of different lengths cannot be batched; empty if padding changes nothing.

    Checked once per loaded model. Raises ModelError if the model cannot score a row by itself,
    if its outputs depend on other rows of the batch or on chance, and for a causal model that sees
    later tokens.
    """
    if loaded.padding is None:
        loaded.padding = preferably_in_float32(loaded, lambda: _padding(loaded))
    return loaded.padding


@torch.inference_mode()
def _padding(loaded: Loaded) -> str:
    name = type(loaded.model).__name__
    rows = sample(loaded, LENGTHS)
    alone: list[Any] = []

    def read_alone() -> float:
        alone.extend(_logits(loaded, [row])[0] for row in rows)
        return 0.0

    failed = objection(read_alone, 0.0)
    if failed:
        raise ModelError(f"{loaded.spec.model}: {name} cannot read a row by itself: {failed}")
    if not all(map(is_finite, alone)):
        return ""  # nothing to compare; the engines reject such numbers with row and position
    most = tolerance(loaded)
    reason = objection(lambda: _worst(_logits(loaded, rows), alone), most)
    if not reason:
        return ""
    if loaded.spec.kind == "causal":
        raise ModelError(
            f"{loaded.spec.model}: {name} says something else of a token when others follow it "
            f"({reason}): it is not a causal model"
        )
    if loaded.spec.kind == "seq2seq":
        short = objection(lambda: apart(_logits(loaded, rows[:1], 3)[0], alone[0][:3]), most)
        if short:
            raise ModelError(
                f"{loaded.spec.model}: the decoder of {name} says something else of a token when "
                f"others follow it ({short})"
            )
    other = sample(loaded, LENGTHS[:1], start=3)[0]
    pair = objection(lambda: _worst(_logits(loaded, [rows[0], other])[:1], alone[:1]), most)
    if pair:
        raise ModelError(
            f"{loaded.spec.model}: the scores of {name} for a row depend on the other rows of the "
            f"batch or on chance ({pair})"
        )
    return f"padding changes what {name} says ({reason})"


def is_finite(logits: Any) -> bool:
    """Return whether logits contain no NaN or plus infinity (minus infinity suppresses tokens).

    Otherwise there is nothing to compare.
    """
    return bool(torch.isfinite(logits.logsumexp(-1)).all())


def _worst(logits: list[Any], expected: list[Any]) -> float:
    return max(apart(f, e) for f, e in zip(logits, expected, strict=True))


def _logits(loaded: Loaded, rows: list[Ints], forced: int | None = None) -> list[Any]:
    """Return the logits of each row (its length x vocabulary), all rows padded into one pass.

    The decoder of a seq2seq model is forced along the row's own tokens, `forced` of them or all.
    """
    ids, mask = padded(rows, loaded.tokenizer.pad_token_id or 0, loaded.device)
    given = mask if len({len(row) for row in rows}) > 1 else None
    logits = logits_of(loaded.spec.kind, loaded.model, ids, given, ids[:, :forced])
    return [logits[number, : len(row)] for number, row in enumerate(rows)]


def sample(loaded: Loaded, lengths: tuple[int, ...], start: int = 0) -> list[Ints]:
    """Return rows of ordinary tokens of the given lengths, cut to the model's window."""
    top = int(loaded.model.get_input_embeddings().weight.shape[0])
    special = {*loaded.tokenizer.all_special_ids, loaded.tokenizer.pad_token_id}
    ordinary = np.array([i for i in range(min(top, len(loaded.tokenizer))) if i not in special])
    count = max(lengths)
    picked = ordinary[(np.arange(len(lengths) * count) * 7 + 5 + start) % len(ordinary)]
    table = picked.astype(np.int64).reshape(len(lengths), count)
    return [row[: min(n, loaded.limit)] for row, n in zip(table, lengths, strict=True)]
