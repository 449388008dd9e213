"""Training of soft prompts for the memorizing tasks (see prompts/trained)."""

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.probes.jobs.ontoprobe.soft import train
from kgprobe.probes.jobs.stage import Answers, Part, whole
from kgprobe.settings.probes import Soft
from kgprobe.settings.types import typed

OUTPUT = {"prompts": None}


def answers(part: Part) -> Answers:
    """Write a folder with a file for every prompt; a stopped run resumes with the next one."""
    record = train(
        part.spec,
        part.read("questions", schema.ITEMS),
        part.read("candidates", schema.CANDIDATES),
        typed(Switches, part.settings["switches"]),
        typed(Soft, part.settings["soft"]),
        part.kept.fresh / "prompts",
        part.load,
        part.work / next(iter(whole(part))),
    )
    return {}, record
