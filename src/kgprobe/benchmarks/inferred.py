"""What is taught of an invented world, and what is asked about it: ITEMS by phenomenon and arm.

    whole         premises and conclusion are taught, the conclusion is asked
    parts         the premises are taught; asked are they, and what follows from them
    untaught      nothing is taught
    contradicted  the premises are taught, and another conclusion

A sentence ends with its object, so that a relation that is taught in one direction and asked in the
other shows what a model makes of the reversal.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kgprobe.benchmarks.invented import PARTS, Case, WorldError, cases, check, word
from kgprobe.knowledge.facts import fact_id
from kgprobe.metrics.answerers import Statement
from kgprobe.sampling import hash_key
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS, TAUGHT

#: options of a question, the right one among them
OPTIONS = 10
#: what a question asks for
CONCLUSION, PREMISE = "conclusion", "premise"


@dataclass(frozen=True)
class Sets:
    """ITEMS, CANDIDATES and PROMPTS of the questions, TAUGHT of what is taught of the world."""

    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame
    taught: pl.DataFrame


def build(phenomena: Sequence[str], examples: int, seed: int) -> Sets:
    """The questions about `examples` cases of every arm of `phenomena`.

    `group` of an item is its phenomenon, `role` its arm; `meta` has what it asks for (`part`) and,
    in the contradicted arm, the place of the option that was taught (`instead`). Raises WorldError
    for no phenomenon, an unknown one, or too few examples for a question with two options.
    """
    if not phenomena:
        raise WorldError("no phenomenon to teach; name some in control.inferences.phenomena")
    used: set[str] = set()
    found = [case for name in phenomena for case in cases(name, examples, seed, used=used)]
    check(found)
    true: dict[tuple[str, str], set[str]] = {}
    for case in found:
        for subject, relation, own in (*case.premises, case.conclusion):
            true.setdefault((subject, relation), set()).add(own)
    items: list[tuple[object, ...]] = []
    options: list[tuple[object, ...]] = []
    pools = _pools(found)
    for case, key, part, statement in _asked(found):
        labels = pools[case.phenomenon, case.arm, part, statement.relation]
        others = true[statement.subject, statement.relation]
        shown = _options(key, statement.object, case.instead, labels, others, seed)
        meta: dict[str, object] = {"part": part}
        if case.instead and part == CONCLUSION:
            meta["instead"] = shown.index(case.instead)
        items.append(
            (key, case.phenomenon, case.arm, statement.relation, statement.subject,
             statement.subject, key, [shown.index(statement.object)], len(items),
             json.dumps(meta, sort_keys=True))
        )  # fmt: skip
        options += [(key, place, label, label) for place, label in enumerate(shown)]
    relations = sorted({s.relation for c in found for s in (*c.premises, c.conclusion)})
    shared = {name for case in found for name, *_ in case.premises}
    prompts = [
        (f"{relation}-1", relation, 1, f"[X] {_worded(relation, shared, seed)} [Y] .", "invented")
        for relation in relations
    ]
    return Sets(
        pl.DataFrame(items, schema=dict(ITEMS.columns), orient="row"),
        pl.DataFrame(options, schema=dict(CANDIDATES.columns), orient="row"),
        pl.DataFrame(prompts, schema=dict(PROMPTS.columns), orient="row"),
        _taught(found),
    )


def _worded(relation: str, names: set[str], seed: int) -> str:
    """A relation's word; a property that is spoken about has its own name."""
    return relation if relation in names else word(relation, seed)


def _asked(found: Sequence[Case]) -> Iterator[tuple[Case, str, str, Statement]]:
    """case, item, part and statement of every question; a premise that cases share once."""
    seen: set[Statement] = set()
    for case in found:
        yield case, case.name, CONCLUSION, case.conclusion
        for place, premise in enumerate(case.premises if case.arm == PARTS else ()):
            if premise not in seen:
                seen.add(premise)
                yield case, f"{case.name}#{place}", PREMISE, premise


def _pools(found: Sequence[Case]) -> Mapping[tuple[str, str, str, str], list[str]]:
    """The objects that stand in the same place in the cases of an arm, in an order by hash."""
    pools: dict[tuple[str, str, str, str], set[str]] = {}
    for case, _, part, (_, relation, own) in _asked(found):
        pools.setdefault((case.phenomenon, case.arm, part, relation), set()).add(own)
    _join_properties(pools)
    return {key: sorted(pool, key=lambda o: hash_key(0, "pool", o)) for key, pool in pools.items()}


def _join_properties(pools: dict[tuple[str, str, str, str], set[str]]) -> None:
    """Whoever a property links is an option of every property of the same arm and part."""
    for phenomenon in {key[0] for key in pools} & {"rdfs2", "rdfs3", "rdfs7"}:
        for arm, part in {key[1:3] for key in pools if key[0] == phenomenon}:
            own = [k for k in pools if k[:3] == (phenomenon, arm, part) and k[3] not in _OF_CLASSES]
            joined = set().union(*(pools[key] for key in own)) if own else set()
            for key in own:
                pools[key] = joined


#: relations whose objects are classes or properties
_OF_CLASSES = ("domain", "range", "implies", "type", "subclass")


def _options(
    key: str, gold: str, instead: str, pool: Sequence[str], true: set[str], seed: int
) -> list[str]:
    """Gold, what was taught in its place, and those that follow it in the pool; in hash order.

    What is true of the subject besides is no option.
    """
    place = pool.index(gold)
    others = [o for o in [*pool[place + 1 :], *pool[:place]] if o not in true and o != instead]
    shown = [gold, *([instead] if instead else []), *others][:OPTIONS]
    if len(shown) < 2:
        raise WorldError(f"{key}: {gold!r} is the only option; ask for more examples")
    return sorted(shown, key=lambda own: hash_key(seed, "order", key, own))


def _taught(found: Sequence[Case]) -> pl.DataFrame:
    """TAUGHT: every statement of the world that is taught, and the untaught conclusions."""
    taught = {statement for case in found for statement in case.taught}
    every = taught | {s for case in found for s in (*case.premises, case.conclusion)}
    rows = [(s.relation, s.subject, s.object, s in taught) for s in sorted(every)]
    columns = ["relation", "subject", "object", "taught"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return frame.with_columns(fact=fact_id()).select(list(TAUGHT.columns))
