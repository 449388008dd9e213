"""Columns of the tables of answers, collected as broadcast blocks of rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class AnswerColumns:
    """Columns of a table; `owner` is the number of the item or question that a row belongs to."""

    TYPES: dict[str, Any] = {  # noqa: RUF012
        "owner": np.int64, "configuration": np.int64, "gold": np.int32, "masks": np.int32,
        "position": np.int32, "place": np.int32, "rank": np.int32, "candidate": np.int32,
        "token": np.int64, "tokens": np.int32, "text": object, "raw": object, "best": np.int32,
        "worst": np.int32, "in_order": np.int32, "score": np.float64, "logprob": np.float64,
        "has_logprob": bool,
    }  # fmt: skip

    def __init__(self, *names: str) -> None:
        self.parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("owner", *names)}

    def add(self, **block: Any) -> None:
        """Add rows of all combinations that broadcasting `block` gives, in its order."""
        arrays = {k: np.asarray(v, dtype=self.TYPES[k]) for k, v in block.items()}
        shape = np.broadcast_shapes(*(a.shape for a in arrays.values()))
        for name, array in arrays.items():
            self.parts[name].append(np.broadcast_to(array, shape).ravel())

    def table(self) -> dict[str, NDArray[Any]]:
        """Return the columns, `owner` first, in the order in which rows were added."""
        return {
            name: np.concatenate(parts) if parts else np.zeros(0, dtype=self.TYPES[name])
            for name, parts in self.parts.items()
        }

    def columns(self, items: Sequence[Any], order: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return columns item and template of the owners among `items`, and the other columns,
        sorted by owner and the columns of `order`."""
        table = self.table()
        place = np.lexsort([table[name] for name in reversed(("owner", *order))])
        table = {name: values[place] for name, values in table.items()}
        owner = table.pop("owner")
        names = np.array([one.item for one in items], dtype=object)[owner]
        templates = np.array([one.template for one in items], dtype=np.int32)[owner]
        return {"item": names, "template": templates, **table}
