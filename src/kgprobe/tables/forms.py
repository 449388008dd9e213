"""Forms of asking side by side: the same items under another text around them, read alike.

A form is a value of `prompt`; `templates` is the raw one. Accuracy stands on the items that were
asked in the form, the raw one's on those of the sample; a difference is paired, on items of both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.intervals import Interval
from kgprobe.tables.answers import Probe, choosable, judge_scores, questions, recorded
from kgprobe.tables.results import Number, hit_rate
from kgprobe.tables.views import View
from kgprobe.templates import FORMS

#: the part of a benchmark that is asked in forms
SLICE = "forms"
RAW = "templates"
#: what reads FILLS of a probe as item, template, hit
Written = Callable[[Probe, str | Path], pl.DataFrame]
#: what the record of a form counts (probes/jobs/forms.py) -> the metric
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
        caption="A sample of the items under the first template of their relation, the same "
        "options scored, or an answer written, behind another text: a question, the same in the "
        "model's chat template, sentences about other subjects in front. Shuffled: those sentences "
        "with each other's answers. The difference is paired, over the items that both were asked.",
    ),
    View(
        "forms_asked",
        "Forms of asking: what could not be asked",
        where={**WHERE, "metric": list(COUNTS.values())},
        rows=ROWS,
        heads=HEADS,
        words=WORDS,
        usual=0,
        caption="Items. Too long for the model, and without any sentence that may stand in front: "
        "left out. Not written: too long, a gap that is not at the end, or a server's refusal. "
        "Sentences never name the item's subject, and its answers only where their "
        "relation has no other; with fewer of them than asked for, as many as there are stand "
        "there. Of shuffled ones some are still right where answers repeat.",
    ),
)


def numbers(
    asked: Mapping[Probe, str | Path],
    raw: Mapping[Probe, str | Path],
    folders: Mapping[str, Path],
    aggregation: str,
    seed: int,
    by_relation: bool = False,
    written: Written | None = None,
) -> Iterator[Number]:
    """Every number of forms. `asked`: answers of the probes in a form, `raw`: of those without, of
    which each form has one; `aggregation`: what SCORES of both are read by. `by_relation`: of each
    by itself as well (OntoProbe's tasks). `written`: what reads FILLS, where answers are written.
    Raises ValueError for a form without its raw probe."""
    families: dict[Probe, list[Probe]] = {}
    for probe in asked:
        families.setdefault(replace(probe, prompt=RAW, parameters=None), []).append(probe)
    plain = {replace(probe, parameters=None): path for probe, path in raw.items()}
    for base, probes in families.items():
        if base not in plain:
            raise ValueError(f"{base.model} on {base.benchmark}: forms need a row of prompt {RAW}")
        hits = partial(_hits, questions(folders[base.benchmark]), aggregation, written)
        found = {probe: hits(probe, asked[probe]) for probe in probes}
        sampled = pl.concat(found.values()).select("item").unique()
        own = hits(base, plain[base]).join(sampled, on="item", how="semi")
        parts = ["", *sorted(own["relation"].unique())] if by_relation else [""]
        for part in parts:
            yield from _accuracy(Number(**base.asked, group=part, slice=SLICE), _of(own, part))
        for probe in probes:
            told = recorded(asked[probe], "model").get("form", {})
            shown = {"demonstrations": k} if (k := told.get("demonstrations")) else {}
            of = Number(**probe.asked, slice=SLICE, setting=shown)
            for part in parts:
                here = _of(found[probe], part)
                yield from _accuracy(of.but(group=part), here)
                yield from _difference(of.but(group=part), here, _of(own, part), seed)
            for name, metric in COUNTS.items():
                if name in told:
                    yield of.but(metric=metric, value=told[name], n=told["items"])


def _hits(
    asked: Sequence[pl.DataFrame],
    aggregation: str,
    written: Written | None,
    probe: Probe,
    path: str | Path,
) -> pl.DataFrame:
    """item, relation, hit of a probe under the first template, in order of the items; `asked`:
    ITEMS, CANDIDATES and PROMPTS."""
    items, candidates, prompts = asked
    if probe.method.startswith("sentence") or written is None:
        items = choosable(items, candidates)
        scores = schema.read(path, schema.SCORES).join(items.select("item"), on="item", how="semi")
        first = scores.filter(pl.col("template") == pl.col("template").min().over("item"))
        found = judge_scores(first, items, aggregation, str(path))
    else:
        # a causal model writes nothing into a gap inside the first template: no row, whatever it
        # wrote under another one
        first = prompts.group_by("relation").agg(template=pl.col("index").min())
        named = items.select("item", "relation").join(first, on="relation")
        found = written(probe, path).join(named, on=["item", "template"])
    return found.select("item", "relation", "hit").sort("item")


def _of(found: pl.DataFrame, relation: str) -> pl.DataFrame:
    return found.filter(relation=relation) if relation else found


def _accuracy(of: Number, found: pl.DataFrame) -> Iterator[Number]:
    if found.height:
        yield of.but(metric="accuracy", **hit_rate(found["hit"].to_numpy()))


def _difference(of: Number, found: pl.DataFrame, raw: pl.DataFrame, seed: int) -> Iterator[Number]:
    """Of a form less the raw one, paired by item."""
    both = found.join(raw.select("item", raw="hit"), on="item").sort("item")
    if not both.height:
        return
    hits, relations = both.select("hit", "raw").to_numpy(), both["relation"].to_list()
    value, interval = bootstrap(hits, relations, seed=seed).difference(0, 1)
    bounds: Interval | None = interval.times(100) if interval else None
    instead = {"instead": f"{of.model}, {RAW}"}
    of = of.but(metric="difference", setting=instead, n=both.height)
    yield of.but(value=100 * value, interval=bounds)


def pairs(
    probes: Sequence[Probe], files: Sequence[str | Path]
) -> tuple[dict[Probe, str | Path], dict[Probe, str | Path]]:
    """(probes in a form, probes of sentences or blanks without one), each with its file."""
    every = dict(zip(probes, files, strict=True))
    ranked = {p: f for p, f in every.items() if p.method.startswith(("sentence", "fill"))}
    formed = {p: f for p, f in ranked.items() if p.prompt in FORMS}
    return formed, {p: f for p, f in ranked.items() if p.prompt == RAW}
