"""Searched prompts and their answers (see prompts/search)."""

from pathlib import Path

from kgprobe import schema
from kgprobe.probes.jobs.autoprompt import search, tasks
from kgprobe.probes.jobs.stage import Answers, Part

OUTPUT = {"prompts": None, "outcomes": schema.OUTCOMES}


def answers(part: Part) -> Answers:
    """Return a folder of prompts by relation, and OUTCOMES; resume an unfinished search."""
    settings, name = part.settings, part.prompt
    seed, section = settings["seed"], settings["section"]
    task = tasks.load(Path(part.input["examples"]).parent, section, seed)
    loaded = search.prepared(part.spec, name, seed, part.load)
    outcomes, record = search.search_task(
        loaded, task, name, section, settings["mode"], part.kept.fresh / "prompts", part.work, seed
    )
    return {"outcomes": outcomes}, record
