"""The no-subject and random-init baselines of a model."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.jobs import stage
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.jobs.kept import Kept
from kgprobe.probes.jobs.methods import baseline, content_free
from kgprobe.probes.jobs.methods.cloze import rank_frame
from kgprobe.probes.jobs.methods.fill import fill_frame
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.jobs.stage import Part
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.models.reinitialize import reinitialize
from kgprobe.settings.probes import Api, Fill
from kgprobe.tables import baselines
from kgprobe.tables.answers import Probe, without_subject
from kgprobe.tables.attributes import make as attributes
from kgprobe.tables.autoprompt import numbers as autoprompt
from kgprobe.tables.ontoprobe import make as ontoprobe
from kgprobe.tables.results import Number
from tests.unit import attribute_answers, prompt_folders, prompt_outcomes
from tests.unit.study_frames import benchmark, of_rows, p_by_signs, write_benchmark
from tests.unit.test_job import Rule
from tests.unit.tiny_models import tiny

SUBJECT, WEIGHTS = "the subject", "trained weights"
BASELINE = {"items": 3, "template": "first", "whole": False, "seed": 0}
GOLDS = {"P1": (["Rome", "Paris"], ["Rome", "Paris"] * 3), "P2": (["a", "one", "Africa"], ["a"])}


@pytest.fixture(params=["gpt2", "bert"])
def asked(request, tmp_path):
    """Return (frames, loaded model, Part) of a small benchmark."""
    made, loaded = benchmark(GOLDS), tiny(request.param)
    paths = write_benchmark(made, tmp_path)
    paths["questions"] = paths.pop("items")

    def part(method: str = "", **settings: object) -> Part:
        return made_part(method, paths, loaded, {"method": "sentence", **settings}, tmp_path)

    return made, loaded, part


def made_part(method: str, paths: Any, loaded: Any, told: Any, folder: Path) -> Part:
    kept = Kept(folder / "kept")
    own = (method, "b", "templates", paths, {}, told, loaded.spec, lambda _: loaded, Api(), kept)
    return Part(*own)


def scored(loaded, items, made, prompts=None):
    prompts = made["prompts"] if prompts is None else prompts
    found, _ = score_frame(
        loaded.spec, items, made["candidates"], prompts, "sentence", load=lambda _: loaded
    )
    return found


def test_a_no_subject_score_is_the_mean_over_content_free_sentences(asked):
    made, loaded, part = asked
    frames, _ = content_free.answers(part(method="content_free"))
    # 3 subjects x 3 templates x 2 options, whatever the number of items; P2 has one subject
    assert frames["content_free"].height == 3 * 3 * 2
    found = without_subject(made["items"], frames["content_free"])
    scored_rows = {row[:3]: row[3] for row in found.rows()}
    slow: dict[tuple[str, int, int], float] = {}
    for word in ("it", "this", "something"):
        items = made["items"].filter(relation="P1").with_columns(subject=pl.lit(word))
        for item, template, option, value in (
            scored(loaded, items, made).select("item", "template", "candidate", "sum").rows()
        ):
            key = item, template, option
            slow[key] = slow.get(key, 0.0) + value / 3
    assert scored_rows.keys() == slow.keys()
    assert len(scored_rows) == 3 * 6 * 2
    for key, value in slow.items():
        assert scored_rows[key] == pytest.approx(value, abs=1e-3), key


def test_a_random_init_model_answers_some_items_under_one_template(asked):
    made, loaded, part = asked
    frames, record = baseline.answers(part("baseline-sentence", without=WEIGHTS, **BASELINE))
    found = frames["scores"]
    assert record["model"] == f"{loaded.spec.model}+random-all-0"
    assert found["item"].n_unique() == 3
    assert set(found["template"]) == {0}
    assert set(found["item"].str.split("/").list.first()) == {"P1", "P2"}
    items = made["items"].join(found, on="item", how="semi")
    first = made["prompts"].filter(index=0)
    same = scored(reinitialize(loaded, "all", 0), items, made, first)
    key = ["item", "template", "candidate"]
    both = found.join(same, on=key, suffix="_same")
    assert both.height == found.height > 0
    assert both["sum"].to_list() == pytest.approx(both["sum_same"].to_list(), abs=1e-4)
    own = found.join(scored(loaded, items, made, first), on=key, suffix="_own")
    assert (own["sum"] - own["sum_own"]).abs().max() > 1e-3


def blank(items: pl.DataFrame) -> pl.DataFrame:
    """Return hand-made ITEMS with it, this, something, it ... as the subjects of each relation."""
    words = {}
    for relation in items["relation"].unique():
        own = sorted(items.filter(relation=relation)["item"])
        words |= {item: ("it", "this", "something")[i % 3] for i, item in enumerate(own)}
    return items.with_columns(subject=pl.col("item").replace_strict(words))


@pytest.mark.parametrize("without", [SUBJECT, WEIGHTS])
def test_a_baseline_equals_its_method_on_its_questions(asked, without, monkeypatch):
    """For fill and (masked models) cloze, the result equals asking the hand-made items."""
    made, loaded, part = asked
    monkeypatch.setattr("kgprobe.probes.jobs.frames.outline", lambda _: loaded)
    every = {**BASELINE, "items": 99, "template": "last", "without": without}
    fill = Fill(k=2, most_tokens=4)
    model = loaded if without == SUBJECT else reinitialize(loaded, "all", 0)
    items = blank(made["items"]) if without == SUBJECT else made["items"]
    # a causal model fills a final mask slot, which only the first of three templates has
    last = {"masked": 2, "causal": 0}[loaded.spec.kind]
    prompts = made["prompts"].filter(index=last)
    options = {"fill": asdict(fill), "few": 0, **every}
    frames, _ = baseline.answers(part("baseline-fill", **options))
    by_hand, golds, _ = fill_frame(model, items, made["candidates"], prompts, fill)
    key = ["item", "template", "masks", "position", "rank"]
    assert frames["fills"].sort(key).equals(by_hand.sort(key))
    assert frames["golds"].sort("item", "position").equals(golds.sort("item", "position"))
    if loaded.spec.kind == "causal":
        return
    own = {"candidate_space": "auto", "unknown_candidates": "keep", **every}
    frames, _ = baseline.answers(part("baseline-cloze", **own))
    ranks, _, _ = rank_frame(loaded.spec, items, made["candidates"], prompts, load=lambda _: model)
    key = ["item", "template", "masks", "pooling", "gold"]
    assert frames["ranks"].sort(key).drop("score").equals(ranks.sort(key).drop("score"))


def test_a_baseline_has_whole_examples_from_the_test_rows(asked):
    made, _, part = asked
    roles = (
        pl.when(pl.col("item").str.ends_with("s0")).then(pl.lit("dev")).otherwise(pl.lit("test"))
    )
    group = pl.col("row") // 2
    items = made["items"].with_columns(role=roles, group=pl.format("{}/{}", "relation", group))
    own = part("baseline-fill", without=WEIGHTS, **{**BASELINE, "whole": True, "items": 3})
    own = replace(own, tables={"questions": items})
    found = baseline.lowered(own).tables["questions"]
    # five test rows in three groups: one question and two thirds each, so that three are two groups
    sizes = dict(items.filter(role="test").group_by("group").len().rows())
    counted = dict(found.group_by("group").len().rows())
    assert counted == {name: sizes[name] for name in counted}
    assert len(counted) == 3
    assert set(found["role"]) == {"test"}


@pytest.mark.parametrize("without", [SUBJECT, WEIGHTS])
def test_facts_have_no_subject_and_random_init_baselines(tmp_path, without):
    loaded, folder = tiny("bert"), prompt_folders.facts(tmp_path / "auto_x")
    paths = {
        "examples": str(folder / "examples.parquet"),
        "vocabulary": str(folder / "vocabulary.json"), "task": str(folder / "task.json"),
        "found": "", "other": "",
    }  # fmt: skip
    options = {
        "section": prompt_folders.settings(), "mode": "default", "prompts": ["manual"],
        "published": "", "draws": 2, "demos": {}, "without": without, **BASELINE,
        "items": 5,
    }  # fmt: skip
    part = made_part("baseline-predict", paths, loaded, options, tmp_path)
    frames, _ = baseline.answers(part)
    found = frames["outcomes"]
    assert (found.height, set(found["split"])) == (5, {"test"})
    assert set(found["group"]) == {"P36", "P37"}
    examples = schema.read(paths["examples"], schema.EXAMPLES)
    asked = baseline.lowered(part).tables["examples"]
    for (group,), rows in asked.sort("group", "example").group_by("group", maintain_order=True):
        own = examples.filter(group=group, split="test").join(rows, on="example", how="semi")
        real = [json.loads(text)["sub"] for text in own.sort("example")["fields"]]
        words = ["it", "this", "something"][: len(real)]
        subjects = [json.loads(text)["sub"] for text in rows["fields"]]
        assert subjects == (words if without == SUBJECT else real)
    model = loaded if without == SUBJECT else reinitialize(loaded, "all", 0)
    texts = json.loads((folder / "task.json").read_text())["prompts"]["manual"]
    prompts = {group: tasks.manual(model, own["masked"]) for group, own in texts.items()}
    by_hand, _ = tasks.outcomes(
        Predictor(model), "manual", prompts, asked, sorted(prompt_folders.WORDS)
    )
    key = ["group", "example"]
    assert found.sort(key).drop("logprob").equals(by_hand.sort(key).drop("logprob"))


# -- numbers --------------------------------------------------------------------------------------


def table(values: Mapping[str, float], stratum: str = "", metric: str = "R") -> pl.DataFrame:
    rows = [(item, stratum or item[0], value) for item, value in values.items()]
    return pl.DataFrame(rows, schema=["item", "stratum", metric], orient="row")


def of(made: list[Number], metric: str, **setting: str) -> Number:
    (found,) = [n for n in made if (n.metric, dict(n.setting)) == (metric, setting)]
    return found


@pytest.mark.parametrize("macro", [False, True])
def test_a_baseline_is_compared_with_its_probe_on_the_same_items(macro):
    own = {f"a{i}": 1.0 for i in range(8)} | {f"b{i}": float(i < 2) for i in range(8)}
    low = {f"a{i}": float(i == 0) for i in range(6)} | {"b0": 0.0, "b7": 1.0}
    baseline_of = baselines.Baseline(Number(model="m"), SUBJECT, table(low), table(own))
    made = list(baselines.estimates([baseline_of], ["R"], 0, macro))
    whole, half = of(made, "R", without=SUBJECT), of(made, "R", instead=f"without {SUBJECT}")
    means = [
        [sum(one[i] for i in low if i[0] == s) / sum(i[0] == s for i in low) for s in "ab"]
        for one in (low, own)
    ]
    if macro:
        below, difference = sum(means[0]) / 2, (sum(means[1]) - sum(means[0])) / 2
    else:
        below = sum(low.values()) / len(low)
        difference = sum(own[i] - low[i] for i in low) / len(low)
    assert (whole.value, whole.n) == (pytest.approx(100 * below), 8)
    assert (half.value, half.n) == (pytest.approx(100 * difference), 8)
    assert half.interval.kind == "paired bootstrap"
    # one family of one: p of exchanged pairs, sqrt of the sum of squares over n as its error; under
    # macro an item weighs as in the mean over relations, of six items and of two
    weights = {i: 8 / 2 / (6 if i[0] == "a" else 2) if macro else 1 for i in low}
    differences = [weights[i] * (own[i] - low[i]) for i in low]
    p = of(made, "p after Holm", instead=f"without {SUBJECT}")
    assert p.value == pytest.approx(p_by_signs(differences))
    error = sum(g * g for g in differences) ** 0.5 / len(differences)
    detectable = of(made, "detectable difference", instead=f"without {SUBJECT}")
    assert detectable.value == pytest.approx(100 * (1.959964 + 0.841621) * error, rel=1e-4)


def test_the_items_of_a_subject_are_drawn_together():
    """Four subjects with three items each, all alike: four independent answers, not twelve."""
    names = {f"a{i}": float(i < 9) for i in range(12)}
    subjects = pl.Series("cluster", [f"s{i // 3}" for i in range(12)])
    own, low = (table(v).with_columns(subjects) for v in (names, dict.fromkeys(names, 0.0)))
    made = list(baselines.estimates([baselines.Baseline(Number(), SUBJECT, low, own)], ["R"]))
    whole, half = of(made, "R", without=SUBJECT), of(made, "R", instead=f"without {SUBJECT}")
    assert (whole.value, whole.n) == (0, 4)
    # none of four, by Wilson's interval
    assert whole.interval.high == pytest.approx(48.99, abs=0.01)
    assert (half.value, half.n, half.interval.kind) == (75, 4, "paired cluster bootstrap")
    tested = {n.metric: n for n in made if n.setting == half.setting}
    # three subjects against none: two of eight sign patterns are as far, and count half
    assert tested["p after Holm"].value == pytest.approx(1 / 8)
    assert tested["p after Holm"].n == 4


def test_right_triples_of_a_baseline_count_subjects(monkeypatch):
    study = attribute_answers.study()
    probe = next(p for p in study.answers if (p.model, p.benchmark) == ("large", "bias"))
    one = study.benchmarks["bias"]
    items = one.items.with_columns(subject_id=pl.lit("Q1"))
    study = replace(study, benchmarks={**study.benchmarks, "bias": replace(one, items=items)})
    alphas = study.answers[probe]
    monkeypatch.setattr(attributes.studies, "read_answers", lambda *_, **__: alphas)
    below = {(*probe.dimensions.values(), SUBJECT): "x"}
    made = list(attributes.baseline_numbers(study, below))
    at_one = {"alpha": "exact", "gold": "own", "k": 1}
    assert of(made, "triples right", **at_one, without=SUBJECT).n == 1


def test_an_attribute_baseline_has_its_metrics_and_right_triples(monkeypatch):
    study = attribute_answers.study()
    probe = next(p for p in study.answers if (p.model, p.benchmark) == ("large", "symmetry"))
    alphas = study.answers[probe]
    items = sorted(alphas["item"].unique())
    # three examples were asked, one only partly: two examples of two triples count
    some = [item for item in items if item.split("#")[0] in {i.split("#")[0] for i in items[:6]}]
    low = alphas.filter(pl.col("item").is_in(some[:5]), template=0)
    right = {some[0], some[1], some[2]}
    low = low.with_columns(alpha=pl.col("item").is_in(list(right)).cast(pl.Float64))
    monkeypatch.setattr(attributes.studies, "read_answers", lambda *_, **__: low)
    below = {(*probe.dimensions.values(), SUBJECT): "x"}
    made = list(attributes.baseline_numbers(study, below))
    at_one = {"alpha": "exact", "gold": "own", "k": 1}
    value = of(made, "value", **at_one, without=SUBJECT)
    # symmetry (equation 2): of examples whose forward triple is right, the backward one, too
    assert (value.numerator, value.denominator, value.n) == (1, 2, 2)
    assert value.value == pytest.approx(50)
    right_triples = of(made, "triples right", **at_one, without=SUBJECT)
    assert (right_triples.value, right_triples.n) == (pytest.approx(75), 4)
    own = alphas.filter(k=1, kind="exact", gold="own", template=0)
    known = dict(own.select("item", "alpha").rows())
    difference = of(made, "triples right", **at_one, instead=f"without {SUBJECT}")
    by_hand = sum(known[item] - (item in right) for item in some[:4]) / 4
    assert (difference.value, difference.n) == (pytest.approx(100 * by_hand), 4)
    # resampled with the seed of the run, as all other numbers
    seeds: list[int] = []
    monkeypatch.setattr(
        attributes.baselines, "estimates", lambda _, __, seed=0: seeds.append(seed) or []
    )
    list(attributes.baseline_numbers(replace(study, seed=7), below))
    assert seeds == [7]


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_a_baseline_without_usable_questions_has_no_rows(tmp_path, kind):
    """As when the golds of the few questions all have more tokens than there are masks."""
    made, loaded = benchmark({"P1": (["Rome", "Paris"], ["Rome"] * 2)}), tiny("bert")
    made["prompts"] = made["prompts"].filter(index=0)
    long = pl.concat([made["candidates"].head(1).with_columns(label=pl.lit("x " * 12 + "x"))])
    made["candidates"] = pl.concat([long, made["candidates"].tail(1)]).sort("index")
    paths = write_benchmark(made, tmp_path)
    paths["questions"] = paths.pop("items")
    options = {"fill": asdict(Fill(k=2, most_tokens=4)), "few": 0, "without": SUBJECT, **BASELINE}
    part = replace(
        made_part("baseline-fill", paths, loaded, options, tmp_path),
        output={name: str(tmp_path / f"f{end}") for name, end in
                {"fills": ".parquet", "golds": ".golds.parquet"}.items()},
    )  # fmt: skip
    with job(Rule(tmp_path)) as run:
        stage.answer(run, part, "code")
    empty = replace(schema.FILLS, may_be_empty=True)
    assert schema.read(part.output["fills"], empty).is_empty()

    study = attribute_answers.study()
    probe = next(p for p in study.answers if p.benchmark == "symmetry")
    asked = replace(probe, kind=kind)
    own = replace(study, answers={asked: study.answers[probe]})
    below = {(*asked.dimensions.values(), SUBJECT): part.output["fills"]}
    assert list(attributes.baseline_numbers(own, below)) == []


def test_a_baseline_of_facts_is_the_mean_over_relations(tmp_path):
    frame = prompt_outcomes.examples({"P36": {"test": 4}, "P37": {"test": 2}})
    ranks = {"P36": [1, 1, 2, 4], "P37": [1, 2]}
    own = prompt_outcomes.answered(
        "auto_world", "manual", frame, prompt_outcomes.outcomes(frame, ranks, "manual")
    )
    low = prompt_outcomes.outcomes(frame, {"P36": [1, 5, 5, 5], "P37": [20, 2]}, "manual")
    path = tmp_path / "low.parquet"
    schema.write(low, schema.OUTCOMES, path, {})
    below = {(*own.probe.dimensions.values(), WEIGHTS): str(path)}
    made = list(autoprompt.baseline_numbers([own], below))
    assert of(made, "P@1", without=WEIGHTS).value == pytest.approx(100 * (1 / 4 + 0) / 2)
    reciprocal = ((1 + 3 / 5) / 4 + (1 / 20 + 1 / 2) / 2) / 2
    assert of(made, "MRR", without=WEIGHTS).value == pytest.approx(100 * reciprocal)
    assert of(made, "P@10", without=WEIGHTS).value == pytest.approx(100 * (1 + 1 / 2) / 2)
    difference = of(made, "P@1", instead=f"without {WEIGHTS}")
    assert difference.value == pytest.approx(100 * ((2 / 4 + 1 / 2) / 2 - 1 / 8))


def test_a_no_subject_row_of_the_ontology_is_ranked_by_its_options(tmp_path):
    """Sentences use CONTENT_FREE, random weights their scores; test rows, last template."""
    golds = {"TP": (list("abcd"), ["a", "b", "c", "d", "a", "b"])}
    items = benchmark(golds)["items"].with_columns(role=pl.lit("test"))
    folder = tmp_path / "onto_x"
    schema.write(items, schema.ITEMS, folder / "items.parquet", {})
    key = [(i, t, c) for i in items["item"] for t in range(3) for c in range(4)]
    value = {k: -float((7 * n) % 11) for n, k in enumerate(key)}
    scores = _scores([(*k, v) for k, v in value.items()])
    schema.write(scores, schema.SCORES, tmp_path / "own.parquet", {})
    free = {(w, t, c): -float((5 * n) % 13) for n, (w, t, c) in enumerate(
        (w, t, c) for w in ("it", "this", "something") for t in range(3) for c in range(4)
    )}  # fmt: skip
    rows = [("TP", "TP", w, t, c, v - 1, 2, v, 1, None) for (w, t, c), v in free.items()]
    alone = of_rows(schema.CONTENT_FREE, rows)
    schema.write(alone, schema.CONTENT_FREE, tmp_path / "free.parquet", {})
    random = _scores([(*k, -value[k]) for k in key if k[1] == 2 and k[0] < "TP/Qs4"])
    schema.write(random, schema.SCORES, tmp_path / "random_init.parquet", {})
    probe = Probe("onto_x", "templates", "sentence", "m", "causal")
    study = ontoprobe.OntoProbeStudy({"onto_x": folder})
    found = study.answers({probe: tmp_path / "own.parquet"})
    below = {(*probe.dimensions.values(), WEIGHTS): str(tmp_path / "random_init.parquet")}
    free_of = {probe: str(tmp_path / "free.parquet")}
    numbers = list(ontoprobe.baseline_numbers(study, found, below, free_of))
    means = [sum(free[w, 2, c] for w in ("it", "this", "something")) / 3 for c in range(4)]
    gold = dict(items.select("item", pl.col("answers").list.first()).rows())
    for without, asked_items in ((SUBJECT, sorted(gold)), (WEIGHTS, sorted(gold)[:4])):
        hits = []
        for item in asked_items:
            said = means if without == SUBJECT else [-value[item, 2, c] for c in range(4)]
            best = [c for c in range(4) if said[c] == max(said)]
            hits.append((gold[item] in best) / len(best))
        one = of(numbers, "R@1", choice="fixed", without=without)
        assert (one.value, one.n) == (pytest.approx(100 * sum(hits) / len(hits)), len(hits))
        own = [value[i, 2, gold[i]] >= max(value[i, 2, c] for c in range(4)) for i in asked_items]
        difference = of(numbers, "R@1", choice="fixed", instead=f"without {without}")
        assert difference.value == pytest.approx(100 * ((sum(own) - sum(hits)) / len(hits)))


def _scores(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Return SCORES from (item, template, candidate, log-likelihood of an answer of one token)."""
    return of_rows(schema.SCORES, [(i, t, c, v - 1, 2, v, 1, None) for i, t, c, v in rows])
