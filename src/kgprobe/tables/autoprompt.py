"""AutoPrompt's numbers as TABLE frames: facts (Tables 4, 6 and 7) and classes (Tables 1 and 2).

Values in per cent. A row is `model | prompt`; baselines and controls are rows like any other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from kgprobe.metrics import prompts as metrics
from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import autoprompt_constants as constants
from kgprobe.tables import autoprompt_gather as gather
from kgprobe.tables import calibration as house
from kgprobe.tables import table
from kgprobe.tables.autoprompt_gather import Answered
from kgprobe.tables.autoprompt_published import VARIANTS, Published, whole

PAPER = "autoprompt"
MEASURES = {"mrr": "MRR", "p10": "P@10", "p1": "P@1"}
#: facts benchmark -> the head of its columns, the table of its relations
FACTS = {
    "auto_lama": ("Original", "autoprompt_table6"),
    "auto_lama_trex": ("T-REx", "autoprompt_trex_relations"),
    "auto_lama_roberta": ("Original-RoBERTa", "autoprompt_table7"),
    "auto_world": ("World", "autoprompt_world_relations"),
}
#: further readings of P@1: column -> arguments of `per_example`
READINGS: dict[str, dict[str, object]] = {
    "P@1, no overlap": {"subset": "no_overlap"},
    "P@1, filtered": {"filtered": True},
    "P@1, all facts": {"absent": "wrong"},
}
#: what a searched prompt is compared with, example by example
RIVALS = (
    "manual",
    "manual_chosen",
    "lpaqa",
    "majority",
    "constant",
    "initial_triggers",
    "random_triggers",
    "searched_reinitialised",
    "searched_embeddings",
)
#: prompts that ask a model for what it knows, and so can be calibrated
ASKING = tuple(
    name
    for name, words in gather.NAMES.items()
    if name not in ("majority", "constant", "relation_lstm", "linear_probe", "finetuned")
    and not words.startswith("control:")
)
Cell = dict[str, object]
Bounds = tuple[float, float]


def facts(
    found: Sequence[Answered],
    published: Published,
    seed: int = 0,
    taught: pl.DataFrame | None = None,
) -> pl.DataFrame | None:
    """Table 4: MRR, P@10 and P@1, macro over relations; P@1 micro and in further readings.

    With `taught` (TAUGHT) control models' P@1 on the facts of the world that they were taught, and
    on those that they were not, where no prompt should do better than the baselines.
    """
    cells: list[Cell] = []
    for own in gather.of_facts(found):
        cells += _fact_row(own, published, seed)
        if taught is not None and own.control and own.benchmark == "auto_world":
            cells += _halves(own, taught, seed)
    return table.build(cells) if cells else None


def _fact_row(own: Answered, published: Published, seed: int) -> Iterator[Cell]:
    head, _ = FACTS[own.benchmark]
    values = gather.per_example(own)
    if values is None:
        raise ValueError(f"{own.benchmark}, {own.label}: no gold of the test facts has a rank")
    at = _levels(metrics.summary(values, seed=seed))
    full = whole(own.benchmark, own.size)
    for measure, name in MEASURES.items():
        value, n, bounds = at["macro", "", measure]
        known = published.facts_of(own.published, own.prompt, own.benchmark, measure)
        printed = known if full else None
        yield _cell("autoprompt_table4", own.label, f"{head} {name}", value, n, bounds, printed)
        if measure == "p1":
            for word, _, share, size, ends in constants.values(own, seed=seed):
                column = f"{head} P@1, {word}"
                yield _cell("autoprompt_table4", own.label, column, share, size, ends)
    yield _cell("autoprompt_table4", own.label, f"{head} P@1, micro", *at["micro", "", "p1"])
    for name, arguments in READINGS.items():
        other = gather.per_example(own, **arguments)  # type: ignore[arg-type]
        if other is not None:
            found = _levels(metrics.summary(other, ["p1"], seed))["macro", "", "p1"]
            yield _cell("autoprompt_table4", own.label, f"{head} {name}", *found)
    draws = gather.draw_values(own)
    if len(draws) > 1:
        for name, value in (("lowest draw", min(draws)), ("highest draw", max(draws))):
            yield _cell("autoprompt_table4", own.label, f"{head} P@1, {name}", value, len(draws))


def calibration(
    found: Sequence[Answered], taught: pl.DataFrame, seed: int = 0
) -> pl.DataFrame | None:
    """`autoprompt_calibration`: control models' P@1, micro, on facts taught and untaught; a row
    "model | prompt" of every prompt that asks the model.

    Baselines ask none, and controls (random, shuffled triggers, random weights) are meant to fail.
    Chance: a random one of the tokens that were ranked. None where not both halves were asked.
    """
    cells: list[Cell] = []
    for own in gather.of_facts(found):
        if own.control and own.benchmark == "auto_world" and own.prompt in ASKING:
            halves = dict(_of_halves(own, taught, seed))
            if len(halves) == 2:
                shares = [
                    (100 * value, n, (100 * low, 100 * high))
                    for value, n, (low, high) in (halves["taught"], halves["untaught"])
                ]
                tested = own.outcomes.filter(pl.col("split") == "test")
                chance = 100 * float((1 / tested["options"]).mean())  # type: ignore[arg-type]
                name = "autoprompt_calibration"
                cells += house.cells(name, own.label, shares[0], shares[1], chance, paper=PAPER)
    return table.build(cells) if cells else None


def signed(found: Sequence[Answered], calibrated: pl.DataFrame | None) -> list[Answered]:
    """The answers, marked where their calibration on the world does not meet the requirement."""
    rows = set(house.outside(calibrated))
    return [replace(a, outside=a.benchmark == "auto_world" and a.label in rows) for a in found]


def _halves(own: Answered, taught: pl.DataFrame, seed: int) -> Iterator[Cell]:
    for name, found in _of_halves(own, taught, seed):
        column = f"{FACTS[own.benchmark][0]} P@1, {name} facts, micro"
        yield _cell("autoprompt_table4", own.label, column, *found)


def _of_halves(
    own: Answered, taught: pl.DataFrame, seed: int
) -> Iterator[tuple[str, tuple[float, int, Bounds]]]:
    """(taught or untaught, P@1 over its facts, n, interval), 0 .. 1."""
    known = set(taught.filter("taught")["fact"])
    facts = own.examples["fact"].to_list()
    halves = {
        "taught": [fact for fact in facts if fact in known],
        "untaught": [fact for fact in facts if fact not in known],
    }
    for name, half in halves.items():
        part = gather.of_examples(own, half)
        values = gather.per_example(part) if part.size else None
        if values is not None:
            yield name, _levels(metrics.summary(values, ["p1"], seed))["micro", "", "p1"]


def relations(
    found: Sequence[Answered], published: Published, seed: int = 0
) -> dict[str, pl.DataFrame]:
    """Tables 6 and 7 and their like: a row per relation, P@1 of every `model | prompt`.

    Column `search facts` counts training and dev facts, as the paper's "#train" does; beside it
    what constant answers reach, and how train and test differ.
    """
    made = {}
    for benchmark, those in gather.per_benchmark(gather.of_facts(found)):
        name = FACTS[benchmark][1]
        cells = list(_search_facts(name, constants.union(those), published))
        cells += constants.relations(name, those, seed)
        for own in those:
            cells += _relation_cells(name, own, published, seed)
        made[name] = table.build(cells)
    return made


def _search_facts(name: str, own: Answered, published: Published) -> Iterator[Cell]:
    counted = own.examples.filter(pl.col("split") != "test").group_by("group").len()
    tested = dict(own.examples.filter(pl.col("split") == "test").group_by("group").len().rows())
    for group, n in sorted(counted.rows()):
        printed = published.relations.get((group, "train")) if "lama" in own.benchmark else None
        yield table.cell(name, group, "search facts", n, n, None, printed, PAPER)
        yield table.cell(name, group, "test facts", tested.get(group, 0), n, None, None, PAPER)


def _relation_cells(name: str, own: Answered, published: Published, seed: int) -> Iterator[Cell]:
    values = gather.per_example(own)
    if values is None:
        return
    printed = own.benchmark == "auto_lama"
    for (level, group, measure), (value, n, bounds) in _levels(
        metrics.summary(values, ["p1"], seed)
    ).items():
        if level == "group" and measure == "p1":
            known = published.relation_of(own.published, own.prompt, group) if printed else None
            yield _cell(name, group, own.label, value, n, bounds, known)


def sentiment(
    found: Sequence[Answered], published: Published, seed: int = 0
) -> pl.DataFrame | None:
    """Table 1: accuracy on the dev and test sentences of SST-2."""
    cells: list[Cell] = []
    for own in gather.of(found, "auto_sst2"):
        full = whole(own.benchmark, own.size)
        for split in ("dev", "test"):
            known = published.sentiment_of(own.published, own.prompt, split) if full else None
            cells += _accuracy("autoprompt_table1", own, split, split, known, seed)
    return table.build(cells) if cells else None


def inference(
    found: Sequence[Answered], published: Published, seed: int = 0
) -> pl.DataFrame | None:
    """Table 2: test accuracy on SICK-E, standard, balanced 3-way and balanced 2-way."""
    cells: list[Cell] = []
    for own in gather.of(found, *VARIANTS):
        full = whole(own.benchmark, own.size)
        known = published.inference_of(own.published, own.prompt, own.benchmark) if full else None
        column = {"standard": "standard", "three_way": "3-way", "two_way": "2-way"}
        cells += _accuracy(
            "autoprompt_table2", own, "test", column[VARIANTS[own.benchmark]], known, seed
        )
    return table.build(cells) if cells else None


def per_class(found: Sequence[Answered], seed: int = 0) -> pl.DataFrame | None:
    """Accuracy of every class of a classification task (the text has those of 3-way SICK-E)."""
    cells: list[Cell] = []
    for own in gather.of(found, *gather.CLASSIFICATION):
        rows = metrics.by_label(metrics.joined(own.examples, own.outcomes))
        values = gather.mean_of_draws(metrics.ranked(rows), own.label)
        for (level, group, _), spread in _levels(metrics.summary(values, ["p1"], seed)).items():
            if level == "group":
                cells.append(
                    _cell("autoprompt_classes", f"{own.benchmark} | {own.label}", group, *spread)
                )
    return table.build(cells) if cells else None


def _accuracy(
    name: str, own: Answered, split: str, column: str, printed: float | None, seed: int
) -> Iterator[Cell]:
    if not own.outcomes.filter(pl.col("split") == split).height:
        return
    values = gather.per_example(own, split)
    if values is None:
        return
    # draws of a balanced set share examples: their mean has the interval of one draw
    share, n, _ = _levels(metrics.summary(values, ["p1"], seed))["macro", "", "p1"]
    n //= own.groups
    bounds = wilson(min(share * n, n), n)
    yield _cell(name, own.label, column, share, n, bounds, printed)
    for word, _, part, *_ in constants.values(own, split=split, seed=seed):
        bounds = wilson(min(part * n, n), n)
        yield _cell(name, own.label, f"{column}, {word}", part, n, bounds)
    if own.groups > 1:
        means = values.group_by("group").agg(ordered_mean("p1"))["p1"].to_list()
        for end, value in (("lowest draw", min(means)), ("highest draw", max(means))):
            yield _cell(name, own.label, f"{column}, {end}", value, own.groups)


def gains(found: Sequence[Answered], seed: int = 0) -> pl.DataFrame | None:
    """What a searched prompt gains over others, in points, paired: the same examples for both.

    Facts: macro P@1 over relations; classes: accuracy. The interval resamples examples.
    """
    cells: list[Cell] = []
    for benchmark, those in gather.per_benchmark(found):
        if benchmark in gather.EXTRACTION:
            continue
        by_name = {(a.model, a.prompt): a for a in those}
        for own in those:
            if own.prompt == "searched":
                rivals = [by_name.get((own.model, r)) for r in RIVALS]
                cells += [_gain(own, r, seed) for r in rivals if r is not None]
    return table.build(cells) if cells else None


def _gain(own: Answered, rival: Answered, seed: int) -> Cell:
    values = [gather.per_example(a) for a in (own, rival)]
    both = pl.concat([v for v in values if v is not None])
    at = _levels(metrics.gain(both, own.label, rival.label, ["p1"], seed))
    row = f"{own.label} minus {rival.prompt}"
    return _cell("autoprompt_gains", row, own.benchmark, *at["macro", "", "p1"])


def shifts(found: Sequence[Answered], seed: int = 0) -> pl.DataFrame | None:
    """Constant answers, and how train and test differ, per relation of relation extraction and per
    draw of classes; relations of facts have them in their own tables."""
    others = gather.of(found, *gather.EXTRACTION, *gather.CLASSIFICATION)
    cells = list(constants.of_tasks("autoprompt_shift", others, seed))
    return table.build(cells) if cells else None


def _levels(summary: pl.DataFrame) -> dict[tuple[str, str, str], tuple[float, int, Bounds]]:
    """(level, group, measure) -> value, n, interval of a summary of one prompt."""
    return {
        (row["level"], row["group"], row["measure"]): (
            row["value"],
            row["n"],
            (row["low"], row["high"]),
        )
        for row in summary.iter_rows(named=True)
    }


def _cell(
    name: str,
    row: str,
    column: str,
    value: float,
    n: int,
    bounds: Bounds | None = None,
    printed: float | None = None,
) -> Cell:
    """A share as per cent."""
    scaled = (100 * bounds[0], 100 * bounds[1]) if bounds else None
    return table.cell(name, row, column, 100 * value, n, scaled, printed, PAPER)


def tables(
    found: Sequence[Answered],
    published: Published,
    seed: int = 0,
    taught: pl.DataFrame | None = None,
) -> Mapping[str, pl.DataFrame]:
    """Every table of this module that applies, by name."""
    made = {
        "autoprompt_table1": sentiment(found, published, seed),
        "autoprompt_table2": inference(found, published, seed),
        "autoprompt_table4": facts(found, published, seed, taught),
        "autoprompt_classes": per_class(found, seed),
        "autoprompt_gains": gains(found, seed),
        "autoprompt_shift": shifts(found, seed),
        **relations(found, published, seed),
    }
    return {name: frame for name, frame in made.items() if frame is not None}
