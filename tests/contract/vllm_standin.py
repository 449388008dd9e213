"""A stand-in for a vLLM server, which needs a GPU: the documented interface over a tiny model.

What docs.vllm.ai says of /v1/completions: a prompt may be a list of lists of token ids, read as
they are; `prompt_logprobs` gives every choice a list with null for the first token and for each
other one an object from token id (a string) to logprob, rank and decoded_token, the prompt's own
token first; minus infinity is written as -9999; prompt and answer must fit into the window, else
HTTP 400.
The numbers come from one pass of the whole model for every prompt: nothing of the engines.
"""

from typing import Any

import torch

from tests.contract.api_server import Reply


class VllmStandIn:
    """Answers of the stand-in; remembers the prompts that it was sent."""

    def __init__(self, model: Any, tokenizer: Any, limit: int, shift: float = 0.0) -> None:
        self.model, self.tokenizer, self.limit, self.shift = model, tokenizer, limit, shift
        self.prompts: list[list[int]] = []
        self.requests = 0

    def answer(self, path: str, body: dict[str, Any]) -> Reply:
        """The reply to a POST request."""
        if path != "/completions":
            return 404, {"error": {"message": f"no such path: {path}"}}
        prompts = body["prompt"]
        self.requests += 1
        if max(map(len, prompts)) + body["max_tokens"] > self.limit:
            return 400, {"error": {"message": f"the maximum context length is {self.limit}"}}
        self.prompts += prompts
        choices = [self._choice(number, ids) for number, ids in enumerate(prompts)]
        # in the order in which they are done
        return 200, {"object": "text_completion", "choices": choices[::-1]}

    @torch.no_grad()
    def _choice(self, number: int, ids: list[int]) -> dict[str, Any]:
        logprobs = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        entries: list[Any] = [None]
        for place, token in enumerate(ids[1:]):
            best = int(logprobs[place].argmax())
            own = {str(token): self._entry(logprobs[place], token)}
            entries.append(own | {str(best): self._entry(logprobs[place], best)})
        return {"index": number, "text": "x", "finish_reason": "length", "prompt_logprobs": entries}

    def _entry(self, logprobs: Any, token: int) -> dict[str, Any]:
        value = max(float(logprobs[token]) - self.shift, -9999.0)
        rank = int((logprobs > logprobs[token]).sum()) + 1
        return {"logprob": value, "rank": rank, "decoded_token": self.tokenizer.decode([token])}
