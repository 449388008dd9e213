"""The last layer of a BERT-like encoder at one position per row (scoring.md, section 7.2, point 5).

Keys and values are needed everywhere, everything else at the scored position alone.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from kgprobe.probes.models.head import replaced


class ScoredBody(nn.Module):
    """An encoder whose last layer works at one position of each row; all parameters are shared."""

    def __init__(self, body: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.last = _ScoredLayer(last)
        self.body = replaced(body, last, self.last)

    @classmethod
    def of(cls, body: Any) -> "ScoredBody | None":
        """The body with its last layer replaced; None where its layers are not like BERT's."""
        layers = getattr(getattr(body, "encoder", None), "layer", None)
        if not isinstance(layers, nn.ModuleList) or not len(layers):
            return None
        last = layers[-1]
        names: tuple[str, ...] = (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
        )
        names += ("attention.output", "intermediate", "output")
        have = {name for name, _ in last.named_modules()}
        if not have.issuperset(names) or any("layernorm_before" in name for name in have):
            return None
        return cls(body, last)

    def forward(self, ids: Any, mask: Any, at: Any) -> Any:
        """Hidden states at `at` (rows x width)."""
        self.last.at = at
        return self.body(ids, attention_mask=mask).last_hidden_state[:, 0]


class _ScoredLayer(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.at: Any = None

    def forward(self, hidden: Any, attention_mask: Any = None, *others: Any, **named: Any) -> Any:
        attention = self.layer.attention.self
        own = hidden[torch.arange(len(hidden), device=hidden.device), self.at][:, None]
        width = attention.attention_head_size

        def heads(states: Any) -> Any:
            return states.view(*states.shape[:2], -1, width).transpose(1, 2)

        # a mask of padding is the same for every query
        mask = attention_mask if attention_mask is None else attention_mask[:, :, :1]
        found = scaled_dot_product_attention(
            heads(attention.query(own)),
            heads(attention.key(hidden)),
            heads(attention.value(hidden)),
            attn_mask=mask,
        )
        found = found.transpose(1, 2).reshape(own.shape[0], 1, -1)
        middle = self.layer.attention.output(found, own)
        return self.layer.output(self.layer.intermediate(middle), middle)
