"""The search that edits wordings, against prompts and passes written out by hand."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch

from kgprobe.probes.jobs.autoprompt import outcomes, search, tasks
from kgprobe.probes.prompts.search import files, moves
from kgprobe.probes.prompts.search.moves import Cut, cut_of
from kgprobe.probes.prompts.search.problem import SearchError
from kgprobe.probes.prompts.search.settings import settings_for
from kgprobe.settings import Edits, Proposals
from tests.unit import prompt_folders
from tests.unit.tiny_models import tiny

WORDINGS = {
    "gpt2": ["{sub} in [P]", "Rome {sub} Niger [P]"],
    "bert": ["{sub} in [P].", "[P] Niger of {sub} ."],
}
FEW = Edits(rows=500, confirm=3, patience=200, neighbors=2, most_tokens=6)


def own_settings(loaded):
    return settings_for(
        "default", "facts", loaded.spec.kind, batch=3, candidates=5,
        capital_filter="off", gold_filter="off",
    )  # fmt: skip


@pytest.fixture(params=["gpt2", "bert"])
def made(request, tmp_path):
    """(loaded, task, search of P36 with its state at a path)."""
    loaded = tiny(request.param)
    task = tasks.load(prompt_folders.facts(tmp_path / "auto_world"), {})
    pool = {text: cut_of(loaded, text) for text in WORDINGS[request.param]}
    words = search.answer_tokens(
        loaded, task.wordings(loaded, "manual")["P36"].template, task.vocabulary
    )

    def begun(edits=FEW, path=None, wordings=pool):
        examples = (search.pairs(task, "P36", split) for split in ("train", "dev"))
        return moves.EditSearch(
            loaded, wordings, *examples, own_settings(loaded), edits, words, path, "P36"
        )

    return loaded, task, begun


def ids_of(loaded, cut, subject):
    """The prompt of a cut as ids, special tokens by the tokenizer."""
    tok = loaded.tokenizer
    own: list[int] = []
    for number, run in enumerate(cut.runs):
        own += run
        if number < len(cut.slots) and cut.slots[number] == "sub":
            text = f" {subject}" if own and loaded.spec.kind == "causal" else subject
            own += tok(text, add_special_tokens=False)["input_ids"]
        elif number < len(cut.slots) and loaded.spec.kind == "masked":
            own.append(tok.mask_token_id)
    if loaded.spec.kind == "causal":
        return own
    front, back = tok("")["input_ids"]
    return [front, *own, back]


def literal(loaded, cut, subject, gold, answers):
    """(log p of the gold among the answers, whether it is the best of them), by one plain pass."""
    ids = ids_of(loaded, cut, subject)
    place = ids.index(loaded.tokenizer.mask_token_id) if loaded.spec.kind == "masked" else -1
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([ids])).logits[0, place].double()
    own = logits[torch.tensor(sorted(answers))]
    return float(logits[gold] - own.logsumexp(0)), bool(logits[gold] == own.max())


def test_runs_of_tokens_can_be_edited_anywhere():
    cut = Cut(("sub", "[P]"), ((1, 2), (3,), (4,)))
    assert cut.tokens == (1, 2, 3, 4)
    assert cut.template("masked").text == "[T] [T] {sub} [T] [P] [T]"
    assert cut.swapped(2, 9).runs == ((1, 2), (9,), (4,))
    assert cut.deleted(1).runs == ((1,), (3,), (4,))
    assert cut.deleted(3).runs == ((1, 2), (3,), ())
    assert cut.inserted(1, 1, 9) == (Cut(cut.slots, ((1, 2), (3, 9), (4,))), 3)
    assert cut.inserted(0, 0, 9) == (Cut(cut.slots, ((9, 1, 2), (3,), (4,))), 0)
    assert list(cut.insertions("masked")) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
    ]
    assert list(cut.insertions("causal")) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    with pytest.raises(IndexError):
        cut.swapped(4, 9)


def test_a_wording_as_runs_asks_what_its_text_asks(made):
    loaded, task, begun = made
    own = begun()
    for text, cut in own.pool.items():
        plain = outcomes.manual(loaded, text)
        runs = outcomes.TriggerPrompt(cut.template(loaded.spec.kind), cut.tokens)
        rows = task.evaluated.filter(group="P36")
        found = [
            outcomes.outcomes(own.proposers.predictor, "x", {"P36": p}, rows, task.vocabulary)[0]
            for p in (plain, runs)
        ]
        assert found[0].drop("logprob").equals(found[1].drop("logprob"))


def test_prompts_are_scored_among_the_answers_as_by_plain_passes(made):
    loaded, _, begun = made
    own = begun()
    answers = own.bench._first._answers.tolist()
    assert len(answers) > 4
    first = next(iter(own.pool.values()))
    cuts = [first, first.inserted(0, 0, 60)[0], first.inserted(1, 0, 61)[0].swapped(0, 62)]
    seen = 0
    for metric, which in (("answers", 0), ("right among answers", 1)):
        found = own.bench.values("dev", np.arange(3), cuts, metric)
        known = own.bench.of(first).problem
        for cut, row in zip(cuts, found, strict=True):
            for (fields, label), value in zip(known.dev.examples, row, strict=True):
                gold = int(known.labels[known.classes.index(label), 0])
                by_hand = literal(loaded, cut, fields["sub"], gold, answers)[which]
                assert value == pytest.approx(float(by_hand), abs=1e-6)
                seen += 1
    assert seen == 18


def test_what_the_model_itself_says_of_a_place(made):
    """The mean probability over examples, by hand: behind the prefix, or at a mask."""
    loaded, _, begun = made
    own = begun()
    cut = next(iter(own.pool.values())).inserted(1, 0, 60)[0]
    place = cut.tokens.index(60)
    found = own.proposers.scores("model", cut, place, np.arange(3))
    total = 0.0
    for fields, _ in own.bench.of(cut).problem.train.examples[:3]:
        ids = ids_of(loaded, cut, fields["sub"])
        at = ids.index(60)
        if loaded.spec.kind == "causal":
            ids, read = ids[:at], -1
        else:
            ids[at], read = loaded.tokenizer.mask_token_id, at
        with torch.inference_mode():
            total = total + loaded.model(torch.tensor([ids])).logits[0, read].double().softmax(-1)
    assert found == pytest.approx(np.log(total.numpy() / 3), abs=1e-5)


def test_the_found_prompt_is_the_best_that_dev_has_seen(made, tmp_path):
    loaded, _, begun = made
    own = begun(path=tmp_path / "state.json")
    file = own.run()
    state = json.loads((tmp_path / "state.json").read_text())["state"]
    values = [value for _, value in state["known"]]
    assert state["buffer"][0][0] == max(values)
    assert max(values) >= max(value for _, value in file.record["pool"])
    assert file.record["dev_prompts"] == len(values) == len({str(own) for own, _ in state["known"]})
    # every row of the trace is an edit, every accepted one beat its start on the first batch
    trace = [dict(zip(file.record["trace_columns"], row, strict=True)) for row in file.trace]
    assert len(trace) > 20
    assert all(row["best"] > row["current"] for row in trace if row["confirmed"])
    assert all(row["confirmed"] for row in trace if row["into buffer"])
    assert [row["best dev"] for row in trace] == sorted(row["best dev"] for row in trace)
    tried = file.record["yields"]["moves"]["tried"]
    assert sum(tried.values()) == len(trace)
    assert set(tried) == set(moves.MOVES)
    taken = sum(file.record["yields"]["moves"]["taken"].values())
    assert taken == sum(row["into buffer"] for row in trace) > 0
    # the file alone asks the same
    files.save(file, tmp_path / "P36.json")
    prompt = outcomes.load_prompts(tmp_path / "P36.json", loaded)["P36"]
    assert prompt.trigger == tuple(file.trigger)


def test_a_stopped_search_ends_as_an_undisturbed_one(made, tmp_path, monkeypatch):
    _, _, begun = made
    whole = begun().run()
    path, count = tmp_path / "state.json", iter(range(10**6))
    step = moves.EditSearch._step

    def stopping(self, stand):
        if next(count) == 7:
            raise KeyboardInterrupt
        step(self, stand)

    monkeypatch.setattr(moves.EditSearch, "_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        begun(path=path).run()
    monkeypatch.setattr(moves.EditSearch, "_step", step)
    again = begun(path=path).run()
    assert again == whole
    other = begun(edits=replace(FEW, buffer=2), path=path)
    with pytest.raises(SearchError, match="edits: buffer"):
        other.run()


def test_kinds_that_lead_nowhere_are_drawn_less_but_never_left_out():
    yields = moves.Yields()
    assert yields.chances(["a", "b"], 0.1).tolist() == [0.5, 0.5]
    for n in range(20):
        yields.record_try("a", n % 2 == 0)
        yields.record_try("b", False)
    chances = yields.chances(["a", "b"], 0.1)
    by_hand = np.array([11 / 22, 1 / 22]) / (12 / 22) * 0.9 + 0.05
    assert chances == pytest.approx(by_hand)


def test_a_search_without_a_start_is_refused(made):
    _, _, begun = made
    with pytest.raises(SearchError, match="P36: no wording to start from"):
        begun(wordings={})


def test_prompts_whose_answers_are_other_tokens_are_left_out(tmp_path):
    """RoBERTa's words are other tokens where they open a text: no such start, and no such edit."""
    loaded = tiny("roberta")
    task = tasks.load(prompt_folders.facts(tmp_path / "auto_world"), {})
    texts = ["{sub} in [P].", "[P] of {sub}.", "Rome [P] of {sub}."]
    pool = {text: cut_of(loaded, text) for text in texts}
    examples = [search.pairs(task, "P36", split) for split in ("train", "dev")]
    assert {label for _, label in examples[0]} & {"Paris", "Rome", "Niger"}
    own = moves.EditSearch(loaded, pool, *examples, own_settings(loaded), FEW, (), None, "P36")
    assert own.unfit == [texts[1]]
    assert not own.bench.fits(pool[texts[2]].deleted(0))
    file = own.run()
    assert file.record["unfit"] == [texts[1]]
    assert [name for name, _ in file.record["pool"]] == [texts[0], texts[2]]
    # what [P] stands behind may change its place, but not go
    assert not file.template.startswith("[P]")
    # a second fact whose answer is several tokens is none
    several = (examples[0][1][0], "an answer of several tokens")
    for train in (examples[0][:1], [examples[0][0], several]):
        with pytest.raises(SearchError, match=f"P36: 1 of {len(train)} training facts have an"):
            moves.EditSearch(
                loaded, pool, train, examples[1], own_settings(loaded), FEW, (), None, "P36"
            )


def test_it_is_a_prompt_of_the_sheet(made, tmp_path):
    loaded, task, _ = made
    settings = prompt_folders.settings(settings={"batch": 3, "candidates": 4})
    more = search.More(
        proposals=Proposals(facts=3, most_tokens=4, most=4), edits=replace(FEW, rows=200)
    )
    frame, record = search.search_task(
        loaded, task, "searched_moves", settings, "default", tmp_path / "out",
        tmp_path / "states", 0, more,
    )  # fmt: skip
    groups = {"causal": {"P36"}, "masked": {"P36", "P37"}}[loaded.spec.kind]
    assert set(frame["group"]) == groups
    assert {path.stem for path in (tmp_path / "out").glob("*.json")} == groups
    assert record["prompted"]["searched_moves"]["P36"]["written"] > 0
    file = files.load(tmp_path / "out/P36.json", loaded)
    assert file.mode == "moves"
    assert file.scores["test_p1"]["n"] == frame.filter(
        pl.col("best").is_not_null(), group="P36", split="test"
    ).height  # fmt: skip
