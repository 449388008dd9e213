"""The fast trigger search against a literal loop, and factors that must not change its result."""

import itertools
import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.finite import NotFiniteError
from kgprobe.probes.prompts.search import files
from kgprobe.probes.prompts.search import search as autoprompt
from kgprobe.probes.prompts.search.candidates import filter_candidates, vocabulary_of
from kgprobe.probes.prompts.search.scores import Scorer, problem
from kgprobe.probes.prompts.search.search import (
    Search,
    SearchError,
    SearchSettings,
    TriggerScores,
    search,
)
from kgprobe.probes.scoring.fill.options import AnswerError
from kgprobe.probes.text.prompts import encode, initial_token
from kgprobe.templates import Template
from tests.unit import literal_search
from tests.unit.tiny_models import CONFIGS, tiny

NAMES = ["Paris", "Rome", "Niger", "Italy", "Burkina Faso", "France", "the capital", "a country"]
GOLDS = ["Paris", "Rome", "Africa", "country"]
TRAIN = [({"sub": f"{a} {b}"}, GOLDS[i % 4]) for i, (a, b) in
         enumerate(itertools.product(NAMES[:5], NAMES[3:]))][:14]  # fmt: skip
DEV = [({"sub": f"{b} is {a}"}, GOLDS[i % 4]) for i, (a, b) in
       enumerate(itertools.product(NAMES[4:6], NAMES[:3]))]  # fmt: skip
LABELS = {"yes": [60, 75], "no": [88], "so": [101]}
CLASSES = [(f, sorted(LABELS)[i % 3]) for i, (f, _) in enumerate(TRAIN)]


#: fewer in the gate: not every search revisits cached scores
STEPS = 50 if os.environ.get("KGPROBE_TIER") == "nightly" else 30


def settings(**own):
    return SearchSettings(**{"candidates": 3, "batch": 3, "iterations": STEPS, "restarts": 1,
                       "capital_filter": "off", **own})  # fmt: skip


def template_for(name, m):
    text = f"{{sub}} [T]x{m} [P]" + (" ." if name in ("bert", "roberta") else "")
    return Template.parse(text, "masked" if name in ("bert", "roberta") else "causal")


class Watched:
    """Records the candidates and scores that the fast search computes."""

    def __init__(self, monkeypatch):
        self.candidates, self.sums = [], []
        draw, scores = autoprompt.Search._candidates, autoprompt.Search._scores

        def drawing(own, *given):
            found = draw(own, *given)
            self.candidates.append([[[found[0], token]] for token in found[1]])
            return found

        def scoring(own, *given):
            found = scores(own, *given)
            self.sums.append(found)
            return found

        monkeypatch.setattr(autoprompt.Search, "_candidates", drawing)
        monkeypatch.setattr(autoprompt.Search, "_scores", scoring)


def comparisons(visits, start, accept):
    """Return how many trigger-example pairs are needed, and how many are cached.

    A pair stays cached while its trigger is the current one or one swap away from it.
    """
    current, known, result = tuple(start), set(), {"compared": 0, "looked_up": 0}
    for position, tokens, *_, after, second in visits:
        swapped = {(*current[:position], t, *current[position + 1 :]) for t in tokens}
        asked = swapped | ({current} if accept == "strict" else set())
        for pair in itertools.product(asked, (int(i) for i in second)):
            result["looked_up" if pair in known else "compared"] += 1
            known.add(pair)
        current = tuple(after)
        known = {
            (trigger, example)
            for trigger, example in known
            if sum(a != b for a, b in zip(trigger, current, strict=True)) < 2
        }
    return result


MORE = pytest.mark.nightly(gate="unit/test_autoprompt.py::test_the_same_search_as_a_literal_loop")
CASES = [
    ("bert", "facts", 5, 1, "strict", "likelihood", "disjoint"),
    ("bert", "facts", 1, 3, "best_of_k", "likelihood", "fresh"),
    pytest.param("bert", "facts", 5, 1, "strict", "accuracy", "fresh", marks=MORE),
    ("roberta", "facts", 5, 1, "best_of_k", "accuracy", "disjoint"),
    ("bert", "classes", 5, 1, "strict", "accuracy", "fresh"),
    pytest.param("roberta", "classes", 5, 1, "best_of_k", "likelihood", "disjoint", marks=MORE),
    ("gpt2", "facts", 5, 1, "strict", "likelihood", "disjoint"),
    ("gpt2", "classes", 1, 3, "best_of_k", "accuracy", "fresh"),
    ("llama", "facts", 5, 1, "best_of_k", "likelihood", "fresh"),
    pytest.param("llama", "classes", 5, 1, "strict", "accuracy", "disjoint", marks=MORE),
]


@pytest.mark.parametrize(("name", "task", "m", "accumulate", "accept", "metric", "batches"), CASES)
def test_the_same_search_as_a_literal_loop(
    monkeypatch, name, task, m, accumulate, accept, metric, batches
):
    loaded = tiny(name, bos="forced" if name in ("gpt2", "llama") else "", double=False)
    options = settings(accumulate=accumulate, accept=accept, metric=metric, batches=batches,
                   fill_all=name in ("bert", "roberta") and task == "facts")  # fmt: skip
    labels = None if task == "facts" else LABELS
    train = TRAIN if task == "facts" else CLASSES
    dev = DEV if task == "facts" else CLASSES[:5]
    template = template_for(name, m)
    seen = Watched(monkeypatch)
    result = search(loaded, template, train, dev, options, labels=labels)
    known = problem(loaded, template, train, dev, options, labels)
    golds = sorted({label for _, label in train})
    ids = sorted(set(known.labels[known.known].tolist()))
    kept, _ = filter_candidates(
        vocabulary_of(loaded), options, ids if labels else (), () if labels else golds,
        () if labels else ids,
    )  # fmt: skip
    blank = initial_token(loaded)
    seed = result.restarts[0]["seed"]
    visits, best, last = literal_search.search(
        loaded, known, options, kept, [blank] * m, seed, blank
    )
    for i, (position, tokens, sums, current, arg, accepted, *_) in enumerate(visits):
        assert seen.candidates[i] == [[[position, t]] for t in tokens], i
        np.testing.assert_allclose(seen.sums[i][0], sums, atol=1e-4, err_msg=str(i))
        if accept == "strict" and np.isfinite(current):
            assert seen.sums[i][1] == pytest.approx(current, abs=1e-4)
        assert result.trace[i][2] == [[position, tokens[arg]]], i
        assert result.trace[i][5] == accepted, i
    assert result.restarts[0]["last"] == last
    assert result.trigger == best[1]
    counts = {name: result.restarts[0][name] for name in ("compared", "looked_up")}
    assert counts == comparisons(visits, [blank] * m, accept)
    assert sum(counts.values()) > 0
    assert sum(v[5] for v in visits) > 3 or metric == "accuracy"
    assert not set(result.trigger) & set(np.flatnonzero(~kept).tolist()) or not options.fill_all


def quick(**own):
    return settings(**{"iterations": 12, "restarts": 2, "seed": 3, **own})


def save_as(prompt, path):
    files.save(prompt, path)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_file_is_independent_of_order_batches_and_threads(tmp_path, name):
    bos = "forced" if name == "llama" else ""
    loaded = tiny(name, bos=bos, double=False)
    template, options = template_for(name, 3), quick(fill_all=name == "bert")
    plain = save_as(search(loaded, template, TRAIN, DEV, options), tmp_path / "a")
    assert json.loads(plain)["restarts"][0]["seed"] != json.loads(plain)["restarts"][1]["seed"]
    turned = search(loaded, template, TRAIN[::-1], DEV[::-1], options)
    assert save_as(turned, tmp_path / "b") == plain
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    again = search(loaded, template, TRAIN, DEV, options)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    assert save_as(again, tmp_path / "c") == plain
    # other batches change the last bits of float32, which the file rounds off
    first, double = search(loaded, template, TRAIN, DEV, options), tiny(name, bos)
    exact = save_as(search(double, template, TRAIN, DEV, options), tmp_path / "d")
    for positions in (20, 4096):
        other = search(loaded, template, TRAIN, DEV, options, budget=Budget(positions))
        assert (other.trigger, len(other.trace)) == (first.trigger, len(first.trace))
        for there, here in zip(other.trace, first.trace, strict=True):
            assert (there[:3], there[5]) == (here[:3], here[5])
            assert there[4] == pytest.approx(here[4], abs=0.0011)
        other = search(double, template, TRAIN, DEV, options, budget=Budget(positions))
        assert save_as(other, tmp_path / "e") == exact


def test_a_damaged_state_raises(tmp_path):
    loaded, template, state = tiny("bert", double=False), template_for("bert", 1), tmp_path / "s"
    options = quick(iterations=2, restarts=1)
    state.write_text("{")
    with pytest.raises(SearchError, match="not the state of a search"):
        search(loaded, template, TRAIN, DEV, options, state)


def test_non_finite_scores_are_retried_in_float32_then_raise(tmp_path, monkeypatch):
    loaded, template, state = tiny("bert", double=False), template_for("bert", 2), tmp_path / "s"
    plain = search(loaded, template, TRAIN, DEV, quick())
    gradient = Scorer.gradient

    def nan_gradient(when):
        """Patch gradients to NaN log-probabilities in the calls selected by `when`."""
        calls = itertools.count()

        def patched(own, *given):
            if when(next(calls)):
                right = Scorer._of_class
                own._of_class = lambda *rows: right(own, *rows) * torch.nan
            try:
                return gradient(own, *given)
            finally:
                vars(own).pop("_of_class", None)

        return patched

    monkeypatch.setattr(Scorer, "gradient", nan_gradient(lambda call: call == 3))
    assert search(loaded, template, TRAIN, DEV, quick()).trigger == plain.trigger
    monkeypatch.setattr(Scorer, "gradient", nan_gradient(lambda call: call > 4))
    text = r"in float32, too, bert: log-prob.* nan at train example \{'sub'.* token .*iteration 5,"
    with pytest.raises(SearchError, match=text):
        search(loaded, template, TRAIN, DEV, quick(), state)
    monkeypatch.setattr(Scorer, "gradient", gradient)
    assert json.loads(state.read_text())["iteration"] == 5
    assert search(loaded, template, TRAIN, DEV, quick(), state).trace == plain.trace


@pytest.mark.parametrize("failing", [0, 2])
def test_a_search_that_fails_on_dev_resumes_to_the_same_result(tmp_path, monkeypatch, failing):
    """Also if the initial trigger's dev value fails; pairs of an iteration are counted once."""
    loaded, template, state = tiny("bert", double=False), template_for("bert", 2), tmp_path / "s"
    given = quick(initial="capital of")
    plain = search(loaded, template, TRAIN, DEV, given)
    values, triggers = Scorer.values, []

    def patched(own, split, batch, chosen, *more, **options):
        if split == "dev" and list(chosen[0]) not in triggers:
            triggers.append(list(chosen[0]))
        if split == "dev" and triggers.index(list(chosen[0])) >= failing:
            raise NotFiniteError("nan")
        return values(own, split, batch, chosen, *more, **options)

    monkeypatch.setattr(Scorer, "values", patched)
    with pytest.raises(SearchError, match="in float32, too, nan"):
        search(loaded, template, TRAIN, DEV, given, state)
    monkeypatch.setattr(Scorer, "values", values)
    again = search(loaded, template, TRAIN, DEV, given, state)
    assert (again.restarts, again.trace) == (plain.restarts, plain.trace)


def test_no_accepted_swap_leaves_a_given_initial_trigger(monkeypatch):
    """It has no initial token, so nothing remains to be filled."""
    loaded, template = tiny("bert", double=False), template_for("bert", 5)
    monkeypatch.setattr(autoprompt.Search, "_scores", lambda *given: (np.zeros(len(given[3])), 1.0))
    given = quick(iterations=2, initial="capital of France is the")
    found = search(loaded, template, TRAIN, DEV, given)
    assert (found.trigger, found.restarts[0]["iteration"]) == (found.record["initial"], -1)
    assert found.restarts[0]["unfilled"] == 0


@pytest.mark.parametrize("is_again", [False, True])
def test_near_ties_that_are_not_finite_are_scored_in_float32_once(monkeypatch, is_again):
    """Of a step in float32 they are final, and the model is not asked again about them."""
    loaded, template = tiny("llama", double=False), template_for("llama", 2)
    plain = search(loaded, template, TRAIN, DEV, quick(iterations=2))
    values = Scorer.values

    def failing(own, split, *given, share=True, **more):
        if own._shared is not None and (not share if is_again else split == "train"):
            raise NotFiniteError("nan")
        return values(own, split, *given, share=share, **more)

    monkeypatch.setattr(Scorer, "values", failing)
    monkeypatch.setattr(autoprompt, "NEAR", 1e9)
    assert search(loaded, template, TRAIN, DEV, quick(iterations=2)).trigger == plain.trigger


def test_unfilled_trigger_positions_raise_or_are_allowed():
    loaded, template = tiny("bert", double=False), template_for("bert", 5)
    with pytest.raises(SearchError, match=r"[34] initial tokens are left .* after 2 iterations"):
        search(loaded, template, TRAIN, DEV, quick(iterations=2))
    allowed_to = search(loaded, template, TRAIN, DEV, quick(iterations=2, fill_all=False))
    assert initial_token(loaded) in allowed_to.trigger
    assert allowed_to.restarts[0]["iteration"] >= -1
    given = quick(iterations=2, initial="capital of France is the")
    assert len(search(loaded, template, TRAIN, DEV, given).record["initial"]) == 5
    with pytest.raises(SearchError, match=r"has 2 tokens .* has 5 places"):
        search(loaded, template, TRAIN, DEV, quick(initial="of France"))
    with pytest.raises(SearchError, match="nothing to search"):
        search(loaded, Template.parse("{sub} [P]", "masked"), TRAIN, DEV, quick())


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama"])
@pytest.mark.parametrize("habits", ["default", "released"])
def test_initial_trigger_is_encoded_like_the_manual_prompt(name, habits):
    bos = "forced" if name in ("gpt2", "llama") else ""
    loaded, kind = tiny(name, bos=bos), CONFIGS[name][0]
    end = " ." if kind == "masked" else ""
    for words in ("The capital of {sub} is", "{sub} is the capital of"):
        manual = Template.parse(f"{words} [P]{end}", kind)
        prefix, back = words.split("{sub}")
        # the released code puts a space before byte-level text
        blank = " " if prefix and habits == "released" and name != "bert" else ""
        sizes = [len(loaded.tokenizer.tokenize(part)) for part in (blank + prefix.strip(), back)]
        triggers = [f"[T]x{n} " if n else "" for n in sizes]
        template = Template.parse(f"{triggers[0]}{{sub}} {triggers[1]}[P]{end}", kind)
        options = quick(initial=words.replace("{sub} ", ""), habits=habits, fill_all=False)
        trigger = autoprompt._initial(loaded, template, options)
        fields = [{"sub": "Paris"}, {"sub": "Burkina Faso"}]
        expected = encode(loaded, manual, fields, habits=habits).rows
        result = encode(loaded, template, fields, habits=habits).filled(trigger)
        assert [row.tolist() for row in result] == [row.tolist() for row in expected], words


def test_triggers_are_scored_once_per_example(monkeypatch):
    """Watch the model's inputs: no pair twice while its trigger is within one swap, or at all."""
    loaded, template = tiny("bert", double=False), template_for("bert", 3)
    fed, values = [], Scorer.values

    def watched(own, split, batch, triggers, *given, known=None, **more):
        if split == "train":
            new = {tuple(t): batch[np.isnan(known[tuple(t)])].tolist() for t in triggers}
            fed.append({(t, i) for t, examples in new.items() for i in examples})
        return values(own, split, batch, triggers, *given, known=known, **more)

    monkeypatch.setattr(Scorer, "values", watched)
    own = settings(batches="fresh", evaluation=len(TRAIN), fill_all=False, batch=4, iterations=50)
    result = search(loaded, template, TRAIN, DEV, own)
    (restart,) = result.restarts
    assert restart["compared"] == sum(map(len, fed))
    # the examples are the same in every iteration: only uncached pairs are fed
    accepted = [row[5] for row in result.trace]
    for number in range(1, 50):
        first = max((i + 1 for i in range(number) if accepted[i]), default=0)
        before = set().union(*fed[first:number])
        assert not before & fed[number]
    assert restart["looked_up"] > 50 * 4, "the current trigger alone is known in every iteration"


def test_trigger_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(TriggerScores, "ROOM", 12)
    known, some = TriggerScores(4), np.array([1, 3])
    for token in range(5):
        known.add((token, 7), some, np.array([token, 1.0]))
    assert np.isnan(known.of((1, 7), some)).all()
    assert known.of((2, 7), np.array([3, 1])).tolist() == [1.0, 2.0]
    again = TriggerScores(4)
    again.restore(json.loads(json.dumps(known.state())))
    again.moved((2, 8))
    assert again.of((2, 7), some).tolist() == [2.0, 1.0]
    assert np.isnan(again.of((3, 7), some)).all()


def test_released_mode_ignores_the_initial_trigger_score():
    loaded, template = tiny("bert", double=False), template_for("bert", 2)
    options = settings(mode="released", batches="fresh", fill_all=False, iterations=3)
    result = search(loaded, template, TRAIN, DEV, options)
    assert result.restarts[0]["accepted"] > 0
    assert result.restarts[0]["iteration"] >= 0
    # unless nothing was accepted: then the initial trigger is the result
    kept = search(loaded, template, TRAIN, DEV, replace(options, iterations=1, metric="accuracy"))
    assert kept.restarts[0]["accepted"] == 0
    assert kept.trigger == [initial_token(loaded)] * 2


def test_examples_without_a_single_token_gold_are_counted_or_raise():
    loaded, template = tiny("bert", double=False), template_for("bert", 1)
    odd = [({"sub": "Rome"}, "Burkina Faso"), ({"sub": "Niger"}, "%")]
    result = search(loaded, template, TRAIN + odd, DEV + odd[:1], quick(iterations=2))
    assert result.data["dropped"] == {"train": 2, "dev": 1}
    assert (result.data["train"], result.data["dev"]) == (len(TRAIN), len(DEV))
    with pytest.raises(SearchError, match=r"no train example is left .* 2 given, 2 without"):
        search(loaded, template, odd, DEV, quick())
    with pytest.raises(SearchError, match="label 'country' of an example has no label tokens"):
        search(loaded, template, TRAIN, DEV, quick(), labels=LABELS)
    for twice in ({"no": [60]}, {"no": [88, 61, 88]}):
        with pytest.raises(AnswerError, match=r"label tokens \[(60|88)\] stand for two classes"):
            search(loaded, template, CLASSES, DEV, quick(), labels={**LABELS, **twice})


def test_tokens_spelled_like_a_dropped_gold_are_not_candidates():
    loaded, template = tiny("bert", double=False), template_for("bert", 1)
    odd = [({"sub": "Rome"}, "CAPITAL")]
    own = Search(loaded, template, quick(), None, "", TRAIN + odd, DEV)
    assert own.problem.dropped == {"train": 1, "dev": 0}
    ids = loaded.tokenizer.convert_tokens_to_ids(["capital", "country", "is"])
    assert own.kept[ids].tolist() == [False, False, True]


def test_causal_golds_with_a_unique_first_token_are_kept():
    loaded = tiny("gpt2", bos="forced", double=False)
    words = ["Italya", "Italyb", "Burkina Faso", "is"]
    examples = [({"sub": w}, w) for w in words]
    known = problem(loaded, template_for("gpt2", 1), examples, examples, quick())
    assert known.classes == ["Burkina Faso", "is"]
    assert known.dropped == {"train": 2, "dev": 2}
