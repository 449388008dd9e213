"""From the files of a run to OntoProbe's tables and chapter."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from kgprobe import schema
from kgprobe.metrics.ranking import auc
from kgprobe.metrics.sums import ordered_mean
from kgprobe.tables import (
    marks,
    ontoprobe,
    ontoprobe_groups,
    ontoprobe_means,
    ontoprobe_modes,
    ontoprobe_reasoning,
    ontoprobe_values,
    table,
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

    `tied`: the same answers by the way in which ties are read, for the modes side by side.
    """
    tp_rows = switches["tp_rows"]
    sets = {
        name: (
            schema.read(folder / "items.parquet", schema.ITEMS),
            schema.read(folder / "candidates.parquet", schema.CANDIDATES),
        )
        for name, folder in folders.items()
    }
    items = {name: pair[0] for name, pair in sets.items()}
    whole = {name: pair for name, pair in sets.items() if not name.endswith("_lite")}
    is_ranked = any((a.values["masks"] != "sentence").any() for a in found)
    labelled = [(f"{a.label} | {a.benchmark}", a.values) for a in found]
    given, configured = printed["memorizing"], printed["configurations"]
    made = {
        "ontoprobe_sizes": ontoprobe.sizes(items, printed["sizes"]),
        "ontoprobe_configurations": ontoprobe.configurations(found, configured, tp_rows, seed),
        "ontoprobe_memorising": ontoprobe.memorising(found, given, tp_rows, seed),
        "ontoprobe_groups": ontoprobe_groups.groups(found, tp_rows, seed, switches["select"]),
        "ontoprobe_modes": ontoprobe_modes.modes(tied or {switches["ties"]: found}, switches, seed),
        "ontoprobe_seeds": ontoprobe_means.seeds(labelled, tp_rows),
        "ontoprobe_baseline": (ontoprobe.baselines(whole, given, tp_rows, seed) if whole else None),
        "ontoprobe_averages": (
            ontoprobe.averages(found, configured, tp_rows, seed) if is_ranked else None
        ),
        "ontoprobe_calibration": calibration(found, taught, seed) if taught is not None else None,
    }
    return {name: frame for name, frame in made.items() if frame is not None}


def calibration(found: Sequence[Answered], taught: pl.DataFrame, seed: int) -> pl.DataFrame | None:
    """TABLE `ontoprobe_calibration`: MRR of taught and untaught statements, and their AUC.

    `taught`: TAUGHT whose facts are "task/label"; only benchmarks of the embedded world are asked.
    """
    known = dict(taught.select("fact", "taught").rows())
    cells: list[dict[str, object]] = []
    for own in found:
        if not own.benchmark.startswith("onto_world"):
            continue
        for task in ("TP", "SCO"):
            rows = own.values.filter(task=task, role="test")
            best = ontoprobe_values.fixed(rows, task) if rows.height else None
            if best is None:
                continue
            rows = ontoprobe_values.of_configuration(rows, best)
            fate = [known.get(f"{task}/{label}") for label in rows["label"].to_list()]
            rows = rows.with_columns(taught=pl.Series(fate, dtype=pl.Boolean))
            halves = {half: rows.filter(taught=half) for half in (True, False)}
            if not all(part.height for part in halves.values()):
                continue
            name = f"{own.label} | {own.benchmark} | {task}"
            for half, words in ((True, "taught"), (False, "untaught")):
                part = halves[half]
                for metric, value, bounds in ontoprobe_means.means(part, ("R@1", "MRR"), seed):
                    cells.append(
                        table.cell(
                            "ontoprobe_calibration",
                            name,
                            f"{metric}, {words}, %",
                            value,
                            part.height,
                            bounds,
                            paper="ontoprobe",
                        )
                    )
            one, other = (halves[h]["MRR"].to_numpy() for h in (True, False))
            drawn = np.random.Generator(np.random.PCG64(seed))
            areas = [
                auc(drawn.choice(one, len(one)), drawn.choice(other, len(other)))
                for _ in range(500)
            ]
            value = auc(one, other)
            low, high = np.quantile(areas, [0.025, 0.975])
            bounds = (min(float(low), value), max(float(high), value))
            cells.append(
                table.cell(
                    "ontoprobe_calibration",
                    name,
                    "AUC",
                    value,
                    len(one) + len(other),
                    bounds,
                    paper="ontoprobe",
                )
            )
    return table.build(cells) if cells else None


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
