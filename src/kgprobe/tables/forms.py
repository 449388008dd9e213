"""Comparison of prompt formats: the same items in different contexts, scored the same way.

A format is a value of `prompt`; `templates` is the raw one. Accuracy is over the items asked in the
format, the raw one's over the sampled items; a difference is paired, over the items of both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

from kgprobe.tables.answers import Probe, choosable, questions, recorded
from kgprobe.tables.results import Number
from kgprobe.tables.study import Study
from kgprobe.tables.views import View
from kgprobe.templates import FORMS

#: the subset of a benchmark that is asked in prompt formats
SLICE = "forms"
RAW = "templates"
#: counts in the record of a format (probes/jobs/forms.py) -> the metric
COUNTS = {
    "items": "drawn",
    "too_long": "too long",
    "unwritten": "not written",
    "without_example": "without example",
    "fewer_examples": "fewer examples",
    "still_right": "examples still right",
}
WORDS = {
    ("prompt", RAW): "raw",
    ("prompt", "few"): "examples",
    ("prompt", "few_shuffled"): "examples, answers shuffled",
    ("metric", "accuracy"): "right, %",
    ("metric", "difference"): "less the raw form",
    ("group", ""): "all",
}
WHERE = {"slice": [SLICE], "prompt": [RAW, *FORMS]}
ROWS = ["benchmark", "group", "model", "method", "demonstrations", "prompt"]
HEADS = {"prompt": "form", "demonstrations": "examples"}
VIEWS = (
    View(
        "forms",
        "Forms of asking",
        where={**WHERE, "metric": ["accuracy", "difference"]},
        rows=ROWS,
        heads=HEADS,
        words=WORDS,
        caption="A sample of the items with the first template of their relation; the same options "
        "are scored, or an answer is written, after another text: a question, the question in the "
        "model's chat template, or sentences about other subjects. Shuffled: these sentences with "
        "permuted answers. The difference is paired, over the items that both were asked.",
    ),
    View(
        "forms_asked",
        "Question formats: what could not be asked",
        where={**WHERE, "metric": list(COUNTS.values())},
        rows=ROWS,
        heads=HEADS,
        words=WORDS,
        usual=0,
        caption="Items. Too long for the model, or without any usable demonstration: left out. Not "
        "written: too long, a mask slot that is not at the end, or refused by the server. "
        "Demonstrations never name the subject of the item, and its answers only if their "
        "relation has no other; if there are fewer than requested, all of them are used. "
        "Some shuffled demonstrations are still right if answers repeat.",
    ),
)


def estimates(
    formed: Mapping[Probe, str | Path],
    judged: Mapping[Probe, pl.DataFrame],
    folders: Mapping[str, Path],
    seed: int,
    by_relation: bool = False,
) -> Iterator[Number]:
    """Yield every number of prompt formats. `formed`: files of probes in a format; `judged`: item,
    template, hit of these and of the probes without a format, one for each. `by_relation`: also by
    relation (OntoProbe's tasks). Raises ValueError for a format without its raw probe."""
    families: dict[Probe, list[Probe]] = {}
    for probe in formed:
        families.setdefault(replace(probe, prompt=RAW, parameters=None), []).append(probe)
    plain = {replace(probe, parameters=None): answers for probe, answers in judged.items()}
    for base, probes in families.items():
        if base not in plain:
            raise ValueError(f"{base.model} on {base.benchmark}: forms need a row of prompt {RAW}")
        items, candidates, prompts = questions(folders[base.benchmark])
        # a causal model has no row if it cannot fill the mask slot inside the first template,
        # whatever it generated under another one
        first = prompts.group_by("relation").agg(template=pl.col("index").min())
        # items without a wrong option are no question to rank
        asked = choosable(items, candidates) if base.method.startswith("sentence") else items
        named = asked.select("item", "relation").join(first, on="relation")
        by_probe = {probe: _first(judged[probe], named) for probe in probes}
        sampled = pl.concat(by_probe.values()).select("item").unique()
        raw_hits = _first(plain[base], named).join(sampled, on="item", how="semi")
        study = Study(items.join(sampled, on="item", how="semi"), candidates, prompts, seed)
        parts = ["", *sorted(raw_hits["relation"].unique())] if by_relation else [""]
        for part in parts:
            of = Number(**base.dimensions, group=part, slice=SLICE)
            yield from _accuracy(study, of, _of(raw_hits, part))
        for probe in probes:
            record = recorded(formed[probe], "model").get("form", {})
            shown = {"demonstrations": k} if (k := record.get("demonstrations")) else {}
            of = Number(**probe.dimensions, slice=SLICE, setting=shown)
            for part in parts:
                here = _of(by_probe[probe], part)
                yield from _accuracy(study, of.but(group=part), here)
                yield from _difference(study, of.but(group=part), here, _of(raw_hits, part))
            for name, metric in COUNTS.items():
                if name in record:
                    yield of.but(metric=metric, value=record[name], n=record["items"])


def _first(answers: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    """Return item, relation, hit under the first template (`named`: item, relation, template)."""
    rows = answers.select("item", "template", "hit").join(named, on=["item", "template"])
    return rows.select("item", "relation", "hit").sort("item")


def _of(hits: pl.DataFrame, relation: str) -> pl.DataFrame:
    return hits.filter(relation=relation) if relation else hits


def _accuracy(study: Study, of: Number, hits: pl.DataFrame) -> Iterator[Number]:
    if hits.height:
        yield of.but(metric="accuracy", **study.estimate(hits, "hit", is_proportion=True))


def _difference(
    study: Study, of: Number, formed: pl.DataFrame, raw: pl.DataFrame
) -> Iterator[Number]:
    """Yield the accuracy of a format minus that of the raw one, paired by item."""
    both = formed.join(raw.select("item", raw="hit"), on="item").sort("item")
    if both.height:
        of = of.but(metric="difference", setting={"instead": f"{of.model}, {RAW}"})
        yield of.but(**study.estimate(both, "hit", less="raw"))
