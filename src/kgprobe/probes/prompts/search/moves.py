"""A search that edits wordings: tokens come, go and change, wherever they are (mode `moves`).

    pool of wordings --dev--> the best are the buffer
    one of the buffer --move--> candidates --a batch of train--> the best of them
        better than it was there, and on a second batch --dev--> into the buffer

Moves insert, delete, swap one token or two. Candidates for a place come from proposers: the model's
own distribution there, gradients averaged over random neighbors of the token, and chance. How
often each kind of move and each proposer changed the buffer is counted, and they are drawn in
proportion to that, none below a floor. Nothing is scored twice on dev. The search ends when its
prompts are spent, or when the buffer has not changed for a while.

A wording is runs of tokens around its slots, so that tokens can come, go and change anywhere:

    The capital of {sub} is [P] .
    runs  (The, capital, of)  (is)  (.)      run i stands before slot i, the last behind all
    slots (sub, [P])
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kgprobe.job import log, progress
from kgprobe.probes.models.batching import Budget, Ints
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search import state as states
from kgprobe.probes.prompts.search.candidates import filter_candidates, vocabulary_of
from kgprobe.probes.prompts.search.files import PromptFile, identity, prompt_of
from kgprobe.probes.prompts.search.problem import Example, SearchError, problem
from kgprobe.probes.prompts.search.scores import Floats, Scorer, Tensors, top
from kgprobe.probes.prompts.search.settings import SearchSettings
from kgprobe.probes.text.pieces import pieces
from kgprobe.probes.text.prompts import label_pieces
from kgprobe.settings import Edits
from kgprobe.templates import ANSWER, TRIGGER, Template, as_prompt_template, parse

MOVES = ("swap", "insert", "delete", "swap_two")
#: decimals of what is compared and written
DECIMALS = 6


Run = tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """Names of slots in their order (fields, [P]), and the ids around them: one run more."""

    slots: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def tokens(self) -> Run:
        """All ids in their order: the trigger of `template`."""
        return tuple(token for run in self.runs for token in run)

    @property
    def shape(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """What its template depends on."""
        return self.slots, tuple(map(len, self.runs))

    def template(self, kind: str) -> Template:
        """The template with a trigger in place of every token."""
        parts: list[str] = []
        for number, run in enumerate(self.runs):
            parts += [TRIGGER] * len(run)
            if number < len(self.slots):
                slot = self.slots[number]
                parts.append(slot if slot == ANSWER else f"{{{slot}}}")
        return Template.parse(" ".join(parts), kind)

    def swapped(self, place: int, token: int) -> "Cut":
        """The prompt with another token at a place (an index of `tokens`)."""
        run, inner = self._at(place)
        tokens = self.runs[run]
        return self._with(run, (*tokens[:inner], token, *tokens[inner + 1 :]))

    def deleted(self, place: int) -> "Cut":
        """The prompt without the token at a place."""
        run, inner = self._at(place)
        tokens = self.runs[run]
        return self._with(run, tokens[:inner] + tokens[inner + 1 :])

    def inserted(self, run: int, inner: int, token: int) -> tuple["Cut", int]:
        """(the prompt with a token before the `inner`-th of a run, its place)."""
        tokens = self.runs[run]
        place = sum(map(len, self.runs[:run])) + inner
        return self._with(run, (*tokens[:inner], token, *tokens[inner:])), place

    def insertions(self, kind: str) -> Iterator[tuple[int, int]]:
        """(run, inner) of every place where a token may come; causal models: none behind [P]."""
        last = len(self.runs) - (kind == "causal")
        for number in range(last):
            for inner in range(len(self.runs[number]) + 1):
                yield number, inner

    def _at(self, place: int) -> tuple[int, int]:
        for number, run in enumerate(self.runs):
            if place < len(run):
                return number, place
            place -= len(run)
        raise IndexError("no such place")

    def _with(self, number: int, run: Run) -> "Cut":
        return replace(self, runs=(*self.runs[:number], run, *self.runs[number + 1 :]))


def cut_of(loaded: Loaded, text: str) -> Cut:
    """A wording as runs of tokens: each run is encoded with the blank that it has in the text."""
    parsed = parse(as_prompt_template(text.strip()))
    texts = [parsed.first, *(behind for _, _, behind in parsed.parts)]
    runs = []
    for number, piece in enumerate(texts):
        starts = number == 0
        shown = piece.strip() if starts else piece.rstrip()
        runs.append(tuple(map(int, pieces(loaded.tokenizer, [shown], starts)[0])) if shown else ())
    return Cut(tuple(slot for slot, _, _ in parsed.parts), tuple(runs))


@dataclass
class Yields:
    """Edits that were tried and accepted, by kind."""

    tried: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)

    def chances(self, names: Sequence[str], floor: float) -> Floats:
        """Probabilities of names by their rates of accepted edits (one of two more to begin with),
        each at least `floor` of the uniform one."""
        rates = np.array([(self.taken.get(n, 0) + 1) / (self.tried.get(n, 0) + 2) for n in names])
        shares = rates / rates.sum()
        return np.asarray(floor / len(names) + (1 - floor) * shares)

    def record_try(self, name: str, accepted: bool) -> None:
        """One more try."""
        self.tried[name] = self.tried.get(name, 0) + 1
        self.taken[name] = self.taken.get(name, 0) + int(accepted)


class Bench:
    """A model on one relation's facts, with prompts of any shape. `rows` counts prompts."""

    def __init__(
        self,
        loaded: Loaded,
        first: Cut,
        train: Sequence[Example],
        dev: Sequence[Example],
        settings: SearchSettings,
        answers: Sequence[int],
        budget: Budget | None = None,
    ) -> None:
        self.loaded, self.examples, self.settings = loaded, (train, dev), settings
        self.kind = loaded.spec.kind
        self._shapes: dict[Any, Scorer] = {}
        template = first.template(self.kind)
        task = problem(loaded, template, train, dev, settings)
        self._first = Scorer(loaded, task, budget)
        self._labels = sorted({label for _, label in [*train, *dev]})
        self._forms = {(template.blank, template.opens): True}
        self._answers_as = self._pieces(template)
        golds = task.labels[task.known].tolist()
        self._first.answer_among({*map(int, answers), *golds})
        self._shapes[first.shape] = self._first
        self.rows = 0

    def _pieces(self, template: Template) -> list[list[int]]:
        return [ids.tolist() for ids in label_pieces(self.loaded, template, self._labels)]

    def fits(self, cut: Cut) -> bool:
        """Whether [P] takes the answers as the same tokens as in the first prompt. Where it opens a
        text, byte-level and Unigram vocabularies have others, that are compared with nothing."""
        template = cut.template(self.kind)
        form = template.blank, template.opens
        if form not in self._forms:
            self._forms[form] = self._pieces(template) == self._answers_as
        return self._forms[form]

    def of(self, cut: Cut) -> Scorer:
        """The scorer of a prompt's shape, which `fits`; the latest shapes are kept."""
        if cut.shape not in self._shapes:
            task = problem(self.loaded, cut.template(self.kind), *self.examples, self.settings)
            scorer = copy.copy(self._first)
            scorer.problem = task
            scorer.splits = {
                "train": Tensors(self.loaded, task.train),
                "dev": Tensors(self.loaded, task.dev),
            }
            while len(self._shapes) > 8:
                del self._shapes[next(iter(self._shapes))]
            self._shapes[cut.shape] = scorer
        return self._shapes[cut.shape]

    def values(self, split: str, batch: Ints, cuts: Sequence[Cut], metric: str) -> Floats:
        """Values of every prompt on every example (prompts x examples)."""
        table = np.zeros((len(cuts), len(batch)))
        for shape in dict.fromkeys(cut.shape for cut in cuts):
            numbers = [i for i, cut in enumerate(cuts) if cut.shape == shape]
            triggers = [list(cuts[i].tokens) for i in numbers]
            table[numbers] = self.of(cuts[numbers[0]]).values(split, batch, triggers, metric)
            self.rows += len(batch) * len({cuts[i].tokens for i in numbers})
        return table

    def dev(self, cut: Cut, metric: str) -> Floats:
        """Values on all dev examples."""
        return np.asarray(
            self.values("dev", np.arange(len(self.of(cut).problem.dev)), [cut], metric)[0]
        )


class Proposers:
    """Tokens for a place of a prompt, best first, by each method of `Edits.proposers`."""

    def __init__(self, bench: Bench, kept: Any, edits: Edits, generator: Any) -> None:
        self.bench, self.kept, self.edits, self.generator = bench, kept, edits, generator
        self.pool = np.flatnonzero(kept)
        self.predictor = Predictor(bench.loaded)

    def tokens(self, name: str, cut: Cut, place: int, batch: Ints, count: int) -> Ints:
        """The `count` tokens that a proposer puts first."""
        if name == "random":
            return np.asarray(self.generator.choice(self.pool, count, replace=False))
        return top(np.where(self.kept, self.scores(name, cut, place, batch), -np.inf), count)

    def scores(self, name: str, cut: Cut, place: int, batch: Ints) -> Floats:
        """What a proposer says of every token of the vocabulary at a place."""
        return self._model(cut, place, batch) if name == "model" else self._gradient(
            cut, place, batch
        )  # fmt: skip

    def _model(self, cut: Cut, place: int, batch: Ints) -> Floats:
        """log of the mean probability of every token there: behind what stands before it (causal),
        or in place of a mask."""
        loaded = self.bench.loaded
        scorer = self.bench.of(cut)
        encoded = scorer.problem.train.encoded
        rows, places = [], []
        for number in batch:
            row, at = encoded.rows[number].copy(), encoded.triggers[number]
            row[at] = cut.tokens
            if loaded.spec.kind == "causal":
                rows.append(row[: max(int(at[place]), 1)])
                places.append(len(rows[-1]) - 1)
            else:
                row[at[place]] = loaded.tokenizer.mask_token_id
                rows.append(row)
                places.append(int(at[place]))
        total = np.zeros(len(self.kept))

        def read(numbers: Ints, logits: Any, totals: Any) -> None:
            shares = (logits - totals[:, None]).exp().sum(0).double().cpu().numpy()
            total[: len(shares)] += shares

        self.predictor.visit(rows, np.array(places), read)
        self.bench.rows += len(rows)
        return np.log(np.maximum(total / len(rows), 1e-300))

    def _gradient(self, cut: Cut, place: int, batch: Ints) -> Floats:
        """First-order gain of every token, the gradient a mean over random neighbors there."""
        scorer, weights = self.bench.of(cut), np.full(len(batch), 1 / len(batch))
        drawn = self.generator.choice(self.pool, self.edits.neighbors)
        gradient = 0.0
        for token in drawn:
            trigger = list(cut.swapped(place, int(token)).tokens)
            gradient = gradient + scorer.gradient(batch, weights, trigger)[place] / len(drawn)
            self.bench.rows += 2 * len(batch)
        return scorer.candidate_scores(np.asarray(gradient), self.kept)


@dataclass
class Stand:
    """The state of a search, as JSON values."""

    step: int = 0
    quiet: int = 0
    rows: int = 0
    buffer: list[list[Any]] = field(default_factory=list)
    known: list[list[Any]] = field(default_factory=list)
    pool: list[list[Any]] = field(default_factory=list)
    moves: dict[str, Any] = field(default_factory=lambda: asdict(Yields()))
    proposers: dict[str, Any] = field(default_factory=lambda: asdict(Yields()))
    generator: dict[str, Any] = field(default_factory=dict)
    trace: list[list[Any]] = field(default_factory=list)


class EditSearch:
    """One search of a relation."""

    def __init__(
        self,
        loaded: Loaded,
        pool: Mapping[str, Cut],
        train: Sequence[Example],
        dev: Sequence[Example],
        settings: SearchSettings,
        edits: Edits,
        answers: Sequence[int] = (),
        path: Path | None = None,
        name: str = "",
        budget: Budget | None = None,
    ) -> None:
        if not pool:
            raise SearchError(f"{name or 'search'}: no wording to start from")
        self.loaded, self.pool, self.settings, self.edits = loaded, dict(pool), settings, edits
        self.path, self.name = path, name
        train = sorted(train, key=repr)[: edits.examples]
        first = next(iter(self.pool.values()))
        self.bench = Bench(loaded, first, train, dev, settings, answers, budget)
        self.unfit = [key for key, cut in self.pool.items() if not self.bench.fits(cut)]
        self.pool = {key: cut for key, cut in self.pool.items() if key not in self.unfit}
        self.proposers_of = [
            key for key in edits.proposers if key != "model" or loaded.spec.kind != "seq2seq"
        ]
        golds = sorted({label for _, label in [*train, *dev]})
        kept, self.counts = filter_candidates(vocabulary_of(loaded), settings, (), golds)
        self.generator = np.random.default_rng([settings.seed, *f"moves {name}".encode()])
        self.proposers = Proposers(self.bench, kept, edits, self.generator)
        known = self.bench.of(first).problem
        self.size = len(known.train)
        if self.size < 2:
            raise SearchError(
                f"{name or 'search'}: {self.size} of {len(train)} training facts have an answer of "
                "one token; a search that edits needs two"
            )
        self.owner = {
            "model": identity(loaded), "settings": asdict(settings), "edits": asdict(edits),
            "data": {"train": known.train.digest(), "dev": known.dev.digest()},
            "pool": {n: [list(c.slots), [list(r) for r in c.runs]] for n, c in self.pool.items()},
            "name": name,
        }  # fmt: skip

    # -- the loop -----------------------------------------------------------------------------

    def run(self) -> PromptFile:
        """The best prompt by dev, with what led to it."""
        stand = states.load(self.owner, self.path, Stand)
        if stand is None:
            stand = self._opened()
        else:
            self.generator.bit_generator.state = stand.generator
            self.bench.rows = stand.rows
        bar = progress(total=self.edits.rows, desc=self.name or "search", unit="prompt")
        bar.update(stand.rows)
        while stand.rows < self.edits.rows and stand.quiet < self.edits.patience:
            before = stand.rows
            self._step(stand)
            stand.rows, stand.step = self.bench.rows, stand.step + 1
            stand.generator = dict(self.generator.bit_generator.state)
            states.save(stand, self.owner, self.path)
            bar.update(stand.rows - before)
        bar.close()
        return self._result(stand)

    def _opened(self) -> Stand:
        stand = Stand(generator=dict(self.generator.bit_generator.state))
        for name, cut in self.pool.items():
            stand.pool.append([name, self._dev(stand, cut)])
            self._into_buffer(stand, cut)
        # the pool is judged for whatever follows: its prompts are no edits
        self.bench.rows = 0
        log.info("%s: %d wordings, best on dev %.4f", self.name, len(self.pool), stand.buffer[0][0])
        return stand

    def _step(self, stand: Stand) -> None:
        moves, proposers = Yields(**stand.moves), Yields(**stand.proposers)
        rank = min(int(self.generator.geometric(0.5)) - 1, len(stand.buffer) - 1)
        start = _cut(stand.buffer[rank][1])
        n = len(start.tokens)
        legal = {"swap": n > 0, "insert": n < self.edits.most_tokens}
        names = [move for move in MOVES if legal.get(move, n > 1)]
        move = str(self.generator.choice(names, p=moves.chances(names, self.edits.floor)))
        chances = proposers.chances(self.proposers_of, self.edits.floor)
        proposer = str(self.generator.choice(self.proposers_of, p=chances))
        order = self.generator.permutation(self.size)
        first, second = np.split(order[: self.settings.batch + self.edits.confirm],
                                 [min(self.settings.batch, self.size // 2)])  # fmt: skip
        tried = [
            cut for cut in self._candidates(move, proposer, start, first) if self.bench.fits(cut)
        ]
        scores = self.bench.values("train", first, [start, *tried], "answers").mean(1)
        best = int(np.argmax(scores[1:])) if tried else -1
        accepted = bool(scores[1 + best] > scores[0])
        if accepted:
            pair = self.bench.values("train", second, [start, tried[best]], "answers").mean(1)
            accepted = bool(pair[1] > pair[0])
        changed = False
        if accepted:
            self._dev(stand, tried[best])
            changed = self._into_buffer(stand, tried[best])
        stand.quiet = 0 if changed else stand.quiet + 1
        moves.record_try(move, changed)
        if move != "delete":
            proposers.record_try(proposer, changed)
        stand.moves, stand.proposers = asdict(moves), asdict(proposers)
        stand.trace.append(
            [stand.step, move, proposer if move != "delete" else "", rank,
             round(float(scores[0]), DECIMALS), round(float(scores[1 + best]), DECIMALS),
             int(accepted), int(changed), stand.buffer[0][0]]
        )  # fmt: skip

    def _candidates(self, move: str, proposer: str, cut: Cut, batch: Ints) -> list[Cut]:
        count, generator = self.settings.candidates, self.generator
        few = batch[: max(self.settings.batch // 4, 1)]
        if move == "delete":
            places = generator.permutation(len(cut.tokens))[:count]
            return [cut.deleted(int(place)) for place in places]
        if move == "insert":
            positions = list(cut.insertions(self.loaded.spec.kind))
            run, inner = positions[int(generator.integers(len(positions)))]
            filler = int(generator.choice(self.proposers.pool))
            cut, place = cut.inserted(run, inner, filler)
        else:
            place = int(generator.integers(len(cut.tokens)))
        tokens = self.proposers.tokens(proposer, cut, place, few, count)
        cuts = [cut.swapped(place, int(token)) for token in tokens]
        if move == "swap_two":
            other = (place + 1 + int(generator.integers(len(cut.tokens) - 1))) % len(cut.tokens)
            more = self.proposers.tokens(proposer, cut, other, few, count)
            cuts = [
                one.swapped(other, int(token))
                for one, token in zip(cuts, generator.permutation(more), strict=True)
            ]
        return cuts

    def _dev(self, stand: Stand, cut: Cut) -> float:
        """Mean log-likelihood on dev among the answers, looked up if it was found before."""
        plain = _plain(cut)
        for known, value in stand.known:
            if known == plain:
                return float(value)
        value = round(float(self.bench.dev(cut, "answers").mean()), DECIMALS)
        stand.known.append([plain, value])
        return value

    def _into_buffer(self, stand: Stand, cut: Cut) -> bool:
        """Put a prompt among the best so far; whether it is one of them. The first of ties wins."""
        plain, value = _plain(cut), self._dev(stand, cut)
        if any(held == plain for _, held in stand.buffer):
            return False
        full = len(stand.buffer) >= self.edits.buffer
        if full and value <= stand.buffer[-1][0]:
            return False
        stand.buffer.append([value, plain])
        stand.buffer.sort(key=lambda row: -row[0])
        del stand.buffer[self.edits.buffer :]
        return True

    def _result(self, stand: Stand) -> PromptFile:
        cut, best = _cut(stand.buffer[0][1]), max(stand.pool, key=lambda row: row[1])
        hits = {
            which: self.bench.dev(variant, "right among answers")
            for which, variant in {"found": cut, "start": self.pool[best[0]]}.items()
        }
        return prompt_of(
            self.loaded,
            cut.template(self.loaded.spec.kind),
            cut.tokens,
            mode="moves",
            settings={**asdict(self.settings), "edits": asdict(self.edits)},
            data={"train": self.size, "dev": len(hits["found"]), "sha256": self.owner["data"]},
            filters=self.counts,
            trace=stand.trace,
            record={
                "name": self.name,
                "trace_columns": TRACE,
                "pool": stand.pool,
                "unfit": self.unfit,
                "start": best[0],
                "dev_prompts": len(stand.known),
                "rows": stand.rows,
                "dev_accuracy": {n: round(float(v.mean()), DECIMALS) for n, v in hits.items()},
                "yields": {"moves": stand.moves, "proposers": stand.proposers},
            },
        )


TRACE = [
    "step", "move", "proposer", "rank", "current", "best", "confirmed", "into buffer", "best dev",
]  # fmt: skip


def _plain(cut: Cut) -> list[Any]:
    return [list(cut.slots), [list(run) for run in cut.runs]]


def _cut(plain: Sequence[Any]) -> Cut:
    return Cut(tuple(plain[0]), tuple(tuple(run) for run in plain[1]))
