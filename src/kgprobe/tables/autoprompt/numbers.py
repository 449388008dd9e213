"""AutoPrompt's numbers (RESULTS) from the answers: facts, classes, relation extraction.

Proportions in per cent. group "": the mean over relations (draws of a balanced set), as in the
paper; weighting items: over all facts. Classes are also asked on dev (slice dev). Each prompt is
compared with a constant answer on the same examples (docs/papers/autoprompt.md, Controls); for a
whole benchmark, these are the models majority and constant.

    majority        the most frequent label of train; the first thing that a search can learn
    best constant   the most frequent label of the examples themselves: an oracle
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import frames
from kgprobe.metrics import prompts as metrics
from kgprobe.metrics.intervals import Interval
from kgprobe.metrics.sums import ordered_mean
from kgprobe.probes.prompt_settings import NOT_ASKING
from kgprobe.tables import baselines
from kgprobe.tables.answers import Probe, Row, probes_of, recorded
from kgprobe.tables.estimate import estimate
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, proportion

#: benchmarks by task; all others ask for facts
EXTRACTION = ("auto_re", "auto_re_perturbed")
CLASSIFICATION = ("auto_sst2", "auto_sick", "auto_sick_3way", "auto_sick_2way")
DEMONSTRATED = {"prompt": pl.String, "group": pl.String, "label": pl.String}
MEASURES = {"p1": "P@1", "p10": "P@10", "mrr": "MRR"}
#: measures that are proportions of units, with Wilson's interval where all units weigh the same;
#: and measures that are counts rather than values in 0 .. 1
PROPORTIONS, COUNTS = ("p1", "p10", "any_sentence", "sentence"), ("sentences",)
P1, ACCURACY = {"p1": "P@1"}, {"p1": "accuracy"}
SEEN, VARIATION = "test objects seen in train", "total variation, train to test"
#: constant answers by the examples that determine them: metrics next to a prompt's own number
MAJORITY, BEST = "majority", "best constant"
LEVELS = ("group", "macro", "micro")
#: further variants of P@1: dimensions, arguments of `per_example`
READINGS: Sequence[tuple[dict[str, Any], dict[str, Any]]] = (
    ({"slice": "no overlap"}, {"no_overlap": True}),
    ({"setting": {"gold": "filtered"}}, {"filtered": True}),
    ({"slice": "all facts"}, {"absent": "wrong"}),
)
#: prompts that a searched prompt is compared with, paired by example
RIVALS = (
    "manual", "lpaqa", "majority", "constant", "initial_triggers", "random_triggers",
    "searched_reinitialised", "searched_embeddings",
)  # fmt: skip
BESIDE = ("manual", "majority", "constant")
CONTROLS = ("demos_shuffled", "demos_other")
#: prompt -> the prompts it is compared with, including manual prompts with demonstrations
COMPARED = {**dict.fromkeys(CONTROLS, BESIDE), "demos": (*BESIDE, *CONTROLS), "searched": RIVALS}
#: test facts whose object is in no demonstration, so that the model cannot just repeat it
UNSEEN = "object not demonstrated"
KEY = ["group", "split", "example"]


@dataclass(frozen=True)
class Answers:
    """OUTCOMES of a probe and the EXAMPLES that its model was given: training, dev and test.
    Reciprocal ranks beyond `cut` are 0; `demonstrated`: prompt, group and label of demonstrations;
    `is_sampled`: whether the benchmark has more test examples of their groups."""

    probe: Probe
    outcomes: pl.DataFrame
    examples: pl.DataFrame
    cut: int | None = None
    demonstrated: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=DEMONSTRATED))
    is_sampled: bool = False

    @property
    def of(self) -> Number:
        """The dimensions of all measures of these answers."""
        return Number(**self.probe.dimensions)

    @property
    def benchmark(self) -> str:
        """The benchmark that was asked."""
        return self.probe.benchmark

    @property
    def of_classes(self) -> bool:
        """Whether the task is sentence classification."""
        return self.benchmark in CLASSIFICATION

    @property
    def groups(self) -> int:
        """The number of relations, or of draws of a balanced set."""
        return max(1, self.outcomes["group"].n_unique())

    @property
    def size(self) -> int:
        """The number of test examples answered; for draws of a balanced set, those of one draw."""
        count = self.outcomes.filter(split="test").select("group", "example").unique().height
        return count // self.groups if self.of_classes else count

    def exclude_demonstrated(self) -> "Answers":
        """Exclude the examples whose object is in one of the demonstrations of their prompt."""
        labels = self.outcomes.join(self.examples.select(*KEY, "label"), on=KEY, how="left")
        rows = labels.join(self.demonstrated, on=list(DEMONSTRATED), how="anti")
        return replace(self, outcomes=rows.drop("label"))


def answered(
    rows: Sequence[Row],
    models: Mapping[str, Row],
    outcomes: Sequence[str | Path],
    folders: Mapping[str, str | Path],
    mode: str = "default",
    given: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
) -> list[Answers]:
    """Return the Answers of every row of the table of experiments, in order, from its file in
    `outcomes` (draws are named `prompt:00`). `mode`: mode of the search, which may cut ranks;
    `given`: the configuration section of every row, which determines its examples."""
    examples = {
        name: schema.read(Path(folder) / "examples.parquet", schema.EXAMPLES)
        for name, folder in folders.items()
    }
    files = {path: schema.read(path, schema.OUTCOMES) for path in dict.fromkeys(outcomes)}
    probed, name = [], pl.col("prompt")
    probes, sections = probes_of(rows, models, outcomes), given or [{}] * len(rows)
    for probe, path, section in zip(probes, outcomes, sections, strict=True):
        is_named = (name == probe.prompt) | name.str.starts_with(f"{probe.prompt}:")
        answers, every = files[path].filter(is_named), examples[probe.benchmark]
        chosen = frames.part(every, section, seed)
        whole = frames.part(every, {**section, "most": {}}, seed)
        is_sampled = chosen.filter(split="test").height < whole.filter(split="test").height
        shown = read_demonstrations(path, answers["prompt"].unique().to_list())
        probed.append(Answers(probe, answers, chosen, metrics.cut_of(mode), shown, is_sampled))
    return probed


def read_demonstrations(path: str | Path, prompts: Iterable[str]) -> pl.DataFrame:
    """Read the DEMONSTRATED columns of prompts from the provenance of an OUTCOMES file."""
    prompted = recorded(path, "model").get("prompted", {})
    rows = [
        (prompt, group, label)
        for prompt in sorted(prompts)
        for group, fields in prompted.get(prompt, {}).items()
        for _, label in fields.get("demonstrated", [])
    ]
    return pl.DataFrame(rows, schema=DEMONSTRATED, orient="row").unique(maintain_order=True)


def judge(answers: Answers) -> pl.DataFrame:
    """Convert the test examples to JUDGED. `matching` filtered: without the other right answers of
    a fact; any: a surface form counts as well as the label (relation extraction)."""
    rows = metrics.join_outcomes(answers.examples, answers.outcomes)
    parts = []
    for matching, best, worst in (
        ("own", "best", "worst"), ("filtered", "filtered_best", "filtered_worst"),
    ):  # fmt: skip
        values = metrics.rank_outcomes(rows, matching == "filtered", absent="wrong")
        known = pl.when(pl.col(best).is_not_null()).then(values["p1"])
        parts.append(rows.with_columns(
            rank_low=best, rank_high=worst, hit=known, matching=pl.lit(matching)
        ))  # fmt: skip
    if answers.benchmark in EXTRACTION:
        hit = metrics.right(rows).cast(pl.Float64)
        parts = [parts[0].with_columns(hit=hit, matching=pl.lit("any"))]
    return pl.concat(parts[:1] if answers.of_classes else parts).with_columns(
        # draws of a balanced set are not relations: they share examples
        item=pl.format("{}/{}", "group", "example"),
        relation=pl.lit("") if answers.of_classes else pl.col("group"),
        draw=pl.col("prompt").str.split(":").list.get(1, null_on_oob=True).fill_null(""),
    )  # fmt: skip


def per_example(
    answers: Answers,
    split: str = "test",
    no_overlap: bool = False,
    filtered: bool = False,
    absent: str = "drop",
) -> pl.DataFrame | None:
    """Return group, unit, subject, p1, p10, mrr, averaged over any draws; None without examples.
    `no_overlap`: only examples without flags; `filtered`, `absent`: see `rank_outcomes`."""
    if answers.outcomes.filter(split=split).is_empty():
        return None
    rows = metrics.join_outcomes(answers.examples, answers.outcomes, split)
    if no_overlap:
        rows = rows.filter(pl.col("flags").list.len() == 0)
    values = metrics.rank_outcomes(rows, filtered, answers.cut, absent)
    return mean_of_draws(values) if values.height else None


def mean_of_draws(values: pl.DataFrame) -> pl.DataFrame:
    """Average the values per unit over the draws of a prompt."""
    numbers = [c for c in values.columns if c not in ("prompt", "group", "unit", "subject")]
    means = pl.col("subject").first(), ordered_mean(numbers)
    return values.group_by("group", "unit").agg(means).sort("group", "unit")


def with_clusters(values: pl.DataFrame) -> pl.DataFrame:
    """Add `cluster`, the subject of a group, whose units are drawn together, to sorted values."""
    cluster = pl.concat_str("group", "subject", separator="\n")
    return values.sort("group", "unit").with_columns(cluster=cluster)


def cluster_of(rows: pl.DataFrame) -> str:
    """Return the name of the clusters for `estimate`: "" if every one is a single row."""
    return "cluster" if rows["cluster"].is_duplicated().any() else ""


def measured(
    of: Number,
    values: pl.DataFrame,
    measures: Mapping[str, str],
    levels: Sequence[str] = LEVELS,
    seed: int = 0,
) -> Iterator[Number]:
    """Yield a number per level and measure (column of `values` -> metric): for each group, the mean
    of the groups' means, the mean over all units. Per cent except for counts; the units of a
    subject are drawn together, and n counts subjects."""
    values = with_clusters(values)
    for level in levels:
        parts: Iterable[tuple[tuple[Any, ...], pl.DataFrame]] = [(("",), values)]
        if level == "group":
            parts = values.group_by("group", maintain_order=True)
        for (group,), rows in parts:
            cluster = cluster_of(rows)
            for column, metric in measures.items():
                result = estimate(
                    rows, column, stratum="group", cluster=cluster, is_macro=level == "macro",
                    is_proportion=column in PROPORTIONS and level != "macro" and not cluster,
                    seed=seed,
                    scale=1 if column in COUNTS else 100,
                )  # fmt: skip
                if column in COUNTS and result["interval"].kind == "wilson":
                    result["interval"] = None
                setting = {"weighting": "items"} if level == "micro" else {}
                yield of.but(metric=metric, group=group, setting=setting, **result)


def facts(
    answers: Answers, trained_on: pl.DataFrame | None = None, seed: int = 0
) -> Iterator[Number]:
    """Yield MRR, P@10 and P@1 (Tables 4, 6 and 7), and P@1 of variants and of single draws; with
    `trained_on` (TRAINED_ON), P@1 of control models by split of the embedded graph's facts."""
    values = per_example(answers)
    if values is None:
        where = f"{answers.benchmark}, {answers.probe.model}, {answers.probe.prompt}"
        raise ValueError(f"{where}: no gold of the test facts has a rank")
    yield from measured(answers.of, values, MEASURES, seed=seed)
    yield from _constants(answers, seed)
    for dimensions, arguments in READINGS:
        if (other := per_example(answers, **arguments)) is not None:
            for one in measured(answers.of, other, P1, ("macro",), seed):
                yield one.but(**dimensions)
    by_draw = answers.outcomes.sort("prompt").group_by("prompt", maintain_order=True)
    draws = [per_example(replace(answers, outcomes=outcomes)) for _, outcomes in by_draw]
    yield from ends(answers, "P@1", [macro(draw) for draw in draws if draw is not None])
    part = answers.exclude_demonstrated() if answers.demonstrated.height else None
    if part and (unseen := per_example(part)) is not None:
        for one in (*measured(part.of, unseen, P1, ("macro",), seed), *_constants(part, seed)):
            if not one.group:
                yield one.but(slice=UNSEEN)
    if trained_on is not None and answers.probe.control and answers.benchmark == "auto_world":
        yield from _measure_splits(answers, trained_on, seed)


def _measure_splits(base: Answers, trained_on: pl.DataFrame, seed: int) -> Iterator[Number]:
    """Yield P@1 over trained-on and held-out facts, and the validity of a prompt that queries the
    model, if both were asked. Other true answers do not compete; chance: a random one of the ranked
    tokens, or the most frequent answer of the training facts, whichever is right more often."""
    is_known, splits = pl.col("fact").is_in(trained_on.filter("trained_on")["fact"].implode()), {}
    for name, facts in (("trained-on", is_known), ("held-out", ~is_known)):
        kept = base.examples.filter(facts)
        subset = replace(base, outcomes=base.outcomes.join(kept, on=KEY, how="semi"), examples=kept)
        if (values := per_example(subset, filtered=True)) is not None:
            (number,) = measured(base.of.but(slice=name), values, P1, ("micro",), seed)
            splits[name] = {key: getattr(number, key) for key in ("value", "n", "interval")}
            yield number
    if base.probe.prompt not in NOT_ASKING and len(splits) == 2:
        tested = base.outcomes.filter(split="test")
        random = float((1 / tested["options"]).mean())  # type: ignore[arg-type]
        held_out = base.examples.filter(~is_known).select("group", unit="example")
        constant = hits(base, MAJORITY).join(held_out, on=["group", "unit"], how="semi")
        chance = 100 * max(random, constant.select(ordered_mean("p1")).item())
        yes, no = splits.values()
        yield from validity.estimates(base.of, yes, no, chance, is_control=True)


def classes(answers: Answers, seed: int = 0) -> Iterator[Number]:
    """Yield accuracy on dev and test (Tables 1 and 2), of single draws, and by class on test."""
    for split, part in (("dev", "dev"), ("test", "")):
        values = per_example(answers, split)
        if values is None:
            continue
        # draws of a balanced set share examples: their mean has the interval of one draw
        n = values.height // answers.groups
        shares = {"accuracy": macro(values)}
        shares |= {name: macro(hits(answers, name, split)) for name in (MAJORITY, BEST)}
        for metric, share in shares.items():
            yield answers.of.but(metric=metric, slice=part, **proportion(min(share * n, n), n))
        means = values.group_by("group").agg(ordered_mean("p1"))["p1"].to_list()
        yield from (end.but(slice=part) for end in ends(answers, "accuracy", means))
    rows = metrics.join_outcomes(answers.examples, answers.outcomes).with_columns(group="label")
    values = mean_of_draws(metrics.rank_outcomes(rows))
    for one in measured(answers.of, values, ACCURACY, ("group",), seed):
        yield one.but(group="", slice=f"class: {one.group}")


def extraction(answers: Answers, seed: int = 0) -> Iterator[Number]:
    """Yield Table 5: a fact is right if it is right for any of its sentences; also right sentences,
    sentences per fact, and how often the replaced object of perturbed facts is answered."""
    rows = metrics.join_outcomes(answers.examples, answers.outcomes)
    per_fact, per_sentence = map(mean_of_draws, metrics.sentences(rows))
    names = {"any_sentence": "P@1", "sentences": "sentences per fact"}
    yield from measured(answers.of, per_fact, names, seed=seed)
    each = {"sentence": "P@1 per sentence"}
    yield from measured(answers.of, per_sentence, each, seed=seed)
    if answers.benchmark == "auto_re_perturbed":
        before = pl.col("fields").str.json_path_match("$.old")
        same = pl.col("answer").str.to_lowercase() == before.str.to_lowercase()
        both = rows.filter(before.is_not_null()).group_by("prompt", "group", unit="fact")
        hit = same.any().cast(pl.Float64)
        old = mean_of_draws(both.agg(pl.col("subject").first(), old=hit))
        if old.height:
            yield from measured(answers.of, old, {"old": "old object answered"}, seed=seed)
    yield from _constants(answers, seed)


def _constants(answers: Answers, seed: int) -> Iterator[Number]:
    """Yield the accuracy of constant answers on the same examples."""
    for name in (MAJORITY, BEST):
        yield from measured(answers.of, hits(answers, name), {"p1": name}, ("group", "macro"), seed)


def ends(answers: Answers, metric: str, values: Sequence[float]) -> Iterator[Number]:
    """Yield the lowest and the highest of several draws; n counts draws."""
    if len(values) > 1:
        for draw, value in (("lowest", min(values)), ("highest", max(values))):
            of = answers.of.but(metric=metric, setting={"draw": draw})
            yield of.but(value=100 * value, n=len(values))


def macro(values: pl.DataFrame) -> float:
    """Mean over the groups of their mean P@1, 0 .. 1."""
    means = values.group_by("group").agg(ordered_mean("p1"))
    return float(means.select(ordered_mean("p1")).item())


def gain(of: Number, first: pl.DataFrame, second: pl.DataFrame, measure: str, seed: int) -> Number:
    """Return the macro mean of `first` minus that of `second`, in points, paired on shared
    examples."""
    both = first.join(second, on=["group", "unit"], suffix="_below", validate="1:1")
    if not both.height:
        raise ValueError(f"{of.benchmark}, {of.model}, {of.prompt}: no example shared with what it "
                         f"is compared with, {of.setting.get('instead', '')}")  # fmt: skip
    rows = with_clusters(both)
    how: dict[str, Any] = {"stratum": "group", "is_macro": True, "cluster": cluster_of(rows)}
    if of.benchmark in CLASSIFICATION and rows["group"].n_unique() > 1:
        how = {"cluster": "unit"}  # draws of a balanced set share examples, and have the same size
    return of.but(**estimate(rows, measure, less=f"{measure}_below", seed=seed, **how))


def differences(those: Sequence[Answers], seed: int = 0) -> Iterator[Number]:
    """Yield the gain of a prompt over those that it is COMPARED with on a benchmark, in points, on
    the same examples."""
    by_name = {(a.probe.model, a.probe.prompt): a for a in those}
    for probed in those:
        rivals = () if probed.benchmark in EXTRACTION else COMPARED.get(probed.probe.prompt, ())
        subsets = {"": probed}
        if probed.demonstrated.height:
            subsets[UNSEEN] = probed.exclude_demonstrated()
        for (name, subset), rival in product(subsets.items(), rivals):
            other = by_name.get((probed.probe.model, rival))
            both = [v for a in (subset, other) if a and (v := per_example(a)) is not None]
            if len(both) == 2:
                metric = "accuracy" if probed.of_classes else "P@1"
                of = probed.of.but(metric=metric, slice=name, setting={"instead": rival})
                yield gain(of, both[0], both[1], "p1", seed)


def baseline_numbers(
    answers: Sequence[Answers], below: baselines.Files, seed: int = 0
) -> Iterator[Number]:
    """Yield results of prompts for facts without the subject and with random weights, on a subset
    of the test facts: the mean over relations of MEASURES, and the paired difference in P@1."""
    pairs = []
    item = pl.format("{}/{}", "group", "unit").alias("item")
    for probed in answers:
        for without, path in baselines.below(below, probed.probe):
            low = replace(probed, outcomes=schema.read(path, schema.OUTCOMES))
            both = [
                with_clusters(values)
                .select(item, pl.col("group").alias("stratum"), "cluster", *MEASURES)
                .rename(MEASURES)
                for one in (low, probed)
                if (values := per_example(one)) is not None
            ]
            if len(both) == 2:
                pairs.append(baselines.Baseline(probed.of, without, *both))
    yield from baselines.estimates(pairs, list(MEASURES.values()), seed, macro=True)


def memory(answers: Sequence[Answers], seed: int = 0) -> Iterator[Number]:
    """Yield P@1 on original minus perturbed sentences, in points, on the facts of both: what a
    model recalls instead of reads."""
    original, perturbed = EXTRACTION
    by_probe = {(a.benchmark, a.probe.model, a.probe.prompt): a for a in answers}
    for probed in answers:
        other = by_probe.get((perturbed, probed.probe.model, probed.probe.prompt))
        if probed.benchmark == original and other:
            values = []
            for part in (probed, other):
                per_fact, _ = metrics.sentences(metrics.join_outcomes(part.examples, part.outcomes))
                # if every sentence has its own new object, the unit begins with the fact
                fact = pl.col("unit").str.replace(r"~.*$", "")
                facts = per_fact.select("group", fact, "subject", "any_sentence")
                values.append(mean_of_draws(facts))
            of = probed.of.but(metric="P@1", setting={"instead": perturbed})
            yield gain(of, values[0], values[1], "any_sentence", seed)


def of_benchmark(those: Sequence[Answers], seed: int = 0) -> Iterator[Number]:
    """Yield per relation (draw of a balanced set): constant answers, the proportion of the distinct
    test objects that are also in train, the total variation distance of the two distributions of
    objects (undefined without training facts), and numbers of facts; `search facts` are training
    and dev facts, as in the paper's "#train"."""
    every = union(those)
    of, metric_of = Number(benchmark=every.benchmark), ACCURACY if every.of_classes else P1
    for name, model in ((MAJORITY, "majority"), (BEST, "constant")):
        yield from measured(of.but(model=model), hits(every, name), metric_of, ("group",), seed)
    fact = ["group", "fact", "label"]
    train = every.examples.filter(split="train").unique(fact)
    for (group,), test in _select_asked(every, "test").unique(fact).group_by("group"):
        there, here = Counter(train.filter(group=group)["label"]), Counter(test["label"])
        seen = sum(o in there for o in here) / len(here)
        yield of.but(metric=SEEN, group=group, value=100 * seen, n=len(here))
        before, after, apart = there.total(), here.total(), None
        if before:
            gaps = (abs(there[o] / before - here[o] / after) for o in sorted(there | here))
            apart = 100 * (sum(gaps) / 2)
        yield of.but(metric=VARIATION, group=group, value=apart, n=after)
    is_test = pl.col("split") == "test"
    for metric, rows in (("search facts", ~is_test), ("test facts", is_test)):
        for group, n in every.examples.filter(rows).group_by("group").len().rows():
            yield of.but(metric=metric, group=group, value=n, n=n)


def hits(answers: Answers, name: str, split: str = "test") -> pl.DataFrame:
    """Return group, unit, subject and p1 of a constant answer (`name`: MAJORITY or BEST) on the
    examples of `answers` that have a rank; equally frequent labels share the probability. A unit is
    an example, or a fact if a fact has several sentences."""
    unit = "fact" if answers.benchmark in EXTRACTION else "example"
    rows = _select_asked(answers, split)
    # a fact is right if one of its sentences has the right answer, regardless of ranks
    known = rows if unit == "fact" else rows.filter(pl.col("best").is_not_null())
    source = known
    if name == MAJORITY:
        # a label without a rank in any split is no answer of the model
        without = answers.outcomes.filter(pl.col("best").is_null())
        lost = without.join(answers.examples, on=KEY)["label"].unique().to_list()
        source = answers.examples.filter(~pl.col("label").is_in(lost), split="train")
    counted = source.unique(["group", "fact", "label"]).group_by("group", "label").len()
    commonest = counted.filter(pl.col("len") == pl.col("len").max().over("group"))
    shares = commonest.select("group", "label", p1=1 / pl.len().over("group"))
    joined = known.unique(["group", unit]).join(shares, on=["group", "label"], how="left")
    values = joined.select("group", "subject", pl.col("p1").fill_null(0), unit=unit)
    return values.sort("group", "unit")


def union(those: Sequence[Answers]) -> Answers:
    """Merge outcomes and examples of probes without duplicates, preferring rows with a rank."""
    rows = pl.concat([a.outcomes for a in those]).sort(*KEY, "best", nulls_last=True)
    return replace(
        those[0],
        outcomes=rows.unique(KEY, keep="first", maintain_order=True),
        examples=pl.concat([a.examples for a in those]).unique(KEY).sort(KEY),
    )


def _select_asked(base: Answers, split: str) -> pl.DataFrame:
    """Return the examples of a split that were asked."""
    return metrics.join_outcomes(base.examples, base.outcomes, split).unique(["group", "example"])


# -- sweeps: the paper prints no numbers for either figure -----------------------------------------


def low_data(benchmark: str, model: str, points: pl.DataFrame) -> Iterator[Number]:
    """Yield Figure 2 from SWEEPS: dev accuracy in per cent by number of training examples (`size`),
    mean of subsets (n) with worst and best. Metric `dev accuracy`: for the most examples."""
    of = Number(benchmark=benchmark, model=model, method="low_data", metric="accuracy", slice="dev")
    sizes = points.sort("method", "size", "draw").group_by("method", "size", maintain_order=True)
    last: dict[str, Number] = {}
    for (method, size), draws in sizes:
        values = 100 * draws["value"].to_numpy()
        ends = Interval(values.min(), values.max(), "range of subsets")
        one = of.but(prompt=str(method), setting={"size": int(str(size))}, n=len(values))
        last[one.prompt] = one.but(value=values.mean(), interval=ends)
        yield last[one.prompt]
    for number in last.values():
        yield number.but(metric="dev accuracy", slice="", interval=None)


def grid(benchmark: str, model: str, points: pl.DataFrame) -> Iterator[Number]:
    """Yield Figure 3 from SWEEPS: dev accuracy in per cent by label tokens and trigger length.
    Metric `dev accuracy`: the best of the grid, an oracle, and so without an interval."""
    of = Number(benchmark=benchmark, model=model, method="grid", metric="accuracy", slice="dev")
    best: dict[int, Number] = {}
    for row in points.sort("k", "label_tokens", "triggers").iter_rows(named=True):
        setting = {"k": row["k"], "labels": row["label_tokens"], "triggers": row["triggers"]}
        share = proportion(round(row["value"] * row["n"]), row["n"])
        share["value"] = 100 * row["value"]
        number = of.but(prompt=row["method"], setting=setting, **share)
        yield number
        known = best.setdefault(row["k"], number)
        best[row["k"]] = max(known, number, key=lambda one: one.value or 0.0)
    for number in best.values():
        yield number.but(metric="dev accuracy", slice="", interval=None)
