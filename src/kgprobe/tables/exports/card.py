"""Dataset card (README.md) of a Hugging Face data set of BEAR sets."""

import json
from collections.abc import Iterable, Sequence

import polars as pl

from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.benchmarks.bear.released import SIZES
from kgprobe.contracts import MEANING
from kgprobe.tables.answers import gold_ids
from kgprobe.tables.exports.folders import scalar
from kgprobe.tables.exports.huggingface import FILE, Asked
from kgprobe.tables.exports.origins import BEAR as PAPER
from kgprobe.tables.exports.origins import ONTOPROBE, SOURCES, Source

#: description of the questions, part of every card
WHAT = (
    "Relational knowledge as multiple choice: one sentence per answer option, ranked by a language "
    "model's (pseudo-)log-likelihood."
)
BALANCED = (
    "Every relation is balanced: each of its answers has the same number of instances, so that a "
    "constant guess scores at chance."
)
UNBALANCED = (
    "Relations are not balanced: some answers have more instances than others, or questions have "
    "different options, so a constant guess may score above chance."
)
#: numbers of instances and templates of the released BEAR and BEAR-big
COMPLETE = tuple((size, 3) for size in SIZES)
RELEASED = "This is the released BEAR with its sentences filled in and otherwise unchanged."
PART = (
    "These questions are from the released BEAR, but not all of it, or with other templates: {:,} "
    "instances, each with {} templates. **It is not the paper's set**, and scores on it are not "
    "comparable with the paper's."
)
LETTERED = (
    "Ontological knowledge as multiple choice (OntoProbe, Wu et al. 2023, section 5.2): questions "
    "about types, superclasses, implied properties, domains and ranges, and about the six RDFS "
    "entailment rules, with or without their first premise. The options have letters; the wrong "
    "ones are drawn at random."
)


def write(name: str, questions: Asked, sources: Sequence[Source], paper: str = PAPER) -> str:
    """Write the text of README.md: YAML header, description, columns, size, balance, licenses, and
    the paper to cite."""
    licenses = [(s.title, s.license, s.attribution, s.url) for s in sources]
    if isinstance(questions, BearFrames):
        rows, columns = _rows(questions), "SENTENCES"
        balance = BALANCED if has_balanced_options(questions) else UNBALANCED
        what = _what(sources, balance, questions)
        size = "## Size, balance and baselines", _balance(name, questions)
    else:
        rows, columns, paper, what = questions.height, "LETTERED", ONTOPROBE, LETTERED
        counts = questions.group_by("task", "premise").len().sort("task", "premise").rows()
        size = "## Size", _table(["task or rule", "first premise", "questions"], counts)
    parts = [_head(name, rows, sources), f"# {name}", what]
    parts += ["## Columns", _table(["column", "content"], MEANING[columns].items()), *size]
    parts += ["## Licenses", _table(["source", "license", "name", "where"], licenses)]
    return "\n\n".join([*parts, "## Citation", paper]) + "\n"


def _head(name: str, rows: int, sources: Sequence[Source]) -> str:
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")]
    bounds += [(1_000_000, "100K<n<1M")]
    size = next((text for bound, text in bounds if rows < bound), "1M<n<10M")
    # in the spelling of the hub
    licenses = dict.fromkeys(f"- {scalar(source.license.lower())}" for source in sources)
    lines = ["---", "license:", *licenses, f"pretty_name: {json.dumps(name)}"]
    languages = dict.fromkeys(f"- {scalar(tag)}" for source in sources for tag in source.languages)
    lines += ["language:", *languages] if languages else []
    lines += ["task_categories:", "- multiple-choice"]
    lines += ["size_categories:", f"- {size}", "configs:", f"- config_name: {scalar(name)}"]
    lines += ["  data_files:", "  - split: test", f"    path: {scalar(f'{name}/{FILE}')}"]
    return "\n".join([*lines, "---"])


def has_balanced_options(sets: BearFrames) -> bool:
    """Return whether the questions of each relation share their options, and every option is right
    for equally many questions, so that a constant guess scores at chance."""
    sizes = sets.candidates.group_by(candidates="set").agg(options=pl.len())
    golds = sets.items.join(sizes, on="candidates").explode("answers")
    counts = golds.group_by("relation", "candidates", "answers", "options").len()
    even = counts.group_by("relation").agg(
        (pl.col("candidates").n_unique() == 1)
        & (pl.col("len").n_unique() == 1)
        & (pl.col("options").first() == pl.len())
    )
    return bool(even["candidates"].all())


def _what(sources: Sequence[Source], balance: str, sets: BearFrames) -> str:
    what = f"{WHAT} {balance}"
    if SOURCES["bear"] in sources:
        counts = sets.items.height, len(set(sets.prompts["index"]))
        is_whole = counts in COMPLETE and set(sets.prompts["kind"]) == {"manual"}
        return f"{what}\n\n{RELEASED if is_whole else PART.format(*counts)}"
    titles = " and ".join(source.title for source in sources)
    source = f" The statements come from {titles}." if titles else ""
    return (
        f"{what}\n\nkgprobe rebuilt this set from the paper's description.{source} **It is not the "
        "paper's set**, and scores on it are not comparable with the paper's."
    )


def _balance(name: str, sets: BearFrames) -> str:
    heads = ["configuration", "relations", "instances", "rows", "options"]
    heads += ["random baseline", "majority baseline", "answer in subject", "any option in subject"]
    sizes = sets.candidates.group_by(candidates="set").len("k")
    sized = sets.items.join(sizes, on="candidates", how="left", maintain_order="left")
    options = sized["k"].to_numpy()
    relations, instances = sets.items["relation"].n_unique(), sets.items.height
    right = sets.items["answers"].list.len().to_numpy()
    golds = gold_ids(sets.items, sets.candidates).group_by("relation", "id").len()
    most = golds.group_by("relation").agg(pl.col("len").max())["len"].sum()
    chance = [f"{float((100 * right / options).mean()):.3f} %", f"{100 * most / instances:.3f} %"]
    bounds = f"{options.min()} to {options.max()}"
    counts = [relations, f"{instances:,}", f"{_rows(sets):,}"]
    return _table(heads, [[name, *counts, bounds, *chance, *overlaps(sets)]])


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a table in Markdown."""
    cells = ([str(cell).replace("|", r"\|") for cell in row] for row in (heads, *rows))
    lines = ["".join(f"| {cell} " if cell else "| " for cell in row) for row in cells]
    return "\n".join([f"{lines[0]}|", "|---" * len(heads) + "|", *(f"{x}|" for x in lines[1:])])


def overlaps(sets: BearFrames) -> tuple[int, int]:
    """Count the items whose subject contains (ignoring case) a correct option, and any option."""
    labels = {
        str(name[0]): [label.casefold() for label in group.sort("index")["label"]]
        for name, group in sets.candidates.group_by("set")
    }
    gold = anyone = 0
    for subject, options, answers in sets.items.select("subject", "candidates", "answers").rows():
        held = [label in subject.casefold() for label in labels[options]]
        gold += any(held[answer] for answer in answers)
        anyone += any(held)
    return gold, anyone


def _rows(sets: BearFrames) -> int:
    """Count the rows of the data set: instances times templates."""
    templates = sets.prompts.group_by("relation").len("templates")
    return int(sets.items.join(templates, on="relation")["templates"].sum())
