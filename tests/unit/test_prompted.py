"""Outcomes of prompts on examples, against a plain sort of the full model's scores."""

import json

import numpy as np
import polars as pl
import pytest
import torch
from tokenizers import normalizers

from kgprobe.metrics import prompts as metrics
from kgprobe.probes.jobs.autoprompt import tasks
from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.finite import NotFiniteError
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.scoring.fill.options import AnswerError, Options
from kgprobe.probes.text.prompts import encode
from kgprobe.schema import EXAMPLES, OUTCOMES, check
from kgprobe.templates import Template
from tests.unit import prompt_examples
from tests.unit.tiny_models import tiny

WORDS = ["Africa", "France", "Italy", "Niger", "Nigeria", "Paris", "Rome", "capital", "Burkina"]
MASKED, CAUSAL = "{sub} [T] [T] [P].", "{sub} [T] [T] [P]"


def examples(rows: list[dict]) -> pl.DataFrame:
    plain = {"group": "P1", "label": "Rome", "fields": {"sub": "Italy"}}
    frame = prompt_examples.examples(plain | row for row in rows)
    check(frame, EXAMPLES)
    return frame


def facts(words: list[str]) -> pl.DataFrame:
    """Return facts with golds, other right answers and subjects of several lengths from `words`."""
    generator = np.random.default_rng(0)
    rows = []
    for number in range(24):
        gold, *more = generator.permutation(words)[:4].tolist()
        rows.append(
            {
                "label": gold,
                "others": [*more[: number % 4], gold, "Timbuktu"] if number % 2 else more[:2],
                "fields": {"sub": " ".join(["Niger", "and", "Nigeria"][: 1 + number % 3])},
            }
        )
    return examples(rows)


def whole(loaded, template: Template, trigger, fields) -> np.ndarray:
    """Return log-probabilities of the whole vocabulary at [P], one prompt at a time."""
    encoded = encode(loaded, template, fields)
    found = []
    for row, place in zip(encoded.filled(trigger), encoded.places, strict=True):
        with torch.inference_mode():
            logits = loaded.model(torch.from_numpy(row)[None]).logits[0, place]
        found.append(torch.log_softmax(logits.double(), -1).numpy())
    return np.stack(found)


def single(loaded, template: Template, words: list[str]) -> dict[str, int]:
    options = Options.words(loaded, template, words)
    return {word: int(options.tokens[number]) for word, number in options.column.items()}


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama"])
def test_ranks_are_those_of_a_plain_sort(name):
    loaded = tiny(name)
    text = CAUSAL if loaded.spec.kind == "causal" else MASKED
    template = Template.parse(text, loaded.spec.kind)
    tokens = single(loaded, template, WORDS)
    asked = facts(sorted(tokens))
    prompt = tasks.TriggerPrompt(template, (40, 50))
    found, record = tasks.outcomes(
        Predictor(loaded), "searched", {"P1": prompt}, asked, [*WORDS, "Timbuktu"]
    )
    check(found, OUTCOMES)
    logs = whole(loaded, template, (40, 50), [json.loads(text) for text in asked["fields"]])
    for row, example, own in zip(found.to_dicts(), asked.to_dicts(), logs, strict=True):
        scored = sorted(tokens, key=lambda w, own=own: -own[tokens[w]])
        assert row["best"] == row["worst"] == scored.index(example["label"]) + 1
        assert row["answer"] == scored[0]
        gold = example["label"]
        kept = [w for w in scored if w == gold or w not in example["others"]]
        assert row["filtered_best"] == row["filtered_worst"] == kept.index(gold) + 1
        assert row["logprob"] == pytest.approx(own[tokens[gold]], abs=1e-6)
        assert row["options"] == len(tokens)
    assert record["P1"]["left_out"] == len(WORDS) + 1 - len(tokens)


def test_ties_are_ranges():
    loaded = tiny("bert")
    template = Template.parse(MASKED, "masked")
    tokens = single(loaded, template, WORDS)
    words = sorted(tokens)
    decoder = loaded.model.get_output_embeddings()
    with torch.no_grad():
        for word in words[1:4]:
            decoder.weight[tokens[word]] = decoder.weight[tokens[words[0]]]
            decoder.bias[tokens[word]] = decoder.bias[tokens[words[0]]]
    rows = [{"label": words[0], "others": [words[1], words[4]]}, {"label": words[4]}]
    found, _ = tasks.outcomes(
        Predictor(loaded), "manual", {"": tasks.TriggerPrompt(template, (40, 50))},
        examples(rows), words,
    )  # fmt: skip
    tied, alone = found.to_dicts()
    assert tied["worst"] - tied["best"] == 3
    assert tied["filtered_worst"] - tied["filtered_best"] == 2
    assert alone["best"] == alone["worst"]
    (own,) = whole(loaded, template, (40, 50), [{"sub": "Italy"}])
    assert tied["best"] == sum(own[tokens[w]] > own[tokens[words[0]]] for w in words) + 1


def test_batches_and_threads_do_not_matter():
    loaded = tiny("bert", double=False)
    template = Template.parse(MASKED, "masked")
    asked = facts(sorted(single(loaded, template, WORDS)))
    made = [
        tasks.outcomes(
            Predictor(loaded, budget), "searched",
            {"P1": tasks.TriggerPrompt(template, (40, 50))},
            asked.sample(fraction=1.0, shuffle=True, seed=seed), WORDS,
        )[0]
        for seed, budget in enumerate((Budget(16), Budget(200)))
    ]  # fmt: skip
    assert made[0].drop("logprob").equals(made[1].drop("logprob"))
    np.testing.assert_allclose(made[0]["logprob"], made[1]["logprob"], atol=1e-5)


def test_multi_token_golds_have_no_rank_and_are_counted():
    """For byte-level BPE the form with a leading space must be one token."""
    loaded = tiny("roberta")
    tokens = single(loaded, Template.parse("{sub} is [P].", "masked"), WORDS)
    vocabulary = loaded.tokenizer.get_vocab()
    assert tokens
    assert all(token == vocabulary[f"Ġ{word}"] for word, token in tokens.items())
    asked = examples([{"label": "Burkina Faso"}, {"label": min(tokens)}])
    prompt = tasks.manual(loaded, "{sub} is [P].")
    found, record = tasks.outcomes(
        Predictor(loaded), "manual", {"": prompt}, asked, [*WORDS, "Burkina Faso"]
    )
    check(found, OUTCOMES)
    first, second = found.to_dicts()
    assert [first[c] for c in ("best", "worst", "filtered_best", "logprob")] == [None] * 4
    assert first["answer"] in tokens
    assert second["best"] >= 1
    assert record["P1"]["absent"] == 1
    assert metrics.rank_outcomes(metrics.join_outcomes(asked, found)).height == 1


def test_forms_with_and_without_space_are_different_tokens():
    loaded = tiny("roberta")
    blank = single(loaded, Template.parse("{sub} is [P].", "masked"), ["and", "a", "of"])
    glued = single(loaded, Template.parse("{sub} is ([P]).", "masked"), ["and", "a", "of"])
    both = blank.keys() & glued.keys()
    assert both
    assert all(blank[word] != glued[word] for word in both)


def test_words_with_the_same_token_share_a_column():
    loaded = tiny("bert")
    loaded.tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    template = Template.parse("{sub} is [P].", "masked")
    options = Options.words(loaded, template, ["Of", "of", "the"])
    assert options.column["Of"] == options.column["of"]
    assert options.names[options.column["of"]] == "Of"
    asked = examples([{"label": "of", "others": ["Of"]}])
    found, _ = tasks.outcomes(
        Predictor(loaded), "m", {"": tasks.TriggerPrompt(template)}, asked, ["Of", "of"]
    )
    row = found.row(0, named=True)
    assert (row["answer"], row["best"], row["filtered_best"], row["options"]) == ("of", 1, 1, 1)


@pytest.mark.parametrize("name", ["roberta", "gpt2"])
def test_classes_answer_by_the_sum_of_their_label_tokens(name):
    loaded = tiny(name)
    text = CAUSAL if loaded.spec.kind == "causal" else MASKED
    template = Template.parse(text, loaded.spec.kind)
    labels = {"no": (60, 61, 62), "yes": (70,), "maybe": (80, 81)}
    asked = examples([{"group": "", "label": c, "fields": {"sub": s}} for c in labels
                      for s in ("Rome", "Paris and Niger", "a")])  # fmt: skip
    prompt = tasks.TriggerPrompt(template, (40, 50), labels)
    found, _ = tasks.outcomes(Predictor(loaded), "searched", {"": prompt}, asked)
    logs = whole(loaded, template, (40, 50), [json.loads(text) for text in asked["fields"]])
    for row, label, own in zip(found.to_dicts(), asked["label"], logs, strict=True):
        mass = {c: np.exp(own[list(ids)]).sum() for c, ids in labels.items()}
        order = sorted(mass, key=lambda c, mass=mass: -mass[c])
        assert (row["answer"], row["best"]) == (order[0], order.index(label) + 1)
        assert row["logprob"] == pytest.approx(np.log(mass[label]), abs=1e-6)
        assert row["options"] == 3


def test_a_context_is_a_field_and_is_truncated_if_too_long():
    loaded = tiny("bert")
    text = "{context} {sub} [T] [P]."
    rows = [{"group": g, "fact": "f", "label": "Rome", "surfaces": ["rome"],
             "fields": {"sub": "Italy", "context": "Niger " * n}}
            for g, n in (("P1", 3), ("P1", 200), ("P2", 5))]  # fmt: skip
    prompt = tasks.TriggerPrompt(Template.parse(text, "masked"), (40,), {}, "context")
    asked = examples(rows)
    found, record = tasks.outcomes(Predictor(loaded), "searched", {"": prompt}, asked, WORDS)
    assert (record["P1"]["cut"], record["P2"]["cut"]) == (1, 0)
    per_fact, per_sentence = metrics.sentences(metrics.join_outcomes(asked, found))
    assert (per_fact.height, per_sentence.height) == (2, 3)
    short = tasks.TriggerPrompt(Template.parse(text, "masked"), (40,))
    with pytest.raises(ValueError, match="too long"):
        tasks.outcomes(Predictor(loaded), "searched", {"": short}, asked, WORDS)


def test_bad_input_is_reported():
    loaded = tiny("bert")
    predictor = Predictor(loaded)
    prompt = tasks.TriggerPrompt(Template.parse("{sub} [P]", "masked"))
    asked = examples([{}, {"group": "P2"}])
    with pytest.raises(ValueError, match="no prompt for 1 groups: P2"):
        tasks.outcomes(predictor, "manual", {"P1": prompt}, asked, WORDS)
    with pytest.raises(AnswerError, match="none of 1 answer words is one token"):
        tasks.outcomes(predictor, "manual", {"": prompt}, asked, ["Xylophone Quartet"])
    with pytest.raises(AnswerError, match=r"\[60\] stand for two classes"):
        Options.classes({"a": (60,), "b": (60, 61)})
    with pytest.raises(AnswerError, match="without label tokens"):
        Options.classes({"a": (60,), "b": ()})
    classes = tasks.TriggerPrompt(prompt.template, (), {"a": (60,), "b": (61,)})
    with pytest.raises(ValueError, match=r"classes \['Rome'\] have no label tokens"):
        tasks.outcomes(predictor, "manual", {"": classes}, asked)
    with torch.no_grad():
        loaded.model.get_output_embeddings().bias[3] = float("nan")
    with pytest.raises(NotFiniteError, match=r"bert: log-sum-exp .* nan at P1 test .* token 2 "):
        tasks.outcomes(predictor, "manual", {"": prompt}, asked, WORDS)
