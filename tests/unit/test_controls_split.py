"""Selection of training facts: seeded, stable, inverse facts together."""

import itertools

import polars as pl

from kgprobe import schema
from kgprobe.schema import CANDIDATES, FACTS, ITEMS
from tools.controls import split as controls


def facts(n: int = 300) -> pl.DataFrame:
    """Return n facts of P36 and their inverses in P1376."""
    rows = []
    for i in range(n):
        ends = (f"Q{i}", f"country {i}"), (f"Q{1000 + i}", f"city {i}")
        for relation, (s, o) in (("P36", ends), ("P1376", ends[::-1])):
            rows.append(("wikidata", s[0], s[1], relation, o[0], o[1]))
    return pl.DataFrame(rows, schema=dict(FACTS.columns), orient="row")


def asked(n: int = 40) -> pl.DataFrame:
    return (
        facts().filter(pl.col("relation") == "P36").head(n).select("relation", "subject", "object")
    )


def split(frame: pl.DataFrame | None = None, **changes) -> pl.DataFrame:
    settings = {"pool": 200, "proportion": 0.5, "seed": 0, "relations": ["P36", "P1376"]}
    return controls.split(facts() if frame is None else frame, asked(), **{**settings, **changes})


def test_about_half_of_the_pool_is_trained_on():
    result = split()
    schema.check(result, schema.TRAINED_ON)
    assert result.height == 600
    assert 70 <= result["trained_on"].sum() <= 130
    assert split(proportion=0.1)["trained_on"].sum() < 40


def test_facts_and_their_inverses_are_in_the_same_split():
    splits: dict[frozenset, set[bool]] = {}
    for s, o, value in split(pool=600).select("subject", "object", "trained_on").rows():
        splits.setdefault(frozenset((s, o)), set()).add(value)
    assert all(len(value) == 1 for value in splits.values())


def test_facts_of_items_come_first():
    result = split(pool=40).join(asked(), on=["relation", "subject", "object"], how="semi")
    assert result["trained_on"].sum() == split(pool=40)["trained_on"].sum()
    assert result["trained_on"].sum() > 10


def test_split_depends_on_the_seed_but_not_on_row_order():
    one, two = split(), split(facts().reverse())
    assert one.sort("fact").equals(two.sort("fact"))
    assert not one.sort("fact").equals(split(seed=1).sort("fact"))


def test_facts_of_an_earlier_split_keep_their_assignment():
    before, after = split(seed=1).head(50), split()
    kept = controls.keep(after, before)
    assert not kept.equals(after)
    assert kept.drop("trained_on").equals(after.drop("trained_on"))
    sides = dict(before.select("fact", "trained_on").rows())
    for new, old in zip(kept.rows(named=True), after.rows(named=True), strict=True):
        assert new["trained_on"] == sides.get(new["fact"], old["trained_on"])


def test_facts_without_label_or_template_are_excluded():
    nameless = facts().with_columns(
        subject_label=pl.when(pl.col("subject") == "Q1")
        .then(None)
        .otherwise(pl.col("subject_label"))
    )
    result = split(nameless, relations=["P36"])
    assert set(result["relation"]) == {"P36"}
    assert "Q1" not in result["subject"].to_list()


def examples(**pairs: int) -> pl.DataFrame:
    """Return EXAMPLES of two triples (benchmark -> number), with `facts` from number 100 on."""
    rows = []
    for benchmark, n in sorted(pairs.items()):
        for i in range(100, 100 + n):
            ends = f"Q{i}", f"Q{1000 + i}"
            for position, (p, s, o) in enumerate((("P36", *ends), ("P1376", *ends[::-1]))):
                origin = "reversed" if benchmark == "asymmetry" and position else "stored"
                row = {
                    "benchmark": benchmark, "example": f"{benchmark}/{i}", "position": position,
                    "origin": origin, "subject": s, "predicate": p, "object": o,
                    "sampled": i != 100,
                }  # fmt: skip
                rows.append(row)
    return pl.DataFrame(rows)


def test_half_of_the_sampled_examples_are_trained_on_in_full():
    splits = controls.split_examples(examples(composite=21), 0.5, 0)
    assert "P36/Q100/Q1100" not in splits  # not sampled
    assert len(splits) == 40
    for i in range(101, 121):
        assert splits[f"P36/Q{i}/Q{1000 + i}"] == splits[f"P1376/Q{1000 + i}/Q{i}"]
    assert sum(splits.values()) == 20
    assert splits == controls.split_examples(examples(composite=21).reverse(), 0.5, 0)
    assert splits != controls.split_examples(examples(composite=21), 0.5, 1)


def test_some_paths_are_trained_on_by_their_first_triple_only():
    splits = controls.split_examples(examples(paths=13), 0.5, 0)
    both = [
        (splits[f"P36/Q{i}/Q{1000 + i}"], splits[f"P1376/Q{1000 + i}/Q{i}"])
        for i in range(101, 113)
    ]
    assert sorted(both) == [(False, False)] * 6 + [(True, False)] * 2 + [(True, True)] * 4


def test_shared_facts_are_trained_on_if_any_example_is():
    alone = controls.split_examples(examples(asymmetry=9), 0.5, 0)
    assert all(fact.startswith("P36/") for fact in alone)
    other = controls.split_examples(examples(composite=9), 0.5, 0)
    joint = controls.split_examples(examples(asymmetry=9, composite=9), 0.5, 0)
    assert {f for f, told in joint.items() if told} == {
        f for told in (alone, other) for f, is_trained_on in told.items() if is_trained_on
    }


def test_facts_of_examples_and_their_inverses_come_first():
    chosen = examples(asymmetry=31)
    splits = controls.split_examples(chosen, 0.5, 0)
    result = dict(split(pool=60, examples=chosen).select("fact", "trained_on").rows())
    assert {fact: result[fact] for fact in splits} == splits
    assert sum(result.values()) <= 60
    whole = dict(split(pool=600, examples=chosen).select("fact", "trained_on").rows())
    for fact, is_trained_on in splits.items():
        _, s, o = fact.split("/")
        assert whole[f"P1376/{o}/{s}"] == is_trained_on
    untouched = {fact for fact in result if int(fact.split("/")[1][1:]) % 1000 > 140}
    before = dict(split(pool=600).select("fact", "trained_on").rows())
    assert {f: whole[f] for f in untouched} == {f: before[f] for f in untouched}


def test_training_facts_use_the_labels_of_items():
    result = controls.training_facts(facts(), split(pool=600), {"Q1000": "the City"})
    assert result == sorted(result)
    names = {fact.object for fact in result}
    is_trained_on = split(pool=600).filter(pl.col("fact") == "P36/Q0/Q1000")["trained_on"].item()
    assert ("the City" in names) == is_trained_on
    assert "the City" in controls.all_labels(facts(), split(), {"Q1000": "the City"})


def test_facts_of_items_are_their_golds():
    item = ("P36/Q1", "P36", "fact", "P36", "country", "Q1", "set", [1], 0, "{}")
    items = pl.DataFrame([item], schema=dict(ITEMS.columns), orient="row")
    options = [("set", 0, "Q5", "a"), ("set", 1, "Q6", "b")]
    candidates = pl.DataFrame(options, schema=dict(CANDIDATES.columns), orient="row")
    assert controls.select_asked_facts(items, candidates).rows() == [("P36", "Q1", "Q6")]


def test_every_training_fact_has_its_kinds():
    chosen = examples(asymmetry=31, composite=9)
    known = split(pool=200, examples=chosen)
    result = controls.kinds(known, {"world_big": asked()}, chosen)
    trained_on = set(known.filter("trained_on")["fact"])
    of_kind = {str(kind): set(group["fact"]) for (kind,), group in result.group_by("kind")}
    assert set().union(*of_kind.values()) == trained_on
    splits = controls.split_examples(chosen, 0.5, 0)
    assert of_kind["composite"] | of_kind["asymmetry"] == {f for f, t in splits.items() if t}
    assert of_kind["composite"] & of_kind["asymmetry"]  # both benchmarks contain P36/Q101/Q1101 ...
    names = {f"P36/Q{i}/Q{1000 + i}" for i in range(40)}
    assert of_kind["world_big"] == trained_on & names
    assert of_kind["other"] == trained_on - names - of_kind["composite"] - of_kind["asymmetry"]
    assert all(len(facts) > 3 for facts in of_kind.values())
    training_facts = controls.by_kind(facts(), known, result, {})
    assert {kind: len(each) for kind, each in training_facts.items()} == {
        kind: len(each) for kind, each in of_kind.items()
    }


def test_rival_objects_of_a_relation():
    some = split(pool=600).with_columns(trained_on=pl.col("fact").str.starts_with("P36/Q1"))
    result = controls.rivals(facts(), some, {"Q1010": "the City"})
    told = {f"city {i}" for i in range(300) if str(i).startswith("1")} - {"city 10"} | {"the City"}
    assert set(result["P36"]) == told  # 111 trained-on objects: no others are needed
    assert len(result["P1376"]) == controls.RIVALS  # none trained on
    few = some.with_columns(trained_on=pl.col("fact") == "P36/Q7/Q1007")
    result = controls.rivals(facts(), few, {})["P36"]
    assert "city 7" in result
    assert len(result) == len(set(result)) == controls.RIVALS
    assert result == controls.rivals(facts().reverse(), few, {})["P36"]
    classes = controls.ontology_rivals(statements())
    assert classes == {"SCO": ["kind 0", "kind 1", "kind 2", "kind 3"], "TP": classes["SCO"]}


def statements(**changes):
    rows = []
    for task, k in itertools.product(("TP", "SCO"), range(120)):
        role, golds = "test" if k > 3 else "dev", [k % 4, 3]
        key, subject = f"{task}-{k}", f"{task} {k}"
        rows.append((key, task, role, task, subject, "x", "class", golds, k, "{}"))
    items = pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row")
    options = [("class", k, f"kind {k}", f"kind {k}") for k in range(4)]
    candidates = pl.DataFrame(options, schema=dict(CANDIDATES.columns), orient="row")
    settings = {"pool": {"TP": 60, "SCO": 20}, "proportion": 0.5, "seed": 0}
    return controls.ontology(items, candidates, **{**settings, **changes})


def test_half_of_the_pooled_types_and_superclasses_are_trained_on():
    result = statements()
    schema.check(result, schema.TRAINED_ON)
    assert dict(result.group_by("relation").len().rows()) == {"TP": 60, "SCO": 20}
    assert 25 <= result["trained_on"].sum() <= 55
    assert not set(result["subject"]) & {f"TP {k}" for k in range(4)}  # rows for selection
    assert result.equals(statements())


def test_training_facts_are_trained_on_statements_and_labels_cover_all():
    result = statements()
    training_facts, labels = controls.ontology_training_facts(result)
    subjects = set(result.filter("trained_on")["subject"])
    assert {fact.subject for fact in training_facts} == subjects
    assert set(result["subject"]) <= set(labels)
    fact = next(one for one in training_facts if one.relation == "TP")
    assert fact.object == f"kind {int(fact.subject.split()[1]) % 4}"  # the most specific gold
