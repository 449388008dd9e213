"""Validity of OntoProbe's probes: trained-on and held-out statements, and what makes these right.

A control model is taught the finest class of each subject, in every wording
(probes/control/taught.py), so an untaught subject can be right without being known: its name may
give the class away, the same class was taught of others, or it is the class that most answers
share.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from kgprobe.metrics.ranking import auc
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.ontoprobe.memorizing import Answers, Sets
from kgprobe.tables.report import validity
from kgprobe.tables.results import Number, share

#: tasks whose statements the control models are taught
TASKS = ("TP", "SCO")
WORLD = "onto_world"
#: why an untaught statement may be right though nobody told it
REASONS = (
    "a gold shares a word with the subject",
    "a gold was trained on of another subject",
    "... whose name shares a word with this one",
    "a gold is the answer trained on most often",
)
ANY = "any of these"


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


def told(taught: pl.DataFrame, task: str) -> Told:
    """A task's statements; `taught`: TAUGHT with facts "task/subject"."""
    own = taught.filter(relation=task)
    fates = dict(own.select("subject", "taught").rows())
    return Told(fates, dict(own.filter("taught").select("subject", "object").rows()))


def fates(probe: Probe, rows: pl.DataFrame, taught: pl.DataFrame) -> dict[str, bool]:
    """item -> whether its statement was taught, of rows (item, task, label) whose fate is known."""
    if not probe.benchmark.startswith(WORLD):
        return {}
    known = {task: told(taught, task).taught for task in TASKS}
    pairs = rows.select("item", "task", "label").rows()
    return {i: known[t][label] for i, t, label in pairs if label in known.get(t, {})}


def calibrated(answers: Answers, sets: Sets, taught: pl.DataFrame) -> Iterator[Number]:
    """Taught and untaught halves of each probe of the embedded world and task, in the configuration
    laid down beforehand: R@1 in per cent, AUC by MRR, and MRR beside them.

    For control models above the limit, what the untaught statements that are right have in common,
    beside those that are not. Real models were taught neither half: they are a reference, no probe
    that could fail. A probe that fails on one task stands as failed on all.
    """
    for probe, values in answers.items():
        if not probe.benchmark.startswith(WORLD):
            continue
        verdicts = []
        for task in TASKS:
            known, rows = told(taught, task), values.filter(task=task, role="test")
            chosen = per_item.fixed(rows, task)
            if chosen is None:
                continue
            rows = with_golds(per_item.of_configuration(rows, chosen), *sets[probe.benchmark])
            fate = [known.taught.get(label) for label in rows["label"]]
            rows = rows.with_columns(taught=pl.Series(fate, dtype=pl.Boolean))
            yes, no = (rows.filter(taught=half) for half in (True, False))
            if not (yes.height and no.height):
                continue
            base = Number(**probe.asked, group=task)
            found = _halves(base, yes, no, probe.control)
            yield from found
            by = {(x.metric, x.slice): x.value or 0.0 for x in found}
            if probe.control:
                verdicts.append(by["valid", ""])
                if by["held-out", ""] > by["limit for held-out", ""]:
                    yield from explained(base, no, known)
        if verdicts:
            yield Number(**probe.asked, metric="valid", n=len(verdicts), value=min(verdicts))


def with_golds(rows: pl.DataFrame, items: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Rows with `subject`, `named` (labels of their golds) and `options` (size of their set)."""
    options = candidates.select("label", set="set", answers=pl.col("index").cast(pl.Int64))
    size = candidates.group_by("set").agg(options=pl.len())
    own = items.select("item", "subject", set="candidates", answers=pl.col("answers"))
    named = own.explode("answers").with_columns(pl.col("answers").cast(pl.Int64))
    named = named.join(options, on=["set", "answers"], how="left", maintain_order="left")
    labels = named.group_by("item", maintain_order=True).agg(named="label")
    known = own.drop("answers").join(size, on="set").join(labels, on="item")
    return rows.join(known.drop("set"), on="item", how="left", maintain_order="left")


def _halves(
    base: Number, taught: pl.DataFrame, untaught: pl.DataFrame, control: bool
) -> list[Number]:
    yes, no = (validity.share(part["R@1"].to_numpy() / 100) for part in (taught, untaught))
    # a random candidate is one of the golds
    chance = 100 * float((untaught["golds"] / untaught["options"]).to_numpy().mean())
    mrr = [part["MRR"].to_numpy() for part in (taught, untaught)]
    own = [
        base.but(metric="MRR", slice=name, n=len(values), value=float(values.mean()))
        for name, values in zip(("trained-on", "held-out"), mrr, strict=True)
    ]
    return own + validity.numbers(base, yes, no, chance, auc(*mrr), control)


def explained(base: Number, rows: pl.DataFrame, known: Told) -> Iterator[Number]:
    """Shares, in per cent, of the untaught statements that are right and of those that are not."""
    others: dict[str, list[str]] = {}
    for subject, answer in known.answers.items():
        others.setdefault(answer, []).append(subject)
    held: list[dict[str, bool]] = []
    for label, subject, golds in rows.select("label", "subject", "named").rows():
        siblings = [s for gold in golds for s in others.get(gold, ())]
        own = words(subject) | words(label)
        found = (
            any(words(gold) & own for gold in golds),
            bool(siblings),
            any(words(sibling) & own for sibling in siblings),
            bool(known.commonest & set(golds)),
        )
        held.append(dict(zip((*REASONS, ANY), (*found, any(found)), strict=True)))
    reasons = pl.DataFrame(held)
    # half a hit is a tie for the first place
    is_right = rows["R@1"] >= 50.0
    for half, mask in (("right", is_right), ("wrong", ~is_right)):
        part = reasons.filter(mask)
        for reason in reasons.columns if part.height else ():
            number = base.but(metric=reason, slice=f"held-out, {half}")
            yield number.but(**share(int(part[reason].sum()), part.height))


def words(text: str) -> set[str]:
    """The words of a name, without case and without a plural's s.

    >>> sorted(words("Rugby clubs (women)"))
    ['club', 'rugby', 'women']
    """
    found = re.findall(r"\w+", text.casefold())
    return {w.removesuffix("s") if len(w) > 3 else w for w in found}
