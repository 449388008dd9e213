"""Replays of file hosts: archives of repositories, and an object store.

Source: the answers of the services, as documented in the table of the replay (docs/sources.md).
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

from tests.replay.proxy import Answer, Request, pieces

#: A firewall's challenge page, which a browser solves before it retries.
CHALLENGE = b"""<!DOCTYPE html>
<html lang="en"><head><title>Human Verification</title></head>
<body><noscript><h1>JavaScript is disabled</h1></noscript></body></html>
"""
NOT_FOUND = b"<!DOCTYPE html><html><head><title>Page not found</title></head><body></body></html>"


@dataclass
class GitHub:
    """Archives of commits: a redirect to another host, which sends chunks without a total length.

    `archives` holds REPOSITORY-COMMIT.zip. A program with a default user agent gets a page instead.
    """

    archives: Path
    hosts: tuple[str, ...] = ("github.com", "codeload.github.com")

    def answer(self, request: Request) -> Answer:
        """Return the redirect, the archive, or a not-found page."""
        agent = request.headers.get("user-agent", "")
        if not re.search(r"\(.*(@|https?://).*\)", agent):
            return Answer(200, {"Content-Type": "text/html; charset=utf-8"}, CHALLENGE)
        found = re.fullmatch(
            r"/([^/]+)/([^/]+)/(?:archive|zip)/([0-9a-f]+)(?:\.zip)?", request.path
        )
        if not found:
            return Answer(404, {"Content-Type": "text/html"}, NOT_FOUND)
        owner, repository, commit = found.groups()
        path = self.archives / f"{repository}-{commit}.zip"
        if not path.is_file():
            return Answer(404, {"Content-Type": "text/html"}, NOT_FOUND)
        if request.host == "github.com":
            other = f"https://codeload.github.com/{owner}/{repository}/zip/{commit}"
            return Answer(302, {"Location": other, "Content-Type": "text/html; charset=utf-8"})
        headers = {
            "Content-Type": "application/zip",
            "ETag": f'W/"{hashlib.sha256(path.name.encode()).hexdigest()}"',
            "Content-Disposition": f"attachment; filename={path.name}",
        }
        return Answer(200, headers, pieces(path))


@dataclass
class Figshare:
    """Files by number: links of the site are behind a firewall, those of the API lead to a store.

    The store truncates the first answer, so that a download has to resume.
    """

    files: Mapping[str, Path]
    hosts: tuple[str, ...] = ("figshare.com", "api.figshare.com", "s3-eu-west-1.amazonaws.com")
    asked: dict[str, int] = field(default_factory=dict)

    def answer(self, request: Request) -> Answer:
        """Return the firewall's challenge, the redirect, or the file."""
        if request.host == "figshare.com":
            return Answer(202, {"x-amzn-waf-action": "challenge", "Content-Type": "text/html"})
        number = request.path.rstrip("/").split("/")[-1].split("?")[0]
        if request.host == "api.figshare.com":
            if not re.fullmatch(r"/v2/file/download/\d+", request.path) or number not in self.files:
                kind = {"Content-Type": "application/json"}
                return Answer(404, kind, b'{"message": "Entity not found", "code": 404}')
            store = f"https://s3-eu-west-1.amazonaws.com/pfigshare-u-files/{number}"
            return Answer(302, {"Location": f"{store}?X-Amz-Expires=10&X-Amz-Signature=0"})
        path = self.files.get(number)
        if path is None:
            return Answer(403, {"Content-Type": "application/xml"}, b"<Error>AccessDenied</Error>")
        return self.stored(request, path)

    def stored(self, request: Request, path: Path) -> Answer:
        """Return a file of an object store, or its requested range."""
        size, start, status = path.stat().st_size, 0, 200
        tag = f'"{hashlib.md5(path.read_bytes()).hexdigest()}"'
        found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        if found and request.headers.get("if-range", tag) == tag:
            start, status = int(found[1]), 206
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(size - start),
            "Accept-Ranges": "bytes",
            "ETag": tag,
            "Last-Modified": formatdate(path.stat().st_mtime, usegmt=True),
        }
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        times = self.asked[path.name] = self.asked.get(path.name, 0) + 1
        return Answer(status, headers, pieces(path, start), size // 2 if times == 1 else None)
