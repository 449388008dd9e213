"""The frames of a BEAR set (items, candidates, prompts), and their invariants."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kgprobe.benchmarks.bear.filters import fold, overlap
from kgprobe.knowledge.facts import uses
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS, write
from kgprobe.templates import sentence


class BalanceError(ValueError):
    """A constructed set violates an invariant; the message names relation and row."""


@dataclass(frozen=True)
class BearFrames:
    """ITEMS, CANDIDATES and PROMPTS of one benchmark."""

    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame

    @classmethod
    def of(
        cls,
        items: Sequence[tuple[object, ...]],
        candidates: Sequence[tuple[object, ...]],
        relation: str,
        templates: Sequence[tuple[int, str]],
    ) -> "BearFrames":
        """Create the frames of one relation from rows and (index, text) of templates."""
        prompts = [(f"{relation}/{i}", relation, i, text, "manual") for i, text in templates]
        rows = (items, candidates, prompts)
        tables = zip(rows, (ITEMS, CANDIDATES, PROMPTS), strict=True)
        return cls(*(pl.DataFrame(r, dict(c.columns), orient="row") for r, c in tables))

    @classmethod
    def joined(cls, parts: Sequence["BearFrames"]) -> "BearFrames":
        """Concatenate the relations of several parts to one benchmark."""
        frames = zip(*((p.items, p.candidates, p.prompts) for p in parts), strict=True)
        return cls(*map(pl.concat, frames))

    def with_popularity(self, statements: pl.DataFrame) -> "BearFrames":
        """Add the subject's popularity to each item's `meta`: `sitelinks` if STATEMENTS have them,
        else `statements`, the number of these that contain the subject."""
        subjects = self.items["subject_id"].unique().implode()
        links = statements.drop_nulls("subject_sitelinks").select("subject", "subject_sitelinks")
        links = links.filter(pl.col("subject").is_in(subjects)).unique().sort(pl.all())
        counts = uses(statements).filter(pl.col("name").is_in(subjects))
        known = {subject: {"statements": n} for subject, n in counts.rows()}
        known |= {subject: {"sitelinks": n} for subject, n in links.rows()}
        metas = [
            json.dumps({**json.loads(meta), **known[subject]}, sort_keys=True)
            for subject, meta in self.items.select("subject_id", "meta").rows()
        ]
        items = self.items.with_columns(meta=pl.Series(metas, dtype=pl.String))
        return replace(self, items=items)

    def write(self, paths: Mapping[str, str], meta: Mapping[str, object], size: str = "") -> None:
        """Write the three files to the paths named {size}questions, {size}candidates etc."""
        write(self.items, ITEMS, paths[f"{size}questions"], meta)
        write(self.candidates, CANDIDATES, paths[f"{size}candidates"], meta)
        write(self.prompts, PROMPTS, paths[f"{size}prompts"], meta)


def relation_frames(
    benchmark: str,
    relation: str,
    answers: Sequence[tuple[str, str]],
    subjects: Sequence[tuple[str, str, int, Sequence[str]]],
    templates: Sequence[tuple[int, str]],
) -> BearFrames:
    """Create the frames of one relation.

    `answers` are (id, label) in the order of the answer space, `subjects` (id, label, index of the
    answer, aliases) in row order, `templates` (index, text).
    """
    options = f"{benchmark}/{relation}"
    items = []
    for row, (subject, label, answer, aliases) in enumerate(subjects):
        meta = json.dumps({"aliases": list(aliases)}, sort_keys=True)
        cells = (relation, "fact", relation, label, subject, options, [answer], row, meta)
        items.append((f"{relation}/{subject}", *cells))
    candidates = [(options, i, answer, label) for i, (answer, label) in enumerate(answers)]
    return BearFrames.of(items, candidates, relation, templates)


def check_balance(sets: BearFrames) -> None:
    """Raise BalanceError unless every relation is balanced, unambiguous and complete.

    Every answer has the same number of instances and is used; no subject id, subject label or
    answer label is repeated; every item has one answer; every relation has three templates.
    """
    gold = sets.items.with_columns(answer=pl.col("answers").list.first())
    wrong = gold.filter(pl.col("answers").list.len() != 1)
    if wrong.height:
        raise BalanceError(f"{wrong['item'][0]}: {wrong['answers'][0].len()} answers, expected one")
    for relation, group in gold.group_by("relation", maintain_order=True):
        name = str(relation[0])
        sizes = group.group_by("answer").len().sort("answer")
        options = sets.candidates.filter(pl.col("set") == group["candidates"][0])
        if sizes.height != options.height:
            raise BalanceError(f"{name}: {options.height} options, {sizes.height} are ever right")
        if sizes["len"].n_unique() != 1:
            counts = dict(sizes.rows())
            raise BalanceError(f"{name}: answers have different numbers of instances: {counts}")
        for column, frame in (("subject_id", group), ("subject", group), ("label", options)):
            repeated = frame.filter(frame[column].is_duplicated())
            if repeated.height:
                raise BalanceError(f"{name}: {column} {repeated[column][0]!r} occurs twice")
        texts = sets.prompts.filter(pl.col("relation") == name)["text"].to_list()
        if len(texts) != 3:
            raise BalanceError(f"{name}: {len(texts)} templates, needs three")
        for text in texts:
            sentence(text, f"{name}: template", BalanceError)


def check_nested(relation: str, big: pl.DataFrame, lite: pl.DataFrame, rule: str) -> None:
    """Raise BalanceError unless `lite` is a subset of `big` and no subject overlaps its answer.

    Both are chosen instances (subject, object, and their labels); `rule` is that of the filter.
    """
    pair = ["subject", "object"]
    stray = lite.join(big.select(pair), on=pair, how="anti")
    if stray.height:
        raise BalanceError(f"{relation}: {stray['subject'][0]} is in lite and not in big")
    for subject, name, answer in big.select("subject", "subject_label", "object_label").rows():
        if overlap(fold(name), fold(answer), rule):
            raise BalanceError(f"{relation}/{subject}: {name!r} overlaps its answer {answer!r}")
