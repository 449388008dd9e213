"""Everything a run is missing is reported before its first job, in one message."""

import socket
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from huggingface_hub import constants, errors

from kgprobe.http import NoAnswerError
from kgprobe.plan import costs, needs
from kgprobe.plan.jobs import PlannedJob
from kgprobe.settings import Settings
from kgprobe.settings.sources import Dbpedia, Dump, Wikidata

ROOT = Path(__file__).parents[2]
COSTS = costs.read(ROOT / "resources/costs.tsv")
MODELS = {
    "small": {"source": "hub:some/small", "kind": "causal", "revision": "0" * 40},
    "terms": {"source": "hub:some/terms", "kind": "causal", "revision": ""},
    "own": {"source": "control:masked", "kind": "masked"},
}
MODELS = {name: {"dtype": "float32", "parameters": "100", **row} for name, row in MODELS.items()}
LIVE = replace(
    Settings(),
    sources=replace(
        Settings().sources,
        wikidata=Wikidata(access="live", endpoint="qlever"),
        dbpedia=Dbpedia(access="live", endpoint="dbpedia"),
        dumps={
            "names": Dump(
                form="names", access="live", file="data/n.nt", url="https://dumps.x/n", snapshot="1"
            )
        },
    ),
)


def job(rule: str, *inputs: str, **wildcards: str) -> PlannedJob:
    path = f"results/x/scores/world_lite/templates/sentence/{rule}.parquet"
    return PlannedJob(rule, wildcards, inputs, (path,), "logs/x/sources/y.log", 0, 0)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No host resolves, the cache is empty and no environment variables are set."""

    def refuse(*_):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    for name in (
        "KGPROBE_CONTACT",
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)


def lacking(*jobs: PlannedJob, settings: Settings = LIVE, memory=None, machine=0):
    return needs.find_missing(settings, jobs, MODELS, COSTS, memory or {}, machine)


ALL = (job("pull_facts", source="wikidata"), job("pull_types", source="dbpedia"),
       job("download_names"), job("probes_small"), job("probes_own"))  # fmt: skip


def test_everything_is_reported_in_one_message(offline, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(needs.shutil, "disk_usage", lambda _: usage(0, 0, 1_000_000))
    with pytest.raises(needs.NeedsError) as error:
        needs.check(*lacking(*ALL, memory={"probes_small": 9000}, machine=8000))
    lines = str(error.value).splitlines()
    assert lines[0] == "before the first job: this run lacks what its jobs need"
    contact, network, disk, memory = lines[1:]
    assert (
        "set `contact:` in the configuration, or the environment variable KGPROBE_CONTACT"
        in contact
    )
    for host in ("dumps.x", "dbpedia.org"):
        assert host in contact
        assert host in network
    assert "huggingface.co" in network
    assert "huggingface.co" not in contact
    assert "no network: none of the host names" in network
    assert "GB will be written to" in disk
    assert "probes_small need more than the 8,000 MB of this machine" in memory


@pytest.mark.parametrize(
    "jobs",
    [
        (job("probes_own"), job("report")),
        (job("pull_facts", "resources/world/wikidata.nt.gz", source="world"),),
        (),
    ],
)
def test_a_run_without_network_access_needs_nothing(offline, jobs):
    assert lacking(*jobs) == ([], [])
    assert needs.check([], []) == ""


@pytest.mark.parametrize("way", ["settings", "environment"])
def test_a_contact_is_enough(offline, monkeypatch, way):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [])
    settings = replace(LIVE, contact="a@b.org" if way == "settings" else "")
    if way == "environment":
        monkeypatch.setenv("KGPROBE_CONTACT", "a@b.org")
    assert lacking(*ALL[:3], settings=settings)[0] == []


def test_a_single_wrong_host_is_reported(offline, monkeypatch):
    def some(name, _):
        if name == "dumps.x":
            raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", some)
    monkeypatch.setenv("KGPROBE_CONTACT", "a@b.org")
    (message,) = lacking(*ALL[:3])[0]
    assert message == "a network: the host name dumps.x cannot be resolved; is it correct?"


def test_behind_a_proxy_only_the_proxy_has_to_resolve(offline, monkeypatch):
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda name, _: asked.append(name))
    monkeypatch.setenv("https_proxy", "http://proxy.site:3128")
    monkeypatch.setenv("KGPROBE_CONTACT", "a@b.org")
    assert lacking(*ALL[:3])[0] == []
    assert set(asked) == {"proxy.site"}


def test_gated_models_need_a_key(offline, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [])
    asked = []

    def answer(url, **_):
        asked.append(url)
        response = requests.Response()
        response.status_code = 401
        if "some/terms" in url:
            raise errors.GatedRepoError("gated", response=response)
        raise errors.RepositoryNotFoundError("the job that loads it says so", response=response)

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", answer)
    (message,) = lacking(job("probes_small"), job("prompts_terms"))[0]
    assert "access to terms (https://huggingface.co/some/terms) is gated" in message
    assert "HF_TOKEN" in message
    assert len(asked) == 2


def test_offline_the_cache_has_to_hold_the_models(offline, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    (message,) = lacking(job("probes_small"), job("probes_terms"))[0]
    assert message.startswith("weights: HF_HUB_OFFLINE is set")
    assert "small, terms" in message


@pytest.mark.parametrize("weights", [(), ("model.safetensors",), ("pytorch_model.bin.index.json",)])
def test_a_cached_configuration_without_weights_is_no_model(offline, monkeypatch, weights):
    def cached(_, name, revision):
        return name if name in ("config.json", *weights) else None

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", cached)
    assert set(needs.outside(LIVE, [job("probes_small")], MODELS).models) == (
        set() if weights else {"small"}
    )


@pytest.mark.parametrize("machine", [0, 9000, 10_000])
def test_sufficient_or_remote_memory_is_not_reported(offline, machine):
    assert lacking(job("probes_own"), memory={"probes_own": 9000}, machine=machine) == ([], [])


def test_a_job_reports_a_missing_network_too():
    reason = socket.gaierror(-3, "Temporary failure in name resolution")
    assert str(NoAnswerError(reason)).startswith("no network: a host name cannot be resolved")
    assert str(NoAnswerError(ConnectionResetError("x"))) == "ConnectionResetError: x"
