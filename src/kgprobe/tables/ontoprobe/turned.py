"""OntoProbe's switches of the tables, each changed by itself on stored answers.

Headlines: MRR of memorizing (by task, and all tasks alike), MRR of reasoning by setting of the
premises, accuracy of the multiple choice by setting; for `recall`, which MRR does not know, R@5.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import polars as pl

from kgprobe.benchmarks.ontoprobe.modes import SWITCHES, Switches
from kgprobe.metrics.sums import ordered_mean
from kgprobe.settings import typed
from kgprobe.tables.answers import Probe
from kgprobe.tables.estimate import CELLS, cells
from kgprobe.tables.ontoprobe import choices, make, memorizing, reasoning
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.ontoprobe.values import CONFIGURATION, MEAN
from kgprobe.tables.switches import Turn

PAPER = "ontoprobe"
#: switch -> what it can move
READ_BY = {
    "tp_rows": ("memorizing",),
    "recall": ("memorizing",),
    "ties": ("memorizing", "reasoning"),
    "select": ("memorizing",),
    "premise": ("reasoning",),
    "mc_split": ("choices",),
    "average": ("reasoning", "figures"),
}
#: in place of a number
ANY = "any other"
#: what a part of the headlines is read from, where a run has none of it
LACKING = {
    "memorizing": "answers of memorizing (methods cloze, sentence, soft)",
    "reasoning": "answers of reasoning (method reason)",
    "choices": "answers of the multiple choice (method choice) on onto_released, and the released "
    "split (KGPROBE_DATA)",
    "figures": "ranked configurations (methods cloze, soft)",
}


@dataclass(frozen=True)
class StoredAnswers:
    """Stored answers of a run. `memory`: RANGES of every probe and its items (`values.of_items`);
    `reasoned`: the frames of reasoning; `picked`: (CHOICES, CHOSEN); `split`: the released one."""

    memory: Mapping[Probe, tuple[pl.DataFrame, pl.DataFrame]]
    reasoned: Mapping[Probe, make.Reasoned] = field(default_factory=dict)
    picked: Mapping[Probe, tuple[pl.DataFrame, pl.DataFrame]] = field(default_factory=dict)
    split: choices.Split | None = None


#: whose number, its metric and its CELLS
Headline = tuple[dict[str, str], str, pl.DataFrame]


def turns(saved: StoredAnswers, switches: Switches) -> Iterator[Turn]:
    """Every switch of the tables at each of its other values, all else as `switches` has it."""
    for key in READ_BY:
        here = getattr(switches, key)
        before = list(headlines(saved, switches, key))
        for other in SWITCHES[key].legal if before else ():
            if other == here:
                continue
            turned = typed(Switches, {**asdict(switches), key: other})
            after = [(whose, frame) for whose, _, frame in headlines(saved, turned, key)]
            for whose, metric, frame in before:
                there = next((rows for who, rows in after if who == whose), frame.clear())
                yield Turn(PAPER, key, here, other, metric, frame, there, whose)


def headlines(saved: StoredAnswers, switches: Switches, key: str) -> Iterator[Headline]:
    """The numbers that a switch of READ_BY can move, as `switches` read them."""
    answers = {
        probe: per_item.metrics(*data, switches.ties, switches.recall)
        for probe, data in saved.memory.items()
        if READ_BY[key] != ("choices",)
    }
    if "memorizing" in READ_BY[key]:
        metric = "R@5" if key == "recall" else "MRR"
        for probe, values in answers.items():
            data = memory(values, switches, metric)
            yield {**probe.dimensions, "group": ""}, metric, data
            for (task,), rows in data.group_by("part", maintain_order=True):
                yield {**probe.dimensions, "group": str(task)}, metric, rows
    if "reasoning" in READ_BY[key]:
        for probe, rows in make.classify_premises(saved.reasoned, answers, switches).items():
            for premise in reasoning.PREMISES:
                if (part := rows.filter(premise=premise)).height:
                    data = reasons(part, probe, switches.average)
                    yield {**probe.dimensions, "group": premise}, "MRR", data
    if "figures" in READ_BY[key] and answers:
        for group, rows in figures(answers, switches).items():
            yield {"group": group}, "MRR", rows
    if "choices" in READ_BY[key] and saved.split is not None:
        split = saved.split if switches.mc_split == "shipped" else None
        for probe, frames in saved.picked.items():
            if probe.benchmark == "onto_released":
                for more, rows in choice_cells(*frames, split):
                    yield {**probe.dimensions, **more}, "accuracy", rows


def find_missing(saved: StoredAnswers) -> Iterator[tuple[str, str]]:
    """(switch, what the run has not) of switches of the tables that nothing here can show."""
    has = {
        "memorizing": bool(saved.memory),
        "reasoning": bool(saved.reasoned),
        "figures": any(not make.is_scored(probe) for probe in saved.memory),
        "choices": bool(saved.split) and any(p.benchmark == "onto_released" for p in saved.picked),
    }
    for key, parts in READ_BY.items():
        if not any(has[part] for part in parts):
            yield key, " or ".join(LACKING[part] for part in parts)


def memory(values: pl.DataFrame, switches: Switches, metric: str) -> pl.DataFrame:
    """CELLS of a metric (per cent) on test rows, tasks alike, under the configuration of each task
    that `select` takes: chosen on dev rows, or the best of this metric on test rows (Table 4)."""
    whole = per_item.over_seeds(values)
    chosen = per_item.choose(whole)
    every = per_item.select_test_rows(
        pl.concat([values, whole.filter(seed=MEAN)]), switches.tp_rows
    )
    if switches.select == "oracle":
        seeds = every.filter(pl.col("seed") != MEAN).group_by("task", *CONFIGURATION)
        order = seeds.agg(ordered_mean(metric).round(9)).sort(-pl.col(metric), *CONFIGURATION)
        best = order.select("task", *CONFIGURATION).unique("task", keep="first")
        chosen = {task: tuple(configuration) for task, *configuration in best.rows()}
    parts = [
        cells(per_item.of_configuration(every.filter(task=t), c), metric, part=pl.col("task"))
        for t, c in sorted(chosen.items())
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema=CELLS)


def reasons(rows: pl.DataFrame, probe: Probe, average: str) -> pl.DataFrame:
    """CELLS of MRR (per cent) in one setting of the premises: the mean over schemes and rules,
    which weigh by their rows (`average` rows) or alike."""
    sizes = reasoning.weights(reasoning.of_probe(rows, probe), ["rule"])
    weight = "rows" if average == "rows" else "equal"
    both = rows.join(sizes.select("rule", "scheme", weight=weight), on=["rule", "scheme"])
    both = both.with_columns(MRR=100 * pl.col("MRR"))
    return cells(both, "MRR", part=pl.col("rule"), column=pl.col("scheme"), weight=pl.col("weight"))


def figures(answers: memorizing.Answers, switches: Switches) -> dict[str, pl.DataFrame]:
    """CELLS of the averages of Figures 5 to 7 over all ranked configurations of all models: these
    weigh alike (`average` rows), or tasks and models do."""
    rows = memorizing.select_ranked(answers, switches.tp_rows).with_columns(
        part=pl.format("{}/{}", "benchmark", "task"),
        column=pl.concat_str("model", *CONFIGURATION, separator="/"),
    )
    alike = pl.col("column").n_unique().over("part", "model")
    weight = pl.lit(1.0) if switches.average == "rows" else 1 / alike
    further = {"part": pl.col("part"), "column": pl.col("column"), "weight": weight}
    return {
        f"{by} {value}": cells(some, "MRR", **further)
        for by, values in memorizing.COMPARED.items()
        for value in values
        if (some := rows.filter(pl.col(by) == value)).height
    }


def choice_cells(
    questions: pl.DataFrame, chosen: pl.DataFrame, split: choices.Split | None
) -> Iterator[tuple[dict[str, str], pl.DataFrame]]:
    """(way and setting, CELLS of the accuracy in per cent, rules alike) of Table 6."""
    for (way,), part in chosen.sort("way").group_by("way", maintain_order=True):
        rows = choices.premises(choices.hits(questions, part), split)
        for premise in ("NO", "IM"):
            kept = rows.filter(setting=premise).with_columns(hit=100 * pl.col("hit"))
            if kept.height:
                named = {"group": f"P1 {premise}", "way": str(way)}
                yield named, cells(kept, "hit", part=pl.col("task"))


def needing(switches: Switches) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """(switch, stage, value here, other values) of the switches that only a run of its own shows.
    Where numbers are legal, those of the modes stand for them; where all modes have one, ANY."""
    for key, switch in SWITCHES.items():
        if key not in READ_BY:
            here = getattr(switches, key)
            others = [value for value in switch.legal if value != here]
            yield key, switch.stage, here, others or [ANY]
