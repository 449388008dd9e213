"""Models that the hub does not provide: errors state the cause, the location and the remedy.

The errors are huggingface_hub's own, raised when transformers requests files; the assertions check
what a user reads after transformers has wrapped them.
"""

import re

import httpx2 as httpx
import pytest
import transformers.utils.hub
from huggingface_hub import errors

from kgprobe.probes.models import hub
from kgprobe.probes.models.load import ModelError, ModelSpec, load_model, outline

REPOSITORY, COMMIT = "some-org/some-model", "0123456789" * 4
SPEC = ModelSpec("mine", "causal", f"hub:{REPOSITORY}", COMMIT, bos="none")


def response(status: int) -> httpx.Response:
    """Build a response of the hub."""
    asked = httpx.Request("HEAD", f"https://huggingface.co/{REPOSITORY}/resolve/{COMMIT}/x.json")
    return httpx.Response(status, request=asked)


def refuse(monkeypatch, error):
    """Make every request for a file of the hub raise an error."""

    def fail(*_, **__):
        raise error

    for name in ("hf_hub_download", "snapshot_download"):
        monkeypatch.setattr(transformers.utils.hub, name, fail)


CASES = [
    (
        errors.RevisionNotFoundError("404 Client Error.", response=response(404)),
        f"{REPOSITORY} has no revision {COMMIT}: write another full commit hash into the column "
        "`revision` of models.tsv",
        "model_info('some-org/some-model').sha",
    ),
    (
        errors.GatedRepoError("403 Client Error.", response=response(403)),
        f"access to {REPOSITORY} is gated: accept its terms at https://huggingface.co/{REPOSITORY}",
        "export HF_TOKEN=",
    ),
    (
        errors.RepositoryNotFoundError("401 Client Error.", response=response(401)),
        f"the hub knows no {REPOSITORY}, or it is private, or HF_TOKEN is wrong",
        "folder:PATH",
    ),
    (
        errors.DisabledRepoError("403 Client Error.", response=response(403)),
        f"{REPOSITORY} was disabled",
        "folder:PATH",
    ),
    (
        errors.LocalEntryNotFoundError("An error happened while trying to locate the file"),
        "the hub cannot be reached, and the cache",
        f"hf download {REPOSITORY} --revision {COMMIT} --local-dir FOLDER",
    ),
    (
        errors.OfflineModeIsEnabled("Cannot reach: offline mode is enabled."),
        f"lacks {REPOSITORY} at {COMMIT}",
        "folder:FOLDER",
    ),
    (
        errors.HfHubHTTPError("429 Client Error.", response=response(429)),
        "the hub answered with status 429: run again later",
        "cache",
    ),
    (
        errors.HfHubHTTPError("418 Client Error.", response=response(418)),
        "the hub answered with status 418: check",
        "HF_TOKEN",
    ),
]


@pytest.mark.parametrize("ask", [load_model, outline])
@pytest.mark.parametrize(
    ("error", "what", "remedy"), CASES, ids=lambda c: type(c).__name__ if c in CASES else None
)
def test_every_hub_error_suggests_a_remedy(monkeypatch, ask, error, what, remedy):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    refuse(monkeypatch, error)
    with pytest.raises(ModelError) as raised:
        ask(SPEC)
    message = str(raised.value)
    assert message.startswith("mine: ")
    assert what in message
    assert remedy in message
    assert REPOSITORY in message.splitlines()[0]


WRAPPED = OSError("You are trying to access a gated repo.")
WRAPPED.__context__ = errors.GatedRepoError("403", response=response(403))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.RemoteEntryNotFoundError("404 Client Error.", response=response(404)),
         rf"^{REPOSITORY} at {COMMIT} lacks a file that is needed, see https://huggingface.co/"
         rf"{REPOSITORY}/tree/{COMMIT}: pin a revision that has it in models.tsv$"),
        (errors.OfflineModeIsEnabled("offline"), "^HF_HUB_OFFLINE is set, and .*unset it"),
        (WRAPPED, "is gated"),
        (ValueError("no tokenizer"),
         f"https://huggingface.co/{REPOSITORY}/tree/{COMMIT}.* the cache, "),
    ],
)  # fmt: skip
def test_the_cause_is_found_also_inside_other_errors(monkeypatch, error, told):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert re.search(told, hub.remedy(REPOSITORY, COMMIT, error))
