"""Tiny random models of many transformer architectures, with the properties of each.

Weights have a wide spread and biases and norms are random too, so that a missing term or a wrong
mask changes the first digits.
"""

import copy
import dataclasses
import functools
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer

from kgprobe.probes.models.load import Loaded, ModelSpec
from tests.unit.tiny_models import AUTO, SIZE, WIDE, tokenizer

GROUPED = {**WIDE, "num_key_value_heads": 2, "head_dim": 8}
SMALL = {**WIDE, "max_position_embeddings": 130}
XLM = {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "pad_index": 0, "max_position_embeddings": 130}
HALVES = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "max_position_embeddings": 130, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip
SPANS = {
    "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "pad_token_id": 0,
    "decoder_start_token_id": 0, "eos_token_id": 2,
}  # fmt: skip

MASKED: dict[str, dict[str, Any]] = {
    "albert": {**SMALL, "embedding_size": 16},
    "bert": SMALL,
    "big_bird": SMALL,
    "camembert": SMALL,
    "convbert": {**SMALL, "embedding_size": 16, "head_ratio": 2},
    "deberta": {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"],
                   "conv_kernel_size": 3},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "electra": {**SMALL, "embedding_size": 16},
    "esm": {**SMALL, "mask_token_id": 4, "token_dropout": True},
    "eurobert": GROUPED,
    "flaubert": XLM,
    "fnet": {**SMALL, "tpu_short_seq_length": 64},
    "funnel": {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64, "block_sizes": [1, 1],
               "num_decoder_layers": 1},
    "ibert": SMALL,
    "layoutlm": SMALL,
    "longformer": {**SMALL, "attention_window": 16},
    "luke": {**SMALL, "entity_emb_size": 16, "entity_vocab_size": 8},
    "megatron-bert": SMALL,
    "mobilebert": {**SMALL, "intra_bottleneck_size": 16, "embedding_size": 16,
                   "num_feedforward_networks": 2},
    "modernbert": {**SMALL, "local_attention": 8, "global_attn_every_n_layers": 2},
    "mpnet": SMALL,
    "mra": SMALL,
    "nystromformer": {**SMALL, "num_landmarks": 4, "segment_means_seq_len": 128},
    "reformer": {**WIDE, "max_position_embeddings": 128, "attention_head_size": 8,
                 "axial_pos_embds": False, "is_decoder": False,
                 "feed_forward_size": 64, "attn_layers": ["local", "lsh"], "num_buckets": 4},
    "rembert": {**SMALL, "input_embedding_size": 16, "output_embedding_size": 24},
    "roberta": SMALL,
    "roberta-prelayernorm": SMALL,
    "roformer": {**SMALL, "embedding_size": 16},
    "squeezebert": {**SMALL, "embedding_size": 32},
    "xlm": XLM,
    "xlm-roberta": SMALL,
    "xlm-roberta-xl": SMALL,
    "xmod": {**SMALL, "languages": ["en_XX"], "default_language": "en_XX"},
    "yoso": {**SMALL, "use_expectation": True},
}  # fmt: skip

CAUSAL: dict[str, dict[str, Any]] = {
    "biogpt": SMALL,
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "codegen": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 130},
    "cohere": {**GROUPED, "logit_scale": 0.25},
    "cohere2": {**GROUPED, "logit_scale": 0.25, "sliding_window": 8},
    "ctrl": {"n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 64},
    "falcon": {**SIZE, "multi_query": True},
    "gemma": GROUPED,
    "gemma2": {**GROUPED, "final_logit_softcapping": 3.0, "sliding_window": 8},
    "gemma3_text": {**GROUPED, "sliding_window": 8, "layer_types": None},
    "glm": {**GROUPED, "partial_rotary_factor": 0.5},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 130},
    "gpt_bigcode": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 130},
    "gpt_neo": {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 8,
                "attention_types": [[["global", "local"], 1]]},
    "gpt_neox": SMALL,
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 130},
    "granite": {**GROUPED, "logits_scaling": 4.0, "residual_multiplier": 0.7,
                "embedding_multiplier": 3.0},
    "jamba": {**WIDE, "num_key_value_heads": 2, "num_experts": 2, "num_experts_per_tok": 1,
              "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
              "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    "llama": GROUPED,
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "mamba2": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "num_heads": 8,
               "head_dim": 8, "n_groups": 2, "chunk_size": 16},
    "mistral": {**GROUPED, "sliding_window": 8},
    "mixtral": {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 130},
    "nemotron": GROUPED,
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "openai-gpt": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 130},
    "opt": {**SIZE, "ffn_dim": 64, "word_embed_proj_dim": 16, "max_position_embeddings": 130},
    "phi": SMALL,
    "phi3": {**GROUPED, "sliding_window": 8},
    "qwen2": GROUPED,
    "qwen2_moe": {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2,
                  "moe_intermediate_size": 16, "shared_expert_intermediate_size": 32},
    "qwen3": GROUPED,
    "recurrent_gemma": {**WIDE, "num_key_value_heads": 1, "lru_width": 32,
                        "attention_window_size": 8, "block_types": ["recurrent", "attention"]},
    "rwkv": {"hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32},
    "smollm3": GROUPED,
    "stablelm": {**GROUPED, "max_position_embeddings": 130},
    "starcoder2": {**GROUPED, "sliding_window": 8},
    "xglm": {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64,
             "max_position_embeddings": 130},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
}  # fmt: skip

SEQ2SEQ: dict[str, dict[str, Any]] = {
    "bart": HALVES,
    "bigbird_pegasus": HALVES,
    "blenderbot": HALVES,
    "led": {**HALVES, "attention_window": 16, "max_encoder_position_embeddings": 128,
            "max_decoder_position_embeddings": 130},
    "longt5": {**SPANS, "local_radius": 3},
    "m2m_100": HALVES,
    "mbart": HALVES,
    "mt5": SPANS,
    "pegasus": HALVES,
    "pegasus_x": {**HALVES, "num_global_tokens": 4, "block_size": 4},
    "prophetnet": {**{k: v for k, v in HALVES.items() if "layers" not in k}, "hidden_size": 32,
                   "num_encoder_layers": 2, "num_decoder_layers": 2, "ngram": 2,
                   "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4},
    "switch_transformers": {**SPANS, "num_experts": 2, "expert_capacity": 4,
                            "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    "t5": SPANS,
}  # fmt: skip

KINDS = {"masked": MASKED, "causal": CAUSAL, "seq2seq": SEQ2SEQ}


@functools.cache
def _model(name: str, kind: str) -> Any:
    torch.manual_seed(0)
    size = len(tokenizer(kind, "bpe"))
    own = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **KINDS[kind][name]}
    config = transformers.AutoConfig.for_model(name, vocab_size=size, **own)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float)
    try:
        model = AUTO[kind].from_config(config).eval().requires_grad_(False)
    finally:
        torch.set_default_dtype(usual)
    for weight in model.parameters():
        weight.normal_(0, 0.3) if weight.dim() > 1 else weight.add_(0.2 * torch.randn_like(weight))
    return model


def tiny(name: str, kind: str, double: bool = True, bos: str = "forced") -> Loaded:
    """Return a random model of an architecture with a byte-level BPE tokenizer."""
    model = copy.deepcopy(_model(name, kind))
    if double:
        # the grouped products of experts do not support float64
        model.config._experts_implementation = "eager"
        model = model.to(torch.float64)
        for module in model.modules():
            # a router in float32 rounds depending on the other rows of the batch
            if isinstance(getattr(module, "router", None), torch.nn.Module):
                module.router.dtype = torch.float64
    spec = ModelSpec(name, kind, f"folder:{name}", bos=bos if kind == "causal" else "-")
    return Loaded(spec, model, tokenizer(kind, "bpe"), torch.device("cpu"), 128, {})


def without_sentinels(loaded: Loaded) -> Loaded:
    """Return the model with a tokenizer that has a mask token but no sentinels, like BART's."""
    text = loaded.tokenizer.backend_tokenizer.to_str().replace("<extra_id_", "<other_")
    options = {"pad": "<pad>", "bos": "<s>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
    bare = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(text),
        **{f"{name}_token": token for name, token in options.items()},
    )
    return dataclasses.replace(loaded, tokenizer=bare)
