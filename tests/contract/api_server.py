"""A real OpenAI-compatible server on loopback, backed by a causal model, with faults on demand.

It answers /v1/completions (echo, logprobs, prompt_logprobs) and /v1/chat/completions (logprobs) at
temperature 0 by plain passes of the model. Chat uses the tokenizer's template, or lines of "role:
content".
"""

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

EVERYTHING = frozenset("completions logprobs echo field chat chat_logprobs usage".split())
#: Answer to a request: HTTP status and JSON.
Reply = tuple[int, dict[str, Any]]


class LanguageModel:
    """Greedy decoding one full pass at a time: slow, plain, and right."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer, self.lock = model, tokenizer, threading.Lock()
        self.bos, self.limit = tokenizer.bos_token_id, 1 << 20

    def logprobs(self, ids: Sequence[int], whole: bool = False) -> Any:
        """Return the log-probabilities after every token of BOS and `ids`."""
        row = [*([] if whole else [self.bos]), *ids]
        with self.lock, torch.no_grad():
            return torch.log_softmax(self.model(torch.tensor([row])).logits[0], -1)

    def chat(self, messages: Sequence[dict[str, str]]) -> tuple[list[int], bool]:
        """Return the ids of a conversation, and whether they need no BOS."""
        if not self.tokenizer.chat_template:
            text = "".join(f"{m['role']}: {m['content']}\n" for m in messages) + "assistant:"
            return self.encode(text)[0], False
        text = self.tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=False
        )
        return self.encode(text)[0], True

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return ids and character spans of a text, without special tokens."""
        coded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(coded["input_ids"]), [tuple(o) for o in coded["offset_mapping"]]

    def generate(
        self, ids: list[int], tokens: int, top: int, whole: bool = False
    ) -> list[tuple[int, float, Any]]:
        """Yield (id, log-probability, alternatives) of the greedy continuation."""
        found = []
        for _ in range(tokens):
            row = self.logprobs([*ids, *(i for i, _, _ in found)], whole)[-1]
            values, best = row.topk(max(top, 1))
            alternatives = list(zip(best.tolist(), values.tolist(), strict=True))[:top]
            found.append((int(best[0]), float(values[0]), alternatives))
            if int(best[0]) == self.tokenizer.eos_token_id:
                break
        return found

    def text(self, token: int) -> str:
        return str(self.tokenizer.decode([token], skip_special_tokens=True))


class Answers:
    """JSON answers to requests. `offers` is a subset of EVERYTHING: the features of the server."""

    def __init__(self, lm: Any, offers: frozenset[str] = EVERYTHING) -> None:
        self.lm, self.offers = lm, offers

    def answer(self, path: str, body: dict[str, Any]) -> Reply:
        """Return the reply to a POST request."""
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
            # like servers that prepend BOS: its entry is null
            entries = [{str(i): self._entry(i, p)} for i, p in zip(ids, own, strict=True)]
            choice["prompt_logprobs"] = [None, *entries]
        return 200, self._whole("text_completion", choice, len(ids) + 1, len(new))

    def _too_long(self, ids: Sequence[int], body: Mapping[str, Any]) -> Reply | None:
        """Return an error if prompt and answer exceed the model's context window."""
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
        """Return the lists of the completions format; with echo, the prompt's tokens come first."""
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


class ApiServer:
    """`with ApiServer(lm) as server:` answers at server.url until the block ends.

    `answers` replaces `lm`. `offers` is a subset of EVERYTHING. `faults` are used in order, one per
    request: (status, headers), "cut" (the body is truncated), "garbage" (no JSON), "list" (JSON,
    but no object), a function that changes the good answer, None (a good answer).
    `hits` lists (path, body) of every request.
    """

    def __init__(
        self,
        lm: LanguageModel | None,
        offers: frozenset[str] = EVERYTHING,
        faults: Sequence[Any] = (),
        key: str = "",
        answers: Any = None,
    ) -> None:
        self.lm, self.faults, self.key = lm, list(faults), key
        self.answers = answers or Answers(lm, offers)
        self.hits: list[tuple[str, dict[str, Any]]] = []
        self.lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> "ApiServer":
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # head and body are two packets: the second would wait 40 ms
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.removeprefix("/v1")
                with server.lock:
                    server.hits.append((path, body))
                    fault = server.faults.pop(0) if server.faults else None
                given = self.headers.get("Authorization", "")
                if server.key and given != f"Bearer {server.key}":
                    self.reply(401, {"error": {"message": f"wrong key: {given}"}})
                elif isinstance(fault, tuple):
                    self.reply(fault[0], {"error": {"message": "injected"}, **fault[1]}, fault[1])
                else:
                    status, answer = server.answers.answer(path, body)
                    if callable(fault):
                        answer, fault = fault(answer), None
                    self.reply(status, [answer] if fault == "list" else answer, fault=fault)

            def reply(
                self, status: int, answer: Any, headers: Any = None, fault: Any = None
            ) -> None:
                bodies = {"garbage": b"<html>busy</html>", "nested": b"[" * 100_000}
                data = bodies.get(fault) or json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
                self.close_connection = fault == "cut"

        return Handler


def tiny_language_model() -> LanguageModel:
    """Return a random GPT-2 of two layers with the tokenizer of the tiny models."""
    from tests.unit.tiny_models import tiny

    loaded = tiny("gpt2", double=False)
    return LanguageModel(loaded.model, loaded.tokenizer)
