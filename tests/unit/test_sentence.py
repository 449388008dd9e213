"""Sentence scores against a literal loop: one full pass per sentence, no prefix sharing."""

import copy
import dataclasses
import re

import numpy as np
import pytest
import torch
from tokenizers import Regex, normalizers

from kgprobe.probes.models.batching import Budget
from kgprobe.probes.models.load import Loaded
from kgprobe.probes.scoring.sentence import score
from kgprobe.probes.scoring.sentence.score import Item
from kgprobe.probes.scoring.sentence.variants import VARIANTS
from kgprobe.probes.text.encode import ANSWER
from kgprobe.templates import fill
from tests.unit.literal_scores import answer_tokens
from tests.unit.tiny_models import CONFIGS, sentencepiece, tiny, with_tokenizer

OPTIONS = ["Niger", "Nigeria", "Paris", "São Tomé", "an option of one token", "東京"]
SUBJECTS = ["France", "Burkina Faso", "straße [Y]", "Italy"]
TEMPLATES = [
    (0, "The capital of [X] is [Y]."),
    (1, "[Y] is where the capital of [X] stands."),
    (2, "[X] and [Y] lie in Africa."),
]
ITEMS = [Item(f"P36/Q{i}", "P36", s, "set") for i, s in enumerate(SUBJECTS)]


def run(loaded: Loaded, templates=TEMPLATES, options=OPTIONS, items=ITEMS, **more):
    return score.score(loaded, items, {"set": options}, {"P36": templates}, **more)


def filled_sentences(templates=TEMPLATES, options=OPTIONS, items=ITEMS):
    return [
        fill(text, item.subject, option)
        for _, text in templates
        for item in items
        for option in options
    ]


CAUSAL = [name for name, (kind, *_) in CONFIGS.items() if kind == "causal"]
MASKED = [name for name, (kind, *_) in CONFIGS.items() if kind == "masked"]


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize(
    ("policy", "adds", "bos"),
    [("none", True, []), ("forced", False, [1]), ("default", True, [1]), ("default", False, [])],
)
def test_causal_scores_equal_the_literal_loop(name, policy, adds, bos):
    loaded = tiny(name, bos=policy, adds_bos=adds)
    columns, expected = run(loaded).columns, []
    for f in filled_sentences():
        coded = loaded.tokenizer(f.text, add_special_tokens=False, return_offsets_mapping=True)
        row = loaded.model(torch.tensor([[*bos, *coded["input_ids"]]])).logits[0].log_softmax(-1)
        scores = [row[i, token].item() for i, token in enumerate([*bos, *coded["input_ids"]][1:])]
        # the first token has no score
        own = [i + len(bos) - 1 for i in answer_tokens(f, coded["offset_mapping"])]
        answer = sum(scores[i] for i in own if i >= 0)
        after = sum(scores[max(own[0], 0) :]) if own else 0
        expected.append((sum(scores), answer, after, len(scores), bool(own)))
    # Mamba's scan runs in float32 even where the model is in float64
    near = 1e-5 if name == "mamba" else 1e-9
    names = ["sum", "answer_sum", "continuation_sum", "count", "continued"]
    for column, values in zip(names, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(columns[column], values, rtol=0, atol=near, err_msg=column)
    assert columns["item"] == [i.item for _ in TEMPLATES for i in ITEMS for _ in OPTIONS]


@pytest.mark.parametrize(("name", "words"), [("llama", 40), ("t5", 0)])
def test_equal_options_tie_in_every_batch(name, words):
    """The last bits of a row depend on the other rows of a batch, but a tie has to be exact."""
    loaded = dataclasses.replace(tiny(name, double=False), limit=1000)
    options = ["Niger", "Paris", "Niger", "Nigeria, where the capital of Italy stands", "Niger"]
    subjects = [*SUBJECTS, "a country", "Rome", "an option", "the capital"]
    items = [
        Item(f"i{k}", "P36", subject, "set", "word " * (words + 3 * k) if words else "")
        for k, subject in enumerate(subjects)
    ]
    for positions in (5, 12, 30, 300, 1000):
        done = []
        columns = run(loaded, TEMPLATES[:2], options, items, budget=Budget(positions),
                      progress=done.append).columns  # fmt: skip
        for column in ("sum", "answer_sum", "continuation_sum"):
            scores = np.array(columns[column]).reshape(-1, len(options))
            assert (scores[:, [0]] == scores[:, [2, 4]]).all(), (column, positions)
        assert sum(done) == len(columns["sum"])


def test_prefixes_are_shared_if_attention_accepts_a_custom_mask():
    plain = sum(len(tiny("llama").tokenizer(f.text)["input_ids"]) for f in filled_sentences())
    for name in ("llama", "gpt2", "opt"):
        shared = run(tiny(name, bos="forced")).record
        assert shared["notes"] == []
        assert shared["prefixes"] == "shared"
        # the self-check on a few sentences is part of the count
        assert shared["positions_fed"] < 0.65 * plain
    mamba = run(tiny("mamba", bos="forced")).record
    assert mamba["prefixes"] == "plain"
    assert "no prefix sharing: MambaForCausalLM takes no positions" in mamba["notes"]


def masked_positions(variant: str, place: int, words, role, size: int) -> list[int]:
    if variant == "original":
        return [place]
    if variant == "sentence_l2r":
        return list(range(place, size))
    if variant == "sentence_l2r_keep_sep":
        return list(range(place, size - 1))
    if variant == "answer_l2r+word_l2r" and role[place] == ANSWER:
        return [i for i in range(place, size) if role[i] == ANSWER]
    found = []
    for i in range(place, size):
        if words[i] != words[place]:
            break
        found.append(i)
    return found


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("variant", VARIANTS)
def test_pseudo_log_likelihood_equals_the_literal_loop(name, variant):
    loaded = tiny(name)
    found = run(loaded, variant=variant).columns
    tok = loaded.tokenizer
    for number, f in enumerate(filled_sentences()):
        enc = tok(f.text, return_offsets_mapping=True, return_special_tokens_mask=True)
        ids, words, special = enc["input_ids"], enc.word_ids(0), enc["special_tokens_mask"]
        inside = [i for i in range(len(ids)) if not special[i]]
        answer = set(answer_tokens(f, enc["offset_mapping"])) & set(inside)
        role = [ANSWER if i in answer else 0 for i in range(len(ids))]
        rows = []
        for place in inside:
            rows.append(list(ids))
            for i in masked_positions(variant, place, words, role, len(ids)):
                rows[-1][i] = tok.mask_token_id
        logprobs = loaded.model(torch.tensor(rows)).logits.log_softmax(-1)
        total = own = 0.0
        for place, row in zip(inside, logprobs, strict=True):
            value = row[place, ids[place]].item()
            total, own = total + value, own + value * (place in answer)
        assert found["sum"][number] == pytest.approx(total, abs=1e-9)
        assert found["answer_sum"][number] == pytest.approx(own, abs=1e-9)
        assert found["count"][number] == len(inside)


@pytest.mark.parametrize("message", [
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    "CUDA error: out of memory",
    "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
])  # fmt: skip
def test_out_of_memory_errors_of_all_libraries_are_recognized(message):
    asked = []

    def forward(batch):
        asked.append(len(batch))
        if len(batch) > 1:
            raise RuntimeError(message)

    Budget(64).run([4, 4], forward)
    assert asked == [2, 1, 1]
    with pytest.raises(RuntimeError, match="CUBLAS_STATUS_EXECUTION_FAILED"):
        Budget(64).run([4], lambda _: (_ for _ in ()).throw(
            RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED")
        ))  # fmt: skip


def out_of_memory(loaded: Loaded, monkeypatch) -> list[int]:
    """Let a model run out of memory as often as the list returned says."""
    body, failures = loaded.model.base_model.forward, [3]

    def failing(*args, **kwargs):
        ids = args[0] if args else kwargs["input_ids"]
        if ids.numel() > 40 and failures[0]:
            failures[0] -= 1
            raise torch.OutOfMemoryError("provoked")
        return body(*args, **kwargs)

    monkeypatch.setattr(loaded.model.base_model, "forward", failing)
    return failures


def test_out_of_memory_loses_no_score(monkeypatch):
    loaded = tiny("llama")
    expected = run(loaded).columns["sum"]
    failures = out_of_memory(loaded, monkeypatch)
    found = run(loaded, budget=Budget(512))
    assert failures[0] == 0
    assert found.record["backoffs"] == [256, 128, 64]
    assert found.record["token_budget"] == 64
    np.testing.assert_allclose(found.columns["sum"], expected, rtol=0, atol=1e-9)


def test_a_resumed_run_keeps_the_halved_budget(tmp_path, monkeypatch):
    """It began with the full budget, ran out of memory again, and had other batches."""
    loaded, size = tiny("llama"), len(ITEMS) * len(OPTIONS)
    out_of_memory(loaded, monkeypatch)
    first = Budget(512, room=1 << 20)
    run(loaded, TEMPLATES[:1], budget=first, folder=tmp_path, shard=size)
    resumed = Budget(512, room=1 << 20)
    run(loaded, budget=resumed, folder=tmp_path, shard=size)
    assert (resumed.positions, resumed.room) == (first.positions, first.room) == (64, 1 << 17)


def test_one_row_that_does_not_fit_is_an_error():
    budget = Budget(64)

    def forward(batch):
        raise MemoryError

    with pytest.raises(MemoryError, match="row 0 of 9 tokens does not fit"):
        budget.run([9], forward)


def test_a_sentence_at_the_limit_passes_and_a_longer_one_is_reported():
    loaded = tiny("gpt2")
    size = len(loaded.tokenizer(fill(TEMPLATES[0][1], "France", "Niger").text)["input_ids"])
    loaded.limit = size
    assert run(loaded, TEMPLATES[:1], ["Niger"], ITEMS[:1]).record["sentences"] == 1
    loaded.limit = size - 1
    with pytest.raises(
        ValueError, match=f"item P36/Q0, template 0, option 'Niger': {size} tokens, the model takes"
    ):
        run(loaded, TEMPLATES[:1], ["Niger"], ITEMS[:1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "l2r"}, "unknown variant 'l2r'; valid: sum"),
        ({"templates": []}, "relation P36: no template for its 4 items"),
        ({"options": []}, "item P36/Q0: its candidate set 'set' has no options"),
        ({"templates": [(0, "The capital is [Y].")]}, r"expected one \[X\] and one \[Y\]"),
    ],
)
def test_unscorable_input_is_an_error(change, message):
    with pytest.raises(ValueError, match=message):
        run(tiny("gpt2"), **change)


def test_forced_bos_falls_back_to_eos_and_fails_without_both():
    loaded = tiny("gpt2", bos="forced")
    loaded.tokenizer.bos_token = None
    assert score.bos_prefix(loaded)[1] == "added [2]"
    loaded.tokenizer.eos_token = None
    with pytest.raises(ValueError, match="neither BOS nor EOS"):
        score.bos_prefix(loaded)


NO_WIDTH = "\u200b"
#: as BERT's, which drops characters without width
DROPS = normalizers.BertNormalizer(lowercase=False)
#: as SentencePiece's: they become spaces, which are merged
MERGES = [normalizers.Replace(NO_WIDTH, " "), normalizers.Replace(Regex(" +"), " ")]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        *((name, label) for name in ("bert", "gpt2", "t5") for label in ("", " ", NO_WIDTH)),
        *(
            (style, label)
            for style in ("bpe", "unigram")
            for label in ("  ", NO_WIDTH, 2 * NO_WIDTH)
        ),
    ],
)
def test_an_option_without_tokens_is_reported_and_never_wins(name, label):
    """Also one whose tokens are white space alone, of a SentencePiece tokenizer."""
    if name in CONFIGS:
        loaded = tiny(name, bos="forced" if name == "gpt2" else "")
        loaded.tokenizer.backend_tokenizer.normalizer = DROPS
    else:
        tok = copy.deepcopy(sentencepiece("causal", name))
        first = [one] if (one := tok.backend_tokenizer.normalizer) else []
        tok.backend_tokenizer.normalizer = normalizers.Sequence([*MERGES, *first])
        loaded = with_tokenizer("gpt2", tok)
    items = [score.Item("q1", "P36", "France", "s")]
    message = rf"item q1, template 0, option {re.escape(repr(label))}: its text has no tokens"
    with pytest.raises(ValueError, match=message):
        score.score(loaded, items, {"s": ["Paris", label]}, {"P36": [(0, "[X] has [Y].")]})


def test_a_space_token_before_a_decoded_answer_belongs_to_it():
    """The encoder reads the same text for all options: the sentence with the answer replaced, and
    the decoder writes the answer with its leading space, whether that is a token of its own."""
    loaded = with_tokenizer("t5", sentencepiece("seq2seq", "unigram"))
    tok, options = loaded.tokenizer, ["Paris", "é"]
    result = score.score(loaded, [Item("q1", "P36", "Rome", "s")], {"s": options},
                         {"P36": [(0, "[X] is in [Y].")]}).columns  # fmt: skip
    context = tok.convert_tokens_to_ids(["▁Rome", "▁is", "▁in", "<extra_id_0>", ".", "</s>"])
    expected = []
    for pieces in (["▁Paris"], ["▁", "é"]):
        ids = tok.convert_tokens_to_ids(["<pad>", "<extra_id_0>", *pieces])
        logits = loaded.model(torch.tensor([context]), decoder_input_ids=torch.tensor([ids])).logits
        said = logits[0].log_softmax(-1)
        expected.append(sum(said[place, ids[place + 1]].item() for place in range(1, len(ids) - 1)))
    assert result["sum"].tolist() == pytest.approx(expected, abs=1e-9)
    assert result["answer_sum"].tolist() == pytest.approx(expected, abs=1e-9)
    assert result["answer_count"].tolist() == [1, 2]


@pytest.mark.parametrize("style", ["bpe", "unigram"])
def test_words_are_split_at_spaces_if_the_tokenizer_has_none(style):
    tok = copy.deepcopy(sentencepiece("masked", style))
    # spaces are replaced without pre-tokenization, so every word id is 0
    tok.backend_tokenizer.pre_tokenizer = None
    tok.backend_tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    assert set(tok("Niger and Rome.", add_special_tokens=False).word_ids()) == {0}
    loaded = with_tokenizer("bert", tok)
    asked: dict = {"templates": TEMPLATES[:1], "items": ITEMS[:1]}
    found = run(loaded, variant="within_word_l2r", **asked).columns["sum"]
    assert (found != run(loaded, variant="sentence_l2r", **asked).columns["sum"]).all()
    for filled, total in zip(filled_sentences(**asked), found, strict=True):
        coded = tok(filled.text, return_offsets_mapping=True)
        ids, spans = coded["input_ids"], coded["offset_mapping"]
        number = [filled.text[:end].count(" ") for _, end in spans]
        inner, expected = range(1, len(ids) - 1), 0.0
        for place in inner:
            row = [
                tok.mask_token_id if k >= place and number[k] == number[place] and k in inner else i
                for k, i in enumerate(ids)
            ]
            said = loaded.model(torch.tensor([row])).logits[0, place].log_softmax(-1)
            expected += float(said[ids[place]])
        assert total == pytest.approx(expected, abs=1e-9)


def test_questions_whose_best_options_nearly_tie_are_counted():
    sums = [-3.0, -3.0004, -9.0, -1.0, -1.2, -5.0, -4.0, -4.0]
    columns = {"sum": np.array(sums), "candidate": np.array([0, 1, 2, 0, 1, 0, 0, 1])}
    assert score.count_near_ties(columns) == 2
    assert score.count_near_ties({name: values[:0] for name, values in columns.items()}) == 0
