"""Sentences scored by a vLLM server, exercised with a stand-in (vllm_standin.py)."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from kgprobe.probes.api.client import Client
from kgprobe.probes.api.http import ApiError, Endpoint
from kgprobe.probes.api.served import longest
from kgprobe.probes.jobs.fill import answerer
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.models.batching import Ragged
from kgprobe.probes.models.load import ModelError, ModelSpec, load_model
from kgprobe.settings import Api
from tests.contract.api_server import ApiServer
from tests.contract.vllm_standin import VllmStandIn
from tests.unit import test_recheck
from tests.unit.test_answers import Bar
from tests.unit.tiny_models import tiny

frames = test_recheck.frames


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tiny("llama", double=False)
    found = tmp_path_factory.mktemp("served") / "model"
    made.model.save_pretrained(found)
    made.tokenizer.save_pretrained(found)
    return found


@pytest.fixture
def spec(folder) -> ModelSpec:
    return ModelSpec("m", "causal", f"folder:{folder}", bos="forced", backend="vllm")


def standin(folder: Path, shift: float = 0.0) -> VllmStandIn:
    made = load_model(ModelSpec("m", "causal", f"folder:{folder}", bos="forced"), "cpu")
    return VllmStandIn(made.model, made.tokenizer, 128, shift)


def scores(spec, frames, server, tmp_path, monkeypatch, **more):
    with ApiServer(None, answers=server) as running:
        monkeypatch.setenv("KGPROBE_API_URL", running.url)
        api = Api(cache=str(tmp_path / "cache"), workers=2)
        return score_frame(
            spec, *frames, "sentence", Bar, load=lambda own: answerer(own, api), **more
        )


def test_a_server_gives_the_numbers_of_the_engine(
    spec,
    folder,
    frames,
    tmp_path,
    monkeypatch,
):
    plain = dataclasses.replace(spec, backend="")
    expected, _ = score_frame(plain, *frames, "sentence", Bar)
    server = standin(folder)
    found, record = scores(spec, frames, server, tmp_path, monkeypatch, compared=5)
    assert found.height == expected.height > 0
    keys = ["item", "template", "candidate", "count", "answer_count"]
    assert found.select(keys).equals(expected.select(keys))
    for name in ("sum", "answer_sum", "continuation_sum"):
        assert found[name].to_numpy() == pytest.approx(expected[name].to_numpy(), abs=1e-4)
    assert record["backend"] == "vllm"
    assert record["api"]["requests"] == server.requests > 0
    told = record["agreement"]
    assert (told["questions"], told["agrees"], told["equal_best"]) == (5, True, 1.0)
    assert 0 < told["largest"] < 1e-4
    # none was asked that is equal to another one or its beginning
    sent = [tuple(ids) for ids in server.prompts]
    assert sent
    assert not any(a != b and b[: len(a)] == a for a in sent for b in sent)
    assert len(set(sent)) == len(sent)


def test_a_server_of_other_weights_is_recorded_as_such(
    spec,
    folder,
    frames,
    tmp_path,
    monkeypatch,
    caplog,
):
    server = standin(folder, shift=0.1)
    _, record = scores(spec, frames, server, tmp_path, monkeypatch, compared=4)
    assert record["agreement"]["agrees"] is False
    assert record["agreement"]["largest"] > 0.1
    assert "its numbers are marked" in caplog.text


def test_only_the_longest_of_each_family_is_asked():
    rows = [[1, 2], [1, 2, 3], [1, 3], [1, 2, 3], [1], [5]]
    asked, behind = longest(Ragged.of([np.array(r) for r in rows]))
    for sequence, place in enumerate(behind):
        assert rows[asked[place]][: len(rows[sequence])] == rows[sequence]
    assert sorted(map(tuple, (rows[i] for i in asked))) == [(1, 2, 3), (1, 3), (5,)]


def test_the_methods_that_read_a_model_itself_refuse_a_server(spec):
    with pytest.raises(ModelError, match="m: backend 'vllm' reads sentences alone, on a server"):
        load_model(spec)


def test_without_a_server_it_is_said_what_to_set(spec, monkeypatch, tmp_path):
    monkeypatch.delenv("KGPROBE_API_URL", raising=False)
    with pytest.raises(ApiError, match="m: set the environment variable KGPROBE_API_URL"):
        answerer(spec, Api(cache=str(tmp_path)))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda c: c.pop(), "2 prompts, but the choices are"),
        (lambda c: c[0].update(index=1), r"choices with index \[1\]"),
        (lambda c: c[0].update(prompt_logprobs=None), "prompt_logprobs is None; expected list"),
        (lambda c: c[0]["prompt_logprobs"].pop(), "2 entries for 3 ids"),
        (lambda c: c[0]["prompt_logprobs"].__setitem__(2, {"9": {"logprob": -1}}), "7 is None"),
        (lambda c: c[0]["prompt_logprobs"][1]["6"].update(logprob=-9999.0), "none at all"),
        (lambda c: c[0]["prompt_logprobs"][1]["6"].update(logprob=0.5), "expected a finite number"),
    ],
)
def test_answers_of_another_form_are_refused(tmp_path, spoil, message):
    class Spoilt:
        def answer(self, path, body):
            entries = [None, {"6": {"logprob": -1.0}}, {"7": {"logprob": -2.0}}]
            choices = [{"index": n, "prompt_logprobs": list(entries)} for n in range(2)]
            choices = [
                {
                    **c,
                    "prompt_logprobs": [e and {k: dict(v) for k, v in e.items()} for e in entries],
                }
                for c in choices
            ]
            spoil(choices)
            return 200, {"choices": choices}

    with ApiServer(None, answers=Spoilt()) as running:
        client = Client(Endpoint(running.url, "m"), tmp_path)
        with pytest.raises(ApiError, match=message):
            client.logprobs([[5, 6, 7], [5, 6, 7]])
