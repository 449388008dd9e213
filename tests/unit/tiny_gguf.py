"""A tiny random Llama as a GGUF file split in parts, with an installed package for each."""

import hashlib
import json
from pathlib import Path

import gguf
import numpy as np

from tests.unit import tiny_models
from tests.unit.test_packed import install

#: hidden size, feed-forward, layers, heads, positions
WIDE, INNER, LAYERS, HEADS, LONG = 32, 64, 2, 4, 64


def content(path: Path) -> bytes:
    """Return the file's bytes: matrices in Q8_0, a byte-level tokenizer with its merges."""
    backend = tiny_models.tokenizer("causal").backend_tokenizer
    # transformers gives tokenizers of this kind a word of GPT-2 besides
    words = [*sorted(backend.get_vocab(), key=backend.get_vocab().get), "<|endoftext|>"]
    pairs = json.loads(backend.to_str())["model"]["merges"]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in pairs]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(LONG)
    writer.add_embedding_length(WIDE)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDE // HEADS)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in tiny_models.SPECIALS else 1 for word in words])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(words.index("<s>"))
    writer.add_eos_token_id(words.index("</s>"))
    for name, shape in _shapes(len(words)).items():
        generator = np.random.default_rng(len(name) * sum(map(ord, name)))
        values = np.ones(shape) if name.endswith("norm.weight") else generator.normal(0, 0.3, shape)
        kind = gguf.GGMLQuantizationType.Q8_0 if values.ndim == 2 else None
        values = values.astype(np.float32)
        stored = values if kind is None else gguf.quants.quantize(values, kind)
        writer.add_tensor(name, stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def _shapes(words: int) -> dict[str, tuple[int, ...]]:
    made: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (words, WIDE),
        "output_norm.weight": (WIDE,),
        "output.weight": (words, WIDE),
    }
    for layer in range(LAYERS):
        own = f"blk.{layer}"
        made |= {f"{own}.{name}.weight": (WIDE,) for name in ("attn_norm", "ffn_norm")}
        made |= {f"{own}.attn_{name}.weight": (WIDE, WIDE) for name in ("q", "k", "v", "output")}
        made |= {f"{own}.ffn_{name}.weight": (INNER, WIDE) for name in ("gate", "up")}
        made[f"{own}.ffn_down.weight"] = (WIDE, INNER)
    return made


def split(site: Path, package: str = "tiny-gguf", number: int = 3) -> str:
    """Install the file in so many parts and return its sha256."""
    site.mkdir(exist_ok=True)
    whole = content(site / "whole.bin")
    found = hashlib.sha256(whole).hexdigest()
    parts = [f"{package}-part{i}" for i in range(1, number + 1)]
    own = {"NOTICE.md": b"Only for tests.", "SHA256SUMS": f"{found}  m.gguf\n".encode()}
    install(site, package, own, tuple(f"{part}==1" for part in parts))
    step = -(-len(whole) // number)
    for i, part in enumerate(parts):
        install(site, part, {f"m.gguf.part{i:02}": whole[i * step : (i + 1) * step]})
    return found
