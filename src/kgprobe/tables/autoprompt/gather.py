"""What was answered on AutoPrompt's tasks: outcomes beside their examples, and values of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.autoprompt.frames import part
from kgprobe.metrics import prompts as metrics
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables.answers import Probe, Row, probes_of, recorded

#: benchmark -> what is asked; every other one asks for facts
EXTRACTION = ("auto_re", "auto_re_perturbed")
CLASSIFICATION = ("auto_sst2", "auto_sick", "auto_sick_3way", "auto_sick_2way")
SHOWN = {"prompt": pl.String, "group": pl.String, "label": pl.String}


@dataclass(frozen=True)
class Answers:
    """OUTCOMES of a probe and the EXAMPLES that its model was given: training, dev and test.

    Reciprocal ranks beyond `cut` are 0. `shown`: prompt, group and label of demonstrations.
    """

    probe: Probe
    outcomes: pl.DataFrame
    examples: pl.DataFrame
    cut: int | None = None
    shown: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SHOWN))

    @property
    def benchmark(self) -> str:
        """The benchmark that was asked."""
        return self.probe.benchmark

    @property
    def of_classes(self) -> bool:
        """Whether sentences were classified."""
        return self.benchmark in CLASSIFICATION

    @property
    def groups(self) -> int:
        """Relations, or draws of a balanced set."""
        return max(1, self.outcomes["group"].n_unique())

    @property
    def size(self) -> int:
        """Test examples that were answered; of draws of a balanced set those of one draw."""
        rows = self.outcomes.filter(pl.col("split") == "test")
        asked = rows.select("group", "example").unique().height
        return asked // self.groups if self.of_classes else asked

    def of_facts(self, facts: Iterable[str]) -> "Answers":
        """The same, of the examples of some facts only."""
        kept = self.examples.filter(pl.col("fact").is_in(list(facts)))
        key = ["group", "split", "example"]
        return replace(self, outcomes=self.outcomes.join(kept, on=key, how="semi"), examples=kept)

    def not_shown(self) -> "Answers":
        """The same, without the examples whose object is one of the demonstrations in front."""
        key = ["group", "split", "example"]
        labels = self.outcomes.join(self.examples.select(*key, "label"), on=key, how="left")
        rows = labels.join(self.shown, on=list(SHOWN), how="anti")
        return replace(self, outcomes=rows.select(self.outcomes.columns))

    def draws(self) -> Iterator["Answers"]:
        """Each draw of a prompt that is drawn several times (random triggers); else itself."""
        for (_,), outcomes in self.outcomes.sort("prompt").group_by("prompt", maintain_order=True):
            yield replace(self, outcomes=outcomes)


def answered(
    rows: Sequence[Row],
    models: Mapping[str, Row],
    outcomes: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    mode: str = "default",
    given: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
) -> list[Answers]:
    """What every row of the sheet answered, in its order.

    `outcomes`: the OUTCOMES file that holds it, in the same order (draws are named `prompt:00`);
    `folders`: benchmark -> its folder; `mode`: that of the search, whose ranks may be cut; `given`:
    the section of the config of every row, whose `groups` and `most` say which examples it had.
    """
    examples = {
        name: schema.read(Path(folder) / "examples.parquet", schema.EXAMPLES)
        for name, folder in folders.items()
    }
    files = {path: schema.read(path, schema.OUTCOMES) for path in dict.fromkeys(outcomes)}
    found, name = [], pl.col("prompt")
    probes, sections = probes_of(rows, models, outcomes), given or [{}] * len(rows)
    for probe, path, section in zip(probes, outcomes, sections, strict=True):
        own = (name == probe.prompt) | name.str.starts_with(f"{probe.prompt}:")
        asked = part(examples[probe.benchmark], section, seed)
        answers = files[path].filter(own)
        told = demonstrated(path, answers["prompt"].unique().to_list())
        found.append(Answers(probe, answers, asked, metrics.cut_of(mode), told))
    return found


def demonstrated(path: str | Path, prompts: Iterable[str]) -> pl.DataFrame:
    """SHOWN of the prompts of an OUTCOMES file, whose record has their demonstrations."""
    told = recorded(path, "model").get("prompted", {})
    rows = [
        (prompt, group, label)
        for prompt in sorted(prompts)
        for group, own in told.get(prompt, {}).items()
        for _, label in own.get("demonstrated", [])
    ]
    return pl.DataFrame(rows, schema=SHOWN, orient="row").unique(maintain_order=True)


def per_example(
    own: Answers,
    split: str = "test",
    subset: str = "all",
    filtered: bool = False,
    absent: str = "drop",
) -> pl.DataFrame | None:
    """prompt, group, unit, p1, p10, mrr; a mean over draws where there are some.

    None where the subset has no example. `filtered` and `absent` as in `metrics.ranked`.
    """
    try:
        rows = metrics.joined(own.examples, own.outcomes, split, subset)
    except ValueError:
        if own.outcomes.filter(pl.col("split") == split).height and subset == "all":
            raise
        return None
    values = metrics.ranked(rows, filtered, own.cut, absent)
    return mean_of_draws(values, own.probe.prompt) if values.height else None


def mean_of_draws(values: pl.DataFrame, prompt: str) -> pl.DataFrame:
    """Values per unit, averaged over the draws of a prompt."""
    numbers = [c for c in values.columns if c not in ("prompt", "group", "unit")]
    mean = values.group_by("group", "unit").agg(ordered_mean(numbers)).sort("group", "unit")
    return mean.select(pl.lit(prompt).alias("prompt"), "group", "unit", *numbers)
