"""The client against a real local server: answers, faults, cache, limits, and the key."""

import contextlib
import json
import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kgprobe.probes.api.client import Client, _echoed, open_client
from kgprobe.probes.api.http import ApiEndpoint, ApiError, _received
from kgprobe.probes.jobs.forms import Form
from kgprobe.probes.jobs.methods.fill import fill_frame
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.predict import FillItem, FillSettings
from kgprobe.settings.probes import Api, Fill
from tests.contract.api_server import EVERYTHING, Answers, ApiServer, tiny_language_model
from tests.unit.study_frames import benchmark

KEY = "sk-secret-0123456789"
TEXT = "The capital of France is Paris."


@pytest.fixture(scope="module")
def lm():
    return tiny_language_model()


def client(server, folder, clock, **options):
    endpoint = ApiEndpoint(server.url, "tiny", Api(key_variable="KGPROBE_TEST_KEY", **options))
    return Client(endpoint, folder, now=clock.now, sleep=clock.sleep)


@pytest.fixture
def serve(lm, tmp_path, clock):
    """Return a function that starts a server and returns it with a client, whose answers are below
    `folder`; `late` are its faults from the moment when the client knows its capabilities."""
    with contextlib.ExitStack() as servers:

        def start(offers=EVERYTHING, folder="", faults=(), key="", answers=None, late=(), **limits):
            server = servers.enter_context(ApiServer(lm, offers, faults, key, answers))
            asked = client(server, tmp_path / folder, clock, **limits)
            if late:
                asked.capabilities()
                server.faults = late
            return server, asked

        yield start


def literal(lm, text):
    """Return the sum of log-probabilities of a text after BOS."""
    ids = lm.tokenizer(text, add_special_tokens=False)["input_ids"]
    total = 0.0
    for j, token in enumerate(ids):
        with torch.no_grad():
            row = lm.model(torch.tensor([[lm.bos, *ids[:j]]])).logits[0, -1].double()
        total += float(torch.log_softmax(row, 0)[token])
    return total


@pytest.mark.parametrize("form", ["echo", "field"])
def test_prompt_tokens_sum_to_the_models_log_likelihood(serve, lm, form):
    offers = EVERYTHING - {"echo", "field"} | {form}
    _, asked = serve(offers)
    assert asked.capabilities().prompt_logprobs == form
    tokens = asked.prompt_tokens(TEXT)
    assert "".join(t.text for t in tokens) == TEXT
    assert [TEXT[t.start : t.start + len(t.text)] for t in tokens] == [t.text for t in tokens]
    assert sum(t.logprob for t in tokens) == pytest.approx(literal(lm, TEXT), abs=1e-4)


@pytest.mark.parametrize("form", ["echo", "field"])
def test_a_control_token_in_a_prompt_is_refused(serve, form):
    offers = EVERYTHING - {"echo", "field"} | {form}
    _, asked = serve(offers)
    for text in ("The capital is </s>Paris.", "Paris <mask> is where it is."):
        with pytest.raises(ApiError, match=r"as a control token|are not those of"):
            asked.prompt_tokens(text)
    assert asked.prompt_tokens("It is <|im_end|>Paris.")  # not a token of this model


class Vllm(Answers):
    """Offsets are cumulative token lengths, with U+FFFD for partial characters; BOS counts as a
    token but is not in the text."""

    bos = ("<s>",)

    def _completion(self, body):
        status, answer = super()._completion(body)
        if body.get("echo"):
            lists, ids = answer["choices"][0]["logprobs"], self.lm.encode(body["prompt"])[0]
            pieces = [self.lm.tokenizer.decode([i]) for i in ids]
            tokens = [*self.bos, *pieces, *lists["tokens"][len(ids) :]]
            lists["text_offset"] = [len("".join(tokens[:n])) for n in range(len(tokens))]
            for name in ("token_logprobs", "top_logprobs"):
                lists[name] = [*[None] * len(self.bos), *lists[name]]
            lists["tokens"] = tokens
        return status, answer


class NoBos(Vllm):
    bos = ()


@pytest.mark.parametrize("server_kind", [Vllm, NoBos])
def test_cumulative_offsets_are_mapped_to_the_text_or_refused(serve, lm, server_kind):
    _, asked = serve(answers=server_kind(lm, EVERYTHING - {"field"}))
    assert asked.capabilities().prompt_logprobs == "echo"
    tokens = asked.prompt_tokens(TEXT)
    for text in ("Zürich is in Asia.", "It is Zü"):  # ü is two tokens
        with pytest.raises(ApiError, match="its tokens do not cover"):
            asked.prompt_tokens(text)
    assert [TEXT[t.start : t.start + len(t.text)] for t in tokens] == [t.text for t in tokens]
    assert "".join(t.text for t in tokens) == TEXT
    assert sum(t.logprob for t in tokens) == pytest.approx(literal(lm, TEXT), abs=1e-4)


def test_unreadable_prompt_log_probabilities_are_not_used(serve):
    """An example is tokens without their spaces, which do not add up to the text."""

    def bare(answer):
        lists = answer["choices"][0]["logprobs"]
        lists["tokens"] = [token.strip() for token in lists["tokens"]]
        return answer

    assert serve(faults=[bare])[1].capabilities().prompt_logprobs == "field"


class LlamaCpp(Answers):
    """Server that refuses `echo` by 500, ignores `prompt_logprobs` and answers completions as
    chats."""

    def _completion(self, body):
        if body.get("echo"):
            return 500, {"error": {"code": 500, "message": "Only no echo is supported"}}
        status, answer = super()._completion(
            {key: value for key, value in body.items() if key != "prompt_logprobs"}
        )
        if lists := answer["choices"][0].get("logprobs"):
            columns = (lists[name] for name in ("tokens", "token_logprobs", "top_logprobs"))
            answer["choices"][0]["logprobs"] = {"content": [
                {"token": token, "logprob": value,
                 "top_logprobs": [{"token": t, "logprob": p} for t, p in top.items()]}
                for token, value, top in zip(*columns, strict=True)
            ]}  # fmt: skip
        return status, answer


def test_a_llama_cpp_server_gets_only_supported_requests(serve, lm, clock):
    expected = serve(folder="a")[1].complete("The capital", 3, top=2)
    _, asked = serve(answers=LlamaCpp(lm), folder="b")
    assert tuple(vars(asked.capabilities()).values()) == (True, True, "", True, True)
    answer = asked.complete("The capital", 3, top=2)
    assert not clock.naps  # refused features are not requested again
    assert answer.text == expected.text
    assert [(t.text, t.logprob, t.top) for t in answer.tokens] == [
        (t.text, t.logprob, t.top) for t in expected.tokens
    ]


def test_a_completion_is_greedy_with_its_alternatives(serve, lm):
    answer = serve()[1].complete("The capital", 3, top=2)
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
def test_capabilities_are_detected_once(serve, tmp_path, clock, offers, expected):
    server, asked = serve(offers)
    found = asked.capabilities()
    assert tuple(vars(found).values()) == expected
    count = len(server.hits)
    assert client(server, tmp_path, clock).capabilities() == found
    assert len(server.hits) == count <= 6


@pytest.mark.parametrize("odd", [True, 7, "x", [], [["x"]], {"content": 7, "token_logprobs": "x"}])
def test_log_probabilities_in_another_format_are_not_used(serve, odd):
    def changed(answer):
        for choice in answer.get("choices", ()):
            choice |= {"logprobs": odd, "prompt_logprobs": odd}
        return answer

    assert serve(faults=[changed] * 6)[1].capabilities().prompt_logprobs == ""


@pytest.mark.parametrize("kept", [b"\xff", b'{"response": "abc"}', b'{"response": {"chat": true}}'])
def test_an_unreadable_cached_answer_is_requested_again(serve, tmp_path, clock, kept):
    server, asked = serve()
    first = asked.capabilities()
    for path in tmp_path.rglob("*.json"):
        path.write_bytes(kept)
    assert client(server, tmp_path, clock).capabilities() == first


def test_a_server_without_supported_features_is_refused(serve):
    message = r"neither completions nor chat .*; it says .*HTTP 404: .*no such path"
    with pytest.raises(ApiError, match=message):
        serve(frozenset())[1].capabilities()


def test_sentences_need_prompt_logprobs(serve):
    with pytest.raises(ApiError, match="use choice instead"):
        serve(frozenset({"chat"}))[1].prompt_tokens(TEXT)


@pytest.mark.parametrize(
    ("fault", "nap"),
    [
        ((429, {"Retry-After": "7"}), 7.0),
        ((429, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}), 0.0),
        ((500, {}), 1.0),
        ((503, {"Retry-After": "soon"}), 1.0),
        ("cut", 1.0),
        ("garbage", 1.0),
        ("nested", 1.0),
        ("list", 1.0),
    ],
)
def test_faults_are_survived(serve, clock, fault, nap):
    expected = serve(folder="a")[1].chat("Hi", 3, top=1)
    server, asked = serve(faults=[fault], folder="b")
    assert asked.chat("Hi", 3, top=1) == expected
    assert len(server.hits) == 2
    assert clock.naps == [nap]
    assert asked.transport.usage.retries == 1


def test_waits_double_until_an_error_and_nothing_is_cached(serve, tmp_path, clock):
    _, asked = serve(faults=[(500, {})] * 4 + [None], attempts=4)
    with pytest.raises(ApiError, match="no answer after 4 attempts; last: HTTP 500") as caught:
        asked.chat("Hi")
    assert caught.value.status == 500
    assert clock.naps == [1.0, 2.0, 4.0]
    assert not list(tmp_path.rglob("*.json"))
    assert asked.chat("Hi").text  # the same request is sent again later


def error_bodies(error, **more):
    """Return error bodies that servers and proxies send with status 200."""
    return lambda answer: {"error": error, **more}


IN_A_CHOICE = {"choices": [{"finish_reason": "error", "error": {"message": "overloaded"}}]}


@pytest.mark.parametrize(
    "fault",
    [
        error_bodies({"message": "overloaded"}),
        error_bodies("Unexpected endpoint or method. Returning 200 anyway"),
        error_bodies({"message": "slow down", "code": 429}, choices=[]),
        lambda answer: {**answer, "error": {"message": "upstream", "code": "502"}},
        lambda answer: {"object": "error", "message": "overloaded", "code": 50001},
        lambda answer: IN_A_CHOICE,
    ],
)
def test_an_error_with_status_200_is_retried_and_never_cached(serve, tmp_path, clock, fault):
    expected = serve(folder="a")[1].chat("Hi", 3)
    server, asked = serve(faults=[fault, None], folder="b")
    assert asked.chat("Hi", 3) == expected
    assert len(server.hits) == 2
    assert clock.naps == [1.0]
    server, asked = serve(faults=[fault, fault, None], folder="c", attempts=2)
    with pytest.raises(ApiError, match=r"no answer after 2 attempts; last: HTTP \d+: \{"):
        asked.chat("Hi", 3)
    assert not list((tmp_path / "c").rglob("*.json"))
    assert asked.chat("Hi", 3) == expected  # sent again


def test_a_redirect_is_refused_and_the_key_is_not_forwarded(serve):
    elsewhere, _ = serve()
    onward = {"Location": f"{elsewhere.url}/completions"}
    told = f"HTTP 307: redirected to {elsewhere.url}/completions; expected"
    with pytest.raises(ApiError, match=told) as caught:
        serve(faults=[(307, onward)] * 9)[1].prompt_tokens(TEXT)
    assert caught.value.status == 307
    assert not elsewhere.hits


@pytest.mark.parametrize(
    ("fault", "status", "message"),
    [
        ((400, {}), 400, "HTTP 400"),
        ((429, {"code": "insufficient_quota"}), 429, "insufficient_quota"),
        ((429, {"Retry-After": "9999"}), 0, "asks to wait 9999 s"),
        # an error with status 200 is handled as its stated status
        (error_bodies({"message": "too long", "code": 400}), 400, "HTTP 400"),
        (error_bodies({"message": "no", "code": "401"}), 401, "KGPROBE_TEST_KEY is"),
        (error_bodies({"message": "no", "code": "insufficient_quota"}), 200, "insufficient_quota"),
    ],
)
def test_some_errors_are_final_at_once(serve, tmp_path, fault, status, message):
    server, asked = serve(faults=[fault])
    with pytest.raises(ApiError, match=message) as caught:
        asked.chat("Hi")
    assert caught.value.status == status
    assert len(server.hits) == 1
    assert not list(tmp_path.rglob("*.json"))


def test_an_error_cached_by_an_earlier_version_is_requested_again(serve, tmp_path, clock, caplog):
    server, asked = serve()
    expected = asked.chat("Hi", 3)
    (kept,) = tmp_path.rglob("*.json")
    for response in ({"error": {"message": "overloaded"}}, {"choices": []}, {}):
        kept.write_text(json.dumps({**json.loads(kept.read_text()), "response": response}))
        asked = client(server, tmp_path, clock)
        assert asked.chat("Hi", 3) == expected
        assert asked.transport.usage.cached == 0
    assert client(server, tmp_path, clock).chat("Hi", 3) == expected
    assert len(server.hits) == 4
    assert "asked again" in caplog.text


def test_a_dead_server_is_an_error_with_its_address(lm, tmp_path, clock):
    with ApiServer(lm) as server:
        url = server.url
    with pytest.raises(ApiError, match=f"{url}/chat/completions: no answer after 2 attempts"):
        client(server, tmp_path, clock, attempts=2).chat("Hi")


def test_the_cache_repeats_answers_and_holds_complete_files(serve, tmp_path, clock):
    server, first = serve()
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


def test_requests_and_tokens_are_limited(serve, tmp_path, clock):
    server, asked = serve(folder="a", requests_per_minute=30)
    for question in "abc":
        asked.chat(question, 1)
    assert clock.naps == pytest.approx([2.0, 2.0])
    clock.naps.clear()
    asked = client(server, tmp_path / "b", clock, tokens_per_minute=60)
    asked.chat("a", 1)
    used = asked.transport.usage.prompt_tokens + asked.transport.usage.completion_tokens
    asked.chat("b", 1)
    assert clock.naps == pytest.approx([float(used)])


def test_tokens_and_cost_are_counted_and_limited(serve):
    _, asked = serve(prices=(1.0, 10.0), most=1e-4)
    asked.chat("a", 5)
    usage = asked.transport.usage
    assert usage.completion_tokens == 5
    assert usage.cost == pytest.approx((usage.prompt_tokens + 50) / 1e6)
    asked.chat("b", 5)
    with pytest.raises(ApiError, match=r"has reached the limit 0\.0001"):
        asked.chat("c", 5)
    assert asked.record()["cost"] == pytest.approx(usage.cost, abs=1e-6)
    _, asked = serve(EVERYTHING - {"usage"})
    asked.chat("a", 5)
    assert asked.transport.usage.unreported == 1


@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize("count", [-1, -(10**9), 10**8, 1.5, "7", True, float("nan"), [3]])
def test_invalid_token_counts_are_refused(serve, tmp_path, name, count):
    def lying(answer):
        return {**answer, "usage": {**answer["usage"], name: count}}

    _, asked = serve(faults=[None, lying], prices=(1.0, 10.0), most=1.0)
    asked.chat("a", 5)
    cost = asked.transport.usage.cost
    with pytest.raises(ApiError, match=f"usage says {name} .*; expected a count from 0 to"):
        asked.chat("b", 5)
    assert asked.transport.usage.cost == cost > 0
    assert len(list(tmp_path.rglob("*.json"))) == 1


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": None}, {"total_tokens": 9}]
)
def test_unreported_usage_is_charged_at_its_maximum(serve, usage):
    silent = [lambda answer: {**answer, "usage": usage}] * 3
    server, asked = serve(faults=silent, prices=(1.0, 10.0), most=1e-4)
    for question in "ab":
        asked.chat(question, 5)
    assert asked.transport.usage.cost >= 2 * 50 / 1e6
    assert asked.transport.usage.unreported == 2
    with pytest.raises(ApiError, match=r"has reached the limit 0\.0001"):
        asked.chat("c", 5)
    assert len(server.hits) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"prices": (-1.0, 1.0)},
        {"prices": (float("nan"), 1.0)},
        {"prices": (1.0, 1.0), "most": float("inf")},
        {"prices": (1.0, 1.0), "most": -1.0},
    ],
)
def test_invalid_prices_and_cost_limits_are_refused(options):
    with pytest.raises(ValueError, match="expected finite numbers"):
        ApiEndpoint("http://127.0.0.1:9/v1", "m", Api(**options))


def within(path, value):
    """Return a fault that sets `path` in the answer's first choice to `value`; `...` deletes it."""

    def changed(answer):
        place = answer["choices"][0]
        for step in path[:-1]:
            place = place[step]
        if value is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return answer

    return changed


NO_LOGPROBS = [float("nan"), float("inf"), -float("inf"), 0.5, "-1", True, {}]
LISTS = ["tokens", "token_logprobs", "top_logprobs", "text_offset"]
COMPLETION = [
    *[(within(["logprobs", "token_logprobs", 1], bad), "log-probability") for bad in NO_LOGPROBS],
    *[(within(["logprobs", "top_logprobs", 1], {"a": bad}), "log-probab") for bad in NO_LOGPROBS],
    (within(["logprobs", "token_logprobs", 0], None), "log-probability None"),
    *[(within(["logprobs", name], [0]), r"\d tokens, but|asked for|token 0 is") for name in LISTS],
    (within(["logprobs", "token_logprobs"], ...), "3 tokens, but token_logprobs"),
    (within(["logprobs", "tokens", 1], 7), "token 1 is 7"),
    (within(["logprobs", "tokens"], 7), "tokens is 7; expected a list"),
    (
        within(["logprobs", "top_logprobs", 1], ["a"]),
        "top_logprobs of token 1 is .*; expected dict",
    ),
    (within(["logprobs"], ...), "no log-probabilities, which were asked for"),
    (within(["text"], ...), "text is None; expected str"),
    (lambda answer: {**answer, "choices": []}, "an answer without choices"),
    (lambda answer: {**answer, "choices": [7]}, "an answer without choices"),
]
CONTENT = ["logprobs", "content", 1]
CHATTED = [
    *[(within([*CONTENT, "logprob"], bad), "log-probability") for bad in [*NO_LOGPROBS, None, ...]],
    *[
        (within([*CONTENT, "top_logprobs"], [{"token": "a", "logprob": bad}]), "log-probability")
        for bad in [*NO_LOGPROBS, None]
    ],
    (within([*CONTENT, "token"], ...), "token is None; expected str"),
    (within(CONTENT, "a"), "top_logprobs is 'a'; expected a list"),
    (within(["logprobs", "content"], 7), "content is 7; expected a list"),
    (within([*CONTENT, "top_logprobs"], {"a": -1.0}), "top_logprobs is .*; expected a list"),
    (within([*CONTENT, "top_logprobs"], ["a"]), "token is None; expected str"),
    (within(["logprobs"], None), "no log-probabilities, which were asked for"),
    (within(["message"], ...), "message is None; expected dict"),
    (within(["message", "content"], ...), "content is None; expected str"),
    (within(["message", "content"], ["text"]), "content is .*; expected str"),
    (lambda answer: {}, "an answer without choices"),
]


def all_zero(answer):
    """Set all prompt log-probabilities to 0, as servers do that do not compute them."""
    choice = (answer.get("choices") or [{}])[0]
    known = choice.get("logprobs") or {}
    if "token_logprobs" in known:
        known["token_logprobs"] = [value and 0.0 for value in known["token_logprobs"]]
    for entry in choice.get("prompt_logprobs") or []:
        for one in (entry or {}).values():
            one["logprob"] = 0.0
    return answer


def without_tokens(some):
    """Return a fault that drops some tokens of the echoed text, as a partial answer does."""

    def changed(answer):
        lists = answer["choices"][0]["logprobs"]
        for name in LISTS:
            del lists[name][some]
        return answer

    return changed


def test_tokens_echoed_before_the_text_are_ignored():
    for whole, tokens, starts in (
        ("<s>Paris is", ["<s>", "Paris", " is"], [0, 3, 8]),
        ("Paris is", ["<s>", "Paris", " is"], [0, 0, 5]),
        ("Paris is", ["<s>", " Paris", " is"], [0, 0, 5]),
        ("Paris is", ["[BOS]", "bytes:\\x50", "aris is"], [0, 0, 1]),
    ):
        lists = {"tokens": tokens, "token_logprobs": [None, -2.0, -1.0], "text_offset": starts}
        inside = _echoed({"text": whole, "logprobs": lists}, "Paris is")
        assert [(t.text, t.logprob) for t in inside] == [(tokens[1], -2.0), (tokens[2], -1.0)]
        assert [t.start for t in inside] == [0, starts[2] - starts[1]]


ECHOED = [
    (all_zero, "are none of a text: all are 0"),
    (within(["logprobs", "token_logprobs", 1], None), "log-probability None"),
    (within(["logprobs", "token_logprobs", 1], float("nan")), "log-probability nan"),
    (within(["logprobs", "text_offset", 0], 3), "its tokens do not cover"),
    (within(["logprobs", "text_offset", 1], 30), "its tokens do not cover"),
    (without_tokens(slice(3, None)), "its tokens do not cover"),
    (without_tokens(slice(2, 4)), "its tokens do not cover"),
    (within(["text"], "another text"), "echo gives 'another text'"),
    (within(["logprobs", "tokens"], []), "0 tokens, but"),
]
FIELD = [
    (all_zero, "are none of a text: all are 0"),
    (within(["prompt_logprobs", 2], None), "lacks the entry of a token"),
    (within(["prompt_logprobs", 2], {"5": {"decoded_token": "The"}}), "log-probability|are not"),
    (within(["prompt_logprobs"], ...), "prompt_logprobs is None; expected list"),
    (within(["prompt_logprobs", 1], {"5": {"logprob": -1.0}}), "decoded_token is None"),
]
ASKS = {
    "complete": (COMPLETION, lambda asked: asked.complete("The capital", 3, top=2)),
    "chat": (CHATTED, lambda asked: asked.chat("Hi", 3, top=2)),
    "echo": (ECHOED, lambda asked: asked.prompt_tokens(TEXT)),
    "field": (FIELD, lambda asked: asked.prompt_tokens(TEXT)),
}


@pytest.mark.parametrize(
    ("ask", "number"), [(name, n) for name, (faults, _) in ASKS.items() for n in range(len(faults))]
)
def test_an_answer_that_violates_the_api_is_refused_and_not_cached(serve, tmp_path, ask, number):
    faults, question = ASKS[ask]
    fault, message = faults[number]
    offers = EVERYTHING - {"echo": {"field"}, "field": {"echo"}}.get(ask, set())
    server, asked = serve(offers)
    asked.capabilities()
    kept = len(list(tmp_path.rglob("*.json")))
    server.faults = [fault]
    hits = len(server.hits)
    with pytest.raises(ApiError, match=message) as caught:
        question(asked)
    assert str(caught.value).startswith(f"{server.url}/")
    assert len(server.hits) == hits + 1  # a repeated request would have the same cost
    assert len(list(tmp_path.rglob("*.json"))) == kept
    assert question(asked) is not None


def test_rounding_and_a_first_token_without_log_probability_are_no_faults(serve):
    server, asked = serve(EVERYTHING - {"field"})
    asked.capabilities()
    server.faults = [
        within(["logprobs", "token_logprobs", 0], None),
        within(["logprobs", "token_logprobs", 0], 1e-6),
        within(["message", "content"], None),
    ]
    assert asked.prompt_tokens(TEXT)[0].logprob is None
    assert asked.complete("The capital", 3, top=2).tokens[0].logprob == 0.0
    assert asked.chat("Hi", 3).text == ""


def test_a_lone_surrogate_is_replaced(serve):
    _, asked = serve(EVERYTHING - {"field"}, late=[within(["text"], "\ud83e crab \U0001f980")])
    for _ in range(2):  # the answer, and what is kept of it
        assert asked.complete("The capital", 3, top=2).text == "\ufffd crab \U0001f980"
    raw = json.dumps({"error": None, "text": "한 \ud83e"}, ensure_ascii=False)
    answer, *_ = _received(SimpleNamespace(status_code=200), raw.encode("utf-8", "surrogatepass"))
    assert answer["text"] == "한 \ufffd"


def test_several_workers_give_the_same_answers_in_order(serve, tmp_path, clock):
    questions = [f"question {n}" for n in range(12)]
    server, alone = serve(folder="a")
    many = client(server, tmp_path / "b", clock)
    expected = alone.map(alone.chat, questions)
    assert many.map(many.chat, questions, workers=4) == expected
    assert alone.map(lambda q: None, [], 4) == []


def test_the_key_is_sent_and_never_stored(serve, tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("KGPROBE_TEST_KEY", KEY)
    server, asked = serve(key=KEY, faults=[(500, {"key": KEY}), "cut"])
    asked.capabilities()
    asked.chat("Hi", 2)
    url = server.url
    with pytest.raises(ApiError, match="KGPROBE_TEST_KEY is set") as caught:
        serve(key="another")[1].chat("Hi")
    stored = "".join(f.read_text() for f in tmp_path.rglob("*") if f.is_file())
    written = caplog.text + str(caught.value) + repr(asked.endpoint) + repr(vars(asked))
    written += repr(vars(asked.transport)) + json.dumps(asked.record()) + url
    assert "[key]" in caplog.text  # for servers that echo the key
    assert "HTTP 500" in caplog.text
    assert stored
    assert KEY not in stored + written
    assert "Bearer" not in stored + written.replace("Bearer [key]", "")


def test_no_fragment_of_a_key_is_printed(serve, monkeypatch):
    monkeypatch.setenv("KGPROBE_TEST_KEY", KEY)
    body = json.dumps({"error": {"message": "injected"}, "x": ""})
    for before in range(500 - len(body) - len(KEY), 500 - len(body) + 3):
        with pytest.raises(ApiError) as caught:
            serve(faults=[(400, {"x": "-" * before + KEY})])[1].chat("Hi")
        assert KEY[:3] not in str(caught.value)


@pytest.mark.parametrize("key", ["EMPTY", "t", "1"])
def test_a_dummy_key_is_a_word_like_any_other(serve, tmp_path, clock, monkeypatch, key):
    """Nothing is redacted: both runs get the same text."""
    monkeypatch.setenv("KGPROBE_TEST_KEY", key)

    def saying(answer):
        choice = answer["choices"][0]
        choice["message"]["content"] = f"the {key} set \ud83d"  # and half of a character
        choice["logprobs"]["content"][0]["token"] = key
        best = choice["logprobs"]["content"][0]["top_logprobs"]
        best[:] = [{"token": key, "logprob": -1.0}, {"token": "a", "logprob": -2.0}]
        return answer

    def echoing(answer):
        best = {f"z{key}": -1.0, f"b{key}": -2.0}  # best first, not by name
        answer["choices"][0]["logprobs"]["top_logprobs"] = [best] * 3
        return answer

    server, first = serve(key=key, faults=[saying, echoing])
    said = first.chat(f"Is {key} empty?", 3, top=2)
    completed = first.complete(f"An {key} set", 3, top=2)
    again = client(server, tmp_path, clock)
    assert again.chat(f"Is {key} empty?", 3, top=2) == said
    assert again.complete(f"An {key} set", 3, top=2) == completed
    assert len(server.hits) == 2
    assert said.text == f"the {key} set \ufffd"
    assert (said.tokens[0].text, said.tokens[0].top[0]) == (key, (key, -1.0))
    assert completed.tokens[0].top == ((f"z{key}", -1.0), (f"b{key}", -2.0))


@pytest.mark.parametrize("key", ["sk-ab\ncd", "sk–ab", "sk\x7fab"])
def test_a_key_invalid_in_a_header_is_refused_and_not_printed(serve, monkeypatch, key):
    monkeypatch.setenv("KGPROBE_TEST_KEY", key)
    message = "KGPROBE_TEST_KEY: the key holds"
    with pytest.raises(ApiError, match=message) as caught:
        serve()[1].chat("Hi")
    assert "sk" not in str(caught.value)


def test_a_missing_key_is_reported(serve, monkeypatch):
    monkeypatch.delenv("KGPROBE_TEST_KEY", raising=False)
    with pytest.raises(ApiError, match=r"HTTP 401.*KGPROBE_TEST_KEY is not set"):
        serve(key=KEY)[1].chat("Hi")


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://x/v1", "https://u:p@x/v1", "https://x/?k=1"]
)
def test_base_urls_are_checked(url):
    with pytest.raises(ValueError, match="base URL"):
        ApiEndpoint(url, "m")


ASKED = [
    FillItem("i1", 0, "The capital of [X] is [Y] .", "Rome"),
    FillItem("i2", 0, "[Y] is the capital of [X] .", "Rome"),
    FillItem("i3", 0, "The capital of [X] is [Y] .", "Rome"),
]


def generated(lm, prompt, tokens):
    """Return the greedy ids after a prompt, one full pass per token."""
    ids = lm.tokenizer(prompt, add_special_tokens=False)["input_ids"]
    found = []
    for _ in range(tokens):
        found.append(int(lm.logprobs([*ids, *found])[-1].argmax()))
    return found


def test_mask_slots_are_filled_by_branching_completions(serve, lm):
    server, asked = serve()
    found = predict.predict(asked, ASKED, 3, FillSettings(most_tokens=4, stops="", workers=2))
    sent = [body for _, body in server.hits if body.get("logprobs") == 5]
    prompt = "The capital of Rome is"
    rows = lm.logprobs(lm.encode(prompt)[0])[-1].topk(3)
    expected = []
    for number, first in enumerate(rows.indices):
        if number == 0:
            ids = generated(lm, prompt, 4)
        else:
            ids = [int(first), *generated(lm, prompt + lm.text(int(first)), 3)]
        expected.append("".join(lm.text(i) for i in ids).strip())
    top = found.top
    whole = (top["item"] == "i1") & (top["position"] == -1)
    assert top["text"][whole].tolist() == list(dict.fromkeys(expected))
    first = (top["item"] == "i1") & (top["position"] == 0)
    assert top["logprob"][first] == pytest.approx(rows.values.tolist(), abs=1e-5)
    assert top["logprob"][whole][0] == pytest.approx(
        float(sum(top["logprob"][(top["item"] == "i1") & (top["rank"] == 1)
                                 & (top["position"] >= 0)])), abs=1e-5
    )  # fmt: skip
    assert set(top["masks"]) == {0}
    assert set(top["token"]) == {-1}
    # equal prompts are sent once; the leading mask slot is left out
    assert len(sent) == 3
    assert found.record["left_out"] == {"mask slot not at the end": 1}
    assert (top["text"][top["item"] == "i3"] == top["text"][top["item"] == "i1"]).all()
    assert not len(found.golds["item"])


def test_answers_have_sixteen_tokens_unless_another_number_is_set(serve):
    server, asked = serve()
    record = predict.predict(asked, ASKED[:1], 1, FillSettings(stops="")).record
    assert [body["max_tokens"] for _, body in server.hits if body["max_tokens"] > 1] == [16]
    assert record["most_tokens"] == 16


def test_answers_of_one_token_need_no_continuation(serve, lm):
    """Servers refuse a request for no token."""
    server, asked = serve()
    found = predict.predict(asked, ASKED[:1], 3, FillSettings(most_tokens=1, stops="")).top
    assert all(body["max_tokens"] for _, body in server.hits)
    tokens = lm.logprobs(lm.encode("The capital of Rome is")[0])[-1].topk(3)
    whole = found["position"] == -1
    texts = [lm.text(int(token)).strip() for token in tokens.indices]
    assert found["text"][whole].tolist() == texts
    assert found["logprob"][whole] == pytest.approx(tokens.values.tolist(), abs=1e-5)


def test_a_phrase_that_ends_after_its_first_token_has_that_token_s_log_probability(serve, lm):
    def ended(answer):
        empty = {name: [] for name in LISTS}
        choice = {**answer["choices"][0], "text": "", "logprobs": empty, "finish_reason": "stop"}
        return {**answer, "choices": [choice]}

    _, asked = serve(late=[lambda answer: answer, ended, ended])
    found = predict.predict(asked, ASKED[:1], 3, FillSettings(most_tokens=4, stops="")).top
    tokens = lm.logprobs(lm.encode("The capital of Rome is")[0])[-1].topk(3)
    whole = found["position"] == -1
    assert found["text"][whole][1:].tolist() == [
        lm.text(int(i)).strip() for i in tokens.indices[1:]
    ]
    assert found["logprob"][whole][1:] == pytest.approx(tokens.values[1:].tolist(), abs=1e-5)


def test_no_phrase_begins_with_an_end_token_or_partial_character(serve):
    best = {" Rome": -1.0, "</s>": -1.1, "<|im_end|>": -1.2, "\ufffd": -1.3, "bytes:\\xe6": -1.4,
            " Pa": -1.5}  # fmt: skip
    server, asked = serve(late=[within(["logprobs", "top_logprobs", 0], best)])
    predict.predict(asked, ASKED[:1], 7, FillSettings(most_tokens=4, stops=""))
    prompts = [body["prompt"] for _, body in server.hits if body["max_tokens"] == 3]
    assert prompts == [f"The capital of Rome is{token}" for token in (" Rome", " Pa")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", ["Paris.", "", None, "P\ufffdris"])
def test_tokens_of_reasoning_are_not_those_of_the_reply(serve, content, field):
    texts = ["<think>", "Paris", ".", "</think>", "\n\n", "Paris", ".", "<|im_end|>"]
    tokens = [{"token": text, "logprob": -1.0 - n} for n, text in enumerate(texts)]

    def reasoned(answer):
        choice = {"message": {"content": content, field: "Paris."}, "logprobs": {"content": tokens}}
        return {**answer, "choices": [choice]}

    _, asked = serve(EVERYTHING - {"completions"}, late=[reasoned])
    tokens = asked.chat("Hi", 8, top=2).tokens
    known = content == "Paris."
    expected = [("Paris", -6.0, 0), (".", -7.0, 5), ("<|im_end|>", -8.0, 6)] * known
    assert [(token.text, token.logprob, token.start) for token in tokens] == expected


def test_a_chat_server_gets_an_instruction_and_gives_one_answer(serve):
    server, asked = serve(frozenset({"chat", "usage"}))
    found = predict.predict(asked, ASKED[:2], 5, FillSettings(most_tokens=3, stops=""))
    messages = [b["messages"][0]["content"] for p, b in server.hits if b["max_tokens"] == 3]
    assert messages == [
        "Replace [MASK] with the most probable words.\nThe capital of Rome is [MASK] .",
        "Replace [MASK] with the most probable words.\n[MASK] is the capital of Rome .",
    ]
    assert found.top["rank"].tolist() == [1, 1]
    assert np.isnan(found.top["logprob"]).all()  # neither returned by the server nor filled in
    assert found.record["asked_by"] == "chat"


def test_the_form_chat_sends_the_question_and_no_instruction(serve):
    made = benchmark({"P1": (["Rome", "Paris"], ["Rome", "Paris"])})
    frames = made["items"], made["candidates"], made["prompts"]
    settings, form = Fill(k=3, most_tokens=3), (Form("chat", 0, 0), None)
    server, asked = serve()
    assert asked.capabilities().completions
    fills, golds, record = fill_frame(asked, *frames, settings, form=form)
    sent = [(path, b) for path, b in server.hits if b.get("max_tokens") == 3]
    assert [path.rpartition("/v1")[2] for path, _ in sent] == ["/chat/completions"] * 2
    messages = [body["messages"] for _, body in sent]
    assert messages == [[{"role": "user", "content": f"S{n} is what?"}] for n in (0, 1)]
    assert record["asked_by"] == "chat"
    assert record["form"] == {"items": 2, "unwritten": 0}
    assert set(fills["template"]) == {0}
    assert not golds.height
    server, asked = serve(frozenset({"completions", "usage"}), folder="other")
    with pytest.raises(ValueError, match="offers no chat; take it out of the row"):
        fill_frame(asked, *frames, settings, form=form)


def test_phrases_end_at_a_stop(serve):
    item = FillItem("i", 0, "The capital of [X] is [Y] .", "Niger")
    _, asked = serve()
    reply = asked.complete("The capital of Niger is", 4, top=5)
    found = predict.predict(asked, [item], 1, FillSettings(most_tokens=4, stops="r"))
    assert reply.text == "trtrtrtr"
    whole = found.top["position"] == -1
    assert found.top["text"][whole].tolist() == ["t"]
    assert found.top["raw"][whole].tolist() == ["trtrtrtr"]
    assert found.top["logprob"][whole][0] == reply.tokens[0].logprob


@pytest.mark.parametrize(
    ("texts", "scored"), [([" Paris", ".", "</s>"], 2), ([" Paris", "</s>"], 2)]
)
def test_an_end_token_is_not_part_of_a_phrase(serve, texts, scored):
    lists = {"tokens": texts, "token_logprobs": [-1.0, -2.0, -4.0][: len(texts)]}
    choice = {"text": "".join(texts).removesuffix("</s>"), "logprobs": lists}
    _, asked = serve(late=[lambda answer: {**answer, "choices": [choice]}])
    found = predict.predict(asked, ASKED[:1], 1, FillSettings()).top
    whole = found["position"] == -1
    assert found["text"][whole] == "Paris"
    # as for local models: up to the token that shows that the answer has ended
    assert found["logprob"][whole] == sum(lists["token_logprobs"][:scored])


def test_a_refused_request_gives_a_missing_answer(serve):
    settings = FillSettings(most_tokens=2, failures="leave_out", instruction="Fill the gap.")
    server, asked = serve(late=[(400, {}), None, None])
    with pytest.raises(ApiError, match="HTTP 400"):
        predict.predict(asked, ASKED[:1], 1, replace(settings, failures="raise"))
    server.faults = [(400, {})]
    found = predict.predict(asked, ASKED[:2], 1, settings)
    assert found.left_out == [("i1", 0, -1, "refused with HTTP 400")]
    assert set(found.top["item"]) == {"i2"}
    with pytest.raises(ApiError, match="HTTP 401"):
        predict.predict(serve(key="k", folder="other")[1], ASKED[:1], 1, settings)


def test_unsupported_requests_of_an_api_are_refused(serve):
    with pytest.raises(ValueError, match="knows no length in tokens; use length free"):
        predict.predict(serve()[1], ASKED, 1, FillSettings(length="gold"))


def test_the_address_of_a_server_comes_from_the_environment(monkeypatch, tmp_path):
    spec = ModelSpec("remote", "api", "api:org/some-model")
    config = Api(
        url_variable="KGPROBE_TEST_URL", key_variable="KGPROBE_TEST_KEY", prices=(1, 2), most=0.5,
        timeout=3, attempts=2, cache=str(tmp_path),
    )  # fmt: skip
    monkeypatch.delenv("KGPROBE_TEST_URL", raising=False)
    with pytest.raises(ApiError, match="remote: set the environment variable KGPROBE_TEST_URL"):
        open_client(spec, config)
    monkeypatch.setenv("KGPROBE_TEST_URL", "http://127.0.0.1:9/v1")
    opened = open_client(spec, config)
    assert opened.endpoint == ApiEndpoint("http://127.0.0.1:9/v1", "org/some-model", config)
