"""Coded answerers through the tests of the six rules, before any model (metrics/answerers.py).

They were taught half of the first premises of an invented ontology and read those that are written;
the second premise is about a word that nobody was taught. What they answer goes through the code
that judges models: ranks, halves and settings of the reasoning task, and multiple choice.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kgprobe.benchmarks.invented import RULES as FOLLOWS
from kgprobe.benchmarks.invented import WorldError
from kgprobe.benchmarks.ontoprobe import build, choices, invented
from kgprobe.benchmarks.ontoprobe import reasoning as questions
from kgprobe.benchmarks.ontoprobe.concepts import norm
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.metrics import answerers
from kgprobe.metrics.answerers import ANSWERERS, Question, Rule, Statement
from kgprobe.tables.answers import Probe
from kgprobe.tables.ontoprobe import choices as chosen
from kgprobe.tables.ontoprobe import reasoning
from kgprobe.tables.ontoprobe.reasoning import RULES, WEIGHTINGS
from kgprobe.tables.report import marks
from kgprobe.tables.report.marks import ANSWERER, INVENTED
from kgprobe.tables.results import Number

#: rows of every rule
ROWS = 100
#: what the first premise of each rule states
STATES = {"DM": "domain", "RG": "range", "SPO": "implies", "SCO": "subclass"}
SCHEME, KIND, WAY = "manual", "manual", "answer"
X, Y = "[X]", "[Y]"
PAIR = f"{X} {Y}"
#: rule -> subject and relation that are asked for. rdfs7 asks for the relation: a pair of names is
#: linked by a pattern
ASKED = {
    "rdfs2": (X, "type"), "rdfs3": (Y, "type"), "rdfs5": (X, "implies"),
    "rdfs7": (PAIR, "links"), "rdfs9": (X, "type"), "rdfs11": (X, "subclass"),
}  # fmt: skip
LINKED = Rule(
    (Statement("?p", "implies", "?q"), Statement("?x", "links", "?p")),
    Statement("?x", "links", "?q"),
)


@dataclass(frozen=True)
class World:
    """An invented ontology as questions: ITEMS of both kinds, options by set, what is taught."""

    items: pl.DataFrame
    cases: pl.DataFrame
    choices: pl.DataFrame
    labels: Mapping[str, Sequence[str]]
    #: memorizing item -> what is taught of it; its subject and finest gold
    taught: Mapping[str, Statement]
    rows: Mapping[str, tuple[str, str]]
    #: memorizing task -> how often a label is a gold of what is taught
    counts: Mapping[str, Counter[str]]

    def rules(self, rule: str) -> tuple[Rule, ...]:
        """What follows under a rule; subclasses of subclasses are subclasses under all."""
        return LINKED if rule == "rdfs7" else FOLLOWS[rule], FOLLOWS["rdfs11"]


def world(seed: int, rows: int = ROWS) -> World:
    """The questions of an invented ontology. Raises WorldError where a rule has no rows."""
    taken, switches = invented.invent_rows(rows, seed), Switches()
    sets = build.build(taken, switches, INVENTED)
    cases = questions.build(taken, sets.items, sets.candidates, switches)
    check(cases)
    grouped = sets.candidates.sort("index").group_by("set", maintain_order=True).agg("label")
    asked = choices.memorizing(sets.items, sets.candidates, sets.prompts, seed=seed)
    asked = pl.concat([asked, choices.reasoning(cases, asked, sets.items)])
    taught, counts = {}, {name: Counter[str]() for name in STATES}
    for row in taken.rows:
        if row.row % 2 == 0:
            item = f"{row.task}-{row.row}"
            taught[item] = Statement(row.subject, STATES[row.task], norm(row.golds[0]))
            counts[row.task].update(map(norm, row.golds))
    known = {f"{row.task}-{row.row}": (row.subject, norm(row.golds[0])) for row in taken.rows}
    return World(sets.items, cases, asked, dict(grouped.rows()), taught, known, counts)


def check(cases: pl.DataFrame) -> None:
    """Raise WorldError where one of the six rules has no rows to be tested with."""
    empty = [rule for rule in RULES if not cases.filter(relation=rule).height]
    if empty:
        raise WorldError(
            f"no rows of {', '.join(empty)}: a rule needs rows of its memorizing task "
            f"({', '.join(questions.RULES[rule] for rule in empty)})"
        )


def numbers(seed: int = 0, rows: int = ROWS) -> Iterator[Number]:
    """MRR and accuracy of every answerer under every rule and setting, and what they tell."""
    made, found = world(seed, rows), []
    for model in ANSWERERS:
        found += [*_ranked(made, model, seed), *_chosen(made, model)]
    yield from found
    for metric, premise in dict.fromkeys((n.metric, n.setting["premise"]) for n in found):
        of, every = Number(setting={"premise": premise}), []
        for rule in RULES:
            own = {
                n.model: n.interval
                for n in found
                if (n.group, n.metric, n.setting["premise"]) == (rule, metric, premise)
            }
            # halves of an answerer may leave a setting empty
            every.append(answerers.verdicts({model: own.get(model) for model in ANSWERERS}))
            yield from marks.told(of.but(group=rule), every[-1])
        yield from marks.told(of, marks.all_of(every))


def _ranked(made: World, model: str, seed: int) -> Iterator[Number]:
    """The reasoning task: first premises by halves of their own answers, ranks by setting."""
    answer, first = ANSWERERS[model], []
    for item, task, name, golds in made.items.select(
        "item", "relation", "candidates", "answers"
    ).rows():
        asked = _memorized(made, item, task, made.labels[name])
        first += _ranges(answer(asked), golds, item=item)
    ranks, second = [], []
    for row in made.cases.rows(named=True):
        for p1, p2 in ((a, b) for a in (True, False) for b in (True, False)):
            asked = _reasoned(made, row, p1, p2)
            more = {"scheme": SCHEME, "p1": p1, "p2": p2, "pair": 0}
            ranks += _ranges(answer(asked), row["answers"], item=row["item"], **more)
        test = json.loads(row["meta"])["p2_tests"][KIND]
        options = made.labels[test["candidates"]]
        asked = Question(*ASKED[row["relation"]], tuple(options), key=row["item"])
        second += _ranges(answer(asked), test["golds"], item=row["item"])
    one, two = (reasoning.reciprocal(pl.DataFrame(own), ["item"]) for own in (first, second))
    own = reasoning.reciprocal(pl.DataFrame(ranks), ["item", "scheme", "p1", "p2", "pair"])
    settled = reasoning.settings(own, {KIND: reasoning.classify(made.cases, one, two)})
    probe = Probe(INVENTED, "", ANSWERER, model, "answerer")
    for number in reasoning.reasoned({probe: settled}, seed):
        if number.model and number.setting["weighting"] == WEIGHTINGS[0]:
            setting = {"premise": number.setting["premise"]}
            yield replace(number, setting=setting, slice=INVENTED)


def _memorized(made: World, item: str, task: str, options: Sequence[str]) -> Question:
    """The question of a memorizing row: what is taught of its own subject."""
    return Question(
        made.rows[item][0], STATES[task], tuple(options),
        known=_taught(made, item), text=made.rows[item][0], counts=made.counts[task],
        rules=(FOLLOWS["rdfs11"],), key=item,
    )  # fmt: skip


def _taught(made: World, item: str) -> list[Statement]:
    return [made.taught[item]] if item in made.taught else []


def _reasoned(made: World, row: Mapping[str, object], p1: bool, p2: bool) -> Question:
    """The question of a rule's row with the premises that are written."""
    rule, meta = str(row["relation"]), json.loads(str(row["meta"]))
    options = made.labels[str(row["candidates"])]
    text = questions.manual(meta, p1, p2)
    return _asked(made, rule, meta["p1_item"], options, p1, p2, text, str(row["item"]))


def _asked(
    made: World, rule: str, item: str, options: Sequence[str],
    p1: bool, p2: bool, text: str, key: str,
) -> Question:  # fmt: skip
    own, gold = made.rows[item]
    first = Statement(own, STATES[questions.RULES[rule]], gold)
    subject, relation = ASKED[rule]
    second = {
        "rdfs2": Statement(X, own, Y),
        "rdfs3": Statement(X, own, Y),
    }.get(rule, Statement(subject, relation, own))
    return Question(
        subject, relation, tuple(options),
        known=_taught(made, item),
        premises=[first] * p1 + [second] * p2,
        text=text, counts=made.counts[questions.RULES[rule]], rules=made.rules(rule), key=key,
    )  # fmt: skip


def _ranges(
    scores: Sequence[float], golds: Sequence[int], **more: object
) -> list[dict[str, object]]:
    found = answerers.ranges(scores, golds)
    return [
        {**more, "gold": gold, "best": best, "worst": worst}
        for gold, (best, worst) in zip(golds, found, strict=True)
    ]


#: printed tables that have no figure for an answerer
_UNPRINTED = {
    "choice": pl.DataFrame(schema={"model": pl.String, "task": pl.String, "accuracy": pl.Float64}),
    "reasoning": pl.DataFrame(
        schema={
            "model": pl.String, "premise": pl.String, "rule": pl.String, "accuracy": pl.Float64
        }
    ),
}  # fmt: skip


def _chosen(made: World, model: str) -> Iterator[Number]:
    """Multiple choice: what is said, and nothing where an answerer is silent."""
    answer, picked = ANSWERERS[model], []
    for row in made.choices.rows(named=True):
        if row["premise"]:
            is_written = row["premise"] == "EX"
            asked = _asked(
                made, row["task"], row["source"], row["options"],
                is_written, True, row["question"], row["item"],
            )  # fmt: skip
        else:
            asked = _memorized(made, row["item"], row["task"], row["options"])
        picked.append((row["item"], WAY, answerers.chosen_option(answer(asked)), "option"))
    columns = {"item": pl.String, "way": pl.String, "chosen": pl.Int32, "rule": pl.String}
    own = pl.DataFrame(picked, schema=columns, orient="row")
    probe = Probe(INVENTED, "", ANSWERER, model, "answerer")
    for number in chosen.chosen(probe, made.choices, own, _UNPRINTED):
        if number.group in RULES and "premise" in number.setting:
            yield replace(number, slice=INVENTED)
