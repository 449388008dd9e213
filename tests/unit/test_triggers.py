"""Templates with triggers, their ids, label forms, predictions and prompt files."""

import json

import numpy as np
import pytest
import torch
from tokenizers import AddedToken

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.predict import Predictor
from kgprobe.probes.prompts.search import files
from kgprobe.probes.text.prompts import LabelError, encode, initial_token, label_pieces, label_token
from kgprobe.templates import Template, TemplateError
from tests.unit.tiny_models import CONFIGS, sentencepiece, tiny, with_tokenizer

MASKED = ["bert", "roberta", "albert", "distilbert", "electra"]
CAUSAL = ["gpt2", "llama", "opt"]
FACTS = [{"sub": s} for s in ("Paris", "Burkina Faso", "the capital of 東京", "Rome <mask> a")]


def parsed(text, name):
    return Template.parse(text, CONFIGS[name][0])


@pytest.mark.parametrize("name", [*MASKED, "t5"])
@pytest.mark.parametrize("text", ["{sub} is [P] .", "[P] is {sub}.", "{sub} ([P]), it is"])
@pytest.mark.parametrize("strips", [False, True])
def test_ids_without_triggers_equal_those_of_the_whole_text(name, text, strips):
    """This holds whether or not the slot's token includes the adjacent spaces."""
    loaded = tiny(name)
    slot = "<mask>" if name != "t5" else "<extra_id_0>"
    token = AddedToken(slot, lstrip=strips, rstrip=strips, normalized=False, special=True)
    loaded.tokenizer.add_tokens([token], special_tokens=True)
    found = encode(loaded, parsed(text, name), FACTS)
    for row, place, own in zip(found.rows, found.places, FACTS, strict=True):
        whole = text.replace("{sub}", own["sub"]).replace("[P]", slot)
        assert row.tolist() == loaded.tokenizer(whole)["input_ids"]
        assert row[place] == loaded.tokenizer.convert_tokens_to_ids(slot)
        masks = np.flatnonzero(row == row[place])
        # a subject may contain a mask token: the position is that of [P]
        expected = masks[-1] if text.startswith("{sub}") else masks[0]
        assert place == expected
    assert found.triggers.shape == (len(FACTS), 0)


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("bos", ["none", "forced", "default"])
def test_a_causal_prompt_ends_before_the_answer(name, bos):
    loaded = tiny(name, bos=bos)
    found = encode(loaded, parsed("{sub} is in [P]", name), FACTS)
    front = [loaded.tokenizer.bos_token_id] if bos == "forced" else []
    for row, place, own in zip(found.rows, found.places, FACTS, strict=True):
        assert row.tolist() == front + loaded.tokenizer(own["sub"] + " is in")["input_ids"]
        assert place == len(row) - 1


@pytest.mark.parametrize("name", [*MASKED, *CAUSAL, "t5"])
def test_triggers_are_at_the_template_s_positions(name):
    loaded = tiny(name)
    text = "{sub} [T] is [T] [P]" + ("" if name in CAUSAL else " .")
    found = encode(loaded, parsed(text, name), FACTS)
    word = loaded.tokenizer(". is", add_special_tokens=False)["input_ids"][1:]
    for row, own, filled in zip(found.rows, found.triggers, found.filled([7, 9]), strict=True):
        assert row[own].tolist() == [initial_token(loaded)] * 2
        assert filled[own].tolist() == [7, 9]
        assert row[own[0] + 1 : own[1]].tolist() == word
        same = np.ones(len(row), dtype=bool)
        same[own] = False
        assert (row[same] == filled[same]).all()
    with pytest.raises(ValueError, match="1 trigger tokens for a template with 2"):
        found.filled([7])


def test_a_word_after_a_trigger_is_tokenized_by_its_spacing():
    loaded = tiny("roberta")
    tok = loaded.tokenizer
    blank = encode(loaded, parsed("[T] is [P]", "roberta"), [{}]).rows[0]
    glued = encode(loaded, parsed("[T]is [P]", "roberta"), [{}]).rows[0]
    assert tok.convert_ids_to_tokens(blank[2:3].tolist()) == ["Ġis"]
    assert tok.convert_ids_to_tokens(glued[2:3].tolist()) == ["is"]


def test_two_segments_have_a_separator_where_released_types_start():
    loaded = tiny("bert")
    template = parsed("{a} [SEP] {b} [T] [P]", "bert")
    fields = [{"a": "Paris", "b": "Rome"}]
    loaded.tokenizer.sep_token = "</s>"
    alone = encode(loaded, template, fields)
    assert alone.types is None  # this tokenizer knows no pairs
    assert (alone.rows[0] == loaded.tokenizer.sep_token_id).sum() == 2
    from tokenizers import processors

    ids = [(t, loaded.tokenizer.convert_tokens_to_ids(t)) for t in ("<s>", "</s>")]
    loaded.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=ids
    )
    found = encode(loaded, template, fields)
    pair = loaded.tokenizer("Paris", "Rome <pad> <mask>", return_token_type_ids=True)
    assert found.types[0].tolist() == pair["token_type_ids"]
    first = found.rows[0].tolist().index(loaded.tokenizer.sep_token_id)
    released = encode(loaded, template, fields, habits="released").types[0]
    assert released[first] == 1
    assert found.types[0][first] == 0
    assert (np.delete(released, first) == np.delete(found.types[0], first)).all()


def test_released_mode_adds_a_space_before_byte_level_text():
    loaded = tiny("roberta")
    template = parsed("{sub} [T] [P]", "roberta")
    own = encode(loaded, template, [{"sub": "Paris"}], habits="released").rows[0]
    expected = loaded.tokenizer(" Paris")["input_ids"][:-1]
    assert own[: len(expected)].tolist() == expected


def test_released_mode_adds_no_space_before_the_start_of_a_word():
    loaded = with_tokenizer("llama", sentencepiece("causal"))
    template = Template.parse("{sub} [T] [P]", "causal")
    for habits in ("default", "released"):
        row = encode(loaded, template, [{"sub": "France"}], habits=habits).rows[0]
        assert loaded.tokenizer.convert_ids_to_tokens(row.tolist()) == ["▁France", "▁the"]


def test_only_a_long_field_is_truncated():
    loaded = tiny("bert")
    template = parsed("{sent} {sub} [T] [P] .", "bert")
    long = {"sent": "the capital " * 100, "sub": "Niger"}
    with pytest.raises(ValueError, match=r"example 1: 2\d\d tokens.*takes 128.*truncate"):
        encode(loaded, template, [{"sent": "a", "sub": "Rome"}, long])
    found = encode(loaded, template, [{"sent": "a", "sub": "Rome"}, long], truncate="sent")
    assert found.cut == 1
    assert 126 <= len(found.rows[1]) <= 128
    tail = loaded.tokenizer("a Niger <pad> <mask> .")["input_ids"][2:]
    tail[tail.index(loaded.tokenizer.pad_token_id)] = initial_token(loaded)
    assert found.rows[1][-len(tail) :].tolist() == tail
    with pytest.raises(ValueError, match="without any word of 'sent'"):
        encode(loaded, template, [{"sent": "a", "sub": "Rome " * 200}], truncate="sent")
    with pytest.raises(TemplateError, match="has no field 'sent'; valid: sub"):
        encode(loaded, template, [{"sub": "Rome"}])
    with pytest.raises(TemplateError, match="truncate 'context'"):
        encode(loaded, template, [long], truncate="context")


def test_label_forms_and_the_error_for_multi_token_labels():
    loaded = tiny("roberta")
    tok = loaded.tokenizer
    spaced, opening = parsed("{sub} is [P] .", "roberta"), parsed("[P] is {sub}", "roberta")
    assert tok.convert_ids_to_tokens([label_token(loaded, spaced, "Italy")]) == ["ĠItaly"]
    assert tok.convert_ids_to_tokens([label_token(loaded, opening, "Niger")]) == ["Niger"]
    with pytest.raises(LabelError, match=r"'Italya' is not a single token.*'ĠItaly' 'a'.*'Italy'"):
        label_token(loaded, spaced, "Italya")
    many = label_pieces(loaded, spaced, ["Italy", "Italya"])
    assert [len(ids) for ids in many] == [1, 2]
    bert = tiny("bert")
    with pytest.raises(LabelError, match="<unk>"):
        label_token(bert, parsed("{sub} [P]", "bert"), "%")


@pytest.mark.parametrize("name", [*MASKED, *CAUSAL, "t5"])
def test_predictions_equal_those_of_the_full_model(name):
    loaded = tiny(name)
    text = "{sub} [T] is [T] [P]" + ("" if name in CAUSAL else " .")
    found = encode(loaded, parsed(text, name), FACTS)
    rows = found.filled([11, 12])
    predictor = Predictor(loaded, Budget(24))
    only = np.array([5, 3, 60])
    chosen = {}

    def read(batch, logits, totals):
        chosen.update(zip(batch.tolist(), logits - totals[:, None], strict=True))

    predictor.visit(rows, found.places, read, only=only)
    features = predictor.features(rows, found.places)
    weight, bias = predictor.output_rows()
    for number, (row, place) in enumerate(zip(rows, found.places, strict=True)):
        ids = torch.from_numpy(row)[None]
        with torch.no_grad():
            if name == "t5":
                start = torch.tensor([[0, loaded.tokenizer.convert_tokens_to_ids("<extra_id_0>")]])
                logits = loaded.model(ids, decoder_input_ids=start).logits[0, 1]
            else:
                logits = loaded.model(ids).logits[0, place]
        expected = logits.log_softmax(-1)
        torch.testing.assert_close(chosen[number], expected[only], atol=1e-9, rtol=0)
        again = torch.from_numpy(features[number]).double() @ weight.T
        again = again if bias is None else again + bias
        torch.testing.assert_close(again, logits, atol=1e-4, rtol=0)


def test_a_prompt_file_round_trips_and_is_refused_for_other_models(tmp_path):
    loaded = tiny("gpt2", bos="forced")
    template = parsed("{sub} [T] [T] [P]", "gpt2")
    trigger = loaded.tokenizer(" is the")["input_ids"]
    prompt = files.prompt_of(
        loaded, template, trigger, {"yes": [5]}, scores={"dev": {"value": 0.5, "n": 4}}
    )
    assert prompt.text == " is the"
    assert prompt.round_trip
    path = tmp_path / "p.json"
    files.save(prompt, path)
    first = path.read_bytes()
    files.save(files.load(path, loaded), path)
    assert path.read_bytes() == first
    assert files.read(path).parsed() == template
    with pytest.raises(files.PromptFileError, match="whose bos is 'forced: added"):
        files.load(path, tiny("gpt2", bos="none"))
    with pytest.raises(files.PromptFileError, match="whose kind is 'causal'"):
        files.load(path, tiny("bert"))
    other = tiny("gpt2", bos="forced")
    other.record["weights"] = "another"
    with pytest.raises(files.PromptFileError, match="whose weights is ''"):
        files.load(path, other)
    with pytest.raises(files.PromptFileError, match="no such prompt file"):
        files.read(tmp_path / "q.json")
    path.write_text("{")
    with pytest.raises(files.PromptFileError, match="not a prompt file"):
        files.read(path)
    path.write_text(json.dumps({"trigger": []}))
    with pytest.raises(files.PromptFileError, match="it has \\['trigger'\\]"):
        files.read(path)


def test_glued_pieces_do_not_round_trip():
    loaded = tiny("gpt2")
    template = parsed("{sub} [T]x3 [P]", "gpt2")
    split = loaded.tokenizer.convert_tokens_to_ids(["Ġ", "i", "s"])
    assert not files.prompt_of(loaded, template, split).round_trip
