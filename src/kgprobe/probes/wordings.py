"""From the questions of a benchmark to the prompts that ask them (kg_attributes.md, section 6)."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from kgprobe.probes.prompts import synonyms, wordings
from kgprobe.sampling import take
from kgprobe.schema import PROMPTS, WORDINGS
from kgprobe.sheets import expand


def word(
    items: pl.DataFrame,
    shared: Iterable[Mapping[str, str]],
    more: Iterable[Mapping[str, str]],
    settings: Mapping[str, Any],
    seed: int = 0,
    by_label: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(PROMPTS, WORDINGS) for the relations of ITEMS.

    `shared` are rows of templates.tsv, `more` rows of the other tables. `settings`: `most` wordings
    a relation, `synonyms` variants of each out of the folder `wordnet`; `pararel` adds ParaRel's
    patterns; `stop_space` keeps the space. Relations without any get the wording that `by_label`
    has of their label, of kind `label`. Raises MissingTemplateError for those without that, too.
    """
    table = wordings.join(shared, more, settings["stop_space"])
    triples = dict(items.group_by("relation").len().sort("relation").rows())
    if settings["pararel"]:
        for relation, found in wordings.read_pararel(expand(settings["pararel"]), triples).items():
            table.setdefault(relation, []).extend(found)
    table |= wordings.of_labels(table, by_label or {})
    chosen = wordings.choose(table, triples, settings["most"], seed)
    if settings["synonyms"]:
        database = synonyms.read(expand(settings["wordnet"]))
        every = [wording for some in chosen.values() for wording in some]
        variants = synonyms.variants(every, database, settings["synonyms"], seed)
        chosen = wordings.with_variants(chosen, variants, "synonym")
    prompts, origins = wordings.rows(chosen)
    return (
        pl.DataFrame(prompts, schema=dict(PROMPTS.columns)),
        pl.DataFrame(origins, schema=dict(WORDINGS.columns)),
    )


def for_api(prompts: pl.DataFrame, most: int, seed: int = 0) -> pl.DataFrame:
    """PROMPTS with at most `most` of every relation, by hash of their ids (the paper's ten)."""
    return take(prompts, most, seed, ["prompt"], ["relation"], "prompts of api")
