"""Questions that need two steps: chains without a shortcut, their strata, words and numbers."""

import json
from dataclasses import replace
from random import Random

import polars as pl
import pytest
import torch

from kgprobe import schema
from kgprobe.benchmarks.attributes import shortcuts, two_steps
from kgprobe.benchmarks.attributes.definition import EmptyBenchmarkError
from kgprobe.benchmarks.attributes.settings import subject_gold_pairs
from kgprobe.metrics.intervals import wilson
from kgprobe.probes.jobs import steps
from kgprobe.probes.jobs.word import word
from kgprobe.probes.scoring.fill.reading import stepped
from kgprobe.settings import Wording
from kgprobe.sheets import SheetError, check_papers, with_raw
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import study as baselines
from kgprobe.tables.attributes import two_steps as told
from kgprobe.tables.attributes.study import SETTINGS, WHO, Benchmark
from kgprobe.templates import nouns
from tests.unit import attribute_brute as brute
from tests.unit.attribute_graphs import attribute, encode, facts, planted, settings, triples
from tests.unit.tiny_models import tiny

ALL = 10**6
WIDE = {"examples": ALL, "per_entity": ALL, "subjects": ALL, "options": 1, "eval_examples": None}
EXCLUDED = {31, 279}


def names_of(count, seed=0):
    """Labels of which some hold others."""
    draw = Random(seed)
    return {n: draw.choice([f"entity {n}", f"e{n}x", f"E{n % 7}", f"kin of e{n}x"])
            for n in range(count)}  # fmt: skip


def dense(seed, entities=14, relations=5, edges=60):
    """FACTS of a random graph in which most pairs of relations have a rule."""
    draw = Random(seed)
    rows = {
        (1 + draw.randrange(entities), 1 + draw.randrange(relations), 1 + draw.randrange(entities))
        for _ in range(edges)
    }
    return facts(sorted(t for t in rows if t[0] != t[2]), names_of(entities + 1, seed))


def rows_of(made):
    return made.examples.sort("example", "position").to_dicts() if made else []


GRAPHS = [*map(dense, range(6)), *map(planted, range(3))]


def test_no_question_has_a_shortcut_and_every_end_is_a_gold():
    asked = several = 0
    for frame in GRAPHS:
        w = brute.world(frame)
        made = attribute("two_steps", frame, objects=3, **WIDE)
        for hop1, hop2, both in zip(*[iter(rows_of(made))] * 3, strict=True):
            s, b, o = (int(row[1:]) for row in (hop1["subject"], hop2["subject"], both["object"]))
            assert (hop1["object"], hop2["object"]) == (hop2["subject"], both["object"])
            assert (both["subject"], both["predicate"]) == (
                hop1["subject"], f"{hop1['predicate']}>{hop2['predicate']}"
            )  # fmt: skip
            r1, r2 = (int(row["predicate"][1:]) for row in (hop1, hop2))
            ends = {z for x, p, y in w.g if (x, p) == (s, r1)
                    for y2, q, z in w.g if (y2, q) == (y, r2)}  # fmt: skip
            assert {int(gold[1:]) for gold in both["golds"]} == ends
            assert both["golds"][0] == f"Q{o}"
            assert s not in ends
            assert not any({x, z} == {s, end} for x, _, z in w.g for end in ends)
            labels = [w.names[n].casefold() for n in (s, b, o)]
            assert not any(a in c for i, a in enumerate(labels) for j, c in enumerate(labels)
                           if i != j)  # fmt: skip
            asked += 1
            several += len(ends) > 1
    assert asked > 100
    assert several > 10


@pytest.mark.parametrize("support", [1, 2])
def test_strata_are_those_of_amie_s_pca_confidence(support):
    seen = set()
    for frame in GRAPHS:
        w = brute.world(frame)
        made = attribute("two_steps", frame, objects=2, support=support, **WIDE)
        own = {(row["pattern"], row["flags"][0]) for row in rows_of(made)}
        for name, flag in own:
            r1, r2 = (int(p[1:]) for p in name.split(">"))
            assert flag == brute.stratum(w.g, EXCLUDED, support, r1, r2)
        seen |= {flag for _, flag in own}
    assert len(seen) >= 3


def test_the_confidence_of_every_rule_is_counted_by_its_definition():
    frame = dense(1)
    w, graph = brute.world(frame), encode(frame)
    pairs = [(r1, r2) for r1 in range(1, 6) for r2 in range(1, 6)]
    wanted = pl.DataFrame(pairs, schema={"r1": pl.Int32, "r2": pl.Int32}, orient="row")
    rules = shortcuts.confidences(graph, graph.edges, graph.edges.select("s").distinct(), wanted)
    assert rules.height > 40
    counted = {(*pair, r3): brute.confidence(w.g, (), *pair, r3) for pair in pairs
               for r3 in range(1, 6)}  # fmt: skip
    positive = {rule: found for rule, found in counted.items() if found[0]}
    assert {row[:3]: (row[4], row[3]) for row in rules.rows()} == positive


def test_no_entity_and_no_stratum_has_more_than_its_share():
    frame = dense(2)
    every = attribute("two_steps", frame, objects=3, **WIDE)
    assert every
    few = {**WIDE, "per_entity": 2, "examples": 3}
    made = attribute("two_steps", frame, objects=3, **few)
    assert made
    some = triples(made.examples)
    assert set(some) < set(triples(every.examples))
    used = pl.Series([n for (s, _, b), (_, _, o), _ in some for n in (s, b, o)])
    assert 1 < used.value_counts()["count"].max() <= 2
    flags = made.examples.filter(position=0)["flags"].list.first()
    assert flags.value_counts()["count"].max() <= 3
    again = attribute("two_steps", frame.reverse(), objects=3, **few)
    assert again
    assert again.examples.equals(made.examples)
    # some more could be taken of no stratum that is not full
    left = set(triples(every.examples)) - set(some)
    counts = dict(flags.value_counts().rows())
    stratum = dict(every.examples.filter(position=0).select("example", pl.col("flags").list[0])
                   .rows())  # fmt: skip
    for (s, r1, b), (_, r2, o), _ in left:
        name = f"two_steps/P{r1}>P{r2}/Q{s}/Q{b}/Q{o}"
        full = counts.get(stratum[name], 0) == 3
        assert full or any((used == n).sum() >= 2 for n in (s, b, o))


#: Ana's mother is Ida, who was born in Rome; Ben's is Eva, born in Oslo; ...
PEOPLE = "Ana Ben Cid Dan Eli".split()
MOTHERS = "Ida Eva Ula Pia Una".split()
TOWNS = "Rome Oslo Bonn Kyiv Lima".split()
LABELS = dict(enumerate([*PEOPLE, *MOTHERS, *TOWNS], 1))
FAMILY = [(n, 25, n + 5) for n in range(1, 6)] + [(n + 5, 19, n + 10) for n in range(1, 6)]
NOUNS = {"P25": ("mother", "is"), "P19": ("place of birth", "is")}


def family(more=(), labels=LABELS, **changed):
    changed = {"nouns": NOUNS, "eval_examples": None, **changed}
    made = attribute("two_steps", facts([*FAMILY, *more], labels), **changed)
    return sorted({row["subject_label"] for row in rows_of(made)[::3]}), made


def steps_of(made):
    return {row["step"]: (row["kept"], row["dropped"], row["reason"])
            for row in made.steps.to_dicts()}  # fmt: skip


def test_what_keeps_a_question_out():
    whole, made = family()
    assert whole == PEOPLE
    assert made.items.filter(role="two_steps")["relation"].unique().to_list() == ["P25>P19"]
    assert made.candidates.filter(set="two_steps/P25>P19")["label"].to_list() == sorted(TOWNS)
    # a statement of any relation, either way round
    for link in ((1, 31, 11), (11, 138, 1)):
        found, made = family([link])
        assert found == PEOPLE[1:]
        assert steps_of(made)["no shortcut"][:2] == (4, 1)
    # a training sentence, whatever its case and order
    for pair in (("ana", "Rome"), ("Rome", "Ana")):
        found, made = family(trained_on=frozenset([pair]))
        assert found == PEOPLE[1:]
        assert steps_of(made)["no shortcut in training sentences"][:2] == (4, 1)
    # names that hold each other, and a bridge that stands in the question
    for n, name in ((6, "ana maria"), (6, "birth"), (6, "Roman Rome"), (11, "Banana"), (1, "OF")):
        found, made = family(labels={**LABELS, n: name})
        assert len(found) == 4, name
        assert steps_of(made)["names apart"][:2] == (4, 1)
    # two mothers; and a way that leads back
    found, made = family([(1, 25, 7)])
    assert found == PEOPLE[1:]
    found, made = family([(1, 25, 7)], objects=2)
    assert found == PEOPLE
    own = made.items.filter(role="two_steps", subject="Ana")
    assert [
        made.candidates.filter(set=s)["label"][a]
        for s, answers in own.select("candidates", "answers").rows()
        for a in answers
    ] == ["Rome", "Oslo"]
    found, made = family([(11, 25, 6)])
    assert found == PEOPLE
    assert steps_of(made)["leads elsewhere"][:2] == (5, 2)


def test_relations_without_noun_phrase_or_options_are_counted():
    found, made = family([(n + 10, 17, 20 + n) for n in range(1, 6)])
    assert found == PEOPLE
    kept, lost, reason = steps_of(made)["noun phrases"]
    assert (kept, lost, reason) == (5, 5, "no noun phrase: P17 (5)")
    with pytest.raises(EmptyBenchmarkError, match="a step has fewer than 6 different objects"):
        two_steps.build(encode(facts(FAMILY, LABELS)), settings("two_steps", options=6))


def test_a_graph_without_chains_is_refused_with_its_counts():
    with pytest.raises(EmptyBenchmarkError, match=r"two_steps: no example is left.*per_entity"):
        two_steps.build(encode(facts(FAMILY[:5], LABELS)), settings("two_steps"))


def test_what_is_taught_beside_the_graph_is_read_by_label():
    items = pl.DataFrame(
        {"subject": ["a", "b"], "candidates": ["x", "x"], "answers": [[0, 1], [1]]}
    )
    options = pl.DataFrame({"set": ["x", "x"], "index": [0, 1], "label": ["A", "B"]})
    cast = items.with_columns(pl.col("answers").cast(pl.List(pl.Int64)))
    assert subject_gold_pairs([(cast, options)]) == {("a", "A"), ("a", "B"), ("b", "B")}


def test_two_steps_are_worded_by_written_noun_phrases_alone():
    rows = [
        {"relation": "P25", "index": "0", "kind": "manual", "text": "[X] is a child of [Y].",
         "note": "mother"},
        {"relation": "P25", "index": "1", "kind": "manual", "text": "The mother of [X] was [Y] .",
         "note": "mother"},
        {"relation": "P19", "index": "0", "kind": "manual",
         "text": "The place of birth of [X] is [Y].", "note": "place of birth"},
        {"relation": "P17", "index": "0", "kind": "manual", "text": "The country of [X] is [Y].",
         "note": "worded by its label: country"},
        {"relation": "P279/P279", "index": "0", "kind": "own",
         "text": "The superclass of a superclass of [X] is [Y].", "note": ""},
    ]  # fmt: skip
    assert set(nouns(rows)) == {"P25", "P19", "P17"}
    _, made = family()
    prompts, _ = word(made.items, rows, [], Wording(most=2, synonyms=0))
    own = prompts.filter(relation="P25>P19").sort("index")
    assert own["text"].to_list() == [
        "The place of birth of the mother of [X] is [Y].",
        "If you ask for the place of birth of the mother of [X], the answer is [Y].",
    ]
    with pytest.raises(ValueError, match=r"P25>P17 \(5\)"):
        word(made.items.with_columns(relation=pl.lit("P25>P17")).head(5), rows, [], Wording())


def test_the_most_frequent_end_of_two_steps_is_counted_over_chains():
    rows = [*FAMILY, (20, 25, 6)]
    graph = encode(facts(rows, LABELS))
    edges, values = (graph.frame(t) for t in (graph.edges, graph.literals))
    counted = baselines.frequencies(
        edges,
        values,
        [pl.DataFrame({"predicate": names}) for names in (["P25>P19"], ["P25", "P19"])],
    )
    counted = counted.filter(predicate="P25>P19")
    # Ida's town is reached by two
    assert counted.filter(object="Q11")["best"].to_list() == [1]
    assert set(counted["object"]) == {f"Q{n}" for n in range(11, 16)}


def benchmark(made):
    return Benchmark("two_steps", made.examples, made.items, made.candidates, pl.DataFrame())


def answered(made, draw, model="m", values=(0.0, 1.0, 1.0, 0.5)):
    """Alphas of the first prompt: fractional ones are ties."""
    own = made.examples.select("benchmark", "example", "pattern", "position")
    told_ = {"model": model, "prompt": "templates", "method": "fill", "pooling": "base", "k": 1,
             "kind": "exact", "gold": "set"}  # fmt: skip
    alphas = pl.Series("alpha", [draw.choice(values) for _ in range(own.height)])
    words = [pl.lit(told_[name]).alias(name) for name in SETTINGS]
    return own.with_columns(alphas, *words).with_columns(pl.col("k").cast(pl.Int32))


def literal(rows):
    """Numbers of examples, each (first hop, second hop, two steps), as the module says them."""
    hops = [a * b for a, b, _ in rows]
    right = [c for _, _, c in rows]
    given = sum(h * c for h, c in zip(hops, right, strict=True))
    rest = sum((1 - h) * c for h, c in zip(hops, right, strict=True))
    n = len(rows)
    return {
        told.FIRST: (sum(a for a, _, _ in rows), n), told.SECOND: (sum(b for _, b, _ in rows), n),
        told.BOTH: (sum(hops), n), told.RIGHT: (sum(right), n), told.GIVEN: (given, sum(hops)),
        told.REST: (rest, n - sum(hops)),
    }  # fmt: skip


def test_numbers_are_literal_counts_of_every_part():
    made = attribute("two_steps", dense(3), objects=3, **WIDE)
    assert made
    alphas = answered(made, Random(0))
    gone = alphas["example"][0]
    alphas = alphas.with_columns(
        pl.when(pl.col("example") != gone).then("alpha")
    )  # one triple was not asked: its example is left out
    known = pl.DataFrame(
        [(e, "trained-on" if n % 2 else "held-out") for n, e in
         enumerate(made.examples["example"].unique().sort())],
        schema=["example", "status"], orient="row",
    )  # fmt: skip
    found = list(told.numbers(alphas, benchmark(made), known))
    values, parts = {}, set()
    for example, position, alpha in alphas.select("example", "position", "alpha").rows():
        values.setdefault(example, {})[position] = alpha
    status = dict(known.rows())
    flags = dict(made.examples.select("example", pl.col("flags").list[0]).unique().rows())
    for example in values:
        if example != gone:
            parts |= {"", flags[example], status[example]}
    by_part = {
        part: [
            (own[0], own[1], own[2])
            for example, own in values.items()
            if example != gone and part in ("", flags[example], status[example])
        ]
        for part in parts
    }
    assert len(by_part) >= 5
    seen = 0
    for number in found:
        above, below = literal(by_part[number.slice])[number.metric]
        assert number.n == len(by_part[number.slice])
        if not below:
            assert number.value is None
            continue
        assert number.value == pytest.approx(100 * above / below)
        assert number.interval
        assert number.interval.low <= number.value <= number.interval.high
        if number.metric in (told.GIVEN, told.REST):
            assert number.interval[:2] == pytest.approx(
                tuple(100 * b for b in wilson(above, below))
            )
        seen += 1
    assert seen > 25
    assert {n.setting["gold"] for n in found} == {"set"}


def test_written_steps_stand_beside_the_hops_of_the_same_model(tmp_path):
    _, made = family()
    direct = answered(made, Random(1), values=(1.0,))
    # Ana's hops are not known
    direct = direct.with_columns(
        alpha=pl.when(pl.col("example").str.ends_with("Q1/Q6/Q11")).then(0.0).otherwise("alpha")
    )
    texts = {
        "Ana": "Ida is her mother.\nAnswer: Rome.",
        "Ben": "Answer: Paris",
        "Cid": "I do not know.",
        "Dan": "Answer: Kyiv\nAnswer: Lima",
        "Eli": "Una was his mother.\n\n**Answer:** lima",
    }
    asked = made.items.filter(role="two_steps")
    rows = [
        (item, 0, 0, -1, 1, -1, stepped(texts[s])[0], texts[s], None)
        for item, s in asked.select("item", "subject").rows()
    ]
    fills = pl.DataFrame(rows, schema=dict(schema.FILLS.columns), orient="row")
    path = tmp_path / "fills.parquet"
    record = {"model": {"steps": {"too_long": 2, "items": 7}}}
    schema.write(fills.sort("item"), schema.FILLS, path, record)
    probe = Probe("two_steps", "steps", "fill", "m", "causal")
    other = replace(probe, prompt="chat", method="sentence")  # a form that writes no steps
    found = {
        (n.metric, n.slice): n
        for n in told.estimate_written({probe: path, other: path}, direct, benchmark(made))
    }  # fmt: skip
    assert (found[told.RIGHT, ""].value, found[told.RIGHT, ""].n) == (40, 5)
    given, rest = found[told.GIVEN, ""], found[told.REST, ""]
    assert (given.numerator, given.denominator) == (1, 4)
    assert (rest.numerator, rest.denominator) == (1, 1)
    unread = {reason: found[metric, ""].value for reason, metric in told.UNREAD.items()}
    assert unread == {"none": 1, "several": 1}
    assert (found[told.LONG, ""].value, found[told.LONG, ""].n) == (2, 7)
    assert found[told.RIGHT, "no rule"].value == 40
    assert {n.prompt for n in found.values()} == {"steps"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Her mother is Ida.\nAnswer: Rome.", ("Rome", "")),
        ("Answer: St. Louis. It is", ("St. Louis", "")),
        ("answer: rome\nAnswer: Rome", ("rome", "")),
        ("> **Answer:** Rome**", ("Rome", "")),
        ("Answer:\nRome", ("", "none")),
        ("The answer is Rome", ("", "none")),
        ("Answer: Rome\nAnswer: Oslo", ("", "several")),
        ("", ("", "none")),
    ],
)
def test_an_answer_is_read_behind_its_cue_and_nowhere_else(text, found):
    assert stepped(text) == found


class Bar:
    def __init__(self, total, desc, unit):
        self.update, self.close = (lambda n: None), (lambda: None)


def prompts_of(made):
    texts = {"P25>P19": ["The place of birth of the mother of [X] is [Y].", "second [X] [Y]."]}
    rows = [(f"{r}/{i}", r, i, t, "own") for r, own in texts.items() for i, t in enumerate(own)]
    rows += [(f"{r}/0", r, 0, "[X] [Y].", "own") for r in ("P25", "P19")]
    return pl.DataFrame(rows, schema=dict(schema.PROMPTS.columns), orient="row")


def test_steps_are_written_greedily_in_the_chat_template(tmp_path):
    _, made = family()
    loaded = tiny("gpt2", bos="forced")
    frames = made.items, made.candidates, prompts_of(made)
    with pytest.raises(ValueError, match="no chat template: take it out of the row with prompt st"):
        steps.steps_frame(loaded, *frames, 6, Bar)
    template = "{% for m in messages %}{{ m['content'][:40] }}{% endfor %}!"
    loaded.tokenizer.chat_template = template
    fills, golds, record = steps.steps_frame(loaded, *frames, 6, Bar)
    schema.write(fills, schema.FILLS, tmp_path / "fills.parquet")
    schema.write(golds, schema.FILL_GOLDS, tmp_path / "golds.parquet")
    assert fills.height == 5
    assert record["steps"]["items"] == 5
    asked = dict(made.items.filter(role="two_steps").select("item", "subject").rows())
    for item, text, raw in fills.select("item", "text", "raw").rows():
        said = f"The place of birth of the mother of {asked[item]} is what?"[:40] + "!"
        ids = list(loaded.tokenizer(said, add_special_tokens=False)["input_ids"])
        start = len(ids)
        while len(ids) < start + 6:
            with torch.no_grad():
                token = int(loaded.model(torch.tensor([ids])).logits[0, -1].argmax())
            if token in loaded.tokenizer.all_special_ids:
                break
            ids.append(token)
        assert raw == loaded.tokenizer.decode(ids[start:]).strip()
        assert text == stepped(raw)[0]
    with pytest.raises(ValueError, match=r"none of 5 questions can be asked: .*'too_long': 5"):
        steps.steps_frame(loaded, *frames, 500, Bar)


def test_the_message_asks_the_question_and_for_the_cue():
    _, made = family()
    (blank,) = steps.blanks(made.items.filter(role="two_steps").head(1), made.candidates,
                            prompts_of(made).filter(relation="P25>P19", index=0))  # fmt: skip
    assert steps.content(blank) == (
        "The place of birth of the mother of Ana is what? Think step by step and write the steps "
        'down. Then write the answer alone on a last line that begins with "Answer:".'
    )


def test_steps_are_for_written_answers_of_two_steps_alone():
    row = {"paper": "attributes", "benchmark": "two_steps", "prompt": "steps", "method": "fill",
           "model": "m", "_line": "2"}  # fmt: skip
    papers = {"two_steps": "attributes", "paths": "attributes"}
    check_papers([row], "sheet", papers)
    assert [r["prompt"] for r in with_raw([row])] == ["steps", "templates"]
    for wrong in ({"benchmark": "paths"}, {"method": "sentence"}):
        with pytest.raises(SheetError, match="prompt 'steps' with method"):
            check_papers([{**row, **wrong}], "sheet", papers)


def test_strata_stand_in_what_is_handed_on():
    _, made = family()
    flags = {json.loads(meta)["flags"][0] for meta in made.items["meta"]}
    assert flags == {"no rule"}
    assert set(WHO) < set(SETTINGS)
