"""AutoPrompt's numbers (RESULTS) out of what was answered: facts, classes, relation extraction.

Shares in per cent. group "": the mean over relations (draws of a balanced set), as the paper has
it; weighting items: over all facts. Classes are asked on dev, too (slice dev). Beside the number of
a prompt stands what a constant answer reaches on the same examples (docs/papers/autoprompt.md,
Controls); of a benchmark as a whole those are the models majority and constant.

    majority        the commonest label of train; the first thing that a search can learn
    best constant   the commonest label of the examples themselves: an oracle
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.metrics import prompts as metrics
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.metrics.sums import ordered_mean
from kgprobe.probes.prompt_settings import NOT_ASKING
from kgprobe.tables import baselines
from kgprobe.tables.autoprompt.gather import EXTRACTION, Answers, mean_of_draws, per_example
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, bounds_of

MEASURES = {"p1": "P@1", "p10": "P@10", "mrr": "MRR"}
P1, ACCURACY = {"p1": "P@1"}, {"p1": "accuracy"}
SEEN, VARIATION = "test objects seen in train", "total variation, train to test"
LEVELS = ("group", "macro", "micro")
#: further readings of P@1: dimensions, arguments of `per_example`
READINGS: Sequence[tuple[dict[str, Any], dict[str, Any]]] = (
    ({"slice": "no overlap"}, {"subset": "no_overlap"}),
    ({"setting": {"gold": "filtered"}}, {"filtered": True}),
    ({"slice": "all facts"}, {"absent": "wrong"}),
)
#: what a searched prompt is compared with, example by example
RIVALS = (
    "manual", "manual_chosen", "lpaqa", "majority", "constant", "initial_triggers",
    "random_triggers", "searched_reinitialised", "searched_embeddings", "demos_chosen",
    "instructions",
)  # fmt: skip
#: manual prompts behind demonstrations, and what they are compared with beside RIVALS' own
DEMONSTRATED = (
    "demos", "demos_balanced", "demos_chosen", "demos_searched", "demos_shuffled", "demos_other",
)  # fmt: skip
BESIDE = ("manual", "manual_chosen", "majority", "constant")
CONTROLS = ("demos_shuffled", "demos_other")
#: test facts whose object no demonstration has: what a model does not just repeat
UNSEEN = "object not demonstrated"


def number(
    own: Answers,
    metric: str,
    value: float,
    n: int,
    interval: Interval | None = None,
    scale: float = 100,
    **more: Any,
) -> Number:
    """A share as per cent (`scale`), of what `own` was asked."""
    bounds = interval.times(scale) if interval else None
    dimensions: dict[str, Any] = {**own.probe.asked, **more}
    return Number(metric=metric, value=scale * value, n=n, interval=bounds, **dimensions)


def measured(
    own: Answers,
    values: pl.DataFrame,
    measures: Mapping[str, str],
    levels: Sequence[str] = LEVELS,
    seed: int = 0,
) -> Iterator[Number]:
    """A number per level and measure (column -> metric) of `metrics.summary`."""
    found = metrics.summary(values, list(measures), seed).filter(pl.col("level").is_in(levels))
    for row in found.iter_rows(named=True):
        setting = {"weighting": "items"} if row["level"] == "micro" else {}
        scale = 1 if row["measure"] in metrics.COUNTS else 100
        metric, group = measures[row["measure"]], row["group"]
        bounds, where = bounds_of(row, 1), {"group": group, "setting": setting}
        yield number(own, metric, row["value"], row["n"], bounds, scale, **where)


def facts(own: Answers, taught: pl.DataFrame | None = None, seed: int = 0) -> Iterator[Number]:
    """MRR, P@10 and P@1 (Tables 4, 6 and 7), P@1 in further readings and of single draws.

    With `taught` (TAUGHT) P@1 of control models on the facts of the world that they were taught,
    and on those that they were not, where no prompt should do better than the baselines.
    """
    values = per_example(own)
    if values is None:
        where = f"{own.benchmark}, {own.probe.model}, {own.probe.prompt}"
        raise ValueError(f"{where}: no gold of the test facts has a rank")
    yield from measured(own, values, MEASURES, seed=seed)
    yield from _constants(own, seed)
    for dimensions, arguments in READINGS:
        other = per_example(own, **arguments)
        if other is not None:
            for found in measured(own, other, P1, ("macro",), seed):
                yield found.but(**dimensions)
    draws = [per_example(draw) for draw in own.draws()]
    yield from ends(own, "P@1", [macro(draw) for draw in draws if draw is not None])
    part = own.not_shown() if own.shown.height else None
    if part and (unseen := per_example(part)) is not None:
        for found in (*measured(part, unseen, P1, ("macro",), seed), *_constants(part, seed)):
            if not found.group:
                yield found.but(slice=UNSEEN)
    if taught is not None and own.probe.control and own.benchmark == "auto_world":
        yield from _taught(own, taught, seed)


def _taught(own: Answers, taught: pl.DataFrame, seed: int) -> Iterator[Number]:
    """P@1 over the facts of each half, and the validity of a prompt that asks the model.

    Chance: a random one of the tokens that were ranked. None where not both halves were asked.
    """
    known, asked = set(taught.filter("taught")["fact"]), own.examples["fact"].to_list()
    halves = {}
    for name in ("trained-on", "held-out"):
        part = own.of_facts(fact for fact in asked if (fact in known) == (name == "trained-on"))
        values = per_example(part) if part.size else None
        if values is not None:
            (halves[name],) = measured(own, values, P1, ("micro",), seed)
            yield halves[name].but(slice=name)
    if own.probe.prompt not in NOT_ASKING and len(halves) == 2:
        tested = own.outcomes.filter(pl.col("split") == "test")
        chance = 100 * float((1 / tested["options"]).mean())  # type: ignore[arg-type]
        of = number(own, "", 0, 0)
        yes, no = ((h.value or 0.0, h.n, h.interval) for h in halves.values())
        yield from validity.numbers(of, yes, no, chance, is_control=True)


def classes(own: Answers, seed: int = 0) -> Iterator[Number]:
    """Accuracy on dev and test (Tables 1 and 2), of single draws, and of every class on test."""
    for split, part in (("dev", "dev"), ("test", "")):
        asked = own.outcomes.filter(pl.col("split") == split).height
        values = per_example(own, split) if asked else None
        if values is None:
            continue
        # draws of a balanced set share examples: their mean has the interval of one draw
        n = values.height // own.groups
        shares = {"accuracy": macro(values)}
        shares |= {name: macro(hits(own, name, split)) for name in (MAJORITY, BEST)}
        for metric, share in shares.items():
            interval = Interval(*wilson(min(share * n, n), n), "wilson")
            yield number(own, metric, share, n, interval, slice=part)
        means = values.group_by("group").agg(ordered_mean("p1"))["p1"].to_list()
        yield from (end.but(slice=part) for end in ends(own, "accuracy", means))
    rows = metrics.by_label(metrics.joined(own.examples, own.outcomes))
    values = mean_of_draws(metrics.ranked(rows), own.probe.prompt)
    for found in measured(own, values, ACCURACY, ("group",), seed):
        yield found.but(group="", slice=f"class: {found.group}")


def extraction(own: Answers, seed: int = 0) -> Iterator[Number]:
    """Table 5: a fact is right if it is right for any of its sentences.

    Beside it the share of sentences that are right, the mean number of sentences of a fact, and how
    often the object that was replaced is answered on perturbed facts.
    """
    rows, prompt = metrics.joined(own.examples, own.outcomes), own.probe.prompt
    per_fact, per_sentence = (mean_of_draws(v, prompt) for v in metrics.sentences(rows))
    names = {"any_sentence": "P@1", "sentences": "sentences per fact"}
    yield from measured(own, per_fact, names, seed=seed)
    yield from measured(own, per_sentence, {"sentence": "P@1 per sentence"}, seed=seed)
    if own.benchmark == "auto_re_perturbed":
        old = mean_of_draws(_old(rows), prompt)
        if old.height:
            yield from measured(own, old, {"old": "old object answered"}, seed=seed)
    yield from _constants(own, seed)


def _constants(own: Answers, seed: int) -> Iterator[Number]:
    """What constant answers reach on the same examples."""
    for name in (MAJORITY, BEST):
        yield from measured(own, hits(own, name), {"p1": name}, ("group", "macro"), seed)


def _old(rows: pl.DataFrame) -> pl.DataFrame:
    """Whether any sentence of a perturbed fact is answered with the object it had before."""
    before = pl.col("fields").str.json_path_match("$.old")
    same = pl.col("answer").str.to_lowercase() == before.str.to_lowercase()
    both = rows.filter(before.is_not_null())
    return both.group_by("prompt", "group", unit="fact").agg(old=same.any().cast(pl.Float64))


def ends(own: Answers, metric: str, values: Sequence[float]) -> Iterator[Number]:
    """The lowest and the highest of several draws; n counts draws."""
    if len(values) > 1:
        for draw, value in (("lowest", min(values)), ("highest", max(values))):
            yield number(own, metric, value, len(values), setting={"draw": draw})


def macro(values: pl.DataFrame) -> float:
    """Mean over the groups of their mean P@1, 0 .. 1."""
    means = values.group_by("group").agg(ordered_mean("p1")).sort("group")["p1"]
    return float(means.to_numpy().mean())


def differences(those: Sequence[Answers], seed: int = 0) -> Iterator[Number]:
    """What a prompt gains over its rivals on a benchmark, in points, on the same examples."""
    by_name = {(a.probe.model, a.probe.prompt): a for a in those}
    for own in those:
        if own.benchmark in EXTRACTION:
            continue
        metric = "accuracy" if own.of_classes else "P@1"
        parts = {"": own, UNSEEN: own.not_shown()} if own.shown.height else {"": own}
        for name, part in parts.items():
            for rival in rivals(own.probe.prompt):
                other = by_name.get((own.probe.model, rival))
                values = [per_example(a) for a in (part, other)] if other is not None else []
                both = [v for v in values if v is not None]
                if len(both) == 2:
                    found = metrics.gain(both[0], both[1], "p1", seed)
                    yield number(own, metric, *found, setting={"instead": rival}, slice=name)


def rivals(prompt: str) -> tuple[str, ...]:
    """What a prompt is compared with; () for one that others are compared with."""
    if prompt in DEMONSTRATED:
        more = {"demos": CONTROLS, "demos_chosen": ("demos",), "demos_searched": ("demos_chosen",)}
        return (*BESIDE, *more.get(prompt, ()))
    if prompt == "instructions":
        return BESIDE
    if prompt == "searched_moves":
        # what it starts from is chosen on the same dev facts
        return (*BESIDE, "instructions", "searched", "demos_chosen")
    return RIVALS if prompt == "searched" else ()


def baseline_numbers(
    found: Sequence[Answers], below: baselines.Files, seed: int = 0
) -> Iterator[Number]:
    """What a prompt for facts reaches of a part of the test facts without their subjects, and on
    random weights: the mean over relations of MEASURES, and P@1 less that, paired."""
    made: dict[str, list[baselines.Baseline]] = {}
    for own in found:
        for without, path in baselines.below(below, own.probe):
            low = replace(own, outcomes=schema.read(path, schema.OUTCOMES))
            values = [per_example(one) for one in (low, own)]
            if all(one is not None for one in values):
                part, whole = (_by_stratum(one) for one in values if one is not None)
                of = Number(**own.probe.asked)
                baseline = baselines.Baseline(of, without, part, whole)
                made.setdefault(own.benchmark, []).append(baseline)
    names = ["P@1", *(name for name in MEASURES.values() if name != "P@1")]
    for own_baselines in made.values():
        yield from baselines.numbers(own_baselines, names, seed, macro=True)


def _by_stratum(values: pl.DataFrame) -> pl.DataFrame:
    """Values per example as baselines have them: relations weigh the same."""
    item = pl.format("{}/{}", "group", "unit").alias("item")
    return values.select(item, pl.col("group").alias("stratum"), pl.col(*MEASURES)).rename(MEASURES)


def memory(found: Sequence[Answers], seed: int = 0) -> Iterator[Number]:
    """P@1 on original minus perturbed sentences, in points, on the facts of both: what a model
    recalls and does not read."""
    halves = {(a.benchmark, a.probe.model, a.probe.prompt): a for a in found}
    for own in found:
        key = ("auto_re_perturbed", own.probe.model, own.probe.prompt)
        if own.benchmark == "auto_re" and key in halves:
            values = []
            for part in (own, halves[key]):
                per_fact, _ = metrics.sentences(metrics.joined(part.examples, part.outcomes))
                # where every sentence has a new object of its own, the fact is in front of it
                fact = pl.col("unit").str.replace(r"~.*$", "")
                facts = per_fact.select("group", fact, "any_sentence")
                values.append(mean_of_draws(facts, part.benchmark))
            gained = metrics.gain(values[0], values[1], "any_sentence", seed)
            yield number(own, "P@1", *gained, setting={"instead": key[0]})


def of_benchmark(those: Sequence[Answers], seed: int = 0) -> Iterator[Number]:
    """Per relation (draw of a balanced set): constant answers, how train and test differ, and the
    numbers of facts; `search facts` are training and dev facts, as the paper's "#train"."""
    every = union(those)
    probe = replace(every.probe, model="", prompt="", method="")
    plain = replace(every, probe=probe)
    for name, model in ((MAJORITY, "majority"), (BEST, "constant")):
        own, found = replace(every, probe=replace(probe, model=model)), hits(every, name)
        yield from measured(own, found, ACCURACY if every.of_classes else P1, ("group",), seed)
    for group, seen, objects, variation, n in shift(every):
        yield number(plain, SEEN, seen, objects, group=group)
        yield number(plain, VARIATION, variation, n, group=group)
    split = pl.col("split") == "test"
    for metric, rows in (("search facts", ~split), ("test facts", split)):
        for group, n in sorted(every.examples.filter(rows).group_by("group").len().rows()):
            yield number(plain, metric, n, n, scale=1, group=group)


#: what is counted to choose the answer: metrics beside a prompt's own number
MAJORITY, BEST = "majority", "best constant"


def hits(own: Answers, name: str, split: str = "test") -> pl.DataFrame:
    """prompt (`name`), group, unit and p1 of a constant answer on what `own` was asked.

    `name` is MAJORITY or BEST. Of several commonest labels each is taken with the same probability.
    Labels that `own` cannot answer are left out, as in its own values; facts count once. A unit is
    an example, or a fact where a fact has several sentences.
    """
    unit = "fact" if own.benchmark in EXTRACTION else "example"
    asked, lost = _asked(own, split)
    # whether a fact has the right answer in one of its sentences is no question of ranks
    known = asked if unit == "fact" else asked.filter(pl.col("best").is_not_null())
    source = known
    if name == MAJORITY:
        source = own.examples.filter((pl.col("split") == "train") & ~pl.col("label").is_in(lost))
    counted = source.unique(["group", "fact", "label"]).group_by("group", "label").len()
    commonest = counted.filter(pl.col("len") == pl.col("len").max().over("group"))
    shares = commonest.with_columns((1 / pl.len().over("group")).alias("p1"))
    found = known.unique(["group", unit]).join(
        shares.select("group", "label", "p1"), on=["group", "label"], how="left"
    )
    return found.select(
        pl.lit(name).alias("prompt"), "group", pl.col(unit).alias("unit"), pl.col("p1").fill_null(0)
    ).sort("group", "unit")


def union(those: Sequence[Answers]) -> Answers:
    """Everything that one of them was asked, and can answer where one of them can."""
    key = ["group", "split", "example"]
    rows = pl.concat([a.outcomes for a in those]).sort(*key, "best", nulls_last=True)
    return replace(
        those[0],
        outcomes=rows.unique(key, keep="first", maintain_order=True),
        examples=pl.concat([a.examples for a in those]).unique(key).sort(key),
    )


def shift(own: Answers) -> Iterator[tuple[str, float, int, float, int]]:
    """Per group: share of the distinct test objects that train has too, how many they are, the
    total variation distance of the two distributions of objects (0 .. 1), and n test facts."""
    facts = _asked(own, "test")[0].unique(["group", "fact", "label"])
    train = own.examples.filter(pl.col("split") == "train").unique(["group", "fact", "label"])
    for (group,), rows in facts.sort("group").group_by("group", maintain_order=True):
        there = dict(train.filter(pl.col("group") == group)["label"].value_counts().rows())
        here = dict(rows["label"].value_counts().rows())
        before, after = sum(there.values()), sum(here.values())
        apart = sum(
            abs(there.get(o, 0) / max(before, 1) - here.get(o, 0) / after)
            for o in sorted(there | here)
        )
        seen = sum(o in there for o in here) / len(here)
        yield str(group), seen, len(here), apart / 2, after


def _asked(own: Answers, split: str) -> tuple[pl.DataFrame, list[str]]:
    """(the examples of a split that were asked, labels of those that have no rank)."""
    rows = metrics.joined(own.examples, own.outcomes, split).unique(["group", "example"])
    return rows, rows.filter(pl.col("best").is_null())["label"].unique().to_list()
