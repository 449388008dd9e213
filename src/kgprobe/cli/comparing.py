"""`kgprobe compare`: paired differences of two runs on shared questions, and changed results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgprobe.cli import names, screen
from kgprobe.cli.asking import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

#: number of rows printed on the screen
MOST = 20
Run = Annotated[
    str,
    typer.Argument(help="Name of a run in results/, or its folder.", autocompletion=names.runs),
]


def compare(first: Run, second: Run, as_json: Json = False) -> None:
    """Compare two runs, question by question.

    Paired differences on the questions that both asked, and the numbers that moved.

    A difference is the first run's accuracy less the second's, in points, with its interval.

    Example: kgprobe compare gpt2-world_lite bert-base-cased-world_lite
    """
    with screen.report_errors(as_json):
        folders = [run_folder(name) for name in (first, second)]
        pairs, refused = _pair_probes(*folders)
        numbers = _numbers(*folders)
        if as_json:
            screen.data({"paired": pairs, "refused": refused, **numbers})
            return
        if pairs:
            screen.table(map(_pair, pairs))
        else:
            screen.say("no paired differences: no two probes with the same questions and method "
                       "gave different answers")  # fmt: skip
        for row in refused:
            screen.say(f"not compared: {row['benchmark']}, {row['model']} less {row['instead']}: "
                       f"{row['reason']}")  # fmt: skip
        screen.say(f"numbers in both runs: {numbers['both']}, of which {len(numbers['moved'])} "
                   f"differ; only in {first}: {numbers['first']}, only in {second}: "
                   f"{numbers['second']}")  # fmt: skip
        _say_moved(numbers["moved"])


def _say_moved(rows: list[dict[str, Any]]) -> None:
    """Print a table of results, whole benchmarks first, below the values that all rows share."""
    from kgprobe.contracts import RESULTS, SETTING

    if not rows:
        return

    def named(row: dict[str, Any], key: str) -> str:
        # the value of a setting is not understood without its name
        return f"{key} {row[key]}" if key in SETTING else str(row[key])

    same = [key for key in RESULTS.key if len({row[key] for row in rows}) == 1]
    common = [f"{key} {rows[0][key]}" for key in same if rows[0][key]]
    ordered = sorted(rows, key=lambda row: any(row[key] for key in ("slice", *SETTING)))
    apart = [key for key in RESULTS.key if key not in same]
    # one cell wraps between words; one column per key would leave too little room
    shown = [
        {"number": ", ".join(named(row, key) for key in apart if row[key]) or "all",
         "first": row["value"], "second": row["second"], "n": row["n"]}
        for row in ordered
    ]  # fmt: skip
    screen.say(", ".join(common))
    screen.table(shown[:MOST])
    if len(shown) > MOST:
        screen.say(f"and {len(shown) - MOST} more (see --json)")


def _pair(row: dict[str, Any]) -> dict[str, Any]:
    """Format a paired difference as a table row for a narrow screen."""
    bounds = "" if row["low"] is None else f" [{row['low']:z.1f}, {row['high']:z.1f}]"
    return {
        "accuracy": f"{row['benchmark']}: {row['model']} less {row['instead']}",
        "difference": f"{row['difference']:z.1f}{bounds}", "p": row["p"], "n": row["n"],
    }  # fmt: skip


def run_folder(name: str) -> Path:
    """Return the folder of a run that has result tables. Raises ValueError if there is none."""
    from kgprobe.experiments import nearest

    # a model's folder may have the same name as a run
    for folder in (Path(name), Path("results") / name):
        if names.has_numbers(folder):
            return folder
    known = names.runs()
    raise ValueError(f"{name}: no run with numbers{nearest(name, known)}; valid: "
                     f"{', '.join(known) or 'none yet'}, or a run's folder"
                     )  # fmt: skip


def _pair_probes(*folders: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (rows, refused): a row for each pair of probes with the same questions and method, of
    the same model or of the only model in each run; and the pairs that cannot be compared, with the
    reason. Raises ValueError if no pair can be compared."""
    rows, refused, compared = [], [], 0
    ours, theirs = map(_probes, folders)
    for (benchmark, method, model), answers in ours.items():
        same = [key for key in theirs if key[:2] == (benchmark, method)]
        alone = len(same) == 1 == sum(key[:2] == (benchmark, method) for key in ours)
        for key in same:
            if alone or key[2] == model:
                both = [(model, answers), (key[2], theirs[key])]
                try:
                    rows += _difference(folders, benchmark, method, both)
                    compared += 1
                except ValueError as error:
                    refused.append({"benchmark": benchmark, "model": model, "instead": key[2],
                                    "reason": str(error)})  # fmt: skip
    if refused and not compared:
        raise ValueError(refused[0]["reason"])
    return rows, refused


def _probes(folder: Path) -> "dict[tuple[Any, ...], pl.DataFrame]":
    """Return JUDGED by (benchmark, method, model) for probes with a benchmark's own templates.
    Raises ValueError for a run without judged answers."""
    import polars as pl

    from kgprobe.tables import judged

    paths = sorted(folder.glob("judged/*.parquet"))
    if not paths:
        raise ValueError(f"{folder} has no judged answers (no judged/PAPER.parquet); make "
                         "its tables again with this version")  # fmt: skip
    rows = judged.read(paths).filter(
        pl.col("method").str.starts_with("sentence"),
        pl.col("matching").is_in(judged.PLAIN),
        # of OntoProbe's two aggregations, the one specified in advance
        pl.col("pooling").is_in(["", "answer_mean"]),
        (pl.col("prompt") == "templates") | (folder / "shards").is_dir(),
    )
    key = ["benchmark", "method", "model"]
    return dict(rows.group_by(key, maintain_order=True))


def _difference(
    folders: "Sequence[Path]", name: str, method: str, both: "list[tuple[str, pl.DataFrame]]"
) -> list[dict[str, Any]]:
    """Compute the paired difference of two probes (model, JUDGED) on the questions that both were
    asked (one may have had a sample); empty if there are none or both gave the same answers. Raises
    ValueError if their options or gold answers differ."""
    from kgprobe.questions import benchmark, check_options
    from kgprobe.tables.answers import Probe
    from kgprobe.tables.bear import make
    from kgprobe.tables.study import Study

    ours, theirs = (benchmark(folder / "benchmarks" / name) for folder in folders)
    check_options(ours, theirs, any((rows["matching"] == "own").any() for _, rows in both))
    # metadata of a question (popularity, row) does not make it a different question
    items = ours.items.join(theirs.items, on=["item", "relation", "subject"], how="semi")
    for _, rows in both:
        items = items.join(rows, on="item", how="semi")
    answers = [rows.join(items, on="item", how="semi") for _, rows in both]
    if not items.height or answers[0].drop("model").equals(answers[1].drop("model")):
        return []
    models = [model for model, _ in both]
    if models[0] == models[1]:
        models = [f"{models[0]} ({which})" for which in ("first", "second")]
    probes = [Probe(name, "templates", method, model, "") for model in models]
    pairs = list(zip(probes, answers, strict=True))
    study = Study(items, ours.candidates, ours.prompts, benchmark=name, probes=pairs)
    return [{"benchmark": name, **row} for row in make.compare(study).to_dicts()]


def _numbers(first: Path, second: Path) -> dict[str, Any]:
    """Count the results in both runs and return those that differ; n is the smaller of the two."""
    import polars as pl

    from kgprobe.contracts import RESULTS

    ours, theirs, key = _tables(first), _tables(second), RESULTS.key
    both = ours.join(theirs, on=key, suffix=" second")
    moved = both.filter(~both["value"].eq_missing(both["value second"])).sort(key)
    fewer = pl.min_horizontal("n", "n second")
    shown = moved.select(*key, "value", second="value second", n=fewer)
    return {"both": both.height, "first": ours.height - both.height,
            "second": theirs.height - both.height, "moved": shown.to_dicts()}  # fmt: skip


def _tables(folder: Path) -> "pl.DataFrame":
    """Read RESULTS of all papers of a run."""
    from kgprobe.tables import results

    paths = [folder / "tables" / f"{paper}.parquet" for paper in names.PAPERS]
    return results.read([path for path in paths if path.is_file()])


COMMANDS = (compare,)
