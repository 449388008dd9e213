"""Rate limits for one endpoint, shared by all processes.

A folder holds, for every endpoint id, one lock file per allowed connection and a small state file:
when the next request may start, until when no requests may be sent, and the failures of the last
minute. A process that is killed loses its locks; nothing else needs cleanup.
"""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from kgprobe.http import LONGEST_WAIT
from kgprobe.schema import atomic
from kgprobe.sources.sparql.endpoint import Endpoint
from kgprobe.sources.sparql.errors import AGAIN, BudgetExhausted, Place

#: Failed responses within WINDOW seconds before all processes pause; pauses before giving up
BUDGET, WINDOW, PAUSES = 20, 60.0, 3
POLL_EVERY = 0.05


@dataclass
class Clock:
    """The client's clock; tests use one that does not really wait."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


class RateLimiter:
    """Rate limiter of an endpoint: `with limiter.request(place):` waits until it may start.

    `waits`: seconds waited and number of waits, by reason, for meta.json.
    """

    def __init__(self, endpoint: Endpoint, folder: Path, clock: Clock | None = None) -> None:
        self.endpoint, self.folder, self.clock = endpoint, folder, clock or Clock()
        self.waits: dict[str, Any] = {"seconds": Counter(), "times": Counter()}
        self.pauses = 0
        folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def request(self, place: Place) -> Iterator[None]:
        """Wait until a request may start, and hold one of the endpoint's connections during it.

        Raises BudgetExhausted if failures have already caused three pauses.
        """
        while True:
            slot = self._slot()
            if slot is None:
                self.wait(POLL_EVERY, "connection")
                continue
            try:
                delay, reason = self._reserve(place)
                if delay <= 0:
                    yield
                    return
            finally:
                slot.release()
            self.wait(delay, reason)

    def failed(self) -> None:
        """Record a failed response in the endpoint's budget."""
        with self._state() as state:
            state["failures"].append(self.clock.now())

    def hold(self, seconds: float) -> None:
        """Block requests to this endpoint by all processes for these seconds (Retry-After)."""
        with self._state() as state:
            state["not_before"] = max(state["not_before"], self.clock.now() + seconds)

    def wait(self, seconds: float, reason: str) -> None:
        """Sleep and record it."""
        self.note_wait(seconds, reason)
        self.clock.sleep(seconds)

    def note_wait(self, seconds: float, reason: str) -> None:
        """Record a wait."""
        self.waits["seconds"][reason] = round(self.waits["seconds"][reason] + seconds, 3)
        self.waits["times"][reason] += 1

    def _slot(self) -> FileLock | None:
        """Return the lock of a free connection, or None."""
        for number in range(self.endpoint.policy.connections):
            lock = FileLock(self.folder / f"{self.endpoint.id}.{number}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            return lock
        return None

    def _reserve(self, place: Place) -> tuple[float, str]:
        """Return (0, "") and record the start if a request may start now; else (wait, reason)."""
        with self._state() as state:
            now = self.clock.now()
            failures = state["failures"] = [t for t in state["failures"] if t > now - WINDOW]
            # until the window is empty, not only until there is room for one more failure
            emptied = max(failures) + WINDOW if len(failures) >= BUDGET else 0.0
            if state["not_before"] < emptied - 0.001:
                self.pauses += 1
                state["not_before"] = emptied
            if self.pauses > PAUSES:
                came = f"{BUDGET} failed answers within {WINDOW:.0f} s, after {PAUSES} pauses"
                advice = f"wait until the service has recovered; {AGAIN}"
                raise BudgetExhausted(place, came, "a service that answers", advice)
            # after a clock was set back, wait no longer than the longest wait of any service
            state["not_before"] = min(state["not_before"], now + LONGEST_WAIT)
            state["next_start"] = min(state["next_start"], now + self.endpoint.policy.interval)
            if state["not_before"] > now:
                return state["not_before"] - now, "hold"
            if state["next_start"] > now:
                return state["next_start"] - now, "interval"
            if self.endpoint.policy.interval:
                state["next_start"] = now + self.endpoint.policy.interval
            return 0.0, ""

    @contextlib.contextmanager
    def _state(self) -> Iterator[dict[str, Any]]:
        """Yield the shared state, read and written under a lock."""
        path = self.folder / f"{self.endpoint.id}.json"
        with FileLock(self.folder / f"{self.endpoint.id}.lock"):
            try:
                state = json.loads(path.read_text())
            except (OSError, ValueError):
                state = {}
            state = {"next_start": 0.0, "not_before": 0.0, "failures": []} | state
            before = json.dumps(state)
            yield state
            if json.dumps(state) != before:
                with atomic(path) as temporary:
                    temporary.write_text(json.dumps(state))
