"""Sentences as tokens with roles, and the BOS policies (docs/scoring.md, Text and BOS); text pieces
as they would follow other text, and the special tokens around them."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgprobe.probes.models.batching import Ints, Ragged
from kgprobe.probes.models.load import Loaded, ModelError
from kgprobe.templates import Filled

#: Roles of tokens; special tokens have none.
NONE, TEMPLATE, SUBJECT, ANSWER = -1, 0, 1, 2
SPACES = np.array([c for c in range(0x3001) if chr(c).isspace()], dtype=np.uint32)
#: What may precede a sentence of a causal model.
POLICIES = ("none", "default", "forced")
#: What chat templates read as today's date, or answers would change from day to day: the date that
#: Llama 3's template has where it cannot ask for today's.
DATE = {"%-d": "26", "%d": "26", "%b": "Jul", "%B": "July", "%m": "07", "%Y": "2024", "%y": "24",
        "%a": "Fri", "%A": "Friday", "%H": "00", "%M": "00", "%S": "00"}  # fmt: skip
# the line end belongs to the last block
TODAY = "{{%- macro strftime_now(format) -%}}{{{{ format{} }}}}{{%- endmacro %}}\n".format(
    "".join(f".replace('{code}', '{text}')" for code, text in DATE.items())
)


def special_ids(tokenizer: Any) -> set[int]:
    """Return ids of all special tokens, with or without a role (`<|end|>` of a chat template)."""
    added = tokenizer.added_tokens_decoder.items()
    return {i for i, token in added if token.special} | set(tokenizer.all_special_ids)


def render_chat(tokenizer: Any, content: str) -> str:
    """Return the text of the tokenizer's chat template for a user message, up to the reply, on a
    day that is always the same (DATE)."""
    template = tokenizer.get_chat_template()
    return str(
        tokenizer.apply_chat_template(
            [{"role": "user", "content": content}],
            chat_template=TODAY + template if "strftime_now" in template else template,
            add_generation_prompt=True,
            tokenize=False,
        )
    )


def refuse_control_tokens(
    tokenizer: Any, texts: Sequence[str], name: Callable[[int], str], meant: str | None = None
) -> None:
    """Raise ValueError, with its name, for a text that contains a special token but `meant`.

    A tokenizer parses it as the control token, which would be scored as part of the answer.
    """
    added = [str(token) for token in tokenizer.added_tokens_decoder.values() if token.special]
    tokens = {token for token in (*added, *tokenizer.all_special_tokens) if token.strip()}
    tokens -= {meant or ""}
    whole = "\n".join(texts)
    for token in sorted(token for token in tokens if token in whole):
        number = next((n for n, text in enumerate(texts) if token in text), None)
        if number is not None:
            raise ValueError(
                f"{name(number)}: {texts[number][:80]!r} spells {token!r}, which this model's "
                "tokenizer reads as a control token and not as text; correct the text or leave it "
                "out"
            )


def spells_nothing(tokenizer: Any, text: str) -> bool:
    """Return whether a tokenizer keeps only spaces of a text, which then costs almost nothing."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    read = normalizer.normalize_str(text) if normalizer else text
    return not read.replace("\u2581", " ").strip()


@dataclass(frozen=True)
class Sentences:
    """Tokens of complete sentences with special tokens; `roles` and `words` are parallel arrays.

    Special tokens have role NONE and word -1; a token that belongs to no word has word -1.
    """

    tokens: Ragged
    roles: NDArray[np.int8]
    words: Ints
    straddling: int = 0

    def __len__(self) -> int:
        return len(self.tokens)


def encode(
    loaded: Loaded, filled: Sequence[Filled], name: Callable[[int], str], front: Ints
) -> Sentences:
    """Tokenize complete sentences; `front` is put before each (causal models).

    Other kinds get the special tokens that their tokenizer adds. Text before a sentence is read and
    not scored: it has role NONE. Raises ValueError, with the name of the sentence, for one with
    more tokens than the model has positions, one that contains a special token, or one whose answer
    has no token.
    """
    # a chat template around the sentence contains intended control tokens
    texts = [
        f.text if not f.starts else "\n".join(f.text[a:b] for a, b in f.subject + f.answer)
        for f in filled
    ]
    refuse_control_tokens(loaded.tokenizer, texts, name)
    encoding = loaded.tokenizer(
        [f.text for f in filled],
        add_special_tokens=loaded.spec.kind != "causal",
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        padding=False,
        truncation=False,
    )
    sizes = np.array([len(ids) for ids in encoding["input_ids"]], dtype=np.int64)
    if len(too_long := np.flatnonzero(sizes + len(front) > loaded.limit)):
        first = int(too_long[0])
        raise ValueError(
            f"{name(first)}: {sizes[first] + len(front)} tokens, the model takes {loaded.limit}: "
            f"{filled[first].text[:80]!r}"
        )
    flat = itertools.chain.from_iterable
    total = int(sizes.sum())
    values = np.fromiter(flat(encoding["input_ids"]), dtype=np.int64, count=total)
    special = np.fromiter(flat(encoding["special_tokens_mask"]), dtype=bool, count=total)
    offsets = np.fromiter(flat(flat(encoding["offset_mapping"])), dtype=np.int64, count=2 * total)
    owners = np.repeat(np.arange(len(filled)), sizes)
    role_ids, straddling = token_roles(filled, offsets.reshape(-1, 2), owners)
    answers = [f.text[slice(*f.answer[0])] for f in filled]
    blank = {text for text in set(answers) if spells_nothing(loaded.tokenizer, text)}
    counts = np.bincount(owners[role_ids == ANSWER], minlength=len(filled))
    # an answer without a token would cost nothing and win against every other
    if len(empty := np.flatnonzero((counts == 0) | [text in blank for text in answers])):
        raise ValueError(
            f"{name(int(empty[0]))}: its text has no tokens under this model's tokenizer; correct "
            "the label or leave it out"
        )
    fronts = np.array([f.starts for f in filled], dtype=np.int64)[owners]
    role_ids[special | (offsets.reshape(-1, 2)[:, 1] <= fronts) & (fronts > 0)] = NONE
    words = _words(filled, offsets.reshape(-1, 2), owners)
    if loaded.spec.kind == "masked":
        each = flat(encoding.word_ids(i) for i in range(len(filled)))
        numbers = np.fromiter((-1 if w is None else w for w in each), dtype=np.int64, count=total)
        # for a tokenizer without pre-tokenization the whole text is one word: a word is a run of
        # tokens that are alike in all three
        labels = np.stack([numbers, words, owners])
        borders = np.diff(labels, prepend=labels[:, :1]).any(0)
        words = np.where(numbers < 0, -1, np.cumsum(borders))
    words[special] = -1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    if len(front):
        places = np.repeat(starts[:-1], len(front))
        values = np.insert(values, places, np.tile(front, len(filled)))
        role_ids, words = np.insert(role_ids, places, NONE), np.insert(words, places, -1)
        starts = starts + len(front) * np.arange(len(starts))
    return Sentences(Ragged(values, starts, name), role_ids, words, straddling)


def _words(filled: Sequence[Filled], offsets: Ints, owners: Ints) -> Ints:
    """Return each token's word index: the word, between spaces, of its last non-space character.

    A token of only whitespace belongs to the word after it.
    """
    texts = "".join(f.text for f in filled)
    if not len(offsets) or not texts:
        return np.zeros(len(offsets), dtype=np.int64)
    space = np.fromiter((c.isspace() for c in texts), dtype=bool, count=len(texts))
    before = np.cumsum(space & ~np.concatenate([[False], space[:-1]]))
    letter = np.maximum.accumulate(np.where(space, -1, np.arange(len(texts))))
    sizes = np.array([len(f.text) for f in filled], dtype=np.int64)
    base = (np.cumsum(sizes) - sizes)[owners]
    last = np.minimum(base + np.maximum(offsets[:, 1] - 1, 0), len(texts) - 1)
    return np.asarray(before[np.where(letter[last] >= base + offsets[:, 0], letter[last], last)])


def fits(loaded: Loaded, texts: Sequence[str]) -> bool:
    """Return whether every one of these complete sentences fits into the model's window."""
    is_causal = loaded.spec.kind == "causal"
    front = len(bos_prefix(loaded)[0]) if is_causal else 0
    coded = loaded.tokenizer(list(texts), add_special_tokens=not is_causal)["input_ids"]
    return front + max(map(len, coded)) <= loaded.limit


def bos_prefix(loaded: Loaded) -> tuple[Ints, str]:
    """Return the ids put before a sentence under the model's BOS policy, and a description.

    `none`: nothing. `default`: what the tokenizer adds by itself. `forced`: BOS, else EOS, once.
    Raises ValueError for another policy, and for `forced` without either token.
    """
    policy, tokenizer = loaded.spec.bos, loaded.tokenizer
    if policy == "none":
        return np.zeros(0, dtype=np.int64), "nothing"
    if policy == "default":
        full = tokenizer("a", return_special_tokens_mask=True)
        ids = full["input_ids"][: full["special_tokens_mask"].index(0)]
        return np.array(ids, dtype=np.int64), f"added {ids}" if ids else "nothing"
    if policy == "forced":
        token = tokenizer.bos_token_id
        token = tokenizer.eos_token_id if token is None else token
        if token is None:
            raise ValueError(
                f"{loaded.spec.model}: bos is forced, but its tokenizer has neither BOS nor EOS; "
                "give it the policy none"
            )
        return np.array([token], dtype=np.int64), f"added [{token}]"
    raise ValueError(f"{loaded.spec.model}: bos is {policy!r}; valid: {', '.join(POLICIES)}")


def roles(filled: Filled, offsets: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int8], int]:
    """Compute `token_roles` of one sentence."""
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    return token_roles([filled], spans, np.zeros(len(spans), dtype=np.int64))


def token_roles(
    filled: Sequence[Filled], offsets: NDArray[np.int64], owners: NDArray[np.int64]
) -> tuple[NDArray[np.int8], int]:
    """Return the role of every token (int8), and the number of tokens that straddle two roles.

    `offsets` (tokens x 2) are character spans in the sentences `filled[owners]`. A token has the
    role that its characters without leading whitespace overlap: answer before subject before
    template. A span that begins at index 0 counts like any other.
    """
    low, high = offsets[:, 0].copy(), offsets[:, 1]
    codes = np.frombuffer(
        "".join(f.text for f in filled).encode("utf-32-le", "surrogatepass"), dtype=np.uint32
    )
    sizes = np.array([len(f.text) for f in filled], dtype=np.int64)
    base = (np.cumsum(sizes) - sizes)[owners]
    space = np.isin(codes, SPACES)
    leading = low < high
    while leading.any():
        leading[leading] = space[(base + low)[leading]]
        low += leading
        leading &= low < high
    touched, covered = [], np.zeros(len(low), dtype=np.int64)
    for spans in ([f.answer[0] for f in filled], [f.subject[0] for f in filled]):
        bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)[owners]
        filled_in = bounds[:, 0] < bounds[:, 1]
        touched.append(filled_in & (low < bounds[:, 1]) & (high > bounds[:, 0]))
        covered += np.maximum(np.minimum(high, bounds[:, 1]) - np.maximum(low, bounds[:, 0]), 0)
    answer, subject = touched
    role_ids = np.where(answer, ANSWER, np.where(subject, SUBJECT, TEMPLATE)).astype(np.int8)
    straddling = (answer & subject) | ((answer | subject) & (covered < high - low))
    return role_ids, int(straddling.sum())


#: Prepended to a piece and removed again, so that its first word is tokenized as within a text:
#: tokenizers that add a space at the start of a text would change it otherwise.
LEADS = (".", "a", "1")


def pieces(
    tokenizer: Any,
    texts: Sequence[str],
    starts: bool = False,
    offsets: bool = False,
    behind: str = "",
) -> list[Any]:
    """Tokenize every text without special tokens; with `offsets` return (ids, character spans).

    Unless it `starts` a text, a piece is tokenized as after other text: " word" and "word" are
    then the word with and without its space. `behind` is the preceding character, if
    known; whitespace that the tokenizer joins to the piece belongs to it.
    """
    leads = [LEADS[0] * behind.isspace() + behind] * bool(behind) + [*LEADS, ""]
    results: list[tuple[list[int], list[tuple[int, int]]]] = [([], [])] * len(texts)
    waiting = [i for i, text in enumerate(texts) if text]
    for lead in ("",) if starts else leads:
        if not waiting:
            break
        coded = tokenizer(
            [lead + texts[i] for i in waiting], add_special_tokens=False,
            return_offsets_mapping=True, return_attention_mask=False,
        )  # fmt: skip
        refused = []
        pairs = zip(waiting, coded["input_ids"], coded["offset_mapping"], strict=True)
        for i, ids, spans in pairs:
            first = sum(end <= len(lead) for _, end in spans) if lead else 0
            melted = first < len(ids) and lead[spans[first][0] :].strip()
            if lead and (not first or melted):
                refused.append(i)  # the lead merged with the piece: try another
                continue
            kept = spans[first:] if offsets else []
            char_spans = [(max(a - len(lead), 0), b - len(lead)) for a, b in kept]
            results[i] = (list(ids[first:]), char_spans)
        waiting = refused
    return results if offsets else [ids for ids, _ in results]


@dataclass
class Frame:
    """Special tokens around one or two segments, and their token types (`typed`: whether used)."""

    front: list[int]
    middle: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)
    types_front: list[int] = field(default_factory=list)
    types_middle: list[int] = field(default_factory=list)
    types_back: list[int] = field(default_factory=list)
    types: tuple[int, int] = (0, 0)
    typed: bool = False
    prefix_space: bool = False


def frame(loaded: Loaded, separated: bool, released: bool = False) -> Frame:
    """Return what the tokenizer puts around a text or a pair; for causal models, the BOS prefix.

    Raises ModelError for a pair if the tokenizer has no separator.
    """
    tokenizer = loaded.tokenizer
    is_spaced = released and byte_level(tokenizer)
    if loaded.spec.kind == "causal":
        front = bos_prefix(loaded)[0].tolist()
        return Frame(front, types_front=[0] * len(front), prefix_space=is_spaced)
    ids, types, words = _specials(tokenizer, ["a", "a"] if separated else ["a"])
    slot = [i for i in range(words[0], words[-1]) if i not in words]
    middle, types_middle = [ids[i] for i in slot], [types[i] for i in slot]
    typed = any(types) and separated
    if separated and not middle:
        # the tokenizer has no pairs: use one separator and no type that the model never saw
        if tokenizer.sep_token_id is None:
            raise ModelError(f"{loaded.spec.model}: its tokenizer has no separator for [SEP]")
        ids, types, words = _specials(tokenizer, ["a"])
        middle, types_middle, typed = [int(tokenizer.sep_token_id)], [0], False
    first, last = words[0], words[-1]
    if typed and released:
        types_middle = [1] * len(middle)
    return Frame(
        ids[:first], middle, ids[last + 1 :], types[:first], types_middle, types[last + 1 :],
        (types[first], types[last]), typed, is_spaced,
    )  # fmt: skip


def _specials(tokenizer: Any, texts: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """Return (ids, token types, positions of non-special tokens) of a text or a pair."""
    coded = tokenizer(*texts, return_special_tokens_mask=True, return_token_type_ids=True)
    types = coded.get("token_type_ids") or [0] * len(coded["input_ids"])
    words = [i for i, mark in enumerate(coded["special_tokens_mask"]) if not mark]
    return list(coded["input_ids"]), list(types), words


def byte_level(tokenizer: Any) -> bool:
    """Return whether tokens are byte sequences with a marker for the space, as in GPT-2."""
    return '"ByteLevel"' in tokenizer.backend_tokenizer.to_str()
