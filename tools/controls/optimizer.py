"""The optimizer of the control models: orthogonalized momentum for matrices, AdamW for the rest.

Each fact is a rare event: with AdamW alone, a small masked model needs about five times as many
steps to learn them. The update of a weight matrix is its momentum with all singular values set near
1 (Muon, Jordan et al. 2024: quintic Newton-Schulz iteration). In float32: `torch.optim.Muon`
computes in bfloat16, which takes half a second per step on CPUs without bfloat16 instructions.
"""

import torch
from torch import Tensor, nn

_A, _B, _C = 3.4445, -4.7750, 2.0315


class ControlOptimizer:
    """Updates in place; `rate` multiplies both learning rates, so that one schedule controls
    both."""

    def __init__(
        self, model: nn.Module, matrix_rate: float, other_rate: float, decay: float
    ) -> None:
        tables = {
            id(parameter)
            for module in model.modules()
            if isinstance(module, nn.Embedding)
            for parameter in module.parameters()
        }  # a tied output layer is one of them
        matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in tables]
        others = [p for p in model.parameters() if p.ndim != 2 or id(p) in tables]
        self._matrix_rate, self._other_rate = matrix_rate, other_rate
        groups: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for parameter in matrices:
            groups.setdefault(tuple(parameter.shape), []).append(parameter)
        self._groups = list(groups.values())
        self._momenta = [torch.zeros(len(g), *g[0].shape) for g in self._groups]
        self._adam = torch.optim.AdamW(
            others, lr=other_rate, betas=(0.9, 0.98), weight_decay=decay, fused=True
        )

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for group in self._adam.param_groups:
            group["lr"] = rate * self._other_rate
        self._adam.step()
        for parameters, momentum in zip(self._groups, self._momenta, strict=True):
            gradient = torch.stack([_gradient(p) for p in parameters])
            momentum.mul_(0.95).add_(gradient)
            update = orthogonalize(gradient + 0.95 * momentum)
            rows, columns = parameters[0].shape
            update *= -rate * self._matrix_rate * max(1.0, rows / columns) ** 0.5
            for parameter, change in zip(parameters, update, strict=True):
                parameter.add_(change)


def orthogonalize(batch: Tensor, steps: int = 5) -> Tensor:
    """Move every singular value of (n, rows, columns) near 1; keep the singular vectors."""
    tall = batch.shape[1] > batch.shape[2]
    x = batch.mT if tall else batch
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    return x.mT if tall else x


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        raise RuntimeError("a weight matrix took no part in the loss")
    return parameter.grad
