"""The printed figures of AutoPrompt (Shin et al. 2020), matched to ours.

A printed value is given next to ours only if the model is the same and our set is the complete one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from kgprobe.tables.published import read_tsv
from kgprobe.tables.results import Number

#: numbers of test examples in the complete sets; a subset gets no printed value
WHOLE = {
    "auto_lama": 34_039, "auto_lama_trex": 7_266, "auto_lama_roberta": 29_520,
    "auto_sst2": 1_821, "auto_sick": 4_927,
}  # fmt: skip
#: sets that are never the paper's: not all of its relations are public, nor its training sentences,
#: nor which pairs its balanced sets consist of
APART = ("auto_re", "auto_re_perturbed", "auto_sick_3way", "auto_sick_2way")
#: file -> the number of the printed table
TABLES = {"sentiment": 1, "inference": 2, "facts": 4, "relation_extraction": 5, "relations": 6}
#: column of values -> its dimensions; the sets of facts are a column of their own
VALUES: Mapping[str, Mapping[str, str]] = {
    "dev": {"benchmark": "auto_sst2", "metric": "accuracy", "slice": "dev"},
    "test": {"benchmark": "auto_sst2", "metric": "accuracy"},
    "standard": {"benchmark": "auto_sick", "metric": "accuracy"},
    "three_way": {"benchmark": "auto_sick_3way", "metric": "accuracy"},
    "two_way": {"benchmark": "auto_sick_2way", "metric": "accuracy"},
    "mrr": {"metric": "MRR"},
    "p_at_10": {"metric": "P@10"},
    "p_at_1": {"metric": "P@1"},
    "original": {"benchmark": "auto_re", "metric": "P@1"},
    "perturbed": {"benchmark": "auto_re_perturbed", "metric": "P@1"},
    "train": {"model": "", "metric": "search facts"},
    "lama": {"prompt": "LAMA", "metric": "P@1"},
    "lpaqa": {"prompt": "LPAQA top-1", "metric": "P@1"},
    "autoprompt_5": {"prompt": "AutoPrompt 5 tokens", "metric": "P@1"},
}
#: other columns -> the dimension that they contain
NAMED = {
    "set": "benchmark", "relation": "group", "model": "model", "prompt": "prompt",
    "method": "prompt",
}  # fmt: skip
SETS = {"original": "auto_lama", "trex": "auto_lama_trex", "original-roberta": "auto_lama_roberta"}
#: Table 6 is of one model; Tables 1 and 2 print bert-base, which the released code uses cased
BERT = "bert-base-cased"
SHORT = {BERT: "bert-base"}
#: our prompt -> its names in the printed tables
NAMES = {
    "": ("",),
    "majority": ("majority",),
    "linear_probe": ("linear probe",),
    "finetuned": ("fine-tuned",),
    "manual": ("LAMA", "manual prompt"),
    "lpaqa": ("LPAQA top-1", "LPAQA"),
    "searched": ("AutoPrompt 5 tokens", "AutoPrompt", "autoprompt"),
    "searched_7": ("AutoPrompt 7 tokens",),
}
#: benchmark, group, metric, slice, model, prompt
Key = tuple[str, str, str, str, str, str]


def read(folder: str | Path) -> list[Number]:
    """Read every printed value, in per cent, from the five tables in the published folder."""
    figures = []
    for name, table in TABLES.items():
        source = f"Shin et al. 2020, Table {table}"
        for row in read_tsv(Path(folder) / f"autoprompt_{name}.tsv").iter_rows(named=True):
            who = {NAMED[c]: SETS.get(v, v) for c, v in row.items() if c in NAMED and v}
            if name == "relations":
                who |= {"benchmark": "auto_lama", "model": BERT}
            for column, what in VALUES.items():
                if row.get(column):
                    value, of = float(row[column]), Number(method="published")
                    of = of.but(value=value, published=value, source=source)
                    figures.append(of.but(**{**who, **what}))
    return figures


def by_key(figures: Iterable[Number]) -> dict[Key, Number]:
    """Index the printed values by their dimensions."""
    return {(f.benchmark, f.group, f.metric, f.slice, f.model, f.prompt): f for f in figures}


def beside(number: Number, figures: Mapping[Key, Number], name: str, size: int) -> Number:
    """Add the printed value to a number, if there is one for the same model (by its printed name)
    and, except for single relations, as many test examples."""
    is_whole = WHOLE.get(number.benchmark, size) == size or bool(number.group)
    if number.setting or not is_whole or number.benchmark in APART:
        return number
    for model in (name, SHORT.get(name, name), ""):
        for prompt in NAMES.get(number.prompt, ()):
            place = number.benchmark, number.group, number.metric, number.slice, model, prompt
            figure = figures.get(place)
            if figure is not None:
                return replace(number, published=figure.published, source=figure.source)
    return number
