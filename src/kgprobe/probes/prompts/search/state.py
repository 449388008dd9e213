"""The state of a search, written after every iteration.

Its folder is named by a hash of all that the search depends on (jobs/autoprompt/search)."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.files import atomic
from kgprobe.probes.models.batching import Ints
from kgprobe.probes.prompts.search.problem import SearchError

Floats = NDArray[np.float64]


class TriggerScores:
    """Values of triggers on training examples, so that no pair is scored twice.

    Stored are triggers that differ from the current one in at most one token, up to ROOM values.
    """

    #: maximum values (float64): 16 MB, which a task of many examples would exceed for no gain
    ROOM = 2_000_000

    def __init__(self, examples: int) -> None:
        self.examples = examples
        self._values: dict[tuple[int, ...], Floats] = {}

    def of(self, trigger: Sequence[int], examples: Ints) -> Floats:
        """Return the values of a trigger on these examples, NaN if unknown."""
        row = self._values.get(tuple(trigger))
        return np.full(len(examples), np.nan) if row is None else row[examples]

    def add(self, trigger: Sequence[int], examples: Ints, values: Floats) -> None:
        """Store a trigger's values on examples; if there is no room, drop the oldest trigger."""
        key = tuple(trigger)
        if key not in self._values:
            if len(self._values) >= max(self.ROOM // self.examples, 1):
                del self._values[next(iter(self._values))]
            self._values[key] = np.full(self.examples, np.nan)
        self._values[key][examples] = values

    def moved(self, trigger: Sequence[int]) -> None:
        """Drop triggers that differ from the new current trigger in more than one token."""
        for key in list(self._values):
            if sum(a != b for a, b in zip(key, trigger, strict=True)) > 1:
                del self._values[key]

    def state(self) -> dict[str, Any]:
        """Return the triggers in order, and their values, as JSON values."""
        rows = b"".join(values.tobytes() for values in self._values.values())
        triggers = [list(key) for key in self._values]
        return {"triggers": triggers, "values": base64.b64encode(rows).decode()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore from a state."""
        rows = np.frombuffer(base64.b64decode(state["values"]), dtype=np.float64)
        table = rows.reshape(-1, self.examples).copy()
        triggers = map(tuple, state["triggers"])
        self._values = dict(zip(triggers, table, strict=True))


@dataclass
class State:
    """The search before iteration `iteration` of restart `restart`.

    `best` is [dev value, iteration, trigger] or None, `known` the dev values of triggers so far,
    `scored` is as in TriggerScores, `finished` has the summaries of earlier restarts. `sequences`
    counts forward passes of prompts; of the (trigger, example) pairs compared,
    `compared` counts those scored by the model and `looked_up` the known ones.
    """

    restart: int = 0
    iteration: int = 0
    trigger: list[int] = field(default_factory=list)
    best: list[Any] | None = None
    known: list[list[Any]] = field(default_factory=list)
    draws: dict[str, Any] = field(default_factory=dict)
    accepted: int = 0
    sequences: int = 0
    compared: int = 0
    looked_up: int = 0
    scored: dict[str, Any] = field(default_factory=lambda: {"triggers": [], "values": ""})
    trace: list[list[Any]] = field(default_factory=list)
    finished: list[dict[str, Any]] = field(default_factory=list)


def save(state: State, path: Path | None) -> None:
    """Write the state atomically."""
    if path is not None:
        with atomic(path) as temporary:
            temporary.write_text(json.dumps(asdict(state)))


def load(path: Path | None) -> State | None:
    """Load the state at `path`; return None if there is none. Raises SearchError for another
    file."""
    if path is None or not path.is_file():
        return None
    try:
        return State(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise SearchError(f"{path}: not the state of a search ({error}); remove it") from error
