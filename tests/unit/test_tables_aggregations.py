"""Aggregations as rows: numbers against loops written from their definitions, and notes."""

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from kgprobe.metrics.aggregations import folds
from kgprobe.tables import aggregations
from kgprobe.tables.answers import coinciding, judge, with_bytes, with_priors
from kgprobe.tables.bear import section, views
from kgprobe.tables.bear.published import Published
from kgprobe.tables.report import headline, validity
from kgprobe.tables.results import plain
from kgprobe.tables.scored import Scored, numbers_of
from kgprobe.tables.study import Study
from kgprobe.templates import fill
from tests.unit.study_frames import (
    benchmark,
    guesses,
    number,
    probe,
    results,
    scores,
    trained,
    training_facts,
)
from tests.unit.test_tables_bear import fake

OPTIONS = ["a", "bé", "ccc"]
FRAMES = benchmark(
    {"P1": (OPTIONS, [OPTIONS[i % 3] for i in range(12)]), "P2": (["x", "y"], ["x"])}
)
SEED = 7
#: aggregations besides BEAR's without content-free subjects
NAMES = ("mean", "byte_mean", "answer_only", "prior")
#: {(item, template): score of every option}
ANSWERS = guesses(FRAMES, 0.4, 3, templates=2)
GOLD = dict(FRAMES["items"].select("item", pl.col("answers").list.first()).iter_rows())
CONTROL = {"source": "control:masked"}


def read(model="m", answers=ANSWERS, frames=FRAMES, change=lambda s: s, facts=None, seed=SEED,
         **about):  # fmt: skip
    """Return a study of one probe with the numbers of its scores; `facts`: TRAINED_ON."""
    found = change(scores(answers))
    own = judge(found, frames["items"], frames["candidates"])
    who = probe(model, **about)
    study = Study(**frames, benchmark=who.benchmark, probes=[(who, own)], seed=seed)
    study = study if facts is None else trained(study, facts)
    numbers = [*aggregations.count_coinciding(study), *numbers_of(Scored(who, found, study), own)]
    return replace(study, numbers=numbers)


def trained_on():
    """Return TRAINED_ON with every other item trained on."""
    return training_facts(FRAMES, {f"P1/Qs{i}": i % 2 == 0 for i in range(12)})


def corrected() -> dict[tuple[str, int], list[float]]:
    """Return P1's scores minus the option's mean over items of other folds, by definition."""
    names = [f"P1/Qs{i}" for i in range(12)]
    fold = dict(zip(names, folds([f"Qs{i}" for i in range(12)], SEED, "P1"), strict=True))
    made = {}
    for name, template in itertools.product(names, (0, 1)):
        others = [ANSWERS[other, template] for other in names if fold[other] != fold[name]]
        assert others
        made[name, template] = [
            ANSWERS[name, template][o] - sum(one[o] for one in others) / len(others)
            for o in range(3)
        ]
    return made


def accuracy(table: dict[tuple[str, int], list[float]], names=None) -> float:
    right = [
        np.argmax(values) == GOLD[item]
        for (item, _), values in table.items()
        if names is None or item in names
    ]
    assert right
    return 100 * sum(right) / len(right)


def test_prior_corrected_accuracies_and_gains_are_those_of_a_loop():
    found = results(read(facts=trained_on(), **CONTROL)).filter(model="m")
    own = {key: values for key, values in ANSWERS.items() if key[0].startswith("P1")}
    prior = corrected()
    assert accuracy(prior) != accuracy(own)
    row = number(found, aggregation="prior")
    # the one item of P2 has no prior and is left out, not used uncorrected
    assert (row["value"], row["n"]) == (pytest.approx(accuracy(prior)), 12)
    gain = number(found, "gain", aggregation="prior")
    assert (gain["value"], gain["n"]) == (pytest.approx(accuracy(prior) - accuracy(own)), 12)
    assert gain["interval"] == "paired bootstrap"
    lost = number(found, "without prior", aggregation="prior")
    assert (lost["value"], lost["n"]) == (1, 13)
    for half, remainder in (("trained-on", 0), ("held-out", 1)):
        names = {f"P1/Qs{i}" for i in range(12) if i % 2 == remainder}
        value = accuracy(prior, names)
        row = number(found, half, aggregation="prior")
        assert (row["value"], row["n"]) == (pytest.approx(value), 6)
        difference = number(found, "gain", slice=half, aggregation="prior")["value"]
        assert difference == pytest.approx(value - accuracy(own, names))

    def margin(item):
        every = [prior[item, t] for t in (0, 1)]
        gold = GOLD[item]
        return sum(v[gold] - max(v[:gold] + v[gold + 1 :]) for v in every) / 2

    pairs = [
        (margin(f"P1/Qs{i}") > margin(f"P1/Qs{j}"))
        for i, j in itertools.product(range(0, 12, 2), range(1, 12, 2))
    ]
    assert number(found, "AUC", aggregation="prior")["value"] == pytest.approx(sum(pairs) / 36)


def test_token_and_byte_means_and_answer_scores_equal_a_loop():
    generator = np.random.default_rng(0)

    def change(frame):
        counts = generator.integers(2, 9, frame.height)
        part = generator.normal(-5, 2, frame.height)
        return frame.with_columns(
            count=pl.Series(counts, dtype=pl.Int32), answer_sum=pl.Series(part)
        )

    kept = []
    study = read(change=lambda frame: kept.append(change(frame)) or kept[-1])
    found = results(study).filter(model="m")
    texts = {
        row[:2]: row[2] for row in FRAMES["prompts"].select("relation", "index", "text").rows()
    }
    options = FRAMES["candidates"].select("set", "index", "label").rows()
    labels = {row[:2]: row[2] for row in options}
    tables: dict[str, dict] = {"mean": {}, "byte_mean": {}, "answer_only": {}}
    for row in kept[0].iter_rows(named=True):
        relation, subject = row["item"].split("/Q")
        sentence = fill(
            texts[relation, row["template"]], subject, labels[relation, row["candidate"]]
        )
        for name, value in (
            ("mean", row["sum"] / row["count"]),
            ("byte_mean", row["sum"] / len(sentence.text.encode())),
            ("answer_only", row["answer_sum"]),
        ):
            tables[name].setdefault((row["item"], row["template"]), []).append(value)
    values = {name: accuracy(table) for name, table in tables.items()}
    assert len({*values.values(), accuracy(ANSWERS)}) > 2
    for name, value in values.items():
        row = number(found, aggregation=name)
        assert (row["value"], row["n"]) == (pytest.approx(value), 13)
        difference = number(found, "gain", aggregation=name)["value"]
        assert difference == pytest.approx(value - accuracy(ANSWERS))
    items, candidates, prompts = (FRAMES[n] for n in ("items", "candidates", "prompts"))
    sized = with_bytes(kept[0], items, candidates, prompts)
    assert sized["bytes"].null_count() == 0
    assert sized.filter(item="P1/Qs0", template=0)["bytes"].to_list() == [8, 10, 10]


def test_permuted_golds_and_the_skewed_subset():
    found = results(read()).filter(model="m")
    # by template: fraction of each answer times fraction of each gold; P2 has one item
    expected = 0.0
    for template in (0, 1):
        own = {i: v for (i, t), v in ANSWERS.items() if i.startswith("P1") and t == template}
        said = [int(np.argmax(values)) for values in own.values()]
        golds = [GOLD[item] for item in own]
        expected += sum(said.count(g) for g in golds) / len(golds)
    row = number(found, "permuted golds, expected")
    assert row["value"] == pytest.approx(100 * expected / 24)
    drawn = number(found, "permuted golds")
    assert drawn["interval"] == "permutations"
    assert drawn["low"] < row["value"] < drawn["high"]
    assert drawn["value"] == pytest.approx(row["value"], abs=3)
    # 4, 2, 1 1/3 of four each, and the one of P2
    part = FRAMES["items"].filter(aggregations.skewed(FRAMES["items"], SEED))
    sizes = part.filter(relation="P1").group_by(pl.col("answers").list.first()).len()["len"]
    assert sorted(sizes.to_list()) == [1, 2, 4]
    names = set(part["item"])
    own = number(found, slice="skewed")
    assert (own["value"], own["n"]) == (pytest.approx(accuracy(ANSWERS, names)), 8)
    # the prior is that of the subset
    rows = scores({k: v for k, v in ANSWERS.items() if k[0] in names})
    fewer = with_priors(rows, part, SEED).drop_nulls("corrected")
    best = fewer.sort("corrected").group_by("item", "template").last()
    hits = [GOLD[item] == option for item, option in best.select("item", "candidate").rows()]
    row = number(found, slice="skewed", aggregation="prior")
    assert (row["value"], row["n"]) == (pytest.approx(100 * sum(hits) / len(hits)), 7)


def test_only_the_paper_s_aggregation_has_a_published_number(monkeypatch):
    monkeypatch.setattr(Published, "score", lambda *_: (13.49, "a table"))
    study = read("gpt2", name="bear_released", kind="causal", bos="none", published="gpt2")
    every = results(study, published=fake(13.49)).filter(model="gpt2", method="sentence")
    beside = every.filter(pl.col("published").is_not_null())
    assert beside.filter(plain()).height == beside.height == 1
    assert every.filter(pl.col("aggregation") != "").height > 10


def test_an_answer_without_a_scored_token_has_no_answer_score():
    study = read(change=lambda s: s.with_columns(answer_count=pl.lit(0, pl.Int32)))
    found = results(study).filter(pl.col("aggregation") != "")
    assert sorted(found["aggregation"].unique()) == ["byte_mean", "mean", "prior"]


def test_options_with_equal_labels_are_reported():
    frames = benchmark({"P1": (["Rome", " rome", "Ｒome", "Paris"], ["Rome", "Paris", "Paris"])})
    assert coinciding(frames["candidates"])["index"].to_list() == [0, 1, 2]
    assert not coinciding(FRAMES["candidates"]).height
    found = results(read(answers=guesses(frames, 0.5, 1), frames=frames))
    assert number(found, "coinciding options", model="")["value"] == 3
    models = {"m": {"dtype": "float32", "source": "hub:m", "kind": "masked"}}
    assert any(note.endswith(": 3 options.") for note in section.notes(found, models))


def test_views_headline_and_notes_include_both_aggregations():
    found = results(read(facts=trained_on(), **CONTROL))
    shown = views.views(found, ["m"])
    table = shown["aggregations"].of(found)
    assert [key[-1] for key in table.rows] == ["", *NAMES]
    assert {"gain, points", "gain, points, of held-out facts", "AUC"} <= set(table.heads)
    assert len(shown["golds"].of(found).columns) == 10
    for view in (*shown.values(), validity.VIEW):
        view.of(found)  # two numbers in one cell would be an error
    lines = [line for line in headline.text(found).splitlines() if line.startswith("m ")]
    assert len(lines) == 2
    assert "prior-corrected" in lines[1]
    models = {"m": {"dtype": "float32", "source": "control:masked", "kind": "masked"}}
    notes = " ".join(section.notes(found, models))
    assert "gain: 1 item. " in notes
    assert "separates trained-on from held-out facts best" in notes
    assert "masked, sentence: " in notes


def test_results_do_not_depend_on_the_order_of_rows():
    shuffled = read(change=lambda s: s.sample(fraction=1.0, shuffle=True, seed=1))
    assert results(shuffled).equals(results(read()))


def test_per_item_options_are_identified_by_label():
    """As in LAMA, every item has its own options in its own order; a prior belongs to a label."""
    own = FRAMES["items"].filter(relation="P1")
    turned = {name: OPTIONS[at % 3 :] + OPTIONS[: at % 3] for at, name in enumerate(own["item"])}
    items = own.with_columns(candidates="item").with_columns(
        pl.Series("answers", [[turned[i].index(OPTIONS[GOLD[i]])] for i in own["item"]])
    )
    candidates = pl.DataFrame(
        [(i, at, f"Q{o}", o) for i, options in turned.items() for at, o in enumerate(options)],
        schema=FRAMES["candidates"].schema, orient="row",
    )  # fmt: skip
    answers = {
        (i, 0): [ANSWERS[i, 0][OPTIONS.index(o)] for o in options] for i, options in turned.items()
    }
    asked = Study(items, candidates, FRAMES["prompts"], SEED)
    found = scores(answers)
    made = aggregations.readings(judge(found, items, candidates), found, asked)
    hits = dict(made["prior", ""].select("item", "hit").rows())
    # the same items as under shared options, so the same right ones
    table = {name: values for (name, template), values in corrected().items() if template == 0}
    right = {name: values.index(max(values)) == GOLD[name] for name, values in table.items()}
    assert hits == right
    assert 0 < sum(right.values()) < len(right)
    numbers = list(aggregations.estimates(asked, probe(), made))
    assert {n.metric for n in numbers if n.setting.get("aggregation") == "prior"} >= {"accuracy"}
    assert not [n for n in numbers if n.metric.startswith("permuted")]


def permuted_of(frames, answers):
    """Return RESULTS of the permuted golds of one probe."""
    found = scores(answers)
    asked = Study(**frames, seed=SEED)
    own = judge(found, frames["items"], frames["candidates"])
    made = aggregations.estimates(asked, probe(), {("", ""): own})
    return {n.metric: n for n in made}


@pytest.mark.parametrize("relations", [1, 2])
def test_templates_that_agree_permute_as_one_does(relations):
    """Golds have one order for all templates: three equal templates do not narrow the band."""
    golds = [OPTIONS[i % 3] for i in range(30)]
    frames = benchmark({f"P{r}": (OPTIONS, golds) for r in range(relations)})
    once = guesses(frames, 0.5, 1, templates=1)
    thrice = {(item, t): values for (item, _), values in once.items() for t in range(3)}
    one, three = permuted_of(frames, once), permuted_of(frames, thrice)
    for metric in ("permuted golds", "permuted golds, expected"):
        assert three[metric].value == pytest.approx(one[metric].value)
    assert three["permuted golds"].interval == pytest.approx(one["permuted golds"].interval)


def test_a_gold_that_cannot_be_exchanged_is_left_out_and_counted():
    """A single item of its relation and options keeps its gold, so it gives no control."""
    frames = benchmark(
        {"P1": (OPTIONS, OPTIONS * 4), "P2": (OPTIONS, ["a"]), "P3": (["x", "y"], ["y"])}
    )
    answers = guesses(frames, 1.0, 2)
    found = permuted_of(frames, answers)
    assert (found["not permuted"].value, found["not permuted"].n) == (2, 14)
    own = permuted_of(
        benchmark({"P1": (OPTIONS, OPTIONS * 4)}),
        {k: v for k, v in answers.items() if k[0].startswith("P1")},
    )
    assert "not permuted" not in own
    for metric in ("permuted golds", "permuted golds, expected"):
        assert found[metric].n == 12
        assert found[metric].value == own[metric].value
    # half of the items share their options with nobody, the others with one more
    items = frames["items"].filter(relation="P1")
    sets = [f"set {i // 2}" if i < 6 else f"set {i}" for i in range(12)]
    candidates = pl.concat(
        frames["candidates"].filter(set="P1").with_columns(set=pl.lit(name))
        for name in sorted(set(sets))
    )
    apart = {
        **frames,
        "items": items.with_columns(candidates=pl.Series(sets)),
        "candidates": candidates,
    }
    found = permuted_of(apart, {k: v for k, v in answers.items() if k[0].startswith("P1")})
    assert (found["not permuted"].value, found["permuted golds"].n) == (6, 6)
    assert found["permuted golds"].value < 100
