"""Adapters of PEFT (LoRA and its kind) on the base that they were trained on.

Plain weights take the adapter in: what is asked is one model like any other, and it is checked that
it says what base and adapter say side by side. Weights in 8 or 4 bit would be rounded once more:
there the adapter stays beside them.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from kgprobe.probes.models.backends import BackendError, need
from kgprobe.probes.models.head import apart

CONFIG = "adapter_config.json"
#: Largest difference (nat) between base and adapter side by side and as one, by arithmetic.
ONE = {torch.float64: 1e-6, torch.float32: 1e-3}
HALF_ONE = 0.5
#: What PEFT raises for adapters that do not fit, or are damaged.
_FAILING = (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError, ImportError)


def told(adapter: str, source: str, revision: str) -> dict[str, Any]:
    """What identifies the adapter of a row: its type, base and the sha256 of its files.

    Nothing heavy is read. Raises BackendError for a folder that is none of an adapter, and where
    the adapter was trained on another base than `source` at `revision`.
    """
    folder = _folder(adapter)
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    base, at = str(config.get("base_model_name_or_path") or ""), config.get("revision") or ""
    if fault := _other(base, str(at), source, revision):
        raise BackendError(
            f"the adapter in {folder} was trained on {fault}; write that base as the row's source. "
            f"Where both are one model under two names, correct base_model_name_or_path in {CONFIG}"
        )
    files = sorted(p for p in folder.iterdir() if p.name.startswith("adapter_"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return {"type": str(config.get("peft_type")), "base": base, "sha256": digest.hexdigest()}


def joined(model: Any, adapter: str, merge: bool) -> tuple[Any, dict[str, Any]]:
    """The model with the adapter of a folder, and what was found: `merged`, the largest change
    (nat) of a log-probability that it makes, and how far base and adapter side by side are from
    the one model.

    Raises BackendError for adapters that do not fit, that are more than changed weights (soft
    prompts), or that are not taken up whole.
    """
    need("peft", "adapters")
    import peft

    folder = _folder(adapter)
    ids = torch.arange(8, device=model.device)[None]
    before = _said(model, ids)
    try:
        config = peft.PeftConfig.from_pretrained(str(folder))
        if config.is_prompt_learning:
            raise BackendError(
                f"the adapter in {folder} is of type {config.peft_type}, which puts vectors before "
                "a text; adapters that change weights (LORA) can be asked"
            )
        both = peft.PeftModel.from_pretrained(model, str(folder)).eval()
        _whole(peft, both, folder)
        found = _said(both.get_base_model(), ids)
        record = {"merged": merge, "change": apart(found, before)}
        if not merge:
            return both.get_base_model(), record
        one = both.merge_and_unload(safe_merge=True)
    except _FAILING as error:
        if isinstance(error, BackendError):
            raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise BackendError(
            f"the adapter in {folder} does not fit {type(model).__name__}: {first}"
        ) from error
    off = apart(_said(one, ids), found)
    if not off <= ONE.get(one.dtype, HALF_ONE):
        raise BackendError(
            f"the adapter in {folder} merged into its base is off by {off:.2g} nat from both side "
            "by side; use dtype float32"
        )
    return one, record | {"merging": off}


def _folder(adapter: str) -> Path:
    scheme, _, path = adapter.partition(":")
    if scheme != "folder" or not path:
        raise BackendError(f"adapter {adapter!r}; legal: folder:PATH")
    if not (Path(path) / CONFIG).is_file():
        raise BackendError(f"no adapter of PEFT in {path}: it has no {CONFIG}")
    return Path(path)


def _other(base: str, at: str, source: str, revision: str) -> str:
    """What the adapter was trained on, where that is not the row's base; else empty.

    A folder may have moved since: its last name tells, as the hub's NAME does for a download. An
    adapter on a GGUF file was trained on the folder that it was unpacked into.
    """
    scheme, _, own = source.partition(":")
    if not base:
        return "a base that its configuration does not name"
    if scheme == "hub":
        if base != own:
            return f"{base}, the row's source is {own}"
        if at and revision and at != revision:
            return f"{base} at {at}, the row's revision is {revision}"
        return ""
    name, place = Path(base.rstrip("/")).name, Path(own.rstrip("/")).name
    legal = {place, f"unpacked-{place}"} if scheme == "gguf" else {place}
    return "" if name in legal else f"{base}, the row's source is {own}"


def _whole(peft: Any, both: Any, folder: Path) -> None:
    """Raise BackendError unless the model holds all that the file has, and nothing besides."""
    stored = peft.load_peft_weights(str(folder), device="cpu")
    held = peft.get_peft_model_state_dict(both, save_embedding_layers=False)
    lost = sorted({*stored} ^ {*held})
    lost = lost or [n for n in sorted(stored) if stored[n].shape != held[n].shape]
    lost = lost or [
        n for n in sorted(stored) if not torch.equal(held[n].cpu(), stored[n].to(held[n].dtype))
    ]
    if lost or not stored:
        what = ", ".join(lost[:5]) or "its file is empty"
        base = type(both.get_base_model()).__name__
        raise BackendError(
            f"the adapter in {folder} is not taken up whole by {base} ({len(lost)} weights): {what}"
        )


@torch.inference_mode()
def _said(model: Any, ids: Any) -> Any:
    """Logits of a few tokens."""
    more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    return model(input_ids=ids, **more).logits.clone()
