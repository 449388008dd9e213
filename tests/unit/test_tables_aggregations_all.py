"""Aggregations of OntoProbe's and the attributes' candidates, priors of content-free subjects and
agreement of templates, against loops written from their definitions."""

import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kgprobe import schema
from kgprobe.metrics.aggregations import folds
from kgprobe.tables import aggregations, consistency, results, scored
from kgprobe.tables.answers import Probe, judge, with_content_free
from kgprobe.tables.attributes import make as of_attributes
from kgprobe.tables.attributes import numbers
from kgprobe.tables.attributes import study as st
from kgprobe.tables.attributes import views as attribute_views
from kgprobe.tables.ontoprobe import make, views
from kgprobe.tables.results import Number
from kgprobe.tables.study import Study
from kgprobe.templates import NO_SUBJECTS
from tests.unit import attribute_answers
from tests.unit.study_frames import (
    CONTRACTS,
    benchmark,
    guesses,
    number,
    of_rows,
    probe,
    rates_by_hand,
    scores,
    write_benchmark,
)

SEED = 3
OPTIONS = ["a", "b", "c"]
FRAMES = benchmark(
    {"P1": (OPTIONS, [OPTIONS[i % 3] for i in range(9)]), "P2": (["x", "y"], ["x", "y", "y", "x"]),
     "P3": (["u", "v"], ["u"])},
)  # fmt: skip
#: relations have three templates, one, and three
KEPT = {"P1": 3, "P2": 1, "P3": 3}


def answers_of(frames, share, seed):
    """Return random scores under the templates of each relation."""
    found = guesses(frames, share, seed).items()
    return {(item, t): values for (item, t), values in found if t < KEPT[item[:2]]}


def prompts_of(frames):
    return frames["prompts"].filter(pl.col("index") < pl.col("relation").replace_strict(KEPT))


ANSWERS, PROMPTS = answers_of(FRAMES, 0.4, 5), prompts_of(FRAMES)
GOLD = dict(FRAMES["items"].select("item", pl.col("answers").list.first()).iter_rows())
ITEMS = sorted(GOLD)
CONTROL = {"source": "control:causal", "kind": "causal"}


def free(seed: int = 1, relations=("P1", "P2")) -> pl.DataFrame:
    """Return CONTENT_FREE of some relations."""
    generator = np.random.default_rng(seed)
    sizes = {"P1": 3, "P2": 2}
    rows = [
        (r, r, subject, t, o, generator.normal(-20, 4), 2, -3.0, 1, None)
        for r in relations
        for subject, t, o in itertools.product(NO_SUBJECTS, range(KEPT[r]), range(sizes[r]))
    ]
    return of_rows(schema.CONTENT_FREE, rows)


def asks(own="sum", **more):
    return Study(FRAMES["items"], FRAMES["candidates"], PROMPTS, SEED, own, **more)


def found_of(
    own="sum", content_free=None, trained_on=None, change=lambda s: s, **more
) -> pl.DataFrame:
    who = probe("m", **CONTROL)
    asked_ = asks(own, **more)
    one = scored.Scored(
        who, change(scores(ANSWERS)), replace(asked_, trained_on=trained_on or {}), content_free
    )
    return results.frame("any", scored.estimates([one]))


def mean(table, items) -> float:
    items = list(items)
    assert items
    return 100 * sum(table[i] for i in items) / len(items)


def uninformed(prior: pl.DataFrame) -> dict[tuple[str, int], list[float]]:
    """Return the sum minus the option's mean over content-free subjects, by the definition."""
    given: dict[tuple[str, int, int], list[float]] = {}
    for row in prior.iter_rows(named=True):
        given.setdefault((row["set"], row["template"], row["candidate"]), []).append(row["sum"])
    assert {len(values) for values in given.values()} == {len(NO_SUBJECTS)}
    return {
        (item, t): [v - sum(given[item[:2], t, o]) / 3 for o, v in enumerate(values)]
        for (item, t), values in ANSWERS.items()
        if (item[:2], t, 0) in given
    }


def test_content_free_priors_equal_a_loop_and_missing_ones_are_reported():
    prior = free()
    table = with_content_free(scores(ANSWERS), FRAMES["items"], prior)
    literal = uninformed(prior)
    assert len(literal) == 9 * 3 + 4
    for (item, t), values in literal.items():
        own = table.filter(item=item, template=t).sort("candidate")["uninformed"]
        assert own.to_list() == pytest.approx(values)
    assert table.filter(item="P3/Qs0")["uninformed"].null_count() == 6
    found = found_of(content_free=prior)
    own, corrected = rates_by_hand(FRAMES, ANSWERS), rates_by_hand(FRAMES, literal)
    row = number(found, aggregation="content_free")
    assert (row["value"], row["n"]) == (pytest.approx(mean(corrected, corrected)), 13)
    gain = number(found, "gain", aggregation="content_free")
    expected = mean(corrected, corrected) - mean(own, corrected)
    assert gain["value"] == pytest.approx(expected)
    assert expected != 0
    lost = number(found, "without prior", aggregation="content_free")
    assert (lost["value"], lost["n"]) == (1, 14)
    notes = " ".join(aggregations.notes(found, {"m": CONTROL}, "sum"))
    assert re.search(r"Without a prior of content-free subjects, [^.]*: 1 item\.", notes)
    assert re.search(r"Without a prior, since no other subject [^.]*: 1 item\.", notes)
    assert "content_free" not in found_of()["aggregation"], "nothing was asked"


def test_relations_are_weighted_by_items_not_templates():
    found, own = found_of(), rates_by_hand(FRAMES, ANSWERS)
    assert number(found, aggregation="sum")["value"] == pytest.approx(mean(own, ITEMS))
    expected = 0.0
    # the gold of P3's one item cannot be exchanged
    for relation, templates in list(KEPT.items())[:2]:
        golds = [GOLD[item] for item in ITEMS if item.startswith(relation)]
        for t in range(templates):
            said = [np.argmax(ANSWERS[i, t]) for i in ITEMS if i.startswith(relation)]
            every = sum(Counter(said)[g] for g in golds) / len(golds)
            expected += every / templates
    row = number(found, "permuted golds, expected", aggregation="sum")
    assert row["value"] == pytest.approx(100 * expected / (len(ITEMS) - 1))
    drawn = number(found, "permuted golds", aggregation="sum")
    assert drawn["value"] == pytest.approx(row["value"], abs=3)
    lacking = {(i, t): v for (i, t), v in ANSWERS.items() if (i, t) != ("P2/Qs1", 0)}
    with pytest.raises(ValueError, match="relation P2, item P2/Qs1, template 0 has 0 scored"):
        list(scored.estimates([scored.Scored(probe(), scores(lacking), asks())]))


def test_the_default_aggregation_is_first_and_each_has_training_facts():
    names = [i for i in ITEMS if i.startswith("P1")]
    trained_on = {name: n % 2 == 0 for n, name in enumerate(names)}
    found = found_of("answer_mean", free(), trained_on, group="T")
    spread = found.filter(metric="accuracy", slice="")
    order = ["answer_mean", "sum", "mean", "byte_mean", "answer_only", "prior", "content_free"]
    assert spread["aggregation"].to_list() == order
    assert set(found["group"]) == {"T"}
    # by hand: answer_sum is half of the sum, of one token, so that both rank alike
    assert number(found, "gain", group="T", aggregation="sum")["value"] == 0
    assert "answer_mean" not in found.filter(metric="gain")["aggregation"]
    literal = uninformed(free())

    def margin(item):
        every = [literal[item, t] for t in range(3)]
        g = GOLD[item]
        return sum(v[g] - max(v[:g] + v[g + 1 :]) for v in every) / 3

    pairs = [
        margin(one) > margin(other)
        for one, other in itertools.product(names, names)
        if trained_on[one] and not trained_on[other]
    ]
    area = number(found, "AUC", group="T", aggregation="content_free")
    assert (area["value"], area["n"]) == (pytest.approx(sum(pairs) / len(pairs)), 9)
    corrected, own = rates_by_hand(FRAMES, literal), rates_by_hand(FRAMES, ANSWERS)
    for half, is_trained_on in (("trained-on", True), ("held-out", False)):
        part = [name for name in names if trained_on[name] is is_trained_on]
        row = number(found, "gain", group="T", slice=half, aggregation="content_free")
        assert row["value"] == pytest.approx(mean(corrected, part) - mean(own, part))
    areas = dict(found.filter(metric="AUC").select("aggregation", "value").rows())
    assert set(areas) == set(order)
    other = found.filter(metric="AUC").head(1)
    other = other.with_columns(aggregation=pl.lit(""), value=pl.lit(2.0))
    note = aggregations.notes(pl.concat([found, other]), {"m": CONTROL}, "answer_mean")[-1]
    best = [aggregations.WORDS["aggregation", n] for n in order if areas[n] == max(areas.values())]
    wanted = f"causal, sentence of world_lite, T: {' and '.join(best)} {max(areas.values()):.3f}"
    assert f"{wanted} ({areas['answer_mean']:.3f})" in note
    hub = {"m": {"source": "hub:m", "kind": "causal"}}
    texts = aggregations.notes(found, hub, "answer_mean")
    assert not any("separates trained-on" in text for text in texts)


def test_an_item_whose_options_are_all_right_is_counted_and_left_out():
    frames = benchmark({"P1": (["a", "b"], ["a", "b"]), "P2": (["z"], ["z"])})
    questions = Study(**frames, aggregation="sum")
    made = scored.estimates([scored.Scored(probe(), scores(guesses(frames, 0.5, 1)), questions)])
    found = results.frame("any", made)
    row = number(found, "without wrong option")
    assert (row["value"], row["n"]) == (1, 3)
    assert number(found, aggregation="sum")["n"] == 2
    notes = aggregations.notes(found, {}, "sum")
    assert "Left out, since no option is wrong: 1 item." in notes


def test_counts_of_items_left_out_are_of_as_many_subjects_as_other_numbers():
    frames = benchmark({"P1": (["a", "b"], ["a", "b"] * 3), "P2": (["x", "y"], ["x"]),
                        "P3": (["z"], ["z"])})  # fmt: skip
    # two items of every subject of P1
    subjects = [*(f"Qs{i // 2}" for i in range(6)), "Qs0", "Qs0"]
    frames["items"] = frames["items"].with_columns(subject_id=pl.Series(subjects))
    asked = Study(**frames, aggregation="sum")
    made = scored.estimates([scored.Scored(probe(), scores(guesses(frames, 0.5, 1)), asked)])
    found = results.frame("any", made)
    assert number(found, aggregation="sum")["n"] == 4
    for metric, aggregation, n in (
        ("without wrong option", "", 5), ("without prior", "prior", 4), ("not permuted", "sum", 4)
    ):  # fmt: skip
        row = number(found, metric, aggregation=aggregation)
        assert (row["value"], row["n"]) == (1, n), metric


def test_coinciding_options_are_counted_in_the_probed_sets():
    frames = benchmark({"P1": (["Rome", "rome ", "Oslo"], ["Oslo"]), "P2": (["x", "X"], ["x"])})
    part = frames["items"].filter(relation="P1")
    questions = replace(Study(**frames, aggregation="sum", group="T"), items=part)
    own = {k: v for k, v in guesses(frames, 0.5, 1).items() if k[0].startswith("P1")}
    models = [scored.Scored(probe(name), scores(own), questions) for name in ("m", "n")]
    found = results.frame("any", scored.estimates(models))
    row = number(found, "coinciding options", model="", prompt="", method="", group="T")
    assert (row["value"], row["n"]) == (2, 3)
    note = aggregations.notes(found, {}, "sum")[0]
    assert note.startswith("Equal to another option")
    assert note.endswith(": 2 options of world_lite, T.")


# templates

ROWS = pl.DataFrame(
    [
        # relation r has three templates, s two, t one
        ("r1", "r", 0, 1.0, "a"), ("r1", "r", 1, 1.0, "a"), ("r1", "r", 2, 1.0, "a"),
        ("r2", "r", 0, 0.0, "b"), ("r2", "r", 1, 1.0, "a"), ("r2", "r", 2, 0.5, "a"),
        ("s1", "s", 0, 0.0, "c"), ("s1", "s", 4, 1.0, "a"),
        ("s2", "s", 0, 0.0, "c"), ("s2", "s", 4, 0.0, "c"),
        ("t1", "t", 0, 1.0, "a"),
    ],
    schema=["item", "relation", "template", "hit", "said"], orient="row",
)  # fmt: skip


def test_relations_may_have_different_numbers_of_templates():
    found = {x.metric: x for x in consistency.estimates(Number(), ROWS, "relation")}
    assert set(found) == set(consistency.METRICS)
    assert {x.n for x in found.values()} == {4}
    assert found["agreement"].value == 100 * 2 / 4
    assert found["correct in any"].value == 100 * (1 + 1 + 1 + 0) / 4
    # more than half: two of three, both of two; r2: its second and third with one half
    assert found["correct in most"].value == 100 * (1 + 0.5 + 0 + 0) / 4
    assert found["correct in all"].value == 100 * (1 + 0 + 0 + 0) / 4
    # the second of r (2 of 2), the other of s (1 of 2)
    assert found["best template"].value == 100 * (1 + 1 + 1 + 0) / 4
    assert dict(found["best template"].setting) == {"choice": "oracle"}
    shuffled = ROWS.sample(fraction=1.0, shuffle=True, seed=1)
    assert list(consistency.estimates(Number(), shuffled, "relation")) == list(found.values())


def test_one_template_or_an_unknown_answer_gives_no_agreement():
    assert list(consistency.estimates(Number(), ROWS.filter(template=0), "relation")) == []
    unknown = ROWS.with_columns(said=pl.lit(None, pl.String))
    names = [x.metric for x in consistency.estimates(Number(), unknown)]
    assert names == list(consistency.METRICS[1:])


# the papers

TASKS = ("TP", "SPO")


def onto(folder: Path) -> tuple[dict[str, Path], dict[tuple[str, int], list[float]], str, str]:
    """Two tasks of twelve test rows, with three templates and one; their answers and files."""
    labels = ["cat", "dog", "city", "town"]
    items, answers = [], {}
    generator = np.random.default_rng(8)
    for task, row in itertools.product(TASKS, range(14)):
        role, name = "test" if row < 12 else "dev", f"{task}-{row}"
        meta = json.dumps({"label": f"{task} {row}", "depth": 0, "leak": False})
        golds = [row % 4] if row % 3 else [row % 4, (row + 1) % 4]
        items.append((name, task, role, task, f"s {row}", f"id{row}", "class", golds, row, meta))
        for t in (1, 2, 3) if task == "TP" else (1,):
            answers[name, t] = generator.normal(-9, 2, 4).tolist()
    options = [("class", i, label, label) for i, label in enumerate(labels)]
    prompts = [
        (f"{task}-m{t}", task, t, f"[X] is {t} [Y] .", "manual")
        for task, count in (("TP", 3), ("SPO", 1))
        for t in range(1, count + 1)
    ]
    place = folder / "onto_world"
    place.mkdir()
    rows = {"items": items, "candidates": options, "prompts": prompts}
    write_benchmark({name: of_rows(CONTRACTS[name], rows[name]) for name in rows}, place)
    # the answer's mean is half the sum, but for one option that has many tokens
    frame = scores(answers).with_columns(
        answer_count=pl.when(pl.col("candidate") == 3).then(4).otherwise(1).cast(pl.Int32)
    )
    schema.write(frame, schema.SCORES, folder / "scores.parquet", {})
    schema.write(of_rows(schema.CONTENT_FREE), schema.CONTENT_FREE, folder / "free.parquet", {})
    files = str(folder / "scores.parquet"), str(folder / "free.parquet")
    return {"onto_world": place}, answers, *files


def onto_numbers(places: dict[str, Path], path: str, beside: str) -> pl.DataFrame:
    """Return RESULTS of a control model on `onto` that was trained on every other type."""
    who = Probe("onto_world", "templates", "sentence", "m", "causal", source="control:causal")
    training_facts = [(f"TP/TP {i}", "TP", f"TP {i}", "x", i % 2 == 0) for i in range(14)]
    trained_on = of_rows(schema.TRAINED_ON, training_facts)
    study = make.OntoProbeStudy(places, seed=SEED, facts=trained_on)
    rows = make.scored_rows(study, {who: path}, {who: beside})
    return results.frame("ontoprobe", scored.estimates(rows))


def test_ontoprobes_candidates_under_other_aggregations_by_task(tmp_path):
    places, answers, path, beside = onto(tmp_path)
    found = onto_numbers(places, path, beside)
    golds = {
        f"{t}-{r}": {r % 4} | (set() if r % 3 else {(r + 1) % 4}) for t in TASKS for r in range(12)
    }
    for task, templates in (("TP", (1, 2, 3)), ("SPO", (1,))):
        names = [f"{task}-{r}" for r in range(12)]
        fold = dict(zip(names, folds([f"id{r}" for r in range(12)], SEED, task), strict=True))
        right = {"sum": 0.0, "answer_mean": 0.0, "prior": 0.0}
        for name, t in itertools.product(names, templates):
            own = answers[name, t]
            others = [answers[o, t] for o in names if fold[o] != fold[name]]
            read = {
                "sum": own,
                "answer_mean": [v / 2 / (4 if o == 3 else 1) for o, v in enumerate(own)],
                "prior": [v - sum(x[o] for x in others) / len(others) for o, v in enumerate(own)],
            }
            for name_of, row in read.items():
                right[name_of] += (int(np.argmax(row)) in golds[name]) / len(templates)
        for name_of, count in right.items():
            row = number(found, group=task, aggregation=name_of)
            assert (row["value"], row["n"]) == (pytest.approx(100 * count / 12), 12)
    assert found.filter(metric="held-out", group="TP")["n"].unique().to_list() == [6]
    assert not found.filter(metric="held-out", group="SPO").height
    for view in views.REDUCED:
        rows = view.of(found).rows
        assert {row[0] for row in rows} == set(TASKS)
        assert len(rows) == 12


def test_ontoprobes_templates_agree(tmp_path):
    places, answers, path, _ = onto(tmp_path)
    who = Probe("onto_world", "templates", "sentence", "m", "causal")
    asked, study = {who: path}, make.OntoProbeStudy(places)
    winners = make.find_winners(study, asked, {})
    made = list(make.estimate_agreement(study, study.answers(asked), winners))
    assert {x.group for x in made} == {"TP"}, "one template agrees with nothing"
    best = {
        (f"TP-{r}", t): int(
            np.argmax([v / (4 if o == 3 else 1) for o, v in enumerate(answers[f"TP-{r}", t])])
        )
        for r in range(12)
        for t in (1, 2, 3)
    }
    same = sum(len({best[f"TP-{r}", t] for t in (1, 2, 3)}) == 1 for r in range(12))
    golds = {r: {r % 4} | (set() if r % 3 else {(r + 1) % 4}) for r in range(12)}
    right = [sum(best[f"TP-{r}", t] in golds[r] for t in (1, 2, 3)) for r in range(12)]
    by = {x.metric: x for x in made}
    assert by["agreement"].value == pytest.approx(100 * same / 12)
    for name, least in (("any", 1), ("most", 2), ("all", 3)):
        fraction = sum(n >= least for n in right) / 12
        assert by[f"correct in {name}"].value == pytest.approx(100 * fraction)
    assert by["agreement"].setting == {"masks": "sentence", "pooling": "answer_mean"}
    # of ranks in a mask slot, the first positions that are kept
    ranked = replace(who, method="cloze")
    how = itertools.product(range(12), (1, 2), ("multi", "single"), ("mean", "max"))
    top = of_rows(schema.TOPS, ((f"TP-{r}", t, m, p, 1, r % t, -1.0) for r, t, m, p in how))
    (winners,) = make.find_winners(study, {ranked: "nowhere"}, {ranked: top}).values()
    assert winners.height == 24 * 4
    fixed = winners.filter(masks="multi", pooling="mean", item="TP-5")
    assert fixed["winner"].to_list() == [0, 1]
    assert len(views.TEMPLATES.of(results.frame("ontoprobe", made)).rows) == 1


def ranked_study(tmp_path) -> tuple[st.AttributesStudy, dict[Probe, str], pl.DataFrame]:
    """Return the symmetry study of the small run with candidates ranked by a model."""
    known = attribute_answers.benchmarks()
    own = known["symmetry"]
    generator = np.random.default_rng(2)
    answers = {
        (item, t): generator.normal(-9, 2, 11).tolist()
        for item in own.items["item"]
        for t in (0, 1)
    }
    who = Probe("symmetry", "templates", "sentence", "large", "causal", source="control:causal")
    path = str(tmp_path / "scores.parquet")
    schema.write(scores(answers), schema.SCORES, path, {})
    alphas = st.read_answers(who, own, path)
    made = st.AttributesStudy(known, {who: alphas}, attribute_answers.guesses(known))
    return made, {who: path}, scores(answers)


def ranked_numbers(
    study: st.AttributesStudy, files: dict[Probe, str], folder: Path
) -> pl.DataFrame:
    """Return RESULTS of ranked candidates without a no-subject baseline."""
    path = folder / "free.parquet"
    schema.write(of_rows(schema.CONTENT_FREE), schema.CONTENT_FREE, path, {})
    made = scored.estimates(of_attributes.score_ranked(study, files, [str(path)]))
    return results.frame("attributes", made)


def test_the_attributes_candidates_under_other_aggregations(tmp_path):
    study, files, rows = ranked_study(tmp_path)
    found = ranked_numbers(study, files, tmp_path)
    items = study.benchmarks["symmetry"].items
    gold = dict(items.select("item", pl.col("answers").list.first()).rows())
    best = rows.sort("sum").group_by("item", "template").last()
    right = sum(gold[i] == c for i, c in best.select("item", "candidate").rows()) / 2
    row = number(found, aggregation="sum", benchmark="symmetry")
    assert (row["value"], row["n"]) == (pytest.approx(100 * right / 8), 8)
    # the paper's metric uses the same answers
    alphas = next(iter(study.answers.values()))
    mean = alphas.filter(k=1, gold="own").group_by("item").agg(pl.col("alpha").mean())["alpha"]
    assert row["value"] == pytest.approx(100 * mean.mean())
    # as an example that could not be asked completely
    ((who, own),) = study.answers.items()
    cut = own.filter(pl.col("item") != items.filter(group=items["group"][0])["item"][0])
    left = replace(study, answers={who: cut})
    assert number(ranked_numbers(left, files, tmp_path), aggregation="sum")["n"] == 6
    shown = {view.name: view.of(found).rows for view in attribute_views.FOLDED}
    assert shown["aggregations"][0][-1] == "sum"
    assert len(shown["golds"]) == 5


def test_the_attributes_templates_agree(tmp_path):
    study, _, rows = ranked_study(tmp_path)
    (alphas,) = study.answers.values()
    own = alphas.filter(kind="exact", gold="own")
    made = list(numbers.questions(study))
    found = {x.metric: x for x in made}
    best = rows.sort("sum").group_by("item", "template").last()
    said = best.group_by("item").agg(pl.col("candidate").n_unique())["candidate"]
    assert found["agreement"].value == pytest.approx(100 * (said == 1).mean())
    assert found["agreement"].n == 8
    hit = own.filter(k=1).group_by("item").agg(pl.col("alpha").max())["alpha"]
    assert found["correct in any"].value == pytest.approx(100 * hit.mean())
    every = results.frame("attributes", made)
    (view,) = (view for view in attribute_views.FOLDED if view.name == "templates")
    assert len(view.of(every).rows) == 1


def test_first_texts_agree_under_the_matching_rules():
    texts = enumerate(["The Rome.", "rome"])
    fills = of_rows(schema.FILLS, (("i", t, 0, -1, 1, 0, text, text, -1.0) for t, text in texts))
    found = st.of_texts(fills, {"i": [["Rome"]]})
    assert found["said"].n_unique() == 1
    assert found["said"].null_count() == 0


def test_judge_without_prompts_requires_every_template_everywhere():
    with pytest.raises(ValueError, match="relation P2, item P2/Qs0, template 1 has 0"):
        judge(scores(ANSWERS), FRAMES["items"], FRAMES["candidates"])
    own = judge(scores(ANSWERS), FRAMES["items"], FRAMES["candidates"], prompts=PROMPTS)
    assert own.height == len(ANSWERS)
