"""Demonstrations before a question, against texts and passes written out by hand."""

import json
import math

import numpy as np
import polars as pl
import pytest
import torch

from kgprobe.probes.jobs.autoprompt import predict, tasks
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.variants import demonstrations as demos
from kgprobe.schema import EXAMPLES, OUTCOMES, check, write
from kgprobe.settings.probes import Demos
from tests.unit import prompt_folders
from tests.unit.prompt_examples import examples
from tests.unit.tiny_models import tiny

LABELS = ["Africa", "France", "Italy", "Niger", "Paris", "Rome"]
SETTINGS = Demos(k=3, draws=2)


@pytest.fixture
def folder(tmp_path):
    """Write relations P36 (ten training facts, six golds) and P37, with dev and test splits."""
    rows = []
    for group, golds in (("P36", LABELS[:4]), ("P37", LABELS[4:])):
        for split, n in (("train", 10), ("dev", 6), ("test", 6)):
            for i in range(n):
                fields = {"sub": f"{split} {i} {{sub}} [P]"}  # slots inside a value are not slots
                rows.append(
                    {"group": group, "split": split, "label": golds[(i * i) % len(golds)],
                     "fields": fields, "fact": f"{group}/{split}/{i}"}
                )  # fmt: skip
    path = prompt_folders.facts(tmp_path / "auto_world")
    about = json.loads((path / "task.json").read_text())
    about["prompts"]["manual"]["P37"] = {"masked": "{sub} by [P] .", "causal": "{sub} by [P]"}
    (path / "task.json").write_text(json.dumps(about))
    write(examples(rows), EXAMPLES, path / "examples.parquet")
    return path


def test_demonstrations_are_sampled_by_hash_from_unasked_facts(folder):
    frame = tasks.load(folder, {}).examples
    # a fact that is also a test item, and another fact of a test subject
    rows = frame.to_dicts()
    train = [row for row in rows if (row["group"], row["split"]) == ("P36", "train")]
    asked = next(row for row in rows if (row["group"], row["split"]) == ("P36", "test"))
    train[0]["fact"], train[1]["fields"] = asked["fact"], asked["fields"]
    frame = pl.DataFrame(rows, schema=frame.schema)
    known = demos.pool(frame, "P36")
    assert len(known) == 8
    assert not {train[0]["example"], train[1]["example"]} & {name for name, _ in known}
    several = [demos.draw_facts(frame, "P36", 3, 0, draw) for draw in range(6)]
    assert all(len({json.dumps(dict(f.fields)) for f in own}) == 3 for own in several)
    assert len({str(own) for own in several}) > 3
    again = demos.draw_facts(frame.sample(fraction=1, shuffle=True, seed=1), "P36", 3)
    assert several[0] == again
    # one more fact changes at most one of them
    more = frame.filter(pl.col("example") != train[5]["example"])
    assert len([f for f in demos.draw_facts(more, "P36", 3) if f not in several[0]]) <= 1
    with pytest.raises(
        demos.DemonstrationError, match=r"P36: 9 demonstrations .* 8 training facts"
    ):
        demos.draw_facts(frame, "P36", 9)


def test_accents_of_an_asked_subject_may_be_composed_or_not(folder):
    rows = tasks.load(folder, {}).examples.to_dicts()
    for split, subject in (("train", "S\u00e3o Paulo"), ("test", "Sa\u0303o Paulo")):
        own = next(row for row in rows if (row["group"], row["split"]) == ("P36", split))
        own["fields"] = json.dumps({"sub": subject})
    known = demos.pool(pl.DataFrame(rows, schema=dict(EXAMPLES.columns)), "P36")
    assert "S\u00e3o Paulo" not in {fact.fields["sub"] for _, fact in known}


def test_a_repeated_label_pair_is_shown_once(folder):
    """Files of facts without ids number its rows: P36/Rome/Italy, P36/Rome/Italy#2."""
    frame = tasks.load(folder, {}).examples
    twice = frame.filter(split="train", group="P36").with_columns(
        example=pl.format("{}+", "example"), fact=pl.format("{}#2", "fact")
    )
    known = demos.pool(pl.concat([frame, twice]), "P36")
    assert known == demos.pool(frame, "P36")


def test_controls_shuffle_answers_or_use_other_relations(folder):
    frame = tasks.load(folder, {}).examples
    for draw in range(5):
        plain = demos.of_kind(demos.PLAIN, frame, "P36", 3, 0, draw)
        mixed = demos.of_kind(demos.SHUFFLED, frame, "P36", 3, 0, draw)
        assert [f.fields for f in mixed] == [f.fields for f in plain]
        assert sorted(f.label for f in mixed) == sorted(f.label for f in plain)
        turns = [
            sum(
                a.label == b
                for a, b in zip(plain, [f.label for f in plain[t:] + plain[:t]], strict=True)
            )
            for t in (1, 2)
        ]
        assert sum(a.label == b.label for a, b in zip(plain, mixed, strict=True)) == min(turns)
        foreign = demos.of_kind(demos.OTHER, frame, "P36", 3, 0, draw)
        assert [f.fields for f in foreign] == [f.fields for f in plain]
        assert {f.label for f in foreign} <= set(LABELS[4:])
    with pytest.raises(demos.DemonstrationError, match="needs answers of other relations"):
        demos.of_kind(demos.OTHER, frame.filter(group="P36"), "P36", 3)


def test_other_relation_control_uses_relations_outside_the_groups(folder):
    whole, cut = (tasks.load(folder, own) for own in ({}, {"groups": ["P36"]}))
    assert not whole.unasked.height
    assert set(cut.unasked["group"]) == {"P37"}
    assert set(cut.unasked["split"]) == {"train"}
    loaded = tiny("gpt2")
    shown = []
    for task in (whole, cut):
        own = answerer(loaded, task)
        own.answers(["demos_other"])
        shown.append(own.record["demos_other:00"]["P36"]["demonstrated"])
    assert shown[0] == shown[1]


def answerer(loaded, task):
    return predict.Answerer(loaded.spec, task, load=lambda _: loaded, demos=SETTINGS)


def literal(loaded, text, words):
    """Return log p of every word at the end of a text, from one pass of the whole model."""
    ids = torch.tensor([loaded.tokenizer(text)["input_ids"]])
    with torch.inference_mode():
        logs = torch.log_softmax(loaded.model(ids).logits[0, -1].double(), -1)
    return {word: float(logs[loaded.tokenizer(f" {word}")["input_ids"][-1]]) for word in words}


def rank(scores, gold):
    """Return the rank of a gold; a gold of several tokens ranks below all others."""
    if gold not in scores:
        return math.inf
    return 1 + sum(value > scores[gold] for value in scores.values())


def test_answers_equal_those_after_the_literal_text(folder):
    loaded = tiny("gpt2")
    task = tasks.load(folder, {})
    own = answerer(loaded, task)
    frame = own.answers(["demos"])
    check(frame.sort(OUTCOMES.key), OUTCOMES)
    assert set(frame["prompt"]) == {"demos:00", "demos:01"}
    template = {"P36": "in", "P37": "by"}
    stop = {"P36": ".", "P37": " ."}

    def behind(group, facts):
        lines = [f"{f['sub']} {template[group]} {label}{stop[group]}" for f, label in facts]
        return "".join(f"{line}\n" for line in lines)

    seen = 0
    for name in ("demos:00", "demos:01"):
        for row in frame.filter(prompt=name).iter_rows(named=True):
            prefix = behind(row["group"], own.record[name][row["group"]]["demonstrated"])
            asked = task.examples.filter(
                group=row["group"], split=row["split"], example=row["example"]
            ).row(0, named=True)
            text = f"{prefix}{json.loads(asked['fields'])['sub']} {template[row['group']]}"
            scores = literal(loaded, text, own.options.names)
            if asked["label"] not in scores:  # more than one token in this model
                assert row["best"] is None
                continue
            assert row["best"] == rank(scores, asked["label"])
            assert row["logprob"] == pytest.approx(scores[asked["label"]], abs=1e-5)
            seen += 1
    assert 25 < seen < 2 * 2 * 12


def test_common_prefixes_are_fed_only_a_few_times(folder):
    """Features equal row-by-row passes, with less than half of the positions."""
    loaded = tiny("llama", double=False)
    generator = np.random.default_rng(0)
    prefix = generator.integers(5, 90, 40)
    rows = [np.append(prefix, generator.integers(5, 90, 2 + i % 3)) for i in range(30)]
    positions = np.array([len(row) - 1 for row in rows])
    shared, plain = Predictor(loaded), Predictor(loaded)
    result = shared.features(rows, positions)
    alone = np.concatenate(
        [plain.features([row], positions[i : i + 1]) for i, row in enumerate(rows)]
    )
    assert result == pytest.approx(alone, abs=1e-4)
    assert shared.positions_fed < plain.positions_fed / 2
    # positions in the middle keep their features
    middle = Predictor(loaded).features(rows, positions - 1)
    by_hand = np.concatenate(
        [plain.features([row[:-1]], positions[i : i + 1] - 1) for i, row in enumerate(rows)]
    )
    assert middle == pytest.approx(by_hand, abs=1e-4)


def test_too_long_demonstrations_and_classes_raise(folder, tmp_path):
    loaded = tiny("gpt2")
    loaded.limit = 24
    own = answerer(loaded, tasks.load(folder, {}))
    with pytest.raises(
        tasks.ProbeTaskError, match=r"3 demonstrations have \d+ tokens, .* takes 24"
    ):
        own.answers(["demos"])
    classes = tasks.load(prompt_folders.classes(tmp_path / "auto_sst2"), {})
    with pytest.raises(tasks.ProbeTaskError, match="demonstrations are facts before a question"):
        answerer(loaded, classes).answers(["demos"])


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_relation_extraction_sentences_omit_their_separator(tmp_path, name):
    path = prompt_folders.facts(tmp_path / "auto_re", True)
    about = json.loads((path / "task.json").read_text())
    text = "{context} [SEP] {sub} in [P] ."
    about["prompts"]["manual"]["P36"] = {"masked": text, "causal": "{context} {sub} in [P]"}
    (path / "task.json").write_text(json.dumps(about))
    loaded = tiny(name)
    loaded.tokenizer.add_special_tokens({"sep_token": "[SEP]"})
    loaded.model.resize_token_embeddings(len(loaded.tokenizer))
    task = tasks.load(path, {"groups": ["P36"]})
    assert task.whole(loaded, "P36") == "{context} {sub} in [P] ."
    frame = answerer(loaded, task).answers(["demos"])
    assert set(frame["prompt"]) == {"demos:00", "demos:01"}


def test_masked_models_get_complete_sentences(folder):
    frame = answerer(tiny("bert"), tasks.load(folder, {})).answers([*demos.KINDS])
    names = {f"{kind}:{draw:02d}" for kind in demos.KINDS for draw in range(2)}
    assert dict(frame["prompt"].value_counts().iter_rows()) == dict.fromkeys(names, 24)
