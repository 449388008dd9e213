"""Models with NaN or infinity in their weights: every engine raises with model, row and position.

Three corrupted models: all weights NaN; NaN in the input embedding of one word, which affects only
rows with that word; infinity in the output embedding.
"""

import functools
import itertools
import re

import numpy as np
import pytest
import torch
from torch import nn

from kgprobe.probes.baselines import classified, relation_lstm
from kgprobe.probes.baselines.relation_lstm import label_words, mark_mentions, nearest
from kgprobe.probes.jobs import score
from kgprobe.probes.jobs.autoprompt.tasks import TriggerPrompt, outcomes
from kgprobe.probes.models.finite import NotFiniteError, finite, first_wrong
from kgprobe.probes.models.head import Head, apart
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search import labels as label_tokens
from kgprobe.probes.prompts.search.search import SearchError, search
from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import ChoiceQuestion
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.cloze.vectors import candidate_tokens, gold_ranks, prompts
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.sentence import score as sentence
from kgprobe.probes.text.mask_slots import ClozePrompt, question
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS, SCORES, check
from kgprobe.templates import Template, mark
from tests.unit import test_autoprompt
from tests.unit.prompt_examples import examples
from tests.unit.study_frames import of_rows
from tests.unit.tiny_models import tiny
from tests.unit.token_scores import scored_tokens
from tools.controls import train

#: only in the last item, in no option or template; never its first token if it has several
BAD_WORD = "Burkina"
SUBJECTS = ["the France", "the Italy", "the Africa", f"the {BAD_WORD} Faso"]
LABELS = ["Paris", "Rome", "a country"]
#: one token in every model
WORDS = ["capital", "Paris"]
KINDS = ("bert", "gpt2", "t5")
CORRUPTIONS = ("all", "one word", "head")


def corrupted(name: str, how: str):
    """Return a tiny float32 model with NaN or infinity; input and output embeddings untied."""
    loaded = tiny(name, double=False)
    model = loaded.model
    output = model.get_output_embeddings()
    output.weight = nn.Parameter(output.weight.clone(), requires_grad=False)
    with torch.no_grad():
        if how == "all":
            for parameter in model.parameters():
                parameter.fill_(float("nan"))
        elif how == "one word":
            ids = loaded.tokenizer(f"a {BAD_WORD}", add_special_tokens=False)["input_ids"]
            model.get_input_embeddings().weight[ids[-1]] = float("nan")
        elif how == "head":
            # of two opposite rows, one has logit plus infinity for any hidden state
            output.weight[7, 0], output.weight[8, 0] = float("inf"), float("-inf")
    return loaded


def test_bad_word_is_only_in_the_last_item():
    for name in KINDS:
        tok = tiny(name).tokenizer
        bad = tok(f"a {BAD_WORD}", add_special_tokens=False)["input_ids"][-1]
        held = [
            bad in tok(f"The capital of {s} is {label}.")["input_ids"]
            for s in SUBJECTS
            for label in LABELS
        ]
        assert held == [False] * 9 + [True] * 3


# -- every engine -----------------------------------------------------------------------------


def scored(loaded, by=sentence.score, **options):
    items = [sentence.Item(f"q{n}", "P", s, "set") for n, s in enumerate(SUBJECTS)]
    templates = {"P": [(0, "The capital of [X] is [Y].")]}
    return by(loaded, items, {"set": LABELS}, templates, **options)


def questions(prefix=""):
    return [
        ClozePrompt(f"q{n}", 0, f"{prefix}The capital of {s} is ", " .", "set", (1,))
        for n, s in enumerate(SUBJECTS)
    ]


def ranked(loaded):
    return rank.rank(loaded, questions(), {"set": LABELS})


def slot_ranks(loaded):
    """Rank candidates at mask slots of texts with inserted vectors."""
    vectors = torch.ones(1, loaded.model.get_input_embeddings().weight.shape[1])
    return gold_ranks(loaded, questions(f"{mark(0)} "), {"set": LABELS}, vectors)


def filled(loaded, strategy="parallel", k=2, golds=("Rome",)):
    asked = [predict.FillItem(f"q{n}", 0, "The capital of [X] is [Y]", s, golds, (2,))
             for n, s in enumerate(SUBJECTS)]  # fmt: skip
    return predict.predict(loaded, asked, k, predict.FillSettings(strategy=strategy))


def chosen(loaded, scoring):
    options = ("Paris", "Rome")
    asked = [
        ChoiceQuestion(f"q{n}", f"Where is {s}?", options, f"{s} lies in [MASK] and so on")
        for n, s in enumerate(SUBJECTS)
    ]
    return choose.choose(loaded, asked, (scoring,))


def trained_softly(loaded):
    space = "auto" if loaded.spec.kind == "causal" else "none"
    asked = [
        question(f"q{n}", 0, soft.template(2), s, "set", (n % 3,), upper_first=False)
        for n, s in enumerate(SUBJECTS)
    ]
    rows = soft.PromptRows(
        prompts(loaded, asked, space), [q.golds for q in asked], [q.item for q in asked]
    )
    ids = candidate_tokens(loaded, LABELS, asked, space, "set")
    recipe = soft.SoftPromptRecipe(tokens=2, epochs=2)
    return soft.fit(loaded, rows, rows, ids, soft.initial(loaded, recipe), recipe)


def split_examples(field, *labels):
    """Return every subject in all splits, with the labels in turn."""
    rows = [
        {"split": split, "example": f"q{n}", "label": labels[n % len(labels)], "fields": {field: s}}
        for split in ("train", "dev", "test")
        for n, s in enumerate(SUBJECTS)
    ]
    return examples(rows)


CLASSES = split_examples("sentence", "a", "b"), ["a", "b"], ["sentence"]


def prompted(loaded):
    text = "{sub} is the capital of [P]" + ("" if loaded.spec.kind == "causal" else " .")
    prompt = TriggerPrompt(Template.parse(text, loaded.spec.kind))
    selected = split_examples("sub", WORDS[0]).filter(split="test")
    return outcomes(Predictor(loaded), "x", {"": prompt}, selected, WORDS)


def searched(loaded, metric="likelihood"):
    template = Template.parse(
        "{sub} [T]x2 [P]" + ("" if loaded.spec.kind == "causal" else " ."), loaded.spec.kind
    )
    data = [({"sub": s}, WORDS[0]) for s in SUBJECTS]
    own = test_autoprompt.settings(
        iterations=3, batch=4, evaluation=4, fill_all=False, metric=metric, batches="fresh"
    )
    return search(loaded, template, data, data, own)


def labeled(loaded):
    template = Template.parse("{sub} [T] [P] .", "masked")
    data = [{"sub": s} for s in SUBJECTS], ["yes", "no"] * 2
    settings = label_tokens.LabelSearchSettings(at_chance="keep", listed=3, epochs=2)
    return label_tokens.find(Predictor(loaded), template, data, data, settings=settings)


def probed(loaded):
    return classified.linear_probe(loaded, *CLASSES)


def finetuned(loaded):
    return classified.finetune(loaded, *CLASSES, classified.FinetuneSettings(epochs=1, batch=4))


#: engine -> (kinds of models, whether the output embedding is used)
ENGINES = {
    "scores": (scored, KINDS, True),
    "scores, plain": (functools.partial(scored, budget=None, upper_first=False), ("gpt2",), True),
    "scores, last layer at all": (functools.partial(scored, last_layer="all"), ("bert",), True),
    "scores, answer only": (functools.partial(scored, answer_only=True), ("bert",), True),
    "scores, pll": (functools.partial(scored, variant="pll"), ("t5",), True),
    "ranks": (ranked, ("bert", "t5"), True),
    "ranks with slots": (slot_ranks, KINDS, True),
    "fills": (filled, KINDS, True),
    "fills, golds alone": (functools.partial(filled, k=0), KINDS, True),
    "fills, no golds": (functools.partial(filled, golds=()), KINDS, True),
    "fills, beam": (functools.partial(filled, strategy="beam"), ("bert",), True),
    "choice, answer": (functools.partial(chosen, scoring="answer"), ("gpt2",), True),
    "choice, letter": (functools.partial(chosen, scoring="letter"), KINDS, True),
    "choice, text": (functools.partial(chosen, scoring="text"), KINDS, True),
    "choice, stem": (functools.partial(chosen, scoring="stem"), KINDS, True),
    "soft prompts": (trained_softly, KINDS, True),
    "prompts": (prompted, KINDS, True),
    "search": (searched, KINDS, True),
    "search, accuracy": (functools.partial(searched, metric="accuracy"), KINDS, True),
    "label tokens": (labeled, ("bert",), True),
    "linear probe": (probed, KINDS, False),
    "fine-tuning": (finetuned, KINDS, False),
}
CASES = [
    (engine, kind, how)
    for engine, (_, kinds, head) in ENGINES.items()
    for kind, how in itertools.product(kinds, CORRUPTIONS)
    if head or how != "head"
]


@functools.cache
def runs_through(engine, kind):
    """Check that a valid model passes, so that errors below come from its weights."""
    return ENGINES[engine][0](tiny(kind, double=False)) is not None


@pytest.mark.parametrize(("engine", "kind", "how"), CASES)
def test_every_engine_reports_model_row_and_position(engine, kind, how):
    assert runs_through(engine, kind)
    with pytest.raises((NotFiniteError, SearchError)) as caught:
        ENGINES[engine][0](corrupted(kind, how))
    message = str(caught.value)
    assert kind in message
    assert any(word in message for word in (" nan ", " inf ", " -inf "))
    # layers without item names number their examples, or the rows of their self-check
    row = r"q[0-3]\b|example [0-3]\b|example \{'sub': |row [01] of the check"
    assert re.search(row, message), message
    place = r"token \d|mask \d|place \(|component \d|class \d|training example \d"
    assert re.search(place, message), message
    if how == "one word":
        assert "q3" in message or "example 3" in message or BAD_WORD in message


def test_search_detects_nan_in_tokens_outside_the_examples():
    loaded = corrupted("bert", "sound")
    with torch.no_grad():
        loaded.model.get_input_embeddings().weight[150] = float("nan")
    with pytest.raises(NotFiniteError, match=r"bert: product of the gradient .* nan at token 150"):
        searched(loaded)


def test_label_search_checks_every_row_of_the_output_embedding():
    loaded = corrupted("bert", "sound")
    predictor = Predictor(loaded)
    with torch.no_grad():
        loaded.model.get_output_embeddings().weight[150, 3] = float("nan")
    data = [{"sub": s} for s in SUBJECTS], ["yes", "no"] * 2
    with pytest.raises(NotFiniteError, match=r"bert: output embedding nan at token 150, comp.* 3"):
        label_tokens.find(
            predictor, Template.parse("{sub} [T] [P] .", "masked"), data, data,
            settings=label_tokens.LabelSearchSettings(at_chance="keep", listed=3),
        )  # fmt: skip


def test_control_training_stops_at_a_non_finite_loss(tmp_path, monkeypatch):
    build = train.build_model

    def broken(*given):
        model = build(*given)
        with torch.no_grad():
            model.get_input_embeddings().weight[20] = float("nan")
        return model

    monkeypatch.setattr(train, "build_model", broken)
    training_facts = [train.TrainingFact("P36", s, "Rome") for s in SUBJECTS]
    for kind in train.RECIPES:
        with pytest.raises(NotFiniteError, match=rf"control model \({kind}\): loss nan at step"):
            train.train_control(
                kind, training_facts, SUBJECTS, {"P36": ["[X] has [Y]."]}, 0, tmp_path / kind
            )
        assert not (tmp_path / kind).exists()


def test_diverging_training_is_reported_with_its_step():
    texts = ["Ada Lovelace saw Lyon.", "Ada Lovelace saw Paris and Rome."]
    result = [
        mark_mentions(t, "Ada Lovelace", label_words(["Lyon", "Paris", "Rome"])) for t in texts
    ]
    training_facts = [
        relation_lstm.SentenceExample(s, others, [1] * len(others))
        for s in result
        for others in nearest(s)
    ]
    settings = relation_lstm.RelationLstmSettings(rate=float("inf"), least=1, epochs=3)
    with pytest.raises(NotFiniteError, match=r"relation_lstm: loss nan at epoch 1, sentences \["):
        relation_lstm.train(training_facts, ["none", "saw"], settings)
    extractor = relation_lstm.train(
        training_facts, ["none", "saw"], relation_lstm.RelationLstmSettings(epochs=1)
    )
    with torch.no_grad():
        extractor.network.output.bias[1] = float("nan")
    with pytest.raises(NotFiniteError, match=r"mention 'Lyon', relation 'none'"):
        extractor.confidences(result[0])
    vectors, labels = np.ones((4, 2), dtype=np.float32), np.array([0, 1, 0, 1])
    runaway = classified.LinearProbeSettings(rate=float("inf"), batch=2)
    with pytest.raises(NotFiniteError, match=r"linear probe: .* example"):
        classified.fit(vectors, labels, vectors, labels, 2, runaway)
    with pytest.raises(NotFiniteError, match=r"bert, fine-tuned: .*epoch 0, training example"):
        classified.finetune(
            tiny("bert", double=False), *CLASSES,
            classified.FinetuneSettings(epochs=1, batch=1, rate=float("inf"), warmup=0.0),
        )  # fmt: skip


# -- basis of the check -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 3000])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_one_bad_logit_spoils_all_log_probabilities_of_its_row(size, value):
    """So one number per row covers all its logits, even for a sliced vocabulary."""
    decoder = nn.Linear(1, size)
    torch.manual_seed(0)
    for column in {0, 1, size // 2, size - 1}:
        with torch.no_grad():
            decoder.weight.zero_()
            decoder.bias.copy_(torch.randn(size))
            decoder.bias[column] = value
        owners, targets = torch.tensor([0, 0, 1]), torch.tensor([0, size - 1, size // 3])
        result = Head(None, decoder).logprobs(torch.ones(2, 1), owners, targets)
        assert not torch.isfinite(result).any()
        assert not torch.isfinite(decoder(torch.ones(2, 1)).logsumexp(-1)).any()


def test_suppressed_tokens_raise_only_when_scored():
    loaded = corrupted("bert", "sound")
    tok = loaded.tokenizer
    (answer,) = tok("Rome", add_special_tokens=False)["input_ids"]
    before, tokens = scored(loaded, scored_tokens)
    # a tokenizer trained in the test breaks ties arbitrarily: the id is looked up
    used = {answer, *tokens["id"].tolist()}
    unused = next(token for token in reversed(range(len(tok))) if token not in used)
    with torch.no_grad():
        loaded.model.get_output_embeddings().bias[unused] = float("-inf")
    result = scored(loaded)
    assert np.isfinite(result.columns["sum"]).all()
    # the freed probability goes to the other tokens
    assert (result.columns["sum"] >= before.columns["sum"]).all()
    with torch.no_grad():
        loaded.model.get_output_embeddings().bias[answer] = float("-inf")
    with pytest.raises(NotFiniteError, match=r"log-probability -inf at item q\d.*'Rome', token"):
        scored(loaded)
    with pytest.raises(NotFiniteError, match=rf"-inf at item q\d, .* token {answer} "):
        ranked(loaded)


def test_finite_reports_the_first_bad_value():
    def where(row, column):
        return f"row {row}, column {column}"

    finite(np.zeros((2, 2)), "m", where)
    finite(torch.zeros(0, 3), "m", where)
    for made in (np.array, torch.tensor):
        with pytest.raises(NotFiniteError, match=r"^m: logit nan at row 1, column 0 \(2 of 4 "):
            finite(made([[0.0, 1.0], [np.nan, -np.inf]]), "m", where, "logit")
    with pytest.raises(NotFiniteError, match="loss inf at step 3"):
        finite(torch.tensor(float("inf"), requires_grad=True), "m", lambda: "step 3", "loss")
    assert first_wrong(torch.tensor([[0.0, 1.0], [2.0, np.nan], [np.inf, 0.0]])) == 1


def test_nan_never_counts_as_agreement():
    sound = torch.randn(2, 4)
    for bad in (np.nan, np.inf):
        spoiled = sound.clone()
        spoiled[1, 2] = bad
        assert apart(sound, spoiled) == apart(spoiled, spoiled) == float("inf")
    suppressed = sound.clone()
    suppressed[:, 1] = -np.inf
    assert apart(suppressed, suppressed) == 0.0
    assert apart(sound, suppressed) == float("inf")


# -- scored tokens are marked, not inferred from the numbers -----------------------------------


@pytest.mark.parametrize(("name", "bos"), [("bert", ""), ("gpt2", "none"), ("gpt2", "forced"),
                                           ("t5", "")])  # fmt: skip
def test_mask_marks_the_scored_tokens(name, bos):
    result, tokens = scored(tiny(name, bos=bos), scored_tokens)
    columns = result.columns
    assert tokens["scored"].dtype == bool
    assert np.isfinite(tokens["score"]).all()
    counts = np.bincount(tokens["sentence"], tokens["scored"], minlength=12)
    sums = np.bincount(tokens["sentence"], tokens["score"] * tokens["scored"], minlength=12)
    assert counts.tolist() == columns["count"].tolist()
    assert sums == pytest.approx(columns["sum"])
    assert (tokens["score"][tokens["scored"]] < 0).all()
    assert columns["continued"].tolist() == [name != "bert"] * 12
    first = np.flatnonzero(np.diff(tokens["sentence"], prepend=-1))
    if name == "gpt2":
        assert not tokens["scored"][first].any(), "the first token, or BOS, has no left context"


def test_absent_sums_are_null_and_nan_raises(monkeypatch):
    """The schema check rejects NaN that an engine lets through."""
    items = [(f"q{n}", "g", "test", "P", s, s, "set", [0], n, "{}")
             for n, s in enumerate(SUBJECTS)]  # fmt: skip
    options = [("set", n, label, label) for n, label in enumerate(LABELS)]
    texts = [("P/0", "P", 0, "The capital of [X] is [Y].", "x")]
    tables = zip((ITEMS, CANDIDATES, PROMPTS), (items, options, texts), strict=True)
    frames = [of_rows(contract, rows) for contract, rows in tables]
    loaded = tiny("bert")

    def scores():
        return score.score_frame(loaded.spec, *frames, "sentence", load=lambda spec: loaded)[0]

    frame = scores()
    check(frame, SCORES)
    assert frame["continuation_sum"].null_count() == frame.height == 12
    monkeypatch.setattr("kgprobe.probes.models.masked.finite", lambda *given: None)
    with torch.no_grad():
        loaded.model.get_output_embeddings().bias.fill_(float("nan"))
    with pytest.raises(ValueError, match="column 'sum' is NaN in row 0: item='q0'"):
        check(scores(), SCORES)
