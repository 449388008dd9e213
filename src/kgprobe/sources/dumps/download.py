"""Files from elsewhere: a polite, resumable, bounded, checked download.

A file appears under its name only when it is whole, of the kind that its name says (a page of a
firewall is no archive) and has the published sums. Until then `NAME.part` and `NAME.part.json`
(URL, validators, expected size) lie beside it, and the next call goes on there. `NAME.sha256` keeps
what the file was when it came. What is wrong is removed, so that it cannot fail again.
"""

import contextlib
import datetime
import itertools
import json
import random
import shutil
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from filelock import FileLock

from kgprobe.files import atomic
from kgprobe.http import (
    CONTACT_ADVICE,
    LONGEST_WAIT,
    Line,
    NoAnswerError,
    PassingError,
    Patience,
    about_agent,
    backoff,
    retried,
    retry_after,
    sent_astray,
)
from kgprobe.job import log, progress
from kgprobe.sources.dumps.kinds import (
    TOLD,
    format_beginning,
    kind,
    record,
    recorded,
    sums_of,
    wrong_form,
    wrong_start,
    wrong_sums,
)

BLOCK = 1 << 20
ATTEMPTS = 6
CONNECT = 10.0
BY_HAND = "look at the address in a browser, then correct it in the config or put the file at"


class DownloadError(RuntimeError):
    """A download failed for good; the message names URL, file, what came and what to do."""


class ChecksumMismatchError(DownloadError):
    """The complete file has another size or sum than published; it has been removed."""


@dataclass(frozen=True)
class Bounds:
    """What a file may take: bytes, seconds in all, and seconds without a byte."""

    max_bytes: int = 1 << 40
    seconds: float = 86_400.0
    stall: float = 60.0

    @classmethod
    def of(cls, downloads: Mapping[str, float], max_bytes: int) -> "Bounds":
        """Those of the configuration: sources.downloads, and a file's own."""
        return cls(max_bytes, downloads["hours"] * 3600, downloads["stall"])


DEFAULT = Bounds()


@dataclass(frozen=True)
class Wanted:
    """What is asked for, where it goes, and what is known of it; `sums` by md5, sha1, sha256."""

    url: str
    path: Path
    agent: str
    sums: Mapping[str, str]
    size: int | None
    bounds: Bounds
    until: float

    @property
    def part(self) -> Path:
        """What has arrived."""
        return self.path.with_name(self.path.name + ".part")

    @property
    def side(self) -> Path:
        """What is known of that."""
        return self.path.with_name(self.path.name + ".part.json")

    def drop(self) -> None:
        """Keep nothing of what arrived."""
        self.part.unlink(missing_ok=True)
        self.side.unlink(missing_ok=True)

    def refused(self, came: str, advice: str = "") -> DownloadError:
        """The error for an answer that is no such file."""
        return DownloadError(
            f"{self.url}: {came}; expected {kind(self.path)} for {self.path}. Nothing of it is "
            f"kept; {advice or f'{BY_HAND} {self.path}'}"
        )


def download(
    url: str,
    path: Path,
    *,
    agent: str,
    sums: Mapping[str, str | None] | None = None,
    size: int | None = None,
    bounds: Bounds = DEFAULT,
    sleep: Callable[[float], None] = time.sleep,
    seed: int = 0,
) -> str:
    """Download `url` to `path` and return its sha256; a sound file that is there is only checked.

    `agent` is the User-Agent. `sums` (md5, sha1, sha256) and `size` are checked where given. Two
    processes may ask for the same file: the second waits for the first. Raises DownloadError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + bounds.seconds
    published = {name: one for name, one in (sums or {}).items() if one}
    wanted = Wanted(url, path, agent, published, size, bounds, until)
    with FileLock(f"{path}.lock"):
        if path.exists():
            found = sums_of(path, [*wanted.sums, "sha256"])
            wrong = wrong_form(path, size) or wrong_sums(found, wanted.sums)
            if not wrong and (other := recorded(path)[0]) not in ("", url):
                wrong = f"came from {other}, asked for is {url}"
            if not wrong:
                return found["sha256"]
            log.warning("%s: %s; removed, asked for again", path, wrong)
            path.unlink()
        waits = random.Random(seed)
        try:
            retried(
                lambda: _attempt(wanted),
                ATTEMPTS,
                wait=lambda number, error: max(error.asked or 0.0, backoff(number, waits)),
                sleep=sleep,
                before=lambda number, error, seconds: log.info(
                    "%s: %s; next attempt in %.0f s", url, error, seconds
                ),
            )
        except PassingError as error:
            raise DownloadError(
                f"{url}: {error}; gave up after {ATTEMPTS} attempts. "
                f"What arrived stays in {wanted.part}; run again to go on from there"
            ) from error
        return _accept(wanted)


def _attempt(wanted: Wanted) -> None:
    """One request that adds to the part, which is complete then. Raises PassingError."""
    left = wanted.until - time.monotonic()
    if left <= 0:
        raise _late(wanted)
    state: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):  # none is there, or it is no JSON
        state = dict(json.loads(wanted.side.read_text(encoding="utf-8")))
    if state.get("url") != wanted.url:
        wanted.part.unlink(missing_ok=True)
        state = {"url": wanted.url}
    have = wanted.part.stat().st_size if wanted.part.exists() else 0
    headers = {"User-Agent": wanted.agent, "Accept-Encoding": "identity"}
    validator = state.get("etag") or state.get("modified")
    if have and validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    else:
        have = 0
    patience = Patience(CONNECT, wanted.bounds.stall, left)
    try:
        with Line() as line, line.opened("GET", wanted.url, patience, headers=headers) as answer:
            if answer.status_code in (200, 206):
                _receive(answer, wanted, state, have)
            else:
                _refuse(answer, wanted, have)
    except NoAnswerError as error:
        if time.monotonic() >= wanted.until:
            raise _late(wanted) from error
        raise PassingError(str(error)) from error


def _refuse(answer: requests.Response, wanted: Wanted, have: int) -> None:
    """An answer that is no file: begin again, come again, or stop. 416 may mean that all is there.

    What arrived before it stays: the host may do better at another time.
    """
    status = answer.status_code
    if status == 416:
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if total != str(have):
            wanted.part.unlink(missing_ok=True)
            raise PassingError(
                f"the server refused to go on from byte {have} of {total or 'unknown'}: begin again"
            )
        return
    if astray := sent_astray(answer):
        raise wanted.refused(f"status {status}, {astray}")
    first = answer.raw.read(TOLD, decode_content=True)
    said = f"{format_beginning(first) if first else 'an empty body'}{_type(answer)}"
    came = f"status {status} {answer.reason}".rstrip()
    if status in (401, 403) or (status < 500 and about_agent(first)):
        raise wanted.refused(f"{came}, {said}", _contact(wanted))
    if status in (408, 429, 500, 502, 503, 504):
        raise PassingError(f"status {status}", _requested_wait(wanted, answer), status)
    raise wanted.refused(f"{came}, {said}")


def _receive(answer: requests.Response, wanted: Wanted, state: dict[str, Any], have: int) -> None:
    """Write the body behind what is there; the answer decides whether that may stay."""
    etag = answer.headers.get("ETag", "")
    known = {
        # a weak validator does not vouch for the bytes
        "etag": "" if etag.startswith("W/") else etag,
        "modified": answer.headers.get("Last-Modified", ""),
    }
    if answer.status_code == 206:
        _same(answer, wanted, state, known, have)
    elif have:
        log.info("%s: the file changed or ranges are unknown; begin again", answer.url)
        have = 0
    length = answer.headers.get("Content-Length", "")
    total = have + int(length) if length.isdigit() else wanted.size
    if total and total > wanted.bounds.max_bytes:
        raise _large(wanted, f"{total:,} bytes are announced")
    if total:
        _require_space(wanted.path, int((total - have) * 1.05))
    blocks = answer.raw.stream(BLOCK, decode_content=False)
    first = next(blocks, b"")
    if not have and first and (wrong := wrong_start(wanted.path, first[:TOLD])):
        advice = _contact(wanted) if about_agent(first[:TOLD]) else ""
        raise wanted.refused(f"status {answer.status_code}, {wrong}{_type(answer)}", advice)
    state |= {name: value for name, value in known.items() if value or not have} | {"total": total}
    with atomic(wanted.side) as temporary:
        temporary.write_text(json.dumps(state), encoding="utf-8")
    with open(wanted.part, "ab" if have else "wb") as stream:
        bar = progress(total=total, desc=wanted.path.name, unit="B")
        bar.update(have)
        for block in itertools.chain([first], blocks):
            stream.write(block)
            bar.update(len(block))
            if stream.tell() > wanted.bounds.max_bytes:
                raise _large(wanted, f"more than {wanted.bounds.max_bytes:,} bytes arrived")
        bar.close()
    got = wanted.part.stat().st_size
    if total is not None and got < total:
        raise PassingError(f"{got} of {total} bytes arrived")
    if not got:
        wanted.drop()
        raise wanted.refused(f"status {answer.status_code}, an empty body{_type(answer)}")
    if total is None and wanted.path.suffix == ".zip" and not zipfile.is_zipfile(wanted.part):
        raise PassingError(f"{got} bytes arrived, a zip archive without its end")


def _same(
    answer: requests.Response,
    wanted: Wanted,
    state: Mapping[str, Any],
    known: Mapping[str, str],
    have: int,
) -> None:
    """Whether a part of a file is of the same file and begins where we are; else begin again."""
    place, _, total = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    start = place.split("-")[0]
    if start != str(have):
        wanted.part.unlink(missing_ok=True)
        raise PassingError(f"Content-Range starts at {start!r}, asked for {have}: begin again")
    changed = [
        name for name, value in known.items() if value and state.get(name) not in ("", value)
    ]
    if total.isdigit() and state.get("total") not in (None, int(total)):
        changed.append(f"size, {total} and not {state['total']} bytes")
    if changed:
        wanted.drop()
        raise PassingError(f"the file changed on the server ({', '.join(changed)}): begin again")


def _requested_wait(wanted: Wanted, answer: requests.Response) -> float | None:
    """Seconds that the server asks for."""
    now = time.time()
    wait = retry_after(answer.headers.get("Retry-After"), answer.status_code, now)
    if wait is not None and wait > LONGEST_WAIT:
        when = datetime.datetime.fromtimestamp(now + wait, datetime.UTC)
        raise DownloadError(
            f"{wanted.url}: status {answer.status_code}, the server asks to wait {wait:.0f} s; "
            f"expected at most {LONGEST_WAIT:.0f} s for {wanted.path}. Run again after "
            f"{when:%Y-%m-%d %H:%M:%S} UTC; what arrived stays"
        )
    return wait


def _accept(wanted: Wanted) -> str:
    """Give the complete part its name, or remove it when kind, size or sums are wrong."""
    found = sums_of(wanted.part, [*wanted.sums, "sha256"])
    wrong = wrong_form(wanted.part, wanted.size, wanted.path) or wrong_sums(found, wanted.sums)
    if wrong:
        wanted.drop()
        raise ChecksumMismatchError(
            f"{wanted.url}: {wrong}; expected {kind(wanted.path)} for {wanted.path}. It has been "
            "removed; run again, and if the same comes again compare the sums and the size in the "
            "config with what the publisher says now"
        )
    record(wanted.path, wanted.url, found["sha256"])
    wanted.part.replace(wanted.path)
    wanted.side.unlink(missing_ok=True)
    return found["sha256"]


def _late(wanted: Wanted) -> DownloadError:
    got = wanted.part.stat().st_size if wanted.part.exists() else 0
    return DownloadError(
        f"{wanted.url}: {got:,} bytes arrived within {wanted.bounds.seconds:g} s; expected the "
        f"whole of {wanted.path}. What arrived stays in {wanted.part}; run again to go on from "
        "there, or raise sources.downloads.hours"
    )


def _large(wanted: Wanted, came: str) -> DownloadError:
    wanted.drop()
    limit = f"expected at most {wanted.bounds.max_bytes:,}"
    advice = "is the address right? If so, raise max_bytes beside it in the config"
    return wanted.refused(f"{came}, {limit}", advice)


def _contact(wanted: Wanted) -> str:
    return f"{CONTACT_ADVICE}; otherwise {BY_HAND} {wanted.path}"


def _type(answer: requests.Response) -> str:
    return f" (Content-Type {answer.headers.get('Content-Type', 'missing')})"


def _require_space(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise DownloadError(f"{path}: needs {needed:,} bytes, {free:,} are free on its disk")
