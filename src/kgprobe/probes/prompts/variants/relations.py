"""Selection of templates per relation, with origins (docs/papers/attributes.md, Prompts).

The input is tables of templates, the output an ordered choice per relation. Every template has a
stable id, whatever else is chosen, and names the template that it was derived from.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kgprobe.benchmarks.label_templates import LABEL
from kgprobe.sampling import hash_key
from kgprobe.schema import PROMPT_ORIGINS, PROMPTS
from kgprobe.settings.probes import AttributePrompts
from kgprobe.templates import answer_is_last, sentence

#: In order of use. `manual` rows of templates.tsv count as our own, `label` is the generic template
#: of a relation that has no other.
KINDS = ("lama", "own", "paraphrase", "generated", LABEL, "synonym")


class MissingTemplateError(ValueError):
    """Relations have no template; the message lists all of them, most frequent first."""


@dataclass(frozen=True)
class PromptVariant:
    """One template of a relation; `parent` is the id that it rephrases, `change` the edit."""

    id: str
    relation: str
    kind: str
    text: str
    parent: str = ""
    change: str = ""


Table = Mapping[str, Sequence[PromptVariant]]


def join(
    shared: Iterable[Mapping[str, str]],
    more: Iterable[Mapping[str, str]],
    stop_space: bool = False,
) -> dict[str, list[PromptVariant]]:
    """Group templates by relation, from rows of templates.tsv and of tables like attributes.tsv.

    `stop_space` keeps LAMA's space before the full stop, as in code from BERT's time; otherwise it
    is removed. Raises ValueError for a duplicate index in a relation, an unknown kind, a text
    without exactly one [X] and one [Y], and a parent that does not exist.
    """
    table: dict[str, dict[str, PromptVariant]] = {}
    for row in [*shared, *more]:
        name = f"{row['relation']}/{row['index']}"
        kind = "own" if row["kind"] == "manual" else row["kind"]
        parent = row.get("parent") or ("0" if kind == "paraphrase" else "")
        text = row["text"] if stop_space else row["text"].replace(" .", ".")
        if kind not in KINDS:
            raise ValueError(f"template {name}: kind {kind!r}; valid: {', '.join(KINDS)}")
        sentence(text, f"template {name}")
        variants = table.setdefault(row["relation"], {})
        if name in variants:
            raise ValueError(f"template {name}: the index appears twice")
        source = f"{row['relation']}/{parent}" if parent else ""
        variants[name] = PromptVariant(name, row["relation"], kind, text, source)
    for variants in table.values():
        for variant in variants.values():
            if variant.parent and variant.parent not in variants:
                raise ValueError(f"template {variant.id}: no parent {variant.parent}")
    return {relation: list(variants.values()) for relation, variants in table.items()}


def choose(
    table: Table, triples: Mapping[str, int], most: int | None = None, seed: int = 0
) -> dict[str, list[PromptVariant]]:
    """Choose the templates of each relation in `triples` (relation -> number of triples).

    LAMA's template comes first, if there is one, then our own with the answer last, so that
    every kind of model can use one; then as many of the others as `most` allows, by hash. A smaller
    `most` gives a subset. Raises MissingTemplateError, naming all relations without template.
    """
    missing = [(name, n) for name, n in triples.items() if not table.get(name)]
    missing.sort(key=lambda pair: (-pair[1], pair[0]))
    if missing:
        listed = ", ".join(f"{name} ({n})" for name, n in missing)
        raise MissingTemplateError(
            f"{len(missing)} relations have no template (number of triples in brackets): {listed}; "
            "add a row for each to a table of templates (resources/templates/attributes.tsv)"
        )
    return {name: _choose(list(table[name]), most, seed) for name in sorted(triples)}


def _choose(variants: list[PromptVariant], most: int | None, seed: int) -> list[PromptVariant]:
    """Choose at most `most` of one relation's templates, first those that every model can use.

    A text occurs once: as LAMA's, if our own is the same.
    """
    ranked = sorted(variants, key=lambda w: KINDS.index(w.kind))
    first = {variant.text: variant for variant in reversed(ranked)}
    variants = [variant for variant in variants if first[variant.text] is variant]
    lama = [w for w in variants if w.kind == "lama" and (most != 1 or answer_is_last(w.text))][:1]
    ours = [w for w in variants if w.kind == "own" and answer_is_last(w.text)][:1]
    rest = [w for w in variants if w not in (*lama, *ours)]
    rest.sort(key=lambda w: (hash_key(seed, "wording", w.id), w.id))
    kept = (lama + ours + rest)[:most]
    order = {variant.id: place for place, variant in enumerate(variants)}
    return sorted(kept, key=lambda w: (KINDS.index(w.kind), order[w.id]))


def frames(chosen: Table) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return PROMPTS and PROMPT_ORIGINS (with parent and change of every prompt)."""
    rows = [
        {**vars(variant), "prompt": variant.id, "index": index}
        for relation in sorted(chosen)
        for index, variant in enumerate(chosen[relation])
    ]
    return (
        pl.DataFrame(rows, schema=dict(PROMPTS.columns)),
        pl.DataFrame(rows, schema=dict(PROMPT_ORIGINS.columns)),
    )


def word(
    items: pl.DataFrame,
    shared: Iterable[Mapping[str, str]],
    more: Iterable[Mapping[str, str]],
    settings: AttributePrompts,
    seed: int = 0,
    by_label: Mapping[str, str] | None = None,
    drawn: Iterable[Mapping[str, str]] = (),
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (PROMPTS, PROMPT_ORIGINS) for the relations of ITEMS.

    `shared` are rows of templates.tsv, `more` rows of the other tables, `drawn` rows of
    synonyms.tsv. `settings`: at most `most` templates per relation and `synonyms` variants of each;
    `stop_space` keeps the space before a full stop. Relations without a template get the one that
    `by_label` derives from their label, of kind `label`. Raises MissingTemplateError for those
    without that, too.
    """
    table = join(shared, more, settings.stop_space)
    triples = dict(items.group_by("relation").len().sort("relation").rows())
    for name, text in (by_label or {}).items():
        table.setdefault(name, [PromptVariant(f"{name}/{LABEL}", name, LABEL, text)])
    chosen = choose(table, triples, settings.most, seed)
    return frames(with_synonyms(chosen, drawn, settings.synonyms))


def with_synonyms(
    chosen: Table, drawn: Iterable[Mapping[str, str]], most: int
) -> dict[str, list[PromptVariant]]:
    """Add up to `most` variants of each template, after the others, with one word replaced.

    `drawn`: rows of synonyms.tsv (prompt, word, synonym). Texts that the relation already has are
    skipped.
    """
    changes: dict[str, list[tuple[str, str]]] = {}
    for row in drawn:
        changes.setdefault(row["prompt"], []).append((row["word"], row["synonym"]))
    table: dict[str, list[PromptVariant]] = {}
    for relation, variants in chosen.items():
        extended, texts = list(variants), {variant.text for variant in variants}
        for variant in variants:
            for number, (word, synonym) in enumerate(changes.get(variant.id, ())[:most]):
                text = re.sub(
                    rf"(?<![\w\[\]'-]){word}(?![\w\[\]'-])", synonym, variant.text, count=1
                )
                if text not in texts:
                    texts.add(text)
                    name = f"{variant.id}/synonym/{number}"
                    copy = replace(variant, id=name, kind="synonym", text=text)
                    extended.append(replace(copy, parent=variant.id, change=f"{word} > {synonym}"))
        table[relation] = extended
    return table
