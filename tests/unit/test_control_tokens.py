"""A text that spells a special token raises an error with its item, wherever it is scored."""

import pytest

from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.choice.choose import choose, message
from kgprobe.probes.scoring.choice.text import ChoiceQuestion
from kgprobe.probes.scoring.cloze import rank
from kgprobe.probes.scoring.fill.predict import predict
from kgprobe.probes.scoring.fill.rows import FillItem, FillSettings
from kgprobe.probes.scoring.sentence import score
from kgprobe.probes.text.mask_slots import ClozePrompt
from kgprobe.probes.text.prompts import encode, label_pieces
from kgprobe.templates import Template
from tests.unit.tiny_models import sentencepiece, tiny, with_tokenizer

KINDS = ("bert", "gpt2", "t5")
SPELLED = ("<s>Paris", "Rome</s>", "a <mask> b", "<extra_id_0>", "<unk>")


def refused(name):
    return pytest.raises(ValueError, match=f"^{name}: .* which this model's tokenizer reads as a")


@pytest.mark.parametrize("text", SPELLED)
@pytest.mark.parametrize("name", KINDS)
def test_sentences_raise_with_their_item(name, text):
    loaded = tiny(name)
    texts = {"r": [(0, "[X] is [Y].")]}
    with refused(f"item i, template 0, option '{text}'"):
        score.score(loaded, [score.Item("i", "r", "France", "s")], {"s": ["Rome", text]}, texts)
    with refused("item i, template 0, option 'Rome'"):
        score.score(loaded, [score.Item("i", "r", text, "s")], {"s": ["Rome", "Paris"]}, texts)


@pytest.mark.parametrize("text", SPELLED)
@pytest.mark.parametrize("name", KINDS)
def test_slots_raise_with_their_item(name, text):
    loaded = tiny(name)
    asked = [ClozePrompt("i", 0, "The capital is ", ".", "s", (0,))]
    if name != "gpt2":
        with refused("candidate 1 of set 's'"):
            rank.rank(loaded, asked, {"s": ["Rome", text]})
        # a second mask is one too many for a masked model
        with pytest.raises(
            ValueError, match=r"^item j, template 0: .*(which this model's|found 2)"
        ):
            rank.rank(loaded, [ClozePrompt("j", 0, f"{text} is ", ".", "s", (0,))], {"s": ["Rome"]})
    with refused("item i, answer"):
        predict(loaded, [FillItem("i", 0, "[X] is [Y].", "Rome", (text,))], 1, FillSettings())
    for prefix in ("", "Rome is a country.\n"):
        with refused("item i, template 0"):
            item = FillItem("i", 0, "[X] is [Y].", text, ("Rome",), prefix=prefix)
            predict(loaded, [item], 1, FillSettings())


def test_choices_prompts_and_messages_raise_with_their_item():
    loaded = tiny("gpt2")
    for scoring in ("answer", "letter", "text"):
        with refused("item i.*"):
            choose(loaded, [ChoiceQuestion("i", "What is </s>?", ("Rome", "Paris"))], [scoring])
    with refused("candidate 0 of set 'golds'|item i, template 0"):
        choose(loaded, [ChoiceQuestion("i", "What is it?", ("<s>Rome", "Paris"))], ["text"])
    loaded.tokenizer.chat_template = "<s>{{ messages[0]['content'] }}</s>"
    assert len(message(loaded, "Rome", "item i"))
    with refused("item i"):
        message(loaded, "Rome</s>", "item i")


def test_searched_prompts_raise_with_their_example():
    loaded = tiny("gpt2")
    template = Template.parse("{sub} [T]x2 [P]", "causal")
    fields = [{"sub": "Rome <mask>"}, {"sub": "Rome </s>"}]
    with refused("example 1"):
        encode(loaded, template, fields)
    with refused("label '<pad>'"):
        label_pieces(loaded, template, ["Rome", "<pad>"])


def test_unigram_tokenizers_with_the_token_as_a_piece_also_raise():
    loaded = with_tokenizer("t5", sentencepiece("seq2seq", "unigram"))
    with refused("candidate 1 of set 's'"):
        rank.rank(loaded, [ClozePrompt("i", 0, "It is ", ".", "s", (0,))], {"s": ["Rome", "x</s>"]})


def test_text_resembling_a_special_token_is_accepted():
    loaded: Loaded = tiny("gpt2")
    items = [score.Item("i", "r", "[MASK] and <|endoftext|>", "s")]
    result = score.score(loaded, items, {"s": ["< s>", "s>"]}, {"r": [(0, "[X] is [Y].")]})
    assert len(result.columns["sum"]) == 2
