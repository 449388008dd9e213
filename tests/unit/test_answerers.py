"""Coded answerers: what they answer, what metrics make of it by hand, and the marks that follow."""

from collections import Counter
from dataclasses import replace

import polars as pl
import pytest

from kgprobe.benchmarks import invented
from kgprobe.benchmarks.invented import (
    ARMS,
    CONTRADICTED,
    HELD_OUT,
    PARTS,
    PHENOMENA,
    RULES,
    WHOLE,
    WorldError,
    cases,
)
from kgprobe.benchmarks.ontoprobe import invented as ontology
from kgprobe.metrics import answerers
from kgprobe.metrics.answerers import ANSWERERS, ECHO, PRIOR, SEPARATES, Question, Statement
from kgprobe.metrics.intervals import Interval, wilson
from kgprobe.settings import ATTRIBUTES
from kgprobe.sheets import located
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import answerers as of_attributes
from kgprobe.tables.attributes import published
from kgprobe.tables.attributes import section as attributes_section
from kgprobe.tables.attributes import views as attribute_views
from kgprobe.tables.ontoprobe import answerers as of_rules
from kgprobe.tables.ontoprobe import section as ontoprobe_section
from kgprobe.tables.ontoprobe import views as rule_views
from kgprobe.tables.report import grid, marks
from kgprobe.tables.results import Number, frame

#: of every arm
SIZE = 60


@pytest.fixture(scope="module")
def attributes():
    return frame("attributes", of_attributes.numbers(0, SIZE))


@pytest.fixture(scope="module")
def rules():
    return frame("ontoprobe", of_rules.numbers(0, 40))


ASKED = Question(
    "rex", "type", ("cat", "dog", "animal", "stone"),
    known={Statement("dog", "subclass", "animal")},
    premises=[Statement("rex", "type", "dog")],
    text="Rex is a dog. Therefore, Rex is a particular", counts={"stone": 9, "cat": 2},
    rules=(RULES["rdfs9"],), key="q",
)  # fmt: skip


def test_each_answerer_knows_what_it_is_said_to_know():
    told = {name: answer(ASKED) for name, answer in ANSWERERS.items()}
    assert told["lookup"] == [0, 1, 0, 0]
    assert told["lookup and rules"] == [0, 1, 1, 0]
    assert told["prior"] == [2, 0, 0, 9]
    assert told["echo"] == [0, 1, 0, 0]
    assert sum(told["random"]) == 1
    # a name inside another word is not named
    assert answerers.echo(replace(ASKED, text="dogma")) == [0, 0, 0, 0]
    drawn = Counter(
        answerers.choose_option(answerers.random(replace(ASKED, key=str(i)))) for i in range(4000)
    )
    assert all(900 < drawn[place] < 1100 for place in range(4))


#: rule -> premises and conclusion, written out (RDF Schema 1.1 Semantics, 9.2.1, rdfs2 to rdfs11)
ENTAILED = {
    "rdfs2": ("p domain c, x p y", "x type c"),
    "rdfs3": ("p range c, x p y", "y type c"),
    "rdfs5": ("p implies q, q implies r", "p implies r"),
    "rdfs7": ("p implies q, x p y", "x q y"),
    "rdfs9": ("c subclass d, x type c", "x type d"),
    "rdfs11": ("c subclass d, d subclass e", "c subclass e"),
    "symmetry": ("a symmetric b", "b symmetric a"),
    "composite": ("a first b, b second c", "a closing c"),
}


@pytest.mark.parametrize("name", ENTAILED)
def test_a_rule_concludes_what_its_standard_says_and_nothing_else(name):
    body, head = ENTAILED[name]
    known = {Statement(*text.split()) for text in body.split(", ")}
    made = answerers.closure(known, [RULES[name]])
    assert made == known | {Statement(*head.split())}
    if len(known) > 1:
        for one in known:
            assert answerers.closure({one}, [RULES[name]]) == {one}


@pytest.mark.parametrize("name", PHENOMENA)
def test_a_world_teaches_what_its_arms_say(name):
    found = cases(name, 6, seed=1)
    arms = Counter(case.arm for case in found)
    assert arms == dict.fromkeys(ARMS if name in RULES else (WHOLE, HELD_OUT), 6)
    for case in found:
        everything = {*case.premises, case.conclusion}
        told = set(case.trained_on)
        assert (case.conclusion in told) == (case.arm == WHOLE)
        assert (told == everything) == (case.arm == WHOLE)
        if case.arm == PARTS:
            assert told == set(case.premises)
        if case.arm == CONTRADICTED:
            (wrong,) = told - set(case.premises)
            assert wrong[:2] == case.conclusion[:2]
            assert wrong.object != case.conclusion.object
        if case.arm == HELD_OUT:
            assert not told
    assert found == cases(name, 6, seed=1)
    assert found != cases(name, 6, seed=2)


def test_a_world_that_cannot_be_or_contradicts_itself_is_refused():
    with pytest.raises(WorldError, match="unknown phenomenon 'rdfs4'; legal: symmetry"):
        cases("rdfs4", 5, 0)
    with pytest.raises(WorldError, match="symmetry: 0 examples an arm are no rows"):
        cases("symmetry", 0, 0)
    with pytest.raises(WorldError, match=r"no other object .* to contradict with"):
        cases("symmetry", 1, 0)
    found = cases("composite", 3, 0)
    one, other = found[0], found[4]
    torn = replace(
        other,
        premises=(one.premises[0]._replace(object=other.premises[1].subject), other.premises[1]),
        conclusion=other.conclusion._replace(subject=one.premises[0].subject),
    )
    with pytest.raises(
        WorldError, match=r"composite-whole-1: .* first .* contradicts composite-wh"
    ):
        invented.check([one, torn])
    with pytest.raises(WorldError, match="does not follow from its premises"):
        invented.check([replace(one, premises=one.premises[:1])])
    with pytest.raises(WorldError, match="every rule without rows"):
        ontology.invent_rows(0, 0)
    empty = of_rules.world(0, 12).cases.filter(pl.col("relation") != "rdfs7")
    with pytest.raises(WorldError, match=r"no rows of rdfs7: .*\(SPO\)"):
        of_rules.check(empty)


def test_names_are_distinct_and_pronounceable():
    found = list(invented.names(5000, 0, "x"))
    assert len(set(found)) == 5000
    for name in found[:100]:
        assert sum(letter in "aeiou" for letter in name) == 3
        assert name[-1] in "aeiou"


def values(results, **where):
    """answerer -> (value, numerator, denominator)."""
    rows = results.filter(pl.col("model") != "", **where)
    return {
        r["model"]: (r["value"], r["numerator"], r["denominator"]) for r in rows.rows(named=True)
    }


def test_what_the_metrics_make_of_written_answers_by_hand(attributes):
    """Four arms of SIZE: lookup has the forward triple in three of them and both in one; rules has
    both in two, and says one of two objects in the contradicted one."""
    written = attributes.filter(way="written")
    for name in ("symmetry", "bidirectional"):
        told = values(written, benchmark=name, metric="value")
        assert told["lookup"] == (pytest.approx(100 / 3), SIZE, 3 * SIZE)
        assert told["echo"] == (None, 0, 0)
        _, above, below = told["lookup and rules"]
        assert 2 * SIZE <= above <= below == 3 * SIZE
    for name in ("hierarchy", "composite"):
        told = values(written, benchmark=name, metric="value")
        # the conclusion is judged where both hops are known
        assert told["lookup"] == (pytest.approx(100 / 3), SIZE, 3 * SIZE)
        assert told["lookup and rules"][1] >= 2 * SIZE
    # trained on or held out, half each: the reversed triple is never said
    assert values(written, benchmark="asymmetry", metric="value")["lookup"][:2] == (50, SIZE)
    told = values(written, benchmark="bias", metric="value")
    assert told["lookup"] == told["lookup and rules"] == (50, SIZE, 2 * SIZE)


def test_ranked_silence_is_a_tie_of_all_options(attributes):
    """Nothing trained on: one of 20 options by chance, in expectation."""
    ranked = attributes.filter(way="ranked")
    told = values(ranked, benchmark="symmetry", metric="value")
    # held-out: max of two chances, and their product; half known: product with one
    n, chance = SIZE, 1 / 20
    above = n + 2 * n * chance + n * chance**2
    assert told["lookup"][2] == pytest.approx(3 * n + n * chance)
    assert told["lookup"][1] == pytest.approx(above, rel=0.05)


def verdict(results, name, **where):
    rows = results.filter(metric=name, **where)
    assert rows.height == 1
    return bool(rows["value"][0])


def test_the_verdicts_on_the_nine(attributes):
    separates = {n: verdict(attributes, SEPARATES, benchmark=n) for n in ATTRIBUTES}
    assert {n for n, found in separates.items() if found} == {
        "symmetry", "bidirectional", "hierarchy", "composite", "two_steps"
    }  # fmt: skip
    assert all(verdict(attributes, ECHO, benchmark=n) for n in ATTRIBUTES)
    assert not verdict(attributes, PRIOR, benchmark="hierarchy")
    assert verdict(attributes, PRIOR, benchmark="symmetry")
    assert not verdict(attributes, SEPARATES, benchmark="")


def test_only_a_premise_from_memory_tests_inference_without_echo(rules):
    """Explicit premises name the gold; an empty prompt leaves nothing to conclude."""
    found = {}
    for premise in ("P1 EX, P2 EX", "P1 IM, P2 EX", "P1 NO, P2 NO", "EX"):
        own = rules.filter(premise=premise, group="rdfs9")
        found[premise] = verdict(own, SEPARATES), verdict(own, ECHO)
    assert found == {
        "P1 EX, P2 EX": (True, False),
        "P1 IM, P2 EX": (True, True),
        "P1 NO, P2 NO": (False, True),
        "EX": (True, False),
    }


def test_settings_by_hand(rules):
    """rdfs2, both premises written: the rule gives the finest gold alone, so its rank is 1; memory
    has the domains of even rows, which are the half that is memorized."""
    own = rules.filter(group="rdfs2", metric="MRR")
    told = {
        (r["model"], r["premise"]): (r["value"], r["n"]) for r in own.rows(named=True)
    }  # fmt: skip
    assert told["lookup and rules", "P1 EX, P2 EX"] == (1.0, 40)
    assert told["lookup and rules", "P1 IM, P2 EX"] == (1.0, 20)
    assert told["lookup and rules", "P1 NO, P2 EX"][0] < 0.3
    chosen = values(rules.filter(premise="EX"), group="rdfs2", metric="accuracy")
    assert chosen["lookup and rules"][0] == 100
    assert chosen["lookup"][0] == 0
    assert chosen["echo"][0] > 80


def test_a_verdict_compares_intervals_and_nothing_else():
    def of(right, n):
        return Interval(*wilson(right, n), "wilson")

    base = dict.fromkeys(ANSWERERS, of(5, 100))
    assert answerers.verdicts(base) == {SEPARATES: False, ECHO: True, PRIOR: True}
    strong = {**base, "lookup and rules": of(90, 100), "echo": of(50, 100), "prior": of(8, 100)}
    assert answerers.verdicts(strong) == {SEPARATES: True, ECHO: False, PRIOR: True}
    # what is not defined gets no credit, and separates nothing
    assert answerers.verdicts({**base, "echo": None, "lookup and rules": None}) == {
        SEPARATES: False, ECHO: True, PRIOR: True
    }  # fmt: skip


def test_a_failing_metric_is_marked_at_all_its_numbers_and_no_others(attributes, rules):
    models = [
        Number(benchmark=b, model="m", method=way, metric=metric, value=1.0, n=9,
               setting={"pooling": "best"})
        for b in ("symmetry", "hierarchy", "paths")
        for way in ("fill", "sentence")
        for metric in ("value", "undefined")
    ]  # fmt: skip
    every = pl.concat([attributes, frame("attributes", models)])
    sign = marks.signs(every)
    told = {(r["benchmark"], r["method"], r["metric"]): sign(r) for r in every.rows(named=True)
            if r["model"] == "m"}  # fmt: skip
    for way in ("fill", "sentence"):
        assert told["symmetry", way, "value"] == ""
        assert told["hierarchy", way, "value"] == " (~)"
        assert told["paths", way, "value"] == " (=) (~)"
        assert {told[b, way, "undefined"] for b in ("symmetry", "hierarchy", "paths")} == {""}
    assert marks.notes([" (=) (~)"]) == [marks.SAME_NOTE, marks.FOOLED_NOTE]
    asked = [
        Number(benchmark="onto_world", group=group, model="m", method=method, metric=metric,
               value=0.5, n=9, setting={"premise": premise})
        for group, method, metric, premise in (
            ("rdfs9", "reason", "MRR", "P1 EX, P2 EX"),
            ("rdfs9", "reason", "MRR", "P1 NO, P2 NO"),
            ("TP", "cloze", "MRR", ""),
            ("rdfs9", "choice", "accuracy", "EX"),
        )
    ]  # fmt: skip
    every = pl.concat([rules, frame("ontoprobe", asked)])
    sign = marks.signs(every)
    shown = [sign(row) for row in frame("ontoprobe", asked).rows(named=True)]
    assert shown[1].startswith(" (=)")
    assert [shown[0], *shown[2:]] == [" (~)", "", " (~)"]


def test_the_tables_of_answerers_are_printed(attributes, rules):
    own = grid.of_view(attribute_views.ANSWERERS, attributes)
    assert len(own.rows) == 2 * len(ANSWERERS) + 3
    assert {cell.text for row in own.rows[-3:] for cell in row[3:]} == {"yes", "no"}
    for view in (rule_views.ANSWERERS, rule_views.VERDICTS, rule_views.ALL_ANSWERERS):
        assert grid.of_view(view, rules).rows
    # they open the sections
    nobody = Probe("symmetry", "templates", "fill", "none", "causal")
    figures = published.read(located("resources/published"))
    (first,) = attributes_section.section(attributes, [nobody], figures, {}).opening
    assert first.rows == own.rows
    page = ontoprobe_section.section(rules, [], {}, {}, "default")
    titles = [view.title for view in (rule_views.ANSWERERS, rule_views.VERDICTS)]
    assert [shown.title for shown in page.opening] == titles
    assert not set(titles) & {shown.title for shown in page.grids}
    # they stand in no table of models
    assert not attribute_views.SCORES[False][0].of(attributes).rows
    assert not rule_views.REASONING.of(rules).rows
    assert not rule_views.TABLE6.of(rules).rows
