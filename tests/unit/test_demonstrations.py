"""Demonstrations in front of a question, against texts and passes written out by hand."""

import itertools
import json
import math

import numpy as np
import polars as pl
import pytest
import torch

from kgprobe.probes.jobs.autoprompt import outcomes, predict, search, tasks
from kgprobe.probes.jobs.autoprompt.demonstrated import Demonstrations
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search import files
from kgprobe.probes.prompts.wordings import demonstrations as demos
from kgprobe.schema import EXAMPLES, OUTCOMES, check, write
from kgprobe.settings import Demos
from tests.unit import prompt_folders
from tests.unit.prompt_examples import examples
from tests.unit.tiny_models import tiny

LABELS = ["Africa", "France", "Italy", "Niger", "Paris", "Rome"]
OWN = Demos(k=3, draws=2, sets=2, orders=2)


@pytest.fixture
def folder(tmp_path):
    """Two relations: P36 with ten training facts and six golds, P37 with others; dev and test."""
    rows = []
    for group, golds in (("P36", LABELS[:4]), ("P37", LABELS[4:])):
        for split, n in (("train", 10), ("dev", 6), ("test", 6)):
            for i in range(n):
                fields = {"sub": f"{split} {i} {{sub}} [P]"}  # slots in a value are none
                rows.append(
                    {"group": group, "split": split, "label": golds[(i * i) % len(golds)],
                     "fields": fields, "fact": f"{group}/{split}/{i}"}
                )  # fmt: skip
    place = prompt_folders.facts(tmp_path / "auto_world")
    about = json.loads((place / "task.json").read_text())
    about["prompts"]["manual"]["P37"] = {"masked": "{sub} by [P] .", "causal": "{sub} by [P]"}
    (place / "task.json").write_text(json.dumps(about))
    write(examples(rows), EXAMPLES, place / "examples.parquet")
    return place


def test_facts_are_drawn_by_hash_and_none_is_asked(folder):
    frame = tasks.load(folder, {}).examples
    # a fact that is asked as well, and another of an asked subject
    rows = frame.to_dicts()
    train = [row for row in rows if (row["group"], row["split"]) == ("P36", "train")]
    asked = next(row for row in rows if (row["group"], row["split"]) == ("P36", "test"))
    train[0]["fact"], train[1]["fields"] = asked["fact"], asked["fields"]
    frame = pl.DataFrame(rows, schema=frame.schema)
    known = demos.pool(frame, "P36")
    assert len(known) == 8
    left = {train[0]["example"], train[1]["example"]}
    assert not left & {name for name, _ in known}
    several = [demos.draw_facts(frame, "P36", 3, 0, draw) for draw in range(6)]
    assert all(len({json.dumps(dict(f.fields)) for f in own}) == 3 for own in several)
    assert len({str(own) for own in several}) > 3
    again = demos.draw_facts(frame.sample(fraction=1, shuffle=True, seed=1), "P36", 3)
    assert several[0] == again
    # one more fact changes one of them at most
    more = frame.filter(pl.col("example") != train[5]["example"])
    assert len([f for f in demos.draw_facts(more, "P36", 3) if f not in several[0]]) <= 1
    with pytest.raises(
        demos.DemonstrationError, match=r"P36: 9 demonstrations .* 8 training facts"
    ):
        demos.draw_facts(frame, "P36", 9)


def test_balanced_ones_have_no_answer_twice_and_controls_none_of_their_own(folder):
    frame = tasks.load(folder, {}).examples
    for draw in range(5):
        labels = [f.label for f in demos.of_kind(demos.BALANCED, frame, "P36", 3, 0, draw)]
        assert len(labels) == len(set(labels)) == len(set(LABELS[:4]) & set(labels)) > 1
        plain = demos.of_kind(demos.PLAIN, frame, "P36", 3, 0, draw)
        mixed = demos.of_kind(demos.SHUFFLED, frame, "P36", 3, 0, draw)
        assert [f.fields for f in mixed] == [f.fields for f in plain]
        assert sorted(f.label for f in mixed) == sorted(f.label for f in plain)
        turns = [
            sum(
                a.label == b
                for a, b in zip(plain, [f.label for f in plain[t:] + plain[:t]], strict=True)
            )
            for t in (1, 2)
        ]
        assert sum(a.label == b.label for a, b in zip(plain, mixed, strict=True)) == min(turns)
        foreign = demos.of_kind(demos.OTHER, frame, "P36", 3, 0, draw)
        assert [f.fields for f in foreign] == [f.fields for f in plain]
        assert {f.label for f in foreign} <= set(LABELS[4:])
    # a relation with fewer answers than k has one fact of each
    few = frame.filter((pl.col("group") == "P37") | (pl.col("label") == "Africa"))
    assert len(demos.of_kind(demos.BALANCED, few, "P36", 3)) == 1
    with pytest.raises(demos.DemonstrationError, match="needs answers of other relations"):
        demos.of_kind(demos.OTHER, frame.filter(group="P36"), "P36", 3)


def test_answers_of_relations_that_are_not_asked_are_there_for_the_control(folder):
    whole, cut = (tasks.load(folder, own) for own in ({}, {"groups": ["P36"]}))
    assert not whole.unasked.height
    assert set(cut.unasked["group"]) == {"P37"}
    assert set(cut.unasked["split"]) == {"train"}
    loaded = tiny("gpt2")
    of_whole, of_cut = (
        Demonstrations(Predictor(loaded), task, OWN).draw(demos.OTHER, "P36")
        for task in (whole, cut)
    )
    assert of_whole == of_cut


def test_other_orders_are_all_different():
    facts = [demos.TrainingFact({"sub": str(i)}, "Rome") for i in range(3)]
    found = [tuple(f.fields["sub"] for f in own) for own in demos.orders(facts, 99, "P36")]
    assert sorted(found) == sorted(set(itertools.permutations("012")) - {("0", "1", "2")})
    assert len(demos.orders(facts, 2, "P36")) == 2
    assert demos.orders(facts[:1], 4, "P36") == []


def answerer(loaded, task):
    return predict.Answerer(loaded.spec, task, load=lambda _: loaded, demos=OWN)


def literal(loaded, text, words):
    """log p of every word at the end of a text, by one pass of the whole model."""
    ids = torch.tensor([loaded.tokenizer(text)["input_ids"]])
    with torch.inference_mode():
        logs = torch.log_softmax(loaded.model(ids).logits[0, -1].double(), -1)
    return {word: float(logs[loaded.tokenizer(f" {word}")["input_ids"][-1]]) for word in words}


def rank(scores, gold):
    """Of a gold that is not one token: beyond all ranks."""
    if gold not in scores:
        return math.inf
    return 1 + sum(value > scores[gold] for value in scores.values())


def test_the_answers_are_those_behind_the_text_written_out(folder):
    loaded = tiny("gpt2")
    task = tasks.load(folder, {})
    own = answerer(loaded, task)
    frame = own.answers(["demos", "demos_chosen"])
    check(frame.sort(OUTCOMES.key), OUTCOMES)
    assert set(frame["prompt"]) == {"demos:00", "demos:01", "demos_chosen"}
    wording = {"P36": "in", "P37": "by"}
    stop = {"P36": ".", "P37": " ."}

    def behind(group, facts):
        lines = [f"{f['sub']} {wording[group]} {label}{stop[group]}" for f, label in facts]
        return "".join(f"{line}\n" for line in lines)

    seen = 0
    for name in ("demos:00", "demos:01", "demos_chosen"):
        for row in frame.filter(prompt=name).iter_rows(named=True):
            front = behind(row["group"], own.record[name][row["group"]]["demonstrated"])
            asked = task.examples.filter(
                group=row["group"], split=row["split"], example=row["example"]
            ).row(0, named=True)
            text = f"{front}{json.loads(asked['fields'])['sub']} {wording[row['group']]}"
            scores = literal(loaded, text, own.words)
            if asked["label"] not in scores:  # not one token of this model
                assert row["best"] is None
                continue
            assert row["best"] == rank(scores, asked["label"])
            assert row["logprob"] == pytest.approx(scores[asked["label"]], abs=1e-5)
            seen += 1
    assert 40 < seen < 3 * 2 * 12

    # chosen: of all draws, then of orders of the best, the first with the highest MRR on dev
    def on_dev(group, facts):
        front = behind(group, [(dict(f.fields), f.label) for f in facts])
        dev = task.of(group, "dev")
        return np.mean([
            1 / rank(
                literal(loaded, f"{front}{json.loads(fields)['sub']} {wording[group]}", own.words),
                gold,
            )
            for fields, gold in dev.select("fields", "label").rows()
        ])  # fmt: skip

    for group in ("P36", "P37"):
        sets = [
            demos.draw_facts(task.examples, group, 3, 0, draw, balanced)
            for balanced in (False, True)
            for draw in range(2)
        ]
        values = [on_dev(group, facts) for facts in sets]
        best = sets[int(np.argmax(values))]
        again = [best, *demos.orders(best, 2, group)]
        values = [on_dev(group, facts) for facts in again]
        told = own.record["demos_chosen"][group]
        assert told["demonstrated"] == [
            [dict(f.fields), f.label] for f in again[int(np.argmax(values))]
        ]
        assert told["dev_mrr"] == pytest.approx(max(values), abs=1e-6)
        assert (told["dev"], told["dev_answers"]) == (6, 2)


def test_what_all_rows_begin_with_is_fed_a_few_times(folder):
    """The same features as row by row, for less than half of the positions."""
    loaded = tiny("llama", double=False)
    generator = np.random.default_rng(0)
    front = generator.integers(5, 90, 40)
    rows = [np.append(front, generator.integers(5, 90, 2 + i % 3)) for i in range(30)]
    places = np.array([len(row) - 1 for row in rows])
    shared, plain = Predictor(loaded), Predictor(loaded)
    found = shared.features(rows, places)
    alone = np.concatenate([plain.features([row], places[i : i + 1]) for i, row in enumerate(rows)])
    assert found == pytest.approx(alone, abs=1e-4)
    assert shared.positions_fed < plain.positions_fed / 2
    # places in the middle are read where they are
    middle = Predictor(loaded).features(rows, places - 1)
    by_hand = np.concatenate(
        [plain.features([row[:-1]], places[i : i + 1] - 1) for i, row in enumerate(rows)]
    )
    assert middle == pytest.approx(by_hand, abs=1e-4)


def test_too_many_of_them_and_classes_are_refused(folder, tmp_path):
    loaded = tiny("gpt2")
    loaded.limit = 24
    own = answerer(loaded, tasks.load(folder, {}))
    with pytest.raises(
        tasks.ProbeTaskError, match=r"3 demonstrations have \d+ tokens, .* takes 24"
    ):
        own.answers(["demos"])
    classes = tasks.load(prompt_folders.classes(tmp_path / "auto_sst2"), {})
    with pytest.raises(
        tasks.ProbeTaskError, match="demonstrations are facts in front of a question"
    ):
        answerer(loaded, classes).answers(["demos_balanced"])


def test_masked_models_are_shown_whole_sentences(folder):
    loaded = tiny("bert")
    own = answerer(loaded, tasks.load(folder, {}))
    frame = own.answers([*demos.KINDS])
    names = {f"{kind}:{draw:02d}" for kind in demos.KINDS for draw in range(2)}
    assert dict(frame["prompt"].value_counts().iter_rows()) == dict.fromkeys(names, 24)


def test_a_trigger_is_found_behind_the_chosen_ones_and_its_file_holds_them(folder, tmp_path):
    loaded, task = tiny("gpt2"), tasks.load(folder, {})
    settings = prompt_folders.settings()
    seen = []
    known = search.search

    def watched(own, template, train, dev, *more):
        seen.append((template.text, train, dev))
        return known(own, template, train, dev, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "search", watched)
        frame, record = search.search_task(
            loaded, task, "demos_searched", settings, "default", tmp_path / "out",
            tmp_path / "states", 0, OWN,
        )  # fmt: skip
    told = record["prompted"]["demos_searched"]
    for (text, train, dev), group in zip(seen, ("P36", "P37"), strict=True):
        facts, chosen = answerer(loaded, task).demonstrations.choose(
            group, _manual(loaded, task, group)
        )
        assert told[group]["demonstrated"] == chosen["demonstrated"]
        assert text.startswith("{demos}\n{sub}")
        given = {fields["demos"] for fields, _ in [*train, *dev]}
        file = files.load(tmp_path / "out" / f"{group}.json", loaded)
        assert {file.given["demos"]} == given
        assert len(train) == 10 - len(facts)
        shown = {(fact.fields["sub"], fact.label) for fact in facts}
        assert not shown & {(fields["sub"], label) for fields, label in train}
        # the answers of the file alone are those of the search
        prompt = outcomes.load_prompts(tmp_path / "out", loaded)[group]
        asked = task.evaluated.filter(group=group)
        again, _ = outcomes.outcomes(
            Predictor(loaded), "demos_searched", {group: prompt}, asked, task.vocabulary
        )
        key = ["split", "example"]
        assert again.sort(key).equals(frame.filter(group=group).sort(key))


def _manual(loaded, task, group):
    return task.wordings(loaded, "manual")[group]
