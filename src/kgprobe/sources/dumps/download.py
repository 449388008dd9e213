"""Download files politely, with resume, limits and checks.

A file gets its final name only when it is complete, of the format that its name says (a firewall's
web page is not an archive) and matches the published checksums. Until then `NAME.part` and
`NAME.part.json` (URL, validators, expected size) are next to it, and the next call resumes there.
`NAME.sha256` keeps the checksum at download. Wrong files are removed, so as not to fail again.
"""

import contextlib
import datetime
import hashlib
import itertools
import json
import random
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from filelock import FileLock

from kgprobe import http
from kgprobe.files import atomic
from kgprobe.job import log, progress

BLOCK = 1 << 20
ATTEMPTS = 6
CONNECT = 10.0
BY_HAND = "look at the address in a browser, then correct it in the config or put the file at"
#: By file suffix: name of the format, and its magic numbers.
KINDS = {
    ".zip": ("a zip archive", (b"PK\x03\x04", b"PK\x05\x06")),
    ".gz": ("gzip", (b"\x1f\x8b",)),
    ".bz2": ("bzip2", (b"BZh",)),
    ".zst": ("zstd", (b"\x28\xb5\x2f\xfd",)),
}
#: Bytes of a body that are inspected, and characters of it that an error shows.
BEGINNING, SHOWN = 2048, 120
PAGE = re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", re.I | re.S)


class DownloadError(RuntimeError):
    """A download failed for good; the message names URL, file, what was received and what to do."""


class ChecksumMismatchError(DownloadError):
    """The complete file has another format or checksum than expected; it has been removed."""


@dataclass(frozen=True)
class Bounds:
    """Limits of a download: bytes, total seconds, and seconds without a byte."""

    max_bytes: int = 1 << 40
    seconds: float = 86_400.0
    stall: float = 60.0

    @classmethod
    def of(cls, downloads: Mapping[str, float], max_bytes: int) -> "Bounds":
        """Return the limits of the config: sources.downloads, and `max_bytes` of the file."""
        return cls(max_bytes, downloads["hours"] * 3600, downloads["stall"])


DEFAULT = Bounds()


def download(
    url: str,
    path: Path,
    *,
    agent: str,
    sums: Mapping[str, str | None] | None = None,
    bounds: Bounds = DEFAULT,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Download `url` to `path` and return its sha256; an existing valid file is only checked.

    `agent` is the User-Agent. `sums` (md5, sha1, sha256) are checked if given. Two processes may
    request the same file: the second waits for the first. Raises DownloadError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    transfer = Transfer(url, path, agent, bounds)
    published = {name: one for name, one in (sums or {}).items() if one}
    with FileLock(f"{path}.lock"):
        if path.exists():
            digests = sums_of(path, [*published, "sha256"])
            wrong = wrong_form(path) or wrong_sums(digests, published)
            other, before = recorded(path)
            if not wrong and other not in ("", url):
                wrong = f"came from {other}, requested was {url}"
            elif not wrong and not published and before:
                wrong = wrong_sums(digests, {"sha256": before})
            if not wrong:
                return digests["sha256"]
            log.warning("%s: %s; removed, asked for again", path, wrong)
            path.unlink()
            _record(path).unlink(missing_ok=True)
        waits = random.Random(0)
        try:
            http.retried(
                transfer.attempt,
                ATTEMPTS,
                wait=lambda number, error: max(error.wait or 0.0, http.backoff(number, waits)),
                sleep=sleep,
                before=lambda number, error, seconds: log.info(
                    "%s: %s; next attempt in %.0f s", url, error, seconds
                ),
            )
        except http.PassingError as error:
            raise DownloadError(
                f"{url}: {error}; gave up after {ATTEMPTS} attempts. What arrived is kept in "
                f"{transfer.part}; run again to resume"
            ) from error
        return transfer.accept(published)


class Transfer:
    """A download in progress: `part` has the bytes so far, `side` URL, validators and size."""

    def __init__(self, url: str, path: Path, agent: str, bounds: Bounds) -> None:
        self.url, self.path, self.agent, self.bounds = url, path, agent, bounds
        self.until = time.monotonic() + bounds.seconds
        self.part = path.with_name(f"{path.name}.part")
        self.side = path.with_name(f"{path.name}.part.json")
        self.state: dict[str, Any] = {}

    def attempt(self) -> None:
        """Complete the part with one request. Raises http.PassingError if it must be repeated."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise self._late()
        self.state = {}
        with contextlib.suppress(OSError, ValueError):  # it is missing, or it is not JSON
            self.state = dict(json.loads(self.side.read_text(encoding="utf-8")))
        if self.state.get("url") != self.url:
            self.part.unlink(missing_ok=True)
            self.state = {"url": self.url}
        headers = {"User-Agent": self.agent, "Accept-Encoding": "identity"}
        validator = self.state.get("etag") or self.state.get("modified") or ""
        have = self._arrived() if validator else 0
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": validator}
        timeouts = http.Timeouts(CONNECT, self.bounds.stall, left)
        try:
            with (
                http.Session() as session,
                session.open_response("GET", self.url, timeouts, headers=headers) as answer,
            ):
                if answer.status_code in (200, 206):
                    self._receive(answer, have)
                else:
                    self._refuse(answer, have)
        except http.NoAnswerError as error:
            if time.monotonic() >= self.until:
                raise self._late() from error
            raise http.PassingError(str(error)) from error

    def _refuse(self, answer: requests.Response, have: int) -> None:
        """Handle a response that is not a file: start over, retry or raise. Status 416 may mean
        that the file is complete. The bytes so far are kept: the host may do better later."""
        status, now = answer.status_code, time.time()
        if status == 416:
            total = answer.headers.get("Content-Range", "").rpartition("/")[2]
            if total == str(have):
                return
            self.part.unlink(missing_ok=True)
            raise http.PassingError(
                f"the server refused to go on from byte {have} of {total or 'unknown'}: begin again"
            )
        if astray := http.describe_redirect(answer):
            raise self._refused(f"status {status}, {astray}")
        first = answer.raw.read(BEGINNING, decode_content=True)
        about = status in (401, 403) or (status < 500 and http.about_agent(first))
        if about or status not in (408, 429, 500, 502, 503, 504):
            beginning = format_beginning(first) if first else "an empty body"
            came = f"status {status} {answer.reason}".rstrip()
            raise self._refused(f"{came}, {beginning}{_type(answer)}", about=about)
        wait = http.retry_after(answer.headers.get("Retry-After"), status, now)
        if wait is not None and wait > http.LONGEST_WAIT:
            when = datetime.datetime.fromtimestamp(now + wait, datetime.UTC)
            raise DownloadError(
                f"{self.url}: status {status}, the server asks to wait {wait:.0f} s; expected at "
                f"most {http.LONGEST_WAIT:.0f} s for {self.path}. Run again after "
                f"{when:%Y-%m-%d %H:%M:%S} UTC; what arrived is kept"
            )
        raise http.PassingError(f"status {status}", wait, status)

    def _receive(self, answer: requests.Response, have: int) -> None:
        """Append the body to the part, or start over if the response does not continue it."""
        etag = answer.headers.get("ETag", "")
        known = {
            # a weak validator does not guarantee identical bytes
            "etag": "" if etag.startswith("W/") else etag,
            "modified": answer.headers.get("Last-Modified", ""),
        }
        if answer.status_code == 206:
            self._require_same(answer.headers.get("Content-Range", ""), known, have)
        elif have:
            log.info("%s: the file changed or ranges are unknown; begin again", answer.url)
            have = 0
        length = answer.headers.get("Content-Length", "")
        total = have + int(length) if length.isdigit() else None
        # a server may send a shorter range than the one requested
        whole = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if answer.status_code == 206 and whole.isdigit():
            total = int(whole)
        if total:
            self._require_at_most(total, f"{total:,} bytes are announced")
            needed, free = int((total - have) * 1.05), shutil.disk_usage(self.path.parent).free
            if free < needed:
                raise DownloadError(
                    f"{self.path}: needs {needed:,} bytes, {free:,} are free on its disk"
                )
        blocks = answer.raw.stream(BLOCK, decode_content=False)
        first = next(blocks, b"")
        if not have and first and (wrong := wrong_start(self.path, first[:BEGINNING])):
            came = f"status {answer.status_code}, {wrong}{_type(answer)}"
            raise self._refused(came, about=http.about_agent(first[:BEGINNING]))
        self.state |= {name: value for name, value in known.items() if value or not have}
        self.state["total"] = total
        with atomic(self.side) as temporary:
            temporary.write_text(json.dumps(self.state), encoding="utf-8")
        with (
            open(self.part, "ab" if have else "wb") as stream,
            progress(total=total, desc=self.path.name, unit="B") as bar,
        ):
            bar.update(have)
            for block in itertools.chain([first], blocks):
                stream.write(block)
                bar.update(len(block))
                most = f"more than {self.bounds.max_bytes:,} bytes arrived"
                self._require_at_most(stream.tell(), most)
        got = self._arrived()
        if total is not None and got < total:
            raise http.PassingError(f"{got} of {total} bytes arrived")
        if not got:
            self._drop()
            raise self._refused(f"status {answer.status_code}, an empty body{_type(answer)}")
        if total is None and self.path.suffix == ".zip" and not zipfile.is_zipfile(self.part):
            raise http.PassingError(f"{got} bytes arrived, a zip archive without its end")

    def _require_same(self, place: str, known: Mapping[str, str], have: int) -> None:
        """Raise http.PassingError if the range is of another file or starts at another byte."""
        first, _, total = place.removeprefix("bytes ").partition("/")
        start = first.split("-")[0]
        wrong = [n for n, one in known.items() if one and self.state.get(n) not in ("", one)]
        if start != str(have):
            wrong.append(f"Content-Range starts at {start!r}, asked for {have}")
        if total.isdigit() and self.state.get("total") not in (None, int(total)):
            wrong.append(f"size, {total} and not {self.state['total']} bytes")
        if wrong:
            self._drop()
            raise http.PassingError(f"the file changed on the server ({', '.join(wrong)})")

    def accept(self, published: Mapping[str, str]) -> str:
        """Rename the complete part, or remove it if its format or checksums are wrong."""
        digests = sums_of(self.part, [*published, "sha256"])
        if wrong := wrong_form(self.part, self.path) or wrong_sums(digests, published):
            self._drop()
            raise ChecksumMismatchError(
                f"{self.url}: {wrong}; expected {kind(self.path)} for {self.path}. It has been "
                "removed; run again, and if the same comes again compare the sums in the config "
                "with what the publisher says now"
            )
        record(self.path, self.url, digests["sha256"])
        self.part.replace(self.path)
        self.side.unlink(missing_ok=True)
        return digests["sha256"]

    def _arrived(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _drop(self) -> None:
        self.part.unlink(missing_ok=True)
        self.side.unlink(missing_ok=True)

    def _refused(self, came: str, advice: str = "", about: bool = False) -> DownloadError:
        """Return the error for a bad response; `about`: whether it mentions the User-Agent."""
        by_hand = f"{BY_HAND} {self.path}"
        advice = f"{http.CONTACT_ADVICE}; otherwise {by_hand}" if about else advice or by_hand
        return DownloadError(
            f"{self.url}: {came}; expected {kind(self.path)} for {self.path}. Nothing of it is "
            f"kept; {advice}"
        )

    def _require_at_most(self, size: int, came: str) -> None:
        if size > self.bounds.max_bytes:
            self._drop()
            advice = "is the address right? If so, raise max_bytes beside it in the config"
            raise self._refused(f"{came}, expected at most {self.bounds.max_bytes:,}", advice)

    def _late(self) -> DownloadError:
        return DownloadError(
            f"{self.url}: {self._arrived():,} bytes arrived within {self.bounds.seconds:g} s; "
            f"expected the whole of {self.path}. What arrived stays in {self.part}; run again to "
            "go on from there, or raise sources.downloads.hours"
        )


def _type(answer: requests.Response) -> str:
    return f" (Content-Type {answer.headers.get('Content-Type', 'missing')})"


def place(data: Path, url: str, name: str = "") -> Path:
    """Return where the file of a URL is kept in the data folder, once for all users of it.

    An archive is named after its URL, another file `name`.
    """
    parts = urlsplit(url)
    # no part of a URL may lead out of the data folder
    path = [part for part in PurePosixPath(parts.path.lstrip("/")).parts if part != ".."]
    named = [quote(part, safe="") for part in path] or ["archive"]
    query = f"-{quote(parts.query, safe='')}" if parts.query else ""
    *folders, last = [quote(parts.netloc, safe=""), *named]
    if name:
        return data.joinpath("archives", *folders, f"{last}{query}", name)
    return data.joinpath("archives", *folders, f"{last.removesuffix('.zip')}{query}.zip")


def link(kept: Path, path: Path) -> None:
    """Make a kept file available at `path`, too, as a hard link or symlink.

    Snakemake deletes the output of a job before rerunning it: then only the link is lost, and not a
    download of hours.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    try:
        path.hardlink_to(kept)
    except OSError:  # another disk, or one that has no hard links
        path.symlink_to(kept.absolute())


def kind(path: Path) -> str:
    """Describe the format that a file's name implies."""
    return KINDS[path.suffix][0] if path.suffix in KINDS else "a file that is not a web page"


def wrong_start(path: Path, first: bytes) -> str:
    """Describe why a file of that name cannot start with these bytes; "" if it can."""
    if path.suffix in KINDS:
        right = any(first.startswith(start[: len(first)]) for start in KINDS[path.suffix][1])
        return "" if first and right else f"begins with {format_beginning(first)}"
    return f"a web page: {format_beginning(first)}" if PAGE.match(first) else ""


def wrong_form(path: Path, name: Path | None = None) -> str:
    """Describe why a file has not the format of its name (or of `name`); "" if it has."""
    name, size = name or path, path.stat().st_size
    if not size:
        return "is empty"
    with open(path, "rb") as stream:
        wrong = wrong_start(name, stream.read(BEGINNING))
    if not wrong and name.suffix == ".zip" and not zipfile.is_zipfile(path):
        return f"{size:,} bytes of a zip archive without its end, the table of contents"
    return wrong


def wrong_sums(digests: Mapping[str, str], known: Mapping[str, str]) -> str:
    """Describe which checksums differ from the known ones."""
    return "; ".join(
        f"{name} is {digests[name]}, expected {one}"
        for name, one in known.items()
        if digests[name] != one.lower()
    )


def sums_of(path: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the checksums of a file by name (md5, sha1, sha256), in one pass."""
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in names}
    with open(path, "rb") as stream:
        while block := stream.read(BLOCK):
            for digest in digests.values():
                digest.update(block)
    return {name: digest.hexdigest() for name, digest in digests.items()}


def record(path: Path, url: str, sha256: str) -> None:
    """Write the URL and sha256 of a downloaded file next to it, in the format of sha256sum."""
    with atomic(_record(path)) as temporary:
        temporary.write_text(f"# {url}\n{sha256}  {path.name}\n", encoding="utf-8")


def recorded(path: Path) -> tuple[str, str]:
    """Return (URL, sha256) recorded at download; empty strings if it was not downloaded."""
    text = _record(path).read_text(encoding="utf-8") if _record(path).is_file() else ""
    match = re.match(r"# (\S+)\n([0-9a-f]{64})\b", text)
    return (match[1], match[2]) if match else ("", "")


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def format_beginning(first: bytes) -> str:
    """Format the beginning of a body as one line."""
    text = " ".join(first.decode("utf-8", "replace").split())
    return repr(text[:SHOWN] + ("..." if len(text) > SHOWN else ""))
