"""Summary of a run, one sentence and one table per paper: for the terminal and the first page.

A sentence is about the external model with the highest number; control models and baselines are
never its subject, and numbers of fewer than marks.FEWEST rows are in neither.

    python -m kgprobe.tables.report.summary results/NAME/tables REPORT.html
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import schema
from kgprobe.contracts import WITHOUT
from kgprobe.probes.prompt_settings import NOT_ASKING
from kgprobe.tables import results as house
from kgprobe.tables.answers import PRIOR
from kgprobe.tables.report import grid, headline, marks

Row = Mapping[str, Any]
MANUAL, SUBJECT = "the manual prompt", WITHOUT[0]
TOO_FEW = f"Numbers based on fewer than {marks.FEWEST} rows are only in the report."


def sentences(results: pl.DataFrame) -> list[grid.Cell]:
    """Return a sentence for each paper with numbers of external models, each with the number behind
    it (`trace`) and the page with details (`href`). `results`: RESULTS."""
    numbers, result = headline.principal(results), []
    for paper, describe in DESCRIBE.items():
        rows = _select_rows(numbers, paper)
        if rows and (described := describe(rows, results)):
            text, row = described
            result.append(grid.Cell(text, trace=grid.trace(row), href=f"{paper}.html"))
    return result


def text(results: pl.DataFrame) -> str:
    """Format sentences and tables without control models, or the headline if there are none."""
    texts = {sentence.href.removesuffix(".html"): sentence.text for sentence in sentences(results)}
    if not texts:
        return headline.text(results)
    numbers = headline.principal(results)
    is_control = pl.col("model").str.starts_with(headline.CONTROL)
    # trained-on and held-out facts are meaningless for an external model
    others = numbers.filter(~is_control, ~pl.col("metric").is_in(["trained-on", "held-out", "AUC"]))
    numbers = others.filter(
        (_is_enough("n") | (pl.col("n") == 0)),
        pl.col("denominator").is_null() | _is_enough("denominator"),
    )
    lines: list[str] = []
    shown: set[str] = set()
    for view in headline.blocks(numbers):
        if view.name in headline.PAPERS:
            sentence = texts.pop(view.name, "")
            lines += [*([sentence] if sentence else []), *headline.block(view, numbers, shown)]
    notes = [*([TOO_FEW] if numbers.height < others.height else []), *marks.notes(shown)]
    return "\n".join([*lines, *filter(None, notes)])


def _select_rows(numbers: pl.DataFrame, paper: str) -> list[Row]:
    """Return the principal numbers of a paper by external models."""
    frames = [view.select(numbers) for view in headline.VIEWS if view.where["paper"] == [paper]]
    rows = [row for frame in frames for row in frame.drop_nulls("value").rows(named=True)]
    return list(filter(headline.is_external, rows))


def _enough(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not marks.few(row)]


def _is_enough(column: str) -> pl.Expr:
    return pl.col(column) >= marks.FEWEST


def _percent(row: Row) -> str:
    return f"{row['value']:.1f} %"


def _best(rows: list[Row], results: pl.DataFrame) -> tuple[str, Row]:
    """Return the row with the highest number, and its model, with its marks, as the subject of a
    sentence: of those that answered the same questions."""
    best = max(rows, key=lambda row: row["value"])
    models = len({row["model"] for row in rows if row["benchmark"] == best["benchmark"]})
    who = best["model"] + marks.signs(results)(best)
    return (f"Of {models} models {who}" if models > 1 else who), best


def _bear(rows: list[Row], results: pl.DataFrame) -> tuple[str, Row] | None:
    rows = [row for row in _enough(rows) if row["metric"] == "accuracy"]
    plain = [row for row in rows if not row.get("aggregation")]
    if not plain:
        return None
    who, best = _best(plain, results)
    same = ("benchmark", "model", "prompt", "method")
    whole = results.filter(
        benchmark=best["benchmark"], metric="accuracy", group="", slice="", instead="", template=""
    )
    chance = whole.filter(house.plain(), model="random")["value"].to_list()
    of_best = {name: best[name] for name in same}
    baseline = whole.filter(without=SUBJECT, **of_best).rows(named=True)
    several = headline.counts_subjects(results, best["benchmark"])
    of = f"the questions about {best['n']:,} subjects" if several else f"{best['n']:,} questions"
    of += f" of {best['benchmark']}" if len({row["benchmark"] for row in plain}) > 1 else ""
    text = f"{who} answers {_percent(best)} of {of} correctly"
    text += f" (chance {chance[0]:.1f} %)" if chance else ""
    if baseline:
        text += (
            f"; asked without the subject, {_percent(baseline[0])}{_of_fewer(baseline[0], best)}"
        )
    corrected = [
        row for row in rows if row.get("aggregation") == PRIOR
        and all(row[name] == best[name] for name in same)
    ]  # fmt: skip
    if corrected:
        shown = f"{_percent(corrected[0])}{_of_fewer(corrected[0], best)}"
        text += f". Corrected for the options' prior: {shown}"
    return f"{text}.", best


def _of_fewer(row: Row, best: Row) -> str:
    """Return the n of a number that is not of all questions that the best number is of."""
    return f" of {row['n']:,}" if row["n"] != best["n"] else ""


def _ontoprobe(rows: list[Row], results: pl.DataFrame) -> tuple[str, Row] | None:
    ranked = [row for row in _enough(rows) if row["metric"] == "R@1"]
    if not ranked:
        return None
    who, best = _best(ranked, results)
    probe = ("benchmark", "model", "prompt", "method")
    tasks = [row for row in ranked if all(row[name] == best[name] for name in probe)]
    worst = min(tasks, key=lambda row: row["value"])
    mean, total = _pooled(tasks)
    text = f"{who} ranks the right class or property first for {mean:.1f} % of {total:,} rows"
    ends = [f"{row['group']} {_percent(row)}" for row in (best, worst)]
    text += f": {', '.join(ends)}" if len(tasks) > 1 else f" of {best['group']}"
    letters = [row for row in rows if row["method"] == "choice" and row.get("scoring") == "letter"]
    letters = [row for row in letters if row["model"] == best["model"]]
    # one benchmark's, if possible the same: a lite set has rows of the complete one
    sets = sorted({r["benchmark"] for r in letters}, key=lambda b: (b != best["benchmark"], b))
    right, count = _pooled([row for row in letters if row["benchmark"] in sets[:1]])
    if count >= marks.FEWEST:
        of = f" of {sets[0]}" if len(sets) > 1 else ""
        text += f"; of {count:,} multiple-choice questions{of} it answers {right:.1f} % correctly"
    written = {"method": "reason", "premise": "P1 EX, P2 EX", "scheme": "manual+manual"}
    of_model = {**written, "model": best["model"]}
    for row in (row for row in _enough(rows) if of_model.items() <= row.items()):
        text += f"; with both premises written, conclusions have MRR {row['value']:.2f}"
        text += f" (n = {row['n']:,})"
    return f"{text}.", best


def _pooled(rows: list[Row]) -> tuple[float, int]:
    """Return the accuracy over the rows of several tasks, and their number."""
    total = sum(row["n"] for row in rows)
    return sum(row["value"] * row["n"] for row in rows) / max(total, 1), total


def _attributes(rows: list[Row], results: pl.DataFrame) -> tuple[str, Row] | None:
    known = [row for row in _enough(rows) if row["benchmark"]]
    if not known:
        return None
    # ranked candidates are another question, for models that were not asked to fill
    written = [row for row in known if row["method"].startswith("fill")]
    who, best = _best(written or known, results)
    # each attribute has its own metric: their numbers are listed but not compared
    scores = [
        f"{_percent(row)} on {row['benchmark']} (n = {row['denominator'] or row['n']:.0f})"
        for row in known
        if all(row[name] == best[name] for name in ("model", "method"))
    ]
    return f"{who} scores {', '.join(scores)}.", best


def _autoprompt(rows: list[Row], results: pl.DataFrame) -> tuple[str, Row] | None:
    # the best of a sweep is selected on the examples that it is measured on
    rows = [row for row in rows if row["metric"] != "dev accuracy"]
    kept = [row for row in _enough(rows) if row["prompt"] not in NOT_ASKING]
    if not kept:
        return None
    who, best = _best(kept, results)
    same = [row for row in kept if all(row[d] == best[d] for d in ("benchmark", "model"))]
    manual = [row for row in same if row["prompt"] == "manual"]
    of_best = {name: best[name] for name in ("benchmark", "metric", *marks.WHO)}
    relations = results.filter(pl.col("group") != "", **of_best)["group"].n_unique()
    is_class = best["metric"] == "accuracy"
    does, what = ("classifies", "examples") if is_class else ("completes", "facts")
    is_clustered = str(best["interval"]).startswith("cluster")
    of = f"the {what} about {best['n']:,} subjects" if is_clustered else f"{best['n']:,} {what}"
    text = f"{who} {does} {_percent(best)} of {of} correctly"
    text += f" (mean over {relations} relations)" if relations > 1 else ""
    text += " with "
    text += MANUAL if best["prompt"] == "manual" else headline.PROMPTS[best["prompt"]]
    if manual and manual[0] is not best:
        text += f", {_percent(manual[0])} with {MANUAL}"
    return f"{text}.", best


DESCRIBE: Mapping[str, Callable[[list[Row], pl.DataFrame], tuple[str, Row] | None]] = {
    "bear": _bear,
    "ontoprobe": _ontoprobe,
    "attributes": _attributes,
    "autoprompt": _autoprompt,
}


def main(arguments: Sequence[str]) -> int:
    """Print the summary of a folder of RESULTS and the path of the report, if given."""
    if not 1 <= len(arguments) <= 2:
        print("usage: python -m kgprobe.tables.report.summary FOLDER|RESULTS.parquet [REPORT.html]")
        return 2
    place = Path(arguments[0])
    files = [place]
    if place.is_dir():
        named = (place / f"{paper}.parquet" for paper in headline.PAPERS)
        files = [path for path in named if path.is_file()]
    if not files:
        print(f"{place}: no RESULTS; expected a run's results/RUN/tables", file=sys.stderr)
        return 1
    try:
        results = house.read(files)
    except schema.ContractError as error:
        print(error, file=sys.stderr)
        return 1
    print(text(results))
    if len(arguments) == 2:
        print(f"report: {arguments[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
