"""Paraphrases of the templates by a model, frozen into a table that a run can read.

A run reads the table and never the model: what a model says depends on its weights, its libraries
and its seed, and must be looked at by a person before it asks anything.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgprobe.job import versions
from kgprobe.probes.prompts import paraphrase, wordings
from kgprobe.schema import atomic

log = logging.getLogger("kgprobe")
COLUMNS = ("relation", "index", "kind", "text", "parent", "note")


def freeze(
    path: str | Path,
    shared: Iterable[Mapping[str, str]],
    more: Iterable[Mapping[str, str]],
    settings: Mapping[str, Any],
    seed: int = 0,
) -> None:
    """Write a table like kg.tsv with paraphrases of every relation's first wording.

    `settings`: `source` (folder or hub id), `revision`, `sequences` a template. The header says by
    what they were made and how many outputs were rejected for which reason. Raises ValueError
    without a source, or when nothing was accepted.
    """
    if not settings["source"]:
        raise ValueError(
            "wording.paraphraser.source is empty; expected a folder or hub id of a T5 model that "
            "was trained on paraphrases, for example prithivida/parrot_paraphraser_on_T5"
        )
    table = wordings.join(shared, more)
    first = [
        some[0] for _, some in sorted(wordings.choose(table, dict.fromkeys(table, 1), 1).items())
    ]
    model, tokenizer = paraphrase.load_t5(settings["source"], settings["revision"] or None)
    drawn = paraphrase.Settings(sequences=settings["sequences"], seed=seed)
    found, rejected = paraphrase.reword_all(first, paraphrase.t5(model, tokenizer, drawn))
    made = wordings.with_variants({w.relation: [w] for w in first}, found, "generated")
    note = f"{settings['source']} {settings['revision']}".strip()
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
