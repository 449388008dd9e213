"""Whether a folder, the hub or its cache has a model of some name: told in seconds, without torch.

What imports torch asks this first: most mistakes in a name are found here.
"""

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
import requests
from huggingface_hub import constants, errors

from kgprobe import sheets
from kgprobe.probes.models import hub

#: the sheet of models, the user's own first
MODELS = "config/models.tsv"
#: any of these holds the weights, or the tokenizer, of a model's folder
WEIGHTS = ("*.safetensors", "*.bin")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.txt", "vocab.json", "spiece.model",
              "sentencepiece.bpe.model")  # fmt: skip
#: seconds until a hub that says nothing counts as out of reach
PATIENCE = 3


class HubError(RuntimeError):
    """Neither a folder nor the hub nor its cache gives a model; the message says what would be
    right."""


def commit(name: str, revision: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """The commit of a model on the hub, or in its cache; `rows`: the sheet of models, whose names
    are suggested. Raises HubError, within a few seconds where the hub is out of reach."""
    sources = (row["source"].partition(":")[2] for row in rows.values())
    near = sheets.nearest(name, [*_folders(name), *rows, *sources])
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise HubError(f"{name}: no such folder{sheets.nearest(name, _folders(name))}")
    try:
        cached = huggingface_hub.try_to_load_from_cache(name, "config.json", revision=revision)
        if not isinstance(cached, str) and not is_reachable():
            raise errors.LocalEntryNotFoundError(name)
        config = huggingface_hub.hf_hub_download(
            name, "config.json", revision=revision or None, etag_timeout=PATIENCE
        )
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise HubError(
            f"{name}: no folder and no row of {MODELS}{near}, the hub cannot be reached, and its "
            f"cache {constants.HF_HUB_CACHE} does not have it; go online, or give a folder"
        ) from error
    except errors.HFValidationError as error:
        raise HubError(
            f"{name!r}: no folder, no row of {MODELS} and no name on the hub{near}"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise HubError(
            f"{name}: no folder and no row of {MODELS}, and the hub has none of that name that "
            f"you may read{near}"
        ) from error
    except errors.HfHubHTTPError as error:
        first = hub.remedy(name, revision or "main", error).splitlines()[0]
        raise HubError(f"{name}: {first}") from error
    return Path(config).parent.name


def _folders(name: str) -> list[str]:
    """Folders of models beside the one that a name would be, as they are typed."""
    place = Path(name).parent
    try:
        return [str(place / path.parent.name) for path in place.glob("*/config.json")]
    except OSError:
        return []


def is_reachable() -> bool:
    """Whether the hub answers anything within PATIENCE; its own client tries for minutes. A name
    server or an address that says nothing holds up no more than the thread."""
    answers: list[Any] = []

    def knock() -> None:
        with contextlib.suppress(requests.RequestException):
            answers.append(requests.head(constants.ENDPOINT, timeout=PATIENCE))

    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return bool(answers)


def check(model: str, rows: Mapping[str, Mapping[str, str]]) -> None:
    """Raise HubError where a name is neither a row, nor a folder or package, nor on the hub, and
    for a folder that is not whole."""
    scheme, _, rest = model.partition(":")
    if scheme == "folder" or Path(model).is_dir():
        check_folder(Path(rest if scheme == "folder" else model))
    if model in rows or scheme in ("gguf", "folder") or Path(model).is_dir():
        return
    commit(rest if scheme == "hub" else model, "", rows)


def check_folder(folder: Path) -> None:
    """Raise HubError for a folder that lacks what every model has."""
    if not folder.is_dir():
        near = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
        raise HubError(f"{folder}: no such folder{sheets.nearest(folder.name, near)}")
    wanted = {"config.json": ("config.json",), "weights": WEIGHTS, "tokenizer": TOKENIZERS}
    for what, patterns in wanted.items():
        if not any(next(folder.glob(pattern), None) for pattern in patterns):
            held = sorted(path.name for path in folder.iterdir())
            shown = ", ".join(held[:8]) + (" ..." if len(held) > 8 else "")
            raise HubError(f"{folder}: a model's folder without {what} ({' or '.join(patterns)}); "
                           f"it holds {shown or 'nothing'}")  # fmt: skip
