"""Control models with randomly initialized weights, whose accuracy owes nothing to pretraining.

    all          every parameter, drawn as the architecture initializes it
    embeddings   only the word embeddings (with tied weights also the output layer)

Zhong, Friedman, Chen 2021, section 4. Architecture, tokenizer and settings are unchanged; the name
of the model states the control, so that no row can be mistaken for the original model.
"""

import copy
import hashlib
from dataclasses import replace
from typing import Any, Literal

import torch

from kgprobe.probes.models.load import AUTO, Loaded

Scope = Literal["all", "embeddings"]


def reinitialize(loaded: Loaded, what: Scope = "all", seed: int = 0) -> Loaded:
    """Return a new model with random weights, named `model+random-all-0`; `loaded` is unchanged.

    Weights are drawn on the CPU in float32, so that they do not depend on the device. The record's
    `weights` become a hash of model weights, `what` and seed. Raises ValueError if `embeddings`
    finds an embedding of another shape than the configuration says.
    """
    fresh = _draw_weights(loaded, seed)
    if what == "embeddings":
        table = fresh.get_input_embeddings().weight.detach()
        model = copy.deepcopy(loaded.model)
        embedding = model.get_input_embeddings().weight
        if embedding.shape != table.shape:
            raise ValueError(
                f"{loaded.spec.model}: its embedding is {tuple(embedding.shape)}, its "
                f"configuration says {tuple(table.shape)}"
            )
        with torch.no_grad():
            embedding.copy_(table)
    else:
        model = fresh.to(device=loaded.device, dtype=loaded.model.dtype)
    label = f"random-{what}-{seed}"
    digest = hashlib.sha256(f"{loaded.record.get('weights', '')} {label}".encode()).hexdigest()
    record = {
        # the check of the original weights does not apply to these
        **{name: value for name, value in loaded.record.items() if name != "completeness"},
        "model": f"{loaded.spec.model}+{label}",
        "weights": digest,
        "reinitialized": {"what": what, "seed": seed},
    }
    return Loaded(
        replace(loaded.spec, model=f"{loaded.spec.model}+{label}"),
        model.eval().requires_grad_(False),
        loaded.tokenizer,
        loaded.device,
        loaded.limit,
        record,
    )


def _draw_weights(loaded: Loaded, seed: int) -> Any:
    """Initialize a model of the same configuration in float32 on the CPU from `seed` alone."""
    config = copy.deepcopy(loaded.model.config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AUTO[loaded.spec.kind].from_config(config, dtype=torch.float32)
    rows = loaded.model.get_input_embeddings().weight.shape[0]
    if model.get_input_embeddings().weight.shape[0] != rows:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model.resize_token_embeddings(rows, mean_resizing=False)
    return model
