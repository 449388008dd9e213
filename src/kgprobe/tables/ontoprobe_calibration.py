"""OntoProbe's calibration: taught and untaught statements, and what else makes untaught ones right.

A control model is taught the finest class of each subject, in every wording (probes/taught.py), so
an untaught subject can be right without being known: its name may give the class away, the same
class was taught of others, or it is the class that most answers share.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.metrics.intervals import wilson
from kgprobe.metrics.ranking import auc
from kgprobe.tables import calibration, ontoprobe, ontoprobe_values, table
from kgprobe.tables.ontoprobe import Answered

#: tasks whose statements the control models are taught
TASKS = ("TP", "SCO")
WORLD = "onto_world"
Sets = Mapping[str, tuple[pl.DataFrame, pl.DataFrame]]
Cells = list[dict[str, object]]


@dataclass(frozen=True)
class Told:
    """One task's statements of TAUGHT by subject: whether taught, and the taught answers."""

    taught: Mapping[str, bool]
    #: subject -> its answer, of the taught ones
    answers: Mapping[str, str]

    @property
    def commonest(self) -> set[str]:
        """The answers that were taught most often; several where they are as many."""
        counts = Counter(self.answers.values())
        return {a for a, n in counts.items() if n == max(counts.values())}


def tables(
    found: Sequence[Answered], sets: Sets, taught: pl.DataFrame | None
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """(TABLE `ontoprobe_calibration`, TABLE `ontoprobe_untaught`); None where they do not apply.

    Calibration: a row "model | benchmark | task | kind" for every kind of template, manual and
    soft, in the configuration laid down beforehand; R@1 in per cent, and MRR beside it. Untaught:
    for the rows of control models above the limit, what the untaught statements that are right
    have in common, beside those that are not. `sets`: benchmark -> (ITEMS, CANDIDATES); `taught`:
    TAUGHT with facts "task/subject". Only benchmarks of the embedded world are asked.
    """
    known = {} if taught is None else {task: _told(taught, task) for task in TASKS}
    made: Cells = []
    explained: Cells = []
    for own in found:
        if not own.benchmark.startswith(WORLD):
            continue
        for kind, values in ontoprobe.kinds(own.values):
            for task, told in known.items():
                rows = values.filter(task=task, role="test")
                chosen = ontoprobe_values.fixed(rows, task) if rows.height else None
                if chosen is None:
                    continue
                rows = ontoprobe_values.of_configuration(rows, chosen)
                rows = _with_golds(rows, *sets[own.benchmark])
                fate = [told.taught.get(label) for label in rows["label"]]
                rows = rows.with_columns(taught=pl.Series(fate, dtype=pl.Boolean))
                halves = [rows.filter(taught=half) for half in (True, False)]
                if not all(part.height for part in halves):
                    continue
                name = f"{own.label} | {own.benchmark} | {task} | {kind}"
                cells = _row(name, *halves)
                made += cells
                values_ = {str(c["column"]): float(str(c["value"])) for c in cells}
                if own.control and values_["untaught"] > values_["limit for untaught"]:
                    explained += _explained(name, halves[1], told)
    return (table.build(made) if made else None, table.build(explained) if explained else None)


def _told(taught: pl.DataFrame, task: str) -> Told:
    own = taught.filter(relation=task)
    fates = dict(own.select("subject", "taught").rows())
    return Told(fates, dict(own.filter("taught").select("subject", "object").rows()))


def _with_golds(rows: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Rows with `subject`, `named` (labels of their golds) and `options` (size of their set)."""
    size = dict(candidates.group_by("set").len().rows())
    label = {(s, i): name for s, i, name in candidates.select("set", "index", "label").rows()}
    own = [
        (item, subject, [label[name, a] for a in answers], size[name])
        for item, subject, name, answers in items.select(
            "item", "subject", "candidates", "answers"
        ).rows()
    ]
    columns = ["item", "subject", "named", "options"]
    frame = pl.DataFrame(own, schema=columns, orient="row")
    return rows.join(frame, on="item", how="left", maintain_order="left")


def _row(name: str, taught: pl.DataFrame, untaught: pl.DataFrame) -> Cells:
    """One probe's figures; chance: a random candidate is one of the golds."""
    shares = []
    for part in (taught, untaught):
        hits = float(part["R@1"].sum()) / 100
        low, high = wilson(min(hits, part.height), part.height)
        shares.append((100 * hits / part.height, part.height, (100 * low, 100 * high)))
    chance = 100 * float((untaught["golds"] / untaught["options"]).mean())  # type: ignore[arg-type]
    area = auc(taught["MRR"].to_numpy(), untaught["MRR"].to_numpy())
    cells = calibration.cells(
        "ontoprobe_calibration", name, shares[0], shares[1], chance, area, "ontoprobe"
    )
    for part, words in ((taught, "taught"), (untaught, "untaught")):
        mean = float(part["MRR"].mean())  # type: ignore[arg-type]
        cells.append(
            table.cell(
                "ontoprobe_calibration", name, f"MRR, {words}", mean, part.height,
                paper="ontoprobe",
            )
        )  # fmt: skip
    return cells


def _explained(name: str, rows: pl.DataFrame, told: Told) -> Cells:
    """Shares, in per cent, of the untaught statements that are right and of those that are not."""
    common = told.commonest
    others: dict[str, list[str]] = {}
    for subject, answer in told.answers.items():
        others.setdefault(answer, []).append(subject)
    reasons: dict[str, list[bool]] = {n: [] for n in REASONS}
    for label, subject, golds in rows.select("label", "subject", "named").rows():
        siblings = [s for gold in golds for s in others.get(gold, ())]
        own = words(subject) | words(label)
        found = (
            any(words(gold) & own for gold in golds),
            bool(siblings),
            any(words(sibling) & own for sibling in siblings),
            bool(common & set(golds)),
        )
        for reason, holds in zip(REASONS, found, strict=True):
            reasons[reason].append(holds)
    reasons[ANY] = [any(held) for held in zip(*reasons.values(), strict=True)]
    # half a hit is a tie for the first place
    is_right = rows["R@1"] >= 50.0
    cells: Cells = []
    for half, mask in (("right", is_right), ("wrong", ~is_right)):
        for reason, held in reasons.items():
            part = pl.Series(held, dtype=pl.Boolean).filter(mask)
            if part.len():
                low, high = wilson(int(part.sum()), part.len())
                cells.append(
                    table.cell(
                        "ontoprobe_untaught", f"{name} | {half}", reason,
                        100 * int(part.sum()) / part.len(), part.len(), (100 * low, 100 * high),
                        paper="ontoprobe",
                    )
                )  # fmt: skip
    return cells


#: why an untaught statement may be right though nobody told it
REASONS = (
    "a gold shares a word with the subject",
    "a gold was taught of another subject",
    "... whose name shares a word with this one",
    "a gold is the answer taught most often",
)
ANY = "any of these"


def words(text: str) -> set[str]:
    """The words of a name, without case and without a plural's s.

    >>> sorted(words("Rugby clubs (women)"))
    ['club', 'rugby', 'women']
    """
    found = re.findall(r"\w+", text.casefold())
    return {w.removesuffix("s") if len(w) > 3 else w for w in found}
