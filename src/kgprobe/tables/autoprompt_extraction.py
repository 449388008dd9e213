"""Relation extraction: Table 5 (P@1, original and perturbed) and the examples of Table 8."""

import json
from collections.abc import Iterator, Sequence

import polars as pl

from kgprobe.metrics import prompts as metrics
from kgprobe.sampling import hash_key
from kgprobe.tables import autoprompt_constants as constants
from kgprobe.tables import autoprompt_gather as gather
from kgprobe.tables import table
from kgprobe.tables.autoprompt_gather import Answered
from kgprobe.tables.autoprompt_published import CONTEXTS, Published

PAPER = "autoprompt"
NAME = "autoprompt_table5"
#: measure of `metrics.sentences` -> what is added to the name of the column
MEASURES = {
    "any_sentence": "",
    "sentence": ", per sentence",
    "sentences": ", sentences per fact",
    "old": ", old object answered",
}
Cell = dict[str, object]


def extraction(
    found: Sequence[Answered], published: Published, seed: int = 0
) -> pl.DataFrame | None:
    """Table 5: a fact is right if it is right for any of its sentences; macro over relations.

    Beside it the share of sentences that are right, the mean number of sentences of a fact, how
    often the object that was replaced is answered on perturbed facts, and original minus perturbed
    (`memory`): what a model recalls and does not read.
    """
    asked = gather.of(found, *gather.EXTRACTION)
    cells: list[Cell] = []
    for own in asked:
        cells += _row(own, asked, published, seed)
    for own in gather.of(asked, "auto_re"):
        other = _twin(own, asked, "auto_re_perturbed")
        if other is not None:
            cells.append(_memory(own, other, seed))
    return table.build(cells) if cells else None


def _row(
    own: Answered, asked: Sequence[Answered], published: Published, seed: int
) -> Iterator[Cell]:
    rows = metrics.joined(own.examples, own.outcomes)
    per_fact, per_sentence = (gather.mean_of_draws(v, own.label) for v in metrics.sentences(rows))
    frames = [(per_fact, ["any_sentence", "sentences"]), (per_sentence, ["sentence"])]
    if own.benchmark == "auto_re_perturbed":
        frames.append((_old(rows, own.label), ["old"]))
    head = CONTEXTS[own.benchmark]
    for values, measures in frames:
        if not values.height:
            continue
        summary = metrics.summary(values, measures, seed).filter(pl.col("level") == "macro")
        for row in summary.iter_rows(named=True):
            measure = row["measure"]
            known = None
            if measure == "any_sentence":
                known = published.extraction_of(own.published, own.prompt, own.benchmark)
            scale = 1 if measure == "sentences" else 100
            yield table.cell(
                NAME,
                own.label,
                head + MEASURES[measure],
                scale * row["value"],
                row["n"],
                (scale * row["low"], scale * row["high"]),
                known,
                PAPER,
            )
    for word, _, value, n, (low, high) in constants.values(own, unit="fact", seed=seed):
        bounds = (100 * low, 100 * high)
        yield table.cell(NAME, own.label, f"{head}, {word}", 100 * value, n, bounds, None, PAPER)


def _old(rows: pl.DataFrame, label: str) -> pl.DataFrame:
    """Whether any sentence of a perturbed fact is answered with the object it had before."""
    before = pl.Series(
        "before", [json.loads(f).get("old") for f in rows["fields"]], dtype=pl.String
    )
    same = pl.col("answer").str.to_lowercase() == pl.col("before").str.to_lowercase()
    both = rows.with_columns(before).filter(pl.col("before").is_not_null())
    values = both.group_by("prompt", "group", "fact").agg(same.any().cast(pl.Float64).alias("old"))
    return gather.mean_of_draws(values.rename({"fact": "unit"}), label)


def _memory(own: Answered, other: Answered, seed: int) -> Cell:
    """Original minus perturbed on the facts of both, in points."""
    values = []
    for answered, name in ((own, "original"), (other, "perturbed")):
        per_fact, _ = metrics.sentences(metrics.joined(answered.examples, answered.outcomes))
        # where every sentence has a new object of its own, the fact is in front of it
        fact = pl.col("unit").str.replace(r"~.*$", "")
        own_facts = per_fact.select("group", fact, "any_sentence")
        values.append(gather.mean_of_draws(own_facts, name))
    found = metrics.gain(pl.concat(values), "original", "perturbed", ["any_sentence"], seed)
    row = found.filter(pl.col("level") == "macro").row(0, named=True)
    bounds = (100 * row["low"], 100 * row["high"])
    column = "original minus perturbed"
    return table.cell(NAME, own.label, column, 100 * row["value"], row["n"], bounds, None, PAPER)


def _twin(own: Answered, asked: Sequence[Answered], benchmark: str) -> Answered | None:
    return next(
        (a for a in asked if a.benchmark == benchmark and a.label == own.label),
        None,
    )


def examples(
    found: Sequence[Answered], texts: dict[tuple[str, str, str], str], each: int = 6, seed: int = 0
) -> list[dict[str, object]]:
    """Table 8: contexts, prompts and answers, `each` drawn per half by seed; one model's searched.

    In the perturbed half the object before stands struck through, as ~~old~~. `texts`: (benchmark,
    model, relation) -> the prompt with its trigger in words.
    """
    asked = [a for a in gather.of(found, *gather.EXTRACTION) if a.prompt == "searched"]
    drawn: list[dict[str, object]] = []
    for benchmark in gather.EXTRACTION:
        own = next((a for a in asked if a.benchmark == benchmark), None)
        if own is None:
            continue
        rows = metrics.joined(own.examples, own.outcomes)
        rows = rows.with_columns(metrics.right(rows))
        order = sorted(
            rows.iter_rows(named=True), key=lambda r: hash_key(seed, r["group"], r["example"])
        )
        drawn += [_example(own, row, texts) for row in order[:each]]
    return drawn


def _example(
    own: Answered,
    row: dict[str, object],
    texts: dict[tuple[str, str, str], str],
) -> dict[str, object]:
    fields = json.loads(str(row["fields"]))
    context = fields.get("context", "")
    label = str(row["label"])
    if fields.get("old"):
        old = f"~~{fields['old']}~~"
        spelled = [label, *row["surfaces"]]  # type: ignore[misc]
        new = next((word for word in spelled if word in context), label)
        context, label = context.replace(new, f"{old} {new}", 1), f"{old} {label}"
    prompt = texts.get((own.benchmark, own.model, str(row["group"])), "")
    return {
        "half": CONTEXTS[own.benchmark],
        "relation": row["group"],
        "context": context,
        "prompt": prompt,
        "object": label,
        "prediction": f"{row['answer']}{' +' if row['right'] else ''}",
    }
