"""Language models behind an OpenAI-compatible server: completions and chat.

    client = Client(Endpoint("https://host/v1", "some-model"), Path("results/api"))
    client.capabilities()            # probed once, then in the cache
    client.chat("What is the type of Paris?").text

What a server offers is tried, never assumed (scoring.md, section 4).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from kgprobe.probes.models.api_http import ApiError, Endpoint, Transport
from kgprobe.probes.models.load import ModelSpec

A = TypeVar("A")
B = TypeVar("B")
COMPLETIONS, CHAT = "/completions", "/chat/completions"
#: Statuses by which servers refuse a path or a parameter that they do not know.
UNSUPPORTED = frozenset({400, 404, 405, 415, 422, 501})
PROBE = "The capital of France is"


@dataclass(frozen=True)
class Capabilities:
    """What the server offers. `prompt_logprobs` is how: "echo", "field" or "" (not at all)."""

    completions: bool
    completion_logprobs: bool
    prompt_logprobs: str
    chat: bool
    chat_logprobs: bool


@dataclass(frozen=True)
class Token:
    """One token as the server cuts it: text, log-probability (None when not given), offset.

    `top` are the most likely tokens at its place with their log-probabilities.
    """

    text: str
    logprob: float | None
    start: int
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Answer:
    """Generated text, its tokens where log-probabilities were offered, and why it stopped."""

    text: str
    tokens: tuple[Token, ...]
    finish: str


class Client:
    """One model on one server."""

    def __init__(self, endpoint: Endpoint, cache: Path, **clock: Any) -> None:
        self.endpoint = endpoint
        self.transport = Transport(endpoint, cache, **clock)
        self._capabilities: Capabilities | None = None

    def capabilities(self) -> Capabilities:
        """What the server offers, by a few requests of one token; kept beside the cache.

        Raises ApiError when it offers neither completions nor chat.
        """
        if self._capabilities is None:
            kept = self.transport.kept("capabilities")
            found = Capabilities(**kept) if kept else self._probed()
            if not (found.completions or found.chat):
                raise ApiError(
                    f"{self.endpoint.base_url}: offers neither completions nor chat for the model "
                    f"{self.endpoint.model!r}"
                )
            self.transport.keep("capabilities", asdict(found))
            self._capabilities = found
        return self._capabilities

    def _probed(self) -> Capabilities:
        how = self._prompt_logprobs()
        plain = self._offers(COMPLETIONS, prompt=PROBE, logprobs=1)
        bare = plain is not None or self._offers(COMPLETIONS, prompt=PROBE) is not None
        message = [{"role": "user", "content": PROBE}]
        chat = self._offers(CHAT, messages=message, logprobs=True, top_logprobs=5)
        return Capabilities(
            completions=bare,
            completion_logprobs=bool((plain or {}).get("logprobs")),
            prompt_logprobs=how,
            chat=chat is not None or self._offers(CHAT, messages=message) is not None,
            chat_logprobs=bool(((chat or {}).get("logprobs") or {}).get("content")),
        )

    def _prompt_logprobs(self) -> str:
        """How log-probabilities of the prompt are had; a server may take `echo` and ignore it."""
        echoed = self._offers(COMPLETIONS, prompt=PROBE, logprobs=1, echo=True)
        logprobs = (echoed or {}).get("logprobs") or {}
        known = [p for p in logprobs.get("token_logprobs", [])[:-1] if p is not None]
        if echoed and echoed.get("text", "").startswith(PROBE) and known:
            return "echo"
        field = self._offers(COMPLETIONS, prompt=PROBE, prompt_logprobs=0)
        return "field" if field and field.get("prompt_logprobs") else ""

    def _offers(self, path: str, **body: Any) -> dict[str, Any] | None:
        """The first choice of a one-token answer, None when the server refuses the request."""
        try:
            answer = self.transport.post(path, {"max_tokens": 1, "temperature": 0, **body})
        except ApiError as error:
            if error.status in UNSUPPORTED:
                return None
            raise
        choices = answer.get("choices") or [{}]
        return dict(choices[0])

    def complete(self, prompt: str, tokens: int, top: int = 0) -> Answer:
        """At most `tokens` tokens after `prompt` at temperature 0, with `top` alternatives each."""
        body: dict[str, Any] = {"prompt": prompt, "max_tokens": tokens, "temperature": 0}
        if top:
            body["logprobs"] = top
        choice = self._choice(COMPLETIONS, body)
        logprobs = choice.get("logprobs") or {}
        return Answer(
            str(choice["text"]), _listed(logprobs), str(choice.get("finish_reason") or "")
        )

    def chat(
        self, message: str | Sequence[dict[str, str]], tokens: int = 64, top: int = 0
    ) -> Answer:
        """The model's reply to one user message, or to a list of role and content."""
        messages = [{"role": "user", "content": message}] if isinstance(message, str) else message
        body: dict[str, Any] = {
            "messages": list(messages), "max_tokens": tokens, "temperature": 0,
        }  # fmt: skip
        if top:
            body |= {"logprobs": True, "top_logprobs": top}
        choice = self._choice(CHAT, body)
        content = ((choice.get("logprobs") or {}).get("content")) or []
        found, start = [], 0
        for one in content:
            top_pairs = tuple(
                (t["token"], float(t["logprob"])) for t in one.get("top_logprobs", ())
            )
            found.append(Token(one["token"], float(one["logprob"]), start, top_pairs))
            start += len(one["token"])
        text = (choice.get("message") or {}).get("content") or ""
        return Answer(str(text), tuple(found), str(choice.get("finish_reason") or ""))

    def prompt_tokens(self, text: str) -> list[Token]:
        """The tokens of `text` with their log-probabilities, as the server cuts them.

        A token in front of the text (BOS) is left out. Raises ApiError when the server does not
        return log-probabilities of prompts.
        """
        how = self.capabilities().prompt_logprobs
        if not how:
            raise ApiError(
                f"{self.endpoint.model} on {self.endpoint.base_url} gives no log-probabilities of "
                "prompts, so sentences cannot be scored; use choice instead"
            )
        body: dict[str, Any] = {"prompt": text, "max_tokens": 1, "temperature": 0}
        if how == "echo":
            choice = self._choice(COMPLETIONS, body | {"logprobs": 1, "echo": True})
            tokens = list(_listed(choice.get("logprobs") or {}))
            shift = max(str(choice["text"]).find(text), 0)
        else:
            choice = self._choice(COMPLETIONS, body | {"prompt_logprobs": 0})
            tokens, shift = _from_field(choice["prompt_logprobs"], text), 0
        moved = [Token(t.text, t.logprob, t.start - shift, t.top) for t in tokens]
        inside = [t for t in moved if 0 <= t.start < len(text)]
        if not inside or inside[0].start != 0:
            raise ApiError(f"{self.endpoint.base_url}: its tokens do not cover {text[:80]!r}")
        return inside

    def _choice(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.transport.post(path, body)
        if not answer.get("choices"):
            raise ApiError(f"{self.endpoint.base_url}{path}: an answer without choices")
        return dict(answer["choices"][0])

    def map(self, ask: Callable[[A], B], inputs: Sequence[A], workers: int = 1) -> list[B]:
        """`ask` of every input, in order, with `workers` requests under way at once."""
        if workers == 1:
            return [ask(one) for one in inputs]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(ask, inputs))

    def record(self) -> dict[str, Any]:
        """Server, model, capabilities and usage."""
        known = asdict(self._capabilities) if self._capabilities else {}
        return {**self.transport.record(), "capabilities": known}


def open_client(spec: ModelSpec, settings: Mapping[str, Any]) -> Client:
    """The client of a row of models.tsv (source api:NAME) under the config's section `api`.

    Raises ApiError when the environment variable that must hold the base URL is not set.
    """
    variable = settings["url_variable"]
    base_url = os.environ.get(variable, "").strip()
    if not base_url:
        raise ApiError(
            f"{spec.model}: set the environment variable {variable} to the base URL of its server, "
            "for example http://127.0.0.1:8000/v1"
        )
    limits = ("requests_per_minute", "tokens_per_minute", "most", "timeout", "attempts")
    endpoint = Endpoint(
        base_url,
        spec.source.removeprefix("api:"),
        key_variable=settings["key_variable"],
        prices=tuple(settings["prices"]),
        **{name: settings[name] for name in limits},
    )
    return Client(endpoint, Path(settings["cache"]))


def _listed(logprobs: dict[str, Any]) -> tuple[Token, ...]:
    """Tokens of the completions format: parallel lists."""
    texts = logprobs.get("tokens") or []
    values = logprobs.get("token_logprobs") or [None] * len(texts)
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    starts = logprobs.get("text_offset")
    if not starts:
        starts = [sum(len(t) for t in texts[:i]) for i in range(len(texts))]
    return tuple(
        Token(t, v, s, tuple((top or {}).items()))
        for t, v, s, top in zip(texts, values, starts, tops, strict=True)
    )


def _from_field(entries: Sequence[dict[str, Any] | None], text: str) -> list[Token]:
    """Tokens of the `prompt_logprobs` form: for each one its own entry; the first has none.

    The first token's text is what the others leave of the text: nothing for a BOS token.
    """
    own = [next(iter(entry.values())) for entry in entries[1:] if entry]
    texts = [str(one["decoded_token"]) for one in own]
    first = len(text) - sum(map(len, texts))
    if not text.endswith("".join(texts)):
        raise ApiError(f"the server's tokens are not those of {text[:80]!r}: {texts[:8]}")
    tokens = [Token(text[:first], None, 0)] if first else []
    start = first
    for piece, one in zip(texts, own, strict=True):
        tokens.append(Token(piece, float(one["logprob"]), start))
        start += len(piece)
    return tokens
