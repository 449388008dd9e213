"""Coded answerers through the tests of the six rules, before any model (metrics/answerers.py).

Half of the first premises of an invented ontology are their training facts, and they read those
that are written; the second premise is about a word outside these. Their answers go through the
code that judges models: ranks, halves and settings of the reasoning task, and multiple choice.
"""

import itertools
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
X, Y = "[X]", "[Y]"
PAIR = f"{X} {Y}"
#: rule -> subject and relation that are asked for. rdfs7 asks for the relation: a pair of names is
#: linked by a pattern
QUERIES = {
    "rdfs2": (X, "type"), "rdfs3": (Y, "type"), "rdfs5": (X, "implies"),
    "rdfs7": (PAIR, "links"), "rdfs9": (X, "type"), "rdfs11": (X, "subclass"),
}  # fmt: skip
LINKED = Rule(
    (Statement("?p", "implies", "?q"), Statement("?x", "links", "?p")),
    Statement("?x", "links", "?q"),
)
#: printed tables that have no figure for an answerer
_UNPRINTED = dict.fromkeys(
    ("choice", "reasoning"),
    pl.DataFrame(schema=dict.fromkeys(("model", "task", "premise", "rule", "accuracy"), pl.String)),
)


@dataclass(frozen=True)
class World:
    """An invented ontology as questions: ITEMS of both kinds, options by set, training facts."""

    items: pl.DataFrame
    cases: pl.DataFrame
    choices: pl.DataFrame
    labels: Mapping[str, Sequence[str]]
    #: memorizing item -> what it states; training facts (`trained_on`) are those of even rows
    rows: Mapping[str, Statement]
    trained_on: Mapping[str, Statement]
    #: memorizing task -> how often a label is a gold of a training fact
    counts: Mapping[str, Counter[str]]

    def memorized(self, item: str, task: str, options: Sequence[str]) -> Question:
        """The question of a memorizing row: the training fact of its subject."""
        question = Question(self.rows[item].subject, STATES[task], tuple(options), key=item)
        return replace(self._with_known(question, item, task), text=question.subject)

    def ask(
        self, rule: str, item: str, options: Sequence[str], p1: bool, p2: bool, text: str, key: str
    ) -> Question:
        """The question of a rule on a memorizing row, with the premises that are written."""
        subject, relation = QUERIES[rule]
        first = self.rows[item]
        second = Statement(subject, relation, first.subject)
        if rule in ("rdfs2", "rdfs3"):
            second = Statement(X, first.subject, Y)
        question = Question(subject, relation, tuple(options), text=text, key=key)
        question = self._with_known(question, item, questions.RULES[rule])
        # subclasses of subclasses are subclasses under all rules
        follows = LINKED if rule == "rdfs7" else FOLLOWS[rule]
        written = [first] * p1 + [second] * p2
        return replace(question, premises=written, rules=(follows, *question.rules))

    def _with_known(self, question: Question, item: str, task: str) -> Question:
        known = [self.trained_on[item]] if item in self.trained_on else []
        return replace(question, known=known, counts=self.counts[task], rules=(FOLLOWS["rdfs11"],))


def world(seed: int, rows: int = ROWS) -> World:
    """The questions of an invented ontology. Raises WorldError where a rule has no rows."""
    ontology, switches = invented.invent_rows(rows, seed), Switches()
    sets = build.build(ontology, switches, INVENTED)
    cases = questions.build(ontology, sets.items, sets.candidates, switches)
    check(cases)
    grouped = sets.candidates.sort("index").group_by("set", maintain_order=True).agg("label")
    lettered = choices.memorizing(sets.items, sets.candidates, sets.prompts, seed=seed)
    lettered = pl.concat([lettered, choices.reasoning(cases, lettered, sets.items)])
    counts = {name: Counter[str]() for name in STATES}
    stated, trained_on = {}, {}
    for row in ontology.rows:
        item = f"{row.task}-{row.row}"
        stated[item] = Statement(row.subject, STATES[row.task], norm(row.golds[0]))
        if row.row % 2 == 0:
            trained_on[item] = stated[item]
            counts[row.task].update(map(norm, row.golds))
    return World(sets.items, cases, lettered, dict(grouped.rows()), stated, trained_on, counts)


def check(cases: pl.DataFrame) -> None:
    """Raise WorldError where one of the six rules has no rows to be tested with."""
    empty = [rule for rule in RULES if not cases.filter(relation=rule).height]
    if empty:
        raise WorldError(
            f"no rows of {', '.join(empty)}: a rule needs rows of its memorizing task "
            f"({', '.join(questions.RULES[rule] for rule in empty)})"
        )


def numbers(seed: int = 0, rows: int = ROWS) -> Iterator[Number]:
    """MRR and accuracy of every answerer under every rule and setting, and the verdicts."""
    built, results = world(seed, rows), []
    for model in ANSWERERS:
        probe = Probe(INVENTED, "", ANSWERER, model, "answerer")
        results += [*_rank(built, probe, seed), *_choose(built, probe)]
    results = [replace(number, slice=INVENTED) for number in results]
    yield from results
    for metric, premise in dict.fromkeys((n.metric, n.setting["premise"]) for n in results):
        of, every = Number(setting={"premise": premise}), []
        for rule in RULES:
            intervals = {
                n.model: n.interval
                for n in results
                if (n.group, n.metric, n.setting["premise"]) == (rule, metric, premise)
            }
            # halves of an answerer may leave a setting empty
            every.append(answerers.verdicts({model: intervals.get(model) for model in ANSWERERS}))
            yield from marks.verdict_numbers(of.but(group=rule), every[-1])
        yield from marks.verdict_numbers(of, marks.all_of(every))


def _rank(world: World, probe: Probe, seed: int) -> Iterator[Number]:
    """The reasoning task: first premises by halves of their own answers, ranks by setting."""
    answer, kind = ANSWERERS[probe.model], "manual"
    first, second, ranks = [], [], []
    columns = "item", "relation", "candidates", "answers"
    for item, task, name, golds in world.items.select(columns).rows():
        first += _ranges(answer(world.memorized(item, task, world.labels[name])), golds, item=item)
    for row in world.cases.rows(named=True):
        meta, item, rule = json.loads(row["meta"]), row["item"], row["relation"]
        options = world.labels[row["candidates"]]
        for p1, p2 in itertools.product((True, False), repeat=2):
            text = questions.manual(meta, p1, p2)
            question = world.ask(rule, meta["p1_item"], options, p1, p2, text, item)
            more = {"item": item, "scheme": kind, "p1": p1, "p2": p2, "pair": 0}
            ranks += _ranges(answer(question), row["answers"], **more)
        test = meta["p2_tests"][kind]
        question = Question(*QUERIES[rule], tuple(world.labels[test["candidates"]]), key=item)
        second += _ranges(answer(question), test["golds"], item=item)
    one, two = (reasoning.reciprocal(pl.DataFrame(rows), ["item"]) for rows in (first, second))
    rows = reasoning.reciprocal(pl.DataFrame(ranks), ["item", "scheme", "p1", "p2", "pair"])
    settled = reasoning.settings(rows, {kind: reasoning.classify(world.cases, one, two)})
    for number in reasoning.estimate_rules({probe: settled}, seed):
        if number.model and number.setting["weighting"] == WEIGHTINGS[0]:
            yield replace(number, setting={"premise": number.setting["premise"]})


def _ranges(
    scores: Sequence[float], golds: Sequence[int], **more: object
) -> list[dict[str, object]]:
    spans = zip(golds, answerers.ranges(scores, golds), strict=True)
    return [{**more, "gold": gold, "best": best, "worst": worst} for gold, (best, worst) in spans]


def _choose(world: World, probe: Probe) -> Iterator[Number]:
    """Multiple choice: the chosen option, none where an answerer is silent."""
    picked = []
    for row in world.choices.rows(named=True):
        item, task, options = row["item"], row["task"], row["options"]
        if row["premise"]:
            is_written, text = row["premise"] == "EX", row["question"]
            question = world.ask(task, row["source"], options, is_written, True, text, item)
        else:
            question = world.memorized(item, task, options)
        option = answerers.choose_option(ANSWERERS[probe.model](question))
        picked.append({"item": item, "way": "answer", "chosen": option, "rule": "option"})
    answers = pl.DataFrame(picked, schema_overrides={"chosen": pl.Int32})
    for number in chosen.score_choices(probe, world.choices, answers, _UNPRINTED):
        if number.group in RULES and "premise" in number.setting:
            yield number
