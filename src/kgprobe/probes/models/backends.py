"""Models that do not come as they are stored: spread over devices, or with weights in 8 or 4 bit.

accelerate spreads a model (`device_map`); bitsandbytes stores the weights of its linear layers as
int8 (LLM.int8(), Dettmers et al. 2022: activations are rounded as well) or nf4 (QLoRA, Dettmers et
al. 2023: read back in the model's own arithmetic). Head and embeddings stay as they are. Packages
of extras are imported where they are asked for.
"""

import importlib.util
from typing import Any

import torch

#: package -> the extra of pyproject.toml that has it
EXTRAS = {"accelerate": "quantized", "bitsandbytes": "quantized", "peft": "peft"}
#: values of the column `quantised`, and what parameters are stored in
STORED = {"int8": torch.int8, "nf4": torch.uint8}
#: What the code of a kernel raises where it does not run.
_FAILING = (
    RuntimeError,
    ImportError,
    AttributeError,
    AssertionError,
    TypeError,
    ValueError,
    OSError,
)


class BackendError(RuntimeError):
    """A model cannot be had in the way that is asked for; the message says what would do."""


def need(package: str, purpose: str) -> None:
    """Raise BackendError, with the extra to install, where `package` is not installed.

    `purpose` is the beginning of a sentence: "weights in int8".
    """
    if importlib.util.find_spec(package) is None:
        raise BackendError(
            f"{purpose} need the package {package}, which is not installed: "
            f"pip install 'kgprobe[{EXTRAS[package]}]' (make setup EXTRAS=test,{EXTRAS[package]})"
        )


def options(
    weights: str, dtype: torch.dtype, device: torch.device, spread: str | dict[str, Any] | None
) -> dict[str, Any]:
    """What from_pretrained is told besides: nothing for a model as it is stored, on one device.

    Raises BackendError for other `weights` and for packages that are missing.
    """
    if spread is not None:
        need("accelerate", "models that are spread over devices")
    if not weights:
        return {} if spread is None else {"device_map": spread}
    if weights not in STORED:
        raise BackendError(f"weights {weights!r}; legal: {', '.join(STORED)}, or nothing")
    for package in ("accelerate", "bitsandbytes"):
        need(package, f"weights in {weights}")
    import transformers

    told: dict[str, Any] = {"load_in_8bit": True}
    if weights == "nf4":
        told = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": dtype}
    return {
        "quantization_config": transformers.BitsAndBytesConfig(**told),
        "device_map": {"": str(device)} if spread is None else spread,
    }


def place(model: Any, device: torch.device) -> torch.device:
    """Where what is read goes in: the first device of a model that is spread, else `device`.

    Raises BackendError for a model whose embedding is not in memory: ids have nowhere to go.
    """
    found = getattr(model, "hf_device_map", None) or {"": str(device)}
    embedding = model.get_input_embeddings()
    if embedding is not None and any(p.device.type == "meta" for p in embedding.parameters()):
        raise BackendError(
            "the device map leaves the input embedding out of the memory that it is read in; put "
            "it on the device of the first layers"
        )
    here = [str(d) for d in found.values() if str(d) not in ("cpu", "disk")]
    first = here[0] if here else "cpu"
    return torch.device(f"cuda:{first}" if first.isdecimal() else first)


@torch.inference_mode()
def tried(weights: str, model: Any) -> None:
    """Try the kernels of a model that was just loaded, set to its own arithmetic.

    Raises BackendError where no weight is stored as asked, or where no kernel here reads them.
    """
    if not any(p.dtype == STORED[weights] for p in model.parameters()):
        raise BackendError(
            f"no weight of {type(model).__name__} is stored in {weights}: it has no linear layer "
            "that bitsandbytes knows; leave the column `quantised` empty"
        )
    for module in model.modules():
        # where a processor has AVX512-BF16, nf4 would be read in bfloat16 whatever is asked for
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    device = place(model, model.device)
    ids = torch.tensor([[0, 1]], device=device)
    more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    try:
        model(input_ids=ids, **more)
    except _FAILING as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise BackendError(
            f"weights in {weights} have no kernel here, on {device.type}: {first}\n"
            "run it where bitsandbytes has one (KGPROBE_DEVICE=cuda), or leave the column "
            "`quantised` empty"
        ) from error
