"""From a task folder to prompt files and outcomes: searches, baselines, controls, sweeps."""

import json
from collections import Counter
from dataclasses import asdict
from functools import partial
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tokenizers import normalizers

from kgprobe.probes import prompt_settings
from kgprobe.probes.jobs.autoprompt import predict, search, sweep, tasks
from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.jobs.methods import trained
from kgprobe.probes.prompts.search import files
from kgprobe.probes.prompts.search import search as autoprompt
from kgprobe.schema import EXAMPLES, OUTCOMES, SWEEPS, check, read, write
from kgprobe.settings import Settings
from kgprobe.tables.autoprompt import texts
from kgprobe.templates import Template
from tests.unit import prompt_folders
from tests.unit.tiny_models import tiny


def searched_task(folder, loaded, name="searched", benchmark="auto_world", **changed):
    """Return (outcomes, record) of a search: prompts in folder/name, states in folder/states."""
    own = prompt_folders.settings(**changed)
    task = tasks.load(folder / benchmark, own)
    places = folder / name, folder / "states"
    (folder / name).mkdir(exist_ok=True)
    return search.search_task(loaded, task, name, own, "default", *places)


@pytest.fixture
def answering(monkeypatch):
    """Make answerers use the given model, whatever their specification says."""

    def use(loaded):
        given = partial(predict.Answerer, load=lambda spec: loaded)
        monkeypatch.setattr(predict, "Answerer", given)
        return loaded

    return use


def test_a_search_leaves_a_file_per_relation_and_outcomes_of_dev_and_test(tmp_path):
    loaded = tiny("bert")
    prompt_folders.facts(tmp_path / "auto_world")
    frame, _ = searched_task(tmp_path, loaded)
    check(frame.sort(OUTCOMES.key), OUTCOMES)
    assert frame.group_by("group", "split").len().sort("group", "split").rows() == [
        ("P36", "dev", 3), ("P36", "test", 4), ("P37", "dev", 3), ("P37", "test", 4),
    ]  # fmt: skip
    file = files.load(tmp_path / "searched/P36.json", loaded)
    assert len(file.trigger) == 2
    assert len(file.restarts) == 2
    own = frame.filter((pl.col("group") == "P36") & (pl.col("split") == "test"))
    assert file.scores["test_p1"]["value"] == pytest.approx((own["best"] == 1).mean())
    assert file.scores["test_p1"]["n"] == 4
    # until its answers are stored, a next run needs no iteration
    assert len(list((tmp_path / "states").rglob("*.state.json"))) == 2


def test_a_stopped_search_resumes_to_the_same_bytes(tmp_path, monkeypatch):
    loaded = tiny("bert")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        prompt_folders.facts(folder / "auto_world")
    searched_task(whole, loaded)
    iterate, count = autoprompt.Search._iterate, iter(range(10**6))

    def stop(self, state, draws):
        if next(count) == 31:  # in the second restart of the second relation
            raise KeyboardInterrupt
        iterate(self, state, draws)

    with monkeypatch.context() as patch:
        patch.setattr(autoprompt.Search, "_iterate", stop)
        with pytest.raises(KeyboardInterrupt):
            searched_task(broken, loaded)
    assert list((broken / "states").rglob("*.state.json"))
    assert not list((broken / "searched").iterdir())
    searched_task(broken, loaded)
    for name in ("P36.json", "P37.json"):
        assert (broken / "searched" / name).read_bytes() == (whole / "searched" / name).read_bytes()


def test_other_settings_do_not_reuse_states_of_a_stopped_search(tmp_path):
    loaded = tiny("bert")
    task = tasks.load(prompt_folders.facts(tmp_path / "auto_world"), {})
    one = search.digest(loaded, task, "a template", {"iterations": 3})
    assert one != search.digest(loaded, task, "a template", {"iterations": 4})
    fewer = tasks.load(tmp_path / "auto_world", {"groups": ["P36"]})
    assert one != search.digest(loaded, fewer, "a template", {"iterations": 3})


def test_written_prompts_and_controls_of_a_searched_one(tmp_path, answering):
    loaded = answering(tiny("bert"))
    folder = prompt_folders.facts(tmp_path / "auto_world")
    searched_task(tmp_path, loaded)
    own = predict.Answerer(loaded.spec, tasks.load(folder, {}), tmp_path / "searched", draws=3)
    asked = ["majority", "constant", "manual", "random_triggers", "shuffled_triggers"]
    asked.append("initial_triggers")
    frame = own.answers(asked)
    check(frame.sort(OUTCOMES.key), OUTCOMES)
    counts = dict(frame["prompt"].value_counts().iter_rows())
    names = {*asked, *(f"random_triggers:{i:02d}" for i in range(3))} - {"random_triggers"}
    assert counts == dict.fromkeys(names, 14)
    # the initial triggers are all masks: the model's answers without a search
    start = frame.filter((pl.col("prompt") == "initial_triggers") & (pl.col("group") == "P36"))
    template = Template.parse("{sub} [T]x2 [P] .", "masked")
    blank = tasks.TriggerPrompt(template, (loaded.tokenizer.mask_token_id,) * 2)
    rows = tasks.load(folder, {"groups": ["P36"]}).evaluated
    plain, _ = tasks.outcomes(own.predictor, "x", {"P36": blank}, rows, own.task.vocabulary)
    columns = ["split", "example", "best", "worst", "logprob"]
    assert start.select(columns).rows() == plain.select(columns).rows()
    assert start["logprob"].is_not_null().any()
    constant = frame.filter((pl.col("prompt") == "constant") & (pl.col("split") == "test"))
    assert set(constant["options"]) == {len(own.options)}


def test_a_causal_model_gets_prompts_that_end_in_the_answer(tmp_path, answering):
    loaded = answering(tiny("gpt2"))
    folder = prompt_folders.facts(tmp_path / "auto_world")
    own = predict.Answerer(loaded.spec, tasks.load(folder, {}))
    assert own.answers(["manual"])["group"].unique().to_list() == ["P36"]
    with pytest.raises(tasks.ProbeTaskError, match="no prompts 'lpaqa'; the task has manual"):
        own.answers(["lpaqa"])
    with pytest.raises(tasks.ProbeTaskError, match="no searched prompts"):
        own.answers(["shuffled_triggers"])
    with pytest.raises(tasks.ProbeTaskError, match=r"autoprompt\.published"):
        own.answers(["published"])


def test_a_stopped_run_of_prompts_resumes_with_the_next_relation(tmp_path, monkeypatch):
    loaded, group, done = tiny("bert"), tasks._group, []
    folder = prompt_folders.facts(tmp_path / "auto_world")
    task, asked = tasks.load(folder, {}), ["majority", "manual", "demos"]

    def answers():
        own = predict.Answerer(loaded.spec, task, load=lambda _: loaded)
        with journal(loaded, tmp_path / "unfinished", "prompts", asked):
            return own.answers(asked), own.record

    def stopping(*given):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(given)
        return group(*given)

    monkeypatch.setattr(tasks, "_group", stopping)
    with pytest.raises(KeyboardInterrupt):
        answers()
    monkeypatch.setattr(tasks, "_group", lambda *given: done.append(given) or group(*given))
    resumed, stored = answers(), len(done)
    (tmp_path / "unfinished").rename(tmp_path / "finished")
    whole = answers()
    # three relations of the first run are not asked again
    assert len(done) - stored == stored > 3
    assert resumed[0].equals(whole[0])
    assert resumed[1] == whole[1]


def test_published_prompts_are_used_verbatim(tmp_path):
    loaded = tiny("bert")
    task = tasks.load(prompt_folders.facts(tmp_path / "auto_world"), {"groups": ["P36"]})
    listed = tmp_path / "bert.jsonl"
    listed.write_text(json.dumps({"relation": "P36", "template": " [X] in [Y]. "}))
    own = predict.Answerer(loaded.spec, task, published=listed, load=lambda _: loaded)
    frame = own.answers(["published", "manual"]).drop("prompt")
    assert frame[:7].equals(frame[7:])


def test_prompts_transfer_to_another_model_by_their_text(tmp_path, answering):
    first, second = tiny("bert"), answering(tiny("roberta"))
    folder = prompt_folders.facts(tmp_path / "auto_world")
    searched_task(tmp_path, first)
    own = predict.Answerer(second.spec, tasks.load(folder, {}), other=tmp_path / "searched")
    assert own.answers(["transferred"]).height == 14


def test_classes_are_searched_with_label_tokens(tmp_path, answering):
    loaded = answering(tiny("bert"))
    folder = prompt_folders.classes(tmp_path / "auto_sst2")
    frame, _ = searched_task(tmp_path, loaded, benchmark="auto_sst2")
    file = files.load(tmp_path / "searched/all.json", loaded)
    assert {name: len(ids) for name, ids in file.labels.items()} == {"negative": 2, "positive": 2}
    assert set(frame["answer"]) <= {"negative", "positive"}
    assert file.scores["dev_p1"]["n"] == 8
    searched_task(tmp_path, loaded, "searched_words", "auto_sst2")
    words = files.load(tmp_path / "searched_words/all.json", loaded)
    task = tasks.load(folder, {})
    assert words.label_tokens == task.about["label_words"]
    own = predict.Answerer(loaded.spec, task, tmp_path / "searched", draws=2)
    assert own.answers(["majority", "manual", "random_triggers"]).height == 14 * 4


def test_more_label_tokens_than_the_published_list_has_can_be_set(tmp_path):
    """The released code prints 50 per class."""
    loaded = tiny("roberta")
    prompt_folders.classes(tmp_path / "auto_sst2")
    searched_task(tmp_path, loaded, benchmark="auto_sst2", labels={"tokens": 60})
    file = files.load(tmp_path / "searched/all.json", loaded)
    assert {name: len(ids) for name, ids in file.labels.items()} == {"negative": 60, "positive": 60}


def test_controls_search_on_random_weights_and_balanced_data(tmp_path):
    loaded = tiny("bert")
    prompt_folders.facts(tmp_path / "auto_world")
    searched_task(tmp_path, loaded, "searched_balanced", groups=["P36"])
    searched_task(tmp_path, loaded, "searched_7", groups=["P36"], settings={"iterations": 60})
    assert len(json.loads((tmp_path / "searched_7/P36.json").read_text())["trigger"]) == 7
    assert (tmp_path / "searched_balanced/P36.json").is_file()
    with pytest.raises(tasks.ProbeTaskError, match="searched_words needs classes"):
        searched_task(tmp_path, loaded, "searched_words", groups=["P36"])


def test_balanced_facts_of_relation_extraction_keep_their_repeats(tmp_path, monkeypatch):
    folder = prompt_folders.facts(tmp_path / "auto_re", True)
    rows = read(folder / "examples.parquet", EXAMPLES).filter(group="P36").to_dicts()
    train = [row for row in rows if row["split"] == "train"]
    for row, label in zip(train, ["Rome"] * 4 + ["Paris"] * 2, strict=True):
        row["label"] = label
    # a second sentence of a fact is no separate example
    rows.append({**train[0], "example": "zzzz"})
    write(pl.DataFrame(rows, schema=dict(EXAMPLES.columns)), EXAMPLES, folder / "examples.parquet")
    seen, real = [], search.search

    def watching(loaded, template, train, *rest):
        seen.append(Counter(label for _, label in train))
        return real(loaded, template, train, *rest)

    monkeypatch.setattr(search, "search", watching)
    for name in ("searched", "searched_balanced"):
        searched_task(tmp_path, tiny("bert"), name, "auto_re")
    assert seen == [{"Rome": 4, "Paris": 2}, {"Rome": 3, "Paris": 3}]


@pytest.mark.parametrize(("name", "gold_filter"), [("roberta", "exact"), ("gpt2", "text")])
def test_random_triggers_are_sampled_from_the_search_candidates(
    tmp_path, monkeypatch, answering, name, gold_filter
):
    loaded = answering(tiny(name))
    folder = prompt_folders.facts(tmp_path / "auto_world")
    rows = read(folder / "examples.parquet", EXAMPLES)
    several = pl.when(pl.col("label") == "Niger").then(pl.lit("Burkina Faso")).otherwise("label")
    write(rows.with_columns(label=several), EXAMPLES, folder / "examples.parquet")
    searched_task(tmp_path, loaded, settings={"gold_filter": gold_filter, "capital_filter": "off"})
    sizes, real = [], predict.controls.random_triggers

    def watching(allowed, *rest):
        sizes.append(len(allowed))
        return real(allowed, *rest)

    monkeypatch.setattr(predict.controls, "random_triggers", watching)
    own = predict.Answerer(loaded.spec, tasks.load(folder, {}), tmp_path / "searched", draws=1)
    own.answers(["random_triggers"])
    prompts = [files.load(tmp_path / f"searched/{g}.json", loaded) for g in ("P36", "P37")]
    assert sizes == [prompt.filters["allowed"] for prompt in prompts]
    assert all(prompt.filters["gold"] for prompt in prompts)


def test_a_relation_may_be_an_iri_of_any_length_or_named_all(tmp_path, answering):
    """RDF graphs name relations by IRIs, which are no names of files."""
    loaded = answering(tiny("bert"))
    folder = prompt_folders.facts(tmp_path / "auto_world")
    names = {"P36": "http://a.org/" + "é" * 300, "P37": "all"}
    rows = read(folder / "examples.parquet", EXAMPLES)
    rows = rows.with_columns(pl.col("group").replace(names))
    write(rows, EXAMPLES, folder / "examples.parquet")
    about = json.loads((folder / "task.json").read_text())
    about["prompts"] = {"manual": {names[k]: v for k, v in about["prompts"]["manual"].items()}}
    (folder / "task.json").write_text(json.dumps(about))
    place = tmp_path / "searched" / "auto_world" / "m"
    own = prompt_folders.settings()
    task = tasks.load(folder, own)
    search.search_task(loaded, task, "searched", own, "default", place, tmp_path / "states")
    own = predict.Answerer(loaded.spec, tasks.load(folder, {}), place, place, draws=1)
    for name in ("initial_triggers", "transferred"):
        assert set(own.answers([name])["group"]) == set(names.values())
    assert sorted(prompt.group for prompt in texts.read([place])) == sorted(names.values())


def test_constant_answers_merge_words_with_the_same_token(tmp_path):
    loaded = tiny("bert")
    loaded.tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    folder = prompt_folders.facts(tmp_path / "auto_world")
    (folder / "vocabulary.json").write_text(json.dumps(["Of", "The", "of", "the"]))
    rows = read(folder / "examples.parquet", EXAMPLES).filter(group="P36").to_dicts()
    for place, row in enumerate(rows):
        row["label"] = "The" if place % 5 == 0 else ("Of", "of")[place % 2]
    write(pl.DataFrame(rows, schema=dict(EXAMPLES.columns)), EXAMPLES, folder / "examples.parquet")
    own = predict.Answerer(loaded.spec, tasks.load(folder, {}), load=lambda _: loaded)
    frame = own.answers(["majority", "constant", "manual"])
    assert frame["best"].null_count() == 0
    labels = {row["example"]: row["label"] for row in rows}
    for row in frame.filter(pl.col("prompt") != "manual").iter_rows(named=True):
        label = labels[row["example"]]
        right = label in ("Of", "of")
        assert (row["best"], row["worst"]) == ((1, 1) if right else (2, 2))
        assert row["answer"] == (label if right else "Of")


def answered(prompt, folder, **section):
    """Return OUTCOMES and the record of a trained baseline for the task in a folder."""
    loaded = tiny("bert")
    part = SimpleNamespace(
        prompt=prompt, settings={"seed": 0, "section": section}, spec=loaded.spec,
        load=lambda spec: loaded, input={"examples": str(folder / "examples.parquet")}, tables={},
    )  # fmt: skip
    frames, record = trained.answers(part)
    return frames["outcomes"], record


def test_trained_baselines_answer_dev_and_test(tmp_path):
    folder = prompt_folders.classes(tmp_path / "auto_sst2")
    for name in ("linear_probe", "finetuned"):
        frame, _ = answered(name, folder)
        check(frame.sort(OUTCOMES.key), OUTCOMES)
        assert (frame["prompt"].unique().to_list(), frame.height) == ([name], 14)
    with pytest.raises(tasks.ProbeTaskError, match="'relation_lstm' is for relation_extraction"):
        answered("relation_lstm", folder)


def test_the_extractor_answers_dev_and_test(tmp_path):
    folder = prompt_folders.facts(tmp_path / "auto_re", True)
    frame, record = answered("relation_lstm", folder, groups=["P36"])
    assert frame.height == 7
    assert record["trained"]["train_sentences"] == 6


def sweep_settings(**changed):
    low = {"sizes": [4, 8], "draws": 2, "selection": "within", "triggers": 2}
    return prompt_folders.settings(**{**low, **changed})


@pytest.mark.parametrize("selection", ["within", "full"])
def test_a_sweep_over_few_examples(tmp_path, selection):
    loaded, own = tiny("bert"), sweep_settings(selection=selection)
    task = tasks.load(prompt_folders.classes(tmp_path / "auto_sst2"), {})
    frame = sweep.low_data(loaded, task, "searched", own, "default", tmp_path / "shards")
    check(frame.sort(SWEEPS.key), SWEEPS)
    assert frame.select("size", "draw").sort("size", "draw").rows() == [
        (4, 0), (4, 1), (8, 0), (8, 1),
    ]  # fmt: skip
    assert set(frame["n"]) == {8}


def test_a_sweep_reuses_finished_points(tmp_path, monkeypatch):
    loaded, own = tiny("bert"), sweep_settings()
    task = tasks.load(prompt_folders.classes(tmp_path / "auto_sst2"), {})
    ways = (loaded, task, "finetuned", own, "default", tmp_path / "shards")
    first = sweep.low_data(*ways)
    monkeypatch.setattr(sweep, "_finetune", lambda *a: pytest.fail("measured again"))
    assert sweep.low_data(*ways).equals(first)
    monkeypatch.setattr(sweep, "_finetune", lambda *a: (0.5, 8))
    own = {**own, "settings": {**own["settings"], "candidates": None}}
    usual = sweep.low_data(loaded, task, "finetuned", own, "default", tmp_path / "others")
    assert set(usual["k"]) == {100}


def test_subsets_and_half_subsets_hold_every_class(tmp_path):
    task = tasks.load(prompt_folders.classes(tmp_path / "auto_sst2"), {})
    part = sweep.subset(task, 4, 0, 0)
    rows = part.of("", "train")
    assert rows["label"].value_counts().sort("label").rows() == [("negative", 2), ("positive", 2)]
    assert part.of("", "dev").height == 8
    half = sweep.halve(part)
    assert half.of("", "train").height == half.of("", "dev").height == 2
    assert set(half.of("", "dev")["label"]) == {"negative", "positive"}
    # two classes of odd size are cut into equal halves, too, and one of one example stays
    for draw in range(9):
        for size in (4, 6, 10):
            half = sweep.halve(sweep.subset(task, size, draw, 0))
            assert half.of("", "train").height == half.of("", "dev").height == size // 2
            assert all(half.of("", s)["label"].n_unique() == 2 for s in ("train", "dev"))
        alone = sweep.halve(sweep.subset(task, 3, draw, 0))
        assert alone.of("", "train")["label"].n_unique() == 2
    with pytest.raises(ValueError, match="13 training examples asked for, there are 12"):
        sweep.subset(task, 13, 0, 0)


def test_a_grid_has_every_point(tmp_path):
    own = prompt_folders.settings(candidates=[4], label_tokens=[1, 2], settings={"restarts": 1})
    own |= {"triggers": [1, 2]}
    task = tasks.load(prompt_folders.classes(tmp_path / "auto_sst2"), {})
    frame = sweep.grid(tiny("bert"), task, own, "default", tmp_path / "shards")
    points = frame.select("label_tokens", "triggers").sort("label_tokens", "triggers").rows()
    assert points == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert np.isfinite(frame["value"].to_numpy()).all()


def test_a_task_is_subsampled_by_hash_and_by_relation(tmp_path):
    folder = prompt_folders.facts(tmp_path / "auto_world")
    task = tasks.load(folder, {"groups": ["P36"], "most": {"train": 4, "test": None}})
    counts = task.examples.group_by("group", "split").len().sort("split").rows()
    assert counts == [("P36", "dev", 3), ("P36", "test", 4), ("P36", "train", 4)]
    fewer = tasks.load(folder, {"groups": ["P36"], "most": {"train": 3}})
    assert set(fewer.of("P36", "train")["example"]) < set(task.of("P36", "train")["example"])
    with pytest.raises(tasks.ProbeTaskError, match="no relation P1; valid: P36, P37"):
        tasks.load(folder, {"groups": ["P1"]})


def test_model_settings_override_task_settings():
    config = {
        "facts": {"triggers": 5, "settings": {"iterations": 9, "batch": 2}},
        "models": {"m": {"facts": {"settings": {"batch": 3}}}},
    }
    assert prompt_settings.section(config, "auto_lama", "m") == {
        "triggers": 5,
        "settings": {"iterations": 9, "batch": 3},
    }
    assert prompt_settings.section(config, "auto_world", "n") == config["facts"]


#: k, A, B and iterations of the published commands
SIZES = {
    "auto_lama": (10, 1, 56, 1000), "auto_lama_trex": (10, 1, 56, 1000),
    "auto_world": (10, 1, 56, 1000), "auto_re": (10, 1, 32, 500),
    "auto_re_perturbed": (10, 1, 32, 500), "auto_sst2": (100, 30, 24, 180),
    "auto_sick": (10, 10, 120, 100), "auto_sick_3way": (10, 10, 120, 100),
    "auto_sick_2way": (10, 10, 120, 100),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["default", "paper", "released"])
def test_every_task_is_searched_with_task_specific_sizes(tmp_path, mode):
    loaded, config = tiny("bert"), asdict(Settings())
    for benchmark, sizes in SIZES.items():
        if benchmark.startswith(("auto_sst2", "auto_sick")):
            folder = prompt_folders.classes(tmp_path / benchmark)
        else:
            folder = prompt_folders.facts(tmp_path / benchmark, benchmark.startswith("auto_re"))
        own = prompt_settings.section(config["autoprompt"], benchmark, "m")
        made = search.settings_of(loaded, tasks.load(folder, {}), own, mode)
        found = (made.candidates, made.accumulate, made.batch, made.iterations)
        assert found == sizes, benchmark
    config["autoprompt"]["models"] = {"m": {"sick": {"settings": {"candidates": 50}}}}
    chosen = [
        prompt_settings.section(config["autoprompt"], name, "m")["settings"]
        for name in ("auto_sst2", "auto_sick_3way")
    ]
    assert chosen == [{}, {"candidates": 50}]


def test_a_benchmark_whose_name_is_of_another_task_is_refused(tmp_path):
    task = tasks.load(prompt_folders.classes(tmp_path / "auto_world"), {})
    with pytest.raises(tasks.ProbeTaskError, match="auto_world: asks for classification, but"):
        search.settings_of(tiny("bert"), task, prompt_folders.settings(), "default")


@pytest.mark.parametrize(
    ("mode", "selection", "perturbed"),
    [("default", "within", "fact"), ("paper", "full", "fact"), ("released", "full", "released")],
)
def test_the_mode_sets_values_missing_from_the_config(mode, selection, perturbed):
    config = asdict(Settings())
    own = {**config["autoprompt"], "mode": mode}
    made = prompt_settings.sweep(own, "low_data", "auto_sst2", "m")
    assert made["selection"] == selection
    assert made["settings"]["batch"] == 24
    given = config["prompt_tasks"]["sentences"]["perturbed"]
    assert prompt_settings.point("perturbed", given, mode) == perturbed
    # config values take precedence
    own["low_data"] = {**own["low_data"], "selection": "within"}
    assert prompt_settings.sweep(own, "low_data", "auto_sst2", "m")["selection"] == "within"
    assert "selection" not in prompt_settings.sweep(own, "grid", "auto_sst2", "m")


def test_invalid_rows_of_experiments_are_reported():
    row = {"_line": "3", "paper": "autoprompt", "method": "predict", "prompt": "searched"}
    assert prompt_settings.problems([row]) == []
    (wrong,) = prompt_settings.problems([{**row, "prompt": "templates"}])
    assert wrong.startswith("line 3: prompt 'templates' with method 'predict'; valid: searched")
    (wrong,) = prompt_settings.problems([{**row, "paper": "bear"}])
    assert "go with paper autoprompt" in wrong
    assert prompt_settings.problems([{**row, "paper": "bear", "method": "sentence"}]) == []


def test_every_valid_prompt_name_has_an_answerer():
    assert all(callable(getattr(predict.Answerer, name)) for name in prompt_settings.WRITTEN)
    assert set(trained.TRAINED) == set(prompt_settings.TRAINED)
    assert set(search.RANDOM) | set(search.LENGTHS) | {
        search.BALANCED,
        search.WORDS,
        "searched",
    } == set(prompt_settings.SEARCHED)
