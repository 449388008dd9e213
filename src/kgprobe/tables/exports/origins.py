"""Sources and licenses of exported questions, which all exports but lm-pub-quiz's name.

A file of questions records in its metadata what it was made from; anything missing there (for a
user-supplied graph) has to be specified.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear.released import METADATA, is_whole
from kgprobe.tables.exports.folders import ExportError


@dataclass(frozen=True)
class Source:
    """A source of questions: title, SPDX id of its license, its URL, attribution, and the languages
    of its labels if known."""

    title: str
    license: str
    url: str
    attribution: str
    languages: tuple[str, ...] = ()


BEAR = (
    "Jacek Wiland, Max Ploner, Alan Akbik: BEAR: A Unified Framework for Evaluating Relational "
    "Knowledge in Causal and Masked Language Models. Findings of NAACL 2024, arXiv:2404.04113."
)
ONTOPROBE = (
    "Weiqi Wu, Chengyue Jiang, Yong Jiang, Pengjun Xie, Kewei Tu: Do PLMs Know and Understand "
    "Ontological Knowledge? ACL 2023, arXiv:2309.05936."
)
ATTRIBUTES = (
    "Vishwas Mruthyunjaya, Pouya Pezeshkpour, Estevam Hruschka, Nikita Bhutani: Rethinking "
    "Language Models as Symbolic Knowledge Graphs. 2023, arXiv:2308.13676."
)
SOURCES: Mapping[str, Source] = {
    "world": Source(
        "the embedded knowledge graph of kgprobe", "CC0-1.0", "https://github.com/kgprobe/kgprobe",
        "kgprobe, resources/world: general facts, entered by hand", ("en",),
    ),
    "wikidata": Source(
        "Wikidata", "CC0-1.0", "https://www.wikidata.org/wiki/Wikidata:Licensing",
        "Wikidata and its contributors",
    ),
    "dbpedia": Source(
        "DBpedia", "CC-BY-SA-3.0", "https://www.dbpedia.org/about/", "DBpedia and Wikipedia",
    ),
    "bear": Source(
        "the released BEAR", "CC-BY-SA-4.0", "https://github.com/lm-pub-quiz/BEAR", BEAR, ("en",),
    ),
    "trex": Source(
        "T-REx", "CC-BY-SA-4.0", "https://hadyelsahar.github.io/t-rex/",
        "Hady Elsahar et al.: T-REx: A Large Scale Alignment of Natural Language with Knowledge "
        "Base Triples. LREC 2018.", ("en",),
    ),
    "lama": Source(
        "LAMA", "CC-BY-NC-4.0", "https://github.com/facebookresearch/LAMA",
        "Fabio Petroni et al.: Language Models as Knowledge Bases? EMNLP 2019.",
        ("en",),
    ),
}  # fmt: skip
#: rule that made a benchmark -> its sources; for other rules the wildcard `origin` names it
RULES = {
    "load_bear": ("bear",),
    "load_lama": ("lama", "trex"),
    "build_prompt_facts": ("trex",),
    "build_prompt_relations": ("trex",),
}
#: rule that made a benchmark -> its source, whose files were released without a license
UNLICENSED = {
    "load_ontoprobe": Source(
        "the released OntoProbe", "", "https://github.com/vickywu1022/OntoProbe-PLMs", ONTOPROBE,
        ("en",),
    ),
}  # fmt: skip
#: beginning of the name of the rule that made a benchmark -> the paper to cite; for others BEAR's
PAPERS = {
    "construct_ontoprobe": ONTOPROBE,
    "load_ontoprobe": ONTOPROBE,
    "build_attributes": ATTRIBUTES,
}
#: classes and properties of the embedded graph derive from DBpedia's ontology
ONTOLOGY = ("world", "dbpedia")


def of(folder: Path, license: str = "") -> list[Source]:
    """Return the sources of the questions in a benchmark's folder.

    `license`: SPDX id that the user gives for a user-supplied graph. Raises ExportError if neither
    the files nor the user specify one, and if they differ.
    """
    record = _record(folder)
    wildcards = record.get("wildcards")
    origin = str(wildcards.get("origin", "")) if isinstance(wildcards, dict) else ""
    if record.get("source") == "resources/world":
        origin = "world"
    names = RULES.get(str(record.get("rule")), (origin,))
    if (record.get("rule"), origin) == ("construct_ontoprobe", "world"):
        names = ONTOLOGY
    if all(name in SOURCES for name in names):
        # the setting `languages` determines those of pulled data; `mul` is not a language
        given = record.get("languages")
        tags = [tag.lower().split("-")[0] for tag in given] if isinstance(given, list) else []
        of_run = tuple(tag for tag in tags if tag != "mul")
        known = [SOURCES[name] for name in names]
        held = ", ".join(dict.fromkeys(source.license for source in known))
        if license not in ("", held):
            raise ExportError(f"{folder}: the license of these questions is {held}; "
                              "omit --license")  # fmt: skip
        return [source if source.languages else replace(source, languages=of_run)
                for source in known]  # fmt: skip
    if released := unlicensed(folder):
        if not license:
            raise ExportError(
                f"{folder}: {released.title} has no license; ask its authors, and give the SPDX id "
                "of theirs with --license"
            )
        return [replace(released, license=license)]
    if not license:
        raise ExportError(
            f"{folder}: the license of {origin or 'these questions'} is not known; give "
            "its SPDX id with --license, such as CC-BY-4.0"
        )
    return [Source(origin or folder.name, license, "", origin or folder.name)]


def unlicensed(folder: Path) -> Source | None:
    """Return the source of a benchmark's questions if it was released without a license."""
    return UNLICENSED.get(str(_record(folder).get("rule")))


def paper_of(folder: Path) -> str:
    """Return the paper that proposes the questions in a benchmark's folder."""
    rule = str(_record(folder).get("rule"))
    return next((paper for name, paper in PAPERS.items() if rule.startswith(name)), BEAR)


def _record(folder: Path) -> dict[str, object]:
    """Return what a benchmark was made from; the released BEAR is recognized by its size."""
    if (folder / METADATA).is_file():
        return {"rule": "load_bear"} if is_whole(folder) else {}
    files = [folder / name for name in ("items.parquet", "examples.parquet")]
    return schema.provenance(next((file for file in files if file.is_file()), files[0]))
