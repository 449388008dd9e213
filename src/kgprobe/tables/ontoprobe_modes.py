"""The modes side by side: what a number becomes when one point is switched alone."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe_concepts import TASKS
from kgprobe.benchmarks.ontoprobe_modes import MODES, SWITCHES
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import ontoprobe_values, table
from kgprobe.tables.ontoprobe import Answered
from kgprobe.tables.ontoprobe_means import means
from kgprobe.tables.ontoprobe_values import CONFIGURATION, METRICS, TIES

#: what a switch of each stage needs to be seen
EFFECTS = {
    "questions": "in the questions: a run of its own (ontoprobe.beside)",
    "answers": "in the models' answers: a run of its own (ontoprobe.beside)",
    "tables": "when tables are made: side by side in every run",
}
#: this run's column in the table of runs
HERE = "this run"


def modes(
    tied: Mapping[str, Sequence[Answered]], switches: Mapping[str, str], seed: int
) -> pl.DataFrame | None:
    """TABLE `ontoprobe_modes`: MRR (for recall: its K = 5) with one switch at each of its values.
    None where no manual template was asked, or no dev row chooses among them.

    `tied`: the answers by the way in which ties are read (values of TIES that were computed). Rows
    are "model | benchmark | task", columns "switch = value". Questions and answers are those of
    this run, whatever its mode; the switches of the tables are at their defaults but for the one.
    """
    base = "expectation" if "expectation" in tied else switches["ties"]
    values = {
        way: {(a.model, a.benchmark): a.values for a in answers} for way, answers in tied.items()
    }
    cells: list[dict[str, object]] = []
    for own in tied[base]:
        others = {way: found[own.model, own.benchmark] for way, found in values.items()}
        for task in TASKS:
            rows = own.values.filter(pl.col("template") != "soft", task=task)
            chosen = ontoprobe_values.choose(rows).get(task) if rows.height else None
            if chosen is None:
                continue
            name = f"{own.label} | {own.benchmark} | {task}"
            for column, metric, part in _variants(rows, chosen, others, task):
                for _, value, bounds in means(part, (metric,), seed):
                    cells.append(_cell("modes", name, column, value, part.height, bounds))
    return table.build(cells) if cells else None


def points(values: Mapping[str, str]) -> list[dict[str, object]]:
    """Every switch with its value in each mode and here; "assumed": the paper is silent."""
    rows: list[dict[str, object]] = []
    for key, switch in sorted(SWITCHES.items(), key=lambda pair: (pair[1].point or 99, pair[0])):
        row: dict[str, object] = {"point": switch.point, "switch": key}
        for mode in MODES:
            mark = " (assumed)" if mode == "paper" and switch.assumed else ""
            row[mode] = f"{getattr(switch, mode)}{mark}"
        row["here"] = values[key]
        row["takes effect"] = EFFECTS[switch.stage]
        rows.append(row)
    return rows


def runs(
    here: pl.DataFrame, beside: Mapping[str, Path]
) -> tuple[pl.DataFrame, list[dict[str, object]]]:
    """(TABLE `ontoprobe_runs`, what differs): this run's Table 4 beside those of other runs.

    `here` is this run's `ontoprobe_memorising`, `beside` maps a name to the same file of another
    run, made with another mode or other switches. Rows that only one run has are left out. The
    records name every switch that another run has off its default.
    """
    found = {HERE: here, **{n: schema.read(p, schema.TABLE) for n, p in beside.items()}}
    known = [{(r, c) for r, c in f.select("row", "column").rows()} for f in found.values()]
    common = set.intersection(*known)
    cells = []
    for name, frame in found.items():
        for cell in frame.iter_rows(named=True):
            if (cell["row"], cell["column"]) not in common or cell["column"] not in METRICS:
                continue
            bounds = None if cell["low"] is None else (cell["low"], cell["high"])
            column = f"{cell['column']}, {name}"
            cells.append(_cell("runs", cell["row"], column, cell["value"], cell["n"], bounds))
    if not cells:
        raise ValueError(
            f"ontoprobe.beside: no model and benchmark of {', '.join(map(str, beside.values()))} "
            "is also in this run; name results of the same experiments under another mode"
        )
    records: list[dict[str, object]] = []
    for name, path in beside.items():
        switches = schema.provenance(path).get("switches")
        chosen = switches if isinstance(switches, dict) else {}
        off = {k: v for k, v in sorted(chosen.items()) if v != SWITCHES[k].default}
        told = ", ".join(f"{k}: {v}" for k, v in off.items()) or "all at default"
        records.append({"run": name, "switches off their default": told})
    return table.build(cells), records


def _variants(
    rows: pl.DataFrame, chosen: tuple[object, ...], tied: Mapping[str, pl.DataFrame], task: str
) -> Iterator[tuple[str, str, pl.DataFrame]]:
    own = ontoprobe_values.of_configuration(rows, chosen)
    default = ontoprobe_values.asked_rows(own)
    yield "all at default", "MRR", default
    yield "tp_rows = all", "MRR", ontoprobe_values.asked_rows(own, "all")
    for way in TIES[1:]:
        if way in tied:
            part = ontoprobe_values.of_configuration(tied[way].filter(task=task), chosen)
            yield f"ties = {way}", "MRR", ontoprobe_values.asked_rows(part)
    test = ontoprobe_values.asked_rows(rows)
    best = test.group_by(CONFIGURATION).agg(ordered_mean("MRR"))
    first = best.sort(["MRR", *CONFIGURATION], descending=[True, *[False] * 5]).row(0)[:5]
    yield "select = oracle", "MRR", ontoprobe_values.of_configuration(test, first)
    yield "recall = hit (R@5)", "R@5", default
    yield "recall = share (recall@5)", "recall@5", default


def _cell(
    name: str, row: str, column: str, value: float, n: int, bounds: tuple[float, float] | None
) -> dict[str, object]:
    return table.cell(f"ontoprobe_{name}", row, column, value, n, bounds, paper="ontoprobe")
