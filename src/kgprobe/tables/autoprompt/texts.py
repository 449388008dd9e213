"""Searched prompts as they are read: Table 3 (one per task), 7 (all relations), 8 (contexts)."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe.metrics import prompts as metrics
from kgprobe.sampling import hash_key
from kgprobe.tables.autoprompt.chapter import Majorities
from kgprobe.tables.autoprompt.gather import EXTRACTION, Answers
from kgprobe.tables.autoprompt.numbers import MAJORITY
from kgprobe.tables.autoprompt.views import HEADS
from kgprobe.tables.report import marks
from kgprobe.tables.report.grid import property_order
from kgprobe.tables.results import Number, plain
from kgprobe.templates import TRIGGER, parse, spread

#: the group of a task without relations, as in the names of prompt files
WHOLE_TASK = "all"


@dataclass(frozen=True)
class Prompt:
    """A prompt file: of which search, and its content (see probes/prompts/search/files)."""

    benchmark: str
    prompt: str
    model: str
    group: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def search(self) -> tuple[str, str, str]:
        """Whose prompt it is; a search of a task with relations has one for each."""
        return self.benchmark, self.prompt, self.model

    @property
    def words(self) -> str:
        """The template with the trigger's tokens in their places."""
        return written(self.content["template"], self.content["tokens"])


def read(folders: Iterable[str | Path]) -> list[Prompt]:
    """Every prompt file of folders `{prompt}/{benchmark}/{model}`, in the order of the folders."""
    found = []
    for folder in map(Path, folders):
        prompt, benchmark, model = folder.parts[-3:]
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            found.append(Prompt(benchmark, prompt, model, path.stem, content))
    return found


def written(template: str, tokens: Sequence[str]) -> str:
    """A template with tokens in place of `[T]`; signs of a word's start become blanks.

    >>> written("{sub}[T][T] [P].", ["is", "##land"])
    '{sub} is ##land [P].'
    """
    left, found = iter(tokens), parse(spread(template))
    text = found.first
    for slot, own, behind in found.parts:
        text += (" " + next(left).lstrip("Ġ▁") if slot == TRIGGER else own) + behind
    return re.sub(r" +", " ", text).strip()


def restarts(prompts: Sequence[Prompt]) -> Iterable[Number]:
    """The search metric on dev: of the chosen restart, and the mean and the lowest of all.

    A mean over relations where a task has several; n counts restarts. What the choice among
    restarts adds can be seen.
    """
    for search in dict.fromkeys(p.search for p in prompts):
        values = [dev_values(p) for p in prompts if p.search == search]
        values = [v for v in values if v]
        if not values:
            continue
        spread = {
            "chosen": [max(v) for v in values],
            "mean": [sum(v) / len(v) for v in values],
            "lowest": [min(v) for v in values],
        }
        benchmark, prompt, model = search
        for choice, parts in spread.items():
            yield Number(
                benchmark=benchmark, model=model, prompt=prompt, method="predict",
                metric="search metric", slice="dev", setting={"choice": choice},
                value=sum(parts) / len(parts), n=sum(map(len, values)),
            )  # fmt: skip


def dev_values(prompt: Prompt) -> list[float]:
    """The search metric on dev that every restart of a prompt ended with."""
    found = [run.get("dev", run.get("best_dev")) for run in prompt.content.get("restarts") or []]
    return [float(v) for v in found if isinstance(v, int | float)]


def of_tasks(
    prompts: Sequence[Prompt], found: Sequence[Answers], seed: int = 0
) -> list[dict[str, object]]:
    """Table 3: per task and model the template, one found prompt with an example, label tokens.

    Of a task with relations one is drawn by seed, and its test example too.
    """
    rows = []
    examples = {(a.benchmark, "searched", a.probe.model): a.examples for a in found}
    for search in dict.fromkeys(p.search for p in prompts if p.search in examples):
        own = [p for p in prompts if p.search == search]
        chosen = min(own, key=lambda p: hash_key(seed, p.benchmark, p.group))
        fields = _fields(examples[search], chosen.group, seed)
        labels = chosen.content.get("label_tokens") or {}
        given = chosen.content.get("given") or {}
        rows.append(
            {
                "task": chosen.benchmark,
                "model": chosen.model,
                "template": chosen.content["template"],
                "prompt": parse(chosen.words).filled({**given, **fields}).text,
                "label tokens": "; ".join(
                    f"{name}: {', '.join(t.lstrip('Ġ▁') for t in tokens)}"
                    for name, tokens in sorted(labels.items())
                ),
            }
        )
    return rows


def _fields(examples: pl.DataFrame, group: str, seed: int) -> dict[str, str]:
    """What a test example of the group, drawn by seed, fills a template with."""
    name = "" if group == WHOLE_TASK else group
    own = examples.filter((pl.col("split") == "test") & (pl.col("group") == name))
    rows = sorted(own.iter_rows(named=True), key=lambda r: hash_key(seed, r["example"]))
    return dict(json.loads(rows[0]["fields"])) if rows else {}


def of_relations(
    prompts: Sequence[Prompt], results: pl.DataFrame, templates: Mapping[str, Mapping[str, str]]
) -> list[dict[str, object]]:
    """Table 7: per relation the manual prompt and every searched one in words, each with its P@1.

    `results`: RESULTS; `templates`: benchmark -> relation -> its manual prompt.
    """
    own = results.filter(pl.col("group") != "", plain())
    at = {
        tuple(row[d] for d in ("benchmark", "group", "model", "prompt", "metric")): row
        for row in own.iter_rows(named=True)
    }
    sign, beating = marks.signs(results), Majorities.of(results).beating

    def told(*place: str) -> str:
        found = at.get(place)
        if found is None:
            return ""
        below = ", below majority" * (beating(found) is not None)
        bounds = f"{found['low']:.1f} to {found['high']:.1f}"
        return f"{found['value']:.1f} ({bounds}), n {found['n']}{sign(found)}{below}"

    rows: list[dict[str, object]] = []
    for prompt in sorted(prompts, key=lambda p: (p.benchmark, property_order(p.group))):
        place = (prompt.benchmark, prompt.group)
        if prompt.prompt in ("searched", "searched_7") and (*place, "majority", "", "P@1") in at:
            rows.append(
                {
                    "benchmark": prompt.benchmark,
                    "relation": prompt.group,
                    "model": prompt.model,
                    "manual prompt": templates.get(prompt.benchmark, {}).get(prompt.group, ""),
                    "manual P@1": told(*place, prompt.model, "manual", "P@1"),
                    "prompt": prompt.words,
                    "P@1": told(*place, prompt.model, prompt.prompt, "P@1"),
                    "majority P@1": told(*place, prompt.model, prompt.prompt, MAJORITY),
                    "best constant P@1": told(*place, "constant", "", "P@1"),
                    "text gives the ids again": "yes" if prompt.content.get("round_trip") else "no",
                }
            )
    return rows


def contexts(
    found: Sequence[Answers], prompts: Sequence[Prompt], each: int = 6, seed: int = 0
) -> list[dict[str, object]]:
    """Table 8: contexts, prompts and answers, `each` drawn per half by seed; one model's searched.

    In the perturbed half the object before stands struck through, as ~~old~~.
    """
    words = {(p.benchmark, p.model, p.group): p.words for p in prompts if p.prompt == "searched"}
    drawn: list[dict[str, object]] = []
    for benchmark in EXTRACTION:
        asked = (a for a in found if (a.benchmark, a.probe.prompt) == (benchmark, "searched"))
        own = next(asked, None)
        if own is None:
            continue
        rows = metrics.joined(own.examples, own.outcomes)
        rows = rows.with_columns(metrics.right(rows))
        order = sorted(
            rows.iter_rows(named=True), key=lambda r: hash_key(seed, r["group"], r["example"])
        )
        for row in order[:each]:
            text = words.get((benchmark, own.probe.model, row["group"]), "")
            drawn.append({"half": HEADS[benchmark], **_context(row, text)})
    return drawn


def _context(row: Mapping[str, Any], prompt: str) -> dict[str, object]:
    fields = json.loads(row["fields"])
    context, label = fields.get("context", ""), row["label"]
    if fields.get("old"):
        old = f"~~{fields['old']}~~"
        new = next((word for word in [label, *row["surfaces"]] if word in context), label)
        context, label = context.replace(new, f"{old} {new}", 1), f"{old} {label}"
    return {
        "relation": row["group"],
        "context": context,
        "prompt": prompt,
        "object": label,
        "prediction": f"{row['answer']}{' +' if row['right'] else ''}",
    }
