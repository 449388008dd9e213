"""AutoPrompt's chapter of the report: its tables in the paper's layout, and its figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from kgprobe.probes.prompts.trigger_settings import NOT_RELEASED
from kgprobe.tables import autoprompt_constants as constants
from kgprobe.tables import autoprompt_sweeps, grid, table
from kgprobe.tables.autoprompt_gather import NAMES, Answered
from kgprobe.tables.autoprompt_published import Published
from kgprobe.tables.chapter import Chapter
from kgprobe.tables.grid import Cell, Grid

LEAD = (
    "A prompt with a few trigger tokens, found by gradients and shared by all examples of a task, "
    "asks a model that is not changed (Shin et al. 2020). What the triggers learn of the answers' "
    "distribution is no knowledge of the model: baselines and controls are rows of every table."
)
NOTES = (
    "Values in per cent with 95 % intervals; facts: mean over relations, examples resampled within "
    "their relation. Ties count as the expectation of a random order.",
    "Printed values stand beside ours only where model and set are the paper's; all others are "
    "quoted in rows of their own. A prompt that is searched has seen training facts, a manual one "
    "has not. All prompts are lower bounds of what a model knows.",
)
#: behind a number that the commonest training label beats
BELOW = " ‡"
MAJORITY = (
    "‡: below the majority, the commonest label of train given to every one of the same examples. "
    "Best constant: the commonest label of the examples themselves, an oracle. Total variation: "
    "half the summed difference of the shares of objects in train and test."
)
CONTROLS = "Control models were trained here on known facts: they calibrate, they know no world."
CAPTIONS = {
    "autoprompt_table1": "Table 1: accuracy on SST-2",
    "autoprompt_table2": "Table 2: test accuracy on SICK-E",
    "autoprompt_table4": "Table 4: facts",
    "autoprompt_table5": "Table 5: relation extraction, P@1",
    "autoprompt_table6": "Table 6: P@1 by relation, Original",
    "autoprompt_table7": "Table 7, numbers: P@1 by relation, Original-RoBERTa",
    "autoprompt_trex_relations": "P@1 by relation, T-REx split",
    "autoprompt_world_relations": "P@1 by relation, embedded world",
    "autoprompt_calibration": "Calibration: P@1 of control models, facts taught and untaught",
    "autoprompt_gains": "What the search gains, in points",
    "autoprompt_shift": "Constant answers by relation, and how train and test differ",
    "autoprompt_classes": "Accuracy by class",
    "autoprompt_restarts": "Restarts: the search metric on dev",
}
EXPLAINED = {
    "autoprompt_table2": "Balanced by drawing every class down to the smallest, by seed.",
    "autoprompt_table4": "No overlap: test facts that share neither pair nor inverse pair with "
    "training or dev, and whose object is not part of the subject. Filtered: other right answers "
    "are passed over. All facts: objects that are not one token count as never found.",
    "autoprompt_table5": "Right for any of a fact's sentences. The relations and training "
    "sentences are those at hand, not the paper's; the LSTM is a re-implementation on other data.",
    "autoprompt_calibration": "Chance: a random one of the ranked tokens. What a search learns of "
    "the answers' distribution is right for untaught facts, too.",
    "autoprompt_gains": "Paired: the same examples for both. Above zero, the search is better.",
    "autoprompt_restarts": "The chosen restart is the best on dev: what choosing adds shows here.",
}
#: tables that stand behind a line that opens them
FOLDED = (
    "autoprompt_shift",
    "autoprompt_classes",
    "autoprompt_restarts",
    "autoprompt_trex_relations",
)


def chapter(
    made: Mapping[str, pl.DataFrame],
    found: Sequence[Answered],
    published: Published,
    records: Mapping[str, Sequence[Mapping[str, object]]],
    settings: Mapping[str, Any],
    told: Sequence[str] = (),
    funnels: Mapping[str, pl.DataFrame] | None = None,
) -> Chapter:
    """The chapter from the tables that were made; `records`: rows of text tables by their title.

    `told`: notes of the tasks; `funnels`: benchmark -> FUNNEL of how it was made.
    """
    quoted = _quoted(published)
    shown = [_grid(name, made[name], found, quoted.get(name, {})) for name in _order(made)]
    grids = [g for g, name in zip(shown, _order(made), strict=True) if name not in FOLDED]
    folded = [g for g, name in zip(shown, _order(made), strict=True) if name in FOLDED]
    for title, rows in records.items():
        if rows:
            (folded if title.startswith("Table 7") else grids).append(grid.records(title, rows))
    if any(name in made for name in ("autoprompt_table4", "autoprompt_table6")):
        folded.append(_printed_relations(published))
    drawings = []
    if "autoprompt_figure2" in made:
        drawings += autoprompt_sweeps.draw_low_data(made["autoprompt_figure2"])
    if "autoprompt_figure3" in made:
        drawings += autoprompt_sweeps.draw_grid(made["autoprompt_figure3"])
    for benchmark, frame in (funnels or {}).items():
        steps = grid.funnel(frame)
        title = f"How {benchmark} was made: steps, all relations"
        folded.append(Grid(title, steps.heads, steps.rows, steps.numeric))
    notes = [f"Search mode {settings['mode']}.", *NOTES, MAJORITY, *_of_mode(settings, made), *told]
    if any(a.control for a in found):
        notes.append(CONTROLS)
    return Chapter("autoprompt", "Searched prompts", LEAD, notes, grids, folded, drawings)


def _of_mode(settings: Mapping[str, Any], made: Mapping[str, pl.DataFrame]) -> list[str]:
    """What a reader must know of the mode: choices that flatter, and what it does not reach."""
    found = []
    if settings.get("selection") == "full" and "autoprompt_figure2" in made:
        found.append(
            "Figure 2 is optimistic: prompts are chosen on the whole dev set, which is the score."
        )
    if settings["mode"] == "released":
        found.append("The released code does otherwise: " + "; ".join(NOT_RELEASED) + ".")
    return found


def _order(made: Mapping[str, pl.DataFrame]) -> list[str]:
    return [name for name in CAPTIONS if name in made]


def _grid(
    name: str,
    frame: pl.DataFrame,
    found: Sequence[Answered],
    quoted: Mapping[str, Mapping[str, float]],
) -> Grid:
    """A table for reading: ours, then the printed rows, which are said to be so."""
    cells, columns = table.lookup(frame), table.columns_of(frame)
    by_relation = name.endswith("relations") or name in ("autoprompt_table6", "autoprompt_table7")
    rows = list(dict.fromkeys(frame["row"]))
    body = [
        [
            _head(row, found),
            *(
                value(cells.get((row, column)), constants.below(cells, row, column))
                for column in columns
            ),
        ]
        for row in (sorted(rows, key=grid.property_order) if by_relation else rows)
    ]
    for row, values in quoted.items():
        known = [values.get(column) for column in columns]
        if any(v is not None for v in known):
            muted = [Cell("–", muted=True) if v is None else _printed(v) for v in known]
            body.append([Cell(row, "printed", row.casefold(), muted=True), *muted])
    first = "relation" if by_relation else "model, prompt"
    heads = [first, *(_column(column, found) for column in columns)]
    numeric = frozenset(range(1, len(heads)))
    return Grid(CAPTIONS[name], heads, body, numeric, EXPLAINED.get(name, ""))


def value(cell: Mapping[str, Any] | None, majority: float | None = None) -> Cell:
    """A number with its interval, and under it what the paper prints.

    Below the `majority` that is given it is marked.
    """
    shown = grid.measured(cell)
    if cell is None:
        return shown
    printed = "" if cell["published"] is None else f"printed {cell['published']:g}"
    under = "" if majority is None else f"below majority {grid.number(majority)}"
    small = "; ".join(filter(None, [shown.small, printed, under]))
    return Cell(shown.text + BELOW * bool(under), small, shown.sort, shown.hint)


def _printed(number: float) -> Cell:
    return Cell(f"{number:.2f}", sort=number, muted=True)


def _head(row: str, found: Sequence[Answered]) -> Cell:
    """`model | prompt`, as a name with the prompt in words; anything else as it is."""
    by_label = {a.label: a for a in found}
    own = by_label.get(row)
    if own is None:
        return grid.text(row)
    kind = f"{own.kind}, control" if own.control else own.kind
    return Cell(f"{own.shown}: {NAMES.get(own.prompt, own.prompt)}", kind, row.casefold())


def _column(column: str, found: Sequence[Answered]) -> str:
    own = next((a for a in found if a.label == column), None)
    return f"{own.shown}: {NAMES.get(own.prompt, own.prompt)}" if own else column


def _quoted(published: Published) -> dict[str, dict[str, dict[str, float]]]:
    """table -> printed row -> our column -> value."""
    heads = {"original": "Original", "trex": "T-REx", "original-roberta": "Original-RoBERTa"}
    measures = {"p_at_1": "P@1", "p_at_10": "P@10", "mrr": "MRR"}
    columns = {"standard": "standard", "three_way": "3-way", "two_way": "2-way"}
    made: dict[str, dict[str, dict[str, float]]] = {}

    def put(name: str, row: str, column: str, number: float) -> None:
        made.setdefault(name, {}).setdefault(row, {})[column] = number

    for (model, method, split), number in published.sentiment.items():
        put("autoprompt_table1", f"{model}, {method}", split, number)
    for (model, method, variant), number in published.inference.items():
        row = f"{model}, {method}" if model else method
        put("autoprompt_table2", row, columns[variant], number)
    for (group, model, prompt, measure), number in published.facts.items():
        column = f"{heads[group]} {measures[measure]}"
        put("autoprompt_table4", f"{model}, {prompt}", column, number)
    for (model, prompt, column), number in published.extraction.items():
        put("autoprompt_table5", f"{model}, {prompt}", column, number)
    return made


def printed_means(published: Published) -> dict[str, float]:
    """Column means of the printed Table 6; they differ from Table 4's (README of the figures)."""
    columns: dict[str, list[float]] = {}
    for (_, column), number in published.relations.items():
        columns.setdefault(column, []).append(number)
    return {name: sum(values) / len(values) for name, values in columns.items() if name != "train"}


def printed_losses(published: Published) -> list[str]:
    """Relations where the printed AutoPrompt is worse than the better of LAMA and LPAQA."""
    at = published.relations
    relations = dict.fromkeys(relation for relation, _ in at)
    worse = [r for r in relations if at[r, "autoprompt_5"] < max(at[r, "lama"], at[r, "lpaqa"])]
    return sorted(worse, key=grid.property_order)


def _printed_relations(published: Published) -> Grid:
    """Table 6 as printed, with the means of its columns."""
    heads = {
        "train": "search facts",
        "lama": "LAMA",
        "lpaqa": "LPAQA",
        "autoprompt_5": "AutoPrompt",
    }
    at = published.relations
    rows = [
        [grid.text(relation), *(_printed(at[relation, column]) for column in heads)]
        for relation in sorted(dict.fromkeys(r for r, _ in at), key=grid.property_order)
    ]
    means = printed_means(published)
    rows.append([grid.text("mean"), Cell("–", muted=True), *(_printed(v) for v in means.values())])
    worse = ", ".join(printed_losses(published))
    caption = (
        "Means of the columns; Table 4 prints 31.10, 34.10 and 42.94. AutoPrompt is worse than the "
        f"better of the two others on {worse}."
    )
    title = "Table 6 as printed: bert-base-cased, P@1"
    return Grid(title, ["relation", *heads.values()], rows, frozenset(range(1, 5)), caption)
