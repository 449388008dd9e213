"""Choices that the attributes' paper leaves open, each changed by itself on stored answers.

The headline is the metric at 1 of every benchmark, as `study.HEADLINE` reads it, and the mean of
the nine. What needs other examples is named by `needing`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from kgprobe.benchmarks.attributes import sensitivity
from kgprobe.metrics.attributes import AMBIGUOUS_DENOMINATORS
from kgprobe.tables.attributes.study import BASELINE, HEADLINE, WHO, Study
from kgprobe.tables.estimate import as_cells
from kgprobe.tables.switches import Turn

PAPER = "attributes"
#: switch -> the column of alphas that has its values
COLUMNS = {"alpha": "kind", "gold": "gold", "pooling": "pooling", "k": "k"}
DENOMINATOR = "wording.ambiguous_denominator"
AGGREGATES = ("pooled", "mean of examples")
#: key of the config -> benchmark, flag of what the other value drops, value here, the other value
FLAGGED = {
    "attributes.ambiguous.drop_same_object": ("ambiguous", "same_object", "false", "true"),
    "attributes.hierarchy.direct": ("hierarchy", "direct_edge", "keep", "drop"),
}
#: what a benchmark was built with: benchmark -> its settings by name, from its files
Built = Mapping[str, Mapping[str, Any]]
#: a value that the files of a run do not have
NOT_RECORDED = "not recorded"


def turns(study: Study) -> Iterator[Turn]:
    """Every reading of the answers at each of its other values, all else as in HEADLINE."""
    every = _probe_alphas(study)
    before = headlines(study, every)
    for switch, column in COLUMNS.items():
        for other in every[column].unique().sort().to_list():
            if other != HEADLINE[column]:
                after = headlines(study, every, **{column: other})
                yield from _turns(switch, str(HEADLINE[column]), str(other), before, after)
    yield from _turns("aggregate", *AGGREGATES, before, headlines(study, every, aggregate=True))
    here = study.ambiguous_denominator
    for other in AMBIGUOUS_DENOMINATORS:
        if other != here and "ambiguous" in study.benchmarks:
            after = headlines(replace(study, ambiguous_denominator=other), every)
            yield from _turns(DENOMINATOR, here, other, before, after, "ambiguous")
    for switch, (name, flag, here, other) in FLAGGED.items():
        if (marked := _flagged_examples(study, name, flag)).len():
            kept = every.filter(~pl.col("example").is_in(marked.implode()))
            yield from _turns(switch, here, other, before, headlines(study, kept), name)


def _probe_alphas(study: Study) -> pl.DataFrame:
    """The alphas of probes, without baselines."""
    return study.alphas().filter(pl.col("method") != BASELINE)


def _flagged_examples(study: Study, name: str, flag: str) -> pl.Series:
    """The examples of a benchmark that have a flag; none of one that was not asked."""
    if name not in study.benchmarks:
        return pl.Series([], dtype=pl.String)
    examples = study.benchmarks[name].examples
    return examples.filter(pl.col("flags").list.contains(flag))["example"].unique()


#: (model, prompt, method, benchmark) -> CELLS
Headlines = dict[tuple[str, ...], pl.DataFrame]


def headlines(
    study: Study, alphas: pl.DataFrame, aggregate: bool = False, **reading: Any
) -> Headlines:
    """CELLS of every probe's metric (per cent) of each benchmark, under HEADLINE but for `reading`,
    of examples that are defined. `aggregate`: the mean of their ratios, not the ratio of sums."""
    chosen = alphas.filter(**{**HEADLINE, **reading})
    if not chosen.height:
        return {}
    above, below = 100 * pl.col("numerator"), pl.col("denominator")
    if aggregate:
        above, below = above / below, pl.when(below > 0).then(1.0)
    keys = [*WHO, "benchmark"]
    rows = study.fractions(chosen).sort(*keys, "example").with_columns(
        part="benchmark", column=pl.lit(""), item="example", weight=1.0, above=above, below=below
    )  # fmt: skip
    is_defined = ~pl.col("missing") & (pl.col("below") > 0)
    return {
        tuple(map(str, key)): as_cells(group.filter(is_defined))
        for key, group in rows.group_by(keys, maintain_order=True)
    }


def _turns(
    switch: str, here: str, other: str, before: Headlines, after: Headlines, only: str = ""
) -> Iterator[Turn]:
    """The turn of every probe and benchmark (`only`: of this one), then of the mean of those
    benchmarks that are defined on both sides; of a switch of one benchmark there is none."""
    turn = partial(Turn, PAPER, switch, here, other, "value")
    means: dict[tuple[str, ...], list[tuple[pl.DataFrame, pl.DataFrame]]] = {}
    for key, cells in before.items():
        if key in after and only in ("", key[-1]):
            yield turn(cells, after[key], dict(zip([*WHO, "benchmark"], key, strict=True)))
            if cells.height and after[key].height:
                means.setdefault(key[:-1], []).append((cells, after[key]))
    for who, pairs in means.items():
        if len(pairs) > 1 and not only:
            probe = {**dict(zip(WHO, who, strict=True)), "benchmark": ""}
            sides = [pl.concat(list(frames)) for frames in zip(*pairs, strict=True)]
            yield turn(sides[0], sides[1], probe)


def needing(built: Built) -> Iterator[tuple[str, str, list[str]]]:
    """(key of the config, value here, other values) of the readings that build other examples, or
    ask in other words. Where `built` lacks a setting, every alternative is named."""
    for name, keys in {**sensitivity.ALTERNATIVES, "bidirectional": sensitivity.GRID}.items():
        for key, values in keys.items():
            here = _as_text(built.get(name, {}).get(key, NOT_RECORDED))
            # examples that a flag marks can be dropped, but not brought back
            flagged = FLAGGED.get(f"attributes.{name}.{key}")
            others = [value for value in map(_as_text, values) if value != here]
            if flagged is None or here not in (flagged[2], NOT_RECORDED):
                yield f"attributes.{name}.{key}", here, others
    source = _as_text(built.get("ambiguous", {}).get("source", NOT_RECORDED))
    yield "attributes.ambiguous.source", source, ["amber"]
    yield "wording.stop_space", NOT_RECORDED, ["true", "false"]
    yield "wording.match", NOT_RECORDED, ["label", "aliases"]


def find_missing(study: Study) -> Iterator[tuple[str, str]]:
    """(switch, what the run has not) of readings that its answers could show, and do not."""
    for switch, (name, flag, *_) in FLAGGED.items():
        if name not in study.benchmarks:
            yield switch, f"the benchmark {name}"
        elif not _flagged_examples(study, name, flag).len():
            yield switch, f"an example of {name} with the flag {flag}"
    if "ambiguous" not in study.benchmarks:
        yield DENOMINATOR, "the benchmark ambiguous"
    defined = headlines(study, _probe_alphas(study))
    for probe in study.answers:
        key = probe.model, probe.prompt, probe.method, probe.benchmark
        if key not in defined or not defined[key].height:
            yield "all", f"a defined value of {' '.join(key)} (every denominator is 0)"


def _as_text(value: Any) -> str:
    """A value as JSON and config write it, lists joined by +."""
    if isinstance(value, list | tuple):
        return "+".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
