"""A real OpenAI-compatible server on loopback, backed by a causal model, with faults on demand.

The requests and answers are those of kgprobe.probes.jobs.serve; the model behind them is read
literally.
"""

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

from kgprobe.probes.jobs.serve import EVERYTHING, Answers


class LanguageModel:
    """Greedy decoding one full pass at a time: slow, plain, and right."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer, self.lock = model, tokenizer, threading.Lock()
        self.bos, self.limit = tokenizer.bos_token_id, 1 << 20

    def logprobs(self, ids: Sequence[int], whole: bool = False) -> Any:
        """Log-probabilities after every token of BOS and `ids`."""
        row = [*([] if whole else [self.bos]), *ids]
        with self.lock, torch.no_grad():
            return torch.log_softmax(self.model(torch.tensor([row])).logits[0], -1)

    def chat(self, messages: Sequence[dict[str, str]]) -> tuple[list[int], bool]:
        """Ids of a conversation, and whether they need no BOS."""
        text = "".join(f"{m['role']}: {m['content']}\n" for m in messages) + "assistant:"
        return self.encode(text)[0], False

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids and character spans of a text, without special tokens."""
        coded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(coded["input_ids"]), [tuple(o) for o in coded["offset_mapping"]]

    def generate(
        self, ids: list[int], tokens: int, top: int, whole: bool = False
    ) -> list[tuple[int, float, Any]]:
        """(id, log-probability, alternatives) of the greedy continuation."""
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


class ApiServer:
    """`with ApiServer(lm) as server:` answers at server.url until the block ends.

    `offers` is a subset of EVERYTHING. `faults` are used up from the front, one a request:
    (status, headers), "cut" (the body ends half way), "garbage" (no JSON), "list" (JSON, but no
    object), a function of the good answer that gives another one, None (a good answer).
    `hits` lists (path, body) of every request.
    """

    def __init__(
        self,
        lm: LanguageModel,
        offers: frozenset[str] = EVERYTHING,
        faults: Sequence[Any] = (),
        key: str = "",
    ) -> None:
        self.lm, self.faults, self.key = lm, list(faults), key
        self.answers = Answers(lm, offers)
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
                data = b"<html>busy</html>" if fault == "garbage" else json.dumps(answer).encode()
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
    """A random GPT-2 of two layers with the tokenizer of the tiny models."""
    from tests.unit.tiny_models import tiny

    loaded = tiny("gpt2", double=False)
    return LanguageModel(loaded.model, loaded.tokenizer)
