"""BEAR by template: accuracy, agreement, and where in the sentence the answer stands."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe.metrics.intervals import of_share, percentile
from kgprobe.tables import table
from kgprobe.tables.bear import Cells, wilson_percent
from kgprobe.tables.study import Study


def templates(studies: Sequence[Study]) -> pl.DataFrame:
    """`bear_templates`: accuracy by template and by the answer's position in it, and agreement.

    agreement: share of items whose best option is the same under all templates (ties: lowest
    index); correct in all: share that is right under all. n: items; by position: items x templates.
    """
    cells: Cells = []
    for study in studies:
        for number, (probe, _) in enumerate(study.probes):
            cells += _by_template(study, number, probe.label)
        cells += _by_position(study)
    return table.build(cells)


def answer_position(template: str) -> str:
    """Where [Y] stands: last (but for one sign), before the subject, or elsewhere.

    >>> answer_position("[X] was born in [Y].")
    'answer last'
    """
    rest = template.partition("[Y]")[2].strip()
    if len(rest) <= 1:
        return "answer last"
    before = template.find("[Y]") < template.find("[X]")
    return "answer before subject" if before else "answer elsewhere"


def _by_template(study: Study, number: int, label: str) -> Cells:
    hits = study.hits(number)
    row, n = partial(table.cell, "bear_templates", label), len(hits)
    shares = {f"template {t}": hits[:, i] for i, t in enumerate(study.templates)}
    if len(study.templates) > 1:
        winners = study.hits(number, "winner")
        shares["agreement"] = (winners == winners[:, :1]).all(axis=1).astype(float)
        shares["correct in all"] = hits.prod(axis=1)
    return [
        row(column, 100 * share.mean(), n, wilson_percent(share))
        for column, share in shares.items()
    ]


def _by_position(study: Study) -> Cells:
    """Accuracy over all (item, template) pairs whose template has the answer at one position."""
    labels = _positions(study)
    cells: Cells = []
    for name in sorted(set(labels.ravel().tolist())):
        chosen = labels == name
        values = [(study.hits(i) * chosen).sum(axis=1) for i in range(len(study.probes))]
        # The number of pairs is fixed: all items of a relation have the same templates
        boot, pairs = study.resample(np.column_stack(values)), int(chosen.sum())
        for position, (probe, _) in enumerate(study.probes):
            drawn = percentile(boot.replicates[:, :, position].sum(axis=1) / pairs)
            value, n = boot.sums[:, position].sum() / pairs, int(chosen.any(axis=1).sum())
            low, high = of_share(drawn, value * n, n)[0]
            row = partial(table.cell, "bear_templates", probe.label)
            cells.append(row(name, 100 * value, pairs, (100 * low, 100 * high)))
    return cells


def _positions(study: Study) -> NDArray[np.str_]:
    """items x templates: the answer's position in the template of the item's relation."""
    texts = study.prompts.select("relation", "index", "text").iter_rows()
    found = {(relation, index): answer_position(text) for relation, index, text in texts}
    owners = study.ordered["relation"].to_list()
    for relation in owners:
        for index in study.templates:
            if (relation, index) not in found:
                raise ValueError(f"{study.benchmark}: {relation} has no template {index}")
    return np.array([[found[relation, t] for t in study.templates] for relation in owners])
