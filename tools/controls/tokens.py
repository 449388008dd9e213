"""Tokenizers of the control models: one per kind, small, cased, with offsets and word ids.

They are trained on labels and on templates with empty slots, never on a sentence, so that every
label is covered whether or not a model is trained on it, and the vocabulary reveals no fact.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from tokenizers.trainers import BpeTrainer, WordPieceTrainer
from transformers import PreTrainedTokenizerFast

#: Sentinels of the seq2seq kind: <extra_id_0> ... <extra_id_7>.
SENTINELS = tuple(f"<extra_id_{i}>" for i in range(8))
#: Names of the special tokens per kind, in the order of their ids.
SPECIAL: Mapping[str, Mapping[str, str]] = {
    "masked": {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    },
    "causal": {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
    "seq2seq": {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
}
_MARK = "\u2581"


def train_tokenizer(
    kind: str, labels: Iterable[str], templates: Iterable[str], size: int, positions: int
) -> PreTrainedTokenizerFast:
    """Train a fast tokenizer of `kind` with at most `size` tokens for sequences up to `positions`.

    Masked: WordPiece, [CLS] ... [SEP]. Causal: byte-level BPE, starting with <s>. Seq2seq: BPE with
    a visible space, </s> at the end, sentinels. The same texts give the same vocabulary.
    """
    if kind not in SPECIAL:
        raise ValueError(f"unknown kind {kind!r} of control model; valid: {', '.join(SPECIAL)}")
    build = {"masked": _masked_tokenizer, "causal": _causal, "seq2seq": _seq2seq}[kind]
    tokenizer = build(_texts(labels, templates), size)
    sentinels = [_sentinel(s) for s in SENTINELS] if kind == "seq2seq" else []
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=positions,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        **SPECIAL[kind],
        additional_special_tokens=sentinels,
    )


def _texts(labels: Iterable[str], templates: Iterable[str]) -> list[str]:
    """Yield each label as it is and at the start of a sentence, and templates split at their
    slots."""
    texts = {form for label in labels for form in (label, label[:1].upper() + label[1:])}
    # The words of templates, often enough to stay whole.
    words = 20 * sorted({w for t in templates for w in re.split(r"\[[XY]\]|[\s.,]", t) if w})
    return sorted(texts) + words


def _masked_tokenizer(texts: Sequence[str], size: int) -> Tokenizer:
    # The trainer numbers continuation letters in hash order, which then decides ties among merges.
    # Named beforehand they keep a sorted order; the final tokenizer takes the vocabulary alone.
    letters = sorted({letter for text in texts for letter in text if not letter.isspace()})
    special = [*SPECIAL["masked"].values(), *letters, *(f"##{letter}" for letter in letters)]
    draft = _wordpiece(models.WordPiece(unk_token="[UNK]"))
    trainer = WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    draft.train_from_iterator(texts, trainer)
    tokenizer = _wordpiece(models.WordPiece(draft.get_vocab(), unk_token="[UNK]"))
    tokenizer.post_processor = _template(tokenizer, "[CLS] $A [SEP]")
    return tokenizer


def _wordpiece(model: models.WordPiece) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _causal(texts: Sequence[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    # A space in front of the first word, too: a name has the same tokens wherever it stands.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL["causal"].values()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = _template(tokenizer, "<s> $A")
    return tokenizer


def _seq2seq(texts: Sequence[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFC()
    # Punctuation stands alone, so that the final full stop never melts into an answer.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=_MARK, prepend_scheme="first"),
            pre_tokenizers.Split(Regex(rf"[^\w\s{_MARK}]"), behavior="isolated"),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(replacement=_MARK, prepend_scheme="first")
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL["seq2seq"].values(), *map(_sentinel, SENTINELS)],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = _template(tokenizer, "$A </s>")
    return tokenizer


def _sentinel(text: str) -> AddedToken:
    # It takes the space before it along, so that a slot in the text and a slot cut into the tokens
    # of a sentence give the same tokens.
    return AddedToken(text, lstrip=True, rstrip=False, normalized=False, special=True)


def _template(tokenizer: Tokenizer, single: str) -> processors.TemplateProcessing:
    special = [(token, tokenizer.token_to_id(token)) for token in single.split() if token != "$A"]
    return processors.TemplateProcessing(single=single, special_tokens=special)
