"""Device selection: the setting, errors, and one thread on a CPU."""

import pytest
import torch

from kgprobe.probes.models import device
from kgprobe.probes.models.device import VARIABLE, DeviceError


@pytest.fixture
def threads():
    """Restore the number of threads after the test."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("is_there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_auto_prefers_an_accelerator(monkeypatch, is_there, expected):
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


def test_missing_devices_raise_with_the_available_ones(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv(VARIABLE, "cuda")
    with pytest.raises(DeviceError, match="sees no CUDA device; write `auto` or `cpu`"):
        device.ready()
    with pytest.raises(DeviceError, match="'gpu'; valid: auto, cpu, cuda"):
        device.choose_device("gpu")


def test_cpu_uses_one_thread_and_an_accelerator_few(monkeypatch, threads):
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
