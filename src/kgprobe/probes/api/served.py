"""Sentences under a causal model that a vLLM server reads: what models/causal.Causal gives.

    vllm serve ORG/NAME --revision COMMIT --dtype bfloat16
    export KGPROBE_API_URL=http://127.0.0.1:8000/v1

The tokenizer works here, and the server is asked for token ids: its numbers are those of our tokens
and roles. vLLM does not read its own prefix cache for a request that wants log-probabilities of its
prompt (what is read from the cache has none), so prefixes are shared before it is asked: a sequence
that is the beginning of another one costs nothing, and equal ones are asked once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.api.client import Client, open_client
from kgprobe.probes.models.batching import Budget, Ints, Ragged
from kgprobe.probes.models.load import Loaded, ModelSpec, outline
from kgprobe.settings import Api

#: Sequences of one request: the server makes its own batches of them.
ROWS = 64


class Served:
    """One causal model on a server; counts what is sent. Engines' names, so that a scorer may have
    either."""

    def __init__(self, loaded: Loaded) -> None:
        self.client: Client = loaded.model.client
        self.workers: int = loaded.model.workers
        self.budget, self.shares = Budget(), False
        self.notes: list[str] = []
        self.positions_fed = self.head_rows = 0

    def logprobs(
        self,
        sequences: Ragged,
        done: Callable[[int], object] = lambda sentences: None,
        name: Callable[[int], str] = "sentence {}".format,
    ) -> NDArray[np.float64]:
        """log p(t_j | t_<j) beside every token; the first of a sequence is context only (0).

        Raises ApiError for a request that fails.
        """
        result = np.zeros(len(sequences.values))
        asked, behind = longest(sequences)
        self.shares = self.shares or len(asked) < len(sequences)
        of_asked: list[list[int]] = [[] for _ in asked]
        for sequence, place in enumerate(behind):
            of_asked[place].append(sequence)

        def one(batch: list[int]) -> None:
            rows = [sequences[asked[place]].tolist() for place in batch]
            found = self.client.logprobs(rows)
            for place, values in zip(batch, found, strict=True):
                for sequence in of_asked[place]:
                    start, end = sequences.starts[sequence : sequence + 2]
                    result[start:end] = values[: end - start]
            done(sum(len(of_asked[place]) for place in batch))

        batches = [
            list(range(start, min(start + ROWS, len(asked))))
            for start in range(0, len(asked), ROWS)
        ]
        self.client.map(one, batches, self.workers)
        sent = int(sequences.lengths[asked].sum()) if len(asked) else 0
        self.positions_fed += sent
        self.head_rows += sent - len(asked)
        return result


def longest(sequences: Ragged) -> tuple[Ints, Ints]:
    """(sequences that are the beginning of no other one, for every sequence the place among them of
    one that begins with it), in the order in which they sort."""
    rows = [tuple(sequences[i].tolist()) for i in range(len(sequences))]
    order = sorted(range(len(rows)), key=rows.__getitem__)
    asked: list[int] = []
    behind = np.zeros(len(rows), dtype=np.int64)
    # what begins with a row follows it at once: the last of them is met first
    for i in reversed(order):
        if not asked or rows[asked[-1]][: len(rows[i])] != rows[i]:
            asked.append(i)
        behind[i] = len(asked) - 1
    return np.array(asked, dtype=np.int64), behind


class Line:
    """What stands in a Loaded for the model itself: the server's client, and requests at once."""

    def __init__(self, client: Client, workers: int) -> None:
        self.client, self.workers = client, workers


def open_served(spec: ModelSpec, settings: Api) -> Loaded:
    """The model of a row with a backend: tokenizer and configuration here, the weights there.

    Raises ModelError as `outline` does, ApiError without the address of a server.
    """
    loaded, client = outline(spec), open_client(spec, settings)
    loaded.model = Line(client, settings.workers)
    own: dict[str, Any] = {
        name: getattr(spec, name) for name in ("kind", "source", "dtype", "backend")
    }
    loaded.record |= {**own, "device": "server", "server": client.endpoint.base_url}
    return loaded
