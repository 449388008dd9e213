"""Advice for when the Hugging Face hub does not provide a model, chosen by the hub's error.

transformers converts every such error into an OSError with its own text; the hub's own error,
which says what happened, is in the chain of causes.
"""

import os
from collections.abc import Iterator

from huggingface_hub import constants, errors
from huggingface_hub.errors import HfHubHTTPError

PAGE = "https://huggingface.co/{}"
#: download by hand on a machine with a network: it fills the cache, or the folder is the source
FETCH = "hf download {} --revision {} --local-dir FOLDER"
#: prints the newest commit
NEWEST = "python -c \"import huggingface_hub as hub; print(hub.model_info('{}').sha)\""
#: HTTP statuses after which the same request may succeed later
PASSING = (429, 500, 502, 503, 504)


class ModelError(RuntimeError):
    """Raised when a model cannot be loaded or used; the message names model, source and remedy."""


def remedy(repository: str, revision: str, error: BaseException) -> str:
    """Explain why a download of `repository` at `revision` failed, and what to do; never empty.

    The cases are distinguished by the classes of huggingface_hub in the chain of `error`: a missing
    revision, gated access, a missing repository, a file missing in the revision, no network, a busy
    hub.
    """
    page, fetch = PAGE.format(repository), FETCH.format(repository, revision)
    for cause in _chain(error):
        match cause:
            case errors.RevisionNotFoundError():
                return (
                    f"{repository} has no revision {revision}: write another full commit hash into "
                    f"the column `revision` of models.tsv; {page}/commits/main lists them, and\n"
                    f"  {NEWEST.format(repository)}\n"
                    "prints the newest. Its weights may be others than those of published numbers"
                )
            case errors.GatedRepoError():
                return (
                    f"access to {repository} is gated: accept its terms at {page} and "
                    "export HF_TOKEN=<a token of that account>; or write folder:PATH as its source "
                    f"and get the folder with\n  {fetch}"
                )
            case errors.DisabledRepoError():
                return f"{repository} was disabled, see {page}; write folder:PATH where you have it"
            case errors.RepositoryNotFoundError():
                return (
                    f"the hub knows no {repository}, or it is private, or HF_TOKEN is wrong: check "
                    f"the name at {page}; export HF_TOKEN=<a token that may read it>; or write "
                    "folder:PATH as its source"
                )
            case errors.OfflineModeIsEnabled() | errors.LocalEntryNotFoundError():
                return _offline(repository, revision, fetch)
            case errors.EntryNotFoundError():
                return (
                    f"{repository} at {revision} lacks a file that is needed, see "
                    f"{page}/tree/{revision}: pin a revision that has it in models.tsv"
                )
            case HfHubHTTPError() if cause.response.status_code in PASSING:
                status = cause.response.status_code
                return (
                    f"the hub answered with status {status}: run again later; what was "
                    "downloaded stays in the cache"
                )
            case HfHubHTTPError():
                status = cause.response.status_code
                return f"the hub answered with status {status}: check {page} and HF_TOKEN"
            case ConnectionError() | TimeoutError():
                return _offline(repository, revision, fetch)
    return (
        f"check the name and revision of {repository} ({page}/tree/{revision}); without a network "
        f"the model must be in the cache, {constants.HF_HUB_CACHE}"
    )


def _offline(repository: str, revision: str, fetch: str) -> str:
    """Advise on a model that is neither reachable on the network nor complete in the cache."""
    is_off = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    why = "HF_HUB_OFFLINE is set" if is_off else "the hub cannot be reached"
    return (
        f"{why}, and the cache {constants.HF_HUB_CACHE} lacks {repository} at {revision}: "
        f"{'unset it' if is_off else 'go online'}, or where there is a network run\n  {fetch}\n"
        "bring FOLDER here and write folder:FOLDER as its source in models.tsv"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, the latest first."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
