"""A small OpenAI-compatible server for one causal model, on loopback.

    kgprobe serve smollm2-135m-instruct --port 8000
    export KGPROBE_API_URL=http://127.0.0.1:8000/v1

It answers /v1/completions (echo, logprobs, prompt_logprobs) and /v1/chat/completions (logprobs) at
temperature 0, one request at a time, and says its model at /v1/models: enough to try models of kind
api without a network, and not made for more. Chat goes through the tokenizer's template, or through
lines of "role: content". What it does not know is told in JSON, with the status that is meant for
it.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import numpy as np
import torch

from kgprobe.probes.models.continuation import CausalText
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.load import Loaded, ModelError
from kgprobe.probes.scoring.fill.decoding import greedy
from kgprobe.probes.scoring.sentence.score import bos_prefix

EVERYTHING = frozenset("completions logprobs echo field chat chat_logprobs usage".split())
#: how models are looked at, and path -> the methods that are answered there
LOOKED_AT = ("GET", "HEAD", "OPTIONS")
PATHS = {"/models": LOOKED_AT, "/completions": ("POST", "OPTIONS"),
         "/chat/completions": ("POST", "OPTIONS")}  # fmt: skip
#: What is answered in return for a request: HTTP status and JSON.
Reply = tuple[int, dict[str, Any]]


class Speaker:
    """What a server needs of a model: encode, logprobs, generate, text, chat, limit."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.text_of = loaded, CausalText(loaded)
        self.lock = threading.Lock()
        self.tokenizer, self.limit = loaded.tokenizer, loaded.limit
        self.prefix = bos_prefix(loaded)[0]
        self.ends = frozenset(self.tokenizer.all_special_ids)

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids and character spans of a text, without special tokens."""
        coded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(coded["input_ids"]), [tuple(o) for o in coded["offset_mapping"]]

    def chat(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[int], bool]:
        """Ids of a conversation that waits for a reply, and whether they begin with BOS."""
        if not self.tokenizer.chat_template:
            text = "".join(f"{m['role']}: {m['content']}\n" for m in messages) + "assistant:"
            return self.encode(text)[0], False
        text = self.tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=False
        )
        return self.encode(text)[0], True

    def logprobs(self, ids: Sequence[int], whole: bool = False) -> Any:
        """Log-probabilities after every token of the prefix and `ids`."""
        row = self._row(ids, whole)
        with self.lock, torch.inference_mode():
            batch = torch.from_numpy(row)[None].to(self.loaded.device)
            logits = self.loaded.model(batch).logits[0].float()
        found = logits[0 if whole else max(len(self.prefix) - 1, 0) :].log_softmax(-1).cpu()
        finite(found.amax(-1), self.loaded.spec.model, "token {} of the prompt".format)
        return found

    def _check(self, values: Any, owners: Sequence[int], step: int) -> None:
        finite(values, self.loaded.spec.model, lambda *_: f"token {step} of the answer")

    def generate(
        self, ids: Sequence[int], tokens: int, top: int, whole: bool = False
    ) -> list[tuple[int, float, list[tuple[int, float]]]]:
        """(id, log-probability, alternatives) of the greedy continuation, up to a special token."""
        if not tokens:
            return []
        with self.lock:
            stream = self.text_of.open([self._row(ids, whole)])
            values, columns = greedy(stream, 1, tokens, max(top, 1), self._check)
        found = []
        for logprobs, best in zip(values[0].tolist(), columns[0].tolist(), strict=True):
            alternatives = list(zip(best, logprobs, strict=True))[:top]
            found.append((best[0], logprobs[0], alternatives))
            if best[0] in self.ends:
                break
        return found

    def text(self, token: int) -> str:
        return "" if token in self.ends else str(self.tokenizer.decode([token]))

    def _row(self, ids: Sequence[int], whole: bool) -> Any:
        own = np.array(ids, dtype=np.int64)
        return own if whole else np.concatenate([self.prefix, own])


class Answers:
    """Requests to JSON. `offers` is a subset of EVERYTHING: what the server pretends to know."""

    def __init__(self, lm: Any, offers: frozenset[str] = EVERYTHING) -> None:
        self.lm, self.offers = lm, offers

    def models(self, name: str = "") -> Reply:
        """The one model, in a list or by its name."""
        own = self.lm.loaded.spec.model
        # nobody recorded when it was made
        model = {"id": own, "object": "model", "created": 0, "owned_by": "kgprobe"}
        if not name:
            return 200, {"object": "list", "data": [model]}
        if name == own:
            return 200, model
        told = f"no such model: {name}; this server has {own}"
        return 404, {"error": {"message": told, "code": "model_not_found"}}

    def answer(self, path: str, body: dict[str, Any]) -> Reply:
        """The reply to a POST request."""
        if path == "/completions" and "completions" in self.offers:
            return self._completion(body)
        if path == "/chat/completions" and "chat" in self.offers:
            return self._chat(body)
        return 404, {"error": {"message": f"no such path: {path}"}}

    def _completion(self, body: dict[str, Any]) -> Reply:
        wanted = {"logprobs": "logprobs", "echo": "echo", "prompt_logprobs": "field"}
        for parameter, offer in wanted.items():
            if parameter in body and offer not in self.offers:
                return 400, {"error": {"message": f"unknown parameter {parameter}"}}
        ids, spans = self.lm.encode(body["prompt"])
        if refused := self._too_long(ids, body):
            return refused
        new = self.lm.generate(ids, body.get("max_tokens", 16), body.get("logprobs", 0))
        text = "".join(self.lm.text(i) for i, _, _ in new)
        choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": "length"}
        own: list[float] = []
        if body.get("echo") or "prompt_logprobs" in body:
            known = self.lm.logprobs(ids)
            own = [float(known[j, i]) for j, i in enumerate(ids)]
        if body.get("echo"):
            choice["text"] = body["prompt"] + text
        if "logprobs" in body:
            choice["logprobs"] = self._lists(body, ids, spans, own, new)
        if "prompt_logprobs" in body:
            # as servers do that put BOS in front: its own entry is null
            entries = [{str(i): self._entry(i, p)} for i, p in zip(ids, own, strict=True)]
            choice["prompt_logprobs"] = [None, *entries]
        return 200, self._whole("text_completion", choice, len(ids) + 1, len(new))

    def _too_long(self, ids: Sequence[int], body: Mapping[str, Any]) -> Reply | None:
        """A refusal where prompt and answer do not fit into the model's window."""
        asked, limit = 1 + len(ids) + int(body.get("max_tokens", 16)), self.lm.limit
        if asked <= limit:
            return None
        message = f"this model takes {limit} tokens, prompt and answer have {asked}"
        return 400, {"error": {"message": message, "code": "context_length_exceeded"}}

    def _entry(self, token: int, logprob: float) -> dict[str, Any]:
        return {"logprob": logprob, "rank": 1, "decoded_token": self.lm.text(token)}

    def _lists(
        self, body: Any, ids: Any, spans: Any, own: list[float], new: Any
    ) -> dict[str, list[Any]]:
        """The parallel lists of the completions format; with echo the prompt's tokens first."""
        tokens: list[str] = []
        values: list[float] = []
        starts: list[int] = []
        tops: list[Any] = []
        if body.get("echo"):
            tokens = [body["prompt"][a:b] for a, b in spans]
            values, starts, tops = list(own), [a for a, _ in spans], [None] * len(ids)
        position = len(body["prompt"])
        for token, value, alternatives in new:
            tokens.append(self.lm.text(token))
            values.append(value)
            starts.append(position)
            tops.append({self.lm.text(i): p for i, p in alternatives})
            position += len(tokens[-1])
        return {
            "tokens": tokens, "token_logprobs": values, "text_offset": starts, "top_logprobs": tops
        }  # fmt: skip

    def _chat(self, body: dict[str, Any]) -> Reply:
        if "logprobs" in body and "chat_logprobs" not in self.offers:
            return 400, {"error": {"message": "unknown parameter logprobs"}}
        ids, whole = self.lm.chat(body["messages"])
        if refused := self._too_long(ids, body):
            return refused
        tokens, top = body.get("max_tokens", 16), body.get("top_logprobs", 0)
        new = self.lm.generate(ids, tokens, top, whole)
        reply = "".join(self.lm.text(i) for i, _, _ in new)
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": reply},
            "finish_reason": "length" if len(new) == tokens else "stop",
        }
        if body.get("logprobs"):
            content = [
                {"token": self.lm.text(i), "logprob": p,
                 "top_logprobs": [{"token": self.lm.text(t), "logprob": v} for t, v in best]}
                for i, p, best in new
            ]  # fmt: skip
            choice["logprobs"] = {"content": content}
        return 200, self._whole("chat.completion", choice, len(ids) + 1, len(new))

    def _whole(
        self, kind: str, choice: dict[str, Any], prompt: int, completion: int
    ) -> dict[str, Any]:
        answer: dict[str, Any] = {"id": "x", "object": kind, "choices": [choice]}
        if "usage" in self.offers:
            total = prompt + completion
            answer["usage"] = {
                "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total
            }  # fmt: skip
        return answer


class Server:
    """`with Server(answers) as server:` answers at server.url until the block ends."""

    def __init__(self, answers: Answers, port: int = 0) -> None:
        self.answers = answers
        self.http = ThreadingHTTPServer(("127.0.0.1", port), self.handler())
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def __enter__(self) -> "Server":
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        answers = self.answers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def reply(self) -> None:
                """Answer a request of any method; what it brought is read whatever it is, or it
                would stand for the next one."""
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                place = self.path.partition("?")[0].removeprefix("/v1").rstrip("/")
                start, _, name = place[1:].partition("/")
                legal = PATHS.get("/models" if start == "models" else place, ())
                if self.command not in legal:
                    self.send(*refused(self.command, self.path, legal), legal)
                elif self.command == "OPTIONS":
                    self.send(204, None, legal)
                elif self.command != "POST":
                    self.send(*answers.models(unquote(name)), legal)
                else:
                    try:
                        found = answers.answer(place, json.loads(sent))
                    except (ValueError, KeyError, TypeError) as error:
                        found = 400, {"error": {"message": f"malformed request: {error!r}"}}
                    self.send(*found, legal)

            do_GET = do_HEAD = do_OPTIONS = do_POST = reply  # noqa: N815
            do_PUT = do_PATCH = do_DELETE = reply  # noqa: N815

            def send(self, status: int, answer: Any, legal: Sequence[str]) -> None:
                data = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                if legal:
                    self.send_header("Allow", ", ".join(legal))
                if data:
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                # of HEAD the head alone
                if self.command != "HEAD":
                    self.wfile.write(data)

        return Handler


def refused(method: str, path: str, legal: Sequence[str]) -> Reply:
    """What is said of a path that is unknown, or that is asked by another method than its own."""
    if legal:
        told = f"{method} is not answered at {path}; legal: {', '.join(legal)}"
        return 405, {"error": {"message": told}}
    return 404, {"error": {"message": f"no such path: {path}; there are /v1{', /v1'.join(PATHS)}"}}


def serve(loaded: Loaded, port: int = 8000) -> Server:
    """A server of a causal model on `port` of loopback; `with` it answers. Raises ModelError."""
    if loaded.spec.kind != "causal":
        raise ModelError(
            f"{loaded.spec.model} is {loaded.spec.kind}; only causal models write text"
        )
    return Server(Answers(Speaker(loaded)), port)
