"""Answers of prompts without a search, for all prompts of a model at once: it is loaded only once.

Baselines (majority, best constant), written prompts (manual, LPAQA, published), manual prompts
after demonstrations, and controls of a searched prompt (initial, random and shuffled triggers,
prompts found on another model).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from kgprobe.benchmarks.autoprompt.templates import read_templates
from kgprobe.job import log
from kgprobe.probes import ranked
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.jobs.autoprompt.tasks import CLASSIFICATION, ProbeTask, ProbeTaskError
from kgprobe.probes.models.load import Load, ModelSpec, load_model
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompt_settings import group_of
from kgprobe.probes.prompts.search import controls
from kgprobe.probes.prompts.search import files as trigger_files
from kgprobe.probes.prompts.search.candidates import filter_candidates, vocabulary_of
from kgprobe.probes.prompts.search.controls import transfer
from kgprobe.probes.prompts.search.files import PromptFile
from kgprobe.probes.prompts.search.scores import gold_tokens
from kgprobe.probes.prompts.search.settings import SearchSettings
from kgprobe.probes.prompts.variants import demonstrations
from kgprobe.probes.prompts.variants.demonstrations import TrainingFact
from kgprobe.probes.scoring.fill.options import Options
from kgprobe.probes.text.encode import refuse_control_tokens
from kgprobe.schema import OUTCOMES
from kgprobe.settings.probes import Demos
from kgprobe.templates import Template

Prompts = dict[str, tasks.TriggerPrompt]
DEMOS = Demos()
#: template in which words have their form after a space, within a text
REFERENCE = "{sub} [P]"


class Answerer:
    """A model with a task: each method named in WRITTEN returns the OUTCOMES of that prompt.

    `searched`: folder of the searched prompts ("" if not needed); `other`: the folder of the model
    that prompts are transferred from; `published`: the file of this model's published prompts;
    `demos`: numbers of demonstrations and draws.
    """

    def __init__(
        self,
        spec: ModelSpec,
        task: ProbeTask,
        searched: str | Path = "",
        other: str | Path = "",
        published: str | Path = "",
        draws: int = controls.DRAWS,
        seed: int = 0,
        load: Load = load_model,
        demos: Demos = DEMOS,
    ) -> None:
        self.loaded = load(spec)
        self.predictor = Predictor(self.loaded)
        self.task, self.examples = task, task.evaluated
        self.searched, self.other = Path(searched), Path(other)
        self.file = published
        self.draws, self.demonstrated, self.seed = draws, demos, seed
        self.options: Sequence[str] | Options = task.vocabulary
        if task.kind != CLASSIFICATION:
            reference = Template.parse(REFERENCE, spec.kind)
            self.options = Options.words(self.loaded, reference, task.vocabulary)
        self.record: dict[str, Any] = {}

    def answers(self, prompts: Sequence[str]) -> pl.DataFrame:
        """Return OUTCOMES of the named prompts, in order."""
        frames = []
        for name in prompts:
            log.info("%s, %s: prompt %s", self.task.name, self.loaded.spec.model, name)
            answer: Callable[[], pl.DataFrame] = getattr(self, name)
            frames.append(answer())
        return pl.concat(frames).select(list(OUTCOMES.columns))

    def majority(self) -> pl.DataFrame:
        """Answer with the most frequent training label."""
        return ranked.majority(self.task.examples, self.options)

    def constant(self) -> pl.DataFrame:
        """Answer with the best constant, an oracle."""
        return ranked.constant(self.task.examples, self.options)

    def _written(self, name: str) -> pl.DataFrame:
        """Answer prompts of task.json: `manual` (hand-written) or `lpaqa`, LPAQA's best single
        one."""
        return self._outcomes(name, self.task.written_prompts(self.loaded, name))

    manual, lpaqa = partialmethod(_written, "manual"), partialmethod(_written, "lpaqa")

    def published(self) -> pl.DataFrame:
        """Answer the published searched prompts of this model, as text."""
        if not self.file:
            raise ProbeTaskError(
                f"no published prompts of {self.loaded.spec.model}: name their file in "
                "autoprompt.published, or leave out the row"
            )
        rows, truncate = read_templates(Path(self.file)), self.task.truncate
        prompts = {
            group: tasks.manual(self.loaded, rows[group]["template"].strip(), None, truncate)
            for group in self.task.groups
            if group in rows
        }
        return self._outcomes("published", prompts)

    def initial_triggers(self) -> pl.DataFrame:
        """Answer the searched prompts with the initial instead of the found trigger."""
        initial = {group: file.record["initial"] for group, file in self._searched.items()}
        return self._triggered("initial_triggers", initial)

    def random_triggers(self) -> pl.DataFrame:
        """Answer with random allowed tokens instead of the found trigger, in several draws."""
        vocabulary, drawn = vocabulary_of(self.loaded), {}
        for group, file in self._searched.items():
            labels = [t for ids in file.labels.values() for t in ids]
            golds, ids, settings = set[str](), list[int](), SearchSettings(**file.settings)
            # class names are not answers, and none is filtered
            if self.task.kind != CLASSIFICATION:
                golds = set(self.task.of(group, "train")["label"])
                words = sorted(golds | set(self.task.of(group, "dev")["label"]))
                tokens = gold_tokens(self.loaded, file.parsed(), words)
                ids = [token for word in golds for token in tokens.get(word, ())]
            rows, _ = filter_candidates(vocabulary, settings, labels, golds, ids)
            pool, size = np.flatnonzero(rows).tolist(), len(file.trigger)
            drawn[group] = controls.random_triggers(pool, size, group, self.seed, self.draws)
        names = controls.names("random_triggers", self.draws)
        return pl.concat(
            self._triggered(name, {group: triggers[draw] for group, triggers in drawn.items()})
            for draw, name in enumerate(names)
        )

    def shuffled_triggers(self) -> pl.DataFrame:
        """Answer with the found tokens in another order."""
        shuffled = {
            group: controls.shuffled_trigger(file.trigger, group, self.seed)
            for group, file in self._searched.items()
        }
        return self._triggered("shuffled_triggers", shuffled)

    def transferred(self) -> pl.DataFrame:
        """Answer prompts that were found on another model, re-encoded from their text."""
        prompts = {
            group: tasks.of_file(transfer(file, self.loaded))
            for group, file in _files(self.other, trigger_files.read).items()
            if group in self.task.groups
        }
        return self._outcomes("transferred", prompts)

    def _demonstrated(self, kind: str) -> pl.DataFrame:
        """Answer manual prompts after training facts of a kind (variants/demonstrations), in
        several draws. Raises ProbeTaskError for classification."""
        if self.task.kind == CLASSIFICATION:
            raise ProbeTaskError(
                f"{self.task.name}: demonstrations are facts before a question, but the task has "
                "classes; leave out the row"
            )
        frames, manual = [], self.task.written_prompts(self.loaded, "manual")
        known = pl.concat([self.task.examples, self.task.unasked], how="diagonal")
        for draw, name in enumerate(controls.names(kind, self.demonstrated.draws)):
            prompts: Prompts = {}
            # tables read the demonstrated objects from the record
            records: dict[str, dict[str, Any]] = {}
            for group, prompt in manual.items():
                facts = demonstrations.of_kind(
                    kind, known, group, self.demonstrated.k, self.seed, draw
                )
                text = f"{{{demonstrations.FIELD}}}\n{prompt.template.text}"
                template = Template.parse(text, prompt.template.kind)
                given = {demonstrations.FIELD: self._verbalized(group, facts)}
                prompts[group] = replace(prompt, template=template, given=given)
                shown = [[dict(fact.fields), fact.label] for fact in facts]
                records[group] = {"demonstrated": shown}
            frames.append(self._outcomes(name, prompts, records))
        return pl.concat(frames)

    demos = partialmethod(_demonstrated, demonstrations.PLAIN)
    demos_shuffled = partialmethod(_demonstrated, demonstrations.SHUFFLED)
    demos_other = partialmethod(_demonstrated, demonstrations.OTHER)

    def _verbalized(self, group: str, facts: Sequence[TrainingFact]) -> str:
        """Verbalize the demonstrations, one per line. Raises ProbeTaskError if they fill the
        model's window."""
        loaded, name = self.loaded, f"{self.task.name}, {group}, demonstrations"
        whole = self.task.whole(loaded, group)
        text = "\n".join(demonstrations.sentence(whole, fact) for fact in facts)
        refuse_control_tokens(loaded.tokenizer, [text], lambda _: name)
        size = len(loaded.tokenizer(text)["input_ids"])
        if size >= loaded.limit:
            raise ProbeTaskError(
                f"{self.task.name}, {group}: {len(facts)} demonstrations have {size} tokens, "
                f"{loaded.spec.model} takes {loaded.limit} with the question; make "
                "autoprompt.demos.k smaller"
            )
        return text

    def _triggered(self, name: str, triggers: Mapping[str, Sequence[int]]) -> pl.DataFrame:
        """Return OUTCOMES of the searched prompts with other triggers."""
        prompts = {
            group: replace(tasks.of_file(self._searched[group]), trigger=tuple(trigger))
            for group, trigger in triggers.items()
        }
        return self._outcomes(name, prompts)

    @cached_property
    def _searched(self) -> dict[str, PromptFile]:
        """The searched prompts by group."""
        return _files(self.searched, lambda path: trigger_files.load(path, self.loaded))

    def _outcomes(
        self, name: str, prompts: Prompts, records: Mapping[str, Mapping[str, Any]] | None = None
    ) -> pl.DataFrame:
        """Return OUTCOMES of the groups with a prompt; other groups are logged. `records` is added
        to the records of groups."""
        examples = self.examples
        if "" not in prompts:
            lacking = sorted(set(self.task.groups) - set(prompts))
            if lacking:
                log.warning("%s: no prompt %s for %s", self.task.name, name, ", ".join(lacking))
            examples = examples.filter(pl.col("group").is_in(list(prompts)))
        if not examples.height:
            raise ProbeTaskError(f"{self.task.name}: no group has a prompt {name!r} for this model")
        frame, self.record[name] = tasks.outcomes(
            self.predictor, name, prompts, examples, self.task.vocabulary
        )
        for group, more in (records or {}).items():
            self.record[name].get(group, {}).update(more)
        return frame


def _files(folder: Path, read: Callable[[Path], PromptFile]) -> dict[str, PromptFile]:
    """Read the prompt files of a folder by group."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise ProbeTaskError(f"{folder}: no searched prompts; add a row with prompt searched")
    files = {path.stem: read(path) for path in paths}
    return {group_of(stem, str(file.record.get("name", ""))): file for stem, file in files.items()}
