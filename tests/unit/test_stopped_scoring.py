"""A stop loses only the current batch in every scorer, and changes no bit of the result."""

import pickle
from functools import partial

import numpy as np
import pytest
import torch

from kgprobe.probes.jobs.kept import journal
from kgprobe.probes.models import batching
from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.journal import Journal, checksum
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import ChoiceQuestion
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.fill import predict
from kgprobe.probes.scoring.sentence import score
from kgprobe.probes.text.mask_slots import question
from tests.unit.test_sentence import ITEMS, OPTIONS, TEMPLATES
from tests.unit.tiny_models import tiny

LABELS = ["Paris", "Niger", "an option of one token", "Nigeria"]
SUBJECTS = [
    f"{name}{' of it' * n}" for name in ("France", "Burkina Faso", "Mali") for n in range(8)
]
CHOICES = [
    ChoiceQuestion(f"q{n}", f"Where does {name} lie?", tuple(LABELS), f"{name} lies in [MASK] .")
    for n, name in enumerate(SUBJECTS)
]


def sentences(loaded, folder, progress):
    budget = Budget(24 if loaded.spec.kind == "causal" else 120)
    more = {"folder": folder, "progress": progress, "budget": budget, "shard": 40}
    return vars(score.score(loaded, ITEMS, {"set": OPTIONS}, {"P36": TEMPLATES}, **more))


def in_journal(ask, loaded, folder, progress):
    with journal(loaded, folder, "asked"):
        return vars(ask(loaded, progress))


def ranks(loaded, progress):
    asked = [
        question(f"i{n}", 0, "[X] lies in [Y] .", name, candidates="set", golds=(0,))
        for n, name in enumerate(SUBJECTS)
    ]
    return rank.rank(loaded, asked, {"set": LABELS}, budget=Budget(40), progress=progress)


def fills(loaded, progress):
    asked = [
        predict.FillItem(f"i{n}", 0, "[X] lies in [Y] .", name, golds=("Paris", "Niger"))
        for n, name in enumerate(SUBJECTS[::2])
    ]
    return predict.predict(loaded, asked, 2, budget=Budget(40), progress=progress)


def choices(loaded, progress):
    return choose.choose(loaded, CHOICES[::3], progress=progress)


WAYS = {
    "sentence": sentences,
    "cloze": partial(in_journal, ranks),
    "fill": partial(in_journal, fills),
    "choice": partial(in_journal, choices),
}
ASKED = [
    *(("sentence", name) for name in ("gpt2", "bert", "t5")),
    *(("cloze", name) for name in ("bert", "t5")),
    *(("fill", name) for name in ("gpt2", "bert", "t5")),
    *(("choice", name) for name in ("gpt2", "bert", "t5")),
]


class Passes:
    """Counter of a model's embedding passes that stops before a given pass."""

    def __init__(self, loaded, stop=None):
        self.count, self.stop = 0, stop
        # encoder and decoder of seq2seq models have one each
        rows = loaded.model.get_input_embeddings().num_embeddings
        for module in loaded.model.modules():
            if isinstance(module, torch.nn.Embedding) and module.num_embeddings == rows:
                module.register_forward_pre_hook(self.seen)

    def seen(self, *_):
        if self.count == self.stop:
            raise KeyboardInterrupt
        self.count += 1


def same(first, second):
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    return np.array_equal(first, second)


@pytest.mark.parametrize(("way", "name"), ASKED)
def test_a_stop_loses_only_the_current_batch(way, name, tmp_path, monkeypatch):
    monkeypatch.setitem(batching.CAPS, "cpu", 40)
    monkeypatch.setattr(batching, "STARTS", 1)
    monkeypatch.setattr(batching, "STEPPED", 40)
    ask = WAYS[way]

    def asked(folder, stop=None):
        passes = Passes(loaded := tiny(name), stop)
        try:
            return passes, ask(loaded, tmp_path / folder, lambda done: None)
        except KeyboardInterrupt:
            return passes, None

    whole, expected = asked("whole")
    assert asked("last", whole.count - 1)[1] is None
    # work of every run: checks of the model, and the current batch
    again, found = asked("last")
    assert same(found, expected)
    step = (whole.count - again.count) // 4
    assert step
    for _ in range(2):
        assert asked("stopped", again.count + step)[1] is None
    passes, found = asked("stopped")
    assert same(found, expected)
    assert passes.count < whole.count - step
    # steps stay until their answers are stored elsewhere
    assert list((tmp_path / "stopped").glob("*.journal"))


def test_a_resumed_run_shares_the_same_prefixes(tmp_path):
    items = [score.Item("a", "r", "France", "several"), score.Item("b", "r", "Italy", "two")]
    # two options of one last token show nothing about shared prefixes
    options = {"several": ["Paris town", "Rome town", "Niger", "Mali"], "two": ["Paris", "Rome"]}
    templates = {"r": [(0, "The capital of [X] is [Y]")]}

    def asked():
        loaded = tiny("llama", bos="forced")
        return score.score(loaded, items, options, templates, shard=4, folder=tmp_path)

    whole = asked()
    (tmp_path / "shard-00001.journal").unlink()
    assert asked().record == whole.record
    assert whole.record["prefixes"] == "shared+plain"


def steps(path, values, identity="one"):
    """Return the steps with these names that a journal recomputes."""
    kept, computed = Journal(path, identity), []

    def compute(value):
        computed.append(value)
        return value

    found = [kept.step(str(value), partial(compute, value)) for value in values]
    kept.close()
    assert found == list(values)
    return computed


def test_steps_are_resumed_in_order(tmp_path):
    path = tmp_path / "a" / "steps"
    assert steps(path, [1, 2]) == [1, 2]
    assert steps(path, [1, 2, 3]) == [3]
    # of another plan only the common prefix
    assert steps(path, [1, 4, 3]) == [4, 3]
    assert steps(path, [1, 4, 3]) == []
    assert steps(path, [1, 4], identity="two") == [1, 4]


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_truncated_step_is_recomputed(cut, tmp_path):
    path = tmp_path / "steps"
    steps(path, [1, 2])
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    assert 1 <= len(steps(path, [1, 2])) <= 2
    assert path.read_bytes() == data


def test_a_partial_write_of_a_step_is_a_full_disk(tmp_path):
    """An unbuffered file returns the number of bytes written; only the next write would fail."""
    path = tmp_path / "steps"
    kept = Journal(path)
    whole = kept._file

    class Nearly:
        def __getattr__(self, name):
            return getattr(whole, name)

        def write(self, data):
            return whole.write(data[:-3])

    kept._file = Nearly()
    with pytest.raises(OSError, match=r"No space left on device .* make room") as full:
        kept.step("1", lambda: 1)
    assert full.value.filename == str(path)
    kept.close()
    assert steps(path, [1], identity="") == [1]


def test_a_finished_step_replaces_its_inner_steps(tmp_path):
    path = tmp_path / "steps"

    def outer(kept, stop=False):
        found = [kept.step(str(n), lambda n=n: calls.append(n) or n) for n in range(3)]
        if stop:
            raise KeyboardInterrupt
        return sum(found)

    calls = []
    kept = Journal(path)
    with pytest.raises(KeyboardInterrupt):
        kept.step("outer", lambda: outer(kept, stop=True))
    kept.close()
    longest = path.stat().st_size
    for _ in range(2):
        kept = Journal(path)
        assert kept.step("outer", lambda kept=kept: outer(kept)) == 3
        kept.close()
    assert calls == [0, 1, 2]
    assert path.stat().st_size < longest


def test_two_processes_do_not_write_into_one_file(tmp_path):
    first, second = Journal(tmp_path / "steps"), Journal(tmp_path / "steps")
    assert [one.step("a", lambda: 1) for one in (first, second, first)] == [1, 1, 1]
    first.close()


def test_a_journal_runs_no_code(tmp_path):
    class Bad:
        def __reduce__(self):
            return (open, (str(tmp_path / "written"), "w"))

    steps(tmp_path / "steps", [1])
    data = pickle.dumps(("2", Bad()))
    with open(tmp_path / "steps", "ab") as file:
        file.write(len(data).to_bytes(8, "big") + checksum(data) + data)
    steps(tmp_path / "steps", [1, 2])
    assert not (tmp_path / "written").exists()


def test_numbers_that_were_lost_on_the_disk_are_computed_again(tmp_path):
    """After a power cut a file may have its length but zeros in place of its last blocks, and the
    zeros within an array of scores were taken for scores."""
    path, scores = tmp_path / "steps", np.linspace(-9, -1, 1000)
    for _ in range(2):
        kept = Journal(path)
        found = kept.step("a", lambda: scores)
        kept.close()
        assert np.array_equal(found, scores)
        data = path.read_bytes()
        end = data.index(scores[-2:].tobytes())
        path.write_bytes(data[: end - 4096] + bytes(4096) + data[end:])


@pytest.mark.parametrize("bad", [b"\xff" * 40, b"\0" * 40, (40).to_bytes(8, "big") + b"q" * 40])
def test_a_journal_with_a_damaged_end_resumes_before_it(tmp_path, bad):
    steps(tmp_path / "steps", [1])
    whole = (tmp_path / "steps").read_bytes()
    (tmp_path / "steps").write_bytes(whole + bad)
    steps(tmp_path / "steps", [1, 2])
    steps(tmp_path / "more", [1, 2])
    assert (tmp_path / "steps").read_bytes() == (tmp_path / "more").read_bytes()
