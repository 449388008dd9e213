"""What was answered on AutoPrompt's tasks: outcomes beside their examples, and values of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.prompt_frames import part
from kgprobe.metrics import prompts as metrics
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import marks

Row = Mapping[str, str]
#: benchmark -> what is asked; every other one asks for facts
EXTRACTION = ("auto_re", "auto_re_perturbed")
CLASSIFICATION = ("auto_sst2", "auto_sick", "auto_sick_3way", "auto_sick_2way")
#: order of rows: who answers, from those that need no model to the searched prompts
PROMPTS = (
    "majority",
    "constant",
    "linear_probe",
    "finetuned",
    "relation_lstm",
    "manual",
    "manual_chosen",
    "lpaqa",
    "lpaqa_mined",
    "lpaqa_paraphrased",
    "published",
    "continuous",
    "initial_triggers",
    "random_triggers",
    "shuffled_triggers",
    "searched_reinitialised",
    "searched_embeddings",
    "searched_balanced",
    "searched_words",
    "transferred",
    "searched",
    "searched_7",
)
NAMES = {
    "majority": "majority of the training facts",
    "constant": "best constant answer (oracle)",
    "linear_probe": "linear probe",
    "finetuned": "fine-tuned",
    "relation_lstm": "LSTM extractor, re-implemented, other data",
    "manual": "manual prompt",
    "manual_chosen": "manual prompt chosen on dev",
    "lpaqa": "LPAQA, one prompt",
    "lpaqa_mined": "LPAQA, weighted, mined",
    "lpaqa_paraphrased": "LPAQA, weighted, paraphrased",
    "published": "published AutoPrompt prompt",
    "continuous": "continuous prompt (OptiPrompt)",
    "initial_triggers": "control: what the search starts from",
    "random_triggers": "control: random triggers",
    "shuffled_triggers": "control: found triggers shuffled",
    "searched_reinitialised": "control: search, all weights random",
    "searched_embeddings": "control: search, embeddings random",
    "searched_balanced": "AutoPrompt, balanced search data",
    "searched_words": "AutoPrompt, label words of the manual prompt",
    "transferred": "AutoPrompt found on another model",
    "searched": "AutoPrompt",
    "searched_7": "AutoPrompt, 7 triggers",
}


@dataclass(frozen=True)
class Answered:
    """Outcomes of one prompt and model on one benchmark; `published`: the model's printed name.

    `examples` are those that the model was given: training, dev and test.
    Reciprocal ranks beyond `cut` are 0.
    """

    benchmark: str
    prompt: str
    model: str
    kind: str
    source: str
    published: str
    outcomes: pl.DataFrame
    examples: pl.DataFrame
    cut: int | None = None
    #: whether its calibration does not meet the requirement
    outside: bool = False

    @property
    def shown(self) -> str:
        """The model's name as it stands beside the numbers of this prompt."""
        return self.model + marks.OUTSIDE * self.outside

    @property
    def label(self) -> str:
        """The name of its row."""
        return f"{self.shown} | {self.prompt}"

    @property
    def control(self) -> bool:
        """Whether a control model answered, whose knowledge was made here."""
        return self.source.startswith("control:")

    @property
    def size(self) -> int:
        """Test examples that were answered; of draws of a balanced set those of one draw."""
        rows = self.outcomes.filter(pl.col("split") == "test")
        asked = rows.select("group", "example").unique().height
        return asked // self.groups if self.benchmark in CLASSIFICATION else asked

    @property
    def groups(self) -> int:
        """Relations, or draws of a balanced set."""
        return max(1, self.outcomes["group"].n_unique())

    def draws(self) -> list[str]:
        """The draws of a prompt that is drawn several times (random triggers), else one."""
        return sorted(self.outcomes["prompt"].unique().to_list())


def answered(
    rows: Sequence[Row],
    models: Mapping[str, Row],
    outcomes: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    mode: str = "default",
    given: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
) -> list[Answered]:
    """What every row of the sheet answered, ordered by benchmark, model and prompt.

    `outcomes`: the OUTCOMES file that holds it, in the same order (draws are named `prompt:00`);
    `folders`: benchmark -> its folder; `mode`: that of the search, whose ranks may be cut; `given`:
    the section of the config of every row, whose `groups` and `most` say which examples it had.
    """
    examples = {
        name: schema.read(Path(folder) / "examples.parquet", schema.EXAMPLES)
        for name, folder in folders.items()
    }
    files = {path: schema.read(path, schema.OUTCOMES) for path in dict.fromkeys(outcomes)}
    found, shown = [], marks.names(rows, outcomes)
    for row, path, section in zip(rows, outcomes, given or [{}] * len(rows), strict=True):
        model, name = models[row["model"]], pl.col("prompt")
        own = (name == row["prompt"]) | name.str.starts_with(f"{row['prompt']}:")
        found.append(
            Answered(
                benchmark=row["benchmark"],
                prompt=row["prompt"],
                model=shown[row["model"]],
                kind=model["kind"],
                source=model["source"],
                published=model.get("published", "") or row["model"],
                outcomes=files[path].filter(own),
                examples=part(examples[row["benchmark"]], section, seed),
                cut=metrics.cut_of(mode),
            )
        )
    benchmarks, names = _order(r["benchmark"] for r in rows), _order(a.model for a in found)
    return sorted(found, key=lambda a: (benchmarks[a.benchmark], names[a.model], place(a.prompt)))


def place(prompt: str) -> tuple[int, str]:
    """Where a prompt stands among the rows; unknown ones come last, by name."""
    return (PROMPTS.index(prompt) if prompt in PROMPTS else len(PROMPTS), prompt)


def of(found: Iterable[Answered], *benchmarks: str) -> list[Answered]:
    """Those of the benchmarks named."""
    return [a for a in found if a.benchmark in benchmarks]


def of_facts(found: Sequence[Answered]) -> list[Answered]:
    """Those of the benchmarks that ask for facts without a context."""
    return [a for a in found if a.benchmark not in (*EXTRACTION, *CLASSIFICATION)]


def per_benchmark(found: Sequence[Answered]) -> Iterator[tuple[str, list[Answered]]]:
    """(benchmark, what was answered on it) in order of appearance."""
    for benchmark in dict.fromkeys(a.benchmark for a in found):
        yield benchmark, of(found, benchmark)


def per_example(
    own: Answered,
    split: str = "test",
    subset: str = "all",
    filtered: bool = False,
    absent: str = "drop",
) -> pl.DataFrame | None:
    """prompt (the row's label), group, unit, p1, p10, mrr; a mean over draws where there are some.

    None where the subset has no example. `filtered` and `absent` as in `metrics.ranked`.
    """
    try:
        rows = metrics.joined(own.examples, own.outcomes, split, subset)
    except ValueError:
        if own.outcomes.filter(pl.col("split") == split).height and subset == "all":
            raise
        return None
    values = metrics.ranked(rows, filtered, own.cut, absent)
    return mean_of_draws(values, own.label) if values.height else None


def mean_of_draws(values: pl.DataFrame, label: str) -> pl.DataFrame:
    """Values per unit, averaged over the draws of a prompt, under the row's label."""
    numbers = [c for c in values.columns if c not in ("prompt", "group", "unit")]
    mean = values.group_by("group", "unit").agg(ordered_mean(numbers)).sort("group", "unit")
    return mean.select(pl.lit(label).alias("prompt"), "group", "unit", *numbers)


def of_examples(own: Answered, facts: Iterable[str]) -> Answered:
    """The same, of the examples of some facts only."""
    kept = own.examples.filter(pl.col("fact").is_in(list(facts)))
    key = ["group", "split", "example"]
    return replace(own, outcomes=own.outcomes.join(kept, on=key, how="semi"), examples=kept)


def draw_values(own: Answered, split: str = "test") -> list[float]:
    """Macro P@1 of every draw, 0 .. 1."""
    found = []
    for draw in own.draws():
        outcomes = own.outcomes.filter(pl.col("prompt") == draw)
        values = per_example(replace(own, outcomes=outcomes), split)
        if values is not None:
            means = values.group_by("group").agg(ordered_mean("p1")).sort("group")["p1"]
            found.append(float(means.to_numpy().mean()))
    return found


def _order(names: Iterable[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(dict.fromkeys(names))}
