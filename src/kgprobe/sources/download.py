"""A polite, resumable, checked download of one file (sources.md, section 9).

The file appears under its name only when its size and checksum hold. Until then `NAME.part` and
`NAME.part.json` (URL, validators, expected size) lie beside it, and the next call goes on there.
"""

import json
import os
import random
import shutil
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import requests
from filelock import FileLock

from kgprobe import __version__
from kgprobe.job import log, progress
from kgprobe.job import sha256 as hash_file

BLOCK = 1 << 20
ATTEMPTS = 6
#: Seconds: to connect, between two blocks of an answer
TIMEOUT = (10, 60)
#: Seconds that a Retry-After may ask for before the download gives up and says when to come back
LONGEST_WAIT = 3600


class DownloadError(RuntimeError):
    """A download failed for good; the message names URL, file, what came and what to do."""


class ChecksumMismatchError(DownloadError):
    """The complete file has another checksum than pinned; it is kept beside as `.bad`."""


def download(
    url: str,
    path: Path,
    *,
    agent: str,
    sha256: str | None = None,
    size: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
    seed: int = 0,
) -> str:
    """Download `url` to `path` and return its sha256; a file that is there is only checked.

    `agent` is the User-Agent. `sha256` and `size` are checked where given. Two processes may ask
    for the same file: the second waits for the first. Raises DownloadError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.exists():
            waits = random.Random(seed)
            for attempt in range(ATTEMPTS):
                pause = _attempt(url, path, agent, size)
                if pause is None:
                    break
                reason, at_least = pause
                if attempt == ATTEMPTS - 1:
                    raise DownloadError(
                        f"{url}: {reason}; gave up after {ATTEMPTS} attempts. "
                        f"What arrived stays in {path.name}.part; run again to go on from there"
                    )
                wait = max(at_least, waits.uniform(0, min(120.0, 2.0 * 2**attempt)))
                log.info("%s: %s; next attempt in %.0f s", url, reason, wait)
                sleep(wait)
            _accept(url, path, sha256, size)
    found = hash_file(path)
    if sha256 and found != sha256:
        raise ChecksumMismatchError(f"{path}: sha256 is {found}, pinned is {sha256}; remove it")
    return found


def agent_of(contact: str) -> str:
    """The User-Agent of downloads; KGPROBE_CONTACT overrides `contact`.

    Raises DownloadError without a contact: nothing is asked of a public service anonymously.
    """
    contact = os.environ.get("KGPROBE_CONTACT", "") or contact
    if not contact:
        raise DownloadError(
            "a public service is asked: set `contact:` in the config or KGPROBE_CONTACT to a mail "
            "address or a page"
        )
    return f"kgprobe/{__version__} ({contact}) requests/{requests.__version__}"


def _attempt(url: str, path: Path, agent: str, size: int | None) -> tuple[str, float] | None:
    """One request that adds to the part; None when complete, else (reason, least wait in s)."""
    part, side = _part(path), _side(path)
    state = json.loads(side.read_text()) if side.exists() else {}
    if state.get("url") != url:
        part.unlink(missing_ok=True)
        state = {"url": url}
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": agent, "Accept-Encoding": "identity"}
    validator = state.get("etag") or state.get("modified")
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    else:
        have = 0
    try:
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code == 416:
                return _range_refused(answer, part, have)
            if answer.status_code in (429, 500, 502, 503, 504):
                return f"status {answer.status_code}", _retry_after(url, answer)
            if answer.status_code not in (200, 206):
                raise DownloadError(f"{url}: status {answer.status_code} {answer.reason}")
            return _receive(answer, path, state, have, size)
    except (
        requests.ConnectionError,
        requests.Timeout,
        requests.exceptions.ChunkedEncodingError,
    ) as e:
        return f"{type(e).__name__}: {e}", 0.0


def _receive(
    answer: requests.Response, path: Path, state: dict[str, Any], have: int, size: int | None
) -> tuple[str, float] | None:
    """Write the body behind what is there; the answer decides whether that may stay."""
    part = _part(path)
    if answer.status_code == 206:
        start = answer.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0]
        if start != str(have):
            part.unlink(missing_ok=True)
            return f"Content-Range starts at {start!r}, asked for {have}: begin again", 0.0
    elif have:
        log.info("%s: the file changed or ranges are unknown; begin again", answer.url)
        have = 0
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length else size
    if total:
        _require_space(path, int((total - have) * 1.05))
    etag = answer.headers.get("ETag", "")
    state |= {
        # a weak validator does not vouch for the bytes
        "etag": "" if etag.startswith("W/") else etag,
        "modified": answer.headers.get("Last-Modified", ""),
        "total": total,
    }
    _side(path).write_text(json.dumps(state))
    with open(part, "ab" if have else "wb") as stream:
        bar = progress(total=total, desc=path.name, unit="B")
        bar.update(have)
        for block in answer.iter_content(BLOCK):
            stream.write(block)
            bar.update(len(block))
        bar.close()
    got = part.stat().st_size
    if total is not None and got < total:
        return f"{got} of {total} bytes arrived", 0.0
    return None


def _range_refused(answer: requests.Response, part: Path, have: int) -> tuple[str, float] | None:
    """After 416: the part is complete when the server's size says so, else begin again."""
    total = answer.headers.get("Content-Range", "").rpartition("/")[2]
    if total == str(have):
        return None
    part.unlink(missing_ok=True)
    return f"the server refused to go on from byte {have} of {total or 'unknown'}: begin again", 0.0


def _retry_after(url: str, answer: requests.Response) -> float:
    """Seconds that the server asks for; 60 for a 429 that says nothing."""
    header = answer.headers.get("Retry-After", "")
    if header.isdigit():
        wait = float(header)
    elif header:
        wait = max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    else:
        wait = 60.0 if answer.status_code == 429 else 0.0
    if wait > LONGEST_WAIT:
        raise DownloadError(f"{url}: the server asks to wait {wait:.0f} s; run again after that")
    return wait


def _accept(url: str, path: Path, sha256: str | None, size: int | None) -> None:
    """Give the complete part its name, or keep it as `.bad` when size or checksum are wrong."""
    part = _part(path)
    found, got = hash_file(part), part.stat().st_size
    if (sha256 and found != sha256) or (size is not None and got != size):
        bad = path.with_name(path.name + ".bad")
        part.replace(bad)
        _side(path).unlink(missing_ok=True)
        raise ChecksumMismatchError(
            f"{url}: got sha256 {found}, {got} bytes; expected sha256 {sha256 or 'any'}, "
            f"{'any number of' if size is None else size} bytes. Kept as {bad.name}"
        )
    part.replace(path)
    _side(path).unlink(missing_ok=True)


def _require_space(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise DownloadError(f"{path}: needs {needed:,} bytes, {free:,} are free on its disk")


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _side(path: Path) -> Path:
    return path.with_name(path.name + ".part.json")
