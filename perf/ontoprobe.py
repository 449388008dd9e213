"""Token positions of all hard memorizing runs of OntoProbe against those of the released code.

    python -m perf.ontoprobe

The released code pads batches of 16 to 512 and runs every template, kind of mask, pooling and
number of masks anew (48,537 passes, 398 M positions for one model). Ours come from the batch plan
over the same test prompts: the released ones where KGPROBE_DATA has them, else made-up ones of the
same number. The candidates have the numbers of tokens that they have under BERT-uncased; the
prompts are cut by a WordPiece vocabulary of 4,000 trained on the embedded world, which no BERT
vocabulary is needed for. Beside it the CPU seconds of one model of BERT-base's shape, measured on
eight items and scaled to all.
"""

import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from kgprobe.benchmarks.ontoprobe import modes, released
from kgprobe.benchmarks.ontoprobe.build import build
from kgprobe.experiments import expand
from kgprobe.probes.models.batching import Budget
from kgprobe.probes.text.mask_slots import PromptIds
from perf import cloze as bert

#: task -> test rows, templates, distinct numbers of tokens of its candidates under BERT-uncased
CLASSES, PROPERTIES = tuple(bert.LENGTHS), (1, 2, 3, 4, 5, 6, 7)
TASKS = {
    "TP": (8839, 3, CLASSES),
    "SCO": (701, 3, CLASSES),
    "SPO": (39, 1, PROPERTIES),
    "DM": (30, 1, CLASSES),
    "RG": (28, 1, CLASSES),
}
BATCH, PADDED, POOLINGS = 16, 512, 3
TARGET = 90


def released_positions() -> int:
    """Positions of the released procedure: n masks and one mask, per pooling and template."""
    passes = sum(
        -(-rows // BATCH) * (len(lengths) + 1) * POOLINGS * templates
        for rows, templates, lengths in TASKS.values()
    )
    return passes * BATCH * PADDED


def texts() -> dict[str, list[str]]:
    """The test prompts of every task, the released ones or made-up ones of their number."""
    folder = Path(expand("${KGPROBE_DATA}/ontoprobe"))
    if not folder.is_dir():
        words = [w for line in world() for w in line.split()]
        rng = np.random.default_rng(0)
        return {
            task: [" ".join(rng.choice(words, 6)) for _ in range(rows * templates)]
            for task, (rows, templates, _) in TASKS.items()
        }
    switches = modes.resolve("released", {"item_limit": "none"})
    sets = build(released.take(folder, switches), switches, "onto_released")
    forms: dict[str, list[str]] = {}
    for task, text in sets.prompts.select("relation", "text").rows():
        forms.setdefault(task, []).append(text)
    test = sets.items.filter(role="test").select("relation", "subject").rows()
    found: dict[str, list[str]] = {}
    for task, subject in test:
        found.setdefault(task, []).extend(t.replace("[X]", subject) for t in forms[task])
    return found


def world() -> list[str]:
    """Lines of the embedded world: what the vocabulary is trained on."""
    files = sorted(Path("resources/world").glob("*.tsv"))
    return [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]


def wordpiece() -> Tokenizer:
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=4000, special_tokens=special, show_progress=False
    )
    tok.train_from_iterator(world(), trainer)
    return tok


def planned() -> tuple[int, int, float]:
    """(positions, positions with padding, mean tokens of TP's prompts) of our batch plan."""
    tok, bare, padded, mean = wordpiece(), 0, 0, 0.0
    for task, prompts in texts().items():
        coded = tok.encode_batch([text.replace("[Y]", " . ") for text in prompts])
        rows = [PromptIds(np.array([1, *c.ids, 2], dtype=np.int64), len(c.ids)) for c in coded]
        distinct = {(row.position, row.ids.tobytes()): len(row.ids) for row in rows}
        for masks in sorted({1, *TASKS[task][2]}):
            sizes = [length + masks - 1 for length in distinct.values()]
            bare += sum(sizes)
            padded += sum(len(b) * max(sizes[i] for i in b) for b in Budget().batches(sizes))
        if task == "TP":
            mean = float(np.mean([len(row.ids) for row in rows]))
    return bare, padded, mean


def main() -> list[dict[str, object]]:
    """Count, time a few items, and return the rows."""
    torch.set_num_threads(1)
    bare, padded, mean = planned()
    theirs = released_positions()
    rng = np.random.default_rng(0)
    loaded, labels, asked = bert.base_model(), bert.candidates(rng), bert.prompts(8, rng)
    bert.ours(loaded, asked[:3], labels)
    seconds = bert.ours(loaded, asked, labels)
    items = sum(rows * templates for rows, templates, _ in TASKS.values()) / len(bert.TEMPLATES)
    print(f"padding waste {padded / bare - 1:.1%}; TP prompts of {mean:.1f} tokens")
    return [
        {
            "name": "OntoProbe, hard memorizing of one model, five released tasks",
            "ours": round(padded / 1e6, 2),
            "peer": round(theirs / 1e6, 1),
            "unit": "million token positions",
            "ratio": round(theirs / padded, 1),
            "target": TARGET,
        },
        {
            "name": f"the same in time, BERT-base shape ({seconds:.3f} CPU s per TP item, scaled)",
            "ours": round(seconds * items / 3600, 2),
            "peer": "",
            "unit": "CPU hours, one thread",
            "ratio": "",
            "target": "",
        },
    ]


if __name__ == "__main__":
    made = main()
    out = Path("results/perf/ontoprobe.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(made, indent=1))
    print(json.dumps(made, indent=1))
