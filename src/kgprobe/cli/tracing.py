"""`kgprobe trace`: from a printed number to its rows, its questions, what was answered, and the
files behind it with their hashes."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgprobe.cli import screen
from kgprobe.cli.asking import Json
from kgprobe.cli.comparing import KEY, run_folder

if TYPE_CHECKING:
    import polars as pl

Where = Annotated[
    list[str] | None, typer.Option("--where", "-w", help="Only rows with KEY=VALUE; several times.")
]


def trace(
    number: Annotated[str, typer.Argument(help="As it is printed: 38.7")],
    run: Annotated[str, typer.Option(help="The run's name, or its folder.")],
    where: Where = None,
    items: Annotated[int, typer.Option(min=0, help="How many questions of each row to show.")] = 5,
    as_json: Json = False,
) -> None:
    """Trace a printed number: its rows in RESULTS, the questions and answers behind each, the
    files that it was computed from, and whether they still are what they were.

    Example: kgprobe trace 38.7 --run embedded -w benchmark=world_lite -w metric=accuracy
    """
    with screen.told(as_json):
        folder = run_folder(run)
        found = [
            {
                **row,
                "files": _files(folder, table, row),
                "questions": _questions(folder, row, items),
            }
            for table in _tables(folder)
            for row in _rows(table, number, _pairs(where or []))
        ]
        if not found:
            raise ValueError(f"no number of {folder} is printed as {number}"
                             + (f" where {', '.join(where)}" if where else ""))  # fmt: skip
        screen.data(found) if as_json else _say(found)


def _pairs(where: list[str]) -> dict[str, str]:
    """`--where` by dimension. Raises ValueError."""
    from kgprobe.sheets import nearest

    found = {}
    for text in where:
        key, sign, value = text.partition("=")
        if key not in KEY or not sign:
            raise ValueError(f"--where {text!r}{nearest(key, KEY)}; right would be KEY=VALUE with "
                             f"a KEY of {', '.join(KEY)}")  # fmt: skip
        found[key] = value
    return found


def _tables(folder: Path) -> list[Path]:
    """The files of RESULTS of a run: one of each paper, and of what stands beside them."""
    from kgprobe import schema

    paths = sorted(folder.glob("tables/*.parquet"))
    return [path for path in paths if schema.provenance(path).get("contract") == "RESULTS"]


def _rows(path: Path, number: str, pairs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """RESULTS of a file whose value is printed so, with as many decimals as it has."""
    import polars as pl

    from kgprobe.tables import results

    if not re.fullmatch(r"-?\d+(\.\d+)?", number):
        raise ValueError(f"{number!r} is no number; right would be one as it is printed: 38.7")
    decimals = len(number.partition(".")[2])
    rows = results.read([path]).filter(*(pl.col(key) == value for key, value in pairs.items()))
    for row in rows.drop_nulls("value").rows(named=True):
        # -0.0 and 0.0 are printed alike
        if float(f"{row['value']:.{decimals}f}") == float(number):
            yield row


def _files(folder: Path, table: Path, row: Mapping[str, Any]) -> list[dict[str, str]]:
    """The files that a number was computed from, with the hashes that they had then."""
    from kgprobe import schema
    from kgprobe.job import sha256

    made = schema.provenance(table).get("inputs")
    told = made if isinstance(made, Mapping) else {}
    found = []
    for name, recorded in told.items():
        parts = Path(name).with_suffix("").parts
        asked = row["benchmark"] in parts and ("benchmarks" in parts or row["model"] in parts)
        if asked or (row["published"] is not None and "published" in parts):
            path = next((p for p in (Path(name), folder / name, _own(folder, name)) if p.is_file()),
                        None)  # fmt: skip
            state = "gone"
            if path:
                state = "as it was" if sha256(path) == recorded else "changed since"
            found.append({"file": name, "sha256": str(recorded), "state": state})
    return found


def _own(folder: Path, name: str) -> Path:
    """A path below results/RUN/, wherever the run's folder lies now."""
    return folder.joinpath(*Path(name).parts[2:])


def _questions(folder: Path, row: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """The first questions behind a number, with what was chosen, where sentences were scored."""
    import polars as pl

    from kgprobe import schema
    from kgprobe.questions import benchmark

    place = folder / "benchmarks" / row["benchmark"]
    scored = folder / "scores" / row["benchmark"] / row["prompt"] / row["method"]
    if not most or not row["benchmark"] or not (place / "items.parquet").is_file():
        return []
    own = benchmark(place)
    items = own.items.filter(relation=row["group"]) if row["group"] else own.items
    items = items.sort("item").head(most)
    labels = own.candidates.select("label", set="set", candidate="index")
    options = {(s, c): text for text, s, c in labels.rows()}
    path = scored / f"{row['model']}.parquet"
    best = None
    # another reduction chooses another option
    if path.is_file() and "reduction" not in json.loads(row["setting"]):
        scores = schema.read(path, schema.SCORES).filter(
            pl.col("item").is_in(items["item"].implode())
        )
        best = scores.sort("sum", "candidate", descending=[True, False]).unique(
            ["item", "template"], keep="first", maintain_order=True
        )
    return [_question(item, options, best) for item in items.rows(named=True)]


def _question(
    item: Mapping[str, Any], options: Mapping[tuple[str, int], str], best: "pl.DataFrame | None"
) -> dict[str, Any]:
    """A question, its right answers and the likeliest option under each template."""
    right = [options[item["candidates"], i] for i in item["answers"]]
    found = {"item": item["item"], "subject": item["subject"], "right": right}
    if best is None:
        return found
    chosen = best.filter(item=item["item"]).sort("template").select("candidate", "sum").rows()
    return {**found, "chosen": [options[item["candidates"], c] for c, _ in chosen],
            "log-likelihood": [round(value, 4) for _, value in chosen]}  # fmt: skip


def _say(found: list[dict[str, Any]]) -> None:
    for row in found:
        screen.say(", ".join(f"{key}={row[key]}" for key in KEY if row[key] not in ("", "{}")))
        bounds = "" if row["low"] is None else f" [{row['low']:.4g}, {row['high']:.4g}]"
        share = "" if row["denominator"] is None else f" = {row['numerator']}/{row['denominator']}"
        screen.say(f"  value {row['value']}{bounds} ({row['interval']}){share}, n {row['n']}")
        for question in row["questions"]:
            chosen = question.get("chosen")
            told = f"; chosen: {', '.join(chosen)}" if chosen else ""
            screen.say(f"  {question['item']}: {question['subject']}; right: "
                       f"{', '.join(question['right'])}{told}")  # fmt: skip
        for file in row["files"]:
            screen.say(f"  {file['state']}: {file['sha256'][:12]} {file['file']}")
    screen.say(f"rows: {len(found)}")


COMMANDS = (trace,)
