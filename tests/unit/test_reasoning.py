"""Reasoning prompts: their text, their scores, and no leaks from training."""

import itertools
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch

from kgprobe.benchmarks.ontoprobe.modes import Switches, resolve
from kgprobe.probes.jobs.ontoprobe import reason, soft
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.scoring.cloze.vectors import gold_ranks, prompts, scores
from kgprobe.probes.text.mask_slots import (
    ClozePrompt,
    rows_of_embedding,
    tokenize_prompts,
    tokens_with_slots,
)
from kgprobe.probes.text.vectors import inserted, pseudowords
from kgprobe.settings.probes import Soft
from kgprobe.templates import mark
from tests.unit import soft_frames as frames
from tests.unit.tiny_models import save, sentencepiece, tiny, tokenizer, with_tokenizer

CASES = reason.cases(frames.reasoning())
SLOTS = reason.layout(dict.fromkeys(sorted(frames.TASKS), 3))


def shown(question):
    """Return the text with a readable word for every slot."""
    names = {SLOTS.words: "X", SLOTS.words + 1: "Y", SLOTS.words + 2: "X1", SLOTS.words + 3: "Y1",
             SLOTS.conjunctions: "c1", SLOTS.conjunctions + 1: "c2"}  # fmt: skip
    for task, (start, count) in SLOTS.templates.items():
        names |= {start + k: f"{task}{k + 1}" for k in range(count)}
    text = question.before + "[MASK]" + question.after
    for slot, name in names.items():
        text = text.replace(mark(slot), name)
    return text


def test_prompts_of_all_forms_and_schemes():
    case = CASES["rdfs9"][4]
    found = {
        (scheme, form): shown(reason.prompt(case, form, scheme, 0, SLOTS))
        for scheme in reason.SCHEMES
        for form in reason.FORMS
    }
    p1, p2, h = "Niger 4 is a country .", "X is niger 4 .", "X is a [MASK] ."
    s1 = "Niger 4 SCO1 SCO2 SCO3 Rome ."
    s2, sh = "X TP1 TP2 TP3 niger 4 .", "X TP1 TP2 TP3 [MASK] ."
    both, first, second, none = reason.FORMS
    assert found["manual+manual", both] == f"{p1} {p2} Therefore, {h}"
    assert found["manual+manual", first] == f"{p1} Therefore, {h}"
    assert found["manual+manual", second] == f"{p2} Therefore, {h}"
    assert found["manual+manual", none] == f"Therefore, {h}"
    assert found["manual+soft", both] == f"{p1} c1 {p2} c2 {h}"
    assert found["manual+soft", first] == f"{p1} c2 {h}"
    assert found["manual+soft", second] == f"{p2} c2 {h}"
    assert found["manual+soft", none] == f"c2 {h}"
    assert found["soft+manual", both] == f"{s1} {s2} Therefore, {sh}"
    assert found["soft+soft", both] == f"{s1} c1 {s2} c2 {sh}"
    assert found["soft+soft", none] == f"c2 {sh}"


def test_pattern_premises_have_no_soft_form():
    case = CASES["rdfs7"][4]
    text = shown(reason.prompt(case, (True, True), "soft+manual", 1, SLOTS))
    assert text == ("Niger 4 SPO1 SPO2 SPO3 Rome . X1 lie in Africa Y1 . Therefore, X1 [MASK] Y1 .")


@pytest.mark.parametrize("rule", list(CASES))
@pytest.mark.parametrize("scheme", reason.SCHEMES)
def test_pseudowords_are_in_every_prompt_of_every_rule(rule, scheme):
    loaded = tiny("bert")
    for case in CASES[rule]:
        for form in reason.FORMS:
            asked = [reason.prompt(case, form, scheme, pair, SLOTS) for pair in range(10)]
            for pair, row in enumerate(tokenize_prompts(loaded, asked)):
                ids = set(row.ids.tolist()) - set(range(rows_of_embedding(loaded)))
                words = {i - rows_of_embedding(loaded) - SLOTS.words for i in ids}
                own = {w for w in words if w >= 0}
                assert own
                assert own <= {2 * pair, 2 * pair + 1}
                if rule == "rdfs7" or (rule == "rdfs3" and form[1]):
                    assert own == {2 * pair, 2 * pair + 1}
        test = tokenize_prompts(loaded, [reason.premise_test(case, "manual", 3, SLOTS)])[0]
        first = rows_of_embedding(loaded) + SLOTS.words
        assert first + 6 in test.ids


def test_released_prompts_keep_letters_as_the_released_code():
    switches = Switches(pseudoword_slots="pattern_rules")

    def ask(rule):
        case = CASES[rule][4]
        return reason.prompt(case, (False, True), "manual+manual", 0, SLOTS, switches)

    assert shown(ask("rdfs9")) == "[X] is niger 4 . Therefore, [X] is a [MASK] ."
    assert shown(ask("rdfs7")) == "X lie in Africa Y . Therefore, X [MASK] [Y] ."
    assert shown(ask("rdfs2")) == "X lie in Africa Y . Therefore, X is a [MASK] ."


def test_order_and_the_word_implies_are_switches():
    case = CASES["rdfs5"][4]
    turned = Switches(premise_order="P2_P1")
    text = shown(reason.prompt(case, (True, True), "manual+soft", 0, SLOTS, turned))
    assert text == "X is niger 4 . c1 Niger 4 is a country . c2 X implies [MASK] ."
    kept = Switches(soft_implies="kept")
    text = shown(reason.prompt(case, (False, False), "soft+soft", 0, SLOTS, kept))
    assert text == "c2 X implies SPO1 SPO2 SPO3 [MASK] ."


def test_no_subject_is_trained_on_and_tested():
    own = reason.cases(frames.reasoning(twin=5))["rdfs5"]
    tested, left_out = reason.select_test_cases(own, "manual+soft")
    assert left_out == ["rdfs5-5"]
    assert not {c.subject for c in own if c.role != "test"} & {c.subject for c in tested}
    assert len(reason.select_test_cases(own, "manual+manual")[0]) == 3
    again = [*own, reason.RuleRow(**{**own[0].__dict__, "item": "rdfs5-9", "role": "test"})]
    with pytest.raises(
        ValueError, match=r"rdfs5-9 \('niger 0'\): rdfs5-0 is about the same subject"
    ):
        reason.select_test_cases(again, "soft+soft")


@pytest.mark.parametrize("bos", ["none", "forced"])
def test_causal_scores_equal_a_literal_loop(bos):
    loaded = tiny("gpt2", bos=bos)
    vectors = pseudowords(loaded, pairs=1).vectors
    first = rows_of_embedding(loaded)
    table = loaded.model.get_input_embeddings().weight
    asked = [
        ClozePrompt("a", 0, f"The {mark(0)} is a ", " .", "class", (0,)),
        ClozePrompt("b", 0, f"{mark(0)} ", f" {mark(1)} .", "class", (1,)),
    ]
    with inserted(loaded, vectors):
        found = {int(i): v for chunk in scores(loaded, asked, {"class": frames.CLASSES})
                 for i, v in zip(chunk.indices, chunk.scores, strict=True)}  # fmt: skip
    tok = loaded.tokenizer
    lead = [tok.bos_token_id] if bos == "forced" else []
    for number, label in enumerate(frames.CLASSES):

        def coded(text):
            return tok(text, add_special_tokens=False)["input_ids"]

        own = coded(f" {label}")
        rows = [
            ([*lead, *coded("The"), first, *coded(" is a")], own, coded(" .")),
            ([*lead, first], own, [first + 1, *coded(" .")]),
        ]
        for q, (before, middle, after) in enumerate(rows):
            row = [*before, *middle, *after]
            embedded = torch.stack([table[i] if i < first else vectors[i - first] for i in row])
            with torch.no_grad():
                logp = torch.log_softmax(loaded.model(inputs_embeds=embedded[None]).logits[0], -1)
            # more than a full stop follows the slot of the second question, and all of it is scored
            end = len(before) + len(middle) if q == 0 else len(row)
            parts = []
            # a space that is a separate token belongs to the text before the candidate
            bare = not tok.decode(own[:1]).strip()
            for j in range(len(before) + bare, end):
                # a pseudoword is no token that could be predicted
                if row[j] < first:
                    parts.append(float(logp[j - 1, row[j]]))
            assert found[q][number] == pytest.approx(np.mean(parts), abs=1e-9)


def test_prompts_of_causal_models_end_before_the_slot():
    loaded = tiny("gpt2", bos="forced")
    (row,) = prompts(
        loaded, [ClozePrompt("a", 0, f"Rome {mark(0)} {mark(1)} ", " .", "class")], "auto"
    )
    first = rows_of_embedding(loaded)
    own = loaded.tokenizer("Rome", add_special_tokens=False)["input_ids"]
    assert row.ids.tolist() == [loaded.tokenizer.bos_token_id, *own, first, first + 1]
    ((ids, spans),) = tokens_with_slots(loaded, [f"Rome {mark(0)} is"])
    assert ids[len(own)] == first
    assert spans[-1, 1] == len("Rome") + 1 + len(" is")


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_text_has_the_same_tokens_around_a_vector_and_a_word(name):
    """Llama's tokenizer puts a space after special tokens, so none may mark the slot."""
    tok = tokenizer("causal") if name == "gpt2" else sentencepiece("causal")
    loaded = with_tokenizer("gpt2", tok)
    text = "{0} is a country , {0} lies in Africa. The capital of {0}: Rome {0}"
    whole = text.format("a")
    coded = tok(whole, return_offsets_mapping=True)
    starts = [m.start() - 2 * n for n, m in enumerate(re.finditer(r"\{0\}", text))]
    expected, ends = [], []
    for token, (_, end) in zip(coded["input_ids"], coded["offset_mapping"], strict=True):
        is_vector = end - 1 in starts
        expected.append(rows_of_embedding(loaded) + 3 if is_vector else token)
        # the space before a vector is removed
        ends.append(end - sum(0 < start < end for start in starts))
    ((ids, spans),) = tokens_with_slots(loaded, [text.format(mark(3))])
    assert ids.tolist() == expected
    assert spans[:, 1].tolist() == ends


@pytest.mark.parametrize("style", ["bpe", "unigram"])
@pytest.mark.parametrize(
    ("kind", "space"), [("masked", "none"), ("masked", "auto"), ("seq2seq", "auto")]
)
def test_vectors_near_a_mask_slot_are_tokenized_like_words(style, kind, space):
    """After a special token both tokenizers would insert a space: before `'s`, and a second one."""
    loaded = with_tokenizer({"masked": "bert", "seq2seq": "t5"}[kind], sentencepiece(kind, style))
    before, after = "{0}'s capital , {0} is ", " . It lies in {0} ."
    (word, vector) = tokenize_prompts(
        loaded,
        [ClozePrompt("q", 0, before.format(x), after.format(x)) for x in ("Rome", mark(3))],
        space,
    )
    rome, first = loaded.tokenizer.convert_tokens_to_ids("▁Rome"), rows_of_embedding(loaded)
    assert (word.ids == rome).sum() == 3
    assert vector.ids.tolist() == np.where(word.ids == rome, first + 3, word.ids).tolist()
    assert vector.position == word.position


def saved(tmp_path, name="bert"):
    """Save a tiny model in a folder and return its spec."""
    loaded = tiny(name, double=False)
    folder = tmp_path / name
    save(loaded, folder)
    return ModelSpec(name, loaded.spec.kind, f"folder:{folder}", bos=loaded.spec.bos)


PLAN = Soft(seeds=1, epochs=2, losses=("bce",), masks=("multi",), poolings=("mean",))
SWITCHES = resolve("default", {"pseudoword_pairs": "2"})


def run(tmp_path, name="bert", switches=SWITCHES, schemes=reason.SCHEMES, twin=None):
    spec, folder = saved(tmp_path, name), tmp_path / "prompts"
    record = soft.train(spec, frames.items(), frames.candidates(), switches, PLAN, folder)
    ranks, curves, _ = soft.rank(spec, frames.items(), frames.candidates(), folder, switches)
    return record, ranks, curves, reasoned(tmp_path, name, switches, schemes, folder, twin)


def reasoned(
    tmp_path, name="bert", switches=SWITCHES, schemes=None, folder=None, twin=None,
    rules=tuple(frames.RULES),
):  # fmt: skip
    """Run reasoning only; `folder` holds trained prompts, if schemes need some."""
    rows = frames.reasoning(twin).filter(pl.col("item").str.extract(r"(\w+)-").is_in(rules))
    return reason.reason(saved(tmp_path, name), rows, frames.candidates(), folder,
                         switches, PLAN, schemes)  # fmt: skip


ENDS = ("manual+manual", "soft+soft")


@pytest.mark.parametrize(
    ("name", "schemes"), [("bert", reason.SCHEMES), ("gpt2", ENDS), ("t5", ENDS)]
)
def test_every_kind_of_model_trains_ranks_and_reasons(tmp_path, name, schemes):
    record, ranks, curves, (reasons, premises, reason_record) = run(
        tmp_path, name, twin=5, schemes=schemes
    )
    assert record["positions_fed"] > 0
    assert sorted(ranks["item"].unique()) == sorted(
        f"{task}-{row}" for task in frames.TASKS for row in range(2, 7)
    )
    assert curves.filter("kept").height == len(frames.TASKS)
    assert (ranks["best"] <= ranks["worst"]).all()
    # 6 rules x 4 forms x 2 pairs x 2 golds x 3 rows, the last of which is left out of soft schemes
    assert reasons.height == 6 * 4 * 2 * 2 * (3 + 2 * (len(schemes) - 1))
    assert reason_record["left_out"]["soft+soft"] == sorted(f"{rule}-5" for rule in frames.RULES)
    assert premises.height == 6 * 3 * 2 * 2
    assert reason_record["pseudoword_pairs"] == 2
    if name == "bert":
        again = reasoned(tmp_path, name, schemes=schemes, folder=tmp_path / "prompts", twin=5)
        assert again[0].equals(reasons)
        assert again[1].equals(premises)


def test_soft_ranks_of_few_test_rows_are_those_of_all(trained, tmp_path):
    folder, every = trained
    items = frames.items()
    few = soft.rank(saved(tmp_path), items, frames.candidates(), folder, SWITCHES, rows=1)[0]
    roles = dict(items.select("item", "role").iter_rows())
    tested = [item for item in few["item"].unique() if roles[item] == "test"]
    assert len(tested) == len(frames.TASKS)
    assert every.filter(pl.col("item").is_in(few["item"].unique())).equals(few)
    left_out = set(every["item"]) - set(few["item"])
    assert left_out
    assert {roles[item] for item in left_out} == {"test"}


def test_the_test_rows_are_limited_and_the_training_rows_are_not():
    limited = reason.cases(frames.reasoning(), rows=1)["rdfs2"]
    assert [c.role for c in limited] == [*ROLES_LEFT, "test"]


ROLES_LEFT = ("train", "train", "dev", "dev")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return soft prompts trained with default switches, and their ranks."""
    folder = tmp_path_factory.mktemp("trained")
    spec, prompts_ = saved(folder), folder / "prompts"
    soft.train(spec, frames.items(), frames.candidates(), SWITCHES, PLAN, prompts_)
    return prompts_, soft.rank(spec, frames.items(), frames.candidates(), prompts_, SWITCHES)[0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pseudoword_slots", "pattern_rules"), ("alpha", "0.9"), ("premise_order", "P2_P1"),
        ("conj_train", "test_rows"), ("softmax_rows", "all"),
    ],
)  # fmt: skip
def test_each_switch_changes_scores(trained, tmp_path, key, value, monkeypatch):
    monkeypatch.setattr(reason, "TAKEN", 1)
    plain, other = (
        reasoned(tmp_path, "bert", switches, ("soft+soft",), trained[0], rules=("rdfs7", "rdfs9"))
        for switches in (SWITCHES, replace(SWITCHES, **{key: value}))
    )
    assert not plain[0]["score"].equals(other[0]["score"])


@pytest.mark.parametrize(("key", "value"), [("soft_init", "words"), ("warmup", "2"), ("seed", "5")])
def test_each_switch_of_training_changes_scores(trained, tmp_path, key, value):
    switches = replace(SWITCHES, **{key: value})
    spec, folder = saved(tmp_path), tmp_path / "prompts"
    soft.train(spec, frames.items(), frames.candidates(), switches, PLAN, folder)
    ranks = soft.rank(spec, frames.items(), frames.candidates(), folder, switches)[0]
    assert not trained[1]["score"].equals(ranks["score"])


def test_a_stopped_training_resumes_with_the_next_prompt(trained, tmp_path, monkeypatch):
    tables = saved(tmp_path), frames.items(), frames.candidates(), SWITCHES, PLAN
    unfinished, train, done = tmp_path / "unfinished", soft.train_one, []

    def stopping(*given):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(given[3])
        return train(*given)

    monkeypatch.setattr(soft, "train_one", stopping)
    with pytest.raises(KeyboardInterrupt):
        soft.train(*tables, tmp_path / "stopped", unfinished=unfinished)
    monkeypatch.setattr(soft, "train_one", lambda *given: done.append(given[3]) or train(*given))
    soft.train(*tables, tmp_path / "prompts", unfinished=unfinished)
    files = sorted((tmp_path / "prompts").iterdir())
    assert len(done) == len(files) == len(frames.TASKS)
    assert [(f.name, f.read_bytes()) for f in files] == [
        (f.name, f.read_bytes()) for f in sorted(trained[0].iterdir())
    ]


def test_a_stopped_run_resumes_with_the_next_scheme(trained, tmp_path, monkeypatch):
    rows, schemes = frames.reasoning(5), ("manual+manual", "soft+soft")
    tables = saved(tmp_path), rows, frames.candidates(), trained[0], SWITCHES, PLAN, schemes
    whole, scheme, done = reason.reason(*tables), reason.ReasoningContext.scheme, []

    def stopping(probe, group, name):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(name)
        return scheme(probe, group, name)

    monkeypatch.setattr(reason.ReasoningContext, "scheme", stopping)
    with pytest.raises(KeyboardInterrupt):
        reason.reason(*tables, unfinished=tmp_path / "unfinished")
    again = lambda *given: done.append(given[2]) or scheme(*given)  # noqa: E731
    monkeypatch.setattr(reason.ReasoningContext, "scheme", again)
    resumed = reason.reason(*tables, unfinished=tmp_path / "unfinished")
    assert len(done) == len(frames.RULES) * len(schemes)
    assert [a.equals(b) for a, b in zip(resumed[:2], whole[:2], strict=True)] == [True, True]
    assert resumed[2] == whole[2]
    assert resumed[2]["left_out"]["soft+soft"]


def test_selection_on_the_development_rows_is_a_switch():
    released = soft.recipes(PLAN, "masked", resolve("released"))[0]
    assert (released.dev_scores, released.init, released.warmup) == ("logits", "words", 0)
    default = soft.recipes(PLAN, "masked", resolve("default", {"dev_metric": "MRR"}))[0]
    assert (default.dev_scores, default.dev_metric) == ("log_probabilities", "MRR")
    paper = soft.recipes(PLAN, "masked", resolve("paper"))[0]
    assert (paper.nll_gold, paper.warmup, paper.init) == ("sampled", 20, "random")


def test_premise_switches(tmp_path):
    schemes = ("manual+manual",)
    base = reasoned(tmp_path, schemes=schemes)[1]
    words = replace(SWITCHES, premise_words="random_tokens")
    random = reasoned(tmp_path, switches=words, schemes=schemes)
    assert not base["score"].equals(random[1]["score"])
    skipping = replace(SWITCHES, missing_candidate="skip")
    skipped = reasoned(tmp_path, switches=skipping, schemes=schemes)[1]
    gone = set(base["item"]) - set(skipped["item"])
    assert gone == {f"{rule}-6" for rule in frames.RULES}
    pairs = replace(SWITCHES, pseudoword_pairs="3")
    more = reasoned(tmp_path, switches=pairs, schemes=schemes, rules=("rdfs9",))
    assert sorted(more[0]["pair"].unique()) == [0, 1, 2]


def test_a_failed_task_is_reported_after_the_others_are_trained(tmp_path, monkeypatch):
    train_one = soft.train_one

    def failing(loaded, items, options, task, *others):
        if task == "RG":
            raise ValueError("diverged")
        return train_one(loaded, items, options, task, *others)

    monkeypatch.setattr(soft, "train_one", failing)
    with pytest.raises(ValueError, match="not trained for all tasks\nRG: diverged"):
        soft.train(
            saved(tmp_path), frames.items(), frames.candidates(), SWITCHES, PLAN, tmp_path / "p"
        )
    assert len(list((tmp_path / "p").glob("*.safetensors"))) == 4


def test_soft_schemes_without_prompts_are_refused(tmp_path):
    with pytest.raises(ValueError, match="need the folder of trained prompts"):
        reason.reason(saved(tmp_path), frames.reasoning(), frames.candidates(), None, SWITCHES,
                        PLAN, ("soft+soft",))  # fmt: skip


def test_an_answer_ending_in_a_multi_token_character_is_scored_fully():
    loaded = tiny("gpt2", bos="forced")
    labels = ["a 🦀", "大阪", "Niger", "½", "Burkina Faso"]
    vectors = pseudowords(loaded, pairs=1).vectors
    for after in (" .", ""):
        asked = [ClozePrompt("a", 0, "The crab is a ", after, "class", tuple(range(5)))]
        for prune in (True, False):
            found = gold_ranks(loaded, asked, {"class": labels}, vectors, prune=prune)
            for label, score in zip(labels, found["score"], strict=True):
                front = [1, *loaded.tokenizer("The crab is a")["input_ids"]]
                own = loaded.tokenizer(f" {label}")["input_ids"]
                logits = loaded.model(torch.tensor([[*front, *own]])).logits[0]
                logp = logits.log_softmax(-1)[len(front) - 1 : -1]
                bare = not loaded.tokenizer.decode(own[:1]).strip()
                expected = logp[torch.arange(len(own)), own][bare:].mean()
                assert score == pytest.approx(float(expected), abs=1e-9), (label, after)


SPLIT = [" ".join(w) for n in (1, 2, 3) for w in itertools.permutations(frames.CLASSES[:5], n)]


@pytest.mark.parametrize(("seed", "sharpness"), [(0, 1), (1, 8), (2, 30), (3, 60)])
def test_pruning_candidates_that_cannot_win_keeps_the_ranks(seed, sharpness):
    loaded = tiny("gpt2")
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
        loaded.model.get_input_embeddings().weight.mul_(sharpness)
    vectors = pseudowords(loaded, pairs=1).vectors
    draw = np.random.default_rng(seed)
    # a label twice: a tie, and a gold of several tokens
    options = {"class": [*SPLIT, SPLIT[40]]}
    asked = [
        ClozePrompt(f"q{k}", 0, f"{mark(0)} is {name} . {mark(1)} is a ", after, "class",
                 tuple(map(int, draw.choice(len(SPLIT), 1 + k % 3, replace=False))))
        for k, name in enumerate(frames.CLASSES)
        for after in (" .", f" of {mark(0)} .")
    ]  # fmt: skip
    asked.append(ClozePrompt("tie", 0, f"{mark(0)} is a ", " .", "class", (40,)))
    asked.append(ClozePrompt("none", 0, f"{mark(0)} is a ", " .", "class", ()))
    whole = gold_ranks(loaded, asked, options, vectors, prune=False)
    pruned = gold_ranks(loaded, asked, options, vectors)
    for name in ("question", "gold", "best", "worst", "in_order", "tokens"):
        assert whole[name].tolist() == pruned[name].tolist()
    assert pruned["score"] == pytest.approx(whole["score"], abs=1e-9)
    assert (whole["worst"] > whole["best"])[whole["gold"] == 40].all()


def test_only_answers_at_the_end_of_the_text_are_pruned():
    """Later words may change any score, so that nothing can be pruned before the end."""
    loaded = tiny("gpt2")
    with torch.no_grad():
        loaded.model.get_input_embeddings().weight.mul_(30)
    vectors = pseudowords(loaded, pairs=1).vectors
    asked = [ClozePrompt("a", 0, f"{mark(0)} is a ", f" of {mark(1)} .", "class"),
             ClozePrompt("b", 0, f"{mark(0)} is a ", " .", "class")]  # fmt: skip
    with inserted(loaded, vectors):
        (every,) = scores(loaded, asked, {"class": SPLIT})
        best = int(every.scores[1].argmax())
        asked = [replace(question, golds=(best,)) for question in asked]
        (chunk,) = scores(loaded, asked, {"class": SPLIT}, prune=True)
    assert np.isfinite(every.scores).all()
    inner, last = chunk.scores
    assert np.isfinite(inner).all()
    assert np.isfinite(last[best])
    out = np.isneginf(last)
    assert out.any()
    assert (every.scores[1][out] < every.scores[1][best]).all()
