"""`kgprobe trace`: from a printed number to its rows, questions, answers, and input files with
their hashes; from a claim to its verdict and the rows behind it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgprobe.cli import names, screen
from kgprobe.cli.asking import Json
from kgprobe.cli.comparing import run_folder

if TYPE_CHECKING:
    import polars as pl

#: suffixes of the metrics over a split of the facts, which no file of a run records
SPLITS = ("trained-on", "held-out")
NUMBER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?")
Where = Annotated[
    list[str] | None,
    typer.Option("--where", "-w", help=("Only rows with KEY=VALUE; can be repeated.")),
]


def trace(
    number: Annotated[
        str,
        typer.Argument(
            help="A number as printed, such as 38.7 or, at the end, -- -3.2, or a claim: O01."
        ),
    ],
    run: Annotated[
        str, typer.Option(help="Name of the run, or its folder.", autocompletion=names.runs)
    ],
    where: Where = None,
    exact: Annotated[
        bool,
        typer.Option(
            help="Only numbers over all items, without dimensions that --where does not name."
        ),
    ] = False,
    items: Annotated[
        int,
        typer.Option(
            parser=screen.whole(0), metavar="N", help="Number of questions to show per row."
        ),
    ] = 5,
    as_json: Json = False,
) -> None:
    """Trace a number, or a claim, to its rows.

    Of a number its rows in RESULTS, the questions and answers behind each, the files that it was
    computed from, and whether they still are what they were; of a claim what it compares, its
    verdict and why, and the rows that it was computed from.

    Example: kgprobe trace 38.7 --run embedded -w benchmark=world_lite -w metric=accuracy
    """
    from kgprobe.contracts import SETTING

    with screen.report_errors(as_json):
        folder, pairs = run_folder(run), _pairs(where or [])
        if exact:
            pairs = dict.fromkeys(("group", "slice", *SETTING), "") | pairs
        if not NUMBER.fullmatch(number):
            claim = _claim(folder, number, pairs)
            screen.data(claim) if as_json else _say_claim(claim)
            return
        number = number.replace(",", "")  # the report separates thousands
        rows = [
            {
                **row,
                "files": _files(folder, table, row),
                "questions": _questions(folder, row, items),
            }
            for table in _tables(folder)
            for row in _rows(table, number, pairs)
        ]
        if not rows:
            raise ValueError(f"no number of {folder} is printed as {number}"
                             + (f" where {', '.join(where)}" if where else "")
                             + _describe_unknown(folder, _pairs(where or [])))  # fmt: skip
        screen.data(rows) if as_json else _say(rows, len(number.partition(".")[2]), items)


def _pairs(where: list[str]) -> dict[str, str]:
    """Parse `--where` into values by dimension. Raises ValueError."""
    from kgprobe.contracts import RESULTS
    from kgprobe.experiments import nearest

    values, legal = dict[str, str](), RESULTS.key
    for text in where:
        key, sign, value = text.partition("=")
        if key not in legal or not sign:
            near = "" if key in legal else nearest(key, legal)
            raise ValueError(f"--where {text!r}{near}; expected KEY=VALUE "
                             f"with a KEY of {', '.join(legal)}")  # fmt: skip
        if values.setdefault(key, value) != value:
            raise ValueError(f"--where has {key}={values[key]} and {key}={value}; expected "
                             "one value of a key")  # fmt: skip
    return values


def _describe_unknown(folder: Path, pairs: Mapping[str, str]) -> str:
    """Describe the values that a run has for a key, if it lacks the value given in `--where`."""
    from kgprobe.experiments import nearest
    from kgprobe.tables import results

    known = results.read(_tables(folder))
    for key, value in pairs.items():
        legal = known[key].unique().sort().to_list()
        if value not in legal:
            shown = ", ".join(repr(one) for one in legal[:12]) + (" ..." if legal[12:] else "")
            return f": no {key} is {value!r}{nearest(value, legal)}; there are {shown}"
    return ""


def _tables(folder: Path) -> list[Path]:
    """Return a run's files of RESULTS: one of each paper, and other tables of this contract."""
    from kgprobe import schema

    return [
        path
        for path in sorted(folder.glob("tables/*.parquet"))
        if path.stem in names.PAPERS or schema.provenance(path).get("contract") == "RESULTS"
    ]


def _rows(path: Path, number: str, pairs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield rows of RESULTS whose value, rounded to the decimals of `number`, equals it."""
    import polars as pl

    from kgprobe.tables import results

    decimals = len(number.partition(".")[2])
    rows = results.read([path]).filter(*(pl.col(key) == value for key, value in pairs.items()))
    for row in rows.drop_nulls("value").rows(named=True):
        # -0.0 and 0.0 are printed alike
        if float(f"{row['value']:.{decimals}f}") == float(number):
            yield row


def _claim(folder: Path, name: str, pairs: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of CLAIMS, the rows of RESULTS behind it that match `pairs`, and their files."""
    import polars as pl

    from kgprobe import schema
    from kgprobe.experiments import nearest

    path = folder / "tables/claims.parquet"
    if not path.is_file():
        raise ValueError(f"{name!r} is not a number, and {folder} has no claims (no tables/"
                         "claims.parquet); expected a number as printed: 38.7")  # fmt: skip
    claims = {row["claim"]: row for row in schema.read(path, schema.CLAIMS).rows(named=True)}
    if name not in claims:
        typed = re.sub(r"^([A-Z])(\d)$", r"\g<1>0\2", name.upper())
        raise ValueError(f"{folder} has no claim {name!r}{nearest(typed, claims)}; "
                         "expected a claim as O01, or a number as printed: 38.7")  # fmt: skip
    behind, rows = folder / f"tables/claim_rows/{name}.tsv", []
    if behind.is_file():
        types = {"side": pl.String, **schema.RESULTS.columns}
        read = pl.read_csv(behind, separator="\t", schema=types, quote_char=None, glob=False)
        read = read.with_columns(pl.col(pl.String).fill_null("")).filter(
            *(pl.col(key) == value for key, value in pairs.items())
        )
        rows = read.rows(named=True)
    inputs = schema.provenance(path).get("inputs")
    hashes = inputs if isinstance(inputs, Mapping) else {}
    stems = (claims[name]["paper"], "claims")
    files = [_state(folder, file, hashes[file]) for file in hashes if Path(file).stem in stems]
    return {**claims[name], "rows": rows, "files": files}


def _files(folder: Path, table: Path, row: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the files that a number was computed from, with the hashes recorded at that time."""
    from kgprobe import schema

    inputs = schema.provenance(table).get("inputs")
    hashes = inputs if isinstance(inputs, Mapping) else {}
    files = []
    for name, recorded in hashes.items():
        parts = Path(name).with_suffix("").parts
        is_input = row["benchmark"] in parts and ("benchmarks" in parts or row["model"] in parts)
        if is_input or (row["published"] is not None and "published" in parts):
            files.append(_state(folder, name, recorded))
    return files


def _state(folder: Path, name: str, recorded: object) -> dict[str, str]:
    """Return a file with its recorded hash and whether it is unchanged."""
    from kgprobe.files import ROOT
    from kgprobe.job import sha256

    # the run's folder may have been moved or copied: look first for a path below results/RUN/
    places = (folder / name, folder.joinpath(*Path(name).parts[2:]), Path(name), ROOT / name)
    path, state = next((p for p in places if p.is_file()), None), "gone"
    if path:
        state = "as it was" if sha256(path) == recorded else "changed since"
    return {"file": name, "sha256": str(recorded), "state": state}


def _questions(folder: Path, row: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """Return the first questions behind a number, with the answers of its probe; empty for a subset
    of the benchmark that the run does not define (`_subset`), or that a baseline was asked."""
    import polars as pl

    from kgprobe.questions import benchmark
    from kgprobe.tables import slices
    from kgprobe.tables.answers import SUBJECT

    place = folder / "benchmarks" / row["benchmark"]
    is_known = row["benchmark"] and (place / "items.parquet").is_file()
    if not most or not is_known or _subset(row) != row["slice"]:
        return []
    bench = benchmark(place)
    items = bench.items.filter(relation=row["group"]) if row["group"] else bench.items
    if row["paper"] == "ontoprobe":  # the other rows are for training and selection
        items = items.filter(role="test")
    if row["slice"]:
        items = slices.items_of(
            items, bench.candidates, bench.prompts, row["slice"], place / "relations.parquet"
        )
    if (judged := _answers(folder, row)).height:  # a probe may have been asked fewer
        items = items.join(judged, on="item", how="semi")
    if row["paper"] == "ontoprobe" and items.height > row["n"]:  # a repeated row counts once
        items = items.filter(pl.col("meta").str.json_path_match("$.repeat").is_null())
    # n may count subjects
    if _describe_baseline(row) and items.select("relation", SUBJECT).n_unique() > row["n"]:
        return []
    items = items.sort("item").head(most)
    labels = bench.candidates.select("label", set="set", candidate="index")
    options = {(s, c): text for text, s, c in labels.rows()}
    return [_question(item, options, judged) for item in items.rows(named=True)]


def _subset(row: Mapping[str, Any]) -> str:
    """Return the subset of a benchmark that a number covers: its slice, or the metric over the
    trained-on or held-out facts of control models."""
    return str(row["slice"] or (row["metric"] if row["metric"].endswith(SPLITS) else ""))


def _describe_baseline(row: Mapping[str, Any]) -> str:
    """Return "without ..." if a number is of a baseline, or of the difference from one; else ""."""
    without = f"without {row['without']}" if row["without"] else str(row["instead"])
    return without if without.startswith("without ") else ""


def _answers(folder: Path, row: Mapping[str, Any]) -> "pl.DataFrame":
    """Return the rows of JUDGED behind a number, as far as its dimensions identify them; empty for
    a baseline, an aggregation other than the probe's own, or an unnamed configuration."""
    import polars as pl

    from kgprobe.contracts import GIVEN_UNDER
    from kgprobe.tables import judged

    probe = {name: row[name] for name in ("paper", "benchmark", "model", "prompt", "method")}
    matched = pl.col("matching").is_in([row["gold"]] if row["gold"] else judged.PLAIN)
    path = folder / "judged" / f"{row['paper']}.parquet"
    rows = judged.read([path] if path.is_file() else []).filter(matched, **probe)
    given = {name: row[name] for name in GIVEN_UNDER if row[name] and (rows[name] != "").any()}
    aggregation = row["aggregation"]
    if aggregation and aggregation in rows["pooling"]:
        given["pooling"] = aggregation
    elif aggregation and (row["paper"], aggregation) != ("attributes", "sum"):
        return rows.clear()
    if row["without"] or row["instead"] or row["choice"]:
        return rows.clear()
    rows = rows.filter(**given)
    # the stored hits are of the first answer, compared as a whole
    is_stored = row["k"] in ("", "1") and row["alpha"] in ("", "exact")
    return rows if is_stored else rows.with_columns(hit=pl.lit(None, pl.Float64))


def _question(
    item: Mapping[str, Any], options: Mapping[tuple[str, int], str], judged: "pl.DataFrame"
) -> dict[str, Any]:
    """Return a question, its gold answers and, for each template, the top answer, its hit, and the
    margin of the gold answer where its score is known."""
    right = [options[item["candidates"], i] for i in item["answers"]]
    question = {"item": item["item"], "subject": item["subject"], "right": right}
    rows = judged.filter(item=item["item"])
    if rows.is_empty():
        return question
    margins = [None if value is None else round(value, 4) for value in rows["margin"]]
    return {**question, "chosen": rows["answer"].to_list(), "hit": rows["hit"].to_list(),
            "margin": margins}  # fmt: skip


def _say_claim(claim: Mapping[str, Any]) -> None:
    from kgprobe.tables.claims.section import IN_PRINT, expected

    screen.say(f"{claim['claim']} ({claim['paper']}; {claim['where']}): {claim['statement']}")
    screen.say(f"  compared: {claim['comparison'] or 'nothing'}")
    there = "" if claim["printed"] is None else f" {claim['printed']:.4g},"
    direction = expected(claim["direction"])
    screen.say(f"  expected: {direction}; in print:{there} {IN_PRINT[claim['holds']]}")
    if claim["value"] is not None:
        p = "" if claim["p"] is None else f", p {claim['p']:.3g} (Holm)"
        screen.say(f"  here: {claim['value']:.4g}{_bounds(claim)}, a {claim['a']:.4g}, "
                   f"b {claim['b']:.4g}, n {screen.format_n(claim)}, "
                   f"pairs {claim['pairs']}{p}")  # fmt: skip
    screen.say(f"  verdict: {claim['verdict']}" + f" ({claim['reason']})" * bool(claim["reason"]))
    if claim["comparison"] and claim["value"] is None:
        screen.say(f"  needs: {claim['needs']}")
    for row in claim["rows"]:
        screen.say(f"  {row['side']}: {_where(row)}: {row['value']}{_bounds(row)}, "
                   f"n {screen.format_n(row)}")  # fmt: skip
    for file in claim["files"]:
        screen.say(f"  {file['state']}: {file['sha256'][:12]} {file['file']}")
    screen.say(f"rows: {len(claim['rows'])}")
    screen.explain([screen.format_n(row) for row in (claim, *claim["rows"])])


def _where(row: Mapping[str, Any]) -> str:
    from kgprobe.contracts import RESULTS

    return ", ".join(f"{key}={row[key]}" for key in RESULTS.key if row[key])


def _bounds(row: Mapping[str, Any]) -> str:
    return "" if row["low"] is None else f" [{row['low']:.4g}, {row['high']:.4g}]"


def _say(rows: list[dict[str, Any]], digits: int, most: int) -> None:
    """Print the rows of a number, printed with `digits` decimals, and up to `most` of the questions
    behind each."""
    for row in rows:
        screen.say(_where(row))
        # a value that is not a fraction may still have a denominator
        is_fraction = None not in (row["numerator"], row["denominator"])
        share = f" = {row['numerator']}/{row['denominator']}" if is_fraction else ""
        screen.say(f"  value {row['value']}{_bounds(row)} ({row['interval']}){share}, "
                   f"n {screen.format_n(row, digits)}")  # fmt: skip
        if most and (part := _subset(row)) and not row["questions"]:
            screen.say(f"  The run does not store which questions are in {part!r}.")
        elif most and (below := _describe_baseline(row)) and not row["questions"]:
            screen.say(f"  The run does not store which questions were asked {below}.")
        for question in row["questions"]:
            chosen = [one for one in question.get("chosen", ()) if one is not None]
            text = f"; chosen: {', '.join(chosen)}" if chosen else ""
            screen.say(f"  {question['item']}: {question['subject']}; right: "
                       f"{', '.join(question['right'])}{text}")  # fmt: skip
        for file in row["files"]:
            screen.say(f"  {file['state']}: {file['sha256'][:12]} {file['file']}")
    screen.say(f"rows: {len(rows)}")
    screen.explain([screen.format_n(row, digits) for row in rows])


COMMANDS = (trace,)
