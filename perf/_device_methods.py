"""Models and methods that perf/device.py measures: real shapes with random weights, five methods.

Needs torch, transformers and numpy only. The questions have the sizes of the papers' questions
(answers of a few tokens, sixty options, 783 candidates), in made-up words.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from kgprobe.probes.models.batching import budget_for
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.prompts.search.scores import Scorer, problem, top
from kgprobe.probes.prompts.search.settings import settings_for
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.sentence.score import Item, score
from kgprobe.probes.text.mask_slots import ClozePrompt
from kgprobe.templates import Template

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SHAPES: dict[str, dict[str, dict[str, int]]] = {
    "real": {
        "causal": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
                   "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 49152},
        "masked": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
                   "num_attention_heads": 16, "vocab_size": 28996},
    },
    "tiny": {
        "causal": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 12000},
        "masked": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "vocab_size": 12000},
    },
}  # fmt: skip
OPTIONS, CANDIDATES, TRIGGERS, TRIED = 60, 783, 5, 10
SPECIAL = {"pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "unk": "[UNK]"}


@dataclass(frozen=True)
class Answers:
    """Answers of a method: log-probabilities and an order for every question, and the cost."""

    values: list[np.ndarray]
    orders: list[list[Any]]
    positions: int
    head_rows: int = 0


Method = Callable[[Loaded, int], Answers]


def build_model(kind: str, shape: str) -> Loaded:
    """A model with random weights, in float32 on the processor."""
    own = SHAPES[shape][kind]
    words = [*SPECIAL.values(), "<s>", "is", "a", "the", "capital", "of", "."]
    words += [f"w{n}" for n in range(own["vocab_size"] - len(words))]
    tok = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {f"{name}_token": token for name, token in SPECIAL.items()}
    if kind == "masked":
        tok.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
        config: Any = transformers.BertConfig(**own)
        auto = transformers.BertForMaskedLM
    else:
        names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "bos_token": "<s>", "eos_token": "<s>"}
        config = transformers.LlamaConfig(**own, bos_token_id=5, eos_token_id=5, pad_token_id=0)
        auto = transformers.LlamaForCausalLM
    torch.manual_seed(0)
    model = auto(config).eval().requires_grad_(False)
    spec = ModelSpec(f"random-{kind}", kind, "random", bos="-" if kind == "masked" else "forced")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tok, **names)
    return Loaded(spec, model, tokenizer, torch.device("cpu"), 512, {})


def moved(loaded: Loaded, device: torch.device, dtype: str) -> Loaded:
    """Copy a model to a device, in another precision."""
    model = copy.deepcopy(loaded.model).to(device=device, dtype=DTYPES[dtype])
    spec = replace(loaded.spec, dtype=dtype)
    return Loaded(spec, model, loaded.tokenizer, device, loaded.limit, {})


def load_folder(kind: str, folder: str, device: torch.device, dtype: str) -> Loaded:
    """Load a model from a folder."""
    bos = "-" if kind == "masked" else "forced"
    spec = ModelSpec(Path(folder).name, kind, f"folder:{folder}", dtype=dtype, bos=bos)
    return load_model(spec, str(device))


def words(rng: np.random.Generator, low: int, high: int, most: int) -> str:
    """Return `low` to `most` made-up words."""
    return " ".join(f"w{n}" for n in rng.integers(low, high, size=rng.integers(1, most + 1)))


def sentences(loaded: Loaded, count: int) -> Answers:
    """Fill every option of every question into its sentence. BEAR's sizes: subjects and answers of
    a few tokens, sixty options."""
    rng = np.random.default_rng(0)
    same = {"relation": "r", "template": "the capital of [X] is [Y] ."}
    options = [words(rng, 100, 4000, 4) for _ in range(OPTIONS)]
    subjects = [words(rng, 4000, 9000, 5) for _ in range(count)]
    return of_questions(loaded, [{**same, "options": options, "subject": s} for s in subjects])


def of_questions(loaded: Loaded, questions: Sequence[Mapping[str, Any]]) -> Answers:
    """Fill every option of the questions that perf.peers draws into their sentences."""
    items = [
        Item(f"{n:06}", q["relation"], q["subject"], q["relation"]) for n, q in enumerate(questions)
    ]
    options = {q["relation"]: q["options"] for q in questions}
    templates = {q["relation"]: [(0, q["template"])] for q in questions}
    found = score(loaded, items, options, templates, budget=budget_for(loaded))
    order = np.lexsort((found.columns["candidate"], found.columns["item"]))
    sums = np.asarray(found.columns["sum"], dtype=float)[order]
    values = np.split(sums, np.cumsum([len(q["options"]) for q in questions])[:-1])
    record = found.record
    return Answers(values, ordered(values), record["positions_fed"], record["head_rows"])


def clozes(loaded: Loaded, count: int) -> Answers:
    """Rank 783 candidates in three templates, all configurations."""
    rng = np.random.default_rng(1)
    labels = [words(rng, 100, 4000, 3) for _ in range(CANDIDATES)]
    asked = [
        ClozePrompt(
            f"i{n}", index, words(rng, 4000, 9000, 5) + text, " .", "all", (n % CANDIDATES,)
        )
        for n in range(max(count // 30, 4))
        for index, text in enumerate((" is a ", " is the ", " of "))
    ]
    record: dict[str, Any] = {}
    values: list[Any] = [None] * len(asked)
    where = rank.CONFIGURATIONS.index(("multi", "mean"))
    options: dict[str, Sequence[str]] = {"all": labels}
    budget = budget_for(loaded)
    for chunk in rank.scores(loaded, asked, options, space="none", budget=budget, record=record):
        for index, scores in zip(chunk.indices, chunk.scores, strict=True):
            values[index] = np.asarray(scores[where], dtype=float)
    return Answers(values, ordered(values), record["positions_fed"], record.get("head_rows", 0))


def fills(loaded: Loaded, count: int) -> Answers:
    """Find the five best fillings of a mask slot, and the log-probability of the gold answer."""
    rng = np.random.default_rng(2)
    is_masked = loaded.spec.kind == "masked"
    text = "[X] is a [Y] ." if is_masked else "the capital of [X] is [Y]"
    blanks = [
        predict.FillItem(f"i{n:05}", 0, text, words(rng, 4000, 9000, 5), (f"w{n % 4000}",))
        for n in range(count)
    ]
    settings = predict.FillSettings(length="gold")
    found = predict.predict(loaded, blanks, 5, settings, budget=budget_for(loaded))
    first = np.asarray(found.top["position"]) == 0
    best = np.asarray(found.top["logprob"], dtype=float)[first].reshape(count, -1)
    texts = np.asarray(found.top["text"], dtype=object)[first].reshape(count, -1)
    record = found.record
    orders = [list(row) for row in texts]
    return Answers(list(best), orders, record["positions_fed"], record.get("head_rows", 0))


def searches(loaded: Loaded, count: int) -> Answers:
    """Run one iteration of the trigger search: a gradient, and ten candidates on the other half. A
    gradient counts as three passes."""
    rng = np.random.default_rng(3)
    half = max(count // 12, 8)
    examples = [
        ({"sub": words(rng, 4000, 9000, 5)}, f"w{rng.integers(100, 200)}") for _ in range(2 * half)
    ]
    kind = loaded.spec.kind
    slot = " [P] ." if kind == "masked" else " [P]"
    template = Template.parse(f"{{sub}} [T]x{TRIGGERS}{slot}", kind)
    known = problem(
        loaded, template, examples, examples[:1], settings_for("released", "facts", kind)
    )
    scorer = Scorer(loaded, known)
    trigger, (first, second) = [13, 700, 13, 4000, 13], (np.arange(half), np.arange(half, 2 * half))
    gradient = scorer.gradient(first, np.full(half, 1 / half), trigger)
    kept = np.ones(len(scorer.embedding), dtype=bool)
    tokens = top(scorer.candidate_scores(gradient[0], kept), TRIED)
    # the same candidates everywhere, so that their sums can be compared
    tried = [[100 + n, *trigger[1:]] for n in range(len(tokens))]
    values = np.asarray(scorer.values("train", second, tried, "likelihood"), dtype=float)
    length = float(np.mean([len(row) for row in known.train.encoded.filled(trigger)]))
    return Answers(list(values.T), ordered(values.T), int(length * half * (3 + TRIED)))


def ordered(values: Any) -> list[list[Any]]:
    """Sort the options of every question, the most likely first."""
    return [np.argsort(-row, kind="stable").tolist() for row in values]


#: method -> kind of its model, itself, and the part of the questions that takes about as long
METHODS: dict[str, tuple[str, Method, int]] = {
    "sentence, causal": ("causal", sentences, 1),
    "sentence, masked": ("masked", sentences, 30),
    "cloze": ("masked", clozes, 1),
    "fill, causal": ("causal", fills, 1),
    "fill, masked": ("masked", fills, 1),
    "search": ("masked", searches, 1),
}
