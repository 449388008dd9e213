"""The library for a new user: numbers against a literal loop, examples, bad input."""

import copy
import doctest
import inspect
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

import kgprobe
from kgprobe import library, questions, schema
from kgprobe.cli import app
from kgprobe.metrics.bootstrap import bootstrap
from kgprobe.metrics.tests import exchange_p
from kgprobe.probes.models.load import ModelError
from kgprobe.questions import BenchmarkError
from kgprobe.tables import results
from kgprobe.templates import fill
from tests.unit.literal_scores import row_sum
from tests.unit.tiny_models import save, tiny

CAPITAL = {"P36": "The capital of [X] is [Y].", "P30": "[X] lies in [Y]."}
OTHER = {"P36": "[Y] is the capital of [X].", "P30": "[Y] is where [X] lies."}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Save a causal model as a folder."""
    return save(tiny("llama", double=False), tmp_path_factory.mktemp("models") / "tiny-llama")


@pytest.fixture(scope="module")
def loaded(folder):
    return kgprobe.load(folder)


@pytest.fixture(scope="module")
def second(loaded):
    """Return the same model under another name."""
    return kgprobe.load(loaded.model, loaded.tokenizer, name="second")


@pytest.fixture(scope="module")
def probed(loaded):
    return kgprobe.probe(loaded, "world_lite", CAPITAL)


def by_hand(loaded, benchmark, templates) -> dict[str, float]:
    """Compute hits with one sentence per pass; a hit if the highest sum is a correct option."""
    result = {}
    for item in benchmark.items.iter_rows(named=True):
        if item["relation"] not in templates:
            continue
        options = benchmark.candidates.filter(set=item["candidates"]).sort("index")["label"]
        sums = []
        for label in options:
            text = fill(templates[item["relation"]], item["subject"], label).text
            sums.append(row_sum(loaded.model, loaded.tokenizer(text)["input_ids"]))
        result[item["item"]] = float(int(np.argmax(sums)) in item["answers"])
    assert len(result) > 20
    return result


def test_accuracy_equals_a_literal_loop(loaded, probed):
    expected = by_hand(loaded, kgprobe.benchmark("world_lite"), CAPITAL)
    assert dict(probed.answers.select("item", "hit").rows()) == expected
    table = probed.table()
    assert table["relation"].to_list() == ["all", "P30", "P36"]
    assert table.row(0, named=True)["accuracy"] == pytest.approx(
        100 * np.mean(list(expected.values()))
    )
    assert table.row(0, named=True)["n"] == len(expected)
    assert (table["low"] <= table["accuracy"]).all()
    assert (table["accuracy"] <= table["high"]).all()
    chance = [
        1 / kgprobe.benchmark("world_lite").candidates.filter(set=f"world_lite/{r}").height
        for r in ("P30", "P36")
    ]
    assert table["chance"][1:].to_list() == pytest.approx([100 * c for c in chance])


def test_differences_are_paired_with_interval_and_p(loaded, second, probed):
    two = kgprobe.probe(second, "world_lite", OTHER)
    hits = [by_hand(loaded, two.benchmark, texts) for texts in (CAPITAL, OTHER)]
    names = sorted(hits[0])
    slots = np.array([hits[0][name] - hits[1][name] for name in names])
    assert slots.any(), "the templates must differ for the test to say something"
    (row,) = probed.compare(two).iter_rows(named=True)
    assert (row["model"], row["instead"]) == ("tiny-llama", "second")
    assert row["difference"] == pytest.approx(100 * slots.mean())
    assert row["n"] == len(slots)
    assert row["p"] == pytest.approx(exchange_p(slots))
    boot = bootstrap(slots, [name.split("/")[0] for name in names])
    assert (row["low"], row["high"]) == pytest.approx(boot.interval().times(100)[:2])


def test_stored_scores_belong_to_their_model_and_bos_policy(loaded, tmp_path):
    capital = {"P36": CAPITAL["P36"]}

    def sums(model, folder=None):
        return kgprobe.probe(model, "world_lite", capital, folder=folder).scores["sum"].to_list()

    def given(bos):
        return kgprobe.load(loaded.model, loaded.tokenizer, bos=bos, name="same")

    torch.manual_seed(1)
    other = type(loaded.model)(loaded.model.config).eval()
    others = [given("forced"), given("none"), given("default")]
    others.append(kgprobe.load(other, loaded.tokenizer, name="same"))
    alone = [sums(model) for model in others]
    assert alone[0] not in alone[1::2], "the models and policies must differ"
    assert [sums(model, tmp_path) for model in others] == alone


def test_stored_scores_of_a_folder_belong_to_their_bos_policy(folder, tmp_path):
    capital = {"P36": CAPITAL["P36"]}
    asked = [kgprobe.load(folder, bos=bos) for bos in ("forced", "default")]
    plain = [kgprobe.probe(one, "world_lite", capital).scores for one in asked]
    assert not plain[0].equals(plain[1]), "the policies must differ for the test to say something"
    for one, scores in zip(asked, plain, strict=True):
        stored = kgprobe.probe(one, "world_lite", capital, folder=tmp_path)
        assert stored.scores.equals(scores)
        assert stored.record["bos"] == one.spec.bos


def test_differences_need_the_same_questions(second, probed):
    with pytest.raises(ValueError, match="two probes are the same"):
        probed.compare(probed)
    made = kgprobe.benchmark("world_lite")
    last = pl.when(pl.col("index") == pl.col("index").max().over("set"))
    labels = last.then(pl.lit("Atlantis")).otherwise("label")
    first = pl.lit([0], dtype=pl.List(pl.Int32))
    for other, prompt, message in (
        (made, {"P36": CAPITAL["P36"]}, "other items or templates"),
        (replace(made, candidates=made.candidates.with_columns(label=labels)), CAPITAL,
         r"item P\d+/\w+ has \d+ options .*differ in 'Atlantis'"),
        (replace(made, items=made.items.with_columns(answers=first)), CAPITAL,
         r"right answer of item .* in one probe and .* in the other"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            probed.compare(kgprobe.probe(second, other, prompt))


def test_the_same_right_answers_in_another_order_can_be_compared():
    made = kgprobe.benchmark("world_lite").sampled(5)
    one, other, fewer = (
        replace(made, items=made.items.with_columns(answers=pl.lit(golds, pl.List(pl.Int32))))
        for golds in ([0, 1], [1, 0], [1])
    )
    questions.check_options(one, other)
    with pytest.raises(ValueError, match="only probes of the same right answers"):
        questions.check_options(one, fewer)
    # the object of an attribute's example is its first right answer
    with pytest.raises(ValueError, match="only probes of the same right answers"):
        questions.check_options(one, other, is_own=True)


def test_results_convert_to_rows_and_print(probed):
    schema.check(probed.frame, schema.RESULTS)
    schema.check(probed.scores, schema.SCORES)
    assert repr(probed).startswith("Results(tiny-llama on world_lite, given: accuracy ")
    assert "<table" in probed._repr_html_()
    named = replace(probed, probe=replace(probed.probe, model="a<b"))
    assert named._repr_html_().startswith("<p>a&lt;b on world_lite, given</p>")
    chart = probed.plot().to_dict()
    assert chart["config"]["font"]
    (rows,) = chart["datasets"].values()
    assert {row["probe"] for row in rows} == {"chance", "tiny-llama"}


def test_training_rows_are_not_probed(loaded, tmp_path):
    """They are also not part of a sample."""
    whole = kgprobe.benchmark("world_lite").with_prompt(CAPITAL)
    roles = pl.Series("role", ["train", "dev", "test", "fact"] * (whole.items.height // 4 + 1))
    items = whole.items.with_columns(roles.head(whole.items.height))
    asked = items.filter(pl.col("role").is_in(["test", "fact"]))["item"].to_list()
    replace(whole, items=items).write(tmp_path / "set")
    benchmark = kgprobe.benchmark(tmp_path / "set")
    results = kgprobe.probe(loaded, benchmark)
    assert len(asked) == 16
    assert set(benchmark.sampled(16).items["item"]) == set(asked)
    assert sorted(results.answers["item"]) == sorted(asked)
    assert results.table()["n"][0] == len(asked)
    trained = items.with_columns(role=pl.lit("train"))
    replace(whole, items=trained).write(tmp_path / "none")
    with pytest.raises(BenchmarkError, match="all 34 items are for training"):
        kgprobe.benchmark(tmp_path / "none")


def test_training_rows_in_memory_are_not_probed(loaded):
    """A folder with the same rows leaves them out, too."""
    whole = kgprobe.benchmark("world_lite").with_prompt(CAPITAL)
    role = pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("train")).otherwise("role")
    items = whole.items.with_columns(role=role)
    results = kgprobe.probe(loaded, replace(whole, items=items))
    assert sorted(results.answers["item"]) == sorted(items["item"][3:])
    with pytest.raises(BenchmarkError, match="world_lite: items: all 34 items are for training"):
        kgprobe.probe(loaded, replace(whole, items=items.with_columns(role=pl.lit("train"))))


def test_unknown_role_raises(tmp_path):
    """A misspelled role must not be probed as a fact."""
    whole = kgprobe.benchmark("world_lite").sampled(4)
    items = whole.items.with_columns(role=pl.Series(["fact", "fcat", "two_hop", "train"]))
    replace(whole, items=items).write(tmp_path / "set")
    with pytest.raises(BenchmarkError) as error:
        kgprobe.benchmark(tmp_path / "set")
    prefix = f"{tmp_path}/set/items.parquet: item {items['item'][1]}"
    assert line(error).startswith(f"{prefix}: its role is 'fcat'; valid: fact, test, train, dev, ")
    items = items.with_columns(pl.col("role").replace("fcat", "test"))
    replace(whole, items=items).write(tmp_path / "set")
    assert kgprobe.benchmark(tmp_path / "set").items.height == 3


def test_an_empty_relation_is_refused_before_anything_is_asked():
    """It was refused when all was scored, as a key of RESULTS that is not unique."""
    few = kgprobe.benchmark("world_lite").with_prompt(CAPITAL)
    items = few.items.with_columns(relation=pl.lit(""))
    prompts = few.prompts.head(1).with_columns(relation=pl.lit(""))
    with pytest.raises(BenchmarkError, match=r"items: item .*: its relation is ''; expected"):
        kgprobe.probe(None, replace(few, items=items, prompts=prompts))


def test_templates_have_equal_weight_and_can_be_selected(loaded):
    benchmark = kgprobe.benchmark("world_lite")._of({"P30"})
    texts = benchmark.prompts.sort("index")["text"].to_list()
    whole = kgprobe.probe(loaded, benchmark)
    single = [kgprobe.probe(loaded, benchmark, prompt=index) for index in range(len(texts))]
    values = [one.table()["accuracy"][0] for one in single]
    assert whole.table()["accuracy"][0] == pytest.approx(np.mean(values))
    for index, one in enumerate(single):
        assert one.benchmark.prompts["text"].to_list() == [texts[index]]


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_kind_is_read_from_the_configuration(tmp_path, name):
    save(tiny(name, double=False), tmp_path / name)
    result = kgprobe.load(tmp_path / name)
    assert result.spec.kind == {"bert": "masked", "t5": "seq2seq"}[name]
    assert result.spec.bos == "-"


def test_ask_returns_the_softmax_over_sentences(loaded):
    options = ["Paris", "Rome", "Niger"]
    answers = kgprobe.ask(loaded, "The capital of [X] is [Y].", X="France", options=options)
    sums = {}
    for label in options:
        ids = loaded.tokenizer(f"The capital of France is {label}.")["input_ids"]
        # after a BOS, which is the default policy
        sums[label] = row_sum(loaded.model, [loaded.tokenizer.bos_token_id, *ids])
    assert answers["option"].to_list() == sorted(options, key=lambda o: -sums[o])
    total = sum(np.exp(list(sums.values())))
    for option, score, probability in answers.rows():
        assert score == pytest.approx(sums[option], abs=1e-3)
        assert probability == pytest.approx(np.exp(sums[option]) / total, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "template", "message"),
    [
        ("bert", "[X] is [Y].", "tiny-bert is a masked model, which fills a given number of masks"),
        ("llama", "[Y] is [X].", "tiny-llama is a causal model, which answers only at the end"),
    ],
)
def test_ask_without_options_is_refused_before_the_model_is_loaded(
    tmp_path, monkeypatch, kind, template, message
):
    folder = save(tiny(kind, double=False), tmp_path / f"tiny-{kind}")
    with monkeypatch.context() as patch:
        patch.setattr(library, "load_model", None)
        with pytest.raises(ValueError, match=message):
            kgprobe.ask(str(folder), template, X="France")
        done = CliRunner().invoke(app, ["ask", str(folder), template, "-x", "France"])
        assert message in done.stderr
    with pytest.raises(ValueError, match=message):
        kgprobe.ask(kgprobe.load(folder), template, X="France")


def test_a_method_of_another_kind_is_refused_before_the_model_is_loaded(folder, monkeypatch):
    monkeypatch.setattr(library, "load_model", None)
    message = "method 'sentence-pll' with a causal model; valid: sentence, sentence-sum (others"
    with pytest.raises(BenchmarkError, match=re.escape(message)):
        kgprobe.probe(str(folder), "world_lite", method="sentence-pll")
    words = ["probe", str(folder), "--on", "world_lite", "--method", "sentence-pll"]
    assert message in CliRunner().invoke(app, words).stderr


def public() -> dict[str, str]:
    """Map every public name (functions, classes and methods) to its docstring."""
    result = {}
    for name in (*kgprobe._LIBRARY, "BenchmarkError"):
        held = getattr(library if hasattr(library, name) else questions, name)
        result[name] = held.__doc__ or ""
        members = vars(held) if inspect.isclass(held) else {}
        own = {n: m for n, m in members.items() if not n.startswith("_")}
        documented = {n: m for n, m in own.items() if callable(m) or hasattr(m, "__get__")}
        result |= {f"{name}.{n}": inspect.getdoc(m) or "" for n, m in documented.items()}
    return result


@pytest.mark.parametrize("name", sorted(public()))
def test_public_names_have_running_examples(name, folder):
    names = vars(library) | vars(questions) | {"folder": str(folder)}
    test = doctest.DocTestParser().get_doctest(public()[name], names, name, None, 0)
    assert test.examples, f"{name}: a docstring without an example (>>>)"
    output: list[str] = []
    assert doctest.DocTestRunner().run(test, out=output.append).failed == 0, "".join(output)


def test_package_import_is_quick():
    code = (
        "import sys, kgprobe; assert 'torch' not in sys.modules and 'polars' not in sys.modules; "
        "kgprobe.probe; assert 'torch' in sys.modules; "
        "assert not {'snakemake', 'ibis', 'SPARQLWrapper', 'pyoxigraph'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match=r"no attribute 'prob'.*probe"):
        kgprobe.prob  # noqa: B018


# -- bad input: a one-line error with the valid values --------------------------------------------


def line(error: pytest.ExceptionInfo) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("which", "given", "told"),
    [("loaded", {"bos": "none", "name": "b"}, "a loaded model takes no bos and no name"),
     ("model", {"dtype": "float64"}, "a model in memory takes no dtype"),
     ("folder", {"tokenizer": "mine"}, "which has its own, takes no tokenizer"),
     ("folder", {"revision": "main"}, "takes no revision"),
     ("folder", {"dtype": "bf16"}, "dtype 'bf16'; valid: float32, bfloat16"),
     ("row", {"revision": "main"}, "whose row names one, takes no revision")],
)  # fmt: skip
def test_unused_arguments_raise(folder, loaded, which, given, told):
    model = {"loaded": loaded, "model": loaded.model, "folder": folder, "row": "control-masked"}
    with pytest.raises(ModelError) as error:
        kgprobe.load(model[which], **given)
    assert told in line(error)


def test_row_gets_the_requested_dtype():
    assert kgprobe.load("control-masked", dtype="bfloat16").spec.dtype == "bfloat16"
    assert kgprobe.load("control-masked").spec.dtype == "float32"


def test_near_miss_relations_are_suggested(folder):
    with pytest.raises(BenchmarkError) as error:
        kgprobe.probe(folder, "world_lite", {"P63": "[X] has [Y]."})
    assert "world_lite asks of no 'P63' (did you mean 'P" in line(error)


def test_model_in_memory_needs_its_tokenizer(loaded):
    with pytest.raises(ModelError, match="needs its fast tokenizer"):
        kgprobe.load(loaded.model)
    assert kgprobe.load(tiny("llama").model, loaded.tokenizer).spec.dtype == "float64"
    with pytest.raises(ModelError, match="a dict is not a model"):
        kgprobe.load({})


def test_model_in_memory_is_checked_like_a_loaded_one(loaded):
    """Without the check a wrong kind is accepted, and fails in the middle of a pass."""
    model, tokenizer = loaded.model, loaded.tokenizer
    for kind in ("seq2seq", "api", "cuasal"):
        with pytest.raises(ModelError, match=f"kind '{kind}'; valid: masked, causal"):
            kgprobe.load(model, tokenizer, kind=kind)
    with pytest.raises(ModelError, match="does not read later tokens: this is not a masked model"):
        kgprobe.load(model, tokenizer, kind="masked")
    with pytest.raises(ModelError, match="kind 'causal'; valid: seq2seq"):
        kgprobe.load(tiny("t5").model, tokenizer, kind="causal")
    bare = copy.deepcopy(tokenizer)
    bare.mask_token = None
    with pytest.raises(ModelError, match="without a mask token"):
        kgprobe.load(tiny("bert").model, bare)
    bare.add_tokens([f"new{n}" for n in range(600)])
    with pytest.raises(ModelError, match="ids are outside: 'new"):
        kgprobe.load(model, bare)


def test_relations_of_a_sample_keep_their_cardinality(loaded, tmp_path):
    place = Path(questions.folder_of("world_lite"))
    shutil.copytree(place, tmp_path / "without")
    (tmp_path / "without/relations.parquet").unlink()
    one_to_one = pl.read_parquet(place / "relations.parquet").filter(cardinality="1:1")["relation"]

    def kinds(asked):
        frame = kgprobe.probe(loaded, asked, 1).frame
        rows = frame.filter(results.plain(), metric="accuracy", model="random", group="")
        return dict(rows.filter(pl.col("slice").is_in(["1:1", "1:N"])).select("slice", "n").rows())

    for whole in (kgprobe.benchmark("world_lite"), kgprobe.benchmark(tmp_path / "without")):
        sample = whole.sampled(50)
        count = sample.items["relation"].is_in(one_to_one.implode()).sum()
        sample.write(tmp_path / "written")
        for asked in (sample, kgprobe.benchmark(tmp_path / "written")):
            assert kinds(asked) == {"1:1": count, "1:N": 50 - count}
    (tmp_path / "written/relations.parquet").write_text("no parquet")
    with pytest.raises(ValueError, match=r"relations\.parquet: not a readable parquet file"):
        kgprobe.benchmark(tmp_path / "written")


def test_a_template_can_be_given_to_a_relation_without_any(loaded):
    whole = kgprobe.benchmark("world_lite")
    bare = replace(whole, prompts=whole.prompts.filter(pl.col("relation") != "P36"))
    asked, expected = (kgprobe.probe(loaded, of, CAPITAL) for of in (bare, whole))
    assert asked.scores.equals(expected.scores)
    assert asked.benchmark.prompts.equals(expected.benchmark.prompts)
    schema.check(asked.benchmark.prompts, schema.PROMPTS)


def test_a_question_without_its_template_is_refused_before_the_model_is_loaded(tmp_path):
    whole = kgprobe.benchmark("world_lite")._of({"P30", "P36"})
    second = (pl.col("relation") == "P30") & (pl.col("index") == 1)
    for lacking, prompt in ((second, 1), (pl.col("relation") == "P30", "templates")):
        asked = replace(whole, prompts=whole.prompts.filter(~lacking))
        with pytest.raises(BenchmarkError, match="relation P30: no template for its 14 items"):
            kgprobe.probe(tmp_path / "no-model", asked, prompt)


def test_a_question_without_a_wrong_option_is_refused_before_the_model_is_loaded(tmp_path):
    whole = kgprobe.benchmark("world_lite")._of({"P36"})
    first = whole.items["item"].min()
    every = pl.lit(pl.Series([list(range(whole.candidates.height))], dtype=pl.List(pl.Int32)))
    answers = pl.when(pl.col("item") == first).then(every).otherwise("answers")
    asked = replace(whole, items=whole.items.with_columns(answers=answers))
    with pytest.raises(BenchmarkError, match=f"item {first}: all of its options are right"):
        kgprobe.probe(tmp_path / "no-model", asked)


def test_frequency_of_an_answer_is_not_counted_in_a_sample(loaded, tmp_path):
    whole = kgprobe.benchmark("world_lite")

    def bins(asked):
        rows = kgprobe.probe(loaded, asked, 1).frame.filter(model="random")
        return {name for name in rows["slice"] if name.startswith("frequency")}

    for limit in (50, whole.items.height):
        sample = whole.sampled(limit)
        sample.write(tmp_path)
        for asked in (sample, kgprobe.benchmark(tmp_path)):
            assert bool(bins(asked)) == (limit > 50)
    whole.write(tmp_path)
    assert kgprobe.benchmark(tmp_path).golds is None


def test_a_relative_path_without_a_name_is_named_after_its_folder(tmp_path, monkeypatch):
    shutil.copytree(questions.folder_of("world_lite"), tmp_path / "mine")
    (tmp_path / "mine/sub").mkdir()
    for place, path in (("mine", "."), ("mine/sub", ".."), ("mine/sub", "../.")):
        monkeypatch.chdir(tmp_path / place)
        assert kgprobe.benchmark(path).name == "mine"
        assert questions.folder_of(path).name == "mine"


@pytest.mark.parametrize("limit", [7, 50])
def test_constant_guess_of_a_sample_uses_the_whole_set(loaded, limit):
    """Chosen on the sample itself, it would be right for most of a few questions."""
    whole = kgprobe.benchmark("world_lite")
    asked = whole.sampled(limit)
    label = {(s, n): i for s, n, i in whole.candidates.select("set", "index", "id").rows()}
    golds = [
        (relation, label[names, answers[0]])
        for relation, names, answers in whole.items.select(
            "relation", "candidates", "answers"
        ).rows()
    ]
    counted = Counter(golds)
    guess = {}
    for relation, gold in sorted(counted, key=lambda g: (-counted[g], g[1])):
        guess.setdefault(relation, gold)
    right = [
        guess[relation] == label[names, answers[0]]
        for relation, names, answers in asked.items.select(
            "relation", "candidates", "answers"
        ).rows()
    ]
    result = kgprobe.probe(loaded, asked, 1).frame
    (value,) = result.filter(
        results.plain(), metric="accuracy", model="majority", group="", slice=""
    )["value"]
    assert value == pytest.approx(100 * sum(right) / limit)
    assert value < 40


@pytest.mark.parametrize(
    ("table", "change", "told"),
    [
        ("items", lambda f: f.drop("meta"), "mine: items: no column meta; expected"),
        ("items", lambda f: f.to_dicts(), "mine: items: a list; expected a polars DataFrame"),
        ("items", lambda f: f.head(0), "items .*no rows"),
        ("items", lambda f: pl.concat([f, f.head(1)]), "items .*is not unique"),
        ("items", lambda f: f.with_columns(row=pl.lit("x")), "mine: items: a value has another"),
        ("items", lambda f: f.with_columns(subject=pl.lit(None, pl.String)), "'subject' is null"),
        ("items", lambda f: f.with_columns(answers=[99]), "option 99 .*is not in candidates$"),
        ("candidates", lambda f: f.with_columns(pl.col("index") + 1), "indices 1 to"),
        ("candidates", lambda f: f.filter(set="none"), "candidates .*no rows"),
        ("prompts", lambda f: f.with_columns(index=0), "prompts: relation P36 has index 0 twice"),
    ],
)
def test_questions_in_memory_are_checked_like_those_of_a_folder(
    folder, monkeypatch, table, change, told
):
    """Without the check, options from 1 on moved every right answer, and an item that stands twice
    was refused only after all sentences had been scored."""
    monkeypatch.setattr(library, "load_model", None)
    mine = replace(kgprobe.benchmark("world_lite")._of({"P36"}), name="mine")
    mine = replace(mine, **{table: change(getattr(mine, table))})
    with pytest.raises(ValueError, match=told):
        kgprobe.probe(folder, mine)


def test_questions_in_memory_may_have_wider_integers_and_more_columns(loaded, tmp_path):
    mine = kgprobe.benchmark("world_lite")._of({"P36"})
    wide = mine.items.with_columns(pl.col("row").cast(pl.Int64), mine=1)
    wide = wide.with_columns(pl.col("answers").cast(pl.List(pl.Int64)))
    one, other = (
        kgprobe.probe(
            loaded, replace(mine, items=items), {"P36": CAPITAL["P36"]}, folder=str(tmp_path / name)
        )
        for name, items in (("wide", wide), ("plain", mine.items))
    )
    assert one.answers["hit"].to_list() == other.answers["hit"].to_list()


def asking(template=CAPITAL["P36"], **more):
    return lambda model: kgprobe.ask(model, template, **{"X": "France", **more})


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda m: kgprobe.probe(m, pl.DataFrame()), "a DataFrame is not a benchmark"),
        (lambda m: kgprobe.probe(m, "world_lite", {"P36": 3}), "P36: 3 is not a template"),
        (
            lambda m: kgprobe.probe(m, "world_lite", {}),
            "world_lite: no prompt is given; expected a",
        ),
        (asking(3, options=["a", "b"]), "3 is not a template"),
        (asking(options=["Paris", "Paris"]), "two or more are needed, each once"),
        (asking(options="Paris"), r"options \['Paris'\]: two or more are needed"),
        (asking(options=pl.Series(["b"])), "two or more"),
        (asking(options=None), "options is None; exp"),
        (asking(options=["Paris", 2]), "2 is not a string; expected a subject"),
        (asking(X=None, options=["a", "b"]), "None is not a string; expected a subject"),
        *((asking(k=k), f"k is {k}; expected 1 to 100") for k in (-1, 0, 101, 2.5)),
    ],
)
def test_bad_questions_and_arguments_of_other_types_raise(folder, ask, told):
    with pytest.raises(BenchmarkError, match=told):
        ask(folder)


def test_a_question_needs_a_slot_for_the_answer_and_no_options(loaded):
    with pytest.raises(ValueError, match=r"expected one \[X\] and one \[Y\]"):
        kgprobe.ask(loaded, "The capital of [X].", X="France", options=["Paris", "Rome"])
    assert isinstance(kgprobe.ask(loaded, CAPITAL["P36"], X="France"), pl.DataFrame)
