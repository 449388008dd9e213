"""Candidate triggers of an iteration: swaps at one position, or drawn from all of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.trigger_data import SearchError
from kgprobe.probes.prompts.trigger_files import round_trips
from kgprobe.probes.prompts.trigger_scores import Floats, Scorer, top
from kgprobe.probes.prompts.trigger_settings import Settings
from kgprobe.probes.prompts.trigger_state import Draws

#: (the trigger, its swaps as [position, token])
Tried = tuple[list[int], list[list[int]]]


class Candidates:
    """Candidates under the settings; `kept` says which rows of the embedding may be one."""

    def __init__(
        self, loaded: Loaded, settings: Settings, kept: NDArray[np.bool_], scorer: Scorer
    ) -> None:
        self.loaded, self.settings, self.kept, self.scorer = loaded, settings, kept, scorer

    def draw(self, gradient: Floats, trigger: Sequence[int], draws: Draws) -> list[Tried]:
        """The candidates of one iteration from the gradient of the loss (m x width)."""
        if self.settings.positions == "all":
            return self._everywhere(gradient, trigger, draws)
        place = draws.position(len(trigger))
        scores = self.scorer.candidate_scores(gradient[place], self.kept)
        if self.settings.round_trip:
            tokens = self._surviving(scores, trigger, place)
        else:
            tokens = top(scores, self.settings.candidates)
        return [_swapped(trigger, [[place, int(t)]]) for t in tokens]

    def _surviving(self, scores: Floats, trigger: Sequence[int], place: int) -> Ints:
        """The best tokens whose trigger survives decoding and encoding."""
        found: list[int] = []
        count, all_of_them = self.settings.candidates, int(self.kept.sum())
        order = top(scores, min(64 * count, all_of_them))
        for number in range(all_of_them):
            if number == len(order):
                order = top(scores, min(8 * len(order), all_of_them))
            ids, _ = _swapped(trigger, [[place, int(order[number])]])
            if round_trips(self.loaded, ids):
                found.append(int(order[number]))
            if len(found) == count:
                break
        if not found:
            raise SearchError(
                f"round_trip: no token at position {place} gives a trigger that survives decoding "
                "and encoding; start from a trigger that does (initial), or allow it"
            )
        return np.array(found, dtype=np.int64)

    def _everywhere(self, gradient: Floats, trigger: Sequence[int], draws: Draws) -> list[Tried]:
        """Random swaps among the best of every position by their first-order change.

        The term of the current token is the same for all swaps of a position, and each position
        gives equally many: leaving it out changes nothing. One swap per candidate: none twice.
        """
        m, size = len(trigger), self.settings.per_position
        best = []
        for place in range(m):
            scores = self.scorer.candidate_scores(gradient[place], self.kept)
            best.append(top(scores, size))
        if self.settings.replace == 1:
            pairs = [[place, int(t)] for place in range(m) for t in best[place]]
            picked = draws.choice(len(pairs))[: self.settings.swaps]
            return [_swapped(trigger, [pairs[p]]) for p in picked]
        found = []
        for _ in range(self.settings.swaps):
            places = sorted(draws.choice(m)[: self.settings.replace].tolist())
            found.append(
                _swapped(
                    trigger, [[p, int(best[p][draws.choice(len(best[p]))[0]])] for p in places]
                )
            )
        return found


def _swapped(trigger: Sequence[int], swaps: list[list[int]]) -> Tried:
    ids = list(trigger)
    for place, token in swaps:
        ids[place] = token
    return ids, swaps
