"""Cloze ranking of 783 classes in all 18 hard configurations against one run per configuration.

    python -m perf.cloze [items]

The model has BERT-base's shape and random weights, the candidates have the numbers of tokens that
OntoProbe's classes have under BERT-uncased (344 of one token ... one of 13), in made-up words.
The peer is a literal reading of the released procedure: for every template, kind of mask and
pooling a run of its own, every prompt padded to 512, logits at all positions. All its runs have the
same cost, so it is measured on two items, one template and one pooling, and scaled per item by the
three templates and three poolings. One thread, CPU seconds, median of the repeats.
"""

import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from kgprobe.probes.models.load import Loaded, ModelSpec
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.text.mask_slots import ClozePrompt

LENGTHS = {1: 344, 2: 298, 3: 93, 4: 28, 5: 15, 6: 3, 7: 1, 13: 1}
VOCABULARY = 28_996
TEMPLATES = (" is a ", " has class ", " is a particular ")
PEER_ITEMS, PADDED, REPEATS = 2, 512, 3
TARGET = 50
#: scores of single passes and of batches of other shapes: float32 noise of twelve layers
TOLERANCE = 1e-4


def base_model() -> Loaded:
    """BERT-base with random weights; its words are w5 ... w28995 and the words of the templates."""
    special = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
    words = [*special, "is", "a", "has", "class", "particular", "."]
    words += [f"w{n}" for n in range(VOCABULARY - len(words))]
    tok = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    names = dict(zip(("pad", "cls", "sep", "mask", "unk"), special, strict=True))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tok, **{f"{name}_token": token for name, token in names.items()}
    )
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=VOCABULARY)).eval().requires_grad_(False)
    return Loaded(ModelSpec("bert-base", "masked", "random"), model, tokenizer, _cpu(), 512, {})


def _cpu() -> torch.device:
    return torch.device("cpu")


def candidates(rng: np.random.Generator) -> list[str]:
    """783 made-up labels of OntoProbe's lengths; about 900 different words, so that some tie."""
    return [
        " ".join(f"w{n}" for n in rng.integers(900, size=length))
        for length, count in LENGTHS.items()
        for _ in range(count)
    ]


def prompts(items: int, rng: np.random.Generator) -> list[ClozePrompt]:
    """Every item in three templates; 12 tokens on average with the special ones."""
    found = []
    for number in range(items):
        subject = " ".join(f"w{n}" for n in rng.integers(900, 9000, size=rng.integers(2, 10)))
        for index, text in enumerate(TEMPLATES):
            found.append(
                ClozePrompt(f"i{number}", index, subject + text, " .", "classes", (number,))
            )
    return found


def ours(loaded: Loaded, asked: list[ClozePrompt], labels: list[str]) -> float:
    """CPU seconds per item for ranks and top-5 in all configurations, tokenizing included."""
    start = time.process_time()
    rank.rank(loaded, asked, {"classes": labels})
    return (time.process_time() - start) / (len(asked) / len(TEMPLATES))


@torch.inference_mode()
def peer(
    loaded: Loaded, asked: list[ClozePrompt], labels: list[str]
) -> tuple[float, list[dict[str, np.ndarray]]]:
    """(CPU seconds per item, mean scores by kind of mask) of the literal procedure."""
    start = time.process_time()
    tokenizer, model = loaded.tokenizer, loaded.model
    ids = [tokenizer(label, add_special_tokens=False)["input_ids"] for label in labels]
    scores = [{m: np.zeros(len(labels)) for m in rank.MASKS} for _ in asked]
    runs = [("multi", n) for n in LENGTHS] + [("single", 1)]
    for masks, count in runs:
        texts = [q.before + " ".join(["[MASK]"] * count) + q.after for q in asked]
        batch = tokenizer(texts, padding="max_length", max_length=PADDED, return_tensors="pt")
        logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        for row in range(len(asked)):
            places = (batch["input_ids"][row] == tokenizer.mask_token_id).nonzero()[:, 0]
            logprobs = torch.log_softmax(logits[row, places], dim=-1).numpy()
            for c, own in enumerate(ids):
                if masks == "single":
                    scores[row][masks][c] = logprobs[0, own].mean()
                elif len(own) == count:
                    scores[row][masks][c] = logprobs[np.arange(count), own].mean()
    return (time.process_time() - start) / len(asked) * len(TEMPLATES) * 3, scores


def check(
    loaded: Loaded,
    asked: list[ClozePrompt],
    labels: list[str],
    expected: list[dict[str, np.ndarray]],
) -> float:
    """Largest difference of scores; ends the run when there is more than noise."""
    apart = 0.0
    for chunk in rank.scores(loaded, asked, {"classes": labels}):
        for index, values in zip(chunk.indices, chunk.scores, strict=True):
            for masks in rank.MASKS:
                own = values[rank.CONFIGURATIONS.index((masks, "mean"))]
                apart = max(apart, float(np.abs(own - expected[index][masks]).max()))
    if apart > TOLERANCE:
        raise SystemExit(f"scores differ by {apart:.2g}: no speed is printed")
    return apart


def main(items: int) -> list[dict[str, object]]:
    """Measure, interleaved, and return the row."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    loaded, labels, asked = base_model(), candidates(rng), prompts(items, rng)
    few = [q for q in asked if q.template == 0][:PEER_ITEMS]
    rank.rank(loaded, asked[:1], {"classes": labels})
    fast, slow, expected = [], [], []
    for _ in range(REPEATS):
        fast.append(ours(loaded, asked, labels))
        seconds, expected = peer(loaded, few, labels)
        slow.append(seconds)
    apart = check(loaded, few, labels, expected)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    a, b = statistics.median(fast), statistics.median(slow)
    print(f"ours {fast}, peer {slow} CPU s per item; load {os.getloadavg()}; peak {peak:.0f} MiB")
    return [
        {
            "name": f"cloze ranking of {len(labels)} classes, BERT-base shape, 18 configurations, "
            f"{items} items (peer: {PEER_ITEMS} items, 1 of 9 runs, scaled; scores agree to "
            f"{apart:.1g})",
            "ours": round(a, 3),
            "peer": round(b, 2),
            "unit": "CPU seconds per item",
            "ratio": round(b / a, 1),
            "target": TARGET,
        }
    ]


if __name__ == "__main__":
    rows = main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
    out = Path("results/perf/cloze.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))
    print(json.dumps(rows, indent=1))
