"""From the files of a run to OntoProbe's tables and chapter."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import (
    calibration,
    marks,
    ontoprobe,
    ontoprobe_calibration,
    ontoprobe_groups,
    ontoprobe_means,
    ontoprobe_modes,
    ontoprobe_reasoning,
    ontoprobe_values,
)
from kgprobe.tables.ontoprobe import Answered

Row = Mapping[str, str]
#: where the chapter's examples come from: two test rows of every task
EXAMPLES = 2


def answered(
    experiments: Sequence[Row],
    models: Mapping[str, Row],
    files: Sequence[str],
    folders: Mapping[str, Path],
    switches: Mapping[str, str],
    ties: Sequence[str] = (),
) -> list[list[Answered]]:
    """One Answered per model and benchmark: ranks of manual and soft prompts, or sentence scores.

    One list for every way of reading ties that is named, by default the switch's alone.
    `files`: the file of every row of `experiments` in its order (method cloze, sentence or soft).
    """
    ways, shown = list(ties) or [switches["ties"]], marks.names(experiments, files)
    parts: dict[tuple[str, str], list[list[pl.DataFrame]]] = {}
    for row, path in zip(experiments, files, strict=True):
        items = schema.read(folders[row["benchmark"]] / "items.parquet", schema.ITEMS)
        if row["method"].split("-")[0] == "sentence":
            scores = schema.read(path, schema.SCORES)
            found = ontoprobe_values.from_scores(scores, items)
        else:
            found = ontoprobe_values.from_ranks(pl.read_parquet(path))
        known = ontoprobe_values.of_items(items)
        values = [ontoprobe_values.metrics(found, known, way, switches["recall"]) for way in ways]
        parts.setdefault((row["model"], row["benchmark"]), []).append(values)
    return [
        [
            Answered(
                shown[model],
                benchmark,
                models[model]["kind"],
                models[model]["source"].startswith("control:"),
                _printed_name(model, models[model]),
                benchmark == "onto_released",
                pl.concat([frame[number] for frame in frames]),
            )
            for (model, benchmark), frames in parts.items()
        ]
        for number in range(len(ways))
    ]


def _printed_name(model: str, row: Row) -> str:
    """The paper's name of a model from the hub (names are the hub's), "" for any other."""
    return model if row["source"].startswith("hub:") else ""


def tables(
    found: Sequence[Answered],
    folders: Mapping[str, Path],
    printed: Mapping[str, pl.DataFrame],
    switches: Mapping[str, str],
    seed: int,
    taught: pl.DataFrame | None = None,
    tied: Mapping[str, Sequence[Answered]] | None = None,
) -> dict[str, pl.DataFrame]:
    """Every TABLE of memorising that applies, by name.

    `tied`: the same answers by the way in which ties are read, for the modes side by side. A probe
    outside the requirement of its calibration is marked in every one of them.
    """
    tp_rows = switches["tp_rows"]
    sets = {
        name: (
            schema.read(folder / "items.parquet", schema.ITEMS),
            schema.read(folder / "candidates.parquet", schema.CANDIDATES),
        )
        for name, folder in folders.items()
    }
    calibrated, explained = ontoprobe_calibration.tables(found, sets, taught)
    # real models were taught neither half: they are a reference, no probe that could fail
    outside = [r for r in calibration.outside(calibrated) if " (control) | " in r]
    calibrated, explained = (
        None if frame is None else calibration.marked(frame, outside)
        for frame in (calibrated, explained)
    )
    found = signed(found, outside)
    tied = {way: signed(own, outside) for way, own in (tied or {switches["ties"]: found}).items()}
    is_ranked = any((a.values["masks"] != "sentence").any() for a in found)
    labelled = [(f"{a.label} | {a.benchmark}", a.values) for a in found]
    given, configured = printed["memorizing"], printed["configurations"]
    made = {
        "ontoprobe_sizes": ontoprobe.sizes(sets, printed["sizes"]),
        "ontoprobe_configurations": ontoprobe.configurations(found, configured, tp_rows, seed),
        "ontoprobe_memorising": ontoprobe.memorising(found, given, tp_rows, seed),
        "ontoprobe_groups": ontoprobe_groups.groups(found, tp_rows, seed, switches["select"]),
        "ontoprobe_modes": ontoprobe_modes.modes(tied, switches, seed),
        "ontoprobe_seeds": ontoprobe_means.seeds(labelled, tp_rows),
        "ontoprobe_baseline": ontoprobe.baselines(sets, given, tp_rows, seed),
        "ontoprobe_averages": (
            ontoprobe.averages(found, configured, tp_rows, seed) if is_ranked else None
        ),
        "ontoprobe_calibration": calibrated,
        "ontoprobe_untaught": explained,
    }
    return {name: frame for name, frame in made.items() if frame is not None}


def signed(found: Sequence[Answered], outside: Sequence[str]) -> list[Answered]:
    """The answers with the mark behind the model of those templates, manual or soft, that are
    outside the requirement on some task; `outside`: rows of `ontoprobe_calibration`.

    A model of which one kind alone is outside is parted in two.
    """
    failed = {(row.split(" | ")[0], row.split(" | ")[1], row.split(" | ")[3]) for row in outside}
    made = []
    for own in found:
        of = dict(ontoprobe.kinds(own.values))
        wrong = {kind for kind in of if (own.label, own.benchmark, kind) in failed}
        if not wrong:
            made.append(own)
            continue
        for sign, kinds in (("", of.keys() - wrong), (marks.OUTSIDE, wrong)):
            if kinds:
                values = pl.concat([of[kind] for kind in sorted(kinds)])
                made.append(replace(own, model=own.model + sign, values=values))
    return made


def examples(
    top: Mapping[tuple[str, str], pl.DataFrame], folders: Mapping[str, Path]
) -> list[dict[str, object]]:
    """Rows of Table 7: prompt, five best candidates, golds. `top`: (model, benchmark) -> TOPS."""
    rows: list[dict[str, object]] = []
    for (model, benchmark), frame in top.items():
        items = schema.read(folders[benchmark] / "items.parquet", schema.ITEMS)
        options = schema.read(folders[benchmark] / "candidates.parquet", schema.CANDIDATES)
        prompts = schema.read(folders[benchmark] / "prompts.parquet", schema.PROMPTS)
        label = {(s, i): name for s, i, name in options.select("set", "index", "label").rows()}
        last = prompts.sort("index").group_by("relation", maintain_order=True).last()
        texts = {r: (i, t) for r, i, t in last.select("relation", "index", "text").rows()}
        for task, (index, text) in texts.items():
            chosen = items.filter(relation=task, role="test").sort("row").head(EXAMPLES)
            for row in chosen.iter_rows(named=True):
                own = frame.filter(
                    item=row["item"], template=index, masks="multi", pooling="mean"
                ).sort("place")
                golds = [label[row["candidates"], a] for a in row["answers"]]
                named = [label[row["candidates"], c] for c in own["candidate"].to_list()]
                rows.append(
                    {
                        "model": model,
                        "task": task,
                        "prompt": text.replace("[X]", row["subject"]).replace("[Y]", "[MASK]"),
                        "top 5": ", ".join("+" * (n in golds) + n for n in named),
                        "golds": ", ".join(golds),
                    }
                )
    return rows


def reasoning(
    files: Mapping[tuple[str, str], tuple[str, str]],
    found: Sequence[Answered],
    folders: Mapping[str, Path],
    switches: Mapping[str, str],
) -> pl.DataFrame | None:
    """TABLE `ontoprobe_reasoning`; `files`: (model, benchmark) -> ranks, ranks of the P2 tests."""
    settings: dict[str, pl.DataFrame] = {}
    values = {(a.model, a.benchmark): a for a in found}
    for (model, benchmark), (ranks, tests) in files.items():
        cases = schema.read(folders[benchmark] / "reasoning.parquet", schema.ITEMS)
        ties, of_test = switches["ties"], ["item", "kind", "pair"]
        asked = ontoprobe_reasoning.reciprocal(pl.read_parquet(tests), of_test, ties)
        own, of_answer = pl.read_parquet(ranks), ["item", "scheme", "p1", "p2", "pair"]
        answers = ontoprobe_reasoning.reciprocal(own, of_answer, ties)
        memory = values.get((model, benchmark))
        premises = {}
        for kind in ("manual", "soft"):
            first = _first_premise(memory, kind)
            second = asked.filter(kind=kind).group_by("item").agg(ordered_mean(["MRR", "rank"]))
            if first is not None and second.height:
                premises[kind] = ontoprobe_reasoning.classify(
                    cases,
                    first,
                    second,
                    _rule(switches["premise"]),
                    switches["missing_candidate"] == "skip",
                )
        if premises:
            label = memory.label if memory else model
            settings[f"{label}, {benchmark}"] = ontoprobe_reasoning.settings(
                answers, premises, cases, switches["premise"] == "halves_dropped"
            )
    return ontoprobe_reasoning.figures(settings) if settings else None


def _rule(switch: str) -> str:
    return "threshold" if switch == "threshold" else "halves"


def _first_premise(memory: Answered | None, kind: str) -> pl.DataFrame | None:
    """item, MRR, rank of the memorising answers at m, mean with the template kind in use."""
    if memory is None:
        return None
    parts = []
    values = memory.values.filter((pl.col("template") == "soft") == (kind == "soft"))
    for task in values["task"].unique().to_list():
        own = values.filter(task=task)
        chosen = ontoprobe_values.fixed(own, task)
        if chosen is not None:
            parts.append(ontoprobe_values.of_configuration(own, chosen))
    if not parts:
        return None
    joined = pl.concat(parts).filter(role="test")
    return joined.select(
        "item", MRR=pl.col("MRR") / 100, rank=100 / pl.col("MRRa").clip(lower_bound=1e-9)
    )
