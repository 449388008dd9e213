"""Small hand-made benchmarks for the tests of tables and report."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from kgprobe import schema
from kgprobe.contracts import SETTING
from kgprobe.tables.answers import Probe, judge
from kgprobe.tables.bear import make
from kgprobe.tables.results import frame
from kgprobe.tables.study import Study

Answers = dict[tuple[str, int], list[float]]
CONTRACTS = {"items": schema.ITEMS, "candidates": schema.CANDIDATES, "prompts": schema.PROMPTS}


def p_by_signs(gaps: Iterable[float]) -> float:
    """Return the mid-p of paired differences under random signs, by enumerating every sum and its
    probability pair by pair."""
    steps = [Fraction(difference).limit_denominator(60) for difference in gaps]
    sums = {Fraction(0): Fraction(1)}
    for step in filter(None, steps):
        more: Counter[Fraction] = Counter()
        for total, chance in sums.items():
            more[total + step] += chance / 2
            more[total - step] += chance / 2
        sums = dict(more)
    found = abs(sum(steps))
    farther = sum(chance for total, chance in sums.items() if abs(total) > found)
    as_far = sum(chance for total, chance in sums.items() if abs(total) == found)
    return float(farther + as_far / 2) if any(steps) else 1.0


def drawn(chart):
    """Return all rows that a chart, or its specification, draws."""
    made = chart if isinstance(chart, dict) else chart.to_dict()
    return [row for rows in made["datasets"].values() for row in rows]


def benchmark(relations: dict[str, tuple[list[str], list[str]]]) -> dict[str, pl.DataFrame]:
    """ITEMS, CANDIDATES and PROMPTS of {relation: (options, correct option of each item)}."""
    frames: dict[str, list[tuple[object, ...]]] = {name: [] for name in CONTRACTS}
    texts = ["[X] is [Y].", "[Y] is what [X] is.", "[X] is [Y] to me."]
    for r, (labels, golds) in relations.items():
        frames["candidates"] += [(r, i, f"Q{label}", label) for i, label in enumerate(labels)]
        frames["items"] += [
            (f"{r}/Qs{i}", r, "object", r, f"s{i}", f"Qs{i}", r, [labels.index(gold)], i, "{}")
            for i, gold in enumerate(golds)
        ]
        frames["prompts"] += [(f"{r}/{i}", r, i, text, "manual") for i, text in enumerate(texts)]
    return {name: of_rows(CONTRACTS[name], rows) for name, rows in frames.items()}


def of_rows(contract: schema.Contract, rows: Iterable[tuple[object, ...]] = ()) -> pl.DataFrame:
    """Return a frame of rows, checked if it is not empty."""
    frame = pl.DataFrame(list(rows), schema=dict(contract.columns), orient="row")
    if frame.height:
        schema.check(frame, contract)
    return frame


def write_benchmark(frames: dict[str, pl.DataFrame], folder: Path) -> dict[str, str]:
    """Write ITEMS, CANDIDATES and PROMPTS into a folder and return the path of each."""
    paths = {name: folder / f"{name}.parquet" for name in frames}
    for name, path in paths.items():
        schema.write(frames[name], CONTRACTS[name], path, {})
    return {name: str(path) for name, path in paths.items()}


def scores(answers: Answers) -> pl.DataFrame:
    """SCORES from {(item, template): score of every option}; each option has two tokens."""
    return of_rows(
        schema.SCORES,
        (
            (item, template, candidate, value, 2, value / 2, 1, None)
            for (item, template), values in answers.items()
            for candidate, value in enumerate(values)
        ),
    )


def probe(model: str = "m", name: str = "world_lite", **changes: object) -> Probe:
    """Return a probe, of a masked model by default."""
    values = {"benchmark": name, "prompt": "templates", "method": "sentence", "model": model}
    return Probe(**{**values, "kind": "masked", **changes})  # type: ignore[arg-type]


def study(
    frames: dict[str, pl.DataFrame],
    answered: list[tuple[Probe, Answers]],
    relations: pl.DataFrame | None = None,
) -> Study:
    """A study of hand-made scores."""
    judged = [(p, judge(scores(a), frames["items"], frames["candidates"])) for p, a in answered]
    return Study(**frames, benchmark=answered[0][0].benchmark, probes=judged, relations=relations)


def guesses(
    frames: dict[str, pl.DataFrame],
    share_right: float,
    seed: int,
    templates: int = 3,
    right: dict[str, bool] | None = None,
) -> Answers:
    """Random scores with about a fraction `share_right` of items (or those in `right`) right."""
    generator = np.random.default_rng(seed)
    sizes = dict(frames["candidates"].group_by("set").len().iter_rows())
    answers: Answers = {}
    for item, options, gold in frames["items"].select("item", "candidates", "answers").iter_rows():
        for template in range(templates):
            values = generator.normal(-30, 3, sizes[options])
            if right[item] if right else generator.random() < share_right:
                values[gold[0]] = values.max() + 1 + generator.random()
            answers[item, template] = values.tolist()
    return answers


def rates_by_hand(made: dict[str, pl.DataFrame], answers: Answers) -> dict[str, float]:
    """Map each item to the fraction of its templates under which its gold has the highest score."""
    gold = dict(made["items"].select("item", "answers").rows())
    hits: dict[str, list[float]] = {}
    for (item, _), values in answers.items():
        hits.setdefault(item, []).append(float(values[gold[item][0]] == max(values)))
    return {item: sum(own) / len(own) for item, own in hits.items()}


def training_facts(made: dict[str, pl.DataFrame], flags: Mapping[str, bool]) -> pl.DataFrame:
    """Return TRAINED_ON for the first answers of some items, with whether they were trained on."""
    first = made["items"].select(
        "item", "relation", set="candidates", index=pl.col("answers").list.first()
    )
    named = first.join(made["candidates"], on=["set", "index"]).sort("item")
    rows = named.filter(pl.col("item").is_in(list(flags))).select("item", "relation", "id").rows()
    return of_rows(
        schema.TRAINED_ON,
        ((f"{item}/{gold}", r, item.split("/")[1], gold, flags[item]) for item, r, gold in rows),
    )


def trained(study: Study, facts: pl.DataFrame) -> Study:
    """Return the study with the training facts of control models (`facts`: TRAINED_ON)."""
    return replace(study, trained_on=dict(make.status(study, facts).rows()))


def results(*studies: Study, **options: object) -> pl.DataFrame:
    """Return BEAR's RESULTS for some studies; options as in `make.estimates`."""
    return frame("bear", make.estimates(studies, **options))  # type: ignore[arg-type]


def number(found: pl.DataFrame, metric: str = "accuracy", **where: object) -> dict[str, object]:
    """Return the one number of these dimensions; by default all items, no further choices."""
    where = {**dict.fromkeys(("group", "slice", *SETTING), ""), **where}
    where |= {name: str(where[name]) for name in SETTING}
    (row,) = found.filter(metric=metric, **where).iter_rows(named=True)
    return row


def write_onto_world(folder: Path, written: tuple[int, int], alone: tuple[int, int]) -> Path:
    """Write a question of two golds, a rule, a lettered question, and a model's answers to these.

    `written` and `alone` are the first and last rank of the rule's gold with and without premises.
    """
    labels = ["lake", "ship", "writer"]
    premises = '{"p1": "Poet is a writer .", "p2": "[X] is a poet .", "h": "[X] is a [MASK] ."}'
    made = {
        "items": (schema.ITEMS, [
            ("TP-0", "TP", "test", "TP", "Dante", "Q1", "class", [0, 2], 0, '{"label": "Dante"}')]),
        "reasoning": (schema.ITEMS, [
            ("rdfs9-0", "rdfs9", "test", "rdfs9", "poet", "", "class", [2], 0, premises)]),
        "candidates": (schema.CANDIDATES, [("class", i, "", x) for i, x in enumerate(labels)]),
        "choices": (schema.CHOICES, [
            ("TP-0", "TP", "", "TP-0", "What is the type of Dante?", "", labels, 2, 0)]),
        "chosen": (schema.CHOSEN, [
            ("TP-0", "answer", 2, "label", "(c)", None), ("TP-0", "letter", 0, "scored", "", -1.5),
            ("TP-0", "text", None, "none", "I am a poem", None)]),
        "ranks": (schema.REASON_RANKS, [
            ("rdfs9-0", "manual+manual", p, p, 0, 2, first, last, first, 0.0)
            for p, (first, last) in ((True, written), (False, alone))]),
    }  # fmt: skip
    for name, (contract, rows) in made.items():
        schema.write(of_rows(contract, rows), contract, folder / f"{name}.parquet")
    return folder
