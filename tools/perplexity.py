"""Perplexity of every template of the most frequent relations, on sentences filled with facts.

    python -m tools.perplexity MODEL OUT [RELATIONS [FACTS]]

MODEL: a folder or a GGUF named in models.tsv (smollm2-135m-instruct). OUT: a table with a row for
each template: relation, index, sentences, perplexity (per token, over all of its sentences) and
`ratio` to the median of the templates of its relation, which are filled with the same facts. Facts
are drawn by hash from `wikidata/triples.parquet` in KGPROBE_DATA; the table contains none of them.
Templates with a ratio above OUTLIER are printed for review. Names account for most of a short
sentence's perplexity, and few facts leave it noisy: it shows what to review, not what is wrong.
`perplexity.tsv` is the result for 100 relations and 3 facts of each (nine have no labeled fact).
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from kgprobe import sampling
from kgprobe.experiments import expand, read_table
from kgprobe.files import ROOT
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model
from kgprobe.probes.scoring.sentence import score

TABLES = ("resources/templates/templates.tsv", "resources/templates/attributes.tsv")
OUTLIER = 1.6
SEED = 0


def facts(folder: Path, relations: int, most: int) -> pl.DataFrame:
    """Return p, subject, object (labels): at most `most` labeled facts of each most frequent
    relation."""
    every = pl.read_parquet(folder / "triples.parquet", columns=["s", "p", "o"])
    every = every.filter(pl.col("p").str.contains(r"^P\d+$"))
    order = every.group_by("p").len().sort("len", "p", descending=[True, False])
    own = every.join(order.head(relations), on="p", how="semi").unique()
    labels = pl.read_csv(folder / "entity_labels.tsv", separator="\t", quote_char=None)
    for end, name in (("s", "subject"), ("o", "object")):
        own = own.join(labels.rename({"qid": end, "label": name}), on=end)
    return sampling.take(own, most, SEED, ["s", "o"], ["p"], "wordings")


def own_templates(relations: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
    """Yield (index, text) of the project's templates of each relation."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in TABLES:
        for row in read_table(ROOT / path):
            if row["relation"] in relations:
                found.setdefault(row["relation"], []).append((int(row["index"]), row["text"]))
    return found


def perplexities(
    loaded: Loaded, filled: pl.DataFrame, texts: dict[str, list[tuple[int, str]]]
) -> pl.DataFrame:
    """Return relation, index, sentences, perplexity, ratio of every template."""
    rows = list(enumerate(filled.select("p", "subject", "object").rows()))
    items = [score.Item(str(n), p, subject, str(n)) for n, (p, subject, _) in rows if p in texts]
    options = {str(n): [answer] for n, (_, _, answer) in rows}
    own = {p: texts[p] for p in {item.relation for item in items}}
    columns = score.score(loaded, items, options, own).columns
    names = {item.item: item.relation for item in items}
    frame = pl.DataFrame(
        {"relation": [names[name] for name in columns["item"]], "index": columns["template"],
         "sum": columns["sum"], "count": columns["count"]}
    )  # fmt: skip
    means = frame.group_by("relation", "index").agg(
        sentences=pl.len(), perplexity=(-pl.col("sum").sum() / pl.col("count").sum()).exp()
    )
    ratio = pl.col("perplexity") / pl.col("perplexity").median().over("relation")
    return means.with_columns(ratio=ratio).sort("relation", "index")


def main(model: str, out: str, relations: int = 100, most: int = 8) -> None:
    """Write the table, print the outliers with their text."""
    spec = ModelSpec("model", "causal", f"folder:{model}", bos="forced")
    if model.startswith("gguf:"):
        spec = ModelSpec(
            "model", "causal", model, bos="forced", models_folder="results/embedded/models"
        )
    filled = facts(Path(expand("${KGPROBE_DATA}")) / "wikidata", relations, most)
    texts = own_templates(filled["p"].unique().to_list())
    found = perplexities(load_model(spec), filled, texts)
    head = f"# Perplexity per token by {spec.source}, on at most {most} facts of each relation.\n"
    rounded = found.with_columns(pl.col("perplexity").round(1), pl.col("ratio").round(2))
    Path(out).write_text(head + rounded.write_csv(separator="\t"), encoding="utf-8")
    own = {(p, index): text for p, rows in texts.items() for index, text in rows}
    for row in found.filter(pl.col("ratio") > OUTLIER).sort("ratio", descending=True).rows():
        print(f"{row[4]:.2f}  {row[3]:7.1f}  {row[0]}/{row[1]}  {own[row[0], row[1]]}")
    sizes = np.array([len(rows) for rows in texts.values()])
    spent = f"{os.times().user:.0f} s"
    print(f"{len(texts)} relations, {sizes.sum()} templates, at least {sizes.min()} each; {spent}")


if __name__ == "__main__":
    model, out, *counts = sys.argv[1:]
    main(model, out, *map(int, counts))
