"""From the files of a run to OntoProbe's RESULTS, and the examples of Table 7."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.contracts import WITHOUT
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import baselines, forms, wordings
from kgprobe.tables.aggregations import Questions
from kgprobe.tables.answers import AGGREGATIONS, Probe, probes_of, questions, without_subject
from kgprobe.tables.ontoprobe import calibration, choices, memorizing, reasoning
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.ontoprobe.memorizing import Answers
from kgprobe.tables.results import Number
from kgprobe.tables.scored import Scored
from kgprobe.templates import GAP, fill

Row = Mapping[str, str]
#: reasoning ITEMS, ranks, and ranks of the tests of P2
Reasoned = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
#: what stays the same where templates are compared
SETTING = ("masks", "pooling")
#: where the chapter's examples come from: two test rows of every task
EXAMPLES = 2


def answers(
    asked: Sequence[Probe],
    files: Sequence[str],
    folders: Mapping[str, Path],
    ties: str,
    recall: str = "hit",
) -> Answers:
    """Metrics per item of every probe: ranks of manual and soft prompts, or sentence scores.

    `files`: its file of answers (method cloze, sentence or soft). A model whose options are scored
    and ranked is two probes.
    """
    return {
        probe: per_item.metrics(ranges, items, ties, recall)
        for probe, (ranges, items) in memory(asked, files, folders).items()
    }


def memory(
    asked: Sequence[Probe], files: Sequence[str | Path], folders: Mapping[str, Path]
) -> dict[Probe, tuple[pl.DataFrame, pl.DataFrame]]:
    """The rank ranges of every probe's golds by configuration, and its items (values.of_items)."""
    found = {}
    for probe, path in zip(asked, files, strict=True):
        items = schema.read(folders[probe.benchmark] / "items.parquet", schema.ITEMS)
        told = schema.read(path, schema.SCORES) if is_scored(probe) else pl.read_parquet(path)
        found[probe] = _ranges(probe, told, items), per_item.of_items(items)
    return found


def _ranges(probe: Probe, told: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    return per_item.from_scores(told, items) if is_scored(probe) else per_item.from_ranks(told)


def _values(
    probe: Probe, told: pl.DataFrame, items: pl.DataFrame, ties: str, recall: str
) -> pl.DataFrame:
    """Metrics per item and configuration of what a probe, or its baseline, told."""
    return per_item.metrics(_ranges(probe, told, items), per_item.of_items(items), ties, recall)


def baseline_numbers(
    found: Answers,
    below: baselines.Files,
    content_free: Mapping[Probe, str],
    folders: Mapping[str, Path],
    switches: Switches,
    seed: int,
) -> Iterator[Number]:
    """What each probe's baselines reach on test rows in the fixed configuration, by task.

    `below`: answers of baselines; `content_free`: CONTENT_FREE of the probes that score sentences,
    which have their options without the subject.
    """
    made: dict[str, list[baselines.Baseline]] = {}
    for probe, values in found.items():
        items = schema.read(folders[probe.benchmark] / "items.parquet", schema.ITEMS)
        told = {
            without: schema.read(path, schema.SCORES) if is_scored(probe) else pl.read_parquet(path)
            for without, path in baselines.below(below, probe)
        }
        if probe in content_free:
            free = schema.read(content_free[probe], schema.CONTENT_FREE)
            told[WITHOUT[0]] = without_subject(items, free)
        for without in (name for name in WITHOUT if name in told and told[name].height):
            low = _values(probe, told[without], items, switches.ties, switches.recall)
            made.setdefault(probe.benchmark, []).extend(
                _by_task(probe, values, low, without, switches.tp_rows)
            )
    for own in made.values():
        yield from baselines.numbers(own, per_item.METRICS, seed)


def _by_task(
    probe: Probe, values: pl.DataFrame, low: pl.DataFrame, without: str, tp_rows: str
) -> Iterator[baselines.Baseline]:
    """A baseline of every task that has one in the fixed configuration of its probe."""
    item = pl.col("item"), pl.lit("").alias("stratum")
    shares = [pl.col(metric) / 100 for metric in per_item.METRICS]
    for task in values["task"].unique().sort():
        rows = per_item.asked_rows(values.filter(task=task), tp_rows)
        if not (chosen := per_item.fixed(rows, task)):
            continue
        own, part = (
            per_item.of_configuration(per_item.asked_rows(one, tp_rows), chosen)
            .filter(task=task)
            .select(*item, *shares)
            for one in (values, low)
        )
        if part.height:
            of = Number(**probe.asked, group=task, setting={"choice": "fixed"})
            yield baselines.Baseline(of, without, part, own)


def memorized(
    found: Answers,
    folders: Mapping[str, Path],
    given: Mapping[str, pl.DataFrame],
    switches: Switches,
    seed: int,
    taught: pl.DataFrame | None = None,
) -> Iterator[Number]:
    """Every number of memorizing. `found`: the answers as this run's switches read them; `given`:
    the printed tables; `taught`: TAUGHT.
    """
    tp_rows = switches.tp_rows
    sets = {name: questions(folder)[:2] for name, folder in folders.items()}
    yield from memorizing.sizes(sets, given["sizes"])
    yield from memorizing.baselines(sets, given["memorizing"], tp_rows, seed)
    for probe, values in found.items():
        yield from memorizing.memorizing(probe, values, given, tp_rows, seed)
        yield from memorizing.groups(probe, values, tp_rows, seed, switches.select)
    if found:
        yield from memorizing.compared(found, given["configurations"], tp_rows, seed)
    if taught is not None:
        yield from calibration.calibrated(found, sets, taught)


def scored_rows(
    asked: Sequence[Probe],
    files: Sequence[str],
    content_free: Sequence[str],
    folders: Mapping[str, Path],
    tp_rows: str,
    seed: int,
    taught: pl.DataFrame | None = None,
    below: baselines.Files = MappingProxyType({}),
) -> Iterator[Scored]:
    """The test rows whose candidates are scored as sentences, by task.

    `asked`, `files`: all probes and their answers; `content_free`: CONTENT_FREE of those that score
    sentences, in their order; `below`: answers of baselines. Ranks of a gap keep no scores of the
    candidates but the golds'.
    """
    pairs = [pair for pair in zip(asked, files, strict=True) if is_scored(pair[0])]
    for (probe, path), beside in zip(pairs, content_free, strict=True):
        items, candidates, prompts = questions(folders[probe.benchmark])
        scores = schema.read(path, schema.SCORES)
        free = schema.read(beside, schema.CONTENT_FREE)
        random_init = dict(baselines.below(below, probe)).get(WITHOUT[1])
        low = schema.read(random_init, schema.SCORES) if random_init else None
        test = per_item.asked_rows(per_item.of_items(items), tp_rows)
        test = test.join(scores.select("item"), on="item", how="semi")
        for task in test["task"].unique().sort():
            own = test.filter(task=task)
            part = items.join(own.select("item"), on="item", how="semi")
            asks = Questions(
                part, candidates, prompts, seed, own=per_item.AGGREGATIONS[0], group=task
            )
            fates = calibration.fates(probe, own, taught) if taught is not None else {}
            yield Scored(probe, scores, asks, fates, free, str(path), low)


def formed(
    experiments: Sequence[Row],
    files: Sequence[str],
    models: Mapping[str, Row],
    asked: Sequence[Probe],
    plain: Sequence[str],
    folders: Mapping[str, Path],
    seed: int,
) -> Iterator[Number]:
    """Every number of forms of asking: their rows and answers, and those of all other probes."""
    probes = [*probes_of(experiments, models, files), *asked]
    parts = forms.pairs(probes, [*files, *plain])
    yield from forms.numbers(*parts, folders, per_item.AGGREGATIONS[0], seed, by_relation=True)


def worded(found: Answers, said: Mapping[Probe, pl.DataFrame], tp_rows: str) -> Iterator[Number]:
    """What the manual templates of a task agree on, of the pooling laid down beforehand.

    `found`: hits, ties at their expectation or as the switch has them; `said`: SAID of each probe.
    """
    for probe, answers in said.items():
        for task in found[probe]["task"].unique().sort():
            rows = per_item.asked_rows(found[probe].filter(task=task), tp_rows)
            if not (chosen := per_item.fixed(rows, task)):
                continue
            own = rows.filter(masks=chosen[1], pooling=chosen[2])
            own = own.select("item", "template", hit=pl.col("R@1") / 100)
            both = own.join(answers, on=["item", "template"], how="left")
            of = Number(**probe.asked, group=task)
            yield from wordings.numbers(
                of.but(setting=dict(zip(SETTING, chosen[1:3], strict=True))), both
            )


def said(
    asked: Sequence[Probe], files: Sequence[str], tops: Mapping[Probe, pl.DataFrame]
) -> dict[Probe, pl.DataFrame]:
    """SAID (item, template, said) of every probe of written templates: the candidate in first place
    under the pooling laid down beforehand."""
    found = {}
    for probe, path in zip(asked, files, strict=True):
        if is_scored(probe):
            score = AGGREGATIONS[per_item.AGGREGATIONS[0]]
            rows = schema.read(path, schema.SCORES).sort("item", "template", "candidate")
            best = pl.col("candidate").get(score.arg_max())
            rows = rows.group_by("item", "template", maintain_order=True).agg(said=best)
        elif probe in tops:
            rows = tops[probe].filter(masks="multi", pooling="mean", place=1)
            rows = rows.select("item", "template", said="candidate")
        else:
            continue
        named = pl.lit("m") + pl.col("template").cast(pl.String)
        found[probe] = rows.with_columns(template=named)
    return found


def is_scored(probe: Probe) -> bool:
    """Whether the probe scores its candidates as sentences."""
    return probe.method.startswith("sentence")


def reasoned(
    asked: Mapping[Probe, tuple[str, str]],
    found: Answers,
    folders: Mapping[str, Path],
    switches: Switches,
    seed: int,
) -> Iterator[Number]:
    """Every number of reasoning; `asked`: ranks, and ranks of the tests of P2, of each probe.

    Raises ValueError where no premise of any can be classified.
    """
    frames = {}
    for probe, (ranks, tests) in asked.items():
        cases = schema.read(folders[probe.benchmark] / "reasoning.parquet", schema.ITEMS)
        frames[probe] = cases, pl.read_parquet(ranks), pl.read_parquet(tests)
    if made := settled(frames, found, switches):
        yield from reasoning.reasoned(made, seed)
    elif asked:
        raise ValueError(
            "no premise of reasoning can be classified: ontoprobe.soft needs a manual scheme and a "
            "masked or seq2seq model, or soft prompts with loss bce, masks multi and pooling mean"
        )


def settled(
    asked: Mapping[Probe, Reasoned], found: Answers, switches: Switches
) -> dict[Probe, pl.DataFrame]:
    """`reasoning.settings` of every probe whose premises can be classified; `found`: its metrics of
    memorizing, as the switches read them."""
    made = {}
    for probe, (cases, ranks, tests) in asked.items():
        ties = switches.ties
        seconds = reasoning.reciprocal(tests, ["item", "kind", "pair"], ties)
        own = reasoning.reciprocal(ranks, ["item", "scheme", "p1", "p2", "pair"], ties)
        premises = {}
        for kind in ("manual", "soft"):
            first = _first_premise(found, probe, kind)
            if first is None and probe.kind == "causal":
                # not asked for what it has memorized: P1 is neither implicit nor absent
                first = seconds.select("item", "MRR", "rank").clear()
            second = seconds.filter(kind=kind).group_by("item").agg(ordered_mean(["MRR", "rank"]))
            if first is not None and second.height:
                rule = "threshold" if switches.premise == "threshold" else "halves"
                skip = switches.missing_candidate == "skip"
                premises[kind] = reasoning.classify(cases, first, second, rule, skip)
        if premises:
            drop = switches.premise == "halves_dropped"
            made[probe] = reasoning.settings(own, premises, drop)
    return made


def picked(
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    choice_files: Sequence[str],
    files: Sequence[str],
    given: Mapping[str, pl.DataFrame],
    split: choices.Split | None = None,
) -> Iterator[Number]:
    """Every number of multiple choice; `choice_files`, `files`: CHOICES, CHOSEN of each row."""
    asked_by = probes_of(experiments, models, files)
    for probe, asked, own in zip(asked_by, choice_files, files, strict=True):
        frames = schema.read(asked, schema.CHOICES), schema.read(own, schema.CHOSEN)
        yield from choices.chosen(probe, *frames, given, split)
    if experiments:
        yield from choices.fractions(given["reasoning"])


def reduced(
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    choice_files: Sequence[str],
    files: Sequence[str],
    folders: Mapping[str, Path],
    seed: int,
    taught: pl.DataFrame | None = None,
) -> Iterator[Number]:
    """Multiple choice under other aggregations; `choice_files`, `files`: CHOICES, OPTION_SCORES of
    each row, `taught`: TAUGHT."""
    asked_by = probes_of(experiments, models, files)
    for probe, asked, own in zip(asked_by, choice_files, files, strict=True):
        frames = schema.read(asked, schema.CHOICES), schema.read(own, schema.OPTION_SCORES)
        fates: dict[str, bool] = {}
        if taught is not None and probe.benchmark in folders:
            items = schema.read(folders[probe.benchmark] / "items.parquet", schema.ITEMS)
            fates = calibration.fates(probe, per_item.of_items(items), taught)
        yield from choices.reduced(probe, *frames, seed, fates)


def _first_premise(found: Answers, asked: Probe, kind: str) -> pl.DataFrame | None:
    """item, MRR, rank of the memorizing answers at m, mean with the template kind in use."""
    parts = []
    for probe, values in found.items():
        if (probe.model, probe.benchmark) != (asked.model, asked.benchmark):
            continue
        if (probe.prompt == "soft") != (kind == "soft"):
            continue
        for task in values["task"].unique().sort():
            own = values.filter(task=task, role="test")
            if chosen := per_item.fixed(values.filter(task=task), task):
                parts.append(per_item.of_configuration(own, chosen))
    if not parts:
        return None
    rank = 100 / pl.col("MRRa").clip(lower_bound=1e-9)
    return pl.concat(parts).select("item", MRR=pl.col("MRR") / 100, rank=rank)


def examples(
    top: Mapping[Probe, pl.DataFrame], folders: Mapping[str, Path]
) -> list[dict[str, object]]:
    """Rows of Table 7: prompt, five best candidates, golds. `top`: the TOPS of each probe."""
    rows: list[dict[str, object]] = []
    for probe, frame in top.items():
        items, options, prompts = questions(folders[probe.benchmark])
        label = {(s, i): name for s, i, name in options.select("set", "index", "label").rows()}
        last = prompts.sort("index").group_by("relation", maintain_order=True).last()
        for task, index, text in last.select("relation", "index", "text").rows():
            chosen = items.filter(relation=task, role="test").sort("row").head(EXAMPLES)
            own = frame.filter(template=index, masks="multi", pooling="mean").sort("place")
            for row in chosen.iter_rows(named=True):
                golds = [label[row["candidates"], a] for a in row["answers"]]
                best = own.filter(item=row["item"])["candidate"]
                named = [label[row["candidates"], c] for c in best]
                rows.append(
                    {
                        "model": probe.model,
                        "task": task,
                        "prompt": fill(text, row["subject"], GAP, upper_first=False).text,
                        "top 5": ", ".join("+" * (n in golds) + n for n in named),
                        "golds": ", ".join(golds),
                    }
                )
    return rows
