"""Generated paraphrases: what a paraphraser spoils is rejected and counted."""

from collections import Counter

import pytest
import torch
import transformers

from kgprobe.probes.prompts.wordings import paraphrase, relations
from tests.unit.tiny_models import tokenizer

X, Y = paraphrase.NAMES["[X]"], paraphrase.NAMES["[Y]"]


def stub(*answers):
    return lambda text: list(answers)


def test_names_stand_for_the_placeholders_and_come_back():
    asked = []
    made = paraphrase.reword(
        "[X] was born in [Y].",
        lambda text: asked.append(text) or [f"{Y.lower()} is where {X.upper()} came from?"],
    )
    assert asked == [f"{X} was born in {Y}."]
    assert made.accepted == ["[Y] is where [X] came from."]
    assert made.rejected == Counter()


def test_names_survive_what_parrot_does_to_its_input():
    for name in (X, Y):
        assert paraphrase.STRIPPED.sub("", name).lower() == name.lower()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (f"{X} was born.", "placeholder"),
        (f"{X} and {X} were born in {Y}.", "placeholder"),
        (f"{X}s were born in {Y}.", "placeholder"),
        (f"[X] {X} was born in {Y}.", "placeholder"),
        (f"{X} was born in {Y} [MASK].", "placeholder"),
        (f"{X} WAS born in {Y}!", "same"),
        (f"{X} was born in {Y} " + "long ago " * 30, "long"),
    ],
)
def test_reasons_of_rejection(answer, reason):
    made = paraphrase.reword("[X] was born in [Y].", stub(answer))
    assert made.accepted == []
    assert made.rejected == Counter({reason: 1})


def test_a_text_is_accepted_once_and_judges_are_asked_last():
    answers = [f"{X} comes from {Y}", f"{X} COMES from {Y}.", f"{X} left {Y}"]
    judged = []

    def adequacy(asked, answer):
        judged.append(answer)
        return 0.95 if "comes" in answer else 0.2

    made = paraphrase.reword("[X] was born in [Y].", stub(*answers), {"adequacy": adequacy})
    assert made.accepted == ["[X] comes from [Y]."]
    assert made.rejected == Counter(repeated=1, adequacy=1)
    assert judged == [answers[0], answers[2]]


def test_a_template_that_holds_a_name_or_lacks_a_place_is_refused():
    with pytest.raises(ValueError, match=r"one \[Y\]"):
        paraphrase.reword("[X] was born.", stub())
    with pytest.raises(ValueError, match="stands for a place"):
        paraphrase.reword(f"[X] met {X.lower()} in [Y].", stub())


def test_accepted_texts_become_rows_that_the_tables_can_read():
    base = relations.Wording("P19/0", "P19", "own", "[X] was born in [Y].")
    found, rejected = paraphrase.reword_all([base], stub(f"{X} comes from {Y}", "nonsense"))
    assert rejected == Counter(placeholder=1)
    made = relations.with_variants({"P19": [base]}, found, "generated")
    rows = paraphrase.table(made["P19"], "tiny T5")
    assert [(r["index"], r["parent"], r["text"]) for r in rows] == [
        ("0g0", "0", "[X] comes from [Y].")
    ]
    shared = [{"relation": "P19", "index": "0", "kind": "manual", "text": base.text}]
    joined = relations.join(shared, rows)
    assert joined["P19"][1].parent == "P19/0"


def test_a_random_t5_is_asked_seeded_and_nothing_of_its_noise_gets_through():
    tok = tokenizer("seq2seq")
    config = transformers.T5Config(
        vocab_size=len(tok), d_model=16, d_kv=4, d_ff=32, num_layers=1, num_heads=2,
        decoder_start_token_id=tok.pad_token_id, pad_token_id=tok.pad_token_id,
        eos_token_id=tok.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    settings = paraphrase.Settings(sequences=3, most_tokens=8)
    ask = paraphrase.t5(model, tok, settings)
    state = torch.random.get_rng_state()
    first = ask("Quorvath was born in Zelmindra.")
    assert torch.equal(state, torch.random.get_rng_state())
    assert len(first) == 3
    ask("another text in between")
    assert ask("Quorvath was born in Zelmindra.") == first
    made = paraphrase.reword("[X] was born in [Y].", ask)
    assert made.accepted == []
    assert sum(made.rejected.values()) == 3


def test_what_a_model_says_is_frozen_into_a_table(tmp_path, monkeypatch):
    from kgprobe.probes.jobs import word
    from kgprobe.settings import Paraphraser
    from kgprobe.sheets import read_table

    shared = [
        {"relation": "P19", "index": "0", "kind": "manual", "text": "[X] was born in [Y]."},
        {"relation": "P20", "index": "0", "kind": "manual", "text": "[X] died in [Y]."},
    ]
    settings = Paraphraser("a model", "abc", 2)
    said = {f"{X} was born in {Y}.": [f"{X} comes from {Y}", "noise"], f"{X} died in {Y}.": ["?"]}
    monkeypatch.setattr(paraphrase, "load_t5", lambda *a: (None, None))
    monkeypatch.setattr(paraphrase, "t5", lambda *a: said.__getitem__)
    path = tmp_path / "made.tsv"
    word.freeze(path, shared, [], settings)
    assert "# Rejected: placeholder 2." in path.read_text()
    rows = read_table(path)
    assert [(r["relation"], r["index"], r["text"]) for r in rows] == [
        ("P19", "0g0", "[X] comes from [Y].")
    ]
    assert relations.join(shared, rows)["P19"][1].kind == "generated"
    with pytest.raises(ValueError, match="source is empty; expected"):
        word.freeze(path, shared, [], Paraphraser())
    said.update({text: [] for text in said})
    with pytest.raises(ValueError, match="no paraphrase was accepted"):
        word.freeze(path, shared, [], settings)
