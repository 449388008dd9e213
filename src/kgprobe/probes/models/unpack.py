"""A GGUF file unpacked once, so that every job loads its weights as they are used.

De-quantizing takes longer than many a small job. Whether the weights are whole is asked where they
are loaded.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from kgprobe.probes.models.load import UNPACKED, ModelError, ModelSpec, read_model


def unpack(spec: ModelSpec, folder: Path) -> dict[str, Any]:
    """Write weights (spec.dtype, safetensors) and tokenizer of a `gguf:` model; (record).

    `load` takes the folder in place of the packed file as long as that has the sha256 noted here,
    and identifies the model by that sha256 in both cases.
    """
    if not spec.source.startswith("gguf:"):
        raise ModelError(f"{spec.model}: source {spec.source!r} is no GGUF file")
    loaded, _, _ = read_model(replace(spec, models_folder=""), device="cpu")
    # what it was packed in is over: these are plain weights
    del loaded.model.config.quantization_config
    loaded.model.hf_quantizer = None
    loaded.model.is_quantized = False
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    record = {"sha256": loaded.record["weights"], "dtype": spec.dtype, "model": spec.model}
    # the mark comes last and whole: without it nobody takes the folder
    half = folder / f"{UNPACKED}.part"
    half.write_text(json.dumps(record, sort_keys=True) + "\n", encoding="utf-8")
    half.replace(folder / UNPACKED)
    return loaded.record
