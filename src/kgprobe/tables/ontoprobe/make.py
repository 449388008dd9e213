"""Compute OntoProbe's RESULTS, and the examples of Table 7, from the files of a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.contracts import WITHOUT
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import baselines, consistency, judged
from kgprobe.tables.answers import (
    AGGREGATIONS,
    Probe,
    choosable,
    judge_scores,
    questions,
    without_subject,
)
from kgprobe.tables.ontoprobe import calibration, choices, memorizing, reasoning
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.ontoprobe.memorizing import Answers
from kgprobe.tables.ontoprobe.values import CONFIGURATION, METRICS
from kgprobe.tables.results import Number
from kgprobe.tables.scored import Scored, read_random_init
from kgprobe.tables.study import Study
from kgprobe.templates import MASK_SLOT, fill

#: a file of each probe, with ranks at a mask slot, ranks of soft prompts, or SCORES. A model whose
#: options are both scored and ranked is two probes
Files = Mapping[Probe, str | Path]
#: number of test rows per task shown as examples
EXAMPLES = 2
#: default score aggregation of sentences
DEFAULT = per_item.AGGREGATIONS[0]


@dataclass(frozen=True)
class OntoProbeStudy:
    """What the numbers of a run depend on, apart from the answers of its probes.

    `folders`: of the benchmarks; `given`: the printed tables; `facts`: TRAINED_ON, if control
    models were asked.
    """

    folders: Mapping[str, Path]
    switches: Switches = field(default_factory=Switches)
    seed: int = 0
    given: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    facts: pl.DataFrame | None = None

    def items(self, probe: Probe, name: str = "items") -> pl.DataFrame:
        """Read the ITEMS that a probe was asked, its own or those of `reasoning`."""
        return schema.read(self.folders[probe.benchmark] / f"{name}.parquet", schema.ITEMS)

    def answers(self, files: Files) -> Answers:
        """Compute the metrics per item of every probe."""
        values = {}
        for probe, path in files.items():
            items = self.items(probe)
            values[probe] = self.measure(probe, read_answers(probe, path, items), items)
        return values

    def measure(self, probe: Probe, rows: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
        """Compute the metrics per item from ranks or SCORES."""
        scored = is_scored(probe)
        ranges = per_item.from_scores(rows, items) if scored else per_item.from_ranks(rows)
        ties, recall = self.switches.ties, self.switches.recall
        return per_item.metrics(ranges, per_item.of_items(items), ties, recall)


def is_scored(probe: Probe) -> bool:
    """Return whether the probe scores its candidates as sentences."""
    return probe.method.startswith("sentence")


def read_answers(probe: Probe, path: str | Path, items: pl.DataFrame) -> pl.DataFrame:
    """Read ranks, or SCORES `to_the_end`, of a probe that was asked ITEMS."""
    if not is_scored(probe):
        return pl.read_parquet(path)
    return per_item.to_the_end(schema.read(path, schema.SCORES), probe, items)


def _read_content_free(probe: Probe, path: str | Path) -> pl.DataFrame:
    return per_item.to_the_end(schema.read(path, schema.CONTENT_FREE), probe)


def baseline_numbers(
    study: OntoProbeStudy, answers: Answers, below: baselines.Files, content_free: Files
) -> Iterator[Number]:
    """Yield results of each probe's baselines on test rows in the fixed configuration, by task.
    `below`: answers of baselines; `content_free`: CONTENT_FREE of probes that score sentences."""
    pairs, tp_rows = [], study.switches.tp_rows
    columns = ["item", pl.lit("").alias("stratum"), *(pl.col(m) / 100 for m in METRICS)]
    for probe, values in answers.items():
        items = study.items(probe)
        files = baselines.below(below, probe)
        lower = {name: read_answers(probe, path, items) for name, path in files}
        if probe in content_free:
            free = _read_content_free(probe, content_free[probe])
            lower[WITHOUT[0]] = without_subject(items, free)
        probed = per_item.in_fixed(per_item.select_test_rows(values, tp_rows))
        for without in (name for name in WITHOUT if name in lower and lower[name].height):
            low = study.measure(probe, lower[without], items)
            low = per_item.select_test_rows(low, tp_rows)
            low = low.join(probed, on=["task", *CONFIGURATION], how="semi").sort("task")
            for (task,), subset in low.group_by("task", maintain_order=True):
                of = Number(**probe.dimensions, group=str(task), setting={"choice": "fixed"})
                both = (rows.select(columns) for rows in (subset, probed.filter(task=task)))
                pairs.append(baselines.Baseline(of, without, *both))
    yield from baselines.estimates(pairs, METRICS, study.seed)


def estimate_memorizing(study: OntoProbeStudy, probed: Answers) -> Iterator[Number]:
    """Yield every number of memorizing. `probed`: answers under this run's switches."""
    switches, given, seed = study.switches, study.given, study.seed
    tp_rows = switches.tp_rows
    sets = {name: questions(folder)[:2] for name, folder in study.folders.items()}
    yield from memorizing.sizes(sets, given["sizes"])
    yield from memorizing.baselines(sets, given["memorizing"], tp_rows, seed, switches.recall)
    for probe, values in probed.items():
        yield from memorizing.memorizing(probe, values, given, tp_rows, seed)
        yield from memorizing.groups(probe, values, tp_rows, seed, switches.select)
    if probed:
        yield from memorizing.compare_configurations(probed, given["configurations"], tp_rows, seed)
    if study.facts is not None:
        yield from calibration.check_validity(probed, sets, study.facts)


def judge_forms(study: OntoProbeStudy, formed: Files, raw: Files) -> dict[Probe, pl.DataFrame]:
    """Judge the SCORES of probes in a prompt format, and of the same ones without it, by the
    default aggregation; items without a wrong option are left out."""
    judged, asked = {}, {(p.benchmark, p.model, p.method) for p in formed}
    for probe, path in {**raw, **formed}.items():
        if (probe.benchmark, probe.model, probe.method) in asked:
            items = choosable(*questions(study.folders[probe.benchmark])[:2])
            scores = read_answers(probe, path, items).join(items, on="item", how="semi")
            judged[probe] = judge_scores(scores, items, DEFAULT, str(path))
    return judged


def scored_rows(
    study: OntoProbeStudy,
    files: Files,
    content_free: Files,
    below: baselines.Files = MappingProxyType({}),
) -> Iterator[Scored]:
    """Yield the test rows whose candidates are scored as sentences, by task; arguments as in
    `baseline_numbers`. Ranks at a mask slot store scores of the golds only."""
    for probe, path in files.items():
        if not is_scored(probe):
            continue
        items, candidates, prompts = questions(study.folders[probe.benchmark])
        scores = read_answers(probe, path, items)
        free = _read_content_free(probe, content_free[probe])
        low = read_random_init(below, probe)
        low = None if low is None else per_item.to_the_end(low, probe, items)
        test = per_item.select_test_rows(per_item.of_items(items), study.switches.tp_rows)
        test = test.join(scores.select("item"), on="item", how="semi").sort("task")
        for (task,), group in test.group_by("task", maintain_order=True):
            subset = items.join(group.select("item"), on="item", how="semi")
            of_task = Study(
                subset, candidates, prompts, study.seed, aggregation=DEFAULT, group=str(task),
                trained_on=calibration.find_trained_on(probe, group, study.facts),
            )  # fmt: skip
            yield Scored(probe, scores, of_task, free, str(path), low)


def estimate_agreement(
    study: OntoProbeStudy, values: Answers, winners: Mapping[Probe, pl.DataFrame]
) -> Iterator[Number]:
    """Yield the agreement between the manual templates of a task, for the pooling fixed in advance;
    `winners`: from `find_winners`."""
    key = ["masks", "pooling"]
    for probe, answered in values.items():
        if probe not in winners:
            continue
        rows = per_item.select_test_rows(answered, study.switches.tp_rows)
        fixed = rows.join(per_item.in_fixed(rows), on=["task", *key], how="semi").sort("task", *key)
        for (task, masks, pooling), subset in fixed.group_by("task", *key, maintain_order=True):
            hits = subset.select("item", "template", *key, hit=pl.col("R@1") / 100)
            both = hits.join(winners[probe], on=["item", "template", *key], how="left")
            setting = {"masks": masks, "pooling": pooling}
            of = Number(**probe.dimensions, group=task, setting=setting)
            yield from consistency.estimates(of, both.rename({"winner": "said"}))


def find_winners(
    study: OntoProbeStudy, files: Files, tops: Mapping[Probe, pl.DataFrame]
) -> dict[Probe, pl.DataFrame]:
    """Return item, template, masks, pooling, winner (the top-ranked candidate) of every probe with
    written templates; `tops`: TOPS of those that rank at a mask slot."""
    key, winners = ["item", "template", "masks", "pooling"], dict[Probe, pl.DataFrame]()
    for probe, path in files.items():
        if is_scored(probe):
            rows = read_answers(probe, path, study.items(probe))
            rows = rows.sort("item", "template", "candidate")
            best = {
                name: pl.col("candidate").get(AGGREGATIONS[name].arg_max())
                for name in per_item.AGGREGATIONS
            }
            rows = rows.group_by("item", "template", maintain_order=True).agg(**best)
            rows = rows.unpivot(index=key[:2], variable_name="pooling", value_name="winner")
            rows = rows.with_columns(masks=pl.lit("sentence"))
        elif probe in tops:
            rows = tops[probe].filter(place=1).rename({"candidate": "winner"})
        else:
            continue
        rows = rows.select(*key, "winner")
        winners[probe] = rows.with_columns(template=pl.format("m{}", "template"))
    return winners


def judged_answers(
    study: OntoProbeStudy,
    values: Answers,
    winners: Mapping[Probe, pl.DataFrame],
    reasoned: Mapping[Probe, tuple[str, str]],
    chosen: Mapping[Probe, tuple[str, str]],
) -> pl.DataFrame:
    """Build the JUDGED frame of memorizing (`values`, with the result of `find_winners`), of
    reasoning (ranks, and ranks of the tests of P2) and of multiple choice (CHOICES, CHOSEN). Rows
    for training and selection, and repeated ones, are left out, as in every number."""
    parts: list[tuple[Probe, pl.DataFrame]] = []

    def add(probe: Probe, rows: pl.DataFrame, name: str = "items") -> None:
        place = study.folders[probe.benchmark] / "candidates.parquet"
        options = schema.read(place, schema.CANDIDATES)
        parts.append((probe, judged.with_options(rows, study.items(probe, name), options)))

    # only soft prompts have a seed
    seed = pl.when(pl.col("loss") != "").then(pl.col("seed").cast(pl.String)).otherwise(pl.lit(""))
    for probe, answered in values.items():
        rows = per_item.select_test_rows(answered, study.switches.tp_rows)
        if probe in winners:
            key = ["item", "template", "masks", "pooling"]
            rows = rows.join(winners[probe], on=key, how="left")
        rows = rows.rename({"best": "rank_low", "worst": "rank_high"})
        hit = pl.col("R@1") / 100
        add(probe, rows.with_columns(hit=hit, seed=seed, matching=pl.lit(judged.ANY)))
    for probe, (ranks, _) in reasoned.items():
        add(probe, reasoning.judge(pl.read_parquet(ranks), study.switches.ties), "reasoning")
    parts += [(probe, choices.judge(*_read_choices(*files))) for probe, files in chosen.items()]
    return judged.frame("ontoprobe", parts)


def _read_choices(path: str, chosen: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    return schema.read(path, schema.CHOICES), schema.read(chosen, schema.CHOSEN)


def estimate_reasoning(
    study: OntoProbeStudy, files: Mapping[Probe, tuple[str, str]], answers: Answers
) -> Iterator[Number]:
    """Yield every number of reasoning; `files`: ranks, and ranks of the tests of P2, of each probe.
    Raises ValueError if no premise of any probe can be classified."""
    classified, switches = {}, study.switches
    for probe, paths in files.items():
        cases, (ranks, tests) = study.items(probe, "reasoning"), map(pl.read_parquet, paths)
        if premises := _classify_premises(probe, cases, tests, answers, switches):
            mrr = reasoning.reciprocal(ranks, ["item", "scheme", "p1", "p2", "pair"], switches.ties)
            is_dropped = switches.premise == "halves_dropped"
            classified[probe] = reasoning.settings(mrr, premises, is_dropped)
            yield from reasoning.estimate_spread(probe, mrr, premises, is_dropped)
            yield from reasoning.estimate_cuts(probe, premises)
    if classified:
        yield from reasoning.estimate_rules(classified, study.seed)
    elif files:
        raise ValueError(
            "no premise of reasoning can be classified: ontoprobe.soft needs a manual scheme and a "
            "masked or seq2seq model, or soft prompts with loss bce, masks multi and pooling mean"
        )


def _classify_premises(
    probe: Probe, cases: pl.DataFrame, tests: pl.DataFrame, answers: Answers, switches: Switches
) -> dict[str, pl.DataFrame]:
    """Return the classes of a probe's premises by kind of template, where they can be determined.
    `tests`: ranks of the tests of P2; `answers`: metrics of memorizing under the switches."""
    seconds = reasoning.reciprocal(tests, ["item", "kind", "pair"], switches.ties)
    premises = {}
    for kind in ("manual", "soft"):
        # the memorizing answers with multiple masks and mean pooling, for this kind of template;
        # ranked ones come last, so that they take precedence over scored ones
        memorized = [
            per_item.in_fixed(values).filter(role="test")
            for other, values in sorted(answers.items(), key=lambda pair: not is_scored(pair[0]))
            if (other.model, other.benchmark) == (probe.model, probe.benchmark)
            and (other.prompt == "soft") == (kind == "soft")
        ]
        # rank of the best gold, or mean rank of all golds, which breaks ties of the halves
        rule = "threshold" if switches.premise == "threshold" else "halves"
        rank = 100 / pl.col("MRR" if rule == "threshold" else "MRRa").clip(lower_bound=1e-9)
        firsts = [f.select("item", MRR=pl.col("MRR") / 100, rank=rank) for f in memorized]
        is_known = any(first.height for first in firsts)
        # a causal model is not asked what it has memorized: P1 is neither implicit nor not given
        first = pl.concat(firsts) if is_known else seconds.select("item", "MRR", "rank").clear()
        tested = seconds.filter(kind=kind)
        if rule == "threshold":
            tested = tested.with_columns(rank=1 / pl.col("MRR"))
        second = tested.group_by("item").agg(ordered_mean(["MRR", "rank"]))
        if (is_known or probe.kind == "causal") and second.height:
            skip = switches.missing_candidate == "skip"
            premises[kind] = reasoning.classify(cases, first, second, rule, skip)
    return premises


def estimate_choices(
    study: OntoProbeStudy,
    files: Mapping[Probe, tuple[str, str]],
    split: choices.Split | None = None,
) -> Iterator[Number]:
    """Yield every number of multiple choice; `files`: CHOICES, CHOSEN of each probe."""
    for probe, paths in files.items():
        items, picked = _read_choices(*paths)
        yield from choices.score_choices(probe, items, picked, study.given, split, study.seed)
        if study.facts is not None:
            rows = choices.hits(items.filter(premise=""), picked)
            yield from calibration.check_choices(probe, rows, study.items(probe), study.facts)
    if files:
        yield from choices.fractions(study.given["reasoning"])


def examples(
    top: Mapping[Probe, pl.DataFrame], folders: Mapping[str, Path]
) -> Iterator[dict[str, object]]:
    """Yield rows of Table 7: prompt, top five candidates, golds. `top`: the TOPS of each probe."""
    for probe, frame in top.items():
        items, options, prompts = questions(folders[probe.benchmark])
        label = {(s, i): name for s, i, name in options.select("set", "index", "label").rows()}
        ordered = prompts.sort("index", maintain_order=True)
        last = ordered.group_by("relation", maintain_order=True).last()
        for task, index, text in last.select("relation", "index", "text").rows():
            chosen = items.filter(relation=task, role="test").sort("row").head(EXAMPLES)
            ranked = frame.filter(template=index, masks="multi", pooling="mean").sort("place")
            for row in chosen.iter_rows(named=True):
                golds = [label[row["candidates"], a] for a in row["answers"]]
                best = ranked.filter(item=row["item"])["candidate"]
                named = [label[row["candidates"], c] for c in best]
                yield {
                    "model": probe.model,
                    "task": task,
                    "prompt": fill(text, row["subject"], MASK_SLOT).text,
                    "top 5": ", ".join("+" * (n in golds) + n for n in named),
                    "golds": ", ".join(golds),
                }
