"""Prompt forms: text around a template, scored tokens, allowed demonstrations."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from kgprobe import schema
from kgprobe.experiments import TableError, check_papers, with_raw
from kgprobe.probes.jobs import forms
from kgprobe.probes.jobs.forms import (
    Demonstration,
    Form,
    apply_form,
    build_questions,
    demonstrations,
    fill_items_of,
    shuffled,
    tables_in,
)
from kgprobe.probes.jobs.methods.fill import fill_frame
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.scoring.fill.rows import at_end, questions
from kgprobe.probes.scoring.sentence import score
from kgprobe.settings.probes import Fill
from kgprobe.tables import forms as tabled
from kgprobe.tables.answers import Probe, judge_scores
from kgprobe.tables.results import frame
from kgprobe.templates import FORMS, fill, question, stop
from tests.unit.literal_scores import row_sum
from tests.unit.study_frames import benchmark, write_benchmark
from tests.unit.study_frames import scores as scores_of
from tests.unit.tiny_models import tiny
from tests.unit.token_scores import scored_tokens

GOLDS = {
    "P1": (["Rome", "Paris", "Africa"], ["Rome", "Paris", "Africa"] * 3),
    "P2": (["a", "one"], ["a", "one", "a", "a"]),
}


def items_in_form(form, loaded, made, training=None, **more):
    frames = made["items"], made["candidates"], made["prompts"]
    return tables_in(loaded, *frames, Form(form, 0, 0, **more), training)


def test_questions_replace_the_answer_slot():
    assert question("[Y] is the capital of [X] .") == "What is the capital of [X]?"
    assert question("[X] plays [Y] music.") == "[X] plays what music?"
    assert stop("[X] was born in [Y] .") == " ."
    prefix, text = apply_form("[X] was born in [Y].", Form("question", 0, 0))
    result = fill(text, "dante", "Florence").behind(prefix)
    assert result.text == "Question: Dante was born in what?\nAnswer: Florence."
    assert result.text[slice(*result.subject[0])] == "Dante"
    assert result.text[slice(*result.answer[0])] == "Florence"


@pytest.mark.parametrize("model", ["gpt2", "bert", "t5"])
def test_prefix_is_context_and_not_scored(model):
    """Sum and count cover only the sentence's tokens, by a literal pass over the whole text."""
    # without a prefix token, the first token of a raw sentence is not scored
    loaded = tiny(model, bos="forced" if model == "gpt2" else "")
    item = score.Item("i", "P", "Italy", "set", "Rome is a country [Y].\n")
    template = {"P": [(0, "The capital of [X] is [Y].")]}
    options = {"set": ["Paris", "Burkina Faso"]}
    result, tokens = scored_tokens(loaded, [item], options, template)
    plain = score.score(loaded, [replace(item, prefix="")], options, template)
    for name in ("count", "answer_count"):
        assert result.columns[name].tolist() == plain.columns[name].tolist()
    for answer in range(2):
        own = tokens["sentence"] == answer
        scored = own & tokens["scored"]
        decoded = loaded.tokenizer.decode(tokens["id"][scored & (tokens["role"] == 2)])
        assert decoded.strip().lower() == options["set"][answer].lower()
        assert result.columns["sum"][answer] == pytest.approx(tokens["score"][scored].sum())
    if model != "gpt2":
        return
    front = [loaded.tokenizer.bos_token_id]
    prefix = [*front, *loaded.tokenizer(item.prefix, add_special_tokens=False)["input_ids"]]
    for position, label in enumerate(options["set"]):
        text = fill(template["P"][0][1], "Italy", label).behind(item.prefix).text
        own = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
        slow = row_sum(loaded.model, front + own) - row_sum(loaded.model, prefix)
        assert result.columns["sum"][position] == pytest.approx(slow, abs=1e-4)


def test_demonstrations_contain_neither_subject_nor_gold():
    def row(item, subject, answer, *more):
        return Demonstration(
            item, subject, answer, frozenset(n.casefold() for n in (answer, *more))
        )

    asked = row("1", "Spain", "France", "Portugal")
    pool = [
        asked, row("2", "Italy", "France"), row("3", "Andorra", "spain"),
        row("4", "SPAIN", "Morocco"), row("5", "Portugal", "Brazil"), row("6", "Chile", "Peru"),
        row("7", "Norway", "Sweden"),
    ]  # fmt: skip
    result = demonstrations(asked, pool, 9, 0)
    assert {one.item for one in result} == {"6", "7"}
    assert demonstrations(asked, pool[::-1], 9, 0) == result
    assert demonstrations(asked, pool, 1, 0) == result[:1]
    # a relation whose rows have no other answer may show it
    same = [asked, row("2", "Italy", "France"), row("8", "Malta", "Portugal")]
    assert {one.item for one in demonstrations(asked, same, 9, 0)} == {"2", "8"}
    # it has another answer, but only in a row that may not be shown
    assert demonstrations(asked, [*same, row("4", "Spain", "Morocco")], 9, 0) == []


def test_demonstrations_compare_letters_however_they_are_composed():
    asked = Demonstration("1", "Perú", "Málaga", frozenset(["málaga"]))
    pool = [
        Demonstration("2", "Peru\u0301", "Oslo", frozenset(["oslo"])),
        Demonstration("3", "Spain", "Ma\u0301laga", frozenset(["ma\u0301laga"])),
        Demonstration("4", "Norway", "Bergen", frozenset(["bergen"])),
    ]
    assert [one.item for one in demonstrations(asked, pool, 9, 0)] == ["4"]


def test_shuffled_demonstrations_swap_answers():
    def rows(answers):
        return [Demonstration(str(n), f"s{n}", a, frozenset([a])) for n, a in enumerate(answers)]

    for answers in ("abc", "aabb", "abcdab", "ab"):
        result = shuffled(rows(answers))
        assert sorted(one.answer for one in result) == sorted(answers)
        assert all(one.answer not in one.golds for one in result)
        assert [one.subject for one in result] == [f"s{n}" for n in range(len(answers))]
    assert [one.answer for one in shuffled(rows("aaa"))] == ["a"] * 3
    assert shuffled([]) == []


def test_demonstrations_prefer_training_rows_and_are_counted():
    bench, loaded = benchmark(GOLDS), tiny("gpt2")
    (items, _, templates), record = items_in_form("few", loaded, bench, demonstrations=3)
    assert record["items"] == 13 == len(items)
    assert record["demonstrations"] == 3
    # items of P2: three have only one row with another answer, one has three
    assert record["fewer_examples"] == 3
    labels = dict(bench["candidates"].select(pl.format("{} {}", "set", "index"), "label").rows())
    golds = {i: labels[f"{r} {a[0]}"] for i, r, a in bench["items"].select(
        "item", "relation", "answers").rows()}  # fmt: skip
    for item in items:
        lines = item.prefix.splitlines()
        assert 1 <= len(lines) <= 3
        assert item.prefix.endswith("\n")
        for line in lines:
            subject, _, answer = line.removesuffix(".").partition(" is ")
            assert subject.lower() != item.subject
            assert answer != golds[item.item]
        assert templates[item.relation] == [(0, "[X] is [Y].")]
    role = pl.when(pl.col("row") < 2).then(pl.lit("train")).otherwise(pl.lit("test"))
    bench["items"] = bench["items"].with_columns(role=role)
    (own, *_), record = items_in_form("few", loaded, bench, demonstrations=3)
    assert record["items"] == 13 - 4
    shown = {line.split(" is ")[0] for item in own for line in item.prefix.splitlines()}
    assert shown == {"S0", "S1"}


def test_items_longer_than_the_window_are_counted_and_reported(caplog):
    bench, loaded = benchmark(GOLDS), tiny("gpt2")
    long = pl.when(pl.col("row") == 0).then(pl.lit("very long " * 200)).otherwise("subject")
    bench["items"] = bench["items"].with_columns(subject=long)
    with caplog.at_level("WARNING"):
        (items, *_), record = items_in_form("question", loaded, bench)
    assert record == {"items": 13, "too_long": 2}
    assert len(items) == 11
    assert f"2 of 13 items are longer than its {loaded.limit} tokens" in caplog.text
    bench["items"] = bench["items"].filter(row=0)
    with pytest.raises(ValueError, match=r"none of 2 items can be asked: too long 2$"):
        items_in_form("question", loaded, bench)


def test_relations_without_a_demonstration_are_reported(caplog):
    bench, loaded = benchmark({**GOLDS, "P3": (["a", "one"], ["a"])}), tiny("gpt2")
    with caplog.at_level("WARNING"):
        (items, *_), told = items_in_form("few", loaded, bench, demonstrations=2)
    assert told["without_example"] == 1
    assert "relation P3 has no valid demonstration for 1 of its items" in caplog.text
    assert {item.relation for item in items} == {"P1", "P2"}


def test_chat_template_wraps_the_question_with_one_bos():
    loaded = tiny("gpt2", bos="forced")
    with pytest.raises(ValueError, match="has no chat template: take it out"):
        forms.chat(loaded)
    loaded.tokenizer.chat_template = (
        "<s>{% for m in messages %}[INST] {{ m['content'] }} {name}[/INST]{% endfor %}A: "
    )
    assert forms.chat(loaded) == ("[INST] ", " {name}[/INST]A: ")
    (items, _, templates), _ = items_in_form("chat", loaded, benchmark(GOLDS))
    text = fill(templates["P1"][0][1], items[0].subject, "Rome").behind(items[0].prefix).text
    assert text == "[INST] S0 is what? {name}[/INST]A: Rome."
    assert forms.chat(tiny_chat("none"))[0] == "<s>[INST] "


def tiny_chat(bos):
    loaded = tiny("gpt2", bos=bos)
    loaded.tokenizer.chat_template = "<s>[INST] {{ messages[0]['content'] }}[/INST]"
    return loaded


def scored(made, folder: Path) -> tuple[dict[Probe, Path], dict[Probe, Path]]:
    """Return SCORES of a tiny model under raw and every form but chat, as files with records."""
    loaded, result = tiny("gpt2"), {}
    for name in ("templates", "question", "few", "few_shuffled"):
        form = None
        if name != "templates":
            own = Form(name, 9, 0, 2 * name.startswith("few"))

            def form(loaded, *frames, own=own):
                return tables_in(loaded, *frames, own)

        scores, record = score_frame(
            loaded.spec, made["items"], made["candidates"], made["prompts"], "sentence",
            load=lambda _: loaded, form=form,
        )  # fmt: skip
        path = folder / f"{name}.parquet"
        schema.write(scores, schema.SCORES, path, {"model": record})
        result[Probe("b", name, "sentence", "gpt2", "causal", "none")] = path
    raw = {probe: path for probe, path in result.items() if probe.prompt == "templates"}
    return {p: path for p, path in result.items() if p not in raw}, raw


def test_forms_are_compared_with_paired_differences(tmp_path):
    bench = benchmark(GOLDS)
    write_benchmark(bench, tmp_path)
    formed, raw = scored(bench, tmp_path)
    estimated = list(
        tabled.estimates(formed, judged(bench, formed | raw), {"b": tmp_path}, 0, True)
    )
    results = frame("attributes", estimated)
    gold = dict(bench["items"].select("item", pl.col("answers").list.first()).rows())
    best = {}
    for probe, path in {**formed, **raw}.items():
        for (item,), own in pl.read_parquet(path).filter(template=0).group_by("item"):
            best[probe.prompt, item] = own.sort("sum")["candidate"][-1] == gold[item]
    sampled = {item for name, item in best if name == "question"}
    assert len(sampled) == 9
    for name in ("question", "few", "few_shuffled", "templates"):
        rows = results.filter(prompt=name, group="", metric="accuracy")
        hits = [hit for (form, item), hit in best.items() if form == name and item in sampled]
        assert rows["value"].item() == pytest.approx(100 * np.mean(hits))
        assert rows["n"].item() == len(hits) == 9
    slots = [best["question", item] - best["templates", item] for item in sampled]
    rows = results.filter(prompt="question", group="", metric="difference")
    assert rows["value"].item() == pytest.approx(100 * np.mean(slots))
    assert set(results.filter(metric="accuracy")["group"]) == {"", "P1", "P2"}
    assert results.filter(metric="drawn")["value"].to_list() == [9.0] * 3
    assert len(tabled.VIEWS[0].of(results).rows) == 4 * 3
    with pytest.raises(ValueError, match="forms need a row of prompt templates"):
        list(tabled.estimates(formed, judged(bench, formed), {"b": tmp_path}, 0))


def judged(bench, paths):
    """Return the judged answers of every probe, from its file."""
    read = {probe: pl.read_parquet(path) for probe, path in paths.items()}
    return {probe: judge_scores(scores, bench["items"], "sum") for probe, scores in read.items()}


def compared(folder, bench, asked):
    """Return RESULTS of two forms from {prompt: scores}, the raw one first."""
    write_benchmark(bench, folder)
    paths = [folder / f"{name}.parquet" for name in asked]
    for path, scores in zip(paths, asked.values(), strict=True):
        schema.write(scores_of(scores), schema.SCORES, path, {})
    raw, formed = (
        {Probe("b", path.stem, "sentence", "m", "causal", "none"): path} for path in paths
    )
    answers = judged(bench, formed | raw)
    return frame("attributes", tabled.estimates(formed, answers, {"b": folder}, 0))


def test_items_of_one_subject_are_drawn_together_in_forms(tmp_path):
    """Three subjects, each asked four times with the same outcome: n and interval are of three."""
    bench = benchmark({"P1": (["Rome", "Paris"], ["Rome"] * 12)})
    subjects = pl.Series("subject_id", [f"Q{i // 4}" for i in range(12)])
    bench["items"] = bench["items"].sort("row").with_columns(subjects)
    raw = {(f"P1/Qs{i}", 0): [-1.0, -2.0] if i < 8 else [-2.0, -1.0] for i in range(12)}
    asked = {"templates": raw, "question": {key: [-2.0, -1.0] for key in raw}}
    table = compared(tmp_path, bench, asked)
    assert set(table["n"]) == {3}
    plain = table.filter(prompt="templates").row(0, named=True)
    assert (plain["value"], plain["interval"]) == (pytest.approx(200 / 3), "cluster bootstrap")
    gap = table.filter(metric="difference").row(0, named=True)
    assert (gap["value"], gap["interval"]) == (pytest.approx(-200 / 3), "paired cluster bootstrap")


def test_forms_add_a_raw_row_and_need_a_supporting_method():
    row = {"paper": "attributes", "benchmark": "symmetry", "method": "sentence", "model": "m"}
    rows = [{**row, "prompt": name, "_line": "2"} for name in ("templates", *FORMS)]
    check_papers(rows, "table", {"symmetry": "attributes"})
    assert with_raw(rows) == rows
    assert with_raw(rows[2:]) == [*rows[2:], rows[0]]
    assert with_raw([]) == []
    written = [{**row, "prompt": "chat", "method": "fill", "_line": "3"}]
    check_papers(written, "table", {"symmetry": "attributes"})
    assert [one["prompt"] for one in with_raw(written)] == ["chat", "templates"]
    asked = {**row, "paper": "ontoprobe", "benchmark": "onto_world", "method": "choice"}
    with pytest.raises(TableError, match="prompt 'chat' with method 'choice'; valid: templates"):
        check_papers([{**asked, "prompt": "chat", "_line": "3"}], "s", {"onto_world": "ontoprobe"})


#: text before the answer of "[X] is [Y]." for S0 (gold Rome; S1: Paris), in each form
BEFORE = {
    "question": "Question: S0 is what?\nAnswer:",
    "chat": "[INST] S0 is what?[/INST]\n",
    "few": "S1 is Paris.\nS0 is",
    "few_shuffled": "S1 is Paris.\nS0 is",
}


@pytest.mark.parametrize("name", FORMS)
def test_generation_in_a_form_equals_a_literal_pass(name):
    """Top token and gold, by a literal pass over the literal text of the form."""
    bench, loaded = benchmark({"P1": (["Rome", "Paris"], ["Rome", "Paris"])}), tiny("gpt2")
    loaded.tokenizer.chat_template = "[INST] {{ messages[0]['content'] }}[/INST]{{ '\n' }}"
    form = Form(name, 0, 0, name.startswith("few"))
    frames = bench["items"], bench["candidates"], bench["prompts"]
    settings = Fill(k=3, most_tokens=2)
    fills, golds, record = fill_frame(loaded, *frames, settings, form=(form, None))
    assert record["form"]["items"] == 2
    text = BEFORE[name]
    ids = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
    space = "" if name == "chat" else " "

    def after(more):
        with torch.no_grad():
            logits = loaded.model(torch.tensor([[*ids, *more]])).logits[0]
        return logits.double().log_softmax(-1)

    best = after([])[-1].topk(3)
    own = fills.filter(item="P1/Qs0", position=0).sort("rank")
    assert own["template"].to_list() == [0, 0, 0]
    assert own["token"].to_list() == best.indices.tolist()
    assert own["logprob"].to_list() == pytest.approx(best.values.tolist(), abs=1e-4)
    whole = loaded.tokenizer(f"{text}{space}Rome", add_special_tokens=False)["input_ids"]
    gold = whole[len(ids) :]
    rows = after(gold)[len(ids) - 1 : -1]
    slow = [float(row[token]) for row, token in zip(rows, gold, strict=True)]
    read = golds.filter(item="P1/Qs0").sort("position")
    assert read["token"].to_list() == gold
    assert read["logprob"].to_list() == pytest.approx(slow, abs=1e-4)


def test_inner_slots_become_questions_and_braces_are_kept():
    bench, loaded = benchmark({"P1": (["Rome", "Paris"], ["Rome", "Paris"])}), tiny("gpt2")
    inside = bench["prompts"].filter(index=2)
    training = {"P1": [Demonstration("x", "{name} of [brackets]", "Oslo", frozenset(["oslo"]))]}

    def filled(form, prompts=inside):
        items, candidates = bench["items"], bench["candidates"]
        inputs, _ = build_questions(loaded, items, candidates, prompts, form, training)
        return fill_items_of(inputs, items)

    form = Form("question", 0, 0)
    result = {"question": filled(form), "few": filled(Form("few", 0, 0, 1))}
    texts = {name: questions(blanks, True)[0] for name, blanks in result.items()}
    assert texts["question"].before == "Question: S0 is what to me?\nAnswer: "
    assert texts["few"].before == "{name} of [brackets] is Oslo to me.\nS0 is "
    assert [at_end(text) for text in texts.values()] == [True, False]
    assert result["question"][0].golds == ("Rome",)
    with pytest.raises(ValueError, match="no template for 1 relations: P1"):
        filled(form, inside.clear())


def test_items_unsupported_by_generation_are_counted():
    answers = (["Rome", "Paris"], ["Rome", "Paris"])
    bench, loaded = benchmark({"P1": answers, "P2": answers}), tiny("gpt2")
    # the mask slot of P2 is inside the sentence
    prompts = bench["prompts"].filter(pl.col("index") == 2 * (pl.col("relation") == "P2"))
    frames, settings = (bench["items"], bench["candidates"], prompts), Fill(k=3, most_tokens=2)
    for name, unwritten in (("few", ["P2/Qs0", "P2/Qs1"]), ("question", [])):
        form = Form(name, 0, 0, int(name == "few"))
        fills, _, record = fill_frame(loaded, *frames, settings, form=(form, None))
        assert sorted(set(bench["items"]["item"]) - set(fills["item"])) == unwritten
        assert (record["form"]["items"], record["form"]["unwritten"]) == (4, len(unwritten))


def test_generated_forms_are_compared_on_common_items(tmp_path):
    golds = {"P1": (["Rome", "Paris"], ["Rome", "Paris", "Rome", "Rome"])}
    bench = benchmark(golds)
    write_benchmark(bench, tmp_path)
    # (subject, template) -> generated answer; for s3 the raw form has only another template
    generated = {
        "templates": {("s0", 0): "Rome", ("s1", 0): "x", ("s2", 0): "Rome", ("s3", 1): "Rome"},
        "question": {("s0", 0): "x", ("s1", 0): "Paris", ("s2", 0): "Rome", ("s3", 0): "Rome"},
    }
    right = {f"s{n}": gold for n, gold in enumerate(golds["P1"][1])}
    columns, written = {"item": pl.String, "template": pl.Int32, "hit": pl.Float64}, []
    paths = [tmp_path / f"{name}.parquet" for name in generated]
    for path, texts in zip(paths, generated.values(), strict=True):
        bench["items"].write_parquet(path)
        rows = [(f"P1/Q{name}", template, float(text == right[name]))
                for (name, template), text in texts.items()]  # fmt: skip
        written.append(pl.DataFrame(rows, schema=columns, orient="row"))
    raw, formed = ({Probe("b", path.stem, "fill", "m", "causal", "none"): path} for path in paths)
    answers = dict(zip([*raw, *formed], written, strict=True))
    table = frame("attributes", tabled.estimates(formed, answers, {"b": tmp_path}, 0))
    result = {(row["prompt"], row["metric"]): row for row in table.rows(named=True)}
    own = result["question", "accuracy"]
    assert (own["value"], own["n"]) == (75, 4)
    plain = result["templates", "accuracy"]
    assert (plain["value"], plain["n"]) == (pytest.approx(200 / 3), 3)
    slot = result["question", "difference"]
    assert (slot["value"], slot["n"], slot["method"]) == (pytest.approx(0), 3, "fill")


@pytest.mark.parametrize("name", ["few", "few_shuffled"])
def test_demonstrations_with_a_special_token_raise_with_their_item(name):
    loaded, bench = tiny("gpt2"), benchmark(GOLDS)
    shown = {"P1": [Demonstration("x", "Niger</s>", "Nigeria", frozenset({"nigeria"}))]}
    with pytest.raises(ValueError, match=r"^the examples before item P1.*spells '</s>', which"):
        items_in_form(name, loaded, bench, shown, demonstrations=1)
