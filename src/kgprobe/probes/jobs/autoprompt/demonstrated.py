"""Manual prompts behind demonstrations: drawn, and chosen on dev (see prompts/wordings).

task, model  --drawn-->  facts of a relation  --behind-->  its manual prompt with them in front
             --chosen->  the set and the order with the highest MRR on the dev facts
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from kgprobe.probes.jobs.autoprompt import outcomes
from kgprobe.probes.jobs.autoprompt.tasks import CLASSIFICATION, ProbeTask, ProbeTaskError
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.wordings import demonstrations as demos
from kgprobe.probes.prompts.wordings.demonstrations import TrainingFact
from kgprobe.probes.prompts.wordings.ensembles import mean_reciprocal_rank
from kgprobe.probes.text.encode import refuse_control_tokens
from kgprobe.settings import Demos


@dataclass(frozen=True)
class Demonstrations:
    """Demonstrations of a task for a model, as the settings have them."""

    predictor: Predictor
    task: ProbeTask
    settings: Demos
    seed: int = 0

    def manual(self) -> dict[str, outcomes.TriggerPrompt]:
        """The manual prompts of the relations that have one. Raises ProbeTaskError for classes."""
        if self.task.kind == CLASSIFICATION:
            raise ProbeTaskError(
                f"{self.task.name}: demonstrations are facts in front of a question, the task has "
                "classes; leave out the row"
            )
        return self.task.wordings(self.predictor.loaded, "manual")

    def draw(self, kind: str, group: str, draw: int = 0) -> list[TrainingFact]:
        """The demonstrations of a kind in one of its draws."""
        known = pl.concat([self.task.examples, self.task.unasked], how="diagonal")
        return demos.of_kind(kind, known, group, self.settings.k, self.seed, draw)

    def prompt_field(self, group: str, facts: Sequence[TrainingFact]) -> dict[str, str]:
        """The field of demonstrations. Raises ProbeTaskError where they fill the model's window."""
        loaded = self.predictor.loaded
        given = demos.verbalize(self.task.whole(loaded, group), facts)
        name = f"{self.task.name}, {group}, demonstrations"
        refuse_control_tokens(loaded.tokenizer, [given[demos.FIELD]], lambda _: name)
        size = len(loaded.tokenizer(given[demos.FIELD])["input_ids"])
        if size >= loaded.limit:
            raise ProbeTaskError(
                f"{self.task.name}, {group}: {len(facts)} demonstrations have {size} tokens, "
                f"{loaded.spec.model} takes {loaded.limit} with the question; make "
                "autoprompt.demos.k smaller"
            )
        return given

    def behind(
        self, prompt: outcomes.TriggerPrompt, group: str, facts: Sequence[TrainingFact]
    ) -> outcomes.TriggerPrompt:
        """A prompt behind demonstrations."""
        template = demos.template(prompt.template)
        return replace(prompt, template=template, given=self.prompt_field(group, facts))

    def choose(
        self, group: str, prompt: outcomes.TriggerPrompt
    ) -> tuple[list[TrainingFact], dict[str, Any]]:
        """(the facts in the order that is best on dev, the record of the choice).

        Chosen among the draws of plain and balanced sets, then among the orders of the best set.
        """
        settings, kinds = self.settings, (demos.PLAIN, demos.BALANCED)
        sets = [self.draw(kind, group, draw) for kind in kinds for draw in range(settings.sets)]
        best, first = self._best(prompt, group, sets)
        again = [sets[best], *demos.orders(sets[best], settings.orders, group, self.seed)]
        order, values = self._best(prompt, group, again)
        dev = self.task.of(group, "dev")
        record = {
            **describe_demonstrations(again[order]),
            "dev_mrr": round(values[order], 6),
            "dev": dev.height,
            "dev_answers": dev["label"].n_unique(),
            "candidates": len(first) + len(values) - 1,
        }
        return again[order], record

    def _best(
        self, prompt: outcomes.TriggerPrompt, group: str, sets: Sequence[Sequence[TrainingFact]]
    ) -> tuple[int, list[float]]:
        """(the set with the highest MRR on dev, the MRR of each); the first of equal ones. A gold
        without rank counts as reciprocal rank 0."""
        dev, known = self.task.of(group, "dev"), {}
        prompts = [self.behind(prompt, group, facts) for facts in sets]
        for one in {each.given[demos.FIELD]: each for each in prompts}.values():
            inputs = self.predictor, "", {group: one}, dev, self.task.vocabulary
            known[one.given[demos.FIELD]] = mean_reciprocal_rank(outcomes.outcomes(*inputs)[0])
        values = [known[one.given[demos.FIELD]] for one in prompts]
        return int(np.argmax(values)), values


def describe_demonstrations(facts: Sequence[TrainingFact]) -> dict[str, Any]:
    """What the record says of demonstrations; tables see by it which objects were shown."""
    return {"demonstrated": [[dict(fact.fields), fact.label] for fact in facts]}
