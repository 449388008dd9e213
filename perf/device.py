"""What an accelerator does: sentence, cloze, fill and search in float32 and bfloat16.

    python -m perf.device [--device cuda|cpu] [--shape real|tiny] [--out FILE]
                          [--causal FOLDER] [--masked FOLDER] [--questions FILE]

needs Python, torch, transformers and numpy alone, and no network: models have the shape of
SmolLM2-1.7B (causal) and BERT-large (masked) with random weights, unless folders of real ones are
given. For every method and arithmetic it tells seconds, positions fed and positions a second, peak
memory, the share of the card's matrix peak (a product of large matrices in the same run), and, on a
part of the questions, how many rank their options as float32 on a processor does and the largest
difference of a log-probability. `--questions`: what `perf.peers` drew is asked of the causal folder
in both arithmetics. lm-evaluation-harness scores the same sentences with the same weights where it
can be imported; without, a line says so. Without a card the shapes are tiny: that it runs, not how
fast. The card's name stands in every row.
"""

import argparse
import gc
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import transformers

from kgprobe.probes.models import device as devices
from kgprobe.probes.models.load import Loaded
from perf._device_methods import (
    DTYPES,
    METHODS,
    OPTIONS,
    SHAPES,
    Answers,
    Method,
    build_model,
    load_folder,
    moved,
    of_questions,
    words,
)

OUT = Path("results/perf/device.json")
#: least share of the matrix peak, of sentences with a causal model of 1 to 2 B
TARGET = 0.4
#: side of the square matrices whose product is the peak, by device
PEAK = {"cuda": 8192, "cpu": 512}
#: questions of a measurement, and the part of them that a processor answers as well
SIZES = {"real": (3000, 6), "tiny": (12, 12)}
#: fewest questions of a measurement
LEAST = 4


def peak(device: torch.device, dtype: torch.dtype, seconds: float = 2.0) -> float:
    """Return 10^12 operations per second of a product of large matrices, the best of ten."""
    side = PEAK[device.type]
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    best = 0.0
    for _ in range(10):
        _wait(device)
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < seconds / 10:
            torch.mm(a, b)
            _wait(device)
            count += 1
        best = max(best, 2 * count * side**3 / (time.perf_counter() - start) / 1e12)
    return best


def operations(loaded: Loaded, answers: Answers) -> float:
    """Count the operations of linear layers: the body at every position, the head where it is read.

    Attention and everything else that is not a weight matrix are left out.
    """
    table = loaded.model.get_input_embeddings().weight
    linear = [m for m in loaded.model.modules() if isinstance(m, torch.nn.Linear)]
    body = sum(m.weight.numel() for m in linear if m.weight.shape[0] != table.shape[0])
    return 2.0 * (body * answers.positions + table.numel() * answers.head_rows)


def measure(loaded: Loaded, method: Method, count: int) -> tuple[float, float, Answers]:
    """Return (seconds, peak MiB, answers) of a method; a first call with few questions is not
    counted."""
    method(loaded, min(count, 4))
    device = loaded.device
    _wait(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    answers = method(loaded, count)
    _wait(device)
    seconds = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else _resident()
    return seconds, memory / 2**20, answers


def agreement(answers: Answers, exact: Answers) -> dict[str, object]:
    """Count the questions with the same order, and the same first option, as float32 on a CPU;
    return these counts and the largest difference of a log-probability."""
    orders = list(zip(answers.orders, exact.orders, strict=True))
    values = zip(answers.values, exact.values, strict=True)
    return {
        "compared": len(orders),
        "same ranking": sum(f == e for f, e in orders),
        "same best": sum(f[0] == e[0] for f, e in orders),
        "apart": max(float(np.abs(f - e).max()) for f, e in values),
    }


def harness(loaded: Loaded, count: int) -> dict[str, object]:
    """Score the same sentences with lm-evaluation-harness and the same weights, or say why not."""
    try:
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM
    except ImportError as problem:
        return {"harness": f"not measured: {problem}"}
    rng = np.random.default_rng(0)
    options = [words(rng, 100, 4000, 4) for _ in range(OPTIONS)]
    prompts = [f"the capital of {words(rng, 4000, 9000, 5)} is" for _ in range(count)]
    asked = [
        Instance("loglikelihood", {}, (prompt, f" {option} ."), number * OPTIONS + place)
        for number, prompt in enumerate(prompts)
        for place, option in enumerate(options)
    ]
    peer = HFLM(pretrained=loaded.model, tokenizer=loaded.tokenizer, batch_size=256)
    peer.loglikelihood(asked[:256])
    _wait(loaded.device)
    start = time.perf_counter()
    peer.loglikelihood(asked)
    _wait(loaded.device)
    seconds = time.perf_counter() - start
    return {"harness": "the same sentences", "harness sentences/s": round(len(asked) / seconds, 1)}


def rows(shape: str, device: torch.device, folders: dict[str, str]) -> Iterator[dict[str, object]]:
    """Return a row for each method and precision, and by its name the agreement with a CPU, which
    uses all of its cores."""
    count, part = SIZES[shape]
    peaks = {name: peak(device, dtype) for name, dtype in DTYPES.items()}
    for kind in ("causal", "masked"):
        methods = {name: method for name, method in METHODS.items() if method[0] == kind}
        here, folder = torch.device("cpu"), folders.get(kind)
        exact = load_folder(kind, folder, here, "float32") if folder else build_model(kind, shape)
        to_compare: list[tuple[str, str, Answers]] = []
        for dtype in DTYPES:
            loaded = (
                load_folder(kind, folder, device, dtype) if folder else moved(exact, device, dtype)
            )
            for name, (_, method, parts) in methods.items():
                seconds, memory, answers = measure(loaded, method, max(count // parts, LEAST))
                rate = operations(loaded, answers) / seconds / 1e12
                is_bound = (name, dtype, shape) == ("sentence, causal", "bfloat16", "real")
                title = (
                    f"{name}, {dtype}, {loaded.parameters / 1e6:.0f} M weights, on "
                    f"{devices.card(device)}"
                )
                to_compare.append((title, name, method(loaded, max(part // parts, LEAST))))
                yield {
                    "name": title,
                    "card": devices.card(device), "method": name, "dtype": dtype,
                    "weights": loaded.parameters, "seconds": round(seconds, 3),
                    "positions": answers.positions, "ours": round(answers.positions / seconds),
                    "peer": "", "unit": "positions a second", "memory MiB": round(memory),
                    "tflops": round(rate, 4), "matrix peak tflops": round(peaks[dtype], 4),
                    "ratio": round(rate / peaks[dtype], 3), "target": TARGET if is_bound else "",
                    **(harness(loaded, min(count, 300)) if name == "sentence, causal" else {}),
                }  # fmt: skip
            del loaded
            gc.collect()
            if device.type == "cuda":
                torch.cuda.empty_cache()
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        expected = {
            name: method(exact, max(part // parts, LEAST))
            for name, (_, method, parts) in methods.items()
        }
        devices.ready()
        for title, name, answers in to_compare:
            yield {"name": title, **agreement(answers, expected[name])}


def rows_of(folder: str, device: torch.device, path: Path) -> Iterator[dict[str, object]]:
    """Return a row for each precision: sentences per second, accuracy, fraction of the matrix peak,
    and the number of questions whose best option differs from float32."""
    questions = json.loads(path.read_text(encoding="utf-8"))
    best: dict[str, list[int]] = {}
    for dtype in DTYPES:
        loaded = load_folder("causal", folder, device, dtype)
        seconds, memory, answers = measure(
            loaded, lambda loaded, count: of_questions(loaded, questions[:count]), len(questions)
        )
        best[dtype] = [order[0] for order in answers.orders]
        right = sum(b == q["gold"] for b, q in zip(best[dtype], questions, strict=True))
        rate, top = operations(loaded, answers) / seconds / 1e12, peak(device, DTYPES[dtype])
        sentences = sum(map(len, answers.values))
        yield {
            "name": f"{len(questions)} questions of BEAR, {dtype}, on {devices.card(device)}",
            "card": devices.card(device), "dtype": dtype, "seconds": round(seconds, 3),
            "sentences": sentences, "ours": round(sentences / seconds), "peer": "",
            "unit": "sentences a second", "accuracy": round(100 * right / len(questions), 2),
            "other best": sum(a != b for a, b in zip(best[dtype], best["float32"], strict=True)),
            "memory MiB": round(memory), "tflops": round(rate, 4), "ratio": round(rate / top, 3),
            "target": "",
        }  # fmt: skip
        del loaded
        gc.collect()


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _resident() -> int:
    """Return the bytes of this process's largest resident set."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) << 10


def main(arguments: Sequence[str] | None = None) -> list[dict[str, object]]:
    """Measure, print a line for each row, and write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="auto", help="auto, cuda or cpu")
    parser.add_argument("--shape", choices=[*SHAPES], help="default: real on a card, else tiny")
    parser.add_argument("--causal", help="folder of a causal model, in place of a random one")
    parser.add_argument("--masked", help="folder of a masked model")
    parser.add_argument("--questions", type=Path, help="file of `python -m perf.peers N FILE`")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args(arguments)
    if chosen.questions and not chosen.causal:
        parser.error("--questions are asked of a real model: name its folder with --causal")
    os.environ[devices.VARIABLE] = chosen.device
    device = devices.ready()
    transformers.logging.set_verbosity_error()
    shape = chosen.shape or ("real" if device.type == "cuda" else "tiny")
    if device.type == "cpu":
        print("no accelerator: that it runs, not how fast", file=sys.stderr)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    folders = {kind: path for kind in ("causal", "masked") if (path := getattr(chosen, kind))}
    by_name: dict[object, dict[str, object]] = {}
    real = rows_of(chosen.causal, device, chosen.questions) if chosen.questions else ()
    for row in itertools.chain(real, rows(shape, device, folders)):
        print(json.dumps(row), flush=True)
        by_name.setdefault(row["name"], {"versions": versions}).update(row)
        # what is measured stands, whatever comes after
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps([*by_name.values()], indent=1))
    return [*by_name.values()]


if __name__ == "__main__":
    main()
