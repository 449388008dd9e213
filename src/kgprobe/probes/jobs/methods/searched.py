"""Searched prompts and their answers (see prompts/search)."""

from kgprobe import schema
from kgprobe.probes.jobs.autoprompt import search, tasks
from kgprobe.probes.jobs.stage import Answers, Part

OUTPUT = {"prompts": None, "outcomes": schema.OUTCOMES}


def answers(part: Part) -> Answers:
    """Return a folder of prompts by relation, and OUTCOMES; resume an unfinished search."""
    settings, name = part.settings, part.prompt
    task, seed = tasks.of_part(part), settings["seed"]
    loaded = search.prepared(part.spec, name, seed, part.load)
    outcomes, record = search.search_task(
        loaded, task, name, settings["section"], settings["mode"], part.kept.fresh / "prompts",
        part.work, seed,
    )  # fmt: skip
    return {"outcomes": outcomes}, record
