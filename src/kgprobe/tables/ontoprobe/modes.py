"""The modes side by side: what each point of paper and code is here, and Table 4 of other runs."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.ontoprobe.modes import MODES, SWITCHES, Switches
from kgprobe.tables import results
from kgprobe.tables.answers import recorded
from kgprobe.tables.ontoprobe import views

#: what a switch of each stage needs to be seen
EFFECTS = {
    "questions": "in the questions: a run of its own (ontoprobe.beside)",
    "answers": "in the models' answers: a run of its own (ontoprobe.beside)",
    "tables": "when tables are made: side by side in every run",
}
#: this run's column among runs
HERE = "this run"


def points(values: Switches) -> list[dict[str, object]]:
    """Every switch with its value in each mode and here; "assumed": the paper is silent."""
    rows: list[dict[str, object]] = []
    for key, switch in sorted(SWITCHES.items(), key=lambda pair: (pair[1].point or 99, pair[0])):
        row: dict[str, object] = {"point": switch.point, "switch": key}
        for mode in MODES:
            mark = " (assumed)" if mode == "paper" and switch.assumed else ""
            row[mode] = f"{getattr(switch, mode)}{mark}"
        row["here"] = getattr(values, key)
        row["takes effect"] = EFFECTS[switch.stage]
        rows.append(row)
    return rows


def runs(
    here: pl.DataFrame, beside: Mapping[str, Path]
) -> tuple[pl.DataFrame, list[dict[str, object]]]:
    """(RESULTS of Table 4 with the run as their `mode`, what differs): this run's and other runs'.

    `beside`: name -> RESULTS of another run, made with another mode or other switches. Numbers that
    only one run has are left out. The records name every switch that another run has off its
    default. Raises ValueError where nothing is left.
    """
    found = {HERE: here, **{name: results.read([path]) for name, path in beside.items()}}
    view = views.TABLE4.where_also(choice=[*views.CHOICES])
    columns = list(schema.RESULTS.columns)
    numbers = {name: view.chosen(frame).select(columns) for name, frame in found.items()}
    key = list(schema.RESULTS.key)
    kept = numbers[HERE]
    for frame in numbers.values():
        kept = kept.join(frame, on=key, how="semi")
    if not kept.height:
        raise ValueError(
            f"ontoprobe.beside: no model and benchmark of {', '.join(map(str, beside.values()))} "
            "is also in this run; name results of the same experiments under another mode"
        )
    parts = []
    for name, frame in numbers.items():
        common = frame.join(kept, on=key, how="semi")
        parts.append(common.with_columns(mode=pl.lit(name)))
    records: list[dict[str, object]] = []
    for name, path in beside.items():
        chosen = sorted(recorded(path, "switches").items())
        off = {k: v for k, v in chosen if v != SWITCHES[k].default}
        told = ", ".join(f"{k}: {v}" for k, v in off.items()) or "all at default"
        records.append({"run": name, "switches off their default": told})
    return pl.concat(parts), records
