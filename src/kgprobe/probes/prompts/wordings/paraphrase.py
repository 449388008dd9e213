"""Paraphrases by a model, behind one interface: a text in, a list of texts out.

The paper used Parrot, a T5 that was trained on paraphrases. Its kind loses brackets, capitals and
punctuation, repeats its input and invents words (docs/papers/attributes.md, Prompts), so nothing
that it says is believed: [X] and [Y] travel as names, and an output in which each name does not
stand exactly once is rejected and counted. What is accepted is frozen into a table; a run reads the
table, never the model.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kgprobe.probes.prompts.wordings.relations import Wording
from kgprobe.templates import fill

Paraphraser = Callable[[str], Sequence[str]]
#: (input, output) -> a score in [0, 1]: adequacy or fluency
Judge = Callable[[str, str], float]
#: Names that no label or template has, of letters alone, so that they survive lower-casing and
#: stripping.
NAMES = {"[X]": "Quorvath", "[Y]": "Zelmindra"}
#: What Parrot leaves of its input.
STRIPPED = re.compile(r"[^a-zA-Z0-9 ?'\-/:.]")
PARROT_THRESHOLD = 0.9


@dataclass
class Reworded:
    """Accepted texts of one template, and why the others were rejected."""

    accepted: list[str] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)


def reword(
    template: str,
    paraphraser: Paraphraser,
    judges: Mapping[str, Judge] | None = None,
    threshold: float = PARROT_THRESHOLD,
    longest: int = 200,
) -> Reworded:
    """Paraphrases of a template with both placeholders whole, each text once.

    Reasons of rejection: `placeholder` (not each exactly once), `same` (nothing changed but case
    and punctuation), `repeated`, `empty`, `long` (over `longest` characters), and the names of
    `judges` that give less than `threshold`. Raises ValueError for a template without exactly one
    [X] and one [Y], or one that holds one of NAMES.

    >>> reword("[X] was born in [Y].", lambda t: ["quorvath's birthplace is zelmindra"]).accepted
    ["[X]'s birthplace is [Y]."]
    """
    asked = _named(template)
    found, seen = Reworded(), {_bare(template)}
    for answer in paraphraser(asked):
        text = " ".join(answer.split())
        restored = _restored(text)
        reason = _reason(text, restored, template, seen, longest)
        for name, judge in (judges or {}).items():
            if not reason and judge(asked, text) < threshold:
                reason = name
        if reason or restored is None:
            found.rejected[reason or "placeholder"] += 1
        else:
            seen.add(_bare(restored))
            found.accepted.append(restored)
    return found


def reword_all(
    wordings: Iterable[Wording],
    paraphraser: Paraphraser,
    judges: Mapping[str, Judge] | None = None,
    threshold: float = PARROT_THRESHOLD,
) -> tuple[dict[str, list[tuple[str, str]]], Counter[str]]:
    """(id -> accepted texts with the word `generated`, reasons of rejection over all wordings).

    The first is what `relations.with_variants` takes.
    """
    variants: dict[str, list[tuple[str, str]]] = {}
    rejected: Counter[str] = Counter()
    for wording in wordings:
        made = reword(wording.text, paraphraser, judges, threshold)
        rejected += made.rejected
        variants[wording.id] = [(text, "generated") for text in made.accepted]
    return variants, rejected


def table(wordings: Sequence[Wording], note: str) -> list[dict[str, str]]:
    """Rows of a table like attributes.tsv for generated wordings; their parents stand beside.

    An index is `<parent>g<number>`, which no hand-written row has. `note`: model and versions.
    """
    counts: Counter[str] = Counter()
    made = []
    for wording in wordings:
        if wording.kind == "generated":
            parent = wording.parent.rpartition("/")[2]
            index = f"{parent}g{counts[wording.parent]}"
            counts[wording.parent] += 1
            made.append(
                {
                    "relation": wording.relation,
                    "index": index,
                    "kind": "generated",
                    "text": wording.text,
                    "parent": parent,
                    "note": note,
                }
            )
    return made


@dataclass(frozen=True)
class Settings:
    """How texts are drawn. Parrot's own: top_k 50, top_p 0.95, 10 sequences, at most 32 tokens."""

    sequences: int = 10
    most_tokens: int = 64
    top_k: int = 50
    top_p: float = 0.95
    seed: int = 0
    prefix: str = "paraphrase: "


def t5(model: Any, tokenizer: Any, settings: Settings | None = None) -> Paraphraser:
    """A paraphraser that samples from an encoder-decoder model, seeded per text.

    Parrot does not seed, and its limit of tokens counts characters; here the seed follows from the
    text, so that neither order nor number of templates matters, and the limit counts tokens.
    """
    import torch

    from kgprobe.sampling import hash_key

    chosen = settings or Settings()

    def paraphrase(text: str) -> list[str]:
        batch = tokenizer(chosen.prefix + STRIPPED.sub("", text), return_tensors="pt")
        with torch.random.fork_rng(devices=[]), torch.inference_mode():
            torch.manual_seed(hash_key(chosen.seed, "paraphrase", text) % 2**63)
            made = model.generate(
                input_ids=batch["input_ids"].to(model.device),
                attention_mask=batch["attention_mask"].to(model.device),
                do_sample=True,
                top_k=chosen.top_k,
                top_p=chosen.top_p,
                num_return_sequences=chosen.sequences,
                max_new_tokens=chosen.most_tokens,
            )
        return [str(text) for text in tokenizer.batch_decode(made, skip_special_tokens=True)]

    return paraphrase


def load_t5(source: str, revision: str | None = None) -> tuple[Any, Any]:
    """(model, tokenizer) of a folder or hub id, float32, for `t5`."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
    model = AutoModelForSeq2SeqLM.from_pretrained(source, revision=revision, dtype=torch.float32)
    return model.eval(), tokenizer


def _named(template: str) -> str:
    """The template with names in place of the placeholders."""
    for name in NAMES.values():
        if name.casefold() in template.casefold():
            raise ValueError(f"template {template!r} holds {name!r}, which stands for a place")
    return fill(template, NAMES["[X]"], NAMES["[Y]"], upper_first=False).text


def _restored(text: str) -> str | None:
    """The text with placeholders for names, capital first and a stop; None if any is not once."""
    if "[" in text or "]" in text:
        return None
    for placeholder, name in NAMES.items():
        pattern = re.compile(rf"(?<![A-Za-z]){name}(?![A-Za-z])", re.IGNORECASE)
        # counted without the borders, too: a name inside of a longer word is a spoilt name
        if len(re.findall(name, text, re.IGNORECASE)) != 1 or not pattern.search(text):
            return None
        text = pattern.sub(placeholder, text)
    text = text.rstrip(" .?!") + "."
    return text[0].upper() + text[1:]


def _reason(
    text: str, restored: str | None, template: str, seen: set[str], longest: int
) -> str | None:
    """Why an output is rejected, or None."""
    if not text:
        return "empty"
    if restored is None:
        return "placeholder"
    if _bare(restored) == _bare(template):
        return "same"
    if _bare(restored) in seen:
        return "repeated"
    return "long" if len(restored) > longest else None


def _bare(text: str) -> str:
    """What is compared: letters, digits and placeholders, without case."""
    return " ".join(re.findall(r"\[x\]|\[y\]|\w+", text.casefold()))
