"""Answers of prompts without a search (see jobs/autoprompt/predict)."""

from pathlib import Path

from kgprobe import schema
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.jobs.autoprompt.predict import Answerer
from kgprobe.probes.jobs.kept import content, journal
from kgprobe.probes.jobs.stage import Answers, Part
from kgprobe.settings.probes import Demos
from kgprobe.settings.types import typed

OUTPUT = {"outcomes": schema.OUTCOMES}


def answers(part: Part) -> Answers:
    """Return OUTCOMES of all written prompts of a benchmark."""
    chosen = part.settings
    answerer = Answerer(
        part.spec,
        tasks.of_part(part),
        part.input["found"],
        part.input["other"],
        Path(*part.input["published"][:1]) / chosen["published"] if chosen["published"] else "",
        chosen["draws"],
        chosen["seed"],
        part.load,
        typed(Demos, chosen["demos"]),
    )
    inputs = [content(path) for path in part.paths()], answerer.examples.rows()
    with journal(answerer.loaded, part.work, "prompts", *inputs):
        outcomes = answerer.answers(chosen["prompts"])
    return {"outcomes": outcomes}, {**answerer.loaded.record, "prompted": answerer.record}
