"""Linear probe and fine-tuning: inputs, learning, reproducibility."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kgprobe.probes.baselines import classified
from kgprobe.probes.baselines.classified import read_texts
from kgprobe.probes.ranked import majority
from kgprobe.schema import OUTCOMES, check
from tests.unit.architectures import tiny as architecture
from tests.unit.prompt_examples import examples
from tests.unit.tiny_models import tiny

CLASSES = ["negative", "positive"]
WORDS = {"positive": "Paris Rome".split(), "negative": "token option".split()}
FILLER = "the of is a and in where one".split()


def task(sizes):
    """Generate sentences of filler words with one label word; positive is the majority class."""
    rng = np.random.default_rng(0)
    rows = []
    for split, size in sizes.items():
        for number in range(size):
            label = "negative" if number % 5 < 2 else "positive"
            words = [*rng.choice(FILLER, 2), rng.choice(WORDS[label])]
            text = " ".join(rng.permutation(words))
            rows.append({"split": split, "label": label, "fields": {"sentence": text}})
    return examples(rows)


def shares(frame, table, split="test"):
    joined = frame.filter(split=split).join(table.select("example", "label"), on="example")
    return (joined["answer"] == joined["label"]).mean()


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_vectors_are_means_over_word_tokens(name):
    loaded = tiny(name, bos="forced" if name == "gpt2" else "")
    texts = read_texts(loaded, [{"a": "Paris is Rome"}, {"a": "Italy"}], ["a"])
    result = classified.mean_vectors(loaded, texts)
    for row in range(2):
        ids = torch.from_numpy(texts.rows[row])[None]
        states = loaded.model.base_model(input_ids=ids).last_hidden_state[0]
        special = set(loaded.tokenizer.all_special_ids)
        words = [p for p, token in enumerate(ids[0].tolist()) if token not in special]
        assert 0 < len(words) < len(ids[0])
        assert result[row] == pytest.approx(states[words].mean(0).numpy(), abs=1e-5)


def test_sentence_pairs_long_texts_and_missing_fields():
    loaded = tiny("bert")
    loaded.tokenizer.sep_token = "</s>"
    pair = [{"prem": "Paris is Rome", "hyp": "Italy"}]
    (row,) = read_texts(loaded, pair, ["prem", "hyp"]).rows
    one, two = (
        loaded.tokenizer(pair[0][n], add_special_tokens=False)["input_ids"] for n in pair[0]
    )
    start, end = loaded.tokenizer("")["input_ids"]
    assert row.tolist() == [start, *one, end, *two, end]
    causal = tiny("gpt2")
    joined = causal.tokenizer("Paris is Rome Italy")["input_ids"]
    assert read_texts(causal, pair, ["prem", "hyp"]).rows[0].tolist() == joined
    loaded.limit = 6
    texts = read_texts(loaded, [{"a": "Paris is Rome and Rome is Paris"}, {"a": "Rome"}], ["a"])
    assert texts.cut == 1
    assert len(texts.rows[0]) == 6
    assert texts.words[0].tolist() == [False, True, True, True, True, False]


# a test set large enough that another processor's rounding does not change the result
SIZES = {"train": 250, "dev": 60, "test": 200}


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_linear_probe_learns_a_separable_task_reproducibly(name):
    loaded, table = tiny(name, double=False), task(SIZES)
    settings = classified.LinearProbeSettings(epochs=40, rate=1e-2)
    result, record = classified.linear_probe(loaded, table, CLASSES, ["sentence"], settings)
    check(result, OUTCOMES)
    assert shares(majority(table, CLASSES), table) == pytest.approx(0.6)
    assert shares(result, table) > 0.75
    assert record["curve"][record["epoch"]] == max(record["curve"])
    assert record["dev_accuracy"] == pytest.approx(max(record["curve"]), abs=1e-6)
    again, _ = classified.linear_probe(loaded, table, CLASSES, ["sentence"], settings)
    assert again.equals(result)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_fine_tuning_learns_the_task_and_restores_the_model(name):
    loaded, table = tiny(name, double=False), task(SIZES)
    before = {k: v.clone() for k, v in loaded.model.state_dict().items()}
    settings = replace(classified.FULL, epochs=6, batch=16, rate=2e-3)
    result, record = classified.finetune(loaded, table, CLASSES, ["sentence"], settings)
    check(result, OUTCOMES)
    assert shares(result, table) > 0.75
    assert record["curve"][record["epoch"]][1] == max(dev for _, dev in record["curve"])
    assert all(torch.equal(v, before[k]) for k, v in loaded.model.state_dict().items())
    again, _ = classified.finetune(loaded, table, CLASSES, ["sentence"], settings)
    assert again.equals(result)


def test_the_head_has_the_width_of_the_states_it_reads():
    loaded, table = architecture("opt", "causal", double=False), task(dict.fromkeys(SIZES, 5))
    assert loaded.model.config.hidden_size == 2 * loaded.model.config.word_embed_proj_dim
    settings = replace(classified.LOW, epochs=1)
    result, _ = classified.finetune(loaded, table, CLASSES, ["sentence"], settings)
    assert result.height == 10


def test_the_schedule_of_the_paper():
    assert (
        classified.FinetuneSettings(
            epochs=20, batch=16, rate=2e-5, warmup=0.1, decay=0.01, keep="last"
        )
        == classified.LOW
    )
    assert (classified.FULL.epochs, classified.FULL.batch, classified.FULL.keep) == (3, 32, "best")
    assert classified.steps(10, classified.LOW) == 20
    # increases over the first tenth, then decreases to 0
    factors = [classified.schedule(step, 100, 10) for step in range(100)]
    assert factors[:3] == pytest.approx([0, 0.1, 0.2])
    assert factors[10] == 1
    assert factors[99] == pytest.approx(1 / 90)


def test_bad_labels_and_settings_are_reported():
    loaded, table = tiny("bert", double=False), task({"train": 5, "dev": 5, "test": 5})
    with pytest.raises(ValueError, match=r"labels \['negative'\] are none of the classes"):
        classified.linear_probe(loaded, table, ["positive"], ["sentence"])
