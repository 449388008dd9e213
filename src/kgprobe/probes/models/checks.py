"""Whether a model's outputs stay the same under the shortcuts that make engines fast.

    row by row, the whole model   what every number is defined by
    padded together               must change nothing, else rows of one length go together
    body and head apart, the last layer at one place, prefixes shared
                                  must change nothing, else the slower method is used

A short cut is tried on a few rows; one that fails or gives other numbers is left out, with the
reason in the engine's notes. A model that cannot be read even so is refused by its name.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch

from kgprobe.probes.models.batching import Budget, Ints, is_memory, padded
from kgprobe.probes.models.head import HALF, apart, logits_of
from kgprobe.probes.models.load import Loaded, ModelError

#: What the code of a model raises when it is called in a way that it was not written for.
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
#: Largest difference (nat) between two scoring methods that any check accepts, by arithmetic.
#: Another order of sums moves a log-probability by some 1e-5 in float32 (which some architectures
#: compute in whatever the weights are: hence the first) and by some 0.1 in half precision; a wrong
#: scale, mask or position moves some token of a sample by 0.01 to several nat, so that all of these
#: are tried in float32 where the weights can be cast to it.
AGREEMENT = {torch.float64: 1e-5, torch.float32: 1e-3}
HALF_AGREEMENT = 0.5
#: Tokens of the rows that padding is tried on.
LENGTHS = (11, 7, 3)
#: What configurations call the number of tokens that attention reaches back.
WINDOWS = ("sliding_window", "attention_window_size", "attention_chunk_size", "window_size")
#: A reason is shown up to so many characters.
SHOWN = 200


def tolerance(loaded: Loaded) -> float:
    """Largest difference (nat) that is taken for noise of the model's arithmetic."""
    if loaded.spec.quantized == "int8":  # activations are rounded, a last bit may tip one over
        return HALF_AGREEMENT
    return AGREEMENT.get(loaded.model.dtype, HALF_AGREEMENT)


def objection(worst: Callable[[], float], most: float) -> str:
    """Why a shortcut is rejected: it fails, or is off by more than `most` nat; else empty.

    `worst` tries the shortcut and returns the largest difference. Memory that runs out is no
    objection: it propagates.
    """
    try:
        off = worst()
    except STRANGE as error:
        if is_memory(error):
            raise
        first = (str(error).strip().splitlines() or [""])[0][:SHOWN]
        return f"{type(error).__name__}: {first}"
    # NaN is no agreement
    return "" if off <= most else f"it is off by {off:.2g}"


def float32_objection(loaded: Loaded, worst: Callable[[], float]) -> str:
    """The `objection` to a short cut, found in float32 whatever the model's precision.

    What half precision rounds away is far above what a wrong mask may move. A short cut that cannot
    be tried in float32 is not taken: weights in 8 or 4 bit, or twice their memory is not there.
    """
    if not loaded.spec.quantized and loaded.model.dtype in AGREEMENT:
        return objection(worst, tolerance(loaded))
    try:
        with in_float32(loaded):
            return objection(worst, AGREEMENT[torch.float32])
    except UncheckedError as error:
        return f"it cannot be tried in float32: {error}"
    except (MemoryError, RuntimeError) as error:
        if not is_memory(error):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return "there is no memory to try it in float32"


def window_objection(loaded: Loaded, longest: int) -> str:
    """Why rows of so many tokens must not share what they begin with; empty where attention reaches
    back to their first one, and positions mean the same in rows of every length."""
    if 0 < (border := position_border(loaded)) < longest:
        return f"rows of more than {border} tokens have other positions"
    config = loaded.model.config.get_text_config()
    window = min((w for n in WINDOWS if (w := getattr(config, n, None))), default=longest)
    is_short = window < longest
    return f"sentences are longer than the attention window of {window}" if is_short else ""


def position_border(loaded: Loaded) -> int:
    """Tokens above which the longest row of a batch changes the positions of all (LongRoPE: Ding et
    al. 2024); 0 where none does."""
    ropes = getattr(loaded.model.config.get_text_config(), "rope_parameters", None) or {}
    # some architectures have other ones for each kind of layer
    nested = [ropes, *(rope for rope in ropes.values() if isinstance(rope, dict))]
    return max(
        (rope["original_max_position_embeddings"] for rope in nested
         if rope.get("rope_type") == "longrope"), default=0,
    )  # fmt: skip


class UncheckedError(ValueError):
    """Weights cannot be cast to float32."""


@contextlib.contextmanager
def in_float32(loaded: Loaded) -> Iterator[None]:
    """The model with all weights in float32 while open, and with its own again afterwards.

    Raises UncheckedError for weights in 8 or 4 bit and such as lie on no device.
    """
    if loaded.spec.quantized:
        raise UncheckedError(f"its weights are {loaded.spec.quantized}")
    tensors = [t for t in (*loaded.model.parameters(), *loaded.model.buffers()) if t.dtype in HALF]
    if any(t.is_meta for t in tensors):
        raise UncheckedError("its weights are not all in memory")
    originals: list[tuple[Any, Any]] = []
    # a tensor made in inference mode cannot stand in place of a parameter
    with torch.inference_mode(False), torch.no_grad():
        try:
            for tensor in tensors:
                originals.append((tensor, tensor.data))
                tensor.data = tensor.data.float()
            with torch.inference_mode():
                yield
        finally:
            for tensor, data in originals:
                tensor.data = data


def preferably_in_float32(loaded: Loaded, check: Callable[[], T]) -> T:
    """What `check` returns in float32 where the weights can be cast to it, else in the model's own
    precision, whose rounding hides small faults."""
    try:
        with in_float32(loaded):
            return check()
    except UncheckedError:
        pass
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, ModelError) or not is_memory(error):
            raise
    return check()


def budget_of(loaded: Loaded, given: Budget | None, notes: list[str]) -> Budget:
    """The budget to batch by: without padding where padding changes what the model says."""
    budget = given or Budget()
    budget.border = position_border(loaded)
    reason = padding(loaded)
    if reason:
        budget.overhead = 0
        notes.append(f"batches of equal lengths only: {reason}")
    return budget


def refuse_padding(loaded: Loaded, purpose: str) -> None:
    """Raise ModelError where padding changes what the model says and `purpose` cannot go without.

    `purpose` is the beginning of a sentence: "soft prompts".
    """
    reason = padding(loaded)
    if reason:
        raise ModelError(
            f"{loaded.spec.model}: {purpose} need padded batches, but {reason}; "
            "use a model that minds its attention mask"
        )


def padding(loaded: Loaded) -> str:
    """Why rows of different lengths cannot be read together; empty where padding changes nothing.

    Tried once per loaded model. Raises ModelError where the model cannot read a row by itself,
    where what it says depends on the rows beside it or on chance, and for a causal model that sees
    what follows.
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
        return ""  # nothing to compare; the engines refuse such numbers with row and position
    most = tolerance(loaded)
    reason = objection(lambda: _worst(_logits(loaded, rows), alone), most)
    if not reason:
        return ""
    if loaded.spec.kind == "causal":
        raise ModelError(
            f"{loaded.spec.model}: {name} says something else of a token when others follow it "
            f"({reason}): it is no causal model"
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
            f"{loaded.spec.model}: what {name} says of a row depends on the rows beside it or on "
            f"chance ({pair})"
        )
    return f"padding changes what {name} says ({reason})"


def is_finite(logits: Any) -> bool:
    """Whether no row of logits holds NaN or plus infinity (a suppressed token has minus infinity).

    Otherwise there is nothing to compare.
    """
    return bool(torch.isfinite(logits.logsumexp(-1)).all())


def _worst(logits: list[Any], expected: list[Any]) -> float:
    return max(apart(f, e) for f, e in zip(logits, expected, strict=True))


def _logits(loaded: Loaded, rows: list[Ints], forced: int | None = None) -> list[Any]:
    """Logits of each row (its length x vocabulary), all of them padded into one pass.

    The decoder of a seq2seq model is forced along the row's own tokens, `forced` of them or all.
    """
    ids, mask = padded(rows, loaded.tokenizer.pad_token_id or 0, loaded.device)
    given = mask if len({len(row) for row in rows}) > 1 else None
    logits = logits_of(loaded.spec.kind, loaded.model, ids, given, ids[:, :forced])
    return [logits[number, : len(row)] for number, row in enumerate(rows)]


def sample(loaded: Loaded, lengths: tuple[int, ...], start: int = 0) -> list[Ints]:
    """Rows of ordinary tokens of the given lengths, as far as the model's window goes."""
    top = int(loaded.model.get_input_embeddings().weight.shape[0])
    special = {*loaded.tokenizer.all_special_ids, loaded.tokenizer.pad_token_id}
    ordinary = np.array([i for i in range(min(top, len(loaded.tokenizer))) if i not in special])
    count = max(lengths)
    picked = ordinary[(np.arange(len(lengths) * count) * 7 + 5 + start) % len(ordinary)]
    table = picked.astype(np.int64).reshape(len(lengths), count)
    return [row[: min(n, loaded.limit)] for row, n in zip(table, lengths, strict=True)]
