"""Multiple choice, answered by text or by scores.

    answer            generated text, matched strictly (text.read)
    letter            the most likely letter after "Answer: ("
    text, text_sum    log-likelihood of an option's text after "Answer:": mean per token, sum
    stem, stem_sum    the same in the slot of the manual prompt (cloze, several masks, mean pooling)

For causal models a slot that is not at the end is scored by the complete sentence: stem_sum is its
log-likelihood, stem is that divided by the number of all scored tokens, not only the answer's.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from kgprobe.probes.api.client import Client, Completion
from kgprobe.probes.models.batching import budget_for
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.mask_slots import CausalText
from kgprobe.probes.scoring.choice.text import CUE, LETTERS, ChoiceQuestion, Chosen, prompt, read
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.fill.api import ALTERNATIVES
from kgprobe.probes.scoring.fill.decoding import Floats, Ids, finite_steps, greedy
from kgprobe.probes.scoring.fill.rows import at_end, questions
from kgprobe.probes.scoring.sentence import score
from kgprobe.probes.scoring.sentence.score import bos_prefix
from kgprobe.probes.text.encode import fits, refuse_control_tokens, render_chat, special_ids
from kgprobe.templates import MASK_SLOT, fill, parse

SCORINGS = ("answer", "letter", "text", "stem")
#: Tokens of a generated answer: enough for a letter and the longest label.
MOST = 24


@dataclass
class Choices:
    """The choices, the record, and what could not be scored, as (item, mode, reason).

    `scores`: (item, mode) -> log-likelihoods and token counts of all options, for scored modes.
    """

    chosen: list[Chosen] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)
    scores: dict[tuple[str, str], tuple[Floats, Floats]] = field(default_factory=dict)

    def scored(self, item: str, scoring: str, sums: Floats, counts: Floats) -> None:
        """Store the scores of all options; choose by means and, except for letters, by sums."""
        self.scores[item, scoring] = sums, counts
        self.chosen.append(_best(item, scoring, sums / counts))
        if scoring != "letter":
            self.chosen.append(_best(item, f"{scoring}_sum", sums))


def choose(
    answerer: Loaded | Client,
    items: Sequence[ChoiceQuestion],
    scorings: Sequence[str] = SCORINGS,
    *,
    workers: int = 1,
    progress: Callable[[int], object] = lambda done: None,
) -> Choices:
    """Return a model's choices in all scoring modes of its kind, by question, then by mode.

    Masked and seq2seq models generate no answers; servers score texts only if they return
    log-probabilities of prompts.
    """
    if isinstance(answerer, Client):
        choices = _by_server(answerer, items, scorings, workers, progress)
    else:
        choices = Choices(record={**answerer.record, "scorings": list(scorings), "cue": CUE})
        for scoring in scorings:
            counter = _ProgressCounter(progress, len(items))
            if scoring == "answer":
                if answerer.spec.kind == "causal":
                    _generate(answerer, items, choices, counter)
            else:
                fill_items = [_fill_item(c, scoring) for c in items if scoring != "stem" or c.stem]
                _score(answerer, fill_items, scoring, choices, counter)
            # questions that are excluded in this mode count as done
            progress(len(items) - counter.done)
    place = {c.item: n for n, c in enumerate(items)}
    choices.chosen.sort(key=lambda c: (place[c.item], c.scoring))
    return choices


@dataclass
class _ProgressCounter:
    """Progress in questions and the number reported; a question's options may arrive in parts.

    Options of several lengths are reported once for each length, so `most` caps the count.
    """

    progress: Callable[[int], object]
    most: int
    done: int = 0
    _parts: float = 0.0

    def __call__(self, questions: float) -> None:
        self._parts += questions
        step = min(int(self._parts + 1e-9), self.most) - self.done
        if step:
            self.done += step
            self.progress(step)


def _fill_item(choice: ChoiceQuestion, scoring: str) -> predict.FillItem:
    """Build an item from the text around the position of an option, with all options as golds."""
    before, after, options = f"{prompt(choice)}{CUE} ", "", choice.options
    if scoring == "stem":
        before, after = parse(choice.stem).filled({MASK_SLOT: ""}).around(MASK_SLOT)
    if scoring == "letter":
        before, after, options = f"{before}(", ")", tuple(LETTERS[: len(options)])
    return predict.FillItem(choice.item, 0, f"[X][Y]{after}", before, options)


def _score(
    loaded: Loaded,
    fill_items: Sequence[predict.FillItem],
    scoring: str,
    choices: Choices,
    counter: _ProgressCounter,
) -> None:
    """Choose by the log-probabilities of all options of every item."""
    texts = questions(fill_items, upper_first=False)
    ends = [at_end(text) or loaded.spec.kind != "causal" for text in texts]
    inside = [b for b, is_end in zip(fill_items, ends, strict=True) if not is_end]
    long = [b for b in inside if not fits(loaded, _texts_of(b))]
    reason = f"more than the model's {loaded.limit} tokens"
    choices.left_out += [(b.item, scoring, reason) for b in long]
    inside = [b for b in inside if b not in long]
    plain = [b for b, is_end in zip(fill_items, ends, strict=True) if is_end]
    scores = _sentences(loaded, inside, counter) if inside else {}
    if plain:
        settings = predict.FillSettings(upper_first=False, most_masks=64)
        filled = predict.predict(loaded, plain, 0, settings, progress=counter)
        scores |= _summed(filled, {b.item: len(b.golds) for b in plain})
        reasons = {item: reason for item, _, _, reason in reversed(filled.left_out)}
        choices.left_out += [
            (b.item, scoring, reasons[b.item]) for b in plain if b.item not in scores
        ]
        choices.record[f"positions_fed_{scoring}"] = filled.record["positions_fed"]
    for item, (sums, counts) in scores.items():
        choices.scored(item, scoring, sums, counts)


def _summed(filled: predict.Fills, sizes: dict[str, int]) -> dict[str, tuple[Floats, Floats]]:
    """Return (sums, token counts) of all options per item, without items that lack an option."""
    sums = {item: np.zeros(size) for item, size in sizes.items()}
    counts = {item: np.zeros(size) for item, size in sizes.items()}
    table = filled.golds
    for item, gold, logprob in zip(table["item"], table["gold"], table["logprob"], strict=True):
        sums[item][gold] += logprob
        counts[item][gold] += 1
    return {item: (sums[item], counts[item]) for item in sizes if (counts[item] > 0).all()}


def _texts_of(item: predict.FillItem) -> list[str]:
    """Return the complete sentences with all options."""
    return [fill(item.text, item.subject, option, False).text for option in item.golds]


def _sentences(
    loaded: Loaded, fill_items: Sequence[predict.FillItem], counter: _ProgressCounter
) -> dict[str, tuple[Floats, Floats]]:
    """Return (log-likelihoods of complete sentences, token counts) of a causal model's options."""
    items = [score.Item(b.item, b.item, b.subject, b.item) for b in fill_items]
    sentences = sum(len(b.golds) for b in fill_items)
    scores = score.score(
        loaded,
        items,
        {b.item: b.golds for b in fill_items},
        {b.item: [(0, b.text)] for b in fill_items},
        upper_first=False,
        progress=lambda done: counter(done * len(fill_items) / sentences),
    ).columns
    names = np.array(scores["item"], dtype=object)
    results = {}
    for item in fill_items:
        rows = np.flatnonzero(names == item.item)
        rows = rows[np.argsort(scores["candidate"][rows])]
        results[item.item] = (scores["sum"][rows], scores["count"][rows])
    return results


def _best(item: str, scoring: str, scores: Floats) -> Chosen:
    """Choose the option with the highest score, the first of equals, with its margin."""
    order = np.argsort(-scores, kind="stable")
    margin = float(scores[order[0]] - scores[order[1]])
    return Chosen(item, scoring, int(order[0]), "scored", margin=margin)


def message(loaded: Loaded, content: str, name: str) -> Ids:
    """Tokenize a message up to the reply: with the model's own chat template if there is one, else
    with the cue.

    Raises ValueError, with the message's name, for one that contains a special token.
    """
    tokenizer, front = loaded.tokenizer, np.zeros(0, dtype=np.int64)
    refuse_control_tokens(tokenizer, [content], lambda _: name)
    if tokenizer.chat_template:
        text = render_chat(tokenizer, content)
    else:
        text, (front, _) = content + CUE, bos_prefix(loaded)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return np.concatenate([front, np.array(ids, dtype=np.int64)])


def replies(
    loaded: Loaded,
    rows: Sequence[Ids],
    names: Sequence[str],
    most: int,
    progress: Callable[[int], object],
) -> list[str | None]:
    """Generate a reply of at most `most` tokens after each row of token ids.

    A reply is None if its row leaves no room for so many. Raises NotFiniteError, naming the row.
    """
    numbers = [n for n, row in enumerate(rows) if len(row) + most <= loaded.limit]
    longest = max((len(rows[n]) for n in numbers), default=0) + most
    text = CausalText(loaded, budget_for(loaded).stepped(most), longest)
    tokenizer = loaded.tokenizer
    ends = special_ids(tokenizer)

    def forward(batch: Ids) -> list[str]:
        chosen = [numbers[b] for b in batch]
        check = finite_steps(loaded.spec.model, [names[n] for n in chosen], "of the answer")
        stream = text.open([rows[n] for n in chosen])
        _, columns = greedy(stream, len(chosen), most, 1, check, ends)
        texts = []
        for path in columns[:, :, 0].tolist():
            stop = next((i for i, token in enumerate(path) if token in ends), len(path))
            texts.append(tokenizer.decode(path[:stop]).strip())
        return texts

    held = [text.count_bytes(len(rows[n]), most, 1) for n in numbers]
    replies: list[str | None] = [None] * len(rows)
    for batch, texts in text.each([len(rows[n]) + most for n in numbers], forward, held=held):
        for b, reply in zip(batch, texts, strict=True):
            replies[numbers[b]] = reply
        progress(len(batch))
    return replies


def _generate(
    loaded: Loaded, items: Sequence[ChoiceQuestion], choices: Choices, counter: _ProgressCounter
) -> None:
    """Generate greedy answers, with the tokenizer's chat template if it has one."""
    names = [f"item {choice.item}" for choice in items]
    rows = [message(loaded, prompt(c), name) for c, name in zip(items, names, strict=True)]
    answers = replies(loaded, rows, names, MOST, counter)
    reason = f"more than the model's {loaded.limit} tokens"
    for choice, answer in zip(items, answers, strict=True):
        if answer is None:
            choices.left_out.append((choice.item, "answer", reason))
            continue
        answer_read = read(answer, choice.options)
        choices.chosen.append(Chosen(choice.item, "answer", *answer_read, text=answer))
    choices.record["chat_template"] = bool(loaded.tokenizer.chat_template)


def _by_server(
    client: Client,
    items: Sequence[ChoiceQuestion],
    scorings: Sequence[str],
    workers: int,
    progress: Callable[[int], object],
) -> Choices:
    offers = client.capabilities()
    choices = Choices(record={"kind": "api", "scorings": list(scorings), "cue": CUE})
    has_letters = offers.completion_logprobs or offers.chat_logprobs
    legal = {
        "answer": True,
        "letter": has_letters,
        "text": bool(offers.prompt_logprobs),
        "stem": bool(offers.prompt_logprobs),
    }
    for scoring in scorings:
        if not legal[scoring]:
            choices.left_out += [
                (c.item, scoring, "the server returns no such scores") for c in items
            ]
            continue
        subset = [c for c in items if scoring != "stem" or c.stem]
        ask = {"answer": _answered, "letter": _letter}.get(
            scoring, partial(_texts, scoring=scoring)
        )

        def one(choice: ChoiceQuestion, ask: Any = ask) -> list[Chosen] | tuple[Floats, Floats]:
            try:
                answer: list[Chosen] | tuple[Floats, Floats] = ask(client, choice)
                return answer
            finally:
                progress(1)

        for choice, answers in zip(subset, client.try_map(one, subset, workers), strict=True):
            if isinstance(answers, str):
                choices.left_out.append((choice.item, scoring, answers))
            elif isinstance(answers, tuple):
                choices.scored(choice.item, scoring, *answers)
            else:
                choices.chosen += answers
    choices.record["api"] = client.record()
    return choices


def _ask(client: Client, choice: ChoiceQuestion, tokens: int, top: int, cue: str) -> Completion:
    """Ask a chat server with the bare prompt, other servers with prompt and cue."""
    if client.capabilities().chat and not cue.endswith("("):
        return client.chat(prompt(choice), tokens, top)
    return client.complete(prompt(choice) + cue, tokens, top)


def _answered(client: Client, choice: ChoiceQuestion) -> list[Chosen]:
    text = _ask(client, choice, MOST, 0, CUE).text.strip()
    return [Chosen(choice.item, "answer", *read(text, choice.options), text=text)]


def _letter(client: Client, choice: ChoiceQuestion) -> list[Chosen]:
    """Choose the likeliest letter among the server's alternatives for the next token.

    A letter's probability is the sum over tokens that contain it and no other letter or digit
    ("A", " a", "(A", "A.", a full-width one).
    """
    scored = client.capabilities().completion_logprobs
    answer = _ask(client, choice, 1, ALTERNATIVES, f"{CUE} (" if scored else CUE)
    first = answer.tokens[0].top if answer.tokens else ()
    known: dict[str, float] = {}
    for text, logprob in first:
        letter = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text))).lower()
        if len(letter) == 1 and letter in LETTERS[: len(choice.options)]:
            known[letter] = float(np.logaddexp(logprob, known.get(letter, -np.inf)))
    ranked = sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))
    if not ranked:
        return [Chosen(choice.item, "letter", None, "not offered", answer.text)]
    margin = ranked[0][1] - ranked[1][1] if len(ranked) > 1 else None
    best = LETTERS.index(ranked[0][0])
    return [Chosen(choice.item, "letter", best, "scored", answer.text, margin)]


def _texts(client: Client, choice: ChoiceQuestion, scoring: str) -> tuple[Floats, Floats]:
    """Score options as texts by the log-probabilities that a server returns for prompts.

    An option at the end is scored by its own tokens, as for a local model; one inside the text by
    all tokens of the complete sentence. Raises ValueError for an option without tokens.
    """
    item = _fill_item(choice, scoring)
    after = item.text.removeprefix("[X][Y]")
    sums, counts = np.zeros(len(choice.options)), np.zeros(len(choice.options))
    for place, option in enumerate(choice.options):
        text = item.subject + option + after
        tokens = client.prompt_tokens(text)
        ends = [*(token.start for token in tokens[1:]), len(text)]
        # the space before the option belongs to it, and so does a token shared with other text
        start, option_start, end = (len(t) for t in (item.subject.rstrip(), item.subject, text))
        end -= len(after)
        if any(c.isalnum() for c in after):
            start, end = 0, len(text)
        scored = [
            token.logprob
            for token, to in zip(tokens, ends, strict=True)
            if token.start < end and (token.start >= start or to > option_start)
            if token.logprob is not None
        ]
        if not option.strip() or not scored:
            raise ValueError(
                f"item {choice.item}, option {option!r}: it has no tokens on "
                f"{client.endpoint.base_url}; correct the label or leave it out"
            )
        sums[place], counts[place] = sum(scored), len(scored)
    return sums, counts
