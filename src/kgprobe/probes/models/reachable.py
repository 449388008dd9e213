"""Checks, in seconds and without torch, whether a folder, the hub or its cache has a named model.

Code that imports torch runs these checks first, since they find most mistakes in a name.
"""

import contextlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
import requests
from huggingface_hub import constants, errors

from kgprobe import experiments
from kgprobe.probes.models import hub, packed
from kgprobe.probes.models.hub import ModelError

#: the table of models, as named in error messages
MODELS = "config/models.tsv"
#: a model's folder has weights (or a tokenizer) if any of these exists
WEIGHTS = ("*.safetensors", "*.bin")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
#: any of these is the weights file of a hub model, or the index of its weights files
CACHED = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
          "pytorch_model.bin.index.json")  # fmt: skip
#: entry of a safetensors header that is no tensor
METADATA = "__metadata__"
FILE = "a file; expected a model's folder, with config.json, weights and tokenizer"
#: seconds until a hub that does not answer counts as unreachable
TIMEOUT = 3


def commit(name: str, revision: str, rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return the commit of a model on the hub or in its cache; `rows` is the table of models, whose
    names are suggested. Raises ModelError, within a few seconds if the hub cannot be reached."""
    sources = [row["source"].partition(":")[2] for row in rows.values()]
    near = "" if name in sources else experiments.nearest(name, [*_folders(name), *rows, *sources])
    if Path(name).is_file():
        raise ModelError(f"{name}: {FILE}")
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(f"{name}: no such folder{experiments.nearest(name, _folders(name))}")
    try:
        if not _is_cached(name, revision, "config.json") and not is_reachable():
            raise errors.LocalEntryNotFoundError(name)
        config = huggingface_hub.hf_hub_download(
            name, "config.json", revision=revision or None, etag_timeout=TIMEOUT
        )
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise ModelError(
            f"{name}: no folder and no row of {MODELS}{near}, the hub cannot be reached, and its "
            f"cache {constants.HF_HUB_CACHE} does not have it; go online, or give a folder"
        ) from error
    except errors.HFValidationError as error:
        raise ModelError(
            f"{name!r}: no folder, no row of {MODELS} and no name on the hub{near}"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ModelError(
            f"{name}: no folder and no row of {MODELS}, and the hub has none of that name that "
            f"you may read{near}"
        ) from error
    except errors.HfHubHTTPError as error:
        first = hub.remedy(name, revision or "main", error).splitlines()[0]
        raise ModelError(f"{name}: {first}") from error
    return Path(config).parent.name


def check_row(row: Mapping[str, str]) -> None:
    """Raise ModelError if a model of the table is only on the hub and that cannot be reached."""
    scheme, _, name = row["source"].partition(":")
    revision = row.get("revision", "")
    if scheme != "hub" or all(
        any(_is_cached(name, revision, file) for file in files)
        for files in (("config.json",), CACHED)
    ):
        return
    if constants.HF_HUB_OFFLINE or not is_reachable():
        why = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else "the hub cannot be reached"
        wanted = f"{name} at {revision}" if revision else name
        raise ModelError(
            f"{row['model']}: {why}, and its cache {constants.HF_HUB_CACHE} does not have "
            f"{wanted}; go online, or give a model's folder in its place"
        )


def _is_cached(name: str, revision: str, file: str) -> bool:
    path = huggingface_hub.try_to_load_from_cache(name, file, revision=revision or None)
    return isinstance(path, str)


def _folders(name: str) -> list[str]:
    """Return sibling folders of a path, written as the path is; if its parent does not exist, the
    folders that a corrected name of the parent would give."""
    head = name
    while head:
        parent, slash, _ = head.rpartition("/")
        place = Path(f"{parent}{slash}" or ".")
        with contextlib.suppress(OSError):
            if place.is_dir():
                beside, rest = f"{parent}{slash}", name[len(head) :]
                return [
                    f"{beside}{path.name}{rest}"
                    for path in place.iterdir()
                    if Path(f"{path}{rest}").is_dir()
                ]
        head = parent
    return []


def is_reachable() -> bool:
    """Return whether the hub answers within TIMEOUT (its own client tries for minutes). A name
    server or address that does not answer blocks only the thread."""
    answers: list[Any] = []

    def knock() -> None:
        with contextlib.suppress(requests.RequestException):
            answers.append(requests.head(constants.ENDPOINT, timeout=TIMEOUT))

    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return bool(answers)


def check(model: str, rows: Mapping[str, Mapping[str, str]]) -> None:
    """Raise ModelError for a name that is neither a row, a folder, a package, nor on the hub, and
    for an incomplete folder."""
    check_given(model)
    scheme, _, rest = model.partition(":")
    if scheme == "folder" or Path(model).is_dir():
        check_folder(Path(rest if scheme == "folder" else model))
    if model in rows and not Path(model).is_dir():
        check_row(rows[model])
    if scheme == "gguf":
        try:
            packed.list_files(rest)
        except packed.PackedError as error:
            raise ModelError(f"{model}: {error}") from error
    if model in rows or scheme in ("gguf", "folder") or Path(model).is_dir():
        return
    commit(rest if scheme == "hub" else model, "", rows)


def check_given(model: str) -> None:
    """Raise ModelError for a blank name, since the path of "" is the working folder."""
    if not model.strip():
        raise ModelError(
            f"the model is {model!r}; expected a folder, a row of {MODELS}, gguf:PACKAGE or a name "
            "on the hub"
        )


def check_folder(folder: Path) -> None:
    """Raise ModelError for a folder that lacks files that every model has, or whose tokenizer.json
    or weights (safetensors) are damaged."""
    if folder.is_file():
        raise ModelError(f"{folder}: {FILE}")
    if not folder.is_dir():
        near = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
        hint = experiments.nearest(folder.name, near)
        hint = hint or experiments.nearest(str(folder), _folders(str(folder)))
        raise ModelError(f"{folder}: no such folder{hint}")
    wanted = {"config.json": ("config.json",), "weights": WEIGHTS, "tokenizer": TOKENIZERS}
    for what, patterns in wanted.items():
        if not any(next(folder.glob(pattern), None) for pattern in patterns):
            held = sorted(path.name for path in folder.iterdir())
            shown = ", ".join(held[:8]) + (" ..." if len(held) > 8 else "")
            files = "" if patterns == (what,) else f" ({' or '.join(patterns)})"
            raise ModelError(f"{folder}: a model's folder without {what}{files}; "
                           f"it holds {shown or 'nothing'}")  # fmt: skip
    path = folder / "tokenizer.json"
    try:
        json.loads(path.read_text("utf-8", "replace") if path.is_file() else "{}")
    except json.JSONDecodeError as error:
        raise ModelError(f"{path}, line {error.lineno}: not valid JSON: {error.msg}; the file is "
                         "damaged: copy it again")  from error  # fmt: skip
    for path in sorted(filter(Path.is_file, folder.glob("*.safetensors"))):
        size, least = path.stat().st_size, _min_size(path)
        if size < least:
            raise ModelError(f"{path}: {size:,} bytes, by its header at least {least:,}; the file "
                             "is truncated or damaged: copy it again")  # fmt: skip


def _min_size(path: Path) -> int:
    """Return the bytes that a safetensors file must have according to its header: a length of 8
    bytes, as much JSON, and the tensors."""
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if path.stat().st_size < 8 + length:
            return 8 + length
        try:
            tensors = json.loads(stream.read(length))
            ends = [one["data_offsets"][1] for name, one in tensors.items() if name != METADATA]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise ModelError(f"{path}: its header does not describe tensors; the file is "
                             "damaged: copy it again") from error  # fmt: skip
    return int(8 + length + max(ends, default=0))
