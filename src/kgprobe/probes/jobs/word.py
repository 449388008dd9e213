"""From the questions of a benchmark to the prompts that ask them."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from kgprobe.benchmarks import own_words
from kgprobe.job import versions
from kgprobe.probes.prompts.wordings import paraphrase, relations, synonyms
from kgprobe.sampling import take
from kgprobe.schema import PROMPTS, WORDINGS, atomic
from kgprobe.settings import Paraphraser, Wording
from kgprobe.sheets import expand


def word(
    items: pl.DataFrame,
    shared: Iterable[Mapping[str, str]],
    more: Iterable[Mapping[str, str]],
    settings: Wording,
    seed: int = 0,
    by_label: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(PROMPTS, WORDINGS) for the relations of ITEMS.

    `shared` are rows of templates.tsv, `more` rows of the other tables. `settings`: `most` wordings
    a relation, `synonyms` variants of each out of the folder `wordnet`; `pararel` adds ParaRel's
    patterns; `stop_space` keeps the space. Relations without any get the wording that `by_label`
    has of their label, of kind `label`. Raises MissingTemplateError for those without that, too.
    """
    shared, more = list(shared), list(more)
    table = relations.join(shared, more, settings.stop_space)
    triples = dict(items.group_by("relation").len().sort("relation").rows())
    if settings.pararel:
        for relation, found in relations.read_pararel(expand(settings.pararel), triples).items():
            table.setdefault(relation, []).extend(found)
    table |= relations.of_steps(own_words.phrases([*shared, *more]), triples)
    table |= relations.of_labels(table, by_label or {})
    chosen = relations.choose(table, triples, settings.most, seed)
    if settings.synonyms:
        database = synonyms.read(expand(settings.wordnet))
        every = [wording for some in chosen.values() for wording in some]
        variants = synonyms.variants(every, database, settings.synonyms, seed)
        chosen = relations.with_variants(chosen, variants, "synonym")
    prompts, origins = relations.rows(chosen)
    return (
        pl.DataFrame(prompts, schema=dict(PROMPTS.columns)),
        pl.DataFrame(origins, schema=dict(WORDINGS.columns)),
    )


def for_api(prompts: pl.DataFrame, most: int, seed: int = 0) -> pl.DataFrame:
    """PROMPTS with at most `most` of every relation, by hash of their ids (the paper's ten)."""
    return take(prompts, most, seed, ["prompt"], ["relation"], "prompts of api")


log = logging.getLogger("kgprobe")
COLUMNS = ("relation", "index", "kind", "text", "parent", "note")


def freeze(
    path: str | Path,
    shared: Iterable[Mapping[str, str]],
    more: Iterable[Mapping[str, str]],
    settings: Paraphraser,
    seed: int = 0,
) -> None:
    """Write a table like attributes.tsv with paraphrases of every relation's first wording.

    `settings`: `source` (folder or hub id), `revision`, `sequences` a template. The header says by
    what they were made and how many outputs were rejected for which reason. Raises ValueError
    without a source, or when nothing was accepted.
    """
    if not settings.source:
        raise ValueError(
            "wording.paraphraser.source is empty; expected a folder or hub id of a T5 model that "
            "was trained on paraphrases, for example prithivida/parrot_paraphraser_on_T5"
        )
    table = relations.join(shared, more)
    first = [
        some[0] for _, some in sorted(relations.choose(table, dict.fromkeys(table, 1), 1).items())
    ]
    model, tokenizer = paraphrase.load_t5(settings.source, settings.revision or None)
    drawn = paraphrase.Settings(sequences=settings.sequences, seed=seed)
    found, rejected = paraphrase.reword_all(first, paraphrase.t5(model, tokenizer, drawn))
    made = relations.with_variants({w.relation: [w] for w in first}, found, "generated")
    note = f"{settings.source} {settings.revision}".strip()
    rows = paraphrase.table([w for some in made.values() for w in some], note)
    counted = ", ".join(f"{reason} {n}" for reason, n in sorted(rejected.items())) or "none"
    log.info("%d paraphrases accepted; rejected: %s", len(rows), counted)
    if not rows:
        raise ValueError(f"{note}: no paraphrase was accepted; rejected: {counted}")
    used = ", ".join(f"{name} {version}" for name, version in sorted(versions().items()))
    head = [f"# Paraphrases by {note}, seed {seed}; {used}.", f"# Rejected: {counted}."]
    lines = ["\t".join(row[column] for column in COLUMNS) for row in rows]
    with atomic(path) as temporary:
        temporary.write_text("\n".join([*head, "\t".join(COLUMNS), *lines]) + "\n", "utf-8")
