"""Prompts for the questions of a benchmark."""

from collections.abc import Iterable, Mapping

import polars as pl

from kgprobe.probes.prompts.variants import relations
from kgprobe.sampling import take
from kgprobe.schema import PROMPT_ORIGINS, PROMPTS
from kgprobe.settings.probes import AttributePrompts


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
    shared, more = list(shared), list(more)
    table = relations.join(shared, more, settings.stop_space)
    triples = dict(items.group_by("relation").len().sort("relation").rows())
    table |= relations.of_labels(table, by_label or {})
    chosen = relations.choose(table, triples, settings.most, seed)
    if settings.synonyms:
        chosen = relations.with_synonyms(chosen, drawn, settings.synonyms)
    prompts, origins = relations.rows(chosen)
    return (
        pl.DataFrame(prompts, schema=dict(PROMPTS.columns)),
        pl.DataFrame(origins, schema=dict(PROMPT_ORIGINS.columns)),
    )


def for_api(prompts: pl.DataFrame, most: int, seed: int = 0) -> pl.DataFrame:
    """Select at most `most` PROMPTS of every relation, by hash of their ids (the paper's ten)."""
    return take(prompts, most, seed, ["prompt"], ["relation"], "prompts of api")
