"""Searched prompts as they are read: Table 3 (one per task), Table 7 (all relations), restarts."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from kgprobe.sampling import hash_key
from kgprobe.tables import autoprompt_constants as constants
from kgprobe.tables import marks, table
from kgprobe.tables.autoprompt_gather import Answered

SLOT = re.compile(r"\[T\](?:x(\d+))?")
#: behind a number below the majority of the training labels on the same examples
BELOW = ", below majority"
#: the group of a task without relations, as in the names of prompt files
WHOLE_TASK = "all"


@dataclass(frozen=True)
class Prompt:
    """A prompt file: of which search, and its content (see probes/prompts/trigger_files)."""

    benchmark: str
    prompt: str
    model: str
    group: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def words(self) -> str:
        """The template with the trigger's tokens in their places."""
        return written(self.content["template"], self.content["tokens"])


def read(
    folders: Iterable[str | Path], shown: Mapping[str, str] = MappingProxyType({})
) -> list[Prompt]:
    """Every prompt file of folders `{prompt}/{benchmark}/{model}`, in the order of the folders.

    `shown`: model -> its name in tables, where that is another.
    """
    found = []
    for folder in map(Path, folders):
        prompt, benchmark, model = folder.parts[-3:]
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            name = shown.get(model, model)
            found.append(Prompt(benchmark, prompt, name, path.stem, content))
    return found


def written(template: str, tokens: Sequence[str]) -> str:
    """A template with tokens in place of `[T]`; signs of a word's start become blanks.

    >>> written("{sub}[T][T] [P].", ["is", "##land"])
    '{sub} is ##land [P].'
    """
    left = iter(tokens)

    def some(match: re.Match[str]) -> str:
        chosen = [next(left) for _ in range(int(match[1] or 1))]
        return "".join(" " + token.lstrip("Ġ▁") for token in chosen)

    return re.sub(r" +", " ", SLOT.sub(some, template)).strip()


def filled(text: str, fields: Mapping[str, str]) -> str:
    """A prompt's text with an example in its fields."""
    return re.sub(r"\{(\w+)\}", lambda m: fields.get(m[1], m[0]), text)


def of_tasks(
    prompts: Sequence[Prompt], found: Sequence[Answered], seed: int = 0
) -> list[dict[str, object]]:
    """Table 3: per task and model the template, one found prompt with an example, label tokens.

    Of a task with relations one is drawn by seed, and its test example too.
    """
    rows = []
    examples = {(a.benchmark, a.model): a.examples for a in found}
    searches = dict.fromkeys((p.benchmark, p.prompt, p.model) for p in prompts)
    for benchmark, prompt, model in searches:
        own = [p for p in prompts if (p.benchmark, p.prompt, p.model) == (benchmark, prompt, model)]
        if prompt != "searched" or (benchmark, model) not in examples:
            continue
        chosen = min(own, key=lambda p: hash_key(seed, p.benchmark, p.group))
        fields = _fields(examples[benchmark, model], chosen.group, seed)
        labels = chosen.content.get("label_tokens") or {}
        rows.append(
            {
                "task": benchmark,
                "model": model,
                "template": chosen.content["template"],
                "prompt": filled(chosen.words, fields),
                "label tokens": "; ".join(
                    f"{name}: {', '.join(t.lstrip('Ġ▁') for t in tokens)}"
                    for name, tokens in sorted(labels.items())
                ),
            }
        )
    return rows


def _fields(examples: pl.DataFrame, group: str, seed: int) -> dict[str, str]:
    name = "" if group == WHOLE_TASK else group
    own = examples.filter((pl.col("split") == "test") & (pl.col("group") == name))
    rows = sorted(own.iter_rows(named=True), key=lambda r: hash_key(seed, r["example"]))
    return dict(json.loads(rows[0]["fields"])) if rows else {}


def of_relations(
    prompts: Sequence[Prompt],
    made: Mapping[str, pl.DataFrame],
    templates: Mapping[str, Mapping[str, str]],
) -> list[dict[str, object]]:
    """Table 7: per relation the manual prompt and every searched one in words, each with its P@1.

    `made`: the tables of relations; `templates`: benchmark -> relation -> its manual prompt.
    """
    rows: list[dict[str, object]] = []
    for prompt in sorted(prompts, key=lambda p: (p.benchmark, _number(p.group))):
        name = FACTS.get(prompt.benchmark, "")
        if name not in made or prompt.prompt not in ("searched", "searched_7"):
            continue
        # numbers of a prompt outside the requirement stand in marked columns
        shown = {marks.bare(c): c for c in made[name]["column"].unique()}
        labels = [marks.bare(f"{prompt.model} | {p}") for p in (prompt.prompt, "manual")]
        cells = table.lookup(made[name])
        columns = [shown.get(label, label) for label in labels]
        own, manual = (cells.get((prompt.group, column)) for column in columns)
        signs = [marks.OUTSIDE * (marks.OUTSIDE in column) for column in columns]
        majority = constants.majority_of(cells, prompt.group, columns[0])
        under = constants.below(cells, prompt.group, columns[0]) is not None
        rows.append(
            {
                "benchmark": prompt.benchmark,
                "relation": prompt.group,
                "model": prompt.model,
                "manual prompt": templates.get(prompt.benchmark, {}).get(prompt.group, ""),
                "manual P@1": _percent(manual) + signs[1],
                "prompt": prompt.words,
                "P@1": _percent(own) + signs[0] + BELOW * under,
                "majority P@1": _percent(majority),
                "best constant P@1": _percent(cells.get((prompt.group, constants.BEST))),
                "text gives the ids again": "yes" if prompt.content.get("round_trip") else "no",
            }
        )
    return rows


#: facts benchmark -> the table of its relations
FACTS = {
    "auto_lama": "autoprompt_table6",
    "auto_lama_trex": "autoprompt_trex_relations",
    "auto_lama_roberta": "autoprompt_table7",
    "auto_world": "autoprompt_world_relations",
}


def texts(prompts: Iterable[Prompt]) -> dict[tuple[str, str, str], str]:
    """(benchmark, model, relation) -> the searched prompt in words."""
    return {(p.benchmark, p.model, p.group): p.words for p in prompts if p.prompt == "searched"}


def restarts(prompts: Sequence[Prompt], found: Sequence[Answered] = ()) -> pl.DataFrame | None:
    """Dev values of the restarts: the chosen one beside mean, lowest and highest.

    A mean over relations where a task has several; n counts restarts. What the choice among
    restarts adds can be seen. `found`: the answers, which tell of marks.
    """
    shown = {(a.benchmark, a.prompt, a.model): a.shown for a in found}
    cells = []
    searches = dict.fromkeys((p.benchmark, p.prompt, p.model) for p in prompts)
    for benchmark, prompt, model in searches:
        own = [p for p in prompts if (p.benchmark, p.prompt, p.model) == (benchmark, prompt, model)]
        values = [dev_values(p) for p in own]
        values = [v for v in values if v]
        if not values:
            continue
        n = sum(map(len, values))
        spread = {
            "chosen": [max(v) for v in values],
            "mean": [sum(v) / len(v) for v in values],
            "lowest": [min(v) for v in values],
        }
        row = f"{benchmark} | {shown.get((benchmark, prompt, model), model)} | {prompt}"
        for column, parts in spread.items():
            value = sum(parts) / len(parts)
            cells.append(
                table.cell("autoprompt_restarts", row, column, value, n, paper="autoprompt")
            )
    return table.build(cells) if cells else None


def dev_values(prompt: Prompt) -> list[float]:
    """The search metric on dev that every restart of a prompt ended with."""
    found = [run.get("dev", run.get("best_dev")) for run in prompt.content.get("restarts") or []]
    return [float(v) for v in found if isinstance(v, int | float)]


def _number(relation: str) -> tuple[int, str]:
    digits = relation.removeprefix("P")
    return (int(digits), "") if digits.isdigit() else (1 << 62, relation)


def _percent(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    low, high = cell["low"], cell["high"]
    return f"{cell['value']:.1f} ({low:.1f} to {high:.1f}), n {cell['n']}"
