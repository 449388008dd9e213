"""Generated text for a mask slot, and ranks of its golds (see scoring/fill)."""

from kgprobe import schema
from kgprobe.probes.jobs.fill import fill_frame
from kgprobe.probes.jobs.forms import of_part
from kgprobe.probes.jobs.stage import Answers, Part, Template, by_template, whole
from kgprobe.sampling import take
from kgprobe.settings.probes import Fill
from kgprobe.settings.types import typed

OUTPUT = {"fills": schema.FILLS, "golds": schema.FILL_GOLDS}


def units(part: Part) -> dict[str, Template | None]:
    """Return templates, or the whole part if the longest gold limits the text, for a server (whose
    answers are cached individually), and for a form (whose sample is from all items)."""
    if part.settings.get("form"):
        return whole(part)
    is_bounded = part.spec.kind == "masked" or part.settings["fill"]["most_tokens"]
    return by_template(part) if is_bounded and part.spec.kind != "api" else whole(part)


def answers(part: Part) -> Answers:
    """Return FILLS and FILL_GOLDS."""
    items, candidates, prompts = part.tables_asked()
    if part.settings["few"]:  # the paper's ten of every relation for a server
        most, seed = part.settings["few"], part.settings["seed"]
        prompts = take(prompts, most, seed, ["prompt"], ["relation"], "prompts of api")
    fills, golds, record = fill_frame(
        part.load(part.spec),
        items,
        candidates,
        prompts,
        typed(Fill, part.settings["fill"]),
        part.api.workers,
        # possibly none of a few templates can be used with this model
        may_be_empty=part.only is not None,
        form=of_part(part) if part.settings.get("form") else None,
        folder=part.work,
    )
    return {"fills": fills, "golds": golds}, record
