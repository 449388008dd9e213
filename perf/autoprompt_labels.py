"""The label search with vectors made once, and the evaluation of facts, at BERT-base shape.

    python -m perf.autoprompt_labels [examples] [facts]

Label search: the peer is the released loop, which runs the whole model with logits at all positions
on every batch of each of its 50 epochs. All its epochs cost the same, so one is measured, on a
slice of a training set, and counted 50 times; the probes after one epoch are compared.
Facts: a slice of the 34,039 of LAMA, one relation, 7 triggers, 17 tokens per prompt, ranked among
20,970 words. The peer is transformers' fill-mask, one statement at a time, which gives the ten best
of the whole vocabulary; it is measured on fewer statements. Ranks are compared with a plain sort of
the whole model's logits. Random weights, one thread, CPU seconds, median of the repeats.
"""

import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import polars as pl
import torch
from transformers import FillMaskPipeline

from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search import labels as label_tokens
from kgprobe.probes.prompts.search.labels import LabelSearchSettings
from kgprobe.probes.ranked import class_numbers
from kgprobe.probes.text.prompts import encode
from kgprobe.schema import EXAMPLES
from kgprobe.templates import Template
from perf.cloze import base_model

EXAMPLES_N, FACTS_N, PEER_N, REPEATS = 96, 256, 32, 3
EPOCHS, BATCH, RATE = 50, 32, 3e-4
VOCABULARY, FACTS_OF_LAMA = 20_970, 34_039
TRIGGERS = 7
#: the published target of the label search; the evaluation has none
TARGET = 20
#: weights of two probes after one epoch at a rate of 3e-4, whose inputs differ by float32 noise
TOLERANCE = 2e-4


def sentences(count: int, rng: np.random.Generator) -> tuple[list[dict[str, str]], list[str]]:
    """Generate sentences of 8 to 30 made-up words (SST-2 has 19 on average) that reveal their
    class."""
    labels = [("negative", "positive")[n % 2] for n in range(count)]
    made = []
    for label in labels:
        low = 900 if label == "positive" else 9000
        words = rng.integers(low, low + 400, size=rng.integers(8, 31))
        made.append({"sentence": " ".join(f"w{n}" for n in words)})
    return made, labels


def search_labels(loaded: Loaded, template: Template, data: Any) -> float:
    """CPU seconds of our label search: vectors, 50 epochs, ranking of the vocabulary."""
    start = time.process_time()
    kept = LabelSearchSettings(at_chance="keep")
    # dev is no part of the released search, so none of its time is counted: a few rows
    label_tokens.find(Predictor(loaded), template, data, (data[0][:2], data[1][:2]), None, kept)
    return time.process_time() - start


def released_epoch(loaded: Loaded, template: Template, data: Any) -> tuple[float, Any]:
    """(CPU seconds, probe weight) of one epoch of the released loop; tokenizing is not counted."""
    encoded = encode(loaded, template, data[0])
    golds = torch.from_numpy(class_numbers(data[1], ["negative", "positive"]))
    torch.manual_seed(0)
    layer = torch.nn.utils.skip_init(torch.nn.Linear, 768, 2)
    with torch.no_grad():
        layer.weight.uniform_(-(768**-0.5), 768**-0.5)
        layer.bias.uniform_(-(768**-0.5), 768**-0.5)
    optimizer = torch.optim.Adam(layer.parameters(), lr=RATE)
    found: list[Any] = []
    hook = loaded.model.cls.predictions.transform.register_forward_hook(
        lambda module, inputs, output: found.append(output)
    )
    start = time.process_time()
    for batch in torch.randperm(len(golds)).split(BATCH):
        rows = [torch.from_numpy(encoded.rows[i]) for i in batch]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        optimizer.zero_grad()
        with torch.no_grad():
            loaded.model(ids, attention_mask=(ids != 0).long())
        vectors = found.pop()[torch.arange(len(batch)), torch.from_numpy(encoded.places)[batch]]
        torch.nn.functional.cross_entropy(layer(vectors), golds[batch]).backward()
        optimizer.step()
    seconds = time.process_time() - start
    hook.remove()
    return seconds, layer.weight.detach().numpy()


def label_row(loaded: Loaded, count: int, rng: np.random.Generator) -> dict[str, object]:
    """The row of the label search."""
    template = Template.parse("{sentence} [T]x5 [P] .", "masked")
    data = sentences(count, rng)
    fast, slow = [], []
    for _ in range(REPEATS):
        fast.append(search_labels(loaded, template, data))
        seconds, expected = released_epoch(loaded, template, data)
        slow.append(EPOCHS * seconds)
    vectors = label_tokens.vectors(Predictor(loaded), template, data[0])
    own = label_tokens.train_probe(vectors, data[1], LabelSearchSettings(epochs=1)).weight
    apart = float(np.abs(own - expected).max())
    if apart > TOLERANCE:
        raise SystemExit(f"probes differ by {apart:.2g} after one epoch: no speed is printed")
    a, b = statistics.median(fast), statistics.median(slow)
    print(f"label search: ours {fast}, peer {slow} CPU s; load {os.getloadavg()}")
    return {
        "name": f"label search, BERT-base shape, {count} examples, {EPOCHS} epochs (peer: the "
        f"released loop, 1 epoch, scaled; probes agree to {apart:.1g})",
        "ours": round(a, 2), "peer": round(b, 1), "unit": "CPU seconds",
        "ratio": round(b / a, 1), "target": TARGET,
    }  # fmt: skip


def facts(count: int, words: list[str], rng: np.random.Generator) -> pl.DataFrame:
    """Generate facts of one relation; subjects have 3 to 9 tokens, every tenth a second correct
    answer."""
    rows = []
    for number in range(count):
        subject = " ".join(f"w{n}" for n in rng.integers(900, 9000, size=rng.integers(3, 10)))
        gold, other = rng.choice(words, 2, replace=False)
        rows.append(
            {
                "group": "P19", "split": "test", "example": f"e{number:05}",
                "fact": f"e{number:05}", "fields": json.dumps({"sub": subject}), "label": gold,
                "surfaces": [], "others": [other] if number % 10 == 0 else [], "flags": [],
            }
        )  # fmt: skip
    return pl.DataFrame(rows, schema=dict(EXAMPLES.columns))


def check(
    loaded: Loaded,
    prompt: tasks.TriggerPrompt,
    asked: pl.DataFrame,
    found: pl.DataFrame,
    words: Any,
) -> float:
    """Return the largest difference of the gold's log-probability; end the run if a rank
    differs."""
    few, apart = asked.head(8), 0.0
    encoded = encode(loaded, prompt.template, [json.loads(text) for text in few["fields"]])
    columns = np.array(loaded.tokenizer.convert_tokens_to_ids(words))
    rows = zip(encoded.filled(prompt.trigger), encoded.places, few["label"], strict=True)
    for number, (row, place, label) in enumerate(rows):
        with torch.inference_mode():
            logits = loaded.model(torch.from_numpy(row)[None]).logits[0, place]
        logs = torch.log_softmax(logits.double(), -1).numpy()[columns]
        own, gold = found.row(number, named=True), words.index(label)
        # neighbors in rank lie closer than float32 noise now and then: one place is allowed
        if abs(int((logs > logs[gold]).sum()) + 1 - own["best"]) > 1:
            raise SystemExit(f"rank {own['best']} of example {number}: no speed is printed")
        apart = max(apart, abs(float(logs[gold]) - own["logprob"]))
    return apart


def facts_row(loaded: Loaded, count: int, rng: np.random.Generator) -> dict[str, object]:
    """The row of the evaluation of facts."""
    words = [f"w{n}" for n in range(VOCABULARY)]
    trigger = tuple(rng.integers(9000, 20_000, size=TRIGGERS).tolist())
    prompt = tasks.TriggerPrompt(Template.parse(f"{{sub}} [T]x{TRIGGERS} [P] .", "masked"), trigger)
    asked = facts(count, words, rng)
    tokens = " ".join(loaded.tokenizer.convert_ids_to_tokens(list(trigger)))
    texts = [f"{json.loads(text)['sub']} {tokens} [MASK] ." for text in asked["fields"][:PEER_N]]
    pipeline = FillMaskPipeline(model=loaded.model, tokenizer=loaded.tokenizer, device="cpu")
    fast, slow, apart = [], [], 0.0
    for _ in range(REPEATS):
        start = time.process_time()
        found, _ = tasks.outcomes(Predictor(loaded), "searched", {"": prompt}, asked, words)
        fast.append(count / (time.process_time() - start))
        apart = max(apart, check(loaded, prompt, asked, found, words))
        start = time.process_time()
        for text in texts:
            pipeline(text, top_k=10)
        slow.append(len(texts) / (time.process_time() - start))
    a, b = statistics.median(fast), statistics.median(slow)
    print(f"facts: ours {fast}, peer {slow} statements/s; load {os.getloadavg()}")
    return {
        "name": f"evaluation of facts, BERT-base shape, {count} of {FACTS_OF_LAMA} (peer: "
        f"fill-mask one at a time, {len(texts)}; log p agree to {apart:.1g})",
        "ours": round(a, 1), "peer": round(b, 1), "unit": "statements per CPU second",
        "ratio": round(a / b, 2), "target": "",
    }  # fmt: skip


def main(examples: int, count: int) -> list[dict[str, object]]:
    """Measure and return the rows."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    loaded = base_model()
    rows = [label_row(loaded, examples, rng), facts_row(loaded, count, rng)]
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return rows


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:]]
    found_rows = main(*(sizes + [EXAMPLES_N, FACTS_N][len(sizes) :]))
    out = Path("results/perf/autoprompt_labels.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found_rows, indent=1))
    print(json.dumps(found_rows, indent=1))
