"""Slots, gradients, losses and training of soft prompts against slow reference versions."""

import numpy as np
import pytest
import torch
from transformers.models.t5 import modeling_t5

from kgprobe.probes.prompts.trained import soft
from kgprobe.probes.scoring.cloze import gradient, rank
from kgprobe.probes.scoring.cloze.gradient import ScoresWithGradient
from kgprobe.probes.scoring.cloze.plan import Plan
from kgprobe.probes.text.mask_slots import (
    ClozePrompt,
    PromptIds,
    candidate_ids,
    question,
    rows_of_embedding,
    tokenize_prompts,
)
from kgprobe.probes.text.vectors import inserted
from kgprobe.templates import mark
from tests.unit.tiny_models import tiny

LABELS = ["Paris", "Rome", "capital of France", "Niger", "a country", "Burkina Faso", "is"]
SUBJECTS = ["Paris", "Rome", "Niger", "Italy", "Burkina Faso", "France"]
GOLDS = [(0, 2), (1,), (3, 4), (6,), (5, 4), (2,)]
MASKED = ["bert", "roberta", "albert", "distilbert", "electra"]


def width(loaded):
    return loaded.model.get_input_embeddings().weight.shape[1]


def vectors_for(loaded, count=3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(count, width(loaded), generator=generator, dtype=torch.float64)
    return drawn.to(loaded.model.get_input_embeddings().weight.dtype)


def asked_of(item, subject, tokens, golds):
    return question(item, 0, soft.template(tokens), subject, "set", golds, upper_first=False)


def prompts(loaded, subjects=SUBJECTS, tokens=3):
    asked = [asked_of(f"i{k}", s, tokens, GOLDS[k]) for k, s in enumerate(subjects)]
    return tokenize_prompts(loaded, asked)


def causal_prompts(loaded, subjects=SUBJECTS, tokens=3):
    first = rows_of_embedding(loaded)
    return [
        PromptIds(np.array([*loaded.tokenizer(s)["input_ids"], *range(first, first + tokens)]), 0)
        for s in subjects
    ]


def read(loaded, ids, vectors):
    """Return logits of one row with the inserted vectors, by inputs_embeds: no hook, no batch."""
    table = loaded.model.get_input_embeddings().weight
    first = len(table)
    embedded = torch.stack([table[i] if i < first else vectors[i - first] for i in ids])
    return loaded.model(inputs_embeds=embedded[None]).logits[0]


def literal(loaded, row, tokens, vectors, masks, pooling):
    """Score one candidate in one pass without batching."""
    n = len(tokens) if masks == "multi" else 1
    slot = [loaded.tokenizer.mask_token_id] * n
    ids = [*row.ids[: row.position], *slot, *row.ids[row.position + 1 :]]
    logp = torch.log_softmax(read(loaded, ids, vectors), -1)
    at = [row.position + (j if masks == "multi" else 0) for j in range(len(tokens))]
    parts = torch.stack([logp[p, t] for p, t in zip(at, tokens, strict=True)])
    return {"mean": parts.mean(), "max": parts.max(), "first": parts[0]}[pooling]


@pytest.mark.parametrize("name", MASKED)
def test_slots_are_input_embeddings_for_gradients_and_for_ranking(name):
    loaded = tiny(name)
    vectors = vectors_for(loaded)
    rows = prompts(loaded)
    ids = candidate_ids(loaded, LABELS, "none", "").ids
    for masks, pooling in [
        ("multi", "mean"),
        ("multi", "max"),
        ("single", "first"),
        ("single", "mean"),
    ]:
        with inserted(loaded, vectors):
            found = ScoresWithGradient(loaded, rows, ids, masks, pooling)([2, 0])
            (chunk,) = rank.scores(
                loaded,
                [ClozePrompt(f"i{k}", 0, "", "", "set") for k in range(len(rows))],
                {"set": LABELS},
                rows=rows,
            )
        ranked = np.empty_like(chunk.scores)
        ranked[chunk.indices] = chunk.scores
        k = rank.CONFIGURATIONS.index((masks, pooling))
        for place, row in enumerate([2, 0]):
            with torch.no_grad():
                expected = [
                    float(literal(loaded, rows[row], t, vectors, masks, pooling)) for t in ids
                ]
            assert found[place].tolist() == pytest.approx(expected, abs=1e-9)
            assert ranked[row, k].tolist() == pytest.approx(expected, abs=1e-9)


def literal_forced(loaded, row, tokens, vectors, pooling):
    """Score token by token: causal models after the prompt, sentinel models after their context."""
    first = rows_of_embedding(loaded)
    table = loaded.model.get_input_embeddings().weight
    parts = []
    for j, token in enumerate(tokens):
        if loaded.spec.kind == "causal":
            logits = read(loaded, [*row.ids, *tokens[:j]], vectors)[-1]
        else:
            embedded = torch.stack([table[i] if i < first else vectors[i - first] for i in row.ids])
            sentinel = loaded.tokenizer.convert_tokens_to_ids("<extra_id_0>")
            forced = torch.tensor([[0, sentinel, *tokens[:j]]])
            logits = loaded.model(inputs_embeds=embedded[None], decoder_input_ids=forced).logits[
                0, -1
            ]
        parts.append(torch.log_softmax(logits, -1)[token])
    return torch.stack(parts).mean() if pooling == "mean" else parts[0]


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5"])
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_scores_of_causal_and_sentinel_models_equal_a_literal_loop(name, pooling):
    loaded = tiny(name)
    vectors = vectors_for(loaded)
    rows = causal_prompts(loaded) if name != "t5" else prompts(loaded)
    ids = candidate_ids(loaded, LABELS, "auto", " ").ids
    with inserted(loaded, vectors):
        found = ScoresWithGradient(loaded, rows, ids, "multi", pooling)([1, 4])
    for place, row in enumerate([1, 4]):
        expected = [float(literal_forced(loaded, rows[row], t, vectors, pooling)) for t in ids]
        assert found[place].tolist() == pytest.approx(expected, abs=1e-9)


def precise_norm(self, states):
    return (
        self.weight
        * states
        * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
    )


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "t5"])
@pytest.mark.parametrize("loss", ["bce", "nll"])
def test_gradients_equal_central_differences(name, loss, monkeypatch):
    # T5 computes its norms in float32 whatever the model's precision: too coarse for a difference
    monkeypatch.setattr(modeling_t5.T5LayerNorm, "forward", precise_norm)
    loaded = tiny(name)
    masks, pooling = "multi", "mean"
    rows = causal_prompts(loaded) if name == "gpt2" else prompts(loaded)
    ids = candidate_ids(loaded, LABELS, "none", "").ids
    recipe = soft.SoftPromptRecipe(loss=loss)
    own = vectors_for(loaded).requires_grad_(True)

    def value():
        with inserted(loaded, lambda: own):
            return soft.loss_of(
                ScoresWithGradient(loaded, rows, ids, masks, pooling)(range(6)), GOLDS, recipe
            )

    value().backward()
    gradient = own.grad.clone()
    for slot, place in [(0, 0), (1, 7), (2, width(loaded) - 1)]:
        ends, step = [], 1e-5
        for sign in (1, -1):
            with torch.no_grad():
                own[slot, place] += sign * step
                ends.append(float(value()))
                own[slot, place] -= sign * step
        expected = (ends[0] - ends[1]) / (2 * step)
        assert float(gradient[slot, place]) == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert all(p.grad is None for p in loaded.model.parameters())


def test_losses_are_those_of_the_paper():
    scores = torch.tensor([[-1.0, -2.0, -0.5], [-3.0, -0.1, -4.0]], dtype=torch.float64)
    golds = [(0, 2), (1,)]
    bce = 0.0
    for row, own in zip(scores.tolist(), golds, strict=True):
        for c, x in enumerate(row):
            p = 1 / (1 + np.exp(-x))
            bce -= np.log(p) if c in own else np.log(1 - p)
    assert float(soft.loss_of(scores, golds, soft.SoftPromptRecipe())) == pytest.approx(bce / 6)
    nll = soft.SoftPromptRecipe(loss="nll")
    assert float(soft.loss_of(scores, golds, nll)) == pytest.approx((1 + 0.5 + 0.1) / 3)
    sampled = soft.SoftPromptRecipe(loss="nll", nll_gold="sampled")
    seen = {
        round(float(soft.loss_of(scores, golds, sampled, np.random.default_rng(s))), 6)
        for s in range(20)
    }
    assert seen == {round((1 + 0.1) / 2, 6), round((0.5 + 0.1) / 2, 6)}


def test_mrra_is_the_reciprocal_of_the_mean_rank_with_ties_halved():
    scores = torch.tensor([[3.0, 2.0, 2.0, 1.0]])
    assert soft.reciprocal(scores, [(0,)]) == 1
    assert soft.reciprocal(scores, [(1,)]) == pytest.approx(1 / 2.5)
    assert soft.reciprocal(scores, [(0, 3)]) == pytest.approx(2 / 5)
    assert soft.reciprocal(scores, [(1, 3)], "MRR") == pytest.approx(1 / 2.5)


def slow_training(loaded, rows, ids, start, recipe):
    """Run the same schedule by a plain loop with AdamW written out."""
    own, first, second = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    order = [list(range(4)), [4, 5]]
    total, step, best, kept = recipe.epochs * 2, 0, 0.0, start
    for _ in range(recipe.epochs):
        for batch in order:
            point = own.clone().requires_grad_(True)
            scores = torch.stack(
                [
                    torch.stack([literal(loaded, rows[i], t, point, "multi", "mean") for t in ids])
                    for i in batch
                ]
            )
            target = torch.zeros_like(scores)
            for place, i in enumerate(batch):
                target[place, list(GOLDS[i])] = 1
            loss = -(
                target * torch.nn.functional.logsigmoid(scores)
                + (1 - target) * torch.nn.functional.logsigmoid(-scores)
            ).mean()
            (gradient,) = torch.autograd.grad(loss, point)
            rate = recipe.rate * (total - step) / total
            step += 1
            own = own * (1 - rate * recipe.decay)
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            scale = (second / (1 - 0.999**step)).sqrt() + 1e-8
            own = own - rate * (first / (1 - 0.9**step)) / scale
        with torch.no_grad():
            found = 0.0
            for i, row in enumerate(rows):
                values = [float(literal(loaded, row, t, own, "multi", "mean")) for t in ids]
                ranks = [sum(v > values[g] for v in values) + 1 for g in GOLDS[i]]
                found += len(ranks) / sum(ranks) / len(rows)
        if found > best:
            best, kept = found, own
    return kept, best


def test_training_equals_a_plain_loop_and_keeps_the_model_unchanged():
    loaded = tiny("bert")
    rows, ids = prompts(loaded), candidate_ids(loaded, LABELS, "none", "").ids
    recipe = soft.SoftPromptRecipe(epochs=3, batch=4)
    start = soft.initial(loaded, recipe)
    before = {k: v.clone() for k, v in loaded.model.state_dict().items()}
    data = soft.PromptRows(rows, GOLDS)
    found, record = soft.fit(loaded, data, data, ids, start, recipe)
    expected, best = slow_training(loaded, rows, ids, start, recipe)
    assert torch.allclose(found, expected, atol=1e-6)
    assert record["dev_best"] == pytest.approx(best)
    assert len(record["curve"]) == 3
    assert all(torch.equal(v, before[k]) for k, v in loaded.model.state_dict().items())
    assert all(p.grad is None for p in loaded.model.parameters())


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
@pytest.mark.parametrize("loss", ["bce", "nll"])
def test_training_lowers_the_loss_and_does_not_depend_on_threads(name, loss):
    loaded = tiny(name, double=False)
    rows = causal_prompts(loaded) if name == "gpt2" else prompts(loaded)
    ids = candidate_ids(loaded, LABELS, "none", "").ids
    recipe = soft.SoftPromptRecipe(epochs=6, loss=loss, seed=3)
    data = soft.PromptRows(rows, GOLDS)
    threads = torch.get_num_threads()
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        found.append(soft.fit(loaded, data, data, ids, soft.initial(loaded, recipe), recipe))
        assert torch.get_num_threads() == count
    torch.set_num_threads(threads)
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
    curve = [loss for loss, _ in found[0][1]["curve"]]
    assert min(curve[1:]) < curve[0]
    best = max(m for _, m in found[0][1]["curve"])
    assert found[0][1]["dev_best"] == pytest.approx(best, abs=1e-6)


def test_slots_after_the_trained_ones_stay_fixed():
    loaded = tiny("bert")
    asked = [
        ClozePrompt(f"i{k}", 0, f"{mark(3)} {s} {mark(0)} {mark(1)} {mark(2)} ", " .", "set")
        for k, s in enumerate(SUBJECTS)
    ]
    data = soft.PromptRows(tokenize_prompts(loaded, asked), GOLDS)
    ids = candidate_ids(loaded, LABELS, "none", "").ids
    recipe = soft.SoftPromptRecipe(epochs=2)
    start = soft.initial(loaded, recipe)
    one, other = vectors_for(loaded, 1, 5), vectors_for(loaded, 1, 6)
    first, _ = soft.fit(loaded, data, data, ids, start, recipe, fixed=one)
    second, _ = soft.fit(loaded, data, data, ids, start, recipe, fixed=other)
    assert first.shape == start.shape
    assert not torch.equal(first, second)


def test_rows_are_moved_to_the_device_once_and_a_step_is_one_pass(monkeypatch):
    loaded = tiny("bert")
    rows, ids = prompts(loaded), candidate_ids(loaded, LABELS, "none", "").ids
    made, passes = [], []
    built = Plan.wanted
    monkeypatch.setattr(Plan, "wanted", lambda *a: made.append(1) or built(*a))
    body = loaded.model.base_model.forward
    monkeypatch.setattr(
        loaded.model.base_model, "forward", lambda *a, **o: passes.append(1) or body(*a, **o)
    )
    recipe = soft.SoftPromptRecipe(epochs=5, batch=6)
    data = soft.PromptRows(rows, GOLDS)
    _, record = soft.fit(loaded, data, data, ids, soft.initial(loaded, recipe), recipe)
    # a position is a mask among n; one pass over all forms of the rows gives all of them
    places = {(len(own), j) for own in ids for j in range(len(own))} | {(1, 0)}
    assert len(made) == 2 * len(places)
    # a step and a look at the development rows each epoch; the head is checked twice, each time
    # by the whole model and by its body; padding is tried once, on three rows alone and together
    assert len(passes) == 2 * 5 + 2 * 2 + 4
    forms = sorted({len(own) for own in ids} | {1})
    longest = max(len(r.ids) for r in rows) + max(forms) - 1
    assert record["positions_fed"] <= 2 * 5 * len(rows) * len(forms) * longest


def test_a_prompt_file_works_only_for_its_model(tmp_path):
    loaded = tiny("bert")
    loaded.record.update(weights="w1", tokenizer="t1", revision="")
    prompt = soft.SoftPrompt(vectors_for(loaded).numpy(), {"task": "TP", "epoch": 4})
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for path in paths:
        soft.save(prompt, loaded, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    again = soft.load(paths[0], loaded)
    assert (again.vectors == prompt.vectors).all()
    assert again.record["task"] == "TP"
    for name, value in (("weights", "w2"), ("tokenizer", "t2")):
        other = tiny("bert")
        other.record.update(weights="w1", tokenizer="t1", revision="")
        other.record[name] = value
        with pytest.raises(soft.PromptError, match=f"whose {name} is .*train the prompt again"):
            soft.load(paths[0], other)
    wide = tiny("albert")
    wide.record.update(loaded.record)
    with pytest.raises(soft.PromptError, match="hidden_size is '32'"):
        soft.load(paths[0], wide)
    with pytest.raises(soft.PromptError, match="no such soft prompt"):
        soft.load(tmp_path / "c.safetensors", loaded)
    (tmp_path / "d.safetensors").write_bytes(b"nonsense")
    with pytest.raises(soft.PromptError, match="not a soft prompt file"):
        soft.load(tmp_path / "d.safetensors", loaded)


def test_initial_vectors_are_seeded_or_those_of_words():
    loaded = tiny("bert")
    first, again, other = (
        soft.initial(loaded, soft.SoftPromptRecipe(tokens=4, seed=s)) for s in (0, 0, 1)
    )
    assert first.shape == (4, width(loaded))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    words = soft.initial(loaded, soft.SoftPromptRecipe(init="words", words="is a country"))
    ids = loaded.tokenizer("is a country", add_special_tokens=False)["input_ids"]
    assert torch.equal(words, loaded.model.get_input_embeddings().weight[ids])


def test_the_schedule_decays_after_its_warmup():
    assert [soft.schedule(s, 4, 0) for s in range(4)] == [1, 0.75, 0.5, 0.25]
    assert [soft.schedule(s, 4, 2) for s in range(4)] == [0, 0.5, 1, 0.5]


def test_selection_by_raw_logits_gives_another_choice():
    loaded = tiny("bert")
    rows, ids = prompts(loaded), candidate_ids(loaded, LABELS, "none", "").ids
    vectors = vectors_for(loaded)
    with inserted(loaded, vectors), torch.no_grad():
        raw = ScoresWithGradient(loaded, rows, ids, raw=True)([0])[0]
        logits = read(loaded, rows[0].ids, vectors)[rows[0].position]
        one = [c for c, own in enumerate(ids) if len(own) == 1]
    assert raw[one].tolist() == pytest.approx([float(logits[ids[c][0]]) for c in one], abs=1e-9)


def test_added_rows_join_the_softmax_only_on_request():
    loaded = tiny("bert")
    rows, ids = prompts(loaded), candidate_ids(loaded, LABELS, "none", "").ids
    vectors = vectors_for(loaded)
    found = []
    for joined in (None, 0):
        with inserted(loaded, vectors, in_softmax=joined), torch.no_grad():
            found.append(ScoresWithGradient(loaded, rows, ids)([0])[0])
    # all candidates lose the same amount per pass: that of the three rows
    one = [c for c, own in enumerate(ids) if len(own) == 1]
    lost = (found[0] - found[1])[one]
    assert float(lost.min()) > 0
    assert lost.tolist() == pytest.approx([float(lost[0])] * len(one), abs=1e-9)


@pytest.mark.parametrize("rows", [1, 3, 11])
@pytest.mark.parametrize(("name", "loss"), [("gpt2", "bce"), ("llama", "nll"), ("t5", "bce")])
def test_gradients_of_blocks_sum_to_those_of_the_batch(name, loss, rows, monkeypatch):
    loaded = tiny(name)
    own = causal_prompts(loaded) if loaded.spec.kind == "causal" else prompts(loaded)
    scores = ScoresWithGradient(loaded, own, candidate_ids(loaded, LABELS, "auto", " ").ids)
    fed: list[int] = []
    body = loaded.model.get_decoder() if name == "t5" else loaded.model.base_model
    body.register_forward_hook(lambda _, given, found: fed.append(len(found[0])))

    def graded():
        fed.clear()
        vectors = vectors_for(loaded).requires_grad_(True)
        with inserted(loaded, lambda: vectors):
            value = soft.loss_of(scores(range(len(own))), GOLDS, soft.SoftPromptRecipe(loss=loss))
            value.backward()
        return value.detach(), vectors.grad

    whole, leaves = graded(), len(scores._passes.leaves)
    assert fed == [len(own) * leaves]
    each = scores._passes._bytes(max(map(len, scores._passes.leaves)) + 1)
    monkeypatch.setattr(gradient, "graph_room", lambda _: rows * each)
    found = graded()
    assert max(fed) <= rows
    assert sum(fed) >= 2 * len(own) * leaves  # once for the scores, once for their gradients
    torch.testing.assert_close(found, whole, rtol=0, atol=1e-12)
    with torch.no_grad(), inserted(loaded, vectors_for(loaded)):
        fed.clear()
        blocks = scores(range(len(own)))
        assert max(fed) <= rows
        monkeypatch.undo()
        torch.testing.assert_close(blocks, scores(range(len(own))), rtol=0, atol=1e-12)
