"""What wordings a model proposes for the relations of a task (see prompts/wordings/proposals)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgprobe.probes.jobs.autoprompt.tasks import ProbeTask, ProbeTaskError
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.prompts.wordings import demonstrations, proposals, published
from kgprobe.probes.prompts.wordings.demonstrations import TrainingFact
from kgprobe.probes.prompts.wordings.proposals import Proposed
from kgprobe.probes.prompts.wordings.published import PublishedTemplate
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.rows import WHOLE
from kgprobe.sampling import hash_key
from kgprobe.settings import Proposals
from kgprobe.templates import as_prompt_template

FACTS = "facts"


def propose(
    loaded: Loaded,
    task: ProbeTask,
    group: str,
    settings: Proposals,
    seed: int = 0,
    progress: Callable[[int], object] = lambda blanks: None,
) -> tuple[Proposed, int]:
    """(wordings of a relation out of its training facts, texts that were written).

    Raises ProbeTaskError for a task of another kind.
    """
    if task.kind != FACTS:
        raise ProbeTaskError(
            f"{task.name}: prompt instructions words facts, the task asks for {task.kind}; leave "
            "out the row"
        )
    kind = loaded.spec.kind
    known = demonstrations.pool(task.examples, group)
    order = sorted(known, key=lambda one: (hash_key(seed, "proposals", group, one[0]), one[0]))
    facts = [fact for _, fact in order[: settings.facts]]
    items = proposals.blanks(kind, facts, patterns(loaded, task, group, settings.patterns, seed))
    options = proposals.settings(kind, settings.beams, settings.most_tokens)
    table = predict.predict(
        loaded, items, settings.beams, options, progress=progress, may_be_empty=True
    ).top
    whole = table["position"] == WHOLE
    texts = [
        (facts[int(item)], proposals.text_of(kind, facts[int(item)], text))
        for item, text in zip(table["item"][whole], table["text"][whole], strict=True)
    ]
    return proposals.mined(texts, task.examples.filter(group=group)["label"]), len(texts)


def patterns(
    loaded: Loaded, task: ProbeTask, group: str, count: int, seed: int
) -> list[tuple[str, TrainingFact]]:
    """(wording as a sentence, a training fact) of other relations, drawn by hash."""
    others = [name for name in sorted(task.wordings(loaded, "manual")) if name != group]
    others.sort(key=lambda name: hash_key(seed, "patterns", group, name))
    pairs = []
    for name in others[:count]:
        facts = demonstrations.pool(task.examples, name)
        if facts:
            _, fact = min(facts, key=lambda one: hash_key(seed, "patterns", group, name, one[0]))
            pairs.append((task.whole(loaded, name), fact))
    return pairs


def pool(
    loaded: Loaded,
    task: ProbeTask,
    group: str,
    proposed: Proposed,
    most: int,
    lpaqa: Path | None = None,
) -> list[PublishedTemplate]:
    """The manual prompt, the model's proposals and LPAQA's paraphrases (of a folder), as far as
    this kind of model can use them; none twice."""
    whole = [task.whole(loaded, group)] if group in task.about["prompts"].get("manual", {}) else []
    templates = [
        PublishedTemplate(text) for text in (*whole, *map(as_prompt_template, proposed.first(most)))
    ]
    if lpaqa is not None:
        read = published.read_weighted(lpaqa / "paraphrase", group)
        templates += [
            PublishedTemplate(as_prompt_template(wording.text), wording.weight) for wording in read
        ]
    # what is the same without its weight is one
    return published.usable(group, templates, loaded.spec.kind).wordings


def counts(proposed: Proposed, written: int) -> dict[str, Any]:
    """What a table prints: texts written, wordings found, and why others were refused."""
    return {
        "written": written,
        "proposed": len(proposed.wordings),
        "refused": dict(sorted(proposed.refused.items())),
    }
