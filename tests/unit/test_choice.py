"""Multiple choice: prompts, strict answer parsing, option scores against literal loops."""

import copy
import re
import unicodedata

import numpy as np
import polars as pl
import pytest
import torch
from tokenizers import AddedToken, normalizers

from kgprobe import schema
from kgprobe.probes.jobs.methods.choice import choose_frame
from kgprobe.probes.scoring.choice import choose
from kgprobe.probes.scoring.choice.text import CUE, ChoiceQuestion, lettered, prompt, read
from tests.unit.literal_scores import row_sum
from tests.unit.tiny_models import sentencepiece, tiny, with_tokenizer

ASKED = [
    ChoiceQuestion("q1", "Where is it?", ("Paris", "Rome", "Burkina Faso"), "It is in [MASK] ."),
    ChoiceQuestion("q2", "What is 東京?", ("country", "capital"), "[MASK] is what it is."),
    ChoiceQuestion("q3", "Which one?", ("Niger", "Nigeria"), ""),
]
FOUR = ("lake", "work", "body of water", "Bot.")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("(b) work", (1, "option")),
        ("The answer is (C)  Body of\nWater.", (2, "option")),
        ("It is a (d) Bot.", (3, "option")),
        ("(a) lake, (b) work", (None, "several")),
        ("(b) workshop", (1, "letter")),  # only the letter counts, the longer word does not
        ("(b)", (1, "letter")),
        ("B", (1, "letter")),
        (" b.", (1, "letter")),
        ("c) because it is wet", (2, "letter")),
        ("b: yes", (1, "letter")),
        ("a work", (None, "label")),  # named without its letter: recognized, but not counted
        ("A lake is what it is.", (None, "label")),
        ("a body of water and a bot", (None, "none")),
        ("a workshop", (None, "none")),
        ("(e) sea", (None, "none")),
        ("work", (None, "label")),
        ("The letter is (b).", (None, "none")),
        ("(b) body of water", (None, "contradiction")),
        ("", (None, "none")),
    ],
)
def test_answers_are_parsed_strictly(answer, expected):
    assert read(answer, FOUR) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("b: ship yard", (1, "letter")), ("b. Ship  Yard at the sea", (1, "letter")),
        ("a. ship", (0, "letter")), ("a: ship yard", (None, "contradiction")),
        ("b: ship", (None, "contradiction")), ("c. ship yard", (None, "contradiction")),
    ],
)  # fmt: skip
def test_a_label_that_begins_another_is_no_contradiction(answer, expected):
    assert read(answer, ("ship", "ship  yard", "lake")) == expected


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_accents_may_be_composed_or_not(forms):
    label, written = (unicodedata.normalize(form, "Región") for form in forms)
    assert read(f"It is (b) {written}.", ["lake", label]) == (1, "option")
    assert read(f"(a) {written}", ["lake", label]) == (None, "contradiction")
    assert read(f"a {written}", ["lake", label]) == (None, "label")


def test_prompt_lists_options_in_letter_order():
    assert lettered(FOUR) == "(a) lake, (b) work, (c) body of water, (d) Bot."
    assert prompt(ASKED[2]) == "Which one? (a) Niger, (b) Nigeria"
    for options in (("one",), tuple("abcdefghijklmnopqrstuvwxyzæ")):
        with pytest.raises(ValueError, match="2 to 26 have letters"):
            ChoiceQuestion("x", "?", options)


def place_of(one, scoring):
    """Return (text before, text after, options) of a scoring mode."""
    if scoring == "stem":
        return (*one.stem.split("[MASK]"), one.options)
    if scoring == "letter":
        return f"{prompt(one)}\nAnswer: (", ")", tuple("abc"[: len(one.options)])
    return f"{prompt(one)}\nAnswer: ", "", one.options


def tokens_of(loaded, before, option, after):
    """Return (ids before, ids of the option, ids after), tokenized as one complete text."""
    coded = loaded.tokenizer(
        before + option + after, add_special_tokens=False, return_offsets_mapping=True
    )
    start, end = len(before.rstrip()), len(before) + len(option)
    roles = [0 if b <= start else 1 if a < end else 2 for a, b in coded["offset_mapping"]]
    return [[i for i, r in zip(coded["input_ids"], roles, strict=True) if r == k] for k in range(3)]


def literal(loaded, before, option, after):
    """Return (sum, number of tokens) of an option in its context, one pass per token."""
    tok = loaded.tokenizer
    left, own, right_side = tokens_of(loaded, before, option, after)
    total = 0.0
    for j, token in enumerate(own):
        with torch.no_grad():
            if loaded.spec.kind == "causal":
                ids = [tok.bos_token_id, *left, *own[:j]]
                row = loaded.model(torch.tensor([ids])).logits[0, -1]
            elif loaded.spec.kind == "masked":
                ids = [tok.bos_token_id, *left, *[tok.mask_token_id] * len(own), *right_side,
                       tok.eos_token_id]  # fmt: skip
                row = loaded.model(torch.tensor([ids])).logits[0, 1 + len(left) + j]
            else:
                slot = tok.convert_tokens_to_ids("<extra_id_0>")
                ids = [*left, slot, *right_side, tok.eos_token_id]
                read_so_far = [0, slot, *own[:j]]
                row = loaded.model(
                    input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([read_so_far])
                ).logits[0, -1]
        total += float(torch.log_softmax(row.double(), 0)[token])
    return total, len(own)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_scored_options_equal_the_loop(name):
    loaded = tiny(name, bos="forced" if name == "gpt2" else "")
    result = choose.choose(loaded, ASKED, ("letter", "text", "stem"))
    kept = {(c.item, c.scoring): c for c in result.chosen}
    for one in ASKED:
        for scoring in ("letter", "text", "stem"):
            if scoring == "stem" and not one.stem:
                assert (one.item, scoring) not in kept
                continue
            if name == "gpt2" and scoring == "stem" and one.item == "q2":
                continue  # the mask slot at the start: see the test below
            before, after, options = place_of(one, scoring)
            sums = [literal(loaded, before, o, after) for o in options]
            stored = list(zip(*result.scores[one.item, scoring], strict=True))
            assert [n for _, n in stored] == [n for _, n in sums]
            assert [s for s, _ in stored] == pytest.approx([s for s, _ in sums], abs=1e-9)
            for kind, values in (("", [s / n for s, n in sums]), ("_sum", [s for s, _ in sums])):
                if scoring == "letter" and kind:
                    continue
                own = kept[one.item, scoring + kind]
                assert own.chosen == int(np.argmax(values))
                first, second = sorted(values, reverse=True)[:2]
                assert own.margin == pytest.approx(first - second, abs=1e-9)
                assert own.rule == "scored"


def test_slot_at_the_start_is_scored_by_the_whole_sentence():
    loaded = tiny("gpt2", bos="forced")
    result = choose.choose(loaded, ASKED[1:2], ("stem",))
    values = []
    for option in ASKED[1].options:
        ids = loaded.tokenizer(ASKED[1].stem.replace("[MASK]", option))["input_ids"]
        values.append(row_sum(loaded.model, [loaded.tokenizer.bos_token_id, *ids]))
    kept = {c.scoring: c for c in result.chosen}
    sums, counts = result.scores["q2", "stem"]
    assert sums == pytest.approx(values)
    # normalized by all tokens of the sentence, or a long nonsense option would win by its length
    tokens = [
        len(loaded.tokenizer(ASKED[1].stem.replace("[MASK]", o))["input_ids"])
        for o in ASKED[1].options
    ]
    assert counts.tolist() == tokens
    means = [value / count for value, count in zip(values, tokens, strict=True)]
    assert kept["stem"].chosen == int(np.argmax(means))
    assert kept["stem_sum"].chosen == int(np.argmax(values))
    assert kept["stem_sum"].margin == pytest.approx(abs(values[0] - values[1]))


def test_generated_answers_are_greedy_and_parsed():
    loaded = tiny("gpt2", bos="forced")
    result = choose.choose(loaded, ASKED, ("answer",))
    assert [c.item for c in result.chosen] == ["q1", "q2", "q3"]
    for one, chosen in zip(ASKED, result.chosen, strict=True):
        ids = [loaded.tokenizer.bos_token_id]
        ids += loaded.tokenizer(prompt(one) + "\nAnswer:")["input_ids"]
        start = len(ids)
        while len(ids) < start + choose.MOST:
            with torch.no_grad():
                token = int(loaded.model(torch.tensor([ids])).logits[0, -1].argmax())
            if token in loaded.tokenizer.all_special_ids:
                break
            ids.append(token)
        assert chosen.text == loaded.tokenizer.decode(ids[start:]).strip()
        assert (chosen.chosen, chosen.rule) == read(chosen.text, one.options)
        assert chosen.margin is None


def test_a_special_token_without_a_role_ends_a_generated_answer():
    loaded = tiny("opt", bos="forced")
    (chosen,) = choose.choose(loaded, ASKED[1:2], ("answer",)).chosen
    assert chosen.text.startswith("São66")
    loaded.tokenizer.add_tokens([AddedToken("6", special=True)])
    assert "6" not in loaded.tokenizer.all_special_tokens
    (chosen,) = choose.choose(loaded, ASKED[1:2], ("answer",)).chosen
    assert chosen.text == "São"


@pytest.mark.parametrize("name", ["llama", "bert", "t5"])
def test_progress_reports_every_question_once_per_scoring_mode(name):
    steps = []
    scorings = choose.SCORINGS
    choose.choose(tiny(name), ASKED, scorings, progress=steps.append)
    assert sum(steps) == len(ASKED) * len(scorings)
    assert len([step for step in steps if step]) > len(scorings)


def test_a_chat_template_wraps_the_prompt():
    loaded = tiny("gpt2", bos="forced")
    loaded.tokenizer.chat_template = (
        "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}{% endfor %} reply:"
    )
    row = choose.message(loaded, prompt(ASKED[2]), "item")
    assert loaded.tokenizer.decode(row) == "<s>user: Which one? (a) Niger, (b) Nigeria reply:"


@pytest.mark.parametrize(
    ("today", "read"),
    [
        ("{{ strftime_now('%d %b %Y') }}", "26 Jul 2024"),
        ("{% if strftime_now is defined %}{% set d = strftime_now('%Y-%m-%d') %}{% endif %}{{ d }}",
         "2024-07-26"),
        ("{{ '%d' }}", "%d"),
    ],
)  # fmt: skip
def test_a_chat_template_with_a_date_reads_the_same_on_every_day(today, read):
    """Llama 3.2, SmolLM3 and gpt-oss tell the model what day it is."""
    loaded = tiny("gpt2", bos="forced")
    loaded.tokenizer.chat_template = (
        "\n<s>On " + today + ": {{ messages[0]['content'] }}" + "{{ '\\n' }}reply:"
    )
    row = choose.message(loaded, prompt(ASKED[2]), "item")
    text = f"\n<s>On {read}: Which one? (a) Niger, (b) Nigeria\nreply:"
    assert loaded.tokenizer.decode(row) == text


def test_unsupported_questions_are_skipped_with_a_reason():
    long = ChoiceQuestion("long", "Where? " * 80, ("Paris", "Rome"), "It is in [MASK]")
    for name in ("bert", "gpt2", "t5"):
        loaded = tiny(name, bos="forced" if name == "gpt2" else "")
        result = choose.choose(loaded, [ASKED[0], long], choose.SCORINGS)
        scorings = {c.scoring for c in result.chosen if c.item == "long"}
        assert scorings == {"stem", "stem_sum"}
        assert all("128 tokens" in reason for item, _, reason in result.left_out if item == "long")
        assert {w for i, w, _ in result.left_out if i == "long"} >= {"letter", "text"}


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_fitting_the_window_is_independent_of_other_questions(name):
    loaded = tiny(name, bos="forced" if name == "gpt2" else "")
    near = ChoiceQuestion("near", "Where? " * 20, ("Paris", "Rome"))
    other = ChoiceQuestion("other", "What?", ("country", "Burkina Faso is a country " * 3))
    alone = choose.choose(loaded, [near], ("text",)).scores
    loaded.limit = len(loaded.tokenizer(prompt(near) + CUE)["input_ids"]) + 4
    together = choose.choose(loaded, [other, near], ("text",)).scores
    assert together["near", "text"][0] == pytest.approx(alone["near", "text"][0])


@pytest.mark.parametrize("stem", ["It is in [MASK] .", "[MASK] is what it is."])
def test_too_long_texts_are_skipped_for_any_slot_position(stem):
    long = ChoiceQuestion("long", "Where?", ("Paris", "Rome"), f"{'It is ' * 80}{stem}")
    for name in ("bert", "gpt2", "t5"):
        loaded = tiny(name, bos="forced" if name == "gpt2" else "")
        result = choose.choose(loaded, [ASKED[0], long], ("text", "stem"))
        kept = {(c.item, c.scoring) for c in result.chosen}
        assert kept >= {("q1", "stem"), ("long", "text")}
        cut = name == "gpt2" and not stem.startswith("[MASK]")  # words before a slot are cut
        assert cut or result.left_out == [("long", "stem", "more than the model's 128 tokens")]


@pytest.mark.parametrize("option", ["", "  ", "\u200b"])
@pytest.mark.parametrize("scoring", ["text", "stem"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "sentencepiece"])
def test_whitespace_options_are_reported_and_never_win(name, scoring, option):
    if name == "sentencepiece":
        loaded = with_tokenizer("t5", copy.deepcopy(sentencepiece("seq2seq", "unigram")))
    else:
        loaded = tiny(name, bos="forced" if name == "gpt2" else "")
    # as SentencePiece does: zero-width characters become spaces
    loaded.tokenizer.backend_tokenizer.normalizer = normalizers.Replace("\u200b", " ")
    asked = [*ASKED[:2], ChoiceQuestion("q9", "Where?", ("Paris", option), "It is in [MASK].")]
    with pytest.raises(ValueError, match=re.escape(f"item q9, answer ({option!r}) has no tokens")):
        choose.choose(loaded, asked, (scoring,))


@pytest.mark.parametrize("stem", ["It is in Rome.", "[MASK] is in [MASK]."])
def test_stems_need_exactly_one_slot(stem):
    with pytest.raises(ValueError, match=rf"item q1: {stem.count('[MASK]')} \[MASK\] in '"):
        ChoiceQuestion("q1", "Where?", ("Paris", "Rome"), stem)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_frames_match_their_schemas(name, tmp_path):
    loaded = tiny(name, bos="forced" if name == "gpt2" else "", double=False)
    questions = pl.DataFrame(
        [
            {"item": c.item, "task": "TP", "premise": "", "source": c.item, "question": c.question,
             "stem": c.stem, "options": list(c.options), "gold": 1, "row": n}
            for n, c in enumerate(ASKED)
        ],
        schema=dict(schema.CHOICES.columns),
    )  # fmt: skip
    schema.check(questions, schema.CHOICES)
    made = [
        choose_frame(loaded, part, choose.SCORINGS)[0] for part in (questions, questions.reverse())
    ]
    first, second = (tmp_path / f"{number}.parquet" for number in (0, 1))
    for path, chosen in zip((first, second), made, strict=True):
        schema.write(chosen, schema.CHOSEN, path)
    assert first.read_bytes() == second.read_bytes()
    scored = made[0].filter(rule="scored")["scoring"].str.strip_suffix("_sum")
    assert set(scored) == {"letter", "text", "stem"}
    assert ("answer" in set(made[0]["scoring"])) == (name == "gpt2")
