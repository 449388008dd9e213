"""Coded answerers through the tests of the six rules, before any model (metrics/answerers.py).

They were taught half of the first premises of an invented ontology and read those that are written;
the second premise is about a word that nobody was taught. What they answer goes through the code
that judges models: ranks, halves and settings of the reasoning task, and multiple choice.
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
ASKED = {
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
    """An invented ontology as questions: ITEMS of both kinds, options by set, what is taught."""

    items: pl.DataFrame
    cases: pl.DataFrame
    choices: pl.DataFrame
    labels: Mapping[str, Sequence[str]]
    #: memorizing item -> what it states; taught are those of even rows
    rows: Mapping[str, Statement]
    taught: Mapping[str, Statement]
    #: memorizing task -> how often a label is a gold of what is taught
    counts: Mapping[str, Counter[str]]

    def memorized(self, item: str, task: str, options: Sequence[str]) -> Question:
        """The question of a memorizing row: what is taught of its own subject."""
        asked = Question(self.rows[item].subject, STATES[task], tuple(options), key=item)
        return replace(self._known(asked, item, task), text=asked.subject)

    def asked(
        self, rule: str, item: str, options: Sequence[str], p1: bool, p2: bool, text: str, key: str
    ) -> Question:
        """The question of a rule on a memorizing row, with the premises that are written."""
        subject, relation = ASKED[rule]
        first = self.rows[item]
        second = Statement(subject, relation, first.subject)
        if rule in ("rdfs2", "rdfs3"):
            second = Statement(X, first.subject, Y)
        asked = Question(subject, relation, tuple(options), text=text, key=key)
        asked = self._known(asked, item, questions.RULES[rule])
        # subclasses of subclasses are subclasses under all rules
        follows = LINKED if rule == "rdfs7" else FOLLOWS[rule]
        written = [first] * p1 + [second] * p2
        return replace(asked, premises=written, rules=(follows, *asked.rules))

    def _known(self, asked: Question, item: str, task: str) -> Question:
        known = [self.taught[item]] if item in self.taught else []
        return replace(asked, known=known, counts=self.counts[task], rules=(FOLLOWS["rdfs11"],))


def world(seed: int, rows: int = ROWS) -> World:
    """The questions of an invented ontology. Raises WorldError where a rule has no rows."""
    taken, switches = invented.invent_rows(rows, seed), Switches()
    sets = build.build(taken, switches, INVENTED)
    cases = questions.build(taken, sets.items, sets.candidates, switches)
    check(cases)
    grouped = sets.candidates.sort("index").group_by("set", maintain_order=True).agg("label")
    asked = choices.memorizing(sets.items, sets.candidates, sets.prompts, seed=seed)
    asked = pl.concat([asked, choices.reasoning(cases, asked, sets.items)])
    counts = {name: Counter[str]() for name in STATES}
    stated, taught = {}, {}
    for row in taken.rows:
        item = f"{row.task}-{row.row}"
        stated[item] = Statement(row.subject, STATES[row.task], norm(row.golds[0]))
        if row.row % 2 == 0:
            taught[item] = stated[item]
            counts[row.task].update(map(norm, row.golds))
    return World(sets.items, cases, asked, dict(grouped.rows()), stated, taught, counts)


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
        probe = Probe(INVENTED, "", ANSWERER, model, "answerer")
        found += [*_rank(made, probe, seed), *_choose(made, probe)]
    found = [replace(number, slice=INVENTED) for number in found]
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
            yield from marks.verdict_numbers(of.but(group=rule), every[-1])
        yield from marks.verdict_numbers(of, marks.all_of(every))


def _rank(made: World, probe: Probe, seed: int) -> Iterator[Number]:
    """The reasoning task: first premises by halves of their own answers, ranks by setting."""
    answer, kind = ANSWERERS[probe.model], "manual"
    first, second, ranks = [], [], []
    columns = "item", "relation", "candidates", "answers"
    for item, task, name, golds in made.items.select(columns).rows():
        first += _ranges(answer(made.memorized(item, task, made.labels[name])), golds, item=item)
    for row in made.cases.rows(named=True):
        meta, item, rule = json.loads(row["meta"]), row["item"], row["relation"]
        options = made.labels[row["candidates"]]
        for p1, p2 in itertools.product((True, False), repeat=2):
            text = questions.manual(meta, p1, p2)
            asked = made.asked(rule, meta["p1_item"], options, p1, p2, text, item)
            more = {"item": item, "scheme": kind, "p1": p1, "p2": p2, "pair": 0}
            ranks += _ranges(answer(asked), row["answers"], **more)
        test = meta["p2_tests"][kind]
        asked = Question(*ASKED[rule], tuple(made.labels[test["candidates"]]), key=item)
        second += _ranges(answer(asked), test["golds"], item=item)
    one, two = (reasoning.reciprocal(pl.DataFrame(own), ["item"]) for own in (first, second))
    own = reasoning.reciprocal(pl.DataFrame(ranks), ["item", "scheme", "p1", "p2", "pair"])
    settled = reasoning.settings(own, {kind: reasoning.classify(made.cases, one, two)})
    for number in reasoning.estimate_rules({probe: settled}, seed):
        if number.model and number.setting["weighting"] == WEIGHTINGS[0]:
            yield replace(number, setting={"premise": number.setting["premise"]})


def _ranges(
    scores: Sequence[float], golds: Sequence[int], **more: object
) -> list[dict[str, object]]:
    places = zip(golds, answerers.ranges(scores, golds), strict=True)
    return [{**more, "gold": gold, "best": best, "worst": worst} for gold, (best, worst) in places]


def _choose(made: World, probe: Probe) -> Iterator[Number]:
    """Multiple choice: what is said, and nothing where an answerer is silent."""
    picked = []
    for row in made.choices.rows(named=True):
        item, task, options = row["item"], row["task"], row["options"]
        if row["premise"]:
            is_written, text = row["premise"] == "EX", row["question"]
            asked = made.asked(task, row["source"], options, is_written, True, text, item)
        else:
            asked = made.memorized(item, task, options)
        said = answerers.chosen_option(ANSWERERS[probe.model](asked))
        picked.append({"item": item, "way": "answer", "chosen": said, "rule": "option"})
    own = pl.DataFrame(picked, schema_overrides={"chosen": pl.Int32})
    for number in chosen.score_choices(probe, made.choices, own, _UNPRINTED):
        if number.group in RULES and "premise" in number.setting:
            yield number
