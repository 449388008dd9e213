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
        modes = {mode: str(getattr(switch, mode)) for mode in MODES}
        modes["paper"] += " (assumed)" * switch.assumed
        here = {"here": getattr(values, key), "takes effect": EFFECTS[switch.stage]}
        rows.append({"point": switch.point, "switch": key, **modes, **here})
    return rows


def runs(
    here: pl.DataFrame, beside: Mapping[str, Path]
) -> tuple[pl.DataFrame, list[dict[str, object]]]:
    """(RESULTS of Table 4 with the run as their `mode`, what differs): this run's and other runs'.

    `beside`: name -> RESULTS of another run, made with another mode or other switches. Numbers that
    only one run has are left out. Raises ValueError where nothing is left.
    """
    frames = {HERE: here, **{name: results.read([path]) for name, path in beside.items()}}
    view, key = views.TABLE4.where_also(choice=[*views.CHOICES]), list(schema.RESULTS.key)
    numbers = {name: view.select(frame) for name, frame in frames.items()}
    kept = numbers[HERE]
    for frame in numbers.values():
        kept = kept.join(frame, on=key, how="semi")
    if not kept.height:
        raise ValueError(
            f"ontoprobe.beside: no model and benchmark of {', '.join(map(str, beside.values()))} "
            "is also in this run; name results of the same experiments under another mode"
        )
    parts = [
        frame.join(kept, on=key, how="semi").with_columns(mode=pl.lit(name))
        for name, frame in numbers.items()
    ]
    records: list[dict[str, object]] = []
    for name, path in beside.items():
        chosen = sorted(recorded(path, "switches").items())
        changed = ", ".join(f"{k}: {v}" for k, v in chosen if v != SWITCHES[k].default)
        records.append({"run": name, "switches off their default": changed or "all at default"})
    return pl.concat(parts), records
