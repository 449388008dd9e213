"""Language models behind an OpenAI-compatible server: completions and chat.

    client = Client(ApiEndpoint("https://host/v1", "some-model"), Path("data/api"))
    client.capabilities()            # tested once, then cached
    client.chat("What is the type of Paris?").text

What a server supports is tested, never assumed (docs/scoring.md, Servers).
"""

import contextlib
import itertools
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from kgprobe.probes.api.http import REFUSED, ApiEndpoint, ApiError, Transport
from kgprobe.probes.models.load import ModelSpec
from kgprobe.settings.probes import Api

A = TypeVar("A")
B = TypeVar("B")
COMPLETIONS, CHAT = "/completions", "/chat/completions"
#: Statuses with which servers reject an unknown path or parameter.
UNSUPPORTED = frozenset({400, 404, 405, 415, 422, 501})
PROBE = "The capital of France is"
#: Control tokens in a server's tokens of a prompt: no ordinary token is written like these.
CONTROL = re.compile(
    r"<\|[^<>|\s]+\|>|</?s>|<(?:unk|pad|mask|bos|eos|extra_id_\d+)>|\[(?:MASK|CLS|SEP|PAD|UNK)\]"
)
#: Fields of a chat message with a model's reasoning, which is not part of its reply.
REASONING = ("reasoning_content", "reasoning")
#: How far above 0 rounding may raise a log-probability of about 0.
ROUNDING = 1e-4


@dataclass(frozen=True)
class Capabilities:
    """What the server supports. `prompt_logprobs` is the method: "echo", "field" or "" (none)."""

    completions: bool
    completion_logprobs: bool
    prompt_logprobs: str
    chat: bool
    chat_logprobs: bool


@dataclass(frozen=True)
class Token:
    """One token as the server splits it: text, log-probability (None if not given), offset.

    `top` are the most likely tokens at its position with their log-probabilities.
    """

    text: str
    logprob: float | None
    start: int
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Completion:
    """Generated text, its tokens if log-probabilities were available, and why it stopped."""

    text: str
    tokens: tuple[Token, ...]
    finish: str


class Client:
    """Client for one model on one server."""

    def __init__(self, endpoint: ApiEndpoint, cache: Path, **clock: Any) -> None:
        self.endpoint = endpoint
        self.transport = Transport(endpoint, cache, **clock)
        self._capabilities: Capabilities | None = None
        self._refusal = ""

    def capabilities(self) -> Capabilities:
        """Return what the server supports, tested with one-token requests and then cached.

        Raises ApiError if it supports neither completions nor chat.
        """
        if self._capabilities is None:
            kept = self.transport.read_kept("capabilities")
            # another version may have stored other fields
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
        """Test how the server returns prompt log-probabilities; it may ignore `echo`."""
        for how, (parameters, read) in PROMPT_LOGPROBS.items():
            choice = self._offers(COMPLETIONS, prompt=PROBE, **parameters)
            with contextlib.suppress(MalformedError):
                if choice and _of_a_text(read(choice, PROBE)):
                    return how
        return ""

    def _offers(self, path: str, **body: Any) -> dict[str, Any] | None:
        """Return the first choice of a one-token answer, None if the server rejects the request."""
        try:
            return self._post(path, {"max_tokens": 1, "temperature": 0, **body}, _choice)
        except ApiError as error:
            if error.status in UNSUPPORTED:
                self._refusal = str(error)
                return None
            raise

    def complete(self, prompt: str, tokens: int, top: int = 0) -> Completion:
        """Generate at most `tokens` tokens at temperature 0, with `top` alternatives for each."""
        body: dict[str, Any] = {"prompt": prompt, "max_tokens": tokens, "temperature": 0}
        if top:
            body["logprobs"] = top
        return self._post(COMPLETIONS, body, lambda answer: _completion(answer, bool(top)))

    def chat(self, message: str, tokens: int = 64, top: int = 0) -> Completion:
        """Return the model's reply to one user message."""
        messages = [{"role": "user", "content": message}]
        body: dict[str, Any] = {"messages": messages, "max_tokens": tokens, "temperature": 0}
        if top:
            body |= {"logprobs": True, "top_logprobs": top}
        return self._post(CHAT, body, lambda answer: _message(answer, bool(top)))

    def prompt_tokens(self, text: str) -> list[Token]:
        """Return the tokens of `text` with their log-probabilities, as the server splits them.

        A token before the text (BOS) is dropped; without one the first token may have no
        log-probability. Raises ApiError if the server does not return log-probabilities of prompts.
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
        """Post, and parse the answer with `read`; MalformedError becomes ApiError."""

        def checked(answer: dict[str, Any]) -> A:
            try:
                return read(answer)
            except MalformedError as error:
                raise ApiError(f"{self.endpoint.base_url}{path}: {error}") from error

        return self.transport.post(path, body, checked)

    def map(self, ask: Callable[[A], B], inputs: Sequence[A], workers: int = 1) -> list[B]:
        """Apply `ask` to every input, in order, with `workers` requests at a time."""
        if workers == 1:
            return [ask(one) for one in inputs]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(ask, inputs))

    def try_map(
        self, ask: Callable[[A], B], inputs: Sequence[A], workers: int = 1
    ) -> list[B | str]:
        """Like `map`, but return the reason for an input whose content is rejected; a dead server
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
        """Return server, model, capabilities and usage."""
        known = asdict(self._capabilities) if self._capabilities else {}
        return {**self.transport.record(), "capabilities": known}


def open_client(spec: ModelSpec, settings: Api) -> Client:
    """Create the client of a row of models.tsv with the config section `api`; the source (api:NAME)
    is the model's name on its server.

    Raises ApiError if the environment variable for the base URL is not set.
    """
    variable = settings.url_variable
    base_url = os.environ.get(variable, "").strip()
    if not base_url:
        raise ApiError(
            f"{spec.model}: set the environment variable {variable} to the base URL of its server, "
            "for example http://127.0.0.1:8000/v1"
        )
    endpoint = ApiEndpoint(base_url, spec.source.partition(":")[2], settings)
    return Client(endpoint, Path(settings.cache))


class MalformedError(ValueError):
    """An answer does not conform to the interface; the message names the field."""


def _choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first choice of an answer."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise MalformedError(f"an answer without choices: {str(answer)[:200]}")
    return dict(choices[0])


def _completion(answer: Mapping[str, Any], with_logprobs: bool) -> Completion:
    choice = _choice(answer)
    text = _field(choice, "text", str)
    logprobs = _of(choice, "logprobs") if with_logprobs else {}
    # llama.cpp uses the chat format for completions
    tokens = _parse_chat(logprobs) if "content" in logprobs else _parse_completion(logprobs)
    return _answer(choice, text, tokens, with_logprobs)


def _message(answer: Mapping[str, Any], with_logprobs: bool) -> Completion:
    """Parse the reply of a chat; its text is null if a model only refused or only reasoned."""
    choice = _choice(answer)
    message = _field(choice, "message", dict)
    text = "" if message.get("content", 0) is None else _field(message, "content", str)
    tokens = _parse_chat(_of(choice, "logprobs")) if with_logprobs else ()
    if any(message.get(name) for name in REASONING):
        return _answer(choice, text, _behind_reasoning(tokens, text), with_logprobs=False)
    return _answer(choice, text, tokens, with_logprobs)


def _behind_reasoning(tokens: tuple[Token, ...], text: str) -> tuple[Token, ...]:
    """Return the tokens of the reply, which servers list after those of its reasoning; none if they
    cannot be told apart (parts of characters), or if the model only reasoned."""
    wanted, whole = text.strip(), "".join(token.text for token in tokens)
    for place in reversed(range(len(tokens))):
        start = tokens[place].start
        if wanted and whole[start:].lstrip().startswith(wanted):
            return tuple(replace(token, start=token.start - start) for token in tokens[place:])
    return ()


def _parse_chat(logprobs: Mapping[str, Any]) -> tuple[Token, ...]:
    """Parse tokens of the chat format: a list of objects."""
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
    return Completion(text, _with_spaces(tokens, text), str(choice.get("finish_reason") or ""))


def _with_spaces(tokens: tuple[Token, ...], text: str) -> tuple[Token, ...]:
    """Restore the spaces of the text that a server strips from its tokens (vLLM for SentencePiece
    vocabularies), also in alternatives that begin with a letter or digit."""
    joined, restored, place = "".join(token.text for token in tokens), list(tokens), 0
    if text.startswith(joined) or joined.startswith(text):
        return tokens
    for number, token in enumerate(tokens):
        if token.text and text.startswith(f" {token.text}", place):
            top = tuple(
                (" " * other[:1].isalnum() + other, logprob) for other, logprob in token.top
            )
            restored[number] = replace(token, text=f" {token.text}", top=top)
        elif not text.startswith(token.text, place):
            break
        place += len(restored[number].text)
    return tuple(restored)


def _field(record: Any, name: str, kind: type[A]) -> A:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        raise MalformedError(f"{name} is {value!r:.200}; expected {kind.__name__}")
    return value


def _of(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object that may be omitted."""
    return _field(record, name, dict) if record.get(name) is not None else {}


def _list(record: Any, name: str) -> list[Any]:
    """Return a list that may be omitted from a record, which must be an object."""
    value = record.get(name) if isinstance(record, dict) else record
    if isinstance(record, dict) and value is None:
        return []
    if not isinstance(value, list) or not isinstance(record, dict):
        raise MalformedError(f"{name} is {value!r:.200}; expected a list")
    return value


def _logprob(value: Any) -> float:
    """Return a log-probability, which must be finite and not above 0 except for rounding."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not math.isfinite(value) or value > ROUNDING:
        raise MalformedError(f"log-probability {value!r}; expected a finite number up to 0")
    return min(float(value), 0.0)


def _parse_completion(logprobs: Mapping[str, Any], of_prompt: bool = False) -> tuple[Token, ...]:
    """Parse tokens of the completions format: parallel lists.

    In a prompt the first token may have no log-probability, since it has no context.
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
    """Parse tokens of an echoed text (`echo`), with offsets counted from its beginning.

    Servers that add up token lengths (vLLM) count a BOS token that the text lacks, and every piece
    of a character as one character: tokens at wrong positions are then rejected.
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
    behind = sum(t.start >= len(text) for t in moved)  # the generated token
    ends = zip(inside, [*(t.start for t in inside[1:]), len(text)], strict=True)
    # some servers leave out the spaces before tokens
    missing = any(
        text[token.start + len(token.text) : end].strip()
        for token, end in ends
        if not is_piece(token.text)
    )
    if not inside or inside[0].start != 0 or not rising or not standing or behind > 1 or missing:
        raise MalformedError(f"its tokens do not cover {text[:80]!r}")
    return inside


def _stands(token: str, text: str, start: int) -> bool:
    """Return whether a token occurs at this position, as far as can be checked; the first token may
    have an extra space."""
    is_there = text.startswith(token if start else token.lstrip(), start)
    return is_there or is_piece(token)


def _given(record: Any, *names: str) -> list[Any]:
    """Return the list that a server gives under nested names, or an empty one for anything else."""
    for name in names:
        record = record.get(name) if isinstance(record, dict) else None
    return record if isinstance(record, list) else []


def is_piece(token: str) -> bool:
    """Return whether a token is part of a character, which servers write in various forms."""
    return "\ufffd" in token or token.startswith("bytes:")


def _of_a_text(tokens: Sequence[Token]) -> bool:
    """Return whether these can be tokens of a text: not all log-probabilities are 0."""
    return any(token.logprob for token in tokens)


def _from_field(choice: Mapping[str, Any], text: str) -> list[Token]:
    """Parse tokens of the `prompt_logprobs` format: an entry for each token except the first.

    The first token's text is the rest of the text before the others: empty for a BOS token.
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


#: Request parameters and parser for each method of prompt log-probabilities.
PROMPT_LOGPROBS: Mapping[str, tuple[dict[str, Any], Callable[[dict[str, Any], str], list[Token]]]]
PROMPT_LOGPROBS = {
    "echo": ({"logprobs": 1, "echo": True}, _echoed),
    "field": ({"prompt_logprobs": 0}, _from_field),
}
