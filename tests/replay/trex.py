"""T-REx.zip in the real format, generated from real triples: 465 files of aligned documents.

Triples, ids and labels are real. The sentences are generated, as are the days of birth, which are
in the real dump but not in these triples: they depend only on the id.
"""

import zipfile
from collections import defaultdict
from pathlib import Path

import polars as pl

from kgprobe.sources.dumps.trex import PUBLISHED
from tests.replay.wikidata import number
from tools.world.trex import DATETIME, ENTITY, Fact, document, dump_trex

#: Documents of the whole archive; the real one has 4.65 million.
DOCUMENTS = 30_000
#: The property of days of birth, and that of occupations, which people have.
BORN, OCCUPATION = "P569", "P106"


def render(data: Path, target: Path, documents: int = DOCUMENTS) -> Path:
    """Write the archive: the subjects with the most labeled triples, in order of their ids."""
    labels = dict(
        pl.read_csv(
            data / "wikidata/entity_labels.tsv", separator="\t", quote_char=None, infer_schema=False
        ).iter_rows()
    )
    names = dict(
        pl.read_csv(
            data / "wikidata/properties/labels.property.en.tsv.gz",
            separator="\t",
            quote_char=None,
            infer_schema=False,
        )
        .select("node1", pl.col("node2").str.extract(r"^'(.*)'@en$"))
        .drop_nulls()
        .iter_rows()
    )
    triples = pl.read_parquet(data / "wikidata/triples.parquet").filter(
        pl.col("s").is_in(list(labels)) & pl.col("o").is_in(list(labels))
    )
    triples = (
        triples.filter(pl.col("p").is_in(list(names))).select("s", "p", "o").unique().sort(pl.all())
    )
    facts: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    pairs: dict[tuple[str, str], list[str]] = defaultdict(list)
    for subject, relation, value in triples.iter_rows():
        facts[subject][relation].append((ENTITY + value, labels[value]))
        pairs[ENTITY + subject, ENTITY + value].append(relation)
        if relation == OCCUPATION and BORN not in facts[subject]:
            day = number(f"born {subject}")
            date = f"{1800 + day % 180}-{1 + day % 12:02}-{1 + day % 28:02}T00:00:00Z^^{DATETIME}"
            facts[subject][BORN].append((date, date[:10]))
            pairs[ENTITY + subject, date].append(BORN)
    richest = sorted(facts, key=lambda s: (-sum(map(len, facts[s].values())), s))[:documents]
    chosen = sorted(richest, key=lambda s: int(s[1:]))
    each = -(-len(chosen) // len(PUBLISHED))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, name in enumerate(PUBLISHED):
            made = [
                document(
                    subject,
                    labels[subject],
                    [Fact(r, names.get(r, "date of birth"), v) for r, v in facts[subject].items()],
                    pairs,
                    "It",
                )
                for subject in chosen[place * each : (place + 1) * each]
            ]
            archive.writestr(f"{name}.json", dump_trex(made))
    return target
