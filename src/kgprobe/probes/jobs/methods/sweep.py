"""Sweeps over few examples and over the search's settings (see jobs/autoprompt/sweep)."""

from kgprobe import schema
from kgprobe.probes.jobs.autoprompt import search, sweep, tasks
from kgprobe.probes.jobs.stage import Answers, Part

OUTPUT = {"sweep": schema.SWEEPS}


def answers(part: Part) -> Answers:
    """Return SWEEPS; finished points are stored for the next run to resume."""
    seed, section, mode = (part.settings[name] for name in ("seed", "section", "mode"))
    task = tasks.of_part(part)
    loaded = search.prepared(part.spec, part.prompt, seed, part.load)
    if part.settings["sweep"] == "grid":
        frame = sweep.grid(loaded, task, section, mode, part.work)
    else:
        frame = sweep.low_data(loaded, task, part.prompt, section, mode, part.work, seed)
    return {"sweep": frame}, loaded.record
