"""Gradients at trigger positions, scores of candidate triggers (docs/papers/autoprompt.md, Search).

Savings over a literal loop: parameters are frozen, a gradient reaches only the input embeddings;
the head runs only at [P]; the current trigger and its candidates go through the model in
one stack; causal models feed common prefixes once. Sums are made in float64 in the order
of the examples, so that batching only affects the last bits.
"""

import contextlib
import copy
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Budget, Ints, Ragged
from kgprobe.probes.models.causal import Causal
from kgprobe.probes.models.finite import finite
from kgprobe.probes.models.head import precise
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import SLICE, Predictor
from kgprobe.probes.prompts.search.settings import SearchSettings
from kgprobe.probes.scoring.fill.options import Options
from kgprobe.probes.text.prompts import Encoded, encode, label_pieces, label_token
from kgprobe.probes.text.vectors import embedding_modules
from kgprobe.templates import Template

Floats = NDArray[np.float64]


#: (fields, label): the label is a class, or the gold object.
Example = tuple[Mapping[str, str], str]


class SearchError(ValueError):
    """A search cannot start or resume; the message says where and suggests a fix."""


@dataclass(frozen=True)
class SearchExamples:
    """Examples in a fixed order; `right` (n) are row indices of the label table."""

    encoded: Encoded
    right: Ints
    examples: list[Example]

    def __len__(self) -> int:
        return len(self.right)

    @property
    def lengths(self) -> Ints:
        """Number of tokens of every prompt."""
        return np.array([len(row) for row in self.encoded.rows], dtype=np.int64)

    def digest(self) -> str:
        """Return the sha256 of the examples."""
        text = json.dumps([[dict(f), label] for f, label in self.examples], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Problem:
    """The input of a search.

    `labels` (classes x most tokens) with the mask `known` are the answer tokens of each class.
    `closed`: an answer is one of these classes, else any token of the vocabulary. `dropped` counts
    examples with an unusable gold, by split.
    """

    template: Template
    train: SearchExamples
    dev: SearchExamples
    classes: list[str]
    labels: Ints
    known: NDArray[np.bool_]
    closed: bool
    dropped: dict[str, int] = field(default_factory=dict)


def problem(
    loaded: Loaded,
    template: Template,
    train: Sequence[Example],
    dev: Sequence[Example],
    settings: SearchSettings,
    labels: Mapping[str, Sequence[int | str]] | None = None,
    initial: int | None = None,
) -> Problem:
    """Encode both splits, sorted, so that their order does not matter.

    With `labels` (class -> token ids or words) the task is a classification. Otherwise labels are
    gold objects: a gold of several tokens is dropped and counted; a causal model uses its first
    token instead if no other gold object of the two splits starts with that token. Raises
    SearchError for an unknown class, or if a split has no examples left, AnswerError for a class
    without label tokens or for a token of two classes.
    """
    data = {"train": _sorted(train), "dev": _sorted(dev)}
    if labels is not None:
        # words in the form that [P] requires
        table = {
            name: [label_token(loaded, template, t) if isinstance(t, str) else int(t) for t in row]
            for name, row in sorted(labels.items())
        }
        Options.classes(table)  # rejects classes with shared tokens
        wrong = [label for examples in data.values() for _, label in examples if label not in table]
        if wrong:
            raise SearchError(
                f"label {wrong[0]!r} of an example has no label tokens; valid: {', '.join(table)}"
            )
    else:
        words = sorted({label for examples in data.values() for _, label in examples})
        table = gold_tokens(loaded, template, words)
    classes = list(table)
    kept = {name: [e for e in examples if e[1] in table] for name, examples in data.items()}
    dropped = {name: len(data[name]) - len(kept[name]) for name in data}
    for name, examples in kept.items():
        if not examples:
            raise SearchError(
                f"template {template.text!r}: no {name} example is left for the search: "
                f"{len(data[name])} given, {dropped[name]} without a gold object of one token"
            )
    number = {name: i for i, name in enumerate(classes)}
    splits = [
        SearchExamples(
            encode(loaded, template, [f for f, _ in kept[name]], initial, settings.truncate,
                   settings.habits),
            np.array([number[label] for _, label in kept[name]], dtype=np.int64),
            kept[name],
        )
        for name in ("train", "dev")
    ]  # fmt: skip
    tokens = Ragged.of([np.array(table[name], dtype=np.int64) for name in classes])
    ids = tokens.matrix(0)
    known = np.arange(ids.shape[1]) < tokens.lengths[:, None]
    return Problem(template, splits[0], splits[1], classes, ids, known, labels is not None, dropped)


def _sorted(examples: Sequence[Example]) -> list[Example]:
    return sorted(examples, key=lambda e: (json.dumps(dict(e[0]), sort_keys=True), e[1]))


def gold_tokens(loaded: Loaded, template: Template, words: Sequence[str]) -> dict[str, list[int]]:
    """Return the token of every gold object that has a token of its own.

    Raises ValueError for a special token.
    """
    pieces = dict(zip(words, label_pieces(loaded, template, words), strict=True))
    unknown = loaded.tokenizer.unk_token_id
    known = {w: ids for w, ids in pieces.items() if len(ids) and unknown not in ids}
    if template.kind != "causal":
        return {w: [int(ids[0])] for w, ids in known.items() if len(ids) == 1}
    firsts = Counter(int(ids[0]) for ids in known.values())
    return {
        w: [int(ids[0])] for w, ids in known.items() if len(ids) == 1 or firsts[int(ids[0])] == 1
    }


class Tensors:
    """A split on the model's device, tokenized once."""

    def __init__(self, loaded: Loaded, split: SearchExamples) -> None:
        device, pad = loaded.device, loaded.tokenizer.pad_token_id or 0
        self.lengths = split.lengths
        self.ids = torch.from_numpy(Ragged.of(split.encoded.rows).matrix(pad)).to(device)
        self.triggers = torch.from_numpy(split.encoded.triggers).to(device)
        self.places = torch.from_numpy(split.encoded.places).to(device)
        self.right = torch.from_numpy(split.right).to(device)
        types = split.encoded.types
        self.types = None
        if types is not None:
            self.types = torch.from_numpy(Ragged.of(types).matrix(0)).to(device)

    def batch(self, numbers: Ints, triggers: Any) -> tuple[Any, Any, Any, Any]:
        """Return (ids, mask, places, types) of examples, each with its own trigger (rows x m)."""
        pick = torch.from_numpy(np.ascontiguousarray(numbers)).to(self.ids.device)
        lengths = self.lengths[numbers]
        width = int(lengths.max())
        ids = self.ids[pick, :width]
        ids.scatter_(1, self.triggers[pick], triggers)
        mask = None
        if int(lengths.min()) < width:
            sizes = torch.from_numpy(lengths).to(ids.device)
            mask = (torch.arange(width, device=ids.device) < sizes[:, None]).long()
        types = None if self.types is None else self.types[pick, :width]
        return ids, mask, self.places[pick], types


class Scorer(Predictor):
    """Scores of one model. `rows_fed` counts prompts, `positions_fed` padded positions."""

    def __init__(self, loaded: Loaded, problem: Problem, budget: Budget | None = None) -> None:
        super().__init__(loaded, budget)
        self.problem = problem
        # activations are stored for the backward pass
        self._backward = Budget(max(self.budget.positions // 2, 1), overhead=self.budget.overhead)
        self.splits = {
            "train": Tensors(loaded, problem.train),
            "dev": Tensors(loaded, problem.dev),
        }
        self.labels = torch.from_numpy(problem.labels).to(loaded.device)
        self.known = torch.from_numpy(problem.known).to(loaded.device)
        self._flat = torch.from_numpy(problem.labels[problem.known]).to(loaded.device)
        if loaded.spec.kind == "causal":
            self._shared = Causal(loaded, replace(self.budget, backoffs=[]))
        self._embeddings = embedding_modules(loaded.model)
        self.rows_fed = 0

    @property
    def shares(self) -> bool:
        """Whether common prefixes are fed once, which changes the last bits."""
        return self._shared is not None and self._shared.shares is not False

    @property
    def embedding(self) -> Any:
        """The input embedding (rows x width)."""
        return self.loaded.model.get_input_embeddings().weight

    def in_float32(self) -> "Scorer":
        """Return this scorer on a float32 copy of the model, to repeat a step that was not finite.

        It shares no prefixes: where rows are concatenated, NaN spreads from one to the next.
        """
        loaded = replace(self.loaded, model=copy.deepcopy(self.loaded.model).float())
        scorer = Scorer(loaded, self.problem, Budget(self.budget.positions))
        scorer._shared = None
        return scorer

    def gradient(self, batch: Ints, weights: Floats, trigger: Sequence[int]) -> Floats:
        """Return the gradient (m x width) of the weighted sum of losses of training examples.

        The loss of an example is -log p(right) over the whole vocabulary; the gradient is that
        with respect to the input embeddings at the trigger positions (Eq. 2). Raises
        NotFiniteError, with example and position.
        """
        tensors = self.splits["train"]
        width = int(self.embedding.shape[1])
        gradients = np.zeros((len(batch), len(trigger), width))
        tokens = torch.tensor([list(trigger)], device=self.loaded.device)

        def forward(chunk: Ints) -> None:
            ids, mask, places, types = tensors.batch(batch[chunk], tokens.expand(len(chunk), -1))
            with torch.enable_grad(), _leaf(self._embeddings) as leaf:
                logits = self.parts.head.logits(self.parts.at(ids, mask, places, types))
                right = tensors.right[torch.from_numpy(batch[chunk]).to(ids.device)]
                likelihood = self._of_class(logits, right)
                self._check_values(likelihood, "train", batch[chunk])
                (-likelihood.sum()).backward()
            at = tensors.triggers[torch.from_numpy(batch[chunk]).to(ids.device)]
            rows = torch.arange(len(chunk), device=ids.device)[:, None]
            grads = leaf[0].grad[rows, at].double().cpu().numpy()
            finite(
                grads,
                self.loaded.spec.model,
                lambda row, place, _: (
                    f"{self._name('train', int(batch[chunk[row]]))}, trigger token {place}"
                ),
                "gradient",
            )
            gradients[chunk] = grads

        self._backward.run(tensors.lengths[batch], forward)
        self.rows_fed += len(batch)
        return np.asarray(np.einsum("n,nmd->md", weights, gradients))

    def values(
        self, split: str, batch: Ints, triggers: Sequence[Sequence[int]], metric: str,
        share: bool = True, known: Mapping[tuple[int, ...], Floats] | None = None,
    ) -> Floats:  # fmt: skip
        """Return log-likelihood or correctness (0 or 1) of every trigger on every example (c x b).

        Equal triggers are scored once and get identical values; `known` values of
        a trigger (b values, NaN if unknown) are not computed again. `share`: causal models feed
        common prefixes once. Raises NotFiniteError, with example and trigger.
        """
        distinct = list(dict.fromkeys(tuple(t) for t in triggers))
        number = {t: i for i, t in enumerate(distinct)}
        unknown = np.full(len(batch), np.nan)
        flat = np.concatenate([(known or {}).get(t, unknown) for t in distinct])
        left = np.flatnonzero(np.isnan(flat))
        self.rows_fed += len(left)
        tensors = self.splits[split]
        table = torch.tensor(distinct, dtype=torch.int64, device=self.loaded.device)
        examples = np.tile(batch, len(distinct))[left]
        owners = np.repeat(np.arange(len(distinct)), len(batch))[left]

        def read(rows: Ints, features: Any) -> None:
            values = self._read(tensors, examples[rows], features, metric)
            self._check_values(values, split, examples[rows], [distinct[o] for o in owners[rows]])
            flat[left[rows]] = values

        with torch.inference_mode():
            # possibly all values are known
            done = not len(left) or (
                share and self._through_prefixes(tensors, examples, owners, table, read)
            )
            if not done:

                def forward(chunk: Ints) -> None:
                    chosen = table[torch.from_numpy(owners[chunk]).to(table.device)]
                    ids, mask, places, types = tensors.batch(examples[chunk], chosen)
                    states = self.parts.at(ids, mask, places, types)
                    read(chunk, self.parts.head.features(states))

                self.budget.run(tensors.lengths[examples], forward)
        matrix = flat.reshape(len(distinct), len(batch))
        return matrix[[number[tuple(t)] for t in triggers]]

    def _check_values(
        self, values: Any, split: str, examples: Ints, triggers: Sequence[Sequence[int]] = ()
    ) -> None:
        """Check that values of prompts are finite."""

        def where(row: int) -> str:
            example = int(examples[row])
            suffix = f", trigger {list(triggers[row])}" if len(triggers) else ""
            place = int(self.splits[split].places[example])
            return f"{self._name(split, example)}, token {place}{suffix}"

        finite(values, self.loaded.spec.model, where)

    def _name(self, split: str, example: int) -> str:
        """Describe an example by its fields, since the search has its own order of examples."""
        known = self.problem.train if split == "train" else self.problem.dev
        return f"{split} example {dict(known.examples[example][0])}"

    def _through_prefixes(
        self, tensors: Tensors, examples: Ints, owners: Ints, table: Any, read: Any
    ) -> bool:
        """Score all rows with common prefixes fed once; return False if that is not possible."""
        if self._shared is None or self._shared.shares is False:
            return False
        triggers = table[torch.from_numpy(owners).to(table.device)]
        ids = tensors.batch(examples, triggers)[0].cpu().numpy()
        rows = [row[:n] for row, n in zip(ids, tensors.lengths[examples], strict=True)]
        features = self.parts.head.features
        return self._shared.visit_ends(
            Ragged.of(rows), lambda chosen, states: read(chosen, features(states))
        )

    def _read(self, tensors: Tensors, examples: Ints, features: Any, metric: str) -> Floats:
        """Return the values of rows, with logits computed in slices; NaN if these contain NaN."""
        room = SLICE["cpu" if self.loaded.device.type == "cpu" else "cuda"]
        step = max(room // (4 * len(self.embedding)), 1)
        result, head = np.zeros(len(examples)), self.parts.head
        right = tensors.right[torch.from_numpy(np.ascontiguousarray(examples)).to(features.device)]
        for start in range(0, len(examples), step):
            rows, gold = features[start : start + step], right[start : start + step]
            if metric == "likelihood":
                values = self._of_class(head.decode(rows), gold)
            elif self.problem.closed:
                # logits of the label tokens suffice: the normalizer is the same for all classes
                few = head.decode(rows, self._flat)
                table = few.new_full((len(few), *self.known.shape), torch.finfo(few.dtype).min)
                table[:, self.known] = few
                values = _right(table.logsumexp(-1), gold)
            else:
                values = _right(head.decode(rows), self.labels[gold, 0])
            result[start : start + step] = values.double().cpu().numpy()
        return result

    def _of_class(self, logits: Any, right: Any) -> Any:
        """Return the log of the summed probability of the right class's label tokens (Eq. 1)."""
        answers = logits.gather(1, self.labels[right])
        answers = answers.masked_fill(~self.known[right], torch.finfo(answers.dtype).min)
        return answers.logsumexp(1) - logits.logsumexp(1)

    def candidate_scores(self, gradient: Floats, kept: NDArray[np.bool_]) -> Floats:
        """Return the first-order log-likelihood gain of all tokens (Eq. 2), -inf if filtered."""
        direction = torch.from_numpy(-gradient).to(self.embedding.device)
        weight = precise(self.embedding)
        gains = (weight @ direction.to(weight.dtype)).double().cpu().numpy()
        ids = np.flatnonzero(kept)
        finite(
            gains[ids],
            self.loaded.spec.model,
            lambda row: f"token {ids[row]}",
            "product of the gradient and the embedding",
        )
        return np.where(kept, gains, -np.inf)


def top(scores: Floats, count: int) -> Ints:
    """Return the indices of the `count` highest scores, highest first, equal ones by index."""
    bound = np.partition(scores, -count)[-count]
    near = np.flatnonzero(scores >= bound)
    return near[np.lexsort((near, -scores[near]))][:count]


def _right(scores: Any, gold: Any) -> Any:
    """Return 1 where a row's highest score, the first of equal ones, is the gold's, else 0.

    NaN if that score is not finite: NaN or plus infinity anywhere in a row are its maximum.
    """
    columns = torch.arange(scores.shape[1], device=scores.device)
    best = scores.amax(1, keepdim=True)
    first = torch.where(scores == best, columns, scores.shape[1]).amin(1)
    return torch.where(best[:, 0].isfinite(), (first == gold).double(), torch.nan)


@contextlib.contextmanager
def _leaf(modules: Sequence[Any]) -> Iterator[list[Any]]:
    """Make the first output of the embeddings a leaf that gets a gradient, inside the context.

    Only the first, since the decoder of a sentinel model looks up its tokens after the encoder.
    """
    outputs: list[Any] = []

    def hook(module: Any, given: Any, output: Any) -> Any:
        if outputs:
            return output
        outputs.append(output.detach().requires_grad_(True))
        return outputs[0]

    with contextlib.ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_hook(hook))
        yield outputs
