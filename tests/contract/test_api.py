"""The client against a real local server: answers, faults, cache, limits, and the key."""

import json
import logging

import pytest
import torch

from kgprobe.probes.models.api import Client
from kgprobe.probes.models.api_http import ApiError, Endpoint
from tests.contract.api_server import EVERYTHING, ApiServer, tiny_language_model

KEY = "sk-secret-0123456789"
TEXT = "The capital of France is Paris."


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self):
        self.time, self.naps = 1000.0, []

    def now(self):
        return self.time

    def sleep(self, seconds):
        self.naps.append(seconds)
        self.time += seconds


@pytest.fixture(scope="module")
def lm():
    return tiny_language_model()


@pytest.fixture
def clock():
    return Clock()


def client(server, folder, clock, **options):
    endpoint = Endpoint(server.url, "tiny", key_variable="KGPROBE_TEST_KEY", **options)
    return Client(endpoint, folder, now=clock.now, sleep=clock.sleep)


def literal(lm, text):
    """Sum of log-probabilities of a text after BOS."""
    ids = lm.tokenizer(text, add_special_tokens=False)["input_ids"]
    total = 0.0
    for j, token in enumerate(ids):
        with torch.no_grad():
            row = lm.model(torch.tensor([[lm.bos, *ids[:j]]])).logits[0, -1].double()
        total += float(torch.log_softmax(row, 0)[token])
    return total


@pytest.mark.parametrize("form", ["echo", "field"])
def test_prompt_tokens_sum_to_the_models_log_likelihood(lm, tmp_path, clock, form):
    offers = EVERYTHING - {"echo", "field"} | {form}
    with ApiServer(lm, offers) as server:
        asked = client(server, tmp_path, clock)
        assert asked.capabilities().prompt_logprobs == form
        tokens = asked.prompt_tokens(TEXT)
    assert "".join(t.text for t in tokens) == TEXT
    assert [TEXT[t.start : t.start + len(t.text)] for t in tokens] == [t.text for t in tokens]
    assert sum(t.logprob for t in tokens) == pytest.approx(literal(lm, TEXT), abs=1e-4)


def test_a_completion_is_greedy_with_its_alternatives(lm, tmp_path, clock):
    with ApiServer(lm) as server:
        answer = client(server, tmp_path, clock).complete("The capital", 3, top=2)
    ids = lm.tokenizer("The capital", add_special_tokens=False)["input_ids"]
    for token in answer.tokens:
        row = lm.logprobs(ids)[-1]
        assert token.logprob == pytest.approx(float(row.max()), abs=1e-5)
        assert [p for _, p in token.top] == pytest.approx(row.topk(2).values.tolist(), abs=1e-5)
        ids = [*ids, int(row.argmax())]
    assert answer.text == "".join(t.text for t in answer.tokens)


@pytest.mark.parametrize(
    ("offers", "expected"),
    [
        (EVERYTHING, (True, True, "echo", True, True)),
        (EVERYTHING - {"echo"}, (True, True, "field", True, True)),
        (EVERYTHING - {"echo", "field", "logprobs"}, (True, False, "", True, True)),
        (EVERYTHING - {"completions"}, (False, False, "", True, True)),
        (frozenset({"chat"}), (False, False, "", True, False)),
        (frozenset({"completions"}), (True, False, "", False, False)),
    ],
)
def test_capabilities_are_found_once(lm, tmp_path, clock, offers, expected):
    with ApiServer(lm, offers) as server:
        found = client(server, tmp_path, clock).capabilities()
        assert tuple(vars(found).values()) == expected
        asked = len(server.hits)
        again = client(server, tmp_path, clock)
        assert again.capabilities() == found
        assert len(server.hits) == asked <= 6


def test_a_server_that_offers_nothing_is_refused(lm, tmp_path, clock):
    with ApiServer(lm, frozenset()) as server, pytest.raises(ApiError, match="neither"):
        client(server, tmp_path, clock).capabilities()


def test_sentences_need_prompt_logprobs(lm, tmp_path, clock):
    with ApiServer(lm, frozenset({"chat"})) as server:
        asked = client(server, tmp_path, clock)
        with pytest.raises(ApiError, match="use choice instead"):
            asked.prompt_tokens(TEXT)


@pytest.mark.parametrize(
    ("fault", "nap"),
    [
        ((429, {"Retry-After": "7"}), 7.0),
        ((429, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}), 0.0),
        ((500, {}), 1.0),
        ((503, {"Retry-After": "soon"}), 1.0),
        ("cut", 1.0),
        ("garbage", 1.0),
        ("list", 1.0),
    ],
)
def test_faults_are_survived(lm, tmp_path, clock, fault, nap):
    with ApiServer(lm) as server:
        expected = client(server, tmp_path / "a", clock).chat("Hi", 3, top=1)
    with ApiServer(lm, faults=[fault]) as server:
        asked = client(server, tmp_path / "b", clock)
        assert asked.chat("Hi", 3, top=1) == expected
        assert len(server.hits) == 2
    assert clock.naps == [nap]
    assert asked.transport.usage.retries == 1


def test_waits_double_and_end_in_an_error_that_caches_nothing(lm, tmp_path, clock):
    with ApiServer(lm, faults=[(500, {})] * 4 + [None]) as server:
        asked = client(server, tmp_path, clock, attempts=4)
        with pytest.raises(ApiError, match="no answer after 4 attempts; last: HTTP 500") as caught:
            asked.chat("Hi")
        assert caught.value.status == 500
        assert clock.naps == [1.0, 2.0, 4.0]
        assert not list(tmp_path.rglob("*.json"))
        assert asked.chat("Hi").text  # the same request later is asked anew


def test_some_errors_are_final_at_once(lm, tmp_path, clock):
    faults = [
        ((400, {}), "HTTP 400"),
        ((429, {"code": "insufficient_quota"}), "insufficient_quota"),
        ((429, {"Retry-After": "9999"}), "asks to wait 9999 s"),
    ]
    for fault, message in faults:
        with ApiServer(lm, faults=[fault]) as server:
            with pytest.raises(ApiError, match=message):
                client(server, tmp_path, clock).chat("Hi")
            assert len(server.hits) == 1


def test_a_dead_server_is_an_error_with_its_address(lm, tmp_path, clock):
    with ApiServer(lm) as server:
        url = server.url
    with pytest.raises(ApiError, match=f"{url}/chat/completions: no answer after 2 attempts"):
        client(server, tmp_path, clock, attempts=2).chat("Hi")


def test_the_cache_answers_again_and_holds_whole_files(lm, tmp_path, clock):
    with ApiServer(lm) as server:
        first = client(server, tmp_path, clock)
        answers = [first.chat(q, 2) for q in ("a", "b", "a")]
        assert len(server.hits) == 2
        again = client(server, tmp_path, clock)
        assert [again.chat(q, 2) for q in ("a", "b", "a")] == answers
        assert len(server.hits) == 2
        again.chat("a", 3)  # another request
        assert len(server.hits) == 3
        assert again.transport.usage.cached == 3
        files = sorted(tmp_path.rglob("*"))
        assert not [f for f in files if f.name.endswith(".part")]
        damaged = next(f for f in files if f.is_file())
        damaged.write_text(damaged.read_text()[:30])
        renewed = client(server, tmp_path, clock)
        assert [renewed.chat(q, n) for q, n in (("a", 2), ("b", 2), ("a", 3))][:2] == answers[:2]
        assert len(server.hits) == 4


def test_requests_and_tokens_are_limited(lm, tmp_path, clock):
    with ApiServer(lm) as server:
        asked = client(server, tmp_path / "a", clock, requests_per_minute=30)
        for question in "abc":
            asked.chat(question, 1)
        assert clock.naps == pytest.approx([2.0, 2.0])
        clock.naps.clear()
        asked = client(server, tmp_path / "b", clock, tokens_per_minute=60)
        asked.chat("a", 1)
        used = asked.transport.usage.prompt_tokens + asked.transport.usage.completion_tokens
        asked.chat("b", 1)
        assert clock.naps == pytest.approx([float(used)])


def test_tokens_and_cost_are_counted_and_limited(lm, tmp_path, clock):
    with ApiServer(lm) as server:
        asked = client(server, tmp_path, clock, prices=(1.0, 10.0), most=1e-4)
        asked.chat("a", 5)
        usage = asked.transport.usage
        assert usage.completion_tokens == 5
        assert usage.cost == pytest.approx((usage.prompt_tokens + 50) / 1e6)
        asked.chat("b", 5)
        with pytest.raises(ApiError, match=r"has reached the limit 0\.0001"):
            asked.chat("c", 5)
        assert asked.record()["cost"] == pytest.approx(usage.cost, abs=1e-6)
    with ApiServer(lm, EVERYTHING - {"usage"}) as server:
        asked = client(server, tmp_path, clock)
        asked.chat("a", 5)
        assert asked.transport.usage.unreported == 1


def test_several_workers_give_the_same_answers_in_order(lm, tmp_path, clock):
    questions = [f"question {n}" for n in range(12)]
    with ApiServer(lm) as server:
        one = client(server, tmp_path / "a", clock).map(lambda q: None, [], 4)
        alone = client(server, tmp_path / "a", clock)
        many = client(server, tmp_path / "b", clock)
        expected = alone.map(alone.chat, questions)
        assert many.map(many.chat, questions, workers=4) == expected
    assert one == []


def test_the_key_is_sent_and_nowhere_kept(lm, tmp_path, clock, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("KGPROBE_TEST_KEY", KEY)
    with ApiServer(lm, key=KEY, faults=[(500, {"key": KEY}), "cut"]) as server:
        asked = client(server, tmp_path, clock)
        asked.capabilities()
        asked.chat(f"A prompt that holds {KEY} by accident", 2)
        url = server.url
    with ApiServer(lm, key="another") as server:
        refused = client(server, tmp_path, clock)
        with pytest.raises(ApiError, match="KGPROBE_TEST_KEY is set") as caught:
            refused.chat("Hi")
    stored = "".join(f.read_text() for f in tmp_path.rglob("*") if f.is_file())
    written = caplog.text + str(caught.value) + repr(asked.endpoint) + repr(vars(asked))
    written += repr(vars(asked.transport)) + json.dumps(asked.record()) + url
    assert "[key]" in stored  # the accident was met
    assert "HTTP 500" in caplog.text
    assert KEY not in stored + written
    assert "Bearer" not in stored + written.replace("Bearer [key]", "")


def test_a_missing_key_is_named(lm, tmp_path, clock, monkeypatch):
    monkeypatch.delenv("KGPROBE_TEST_KEY", raising=False)
    with ApiServer(lm, key=KEY) as server:
        asked = client(server, tmp_path, clock)
        with pytest.raises(ApiError, match=r"HTTP 401.*KGPROBE_TEST_KEY is not set"):
            asked.chat("Hi")


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://x/v1", "https://u:p@x/v1", "https://x/?k=1"]
)
def test_base_urls_are_checked(url):
    with pytest.raises(ValueError, match="base URL"):
        Endpoint(url, "m")
