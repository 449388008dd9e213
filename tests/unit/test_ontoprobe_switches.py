"""Every OntoProbe switch for building or scoring questions changes what it names, and only that."""

import json
from dataclasses import replace

import polars as pl
import pytest

from kgprobe.benchmarks.ontoprobe import build as built
from kgprobe.benchmarks.ontoprobe import modes, reasoning, released
from kgprobe.benchmarks.ontoprobe import own as ontoprobe_own
from kgprobe.probes.jobs.frames import prepared
from kgprobe.probes.jobs.methods import cloze as ranks
from kgprobe.probes.jobs.ontoprobe import reason
from kgprobe.probes.jobs.ontoprobe import soft as soft_memory
from kgprobe.probes.jobs.ontoprobe.soft import check_tasks
from kgprobe.sampling import by_hand, take
from kgprobe.settings.benchmarks import Rows
from kgprobe.settings.probes import Soft
from kgprobe.tables import results
from kgprobe.tables.ontoprobe import choices, figures, memorizing
from kgprobe.tables.ontoprobe import reasoning as reasoned
from kgprobe.tables.ontoprobe import values as per_item
from kgprobe.tables.results import Number
from tests.unit import soft_frames
from tests.unit.study_frames import drawn as rows_of
from tests.unit.test_ontoprobe import PATTERNS, USES, own_tables, write_release
from tests.unit.test_ontoprobe_bad_input import prompts
from tests.unit.test_ontoprobe_tables import PRINTED, make_cases, make_items, make_ranks, probe
from tests.unit.test_reasoning import SWITCHES as TWO_PAIRS
from tests.unit.test_reasoning import saved


def change(files):
    """Set names and patterns on which the switches differ."""
    files["memorizing/type.jsonl"][25]["uuu"] = "Thing Ünder (25)"
    files["ontology/class.json"][22]["rdfs:label"] = "odd kind"
    files["memorizing/subClassOf.jsonl"][21]["uuu"] = "odd kind"
    files["memorizing/domain.jsonl"][25]["uuu"] = {"employer": "[X] is an employer of [Y] ."}
    files["ontology/property.json"][2]["rdf:range"] = "odd kind"
    files["ontology/property.json"][2]["pattern"] = "[X]'s odd kind is [Y] ."
    files["memorizing/domain.jsonl"][2]["uuu"] = {"link 2": "[X]'s odd kind is [Y] ."}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_release(tmp_path_factory.mktemp("release"), change)


def frames(folder, **switches):
    chosen = modes.resolve("default", switches)
    taken = released.take(folder, chosen)
    sets = built.build(taken, chosen, "x")
    rules = reasoning.build(taken, sets.items, sets.candidates, chosen)
    return sets.items, sets.prompts, rules


def differing(before, after, column):
    joined = before.join(after, on=before.columns[0])
    return joined.filter(pl.col(column) != pl.col(f"{column}_right"))[before.columns[0]].to_list()


@pytest.mark.parametrize(
    ("key", "value", "item", "subject"),
    [
        ("upper_first", "lower_rest", "TP-25", "Thing ünder  25 "),
        ("labels", "ascii_drop", "TP-25", "Thing nder (25)"),
        ("phrasing", "released", "DM-2", "if one has  ."),
        ("phrasing", "paper", "DM-2", "to have odd kind ."),
        ("patterns", "corrected", "DM-25", "if one is employed by something ."),
    ],
)
def test_switches_of_the_subject(folder, key, value, item, subject):
    plain, _, _ = frames(folder)
    items, _, _ = frames(folder, **{key: value})
    assert items.filter(item=item)["subject"].item() == subject
    assert item in differing(plain, items, "subject")
    if key != "upper_first" and value != "paper":
        assert differing(plain, items, "subject") == [item]


def test_sco_m2(folder):
    _, plain, _ = frames(folder)
    _, other, _ = frames(folder, sco_m2="class")
    assert differing(plain, other, "text") == ["SCO-m2"]
    assert other.filter(prompt="SCO-m2")["text"].item() == "[X] has class [Y] ."


def test_item_limit(folder, tmp_path):
    """It limits the rows of TP and SCO for manual templates; soft prompts use every row."""
    items, asked, rules = frames(folder, item_limit="5")

    def counts(frame):
        return dict(frame.filter(role="test").group_by("relation").len().rows())

    every = {"TP": 15, "SCO": 14, "SPO": 14, "DM": 14, "RG": 14}
    assert counts(items) == every
    assert counts(by_hand(items)) == {**every, "TP": 5, "SCO": 5}
    assert by_hand(items).filter(relation="SCO", role="test")["row"].to_list() == [*range(20, 25)]
    options = built.build(released.take(folder, TWO_PAIRS), TWO_PAIRS, "x").candidates
    ranked, _, _ = ranks.rank_frame(saved(tmp_path), items, options, asked)
    assert set(ranked["item"]) == set(by_hand(items)["item"])
    own = reason.cases(rules)
    for scheme, sizes in (("manual+soft", (5, 14)), ("soft+manual", (14, 14))):
        tested = [
            [c.row for c in reason.by_template(own[rule], scheme) if c.role == "test"]
            for rule in ("rdfs11", "rdfs7")
        ]
        assert tuple(map(len, tested)) == sizes
    few = built.lite(built.OntoProbeFrames(items, options, asked, asked), Rows(test=9), 0, 0)
    assert counts(few.items) == {"TP": 5, "SCO": 5, "SPO": 9, "DM": 9, "RG": 9}


def test_rdfs11_text(folder):
    _, _, plain = frames(folder)
    _, _, other = frames(folder, rdfs11_text="rdfs9")
    changed = differing(plain, other, "meta")
    assert changed
    assert all(item.startswith("rdfs11-") for item in changed)
    nine, eleven = (
        [json.loads(m) for m in other.filter(relation=r).sort("row")["meta"]]
        for r in ("rdfs9", "rdfs11")
    )
    # same text, but the vectors are those of the subclass task
    for part in ("p1", "p2", "h"):
        assert [m[part] for m in nine] == [m[part] for m in eleven]
    assert {m["soft"][part][0] for m in eleven for part in ("p1", "p2", "h")} == {"SCO"}
    assert {m["p2_tests"]["soft"]["soft"][0] for m in eleven} == {"SCO"}
    assert {(m["soft"]["p2"][0], m["soft"]["h"][0]) for m in nine} == {("TP", "TP")}


def odd_ends(files):
    """Set a superclass and a domain that begin with a vowel."""
    change(files)
    files["memorizing/subClassOf.jsonl"][23]["xxx"] = ["odd kind"]
    files["memorizing/domain.jsonl"][26]["xxx"] = ["odd kind"]


def test_article(tmp_path):
    """It applies to rdfs2 and rdfs3; other rules write "an" before a vowel in every mode."""
    known = write_release(tmp_path, odd_ends)
    _, _, plain = frames(known)
    _, _, other = frames(known, article="always_a")

    def premises(rules, item):
        meta = json.loads(rules.filter(item=item)["meta"].item())
        return meta["p1"], meta["p2"]

    assert differing(plain, other, "meta") == ["rdfs2-26"]
    said = "One has to be {} odd kind if one has link 26 ."
    assert premises(plain, "rdfs2-26")[0] == said.format("an")
    assert premises(other, "rdfs2-26")[0] == said.format("a")
    for mode in modes.MODES:
        switches = modes.resolve(mode)
        taken = released.take(known, switches)
        sets = built.build(taken, switches, "x")
        rules = reasoning.build(taken, sets.items, sets.candidates, switches)
        assert premises(rules, "rdfs9-23")[0] == "Kind 24 is an odd kind ."
        assert premises(rules, "rdfs9-21")[1] == "[X] is an odd kind ."
        assert premises(rules, "rdfs9-24") == ("Kind 25 is a kind 24 .", "[X] is a kind 25 .")


def test_upper_first_applies_to_premises_too(tmp_path):
    def capitals(files):
        files["ontology/class.json"][22]["rdfs:label"] = "Odd Kind"
        files["memorizing/subClassOf.jsonl"][21]["uuu"] = "Odd Kind"

    known = write_release(tmp_path, capitals)
    for value, begun in (("keep_rest", "Odd Kind"), ("lower_rest", "Odd kind")):
        _, _, rules = frames(known, upper_first=value)
        meta = json.loads(rules.filter(item="rdfs9-21")["meta"].item())
        assert meta["p1"] == f"{begun} is a kind 21 ."
        assert meta["p2"] == "[X] is an Odd Kind ."
        assert meta["soft"]["p1"] == ["SCO", begun, "kind 21 ."]


def test_premise_test(folder):
    """With p1, rdfs5 (soft: also rdfs9 and rdfs11) tests P1 again, with all its golds."""
    _, _, plain = frames(folder)
    _, _, other = frames(folder, premise_test="p1")
    changed = differing(plain, other, "meta")
    assert {item.split("-")[0] for item in changed} == {"rdfs5", "rdfs9", "rdfs11"}
    golds = dict(other.select("item", "answers").rows())
    tests = {i: json.loads(m)["p2_tests"] for i, m in other.select("item", "meta").rows()}
    assert tests["rdfs5-21"]["manual"]["text"] == "Link 21 implies [MASK] ."
    assert tests["rdfs5-21"]["soft"]["soft"] == ["SPO", "Link 21"]
    for item, kind, name in (
        ("rdfs5-21", "manual", "property"),
        ("rdfs5-21", "soft", "property"),
        ("rdfs9-23", "soft", "class"),
        ("rdfs11-23", "soft", "class"),
    ):
        assert tests[item][kind]["candidates"] == name
        assert tests[item][kind]["golds"] == golds[item]
    assert len(golds["rdfs9-23"]) > 1
    assert tests["rdfs9-23"]["manual"]["text"] == "[X] is a particular [MASK] ."
    assert len(tests["rdfs9-23"]["manual"]["golds"]) == 1
    assert {modes.resolve(m).premise_test for m in ("default", "paper")} == {"own"}


def test_soft_stop(folder):
    _, _, plain = frames(folder)
    _, _, other = frames(folder, soft_stop="left_out")
    changed = differing(plain, other, "meta")
    assert {item.split("-")[0] for item in changed} == {"rdfs2", "rdfs3"}
    ends = [
        json.loads(rules.filter(item="rdfs2-21")["meta"].item())["soft"]["p1"]
        for rules in (plain, other)
    ]
    assert ends == [["DM", "link 21", "kind 1 ."], ["DM", "link 21", "kind 1"]]


def read(change=lambda ranks: ranks, *how, **switches):
    """Return metrics of made-up ranks under switches."""
    items = make_items()
    found = change(per_item.from_ranks(make_ranks(items)))
    return per_item.metrics(found, per_item.of_items(items), *how, **switches)


def test_ties():
    def tied(ranks):
        return ranks.with_columns(worst=pl.col("best") + 1)

    assert 50.0 in set(read(tied)["R@1"])
    assert set(read(tied, "mean_rank")["R@1"]) <= {0.0, 100.0}


def test_premise_threshold_and_dropped_middle():
    ranked = pl.DataFrame({"item": ["a", "b", "c"], "MRR": 1.0, "rank": [1.0, 2.0, 10.0]})
    assert reasoned.split_by_rank(ranked, "threshold")["known"].to_list() == [1, 1, 0]
    cases = make_cases(3)
    first = pl.DataFrame({"item": ["T-0", "T-1", "T-2"], "MRR": [1.0, 0.5, 0.1], "rank": 1.0})
    second = cases.select("item", MRR=1.0, rank=1.0)
    premises = {"manual": reasoned.classify(cases, first, second)}
    more = {"scheme": pl.lit("manual+manual"), "p1": True, "p2": True, "pair": 0, "MRR": 0.5}
    answers = cases.select("item", **more)
    found = [reasoned.settings(answers, premises, drop) for drop in (False, True)]
    assert [rows.filter(rule="rdfs9", premise="P1 EX, P2 EX").height for rows in found] == [3, 2]


def test_missing_candidate():
    missing = pl.lit('{"p1_item": "T-0", "missing": true}')
    cases = make_cases(4).with_columns(meta=pl.when(row=0).then(missing).otherwise("meta"))
    first = pl.DataFrame({"item": [f"T-{r}" for r in range(4)], "MRR": 0.5, "rank": 2.0})
    second = cases.select("item", MRR=1.0, rank=1.0)
    # the middle one of three rows is in neither split
    for skip, known in ((False, 4), (True, 2)):
        own = reasoned.classify(cases, first, second, "halves", skip).filter(rule="rdfs7")
        assert (own["first"].count(), own["second"].count()) == (4, known)


def test_index_order_ranks_ties_by_tokens_then_by_index():
    place = pl.col("best") + 1
    placed = read(lambda r: r.with_columns(worst=place + 1, in_order=place), "index_order")
    literal = read(lambda r: r.with_columns(best=place, worst=place))
    for name in per_item.METRICS:
        assert placed[name].to_list() == pytest.approx(literal[name].to_list())
    with pytest.raises(ValueError, match="valid: expectation, mean_rank, index_order"):
        read(ties="none")
    reasons = pl.DataFrame({"item": "a", "best": [2, 2], "worst": [3, 3], "in_order": [2, 3]})
    for ties in per_item.TIES:
        assert reasoned.reciprocal(reasons, ["item"], ties)["rank"].item() == 2.5
    first = reasoned.reciprocal(reasons, ["item"], "index_order")["MRR"].item()
    assert first == 0.5


def test_recall():
    hit, fraction = (read(recall=r) for r in ("hit", "share"))
    assert fraction["R@5"].equals(hit["recall@5"].rename("R@5"))
    assert set(hit["R@5"].unique()) == {0.0, 100.0}
    assert 50.0 in fraction["R@5"].to_list()
    assert hit["MRR"].equals(fraction["MRR"])


def test_select():
    values = read()
    test = values.filter(role="test")
    assert per_item.choose(values, "oracle") == per_item.choose(test, "oracle")
    assert per_item.choose(values, "oracle") != per_item.choose(values)
    found = list(memorizing.groups(probe("m"), values, "distinct", 0, "oracle"))
    assert found
    assert {x.setting["choice"] for x in found} == {"chosen on test"}


def test_average():
    printed = PRINTED["configurations"].with_columns(model=pl.lit("bert-base-cased"))
    values = read()
    # tasks differ in their number of configurations, so that the two averages differ
    values = values.filter((pl.col("task") != "TP") | (pl.col("template") == "m1"))
    found = memorizing.compare_configurations({probe("m"): values}, printed, "distinct", 0)
    frame = results.frame("ontoprobe", found)
    drawn = {a: rows_of(next(figures.bars(frame, a)).chart) for a in ("rows", "weighted")}
    assert drawn["rows"] != drawn["weighted"]
    base = Number(metric="MRR", n=1, model="a", group="rdfs2", setting={"premise": "P1 EX, P2 EX"})
    of = [base.but(setting={"weighting": weighting}) for weighting in reasoned.WEIGHTINGS]
    cells = results.frame("ontoprobe", [of[0].but(value=0.75), of[1].but(value=0.25)])
    grids = {a: rows_of(next(figures.grids(cells, a)).chart) for a in ("rows", "weighted")}
    assert {a: [row["value"] for row in own] for a, own in grids.items()} == {
        "rows": [0.75], "weighted": [0.25],
    }  # fmt: skip


def test_printed_averages_are_separate_unless_the_models_are_the_same():
    values = read()
    setting = {"masks": "multiple", "weighting": memorizing.WEIGHTINGS[0]}
    for printed_model, benchmark, beside in (
        ("x", "onto_released", True),
        ("y", "onto_released", False),
        ("x", "onto_released_lite", False),
    ):
        printed = PRINTED["configurations"].with_columns(model=pl.lit(printed_model))
        own = probe("x", benchmark, source="hub:x")
        found = list(memorizing.compare_configurations({own: values}, printed, "distinct", 0))
        ours = [x for x in found if x.setting == setting and x.model == ""]
        assert len(ours) == 4
        assert all((x.published is not None) == beside for x in ours)
        theirs = [x for x in found if (x.setting, x.model) == (setting, memorizing.PAPERS)]
        assert [x.value for x in theirs if x.metric == "R@1"] == [1.0]


def test_properties_and_instances_per_class():
    def took(**chosen):
        switches = modes.resolve("default", chosen)
        return ontoprobe_own.take(own_tables(), USES, PATTERNS, switches, 0)

    assert len(took().concepts.properties) == 36
    assert len(took(properties="33").concepts.properties) == 33
    assert len([r for r in took().rows if r.task == "TP"]) == 60
    few = {r.id for r in took(instances_per_class="1").rows if r.task == "TP"}
    # by the hash that sampled the ontology's instances, not in the order of their ids
    by_hash = take(own_tables().instances, 1, 0, ["instance"], ["class"], "ontology")
    assert few == set(by_hash["instance"])
    assert len(few) == 45


def test_split(folder):
    items, _, _ = frames(folder, split="4/6")
    counts = dict(items.filter(relation="DM").group_by("role").len().rows())
    assert counts == {"train": 4, "dev": 6, "test": 24}
    switches = modes.resolve("default", {"split": "4/6"})
    own = ontoprobe_own.take(own_tables(), USES, PATTERNS, switches, 0)
    assert [r.role for r in own.rows if r.task == "DM"].count("dev") == 6
    assert {modes.resolve(mode).split for mode in modes.MODES} == {"10/10"}


def test_candidate_space(tmp_path):
    items, candidates = soft_frames.items(), soft_frames.candidates()
    spec = saved(tmp_path, "roberta")
    scores = [
        ranks.rank_frame(spec, items, candidates, prompts(), space=space)[0]["score"]
        for space in ("none", "auto")
    ]
    assert not scores[0].equals(scores[1])


def test_max_length(tmp_path):
    words = pl.when(pl.col("item") == "TP-1").then(pl.lit("Niger " * 70))
    items = soft_frames.items().with_columns(subject=words.otherwise(pl.col("subject")))
    spec = saved(tmp_path)
    known = prepared(spec, items, soft_frames.candidates(), "keep")
    check_tasks(known, TWO_PAIRS, {"TP": 3}, ("train", "dev", "test"))
    padded = replace(TWO_PAIRS, max_length="padded")
    with pytest.raises(ValueError, match=r"item TP-1, template 0: \d+ tokens .* 64 are allowed"):
        check_tasks(known, padded, {"TP": 3}, ("train", "dev", "test"))
    moved = items.with_columns(role=pl.when(item="TP-1").then(pl.lit("test")).otherwise("role"))
    known = prepared(spec, moved, soft_frames.candidates(), "keep")
    check_tasks(known, padded, {"TP": 3}, ("train", "dev", "test"))


def shipped_row(said):
    """Return a line of the shipped multiple-choice files of reasoning."""
    return {"prompt": f"{said} (a) x, (b) y", "gold": "(a) x"}


def test_mc_split(tmp_path):
    asked = [
        ("TP-1", "", "TP-1", "What is the type of Rome?"),
        ("b", "out", "TP-1", "X is an Odd kind . Therefore, What is the type of X?"),
        ("c", "out", "TP-2", "X is a lake. Therefore, What is the type of X?"),
        ("d", "out", "TP-3", "X is a sea. Therefore, What is the type of X?"),
        ("e", "EX", "TP-3", "A sea is water. X is a sea. Therefore, What is the type of X?"),
    ]
    questions = pl.DataFrame(
        [(i, "rdfs9" if p else "TP", p, s, q, ["x", "y"], 0) for i, p, s, q in asked],
        schema=["item", "task", "premise", "source", "question", "options", "gold"],
        orient="row",
    )
    chosen = pl.DataFrame({"item": ["TP-1", *"bcde"], "chosen": [0, 0, 1, 0, 0], "rule": "letter"})
    for rule in choices.RULES:
        for code, said in (("12", "X is a odd kind. Therefore, What is the type of X?"),
                           ("02", "X is a lake. Therefore, What is the type of X?")):  # fmt: skip
            line = json.dumps(shipped_row(said))
            (tmp_path / f"{rule}-{code}.jsonl").write_text(line + "\n")
    rows = choices.hits(questions, chosen)
    found = {
        name: dict(choices.premises(rows, split).select("item", "setting").rows())
        for name, split in (("own", None), ("shipped", choices.shipped(tmp_path)))
    }
    assert found == {"own": {"b": "IM", "e": "EX"}, "shipped": {"b": "IM", "c": "NO", "e": "EX"}}
    (tmp_path / "rdfs3-02.jsonl").unlink()
    with pytest.raises(FileNotFoundError, match=r"rdfs3-02\.jsonl.*mc_split: own"):
        choices.shipped(tmp_path)


@pytest.mark.parametrize("mode", modes.MODES)
def test_every_mode_runs_from_questions_to_tables(tmp_path, mode):
    switches = modes.resolve(mode, {"pseudoword_pairs": "2", "warmup": "1"})
    spec, folder = saved(tmp_path), tmp_path / "p"
    known = write_release(tmp_path / "release")
    taken = released.take(known, switches)
    sets = built.build(taken, switches, "onto_released")
    rules = reasoning.build(taken, sets.items, sets.candidates, switches)
    few = sets.items.filter(pl.col("row") < 24)
    hard, _, _ = ranks.rank_frame(
        spec, few, sets.candidates, sets.prompts,
        space=switches.candidate_space, unknown=switches.unknown_candidates,
    )  # fmt: skip
    plan = Soft(seeds=2, epochs=1, losses=("bce",), masks=("multi",), poolings=("mean",))
    soft_memory.train(spec, few, sets.candidates, switches, plan, folder)
    soft, _, _ = soft_memory.rank(spec, few, sets.candidates, folder, switches)
    answers, tests, _ = reason.reason(
        spec, rules.filter(pl.col("row") < 42), sets.candidates, folder, switches, plan,
        ("soft+soft",) if mode != "released" else ("manual+manual", "soft+manual"), rows=4,
    )  # fmt: skip
    own = [per_item.from_ranks(frame) for frame in (hard, soft)]
    items = per_item.of_items(few)
    values = pl.concat([per_item.metrics(f, items, switches.ties, switches.recall) for f in own])
    frames = {"templates": values.filter(loss=""), "soft": values.filter(pl.col("loss") != "")}
    found = [
        number
        for prompt, own in frames.items()
        for number in memorizing.memorizing(
            probe("tiny", prompt=prompt), own, PRINTED, switches.tp_rows, 0
        )
    ]
    picked = [x for x in found if x.metric == "MRR" and x.setting.get("choice") == "chosen"]
    assert len(picked) == 10
    mrr = reasoned.reciprocal(answers, ["item", "scheme", "p1", "p2", "pair"], switches.ties)
    assert mrr["MRR"].is_between(0, 1).all()
    assert tests.height > 0


def test_switches_of_multiple_choice_have_the_expected_values():
    legal = {key: set(modes.SWITCHES[key].legal) for key in ("negatives", "mc_phrasing")}
    assert legal == {"negatives": {"clean", "released"}, "mc_phrasing": {"default", "released"}}
