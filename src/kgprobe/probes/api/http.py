"""POST requests to an OpenAI-compatible server: key, retries, rate limit, cache, accounting.

The key is read from the environment for each request and stored in no attribute and no
log line. The cache contains requests and answers verbatim: a dummy key such as `EMPTY` is
also a word, so replacing it would change answers.
"""

import hashlib
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests

from kgprobe.http import (
    NoAnswerError,
    PassingError,
    Session,
    Timeouts,
    redirect,
    retried,
    retry_after,
    whole_body,
)
from kgprobe.settings.probes import Api

LOG = logging.getLogger(__name__)
A = TypeVar("A")
#: Statuses after which another attempt may succeed.
TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
#: Statuses of requests that are rejected for their content, not for their sender or time.
REFUSED = frozenset({400, 413, 422})
#: Error codes of a 429 that waiting does not resolve.
EXHAUSTED = ("insufficient_quota", "billing_hard_limit_reached")
#: Messages with which llama.cpp rejects a parameter under status 500, as if a retry might help.
UNKNOWN = ("Only no echo is supported", "Unsupported param: ")
#: Maximum seconds before another attempt.
LONGEST_WAIT = 120.0
#: Read timeouts after which an answer must be complete: servers may send spaces meanwhile.
WHOLE = 10
#: Maximum tokens that one answer may report: no model reads as many.
MOST_TOKENS = 10_000_000
#: Maximum bytes of a decompressed answer: log-probabilities of a long prompt take a few 10^6.
MOST_BYTES = 1 << 28


class ApiError(RuntimeError):
    """A request failed permanently; `status` is the last HTTP status, 0 if there was none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class ApiEndpoint:
    """Address of a model and limits of its server.

    Raises ValueError for an invalid address and for prices or a cost that are not finite.
    """

    base_url: str
    model: str
    limits: Api = field(default_factory=Api)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base URL {self.base_url!r}; expected http(s)://host/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError(
                "the base URL must hold no user, password or query; put the key into the "
                f"environment variable {self.limits.key_variable}"
            )
        prices, most = self.limits.prices, self.limits.most
        if not all(math.isfinite(n) and n >= 0 for n in (*prices, most)):
            raise ValueError(f"prices {prices}, most {most}: expected finite numbers from 0 on")


@dataclass
class Usage:
    """Requests, tokens and their cost. `unreported` counts answers without (all) token counts."""

    requests: int = 0
    retries: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    cost: float = 0.0


class RateLimit:
    """Spaces the starts of requests, and delays them for used tokens."""

    def __init__(self, limits: Api, now: Callable[[], float], sleep: Any) -> None:
        self._interval = 60.0 / limits.requests_per_minute if limits.requests_per_minute else 0.0
        self._each = 60.0 / limits.tokens_per_minute if limits.tokens_per_minute else 0.0
        self._now, self._sleep, self._lock = now, sleep, threading.Lock()
        self._free = now()

    def start(self) -> None:
        """Wait for the next free moment and reserve it."""
        with self._lock:
            moment = max(self._free, self._now())
            self._free = moment + self._interval
        if moment > self._now():
            self._sleep(moment - self._now())

    def used(self, tokens: int) -> None:
        """Delay the next free moment by the time that `tokens` take."""
        with self._lock:
            self._free = max(self._free, self._now()) + tokens * self._each


class _Key(requests.auth.AuthBase):
    """Puts the key from the environment into the header of one prepared request."""

    def __init__(self, variable: str) -> None:
        self.variable = variable

    def __call__(self, request: Any) -> Any:
        if key := os.environ.get(self.variable, "").strip():
            if not (key.isascii() and key.isprintable()):
                raise ApiError(
                    f"environment variable {self.variable}: the key holds a line end or another "
                    "character that no key has; expected the key alone"
                )
            request.headers["Authorization"] = f"Bearer {key}"
        return request


@dataclass
class Transport:
    """One endpoint with its cache folder."""

    endpoint: ApiEndpoint
    cache: Path
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self.limits = self.endpoint.limits
        self._limit = RateLimit(self.limits, self.now, self.sleep)
        self._lock = threading.Lock()
        self._local = threading.local()

    def post(self, path: str, body: Mapping[str, Any], read: Callable[[dict[str, Any]], A]) -> A:
        """Return the JSON answer to `body` at base URL + `path`, parsed by `read`.

        A known answer comes from the cache, and a new one is parsed from its cached
        form. Raises ApiError if the server rejects the request, fails `attempts` times, or
        gives an answer that `read` rejects with ApiError. Nothing is cached then.
        """
        body = {"model": self.endpoint.model, **body}
        place = self._place(path, body)
        if (answer := self._cached(place)) is not None:
            try:
                if error := _error(answer):
                    raise ApiError(error[1], error[0])
                result = read(answer)
            except ApiError as refusal:
                LOG.warning("cache file %s: %s: asked again", place.name, refusal)
            else:
                with self._lock:
                    self.usage.cached += 1
                return result
        self._check_cost()
        answer = self._ask(path, body)
        self._account(path, body, answer)
        read(answer)
        return read(self._store(place, path, body, answer))

    def _place(self, path: str, body: Mapping[str, Any]) -> Path:
        """Return the cache file: a hash of the request (server, path, body)."""
        whole = json.dumps([self.endpoint.base_url.rstrip("/"), path, body], sort_keys=True)
        digest = hashlib.sha256(whole.encode()).hexdigest()
        return self.cache / digest[:2] / f"{digest}.json"

    def _cached(self, place: Path) -> dict[str, Any] | None:
        try:
            return dict(json.loads(place.read_text(encoding="utf-8"))["response"])
        except FileNotFoundError:
            return None
        # bytes that are not text, or JSON of another shape
        except (ValueError, KeyError, TypeError):
            LOG.warning("damaged cache file %s: asked again", place.name)
            return None

    def read_kept(self, name: str) -> dict[str, Any] | None:
        """Return the value that `keep` stored under this name for this server and model."""
        return self._cached(self._place(name, {"model": self.endpoint.model}))

    def keep(self, name: str, value: Mapping[str, Any]) -> None:
        """Store a fact about the server with its cached answers."""
        body = {"model": self.endpoint.model}
        self._store(self._place(name, body), name, body, value)

    def _store(
        self, place: Path, path: str, body: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Store an answer (by renaming, so never in part), and return its stored form."""
        place.parent.mkdir(parents=True, exist_ok=True)
        # keep the server's key order: alternatives may be sorted best first
        text = json.dumps({"path": path, "request": body, "response": answer})
        temporary = place.with_name(f".{place.name}.{os.getpid()}.{threading.get_ident()}.part")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, place)
        return dict(json.loads(text)["response"])

    def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        url = self.endpoint.base_url.rstrip("/") + path

        def before(number: int, error: PassingError, seconds: float) -> None:
            with self._lock:
                self.usage.retries += 1
            LOG.warning("%s, attempt %d: %s; waits %.1f s", path, number + 1, error, seconds)

        try:
            return retried(
                lambda: self._ask_once(url, body),
                self.limits.attempts,
                wait=self._wait,
                sleep=self.sleep,
                before=before,
            )
        except PassingError as error:
            raise ApiError(
                f"{url}: no answer after {self.limits.attempts} attempts; last: {error}",
                error.status,
            ) from None  # the cause may contain the key

    def _ask_once(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request; raise PassingError if a retry may succeed, else ApiError."""
        self._limit.start()
        with self._lock:
            self.usage.requests += 1
        seconds = self.limits.timeout
        try:
            with self._line().open_response(
                "POST",
                url,
                Timeouts(seconds, seconds, WHOLE * seconds),
                json=body,
                auth=_Key(self.limits.key_variable),
                headers={"Accept-Encoding": "gzip"},
                allow_redirects=False,
            ) as response:
                received = whole_body(response, MOST_BYTES)
        except NoAnswerError as error:
            raise PassingError(self._clean(str(error))) from None
        try:
            answer, status, text = _received(response, received)
            if target := redirect(response):
                text = f"redirected to {target}; expected the base URL of the server itself"
        except ValueError:
            raise PassingError("an answer that is not JSON", status=200) from None
        if answer is not None:
            return answer
        problem = self._refused(url, status, text)
        header = response.headers.get("Retry-After")
        wait = retry_after(header, response.status_code, time.time())
        if wait is not None and wait > LONGEST_WAIT:
            raise ApiError(
                f"{url}: the server asks to wait {wait:.0f} s, more than {LONGEST_WAIT} s"
            )
        raise PassingError(problem, wait, status)

    def _wait(self, number: int, error: PassingError) -> float:
        """Return the seconds to wait: as the server asks, else growing exponentially."""
        grown = min(2.0**number, LONGEST_WAIT)
        return grown if error.wait is None else error.wait

    def _refused(self, url: str, status: int, text: str) -> str:
        """Describe the error; raise ApiError if a retry is useless."""
        text = self._clean(text).strip()[:500]  # cut last, or a part of the key would remain
        problem = f"HTTP {status}: {text}"
        if status == 500 and any(words in text for words in UNKNOWN):
            status = 501
        final = status not in {*TRANSIENT, 200} or any(c in text for c in EXHAUSTED)
        if final:
            hint = ""
            if status in (401, 403):
                state = "set" if os.environ.get(self.limits.key_variable) else "not set"
                hint = f" (environment variable {self.limits.key_variable} is {state})"
            raise ApiError(f"{url}: {problem}{hint}", status)
        return problem

    def _line(self) -> Session:
        if not hasattr(self._local, "line"):
            self._local.line = Session()
        line: Session = self._local.line
        return line

    def _clean(self, text: str) -> str:
        """Remove the key from `text`, in case a server sends it back."""
        key = os.environ.get(self.limits.key_variable, "").strip()
        return text.replace(key, "[key]") if key else text

    def _account(self, path: str, body: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Count and charge tokens: those reported, else the maximum possible.

        Raises ApiError for impossible counts, with which no cost could be limited.
        """
        usage = answer.get("usage") or {}
        if not isinstance(usage, dict):
            raise ApiError(f"{self.endpoint.base_url}{path}: usage {usage!r}; expected an object")
        prompt = self._reported(path, usage, "prompt_tokens") or None
        completion = self._reported(path, usage, "completion_tokens")
        # a token has at least one byte
        prompt_bytes = len(str(body.get("prompt") or body.get("messages") or "").encode())
        charged = (
            prompt_bytes if prompt is None else prompt,
            int(body.get("max_tokens", 0)) if completion is None else completion,
        )
        with self._lock:
            self.usage.unreported += prompt is None or completion is None
            self.usage.prompt_tokens += prompt or 0
            self.usage.completion_tokens += completion or 0
            per_prompt, per_completion = self.limits.prices
            self.usage.cost += (charged[0] * per_prompt + charged[1] * per_completion) / 1e6
        self._limit.used(sum(charged))

    def _reported(self, path: str, usage: Mapping[str, Any], name: str) -> int | None:
        count = usage.get(name)
        if count is None:
            return None
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_TOKENS:
            raise ApiError(
                f"{self.endpoint.base_url}{path}: usage says {name} {count!r}; expected a count "
                f"from 0 to {MOST_TOKENS:,}, costs cannot be limited otherwise"
            )
        return count

    def _check_cost(self) -> None:
        if self.limits.most and self.usage.cost >= self.limits.most:
            raise ApiError(
                f"cost {self.usage.cost:.4f} has reached the limit {self.limits.most}; answers "
                "so far are in the cache, raise the limit to go on"
            )

    def record(self) -> dict[str, Any]:
        """Return the server, model and usage, recorded with every result."""
        return {
            "server": self.endpoint.base_url,
            "model": self.endpoint.model,
            **{k: v for k, v in asdict(self.usage).items() if k != "cost"},
            "cost": round(self.usage.cost, 6),
        }


def _received(response: Any, body: bytes) -> tuple[dict[str, Any] | None, int, str]:
    """Return (answer, status, error); an error may also have status 200.

    Raises ValueError if the body is not JSON.
    """
    if response.status_code != 200:
        text = body.decode("utf-8", "replace")
        return None, response.status_code, text or response.reason
    try:
        answer = json.loads(body)
    except RecursionError:
        raise ValueError("nested without end") from None
    # an unpaired surrogate, from a token that is part of a character, is not valid text
    if b"\\ud" in body.lower() or b"\xed" in body:
        text = json.dumps(answer, ensure_ascii=False)
        answer = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    if not isinstance(answer, dict):
        return None, 200, "an answer that is not a JSON object"
    error = _error(answer)
    return (None, *error) if error else (answer, 200, "")


def _error(answer: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return (status, text) of an error with status 200, as a whole answer or as a choice.

    The status is the one named in the error, or else 200, and a retry may help.
    """
    choices = answer.get("choices")
    errors = [answer.get("error"), answer if answer.get("object") == "error" else None]
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict):
            broken = choice.get("finish_reason") == "error"
            errors.append(choice.get("error") or (choice if broken else None))
    error = next((one for one in errors if one), None)
    if error is None:
        return None
    code = str(error.get("code") if isinstance(error, dict) else "")
    status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else 200
    return status, json.dumps({"error": error}, ensure_ascii=False)
