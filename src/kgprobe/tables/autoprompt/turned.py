"""AutoPrompt's points, none of which stored answers can show: each is another search, or other
texts."""

from collections.abc import Iterator
from dataclasses import asdict

from kgprobe.probes.prompt_settings import POINTS
from kgprobe.probes.prompts.search.settings import MODES, TASKS, settings_for

#: a point of the config -> its key
KEYS = {
    "selection": "autoprompt.low_data.selection",
    "perturbed": "prompt_tasks.sentences.perturbed",
}
#: what decides in one mode alone, by no key of its own
RANKS = "ranks beyond 10,000"


def needing() -> Iterator[tuple[str, str, str, list[str]]]:
    """(point, key of the config, value of mode default, values of the other modes)."""
    for task in TASKS:
        modes = {mode: asdict(settings_for(mode, task, "masked")) for mode in MODES}
        for name, value in modes["default"].items():
            values = [_as_text(modes[mode][name]) for mode in MODES]
            others = [v for v in dict.fromkeys(values) if v != _as_text(value)]
            if others and name != "mode":
                yield name, f"autoprompt.{task}.settings.{name}", _as_text(value), others
    for name, by_mode in POINTS.items():
        others = [v for v in dict.fromkeys(by_mode.values()) if v != by_mode["default"]]
        yield name, KEYS[name], by_mode["default"], others
    yield RANKS, "autoprompt.mode", "default", ["released"]


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
