"""The tables of the nine benchmarks, from METRICS: TABLE frames, `kg_table2` and its companions."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from kgprobe.metrics.intervals import bootstrap_mean, of_share, resamples, wilson
from kgprobe.metrics.matching import VERBATIM, WAYS
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import attributes_alpha as alpha
from kgprobe.tables import table
from kgprobe.tables.attributes_baselines import METHOD as BASELINE
from kgprobe.tables.attributes_published import BENCHMARKS, KS, Published
from kgprobe.tables.attributes_study import RANKED, Study

PAPER = "kg"
#: how a pooling is called in every table; the oracle is always told
NAMES = {
    "best": "best prompt (oracle)",
    "mean": "mean over prompts",
    "base": "first prompt",
    "confident": "surest prompt",
}
ALL = "all"
MEAN = "mean of nine"
cell = partial(table.cell, paper=PAPER)


def tables(
    study: Study, metrics: pl.DataFrame, by_pattern: pl.DataFrame, published: Published
) -> dict[str, pl.DataFrame]:
    """Every table of this module that applies, by name."""
    asked_only = by_pattern.filter(pl.col("method") != BASELINE)
    found = {
        "kg_table2": scores(metrics, published),
        "kg_choices": choices(metrics),
        "kg_patterns": patterns(asked_only.filter(~pl.col("method").str.starts_with(RANKED))),
        "kg_prompts": prompts(study),
        "kg_wordings": wordings(study),
        "kg_asked": asked(study),
        "kg_matching": matching(study),
        "kg_bias": hallucination(asked_only) if "bias" in study.benchmarks else None,
    }
    return {name: frame for name, frame in found.items() if frame is not None}


def row_name(k: int, model: str, method: str, pooling: str) -> str:
    """The row of a number in `kg_table2`."""
    return f"@{k} | {model} | {method} | {NAMES[pooling]}"


def scores(metrics: pl.DataFrame, published: Published) -> pl.DataFrame:
    """`kg_table2`: Table 2 in its layout, own gold, exact alpha; per cent.

    Columns: each benchmark, then its numerator, denominator, number of undefined and of missing
    examples. An undefined value has no cell. n: examples. `published`: the printed figure of the
    same model under `best` (the paper's pooling); the paper's models have rows of their own.
    """
    rows = metrics.filter(pattern=ALL, kind="exact", gold="own")
    printed = {"bert-base-uncased": "BERT", "roberta-base": "RoBERTa", "t5-base": "T5"}
    cells = []
    means: dict[str, list[tuple[float | None, int]]] = {}
    for m in rows.sort("model", "method", "k", "pooling", "benchmark").iter_rows(named=True):
        name = row_name(m["k"], m["model"], m["method"], m["pooling"])
        known = None
        if m["pooling"] == "best" and m["model"] in printed:
            known = published.scores.get((m["benchmark"], printed[m["model"]], m["k"]))
        means.setdefault(name, []).append((m["value_pooled"], m["examples"]))
        if m["value_pooled"] is not None:
            value, interval = 100 * m["value_pooled"], percent(m)
            cells.append(
                cell("kg_table2", name, m["benchmark"], value, m["examples"], interval, known)
            )
        for part in ("numerator", "denominator", "undefined", "missing"):
            cells.append(
                cell("kg_table2", name, f"{m['benchmark']}, {part}", m[part], m["examples"])
            )
    for name, values in means.items():
        defined = [v for v, _ in values if v is not None]
        if len(defined) == len(BENCHMARKS):
            total = sum(n for _, n in values)
            cells.append(cell("kg_table2", name, MEAN, 100 * sum(defined) / len(defined), total))
    for (benchmark, model, k), value in published.scores.items():
        name = f"@{k} | {model} | published"
        cells.append(cell("kg_table2", name, benchmark, value, 0, published=value))
    for k, model in ((k, m) for k in KS for m in published.models):
        printed_values = [published.scores.get((b, model, k)) for b in BENCHMARKS]
        own = [v for v in printed_values if v is not None]
        if len(own) == len(BENCHMARKS):
            name = f"@{k} | {model} | published"
            cells.append(cell("kg_table2", name, MEAN, sum(own) / len(own), 0))
    return table.build(cells)


def choices(metrics: pl.DataFrame) -> pl.DataFrame | None:
    """`kg_choices`: the same answers read in every way: pooling, alpha, gold; per cent.

    Row: @k | model | method | benchmark; column: pooling, kind of alpha, gold. Beside the pooled
    value of fractional alphas stands the mean over examples.
    """
    cells = []
    for m in metrics.filter(pattern=ALL).iter_rows(named=True):
        if m["value_pooled"] is None:
            continue
        name = f"@{m['k']} | {m['model']} | {m['method']} | {m['benchmark']}"
        column = f"{NAMES[m['pooling']]}, {m['kind'].replace('_', ' ')}, {m['gold']} gold"
        value = 100 * m["value_pooled"]
        cells.append(cell("kg_choices", name, column, value, m["examples"], percent(m)))
        if abs(m["value_mean"] - m["value_pooled"]) > 1e-12:
            mean = 100 * m["value_mean"]
            cells.append(cell("kg_choices", name, f"{column}, example mean", mean, m["examples"]))
    return table.build(cells) if cells else None


def patterns(metrics: pl.DataFrame, most: int = 5) -> pl.DataFrame | None:
    """`kg_patterns` (Figure 4): metric @1 of the most frequent patterns of every benchmark.

    `metrics` with patterns, and hierarchy's broken by the class two up. Row: benchmark | place |
    pattern; column: model | method, and its numerator and denominator. Best prompt, exact, own.
    An undefined value has no cell. n: examples. Frequent means in the evaluation sample, ties by
    name.
    """
    rows = metrics.filter((pl.col("pattern") != ALL) & (pl.col("k") == 1))
    rows = rows.filter(kind="exact", gold="own", pooling="best")
    cells = []
    for benchmark in BENCHMARKS:
        own = rows.filter(benchmark=benchmark)
        sizes = own.group_by("pattern").agg(pl.col("examples").max())
        frequent = sizes.sort(["examples", "pattern"], descending=[True, False]).head(most)
        for place, pattern in enumerate(frequent["pattern"].to_list(), 1):
            name = f"{benchmark} | {place} | {pattern}"
            for m in own.filter(pattern=pattern).sort("model", "method").iter_rows(named=True):
                column = f"{m['model']} | {m['method']}"
                make = partial(cell, "kg_patterns", name, n=m["examples"])
                if m["value_pooled"] is not None:
                    value, interval = 100 * m["value_pooled"], percent(m)
                    cells.append(make(column, value=value, interval=interval))
                cells.append(make(f"{column}, numerator", value=m["numerator"]))
                cells.append(make(f"{column}, denominator", value=m["denominator"]))
    return table.build(cells) if cells else None


def prompts(study: Study) -> pl.DataFrame | None:
    """`kg_prompts`: how the best alpha grows with the number of prompts; per cent.

    Mean over triples of the expected best of so many random prompts, exact alpha, own gold. Row: @k
    | model | method | benchmark; column: number of prompts. n: triples. It rises without any gain
    in knowledge: that is what the oracle adds.
    """
    cells = []
    for a in study.answers:
        found = alpha.by_number_of_prompts(a.alphas.filter(alpha_kind="exact", gold="own"))
        for m in found.iter_rows(named=True):
            name = f"@{m['k']} | {a.probe.model} | {a.probe.method} | {a.probe.benchmark}"
            column = f"{m['prompts']} prompts" if m["prompts"] > 1 else "1 prompt"
            cells.append(cell("kg_prompts", name, column, 100 * m["alpha"], m["triples"]))
    return table.build(cells) if cells else None


def wordings(study: Study) -> pl.DataFrame | None:
    """`kg_wordings`: alpha @1 by kind of wording (lama, own, paraphrase, synonym ...), per cent.

    Mean over triples of the mean over their prompts of the kind; exact, own gold. Row: model |
    method | benchmark; n: triples that were asked with the kind.
    """
    cells = []
    for a in study.answers:
        benchmark = study.benchmarks[a.probe.benchmark]
        kinds = benchmark.prompts.select("relation", "kind", template="index")
        found = a.alphas.filter(k=1, alpha_kind="exact", gold="own")
        found = found.join(benchmark.items.select("item", "relation"), on="item")
        found = found.join(kinds, on=["relation", "template"])
        means = found.group_by("kind", "item").agg(ordered_mean("alpha"))
        name = f"{a.probe.model} | {a.probe.method} | {a.probe.benchmark}"
        for (kind,), group in sorted(means.group_by("kind"), key=lambda g: str(g[0])):
            values = group.sort("item")["alpha"].to_numpy()
            weights = resamples(np.zeros(len(values), dtype=np.int64), 1000, study.seed)
            drawn = bootstrap_mean(values, weights)
            (low, high), _ = of_share(drawn, float(values.sum()), len(values))
            interval = (100 * low, 100 * high)
            value = 100 * float(values.mean())
            cells.append(cell("kg_wordings", name, str(kind), value, len(values), interval))
    return table.build(cells) if cells else None


def asked(study: Study) -> pl.DataFrame | None:
    """`kg_asked`: what was asked and could not be: triples, prompts, excluded, verbose answers.

    Row: model | method | benchmark. Columns: triples in the sample; of them asked; prompts a
    triple; golds of these triples (every object that has a label), and where candidates were
    ranked, how many of them the lists lacked and were given; first answers that hold the label
    among other words, per cent of all first answers (generating models); examples left out for all
    models since one could not be asked.
    """
    cells = []
    for a in study.answers:
        benchmark = study.benchmarks[a.probe.benchmark]
        name = f"{a.probe.model} | {a.probe.method} | {a.probe.benchmark}"
        total = benchmark.examples.height
        per_item = a.alphas.group_by("item").agg(pl.col("template").n_unique())
        make = partial(cell, "kg_asked", name, n=total)
        cells.append(make("triples", value=total))
        cells.append(make("triples asked", value=per_item.height))
        if per_item.height:
            cells.append(
                make(
                    "prompts a triple",
                    value=a.alphas.unique(["item", "template"]).height / per_item.height,
                )
            )
        golds = int(benchmark.items["answers"].list.len().sum())
        cells.append(cell("kg_asked", name, "golds", golds, benchmark.items.height))
        if a.probe.method.startswith(RANKED):
            added = sum(json.loads(told).get("golds_added", 0) for told in benchmark.items["meta"])
            cells.append(cell("kg_asked", name, "golds added to the candidates", added, golds))
        held, of = a.verbose
        if of:
            cells.append(cell("kg_asked", name, "verbose, %", 100 * held / of, of))
        own = study.left_out & set(benchmark.examples["example"])
        cells.append(make("examples left out", value=len(own)))
    return table.build(cells) if cells else None


def matching(study: Study) -> pl.DataFrame | None:
    """`kg_matching`: first written answers that are right, and by which rule of metrics/matching.

    Row: model | method | benchmark. Columns: verbatim (letter by letter the label), then how many
    each further rule adds, aliases last; and the share that is right verbatim and in all, per cent,
    with Wilson's interval. Own gold; n: first answers, one per triple and prompt.
    """
    cells = []
    for a in study.answers:
        n = sum(a.ways.values())
        if not n:
            continue
        name = f"{a.probe.model} | {a.probe.method} | {a.probe.benchmark}"
        make = partial(cell, "kg_matching", name, n=n)
        for rule in WAYS:
            column = rule if rule == VERBATIM else f"+ {rule}"
            cells.append(make(column, value=a.ways[rule]))
        for column, right in (("verbatim, %", a.ways[VERBATIM]), ("all rules, %", n - a.ways[""])):
            low, high = wilson(right, n)
            cells.append(make(column, value=100 * right / n, interval=(100 * low, 100 * high)))
    return table.build(cells) if cells else None


def hallucination(metrics: pl.DataFrame) -> pl.DataFrame | None:
    """`kg_bias`: bias by relation, with the rate of wrong answers beside it, in aggregate only.

    Row: model | method | relation; best prompt, exact, own gold, @1. A relation with fewer than ten
    triples has only its count.
    """
    rows = metrics.filter(benchmark="bias", k=1, kind="exact", gold="own", pooling="best")
    rows = rows.filter(pl.col("pattern") != ALL)
    cells = []
    for m in rows.sort("model", "method", "pattern").iter_rows(named=True):
        name = f"{m['model']} | {m['method']} | {m['pattern']}"
        cells.append(cell("kg_bias", name, "triples", m["examples"], m["examples"]))
        if m["value_pooled"] is not None and m["examples"] >= 10:
            low, high = percent(m) or (0.0, 0.0)
            value, n = 100 * m["value_pooled"], m["examples"]
            cells.append(cell("kg_bias", name, "right, %", value, n, (low, high)))
            wrong = (100 - high, 100 - low)
            cells.append(cell("kg_bias", name, "wrong, %", 100 - value, n, wrong))
    return table.build(cells) if cells else None


def percent(m: Mapping[str, Any]) -> tuple[float, float] | None:
    """The interval of a row of METRICS in per cent."""
    return None if m["low"] is None else (100 * m["low"], 100 * m["high"])
