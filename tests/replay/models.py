"""Small random models of real architectures that replace those that a replay cannot fetch.

Their weights are random, as their names say; their tokenizers know the words of the benchmarks.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from kgprobe.benchmarks.autoprompt.templates import WORDS_SST2

VOCABULARY = 8000
SPECIALS = ["<pad>", "<s>", "</s>", "<unk>", "<mask>", "<extra_id_0>", "<extra_id_1>"]
WIDE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
#: name -> kind, style of its tokenizer, configuration by size of vocabulary
MADE: dict[str, tuple[str, str, Any]] = {
    "random-bert": (
        "masked",
        "wordpiece",
        lambda v: transformers.BertConfig(vocab_size=v, intermediate_size=128, **WIDE),
    ),
    "random-roberta": (
        "masked",
        "bpe",
        lambda v: transformers.RobertaConfig(
            vocab_size=v, pad_token_id=0, max_position_embeddings=258, intermediate_size=128, **WIDE
        ),
    ),
    "random-gpt2": (
        "causal",
        "bpe",
        lambda v: transformers.GPT2Config(vocab_size=v, n_embd=64, n_layer=2, n_head=4),
    ),
    "random-t5": (
        "seq2seq",
        "bpe",
        lambda v: transformers.T5Config(
            vocab_size=v, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, pad_token_id=0,
            decoder_start_token_id=0,
        ),
    ),
}  # fmt: skip
AUTO = {
    "masked": transformers.AutoModelForMaskedLM,
    "causal": transformers.AutoModelForCausalLM,
    "seq2seq": transformers.AutoModelForSeq2SeqLM,
}


def words(data: Path) -> Iterator[str]:
    """Return the training texts of the tokenizers: LAMA's facts, sentences of reviews."""
    for path in sorted((data / "lama/trex_original").rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            fact = json.loads(line)
            yield f"{fact.get('sub_label', fact.get('sub', ''))} in"
            # whole words, because an answer has to be one token
            yield f" {fact.get('obj_label', fact.get('obj', ''))} ." * 3
    yield from (f" {word} ." * 100 for words in WORDS_SST2.values() for word in words)
    yield from (data / "sst2").rglob("*dev*").__next__().read_text(encoding="utf-8").splitlines()


def tokenizer(kind: str, style: str, texts: list[str]) -> Any:
    """Return a fast tokenizer with the special tokens of its kind of model."""
    if style == "bpe":
        tok = Tokenizer(models.BPE())
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tok.decoder = decoders.ByteLevel()
        trainer: Any = trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=SPECIALS, show_progress=False,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        )  # fmt: skip
        tok.train_from_iterator(texts, trainer)
    else:
        tok = Tokenizer(models.WordPiece(pieces(texts), unk_token="<unk>"))
        tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tok.add_special_tokens(SPECIALS)
    pattern = {"masked": "<s> $A </s>", "seq2seq": "$A </s>", "causal": "$A"}[kind]
    pair = {"masked": "<s> $A </s> $B </s>"}.get(kind, f"{pattern} $B")
    used = [name for name in ("<s>", "</s>") if name in pattern]
    tok.post_processor = processors.TemplateProcessing(
        single=pattern, pair=pair, special_tokens=[(s, tok.token_to_id(s)) for s in used]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tok, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        unk_token="<unk>", mask_token="<mask>", cls_token="<s>", sep_token="</s>",
        extra_special_tokens=["<extra_id_0>", "<extra_id_1>"], model_max_length=256,
    )  # fmt: skip


def pieces(texts: list[str]) -> dict[str, int]:
    """Return a WordPiece vocabulary: letters and the most frequent words.

    It is counted here because the library's trainer breaks ties randomly.
    """
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    counts = Counter(word for text in texts for word, _ in split(text))
    letters = sorted(set("".join(counts)))
    often = sorted((word for word in counts if len(word) > 1), key=lambda w: (-counts[w], w))
    made = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters), *often]
    return {piece: number for number, piece in enumerate(made[:VOCABULARY])}


def make(data: Path, folder: Path) -> list[Path]:
    """Write the missing models, one folder each."""
    texts: list[str] = []
    for name, (kind, style, config) in MADE.items():
        place = folder / name
        if (place / "config.json").is_file():
            continue
        texts = texts or list(words(data))
        tok = tokenizer(kind, style, texts)
        torch.manual_seed(0)
        model = AUTO[kind].from_config(config(len(tok)))
        tok.save_pretrained(place)
        model.save_pretrained(place)
    return [folder / name for name in MADE]
