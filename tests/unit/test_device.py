"""Where a model works: the setting, what is refused, and that a processor stays on one thread."""

import pytest
import torch

from kgprobe.probes.models import device
from kgprobe.probes.models.device import VARIABLE, DeviceError


@pytest.fixture
def threads():
    """Threads as they were, afterwards."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("is_there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_auto_takes_an_accelerator_where_there_is_one(monkeypatch, is_there, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: is_there)
    for value in (None, "", "auto"):
        monkeypatch.delenv(VARIABLE, raising=False)
        if value is not None:
            monkeypatch.setenv(VARIABLE, value)
        assert device.choose_device().type == expected
    monkeypatch.setenv(VARIABLE, "cpu")
    assert device.choose_device().type == "cpu"
    monkeypatch.setenv(VARIABLE, "auto")
    assert device.choose_device("cpu").type == "cpu"


def test_what_is_not_there_is_refused_with_what_would_be_right(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv(VARIABLE, "cuda")
    with pytest.raises(DeviceError, match="sees no CUDA device; write `auto` or `cpu`"):
        device.ready()
    with pytest.raises(DeviceError, match="'gpu'; valid: auto, cpu, cuda"):
        device.choose_device("gpu")


def test_a_processor_works_with_one_thread_and_an_accelerator_with_few(monkeypatch, threads):
    torch.set_num_threads(2)
    monkeypatch.setenv(VARIABLE, "cpu")
    assert device.ready().type == "cpu"
    assert torch.get_num_threads() == 1
    assert device.card(device.choose_device()) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device.os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setenv(VARIABLE, "cuda")
    backends = torch.backends.cuda.matmul, torch.backends.cudnn
    for backend in backends:
        backend.allow_tf32 = True
    assert device.ready().type == "cuda"
    assert torch.get_num_threads() == device.THREADS
    assert [backend.allow_tf32 for backend in backends] == [False, False]
