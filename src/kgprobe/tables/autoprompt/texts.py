"""Texts of searched prompts: Table 3 (one per task), 7 (all relations), 8 (contexts)."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from kgprobe.probes import prompt_settings
from kgprobe.sampling import hash_key
from kgprobe.tables.autoprompt.numbers import EXTRACTION, MAJORITY, Answers, judge
from kgprobe.tables.autoprompt.section import majorities
from kgprobe.tables.autoprompt.views import HEADS
from kgprobe.tables.report import marks
from kgprobe.tables.report.grid import property_order
from kgprobe.tables.results import Number, plain
from kgprobe.templates import TRIGGER, expand_triggers, parse, word_of

#: the group of a task without relations, as in the names of prompt files
WHOLE_TASK = prompt_settings.ALL


@dataclass(frozen=True)
class Prompt:
    """A prompt file: its search, and its content (see probes/prompts/search/files)."""

    benchmark: str
    prompt: str
    model: str
    group: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def search(self) -> tuple[str, str, str]:
        """The search that found it; with relations, a search has a prompt for each."""
        return self.benchmark, self.prompt, self.model

    @property
    def words(self) -> str:
        """The template with the trigger tokens filled in."""
        return fill_triggers(self.content["template"], self.content["tokens"])


def read(folders: Iterable[str | Path]) -> list[Prompt]:
    """Read every prompt file of folders `{prompt}/{benchmark}/{model}`, in the folders' order."""
    prompts = []
    for folder in map(Path, folders):
        prompt, benchmark, model = folder.parts[-3:]
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            search = str((content.get("record") or {}).get("name", ""))
            group = prompt_settings.group_of(path.stem, search) or WHOLE_TASK
            prompts.append(Prompt(benchmark, prompt, model, group, content))
    return prompts


def fill_triggers(template: str, tokens: Sequence[str]) -> str:
    """Replace `[T]` in a template by tokens; word-start markers become spaces.

    >>> fill_triggers("{sub}[T][T] [P].", ["is", "##land"])
    '{sub} is ##land [P].'
    """
    left, parsed = iter(tokens), parse(expand_triggers(template))
    text = parsed.first
    for slot, raw, behind in parsed.parts:
        text += (" " + word_of(next(left)) if slot == TRIGGER else raw) + behind
    return re.sub(r" +", " ", text).strip()


def restarts(prompts: Sequence[Prompt]) -> Iterator[Number]:
    """Yield the search metric on dev of the selected restart, and the mean and the lowest of all
    restarts, averaged over the relations of a task; n counts restarts."""
    for search in dict.fromkeys(p.search for p in prompts):
        runs = [p.content.get("restarts", []) for p in prompts if p.search == search]
        ends = [[float(run["dev"]) for run in each if run["dev"] is not None] for each in runs]
        values = [each for each in ends if each]
        benchmark, prompt, model = search
        for choice, of in (("chosen", max), ("mean", fmean), ("lowest", min)) if values else ():
            yield Number(
                benchmark=benchmark, model=model, prompt=prompt, method="predict",
                metric="search metric", slice="dev", setting={"choice": choice},
                value=fmean([of(each) for each in values]), n=sum(map(len, values)),
            )  # fmt: skip


def of_tasks(
    prompts: Sequence[Prompt], answers: Sequence[Answers], seed: int = 0
) -> Iterator[dict[str, object]]:
    """Yield Table 3: for each task and model the template, one found prompt with an example (drawn
    by seed), and label tokens."""
    examples = {(a.benchmark, "searched", a.probe.model): a.examples for a in answers}
    for search in dict.fromkeys(p.search for p in prompts if p.search in examples):
        group = [p for p in prompts if p.search == search]
        chosen = min(group, key=lambda p: hash_key(seed, p.benchmark, p.group))
        name = "" if chosen.group == WHOLE_TASK else chosen.group
        tested = examples[search].filter(split="test", group=name).select("example", "fields")
        drawn = min(tested.rows(), key=lambda row: hash_key(seed, row[0]), default=("", "{}"))
        fields = json.loads(drawn[1])
        labels = sorted((chosen.content.get("label_tokens") or {}).items())
        shown = [f"{name}: {', '.join(map(word_of, tokens))}" for name, tokens in labels]
        yield {
            "task": chosen.benchmark,
            "model": chosen.model,
            "template": chosen.content["template"],
            "prompt": parse(chosen.words).filled(fields).text,
            "label tokens": "; ".join(shown),
        }


def of_relations(
    prompts: Sequence[Prompt], results: pl.DataFrame, templates: Mapping[str, Mapping[str, str]]
) -> Iterator[dict[str, object]]:
    """Yield Table 7: for each relation the manual prompt (`templates`: benchmark -> relation -> its
    text) and every searched prompt as text, each with its P@1 in `results`."""
    key = ("benchmark", "group", "model", "prompt", "metric")
    figures = results.filter(pl.col("group") != "", plain()).iter_rows(named=True)
    at = {tuple(row[d] for d in key): row for row in figures}
    sign, beating = marks.signs(results), majorities(results)

    def format_figure(*place: str) -> str:
        if (row := at.get(place)) is None:
            return ""
        below = ", below majority" * (beating(row) is not None)
        bounds = f"{row['low']:.1f} to {row['high']:.1f}"
        return f"{row['value']:.1f} ({bounds}), n {row['n']}{sign(row)}{below}"

    for prompt in sorted(prompts, key=lambda p: (p.benchmark, property_order(p.group))):
        place = prompt.benchmark, prompt.group
        if prompt.prompt in ("searched", "searched_7") and (*place, "majority", "", "P@1") in at:
            is_same = prompt.content.get("round_trip")
            yield {
                "benchmark": prompt.benchmark,
                "relation": prompt.group,
                "model": prompt.model,
                "manual prompt": templates.get(prompt.benchmark, {}).get(prompt.group, ""),
                "manual P@1": format_figure(*place, prompt.model, "manual", "P@1"),
                "prompt": prompt.words,
                "P@1": format_figure(*place, prompt.model, prompt.prompt, "P@1"),
                "majority P@1": format_figure(*place, prompt.model, prompt.prompt, MAJORITY),
                "best constant P@1": format_figure(*place, "constant", "", "P@1"),
                "text tokenizes to the same ids": "yes" if is_same else "no",
            }


def contexts(
    answers: Sequence[Answers], prompts: Sequence[Prompt], each: int = 6, seed: int = 0
) -> Iterator[dict[str, object]]:
    """Yield Table 8: contexts, one model's searched prompts and answers, `each` drawn per benchmark
    by seed; the object replaced by the perturbation is struck through, as ~~old~~."""
    words = {(p.benchmark, p.model, p.group): p.words for p in prompts if p.prompt == "searched"}
    for benchmark in EXTRACTION:
        chosen = [a for a in answers if (a.benchmark, a.probe.prompt) == (benchmark, "searched")]
        for one in chosen[:1]:
            order = judge(one).rows(named=True)
            order.sort(key=lambda r: hash_key(seed, r["group"], r["example"]))
            for row in order[:each]:
                fields = json.loads(row["fields"])
                context, label = fields.get("context", ""), row["label"]
                if fields.get("old"):
                    old = f"~~{fields['old']}~~"
                    names = (word for word in [label, *row["surfaces"]] if word in context)
                    new = next(names, label)
                    context, label = context.replace(new, f"{old} {new}", 1), f"{old} {label}"
                yield {
                    "half": HEADS[benchmark],
                    "relation": row["group"],
                    "context": context,
                    "prompt": words.get((benchmark, one.probe.model, row["group"]), ""),
                    "object": label,
                    "prediction": f"{row['answer']}{' +' if row['hit'] else ''}",
                }
