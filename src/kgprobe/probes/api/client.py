"""Language models behind an OpenAI-compatible server: completions and chat.

    client = Client(Endpoint("https://host/v1", "some-model"), Path("data/api"))
    client.capabilities()            # probed once, then in the cache
    client.chat("What is the type of Paris?").text

What a server offers is tried, never assumed (docs/scoring.md, Servers).
"""

import contextlib
import itertools
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from kgprobe.probes.api.http import REFUSED, ApiEndpoint, ApiError, Transport
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings.probes import Api

A = TypeVar("A")
B = TypeVar("B")
COMPLETIONS, CHAT = "/completions", "/chat/completions"
#: Statuses by which servers refuse a path or a parameter that they do not know.
UNSUPPORTED = frozenset({400, 404, 405, 415, 422, 501})
PROBE = "The capital of France is"
#: A token of a prompt that a server has read as a control token: none is written like these.
CONTROL = re.compile(
    r"<\|[^<>|\s]+\|>|</?s>|<(?:unk|pad|mask|bos|eos|extra_id_\d+)>|\[(?:MASK|CLS|SEP|PAD|UNK)\]"
)
#: How far rounding may raise a log-probability of about 0 above it.
ROUNDING = 1e-4


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
class Completion:
    """Generated text, its tokens where log-probabilities were offered, and why it stopped."""

    text: str
    tokens: tuple[Token, ...]
    finish: str


class Client:
    """One model on one server."""

    def __init__(self, endpoint: ApiEndpoint, cache: Path, **clock: Any) -> None:
        self.endpoint = endpoint
        self.transport = Transport(endpoint, cache, **clock)
        self._capabilities: Capabilities | None = None
        self._refusal = ""

    def capabilities(self) -> Capabilities:
        """What the server offers, by a few requests of one token; kept beside the cache.

        Raises ApiError when it offers neither completions nor chat.
        """
        if self._capabilities is None:
            kept = self.transport.read_kept("capabilities")
            # another version may have kept others
            known = kept and kept.keys() == {field.name for field in fields(Capabilities)}
            offers = Capabilities(**kept) if kept and known else self._probed()
            if not (offers.completions or offers.chat):
                raise ApiError(
                    f"{self.endpoint.base_url}: offers neither completions nor chat for the model "
                    f"{self.endpoint.model!r}; it says {self._refusal}"
                )
            self.transport.keep("capabilities", asdict(offers))
            self._capabilities = offers
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
            chat_logprobs=bool(_given(chat, "logprobs", "content")),
        )

    def _prompt_logprobs(self) -> str:
        """How the server returns log-probabilities of prompts; it may take `echo` and ignore it."""
        for how, (parameters, read) in PROMPT_LOGPROBS.items():
            choice = self._offers(COMPLETIONS, prompt=PROBE, **parameters)
            with contextlib.suppress(MalformedError):
                if choice and _of_a_text(read(choice, PROBE)):
                    return how
        return ""

    def _offers(self, path: str, **body: Any) -> dict[str, Any] | None:
        """The first choice of a one-token answer, None when the server refuses the request."""
        try:
            return self._post(path, {"max_tokens": 1, "temperature": 0, **body}, _choice)
        except ApiError as error:
            if error.status in UNSUPPORTED:
                self._refusal = str(error)
                return None
            raise

    def complete(self, prompt: str, tokens: int, top: int = 0) -> Completion:
        """At most `tokens` tokens after `prompt` at temperature 0, with `top` alternatives each."""
        body: dict[str, Any] = {"prompt": prompt, "max_tokens": tokens, "temperature": 0}
        if top:
            body["logprobs"] = top
        return self._post(COMPLETIONS, body, lambda answer: _completion(answer, bool(top)))

    def chat(self, message: str, tokens: int = 64, top: int = 0) -> Completion:
        """The model's reply to one user message."""
        messages = [{"role": "user", "content": message}]
        body: dict[str, Any] = {"messages": messages, "max_tokens": tokens, "temperature": 0}
        if top:
            body |= {"logprobs": True, "top_logprobs": top}
        return self._post(CHAT, body, lambda answer: _message(answer, bool(top)))

    def prompt_tokens(self, text: str) -> list[Token]:
        """The tokens of `text` with their log-probabilities, as the server cuts them.

        A token in front of the text (BOS) is left out; without one the first token may have no
        log-probability. Raises ApiError when the server does not return those of prompts.
        """
        how = self.capabilities().prompt_logprobs
        if not how:
            raise ApiError(
                f"{self.endpoint.model} on {self.endpoint.base_url} gives no log-probabilities of "
                "prompts, so sentences cannot be scored; use choice instead"
            )
        parameters, read = PROMPT_LOGPROBS[how]
        body: dict[str, Any] = {"prompt": text, "max_tokens": 1, "temperature": 0, **parameters}

        def tokens(answer: dict[str, Any]) -> list[Token]:
            prompt = read(_choice(answer), text)
            if control := next((t.text for t in prompt if CONTROL.fullmatch(t.text.strip())), ""):
                raise MalformedError(
                    f"it reads {control!r} in {text[:80]!r} as a control token and not as text; "
                    "correct the text or leave it out"
                )
            if not _of_a_text(prompt):
                raise MalformedError(
                    f"its log-probabilities of {text[:80]!r} are none of a text: all are 0"
                )
            return prompt

        return self._post(COMPLETIONS, body, tokens)

    def _post(self, path: str, body: dict[str, Any], read: Callable[[dict[str, Any]], A]) -> A:
        """The answer as `read` parses it; its MalformedError becomes ApiError with the address."""

        def checked(answer: dict[str, Any]) -> A:
            try:
                return read(answer)
            except MalformedError as error:
                raise ApiError(f"{self.endpoint.base_url}{path}: {error}") from error

        return self.transport.post(path, body, checked)

    def map(self, ask: Callable[[A], B], inputs: Sequence[A], workers: int = 1) -> list[B]:
        """`ask` of every input, in order, with `workers` requests under way at once."""
        if workers == 1:
            return [ask(one) for one in inputs]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(ask, inputs))

    def try_map(
        self, ask: Callable[[A], B], inputs: Sequence[A], workers: int = 1
    ) -> list[B | str]:
        """`map` that gives the reason for an input that is refused for what it asks: a dead server
        or a wrong key raises ApiError."""

        def one(value: A) -> B | str:
            try:
                return ask(value)
            except ApiError as error:
                if error.status not in REFUSED:
                    raise
                return f"refused with HTTP {error.status}"

        return self.map(one, inputs, workers)

    def record(self) -> dict[str, Any]:
        """Server, model, capabilities and usage."""
        known = asdict(self._capabilities) if self._capabilities else {}
        return {**self.transport.record(), "capabilities": known}


def open_client(spec: ModelSpec, settings: Api) -> Client:
    """The client of a row of models.tsv under the config's section `api`: its server has the model
    by the name in the source (api:NAME).

    Raises ApiError when the environment variable that must hold the base URL is not set.
    """
    variable = settings.url_variable
    base_url = os.environ.get(variable, "").strip()
    if not base_url:
        raise ApiError(
            f"{spec.model}: set the environment variable {variable} to the base URL of its server, "
            "for example http://127.0.0.1:8000/v1"
        )
    names = {field.name for field in fields(ApiEndpoint)} & vars(settings).keys()
    given = {name: getattr(settings, name) for name in names}
    endpoint = ApiEndpoint(base_url, spec.source.partition(":")[2], **given)
    return Client(endpoint, Path(settings.cache))


class MalformedError(ValueError):
    """An answer that is not as the interface says; the message names the field."""


def _choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The first choice of an answer."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise MalformedError(f"an answer without choices: {str(answer)[:200]}")
    return dict(choices[0])


def _completion(answer: Mapping[str, Any], with_logprobs: bool) -> Completion:
    choice = _choice(answer)
    text = _field(choice, "text", str)
    logprobs = _of(choice, "logprobs") if with_logprobs else {}
    # llama.cpp gives completions the form of chats
    tokens = _parse_chat(logprobs) if "content" in logprobs else _parse_completion(logprobs)
    return _answer(choice, text, tokens, with_logprobs)


def _message(answer: Mapping[str, Any], with_logprobs: bool) -> Completion:
    """The reply of a chat; its text is null where a model has only refused or only reasoned."""
    choice = _choice(answer)
    message = _field(choice, "message", dict)
    text = "" if message.get("content", 0) is None else _field(message, "content", str)
    tokens = _parse_chat(_of(choice, "logprobs")) if with_logprobs else ()
    return _answer(choice, text, tokens, with_logprobs)


def _parse_chat(logprobs: Mapping[str, Any]) -> tuple[Token, ...]:
    """Tokens of the chat format: a list of objects."""
    tokens, start = [], 0
    for one in _list(logprobs, "content"):
        top = tuple(
            (_field(t, "token", str), _logprob(t.get("logprob")))
            for t in _list(one, "top_logprobs")
        )
        token = _field(one, "token", str)
        tokens.append(Token(token, _logprob(one.get("logprob")), start, top))
        start += len(token)
    return tuple(tokens)


def _answer(
    choice: Mapping[str, Any], text: str, tokens: tuple[Token, ...], with_logprobs: bool
) -> Completion:
    if with_logprobs and text and not tokens:
        raise MalformedError(
            f"no log-probabilities, which were asked for, of the text {text[:80]!r}"
        )
    return Completion(text, tokens, str(choice.get("finish_reason") or ""))


def _field(record: Any, name: str, kind: type[A]) -> A:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        raise MalformedError(f"{name} is {value!r:.200}; expected {kind.__name__}")
    return value


def _of(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object that may be left out."""
    return _field(record, name, dict) if record.get(name) is not None else {}


def _list(record: Any, name: str) -> list[Any]:
    """A list that may be left out, of what must be an object."""
    value = record.get(name) if isinstance(record, dict) else record
    if isinstance(record, dict) and value is None:
        return []
    if not isinstance(value, list) or not isinstance(record, dict):
        raise MalformedError(f"{name} is {value!r:.200}; expected a list")
    return value


def _logprob(value: Any) -> float:
    """A log-probability, finite and not above 0 but for rounding."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not math.isfinite(value) or value > ROUNDING:
        raise MalformedError(f"log-probability {value!r}; expected a finite number up to 0")
    return min(float(value), 0.0)


def _parse_completion(logprobs: Mapping[str, Any], of_prompt: bool = False) -> tuple[Token, ...]:
    """Tokens of the completions format: parallel lists.

    Of a prompt the first token may have no log-probability: nothing stands before it.
    """
    texts = _list(logprobs, "tokens")
    values = _list(logprobs, "token_logprobs")
    tops = logprobs.get("top_logprobs") or [None] * len(texts)
    lengths = [len(str(text)) for text in texts]
    starts = logprobs.get("text_offset") or [sum(lengths[:place]) for place in range(len(texts))]
    lists = {"token_logprobs": values, "top_logprobs": tops, "text_offset": starts}
    for name, column in lists.items():
        if not isinstance(column, list) or len(column) != len(texts):
            raise MalformedError(f"{len(texts)} tokens, but {name} is {column!r:.200}")
    tokens = []
    for place, (text, value, start, top) in enumerate(
        zip(texts, values, starts, tops, strict=True)
    ):
        if not isinstance(text, str) or not isinstance(start, int):
            raise MalformedError(
                f"token {place} is {text!r} at {start!r}; expected a text and a number"
            )
        if not isinstance(top, dict | None):
            raise MalformedError(f"top_logprobs of token {place} is {top!r:.200}; expected dict")
        first = of_prompt and place == 0 and value is None
        pairs = tuple((t, _logprob(p)) for t, p in (top or {}).items()) if not of_prompt else ()
        tokens.append(Token(text, None if first else _logprob(value), start, pairs))
    return tuple(tokens)


def _echoed(choice: Mapping[str, Any], text: str) -> list[Token]:
    """Tokens of a text that was sent back (`echo`), offsets counted from its beginning.

    Servers that sum up the lengths of tokens (vLLM) count a BOS token that the text lacks, and the
    pieces of a character as a character each: what then stands elsewhere is refused.
    """
    whole = _field(choice, "text", str)
    shift = whole.find(text)
    if shift < 0:
        raise MalformedError(f"echo gives {whole[:80]!r} for {text[:80]!r}")
    tokens = list(_parse_completion(_of(choice, "logprobs"), of_prompt=True))
    if len(tokens) > 1 and not _stands(tokens[0].text, whole, 0):
        shift += tokens[1].start - tokens[0].start
        del tokens[0]
    moved = [Token(t.text, t.logprob, t.start - shift) for t in tokens]
    inside = [t for t in moved if 0 <= t.start < len(text)]
    rising = all(a.start <= b.start for a, b in itertools.pairwise(inside))
    standing = all(_stands(t.text, text, t.start) for t in inside)
    behind = sum(t.start >= len(text) for t in moved)  # the one that was generated
    if not inside or inside[0].start != 0 or not rising or not standing or behind > 1:
        raise MalformedError(f"its tokens do not cover {text[:80]!r}")
    return inside


def _stands(token: str, text: str, start: int) -> bool:
    """Whether a token stands at this place, as far as that can be seen of it; the first one may
    have a space of its own."""
    is_there = text.startswith(token if start else token.lstrip(), start)
    return is_there or is_piece(token)


def _given(record: Any, *names: str) -> list[Any]:
    """The list that a server gives under some names; none where it gives anything else."""
    for name in names:
        record = record.get(name) if isinstance(record, dict) else None
    return record if isinstance(record, list) else []


def is_piece(token: str) -> bool:
    """Whether a token is a piece of a character, which servers write as they can."""
    return "\ufffd" in token or token.startswith("bytes:")


def _of_a_text(tokens: Sequence[Token]) -> bool:
    """Whether these can be the tokens of a text: not all log-probabilities are 0."""
    return any(token.logprob for token in tokens)


def _from_field(choice: Mapping[str, Any], text: str) -> list[Token]:
    """Tokens of the `prompt_logprobs` form: for each one its own entry; the first has none.

    The first token's text is what the others leave of the text: nothing for a BOS token.
    """
    entries = _field(choice, "prompt_logprobs", list)
    if any(not isinstance(entry, dict) or not entry for entry in entries[1:]):
        raise MalformedError("prompt_logprobs lacks the entry of a token that is not the first")
    records = [next(iter(entry.values())) for entry in entries[1:]]
    texts = [_field(one, "decoded_token", str) for one in records]
    first = len(text) - sum(map(len, texts))
    if not text.endswith("".join(texts)):
        raise MalformedError(f"the server's tokens are not those of {text[:80]!r}: {texts[:8]}")
    tokens = [Token(text[:first], None, 0)] if first else []
    start = first
    for piece, one in zip(texts, records, strict=True):
        tokens.append(Token(piece, _logprob(one.get("logprob")), start))
        start += len(piece)
    return tokens


#: How log-probabilities of a prompt are asked for, and read.
PROMPT_LOGPROBS: Mapping[str, tuple[dict[str, Any], Callable[[dict[str, Any], str], list[Token]]]]
PROMPT_LOGPROBS = {
    "echo": ({"logprobs": 1, "echo": True}, _echoed),
    "field": ({"prompt_logprobs": 0}, _from_field),
}
