"""The papers' printed tables as RESULTS with our names, so that the same comparisons apply.

A claim about a table can then be checked where it was printed. Model sizes that a paper does not
print are those of the table of models; none was published for GPT-4.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from kgprobe.metrics.attributes import KEYS
from kgprobe.tables import results
from kgprobe.tables.attributes import published as attributes
from kgprobe.tables.autoprompt import published as autoprompt
from kgprobe.tables.bear import published as bear
from kgprobe.tables.claims.comparison import with_models
from kgprobe.tables.ontoprobe import values as ontoprobe
from kgprobe.tables.ontoprobe.choices import PRINTED_MODES
from kgprobe.tables.published import read_tsv
from kgprobe.tables.results import Number

Models = Mapping[str, Mapping[str, str]]
#: kind and parameters (millions) of printed models that are not on BEAR's leaderboard, so that the
#: printed results do not depend on the table of models. GPT-4's stands for any number above GPT-3's
#: 175 billion: it is the paper's largest.
ELSEWHERE = {
    "bert-base-uncased": ("masked", "110"),
    "bert-large-uncased": ("masked", "335"),
    "text-davinci-003": ("api", "175000"),
    "gpt-4": ("api", "1000000"),
    "gpt-3.5-turbo": ("api", ""),
    "t5-base": ("seq2seq", "220"),
}
#: printed name, in both spellings -> our prompt
PROMPTS = {name: prompt for prompt, names in autoprompt.NAMES.items() for name in names if name}
#: prompt and method of OntoProbe's printed soft templates, and of its others
KINDS = {"soft": {"prompt": "soft", "method": "soft"}}
MANUAL = {"prompt": "templates", "method": "cloze"}
#: Table 2 has a single setting
ATTRIBUTES = {"alpha": "exact", "gold": "own", "pooling": "best"}


def read(folder: str | Path, models: Models) -> pl.DataFrame:
    """Read all printed numbers in `folder`, in the form of `comparison.with_models`. `models`: the
    table of models, whose names replace the printed ones of the same model."""
    place = Path(folder)
    # of several models with the same weights, the first one's name
    ordered = reversed([*models.items()])
    names = {row["published"]: name for name, row in ordered if row.get("published")}
    frames = [
        results.frame("bear", _bear(place, names)),
        results.frame("ontoprobe", _ontoprobe(place)),
        results.frame("attributes", _attributes(place)),
        results.frame("autoprompt", _autoprompt(place)),
    ]
    return with_models(pl.concat(frames), _printed_models(place, models, names))


def _printed_models(folder: Path, models: Models, names: Mapping[str, str]) -> Models:
    """Add kind and parameters of the printed models; for BEAR's, from its leaderboard."""
    rows = {name: dict(row) for name, row in models.items()}
    for name, (kind, size) in ELSEWHERE.items():
        rows[name] = {"kind": kind, "source": "", "parameters": size}
    for row in bear.read(folder).models().iter_rows(named=True):
        name, size = names.get(row["model"], row["model"]), str(row["parameters"] / 1e6)
        rows[name] = {"kind": row["kind"], "source": "", "parameters": size}
    return rows


def _bear(folder: Path, names: Mapping[str, str]) -> Iterator[Number]:
    """Yield the leaderboard: accuracies of the paper's models, later ones with slice `later`; SEM;
    baseline; gpt2 remeasured with a BOS token."""
    given = bear.read(folder)
    base = Number(benchmark="bear_released", n=bear.COMPLETE_ITEMS, metric="accuracy")
    asked = base.but(prompt="templates", method="sentence")
    for row in given.leaderboard.iter_rows(named=True):
        if row["kind"] == "baseline":
            yield base.but(model="random", value=row["score"])
            yield base.but(model="majority", value=row["score"])
            continue
        part = "" if row["listed"] == "paper" else row["listed"]
        of = asked.but(model=names.get(row["model"], row["model"]), slice=part)
        yield of.but(value=row["score"])
        yield of.but(metric="SEM", value=row["sem"])
    # the later measurement prepended a BOS token for every model; OPT has one anyway
    for row in given.remeasured.filter(model="gpt2").iter_rows(named=True):
        yield asked.but(model="gpt2-bos", slice="later", value=row["lm_pub_quiz"])


def _ontoprobe(folder: Path) -> Iterator[Number]:
    given = ontoprobe.published(folder)
    base = Number(benchmark="onto_released")
    for row in given["memorizing"].iter_rows(named=True):
        of = base.but(group=row["task"], metric=row["metric"], value=row["value"])
        if row["model"] == "frequency-baseline":
            yield of.but(model="frequency", setting={"choice": "none"})
        else:
            kind = KINDS.get(row["template"], MANUAL)
            yield of.but(model=row["model"], setting={"choice": "oracle"}, **kind)
    for row in given["configurations"].iter_rows(named=True):
        setting = {
            "masks": {"multiple": "multi"}.get(row["masks"], row["masks"]),
            "pooling": row["pooling"],
            "template": row["template"],
        } | ({"loss": row["loss"]} if row["loss"] else {})
        for metric in ontoprobe.METRICS:
            if row[metric] is not None:
                of = base.but(group=row["task"], model=row["model"], metric=metric)
                kind = KINDS.get(row["template"], MANUAL)
                yield of.but(value=row[metric], setting=setting, **kind)
    chosen = base.but(metric="accuracy", prompt="templates", method="choice")
    for row in given["choice"].iter_rows(named=True):
        of = chosen.but(setting={"scoring": PRINTED_MODES[row["model"]]})
        yield of.but(model=row["model"], group=row["task"], value=row["accuracy"])
    for row in given["reasoning"].iter_rows(named=True):
        of = chosen.but(setting={"scoring": "answer", "premise": row["premise"]})
        group = "" if row["rule"] == "average" else row["rule"]
        yield of.but(model="gpt-3.5-turbo", group=group, value=row["accuracy"])


def _attributes(folder: Path) -> Iterator[Number]:
    scores = read_tsv(folder / "attributes_scores.tsv", attributes.SCORES)
    for row in scores.iter_rows(named=True):
        base = Number(metric="value", prompt="templates", method="fill", model=row["model"])
        for k in KEYS:
            if row[f"at_{k}"] is not None:
                of = base.but(benchmark=row["benchmark"], setting={**ATTRIBUTES, "k": k})
                yield of.but(value=row[f"at_{k}"])


def _autoprompt(folder: Path) -> Iterator[Number]:
    """Yield Tables 1, 2, 4 to 6 with our names; `relation_lstm` is the supervised extractor, other
    supervised systems have no prompt."""
    long = {short: name for name, short in autoprompt.SHORT.items()}
    for number in autoprompt.read(folder):
        prompt = PROMPTS.get(number.prompt, number.prompt)
        if prompt == "supervised":
            prompt = "relation_lstm" if number.model == "lstm" else ""
        model = long.get(number.model, number.model)
        yield number.but(model=model, prompt=prompt, method="predict", published=None, source=None)
