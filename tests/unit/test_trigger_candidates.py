"""Candidate filters, modes, and gradients against the true change of single swaps."""

import itertools
from typing import get_args

import numpy as np
import pytest
import torch

from kgprobe.probes.prompts.search.candidates import filter_candidates, spelled_like, vocabulary_of
from kgprobe.probes.prompts.search.scores import Scorer, problem, top
from kgprobe.probes.prompts.search.search import search
from kgprobe.probes.prompts.search.settings import SearchSettings, settings_for
from kgprobe.probes.text.vectors import embedding_modules
from kgprobe.settings.types import Mode
from kgprobe.templates import Template
from tests.unit.tiny_models import tiny

GOLDS = ["Paris", "Rome", "Africa", "country"]
TRAIN = [({"sub": s}, GOLDS[i % 4]) for i, s in
         enumerate(["Paris", "Niger is a country", "Italy", "France lies in Africa"])]  # fmt: skip


def template_for(loaded, m=3):
    end = "" if loaded.spec.kind == "causal" else " ."
    return Template.parse(f"{{sub}} [T]x{m} [P]{end}", loaded.spec.kind)


def tokens(vocabulary, kept):
    """Return the raw tokens that a filter keeps."""
    return {vocabulary.raw[i] for i in np.flatnonzero(kept)}


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "t5"])
def test_no_excluded_token_is_left_for_any_tokenizer(name):
    loaded = tiny(name)
    vocabulary = vocabulary_of(loaded)
    own = settings_for("default", "facts", loaded.spec.kind)
    kept, counts = filter_candidates(vocabulary, own, golds=["paris", "Capital"], gold_ids=[90])
    left = [vocabulary.surface[i] for i in np.flatnonzero(kept)]
    assert not any(s[:1].isupper() for s in left)
    assert not {"paris", "capital"} & {s.casefold() for s in left}
    assert not kept[90]
    assert not kept[[*loaded.tokenizer.all_special_ids]].any()
    assert not any("\ufffd" in s for s in left)
    assert not kept[len(loaded.tokenizer) :].any()
    rows = len(loaded.model.get_input_embeddings().weight)
    assert counts["allowed"] == kept.sum()
    assert sum(counts.values()) == rows
    assert counts["beyond_tokenizer"] == rows - len(loaded.tokenizer)


def test_the_released_filter_keeps_glued_capitals_and_the_glued_gold():
    vocabulary = vocabulary_of(tiny("roberta"))
    gold = vocabulary.raw.index("ĠItaly")
    released = settings_for("released", "facts", "masked")
    left = tokens(
        vocabulary, filter_candidates(vocabulary, released, golds=["Italy"], gold_ids=[gold])[0]
    )
    assert {"A", "Rome", "Niger"} <= left
    assert not {"ĠItaly", "ĠParis", "ĠAfrica"} & left
    assert "Ã" in left  # no text
    default = settings_for("default", "facts", "masked")
    kept = filter_candidates(vocabulary, default, golds=["Italy"], gold_ids=[gold])[0]
    assert not any(vocabulary.surface[i][:1].isupper() for i in np.flatnonzero(kept))
    assert not {"Ã", "Rome", "ĠItaly", "Italy"} & tokens(vocabulary, kept)


def test_the_released_filter_treats_continuation_marks_as_letters():
    vocabulary = vocabulary_of(tiny("bert"))
    pieces = [t for t in vocabulary.raw if t.startswith("##") and t[2:3].isupper()]
    single = [t for t in vocabulary.raw if len(t) == 1 and t.isupper()]
    released = tokens(
        vocabulary, filter_candidates(vocabulary, settings_for("released", "facts", "masked"))[0]
    )
    default = tokens(
        vocabulary, filter_candidates(vocabulary, settings_for("default", "facts", "masked"))[0]
    )
    assert single
    assert {*single, *pieces} <= released
    assert not {*single, *pieces} & default
    assert "Paris" not in released
    assert {t for t in default if t.startswith("##")}


def test_sentiment_triggers_may_hold_capitals_and_no_label():
    vocabulary = vocabulary_of(tiny("roberta"))
    label = vocabulary.raw.index("ĠItaly")
    default = filter_candidates(vocabulary, settings_for("default", "sst2", "masked",
                                               candidates=9), [label])[0]  # fmt: skip
    assert "ĠParis" in tokens(vocabulary, default)
    assert not default[label]
    released = settings_for("released", "sick", "masked")
    assert filter_candidates(vocabulary, released, [label])[0].all()


def test_too_few_candidates_are_refused_with_the_counts_of_the_rules():
    vocabulary = vocabulary_of(tiny("bert"))
    own = settings_for("default", "facts", "masked", candidates=150)
    with pytest.raises(ValueError, match=r"1\d\d tokens are left .* 150 are .* special 7, .* gold"):
        filter_candidates(vocabulary, own)


def test_trigger_tokens_that_are_golds_elsewhere_are_counted():
    vocabulary = vocabulary_of(tiny("roberta"))
    trigger = [vocabulary.raw.index(t) for t in ("Rome", "ĠItaly", "is")]
    assert spelled_like(vocabulary, trigger, ["rome", "ITALY", "Niger"]) == 2


def test_modes_are_those_of_the_table():
    for mode, task in itertools.product(
        get_args(Mode), ("facts", "relation_extraction", "sst2", "sick")
    ):
        own, facts = settings_for(mode, task, "masked"), task not in ("sst2", "sick")
        assert own.metric == ("accuracy" if mode == "released" and not facts else "likelihood")
        assert own.accept == ("best_of_k" if mode == "paper" else "strict")
        assert own.batches == ("fresh" if mode == "released" else "disjoint")
        assert own.restarts == (3 if mode == "default" else 1)
        assert (own.capital_filter == "slow_tokenizer") == (mode == "released" and facts)
        assert own.fill_all == (facts or mode != "released")
        assert not settings_for(mode, task, "causal").fill_all
    assert settings_for("default", "facts", "masked").evaluation == 256
    assert settings_for("released", "facts", "masked").batch == 56


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_first_order_gains_rank_single_swaps_like_true_changes(name):
    loaded = tiny(name, bos="forced" if name == "gpt2" else "")
    weight = loaded.model.get_input_embeddings().weight
    if name == "gpt2":  # first order holds for small steps: smooth the model out
        with torch.no_grad():
            for block in loaded.model.transformer.h:
                block.attn.c_attn.weight.mul_(0.1)
    output = loaded.model.get_output_embeddings()
    output.weight = torch.nn.Parameter(output.weight.detach().clone(), requires_grad=False)
    with torch.no_grad():
        weight.mul_(0.01)
    own = SearchSettings(capital_filter="off", iterations=1, restarts=1)
    known = problem(loaded, template_for(loaded), TRAIN, TRAIN, own)
    scorer = Scorer(loaded, known)
    everything, trigger = np.arange(len(known.train)), [20, 33, 47]
    gradient = scorer.gradient(everything, np.full(len(known.train), 1 / 4), trigger)
    before = scorer.values("train", everything, [trigger], "likelihood").mean()
    some = np.arange(10, len(weight), 3)
    for place in range(3):
        gains = scorer.candidate_scores(gradient[place], np.ones(len(weight), dtype=bool))[some]
        swapped = [[*trigger[:place], int(t), *trigger[place + 1 :]] for t in some]
        true = scorer.values("train", everything, swapped, "likelihood").mean(1) - before
        assert np.corrcoef(*[np.argsort(np.argsort(v)) for v in (gains, true)])[0, 1] > 0.9
        # the constant term makes it the change itself, sign and scale
        full = gains - float(scorer.candidate_scores(gradient[place], np.ones(len(weight), bool))[
            trigger[place]])  # fmt: skip
        assert np.corrcoef(full, true)[0, 1] > 0.9
        assert 0.5 < np.polyfit(full, true, 1)[0] < 2


@pytest.mark.parametrize("name", ["bert", "albert", "gpt2", "llama", "t5"])
def test_gradients_are_central_differences(name):
    loaded = tiny(name, bos="forced" if name in ("gpt2", "llama") else "")
    known = problem(loaded, template_for(loaded), TRAIN, TRAIN, SearchSettings())
    scorer, trigger = Scorer(loaded, known), [20, 33, 47]
    one = np.array([1])
    found = scorer.gradient(one, np.ones(1), trigger)
    generator = torch.Generator().manual_seed(1)
    way = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    at = torch.from_numpy(known.train.encoded.triggers[1])
    values = []
    # these two norm in float32 whatever the model is in
    size, rel = (1e-3, 2e-3) if name in ("llama", "t5") else (1e-5, 1e-5)
    for step in (size, -size):
        calls = itertools.count()

        def moved(module, given, output, step=step, calls=calls):
            if next(calls):  # the decoder's own tokens
                return output
            changed = output.clone()
            changed[0, at] += step * way
            return changed

        handles = [m.register_forward_hook(moved) for m in embedding_modules(loaded.model)]
        values.append(scorer.values("train", one, [trigger], "likelihood", share=False)[0, 0])
        for handle in handles:
            handle.remove()
    expected = -(values[0] - values[1]) / (2 * size)
    assert (found * way.numpy()).sum() == pytest.approx(expected, rel=rel)


def test_the_best_candidates_come_in_order_and_equal_ones_by_their_id():
    scores = np.array([1.0, 5.0, 3.0, 5.0, -np.inf, 3.0, 3.0])
    assert top(scores, 4).tolist() == [1, 3, 2, 5]


def test_shared_prefixes_give_the_same_values_with_less_input():
    loaded = tiny("llama", bos="forced")
    known = problem(loaded, template_for(loaded), TRAIN, TRAIN, SearchSettings())
    triggers = [[40 + i, 9, 60] for i in range(3)] + [[40, 9, 60 + i] for i in range(6)]
    everything = np.arange(4)
    shared, plain = Scorer(loaded, known), Scorer(loaded, known)
    found = shared.values("train", everything, triggers, "likelihood")
    expected = plain.values("train", everything, triggers, "likelihood", share=False)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert shared.shares
    assert shared.positions_fed < 0.6 * plain.positions_fed


def test_the_model_is_unchanged():
    loaded = tiny("bert", double=False)
    before = {n: p.clone() for n, p in loaded.model.named_parameters()}
    own = SearchSettings(candidates=3, batch=2, iterations=4, restarts=1, fill_all=False)
    search(loaded, template_for(loaded), TRAIN, TRAIN, own)
    for name, parameter in loaded.model.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None
        assert not parameter.requires_grad


def test_unknown_modes_are_refused():
    with pytest.raises(ValueError, match="unknown mode 'papr'"):
        settings_for("papr", "facts", "masked")
