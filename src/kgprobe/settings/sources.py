"""Settings of the sources: SPARQL endpoints, dumps, T-REx, released data, your own graphs."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from kgprobe.settings.benchmarks import Bear
from kgprobe.settings.types import (
    Constant,
    Count,
    Length,
    Pattern,
    Positive,
    Proportion,
    Relation,
    Snapshot,
    Url,
)

_FIGSHARE = "https://api.figshare.com/v2/file/download/8760241"
_GITHUB = "https://github.com"


@dataclass(frozen=True)
class SparqlSource:
    """A graph that is queried in SPARQL."""

    access: Literal["live", "local", "embedded", "dump"] = "live"
    """`live`: the endpoint named by `endpoint`; `local`: `files`, queried in process; `embedded`:
    the embedded graph in resources/world, queried the same way; `dump`: read from dumps"""
    endpoint: str = "dbpedia"
    """name of the endpoint in `sources.endpoints`: wdqs, qlever or dbpedia"""
    snapshot: Snapshot = "2026-11"
    """folder in `data` for the answers; a finished snapshot is never overwritten"""
    files: tuple[str, ...] = ()
    """RDF files, for access local"""

    def __post_init__(self) -> None:
        """Raises ValueError where access is dump and none is named."""
        named = [name for name in ("dump", "ontology", "types") if hasattr(self, name)]
        if self.access == "dump" and (missing := [n for n in named if not getattr(self, n)]):
            raise ValueError(f"{', '.join(missing)} missing, needed where access is dump")


@dataclass(frozen=True)
class Dbpedia(SparqlSource):
    """DBpedia, or a subset of it."""

    ontology: str = ""
    """for access dump: name of the dump (sources.dumps) with the ontology, which is loaded and
    queried the same way; its file ends in .nt, .ttl or .owl, optionally followed by .gz"""
    types: str = ""
    """for access dump: name of the dump with `rdf:type` of the instances; their labels are in it or
    in its `more`. Types are direct or inherited, as in the file"""

    most_instances: Constant[Count] = 10000
    """instances pulled per class; of a larger class about this many, those whose IRIs have the
    lowest hashes"""


@dataclass(frozen=True)
class Wikidata(SparqlSource):
    """Wikidata, or a subset of it."""

    endpoint: str = "wdqs"
    """name of the endpoint in `sources.endpoints`: wdqs, qlever or dbpedia"""
    statements: Literal["facts", "facts_truthy"] = "facts"
    """the query for facts: with ranks, or for files with best-rank statements only"""
    large: Annotated[tuple[Literal["sitelinks", "dump"], ...], Length(distinct=True)] = (
        "sitelinks",
        "dump",
    )
    """what to try, in this order, for a relation with more subjects than an endpoint can return
    (`most_rows` in resources/endpoints.tsv): `sitelinks` asks only for subjects with
    `bear.min_sitelinks`, `dump` reads it from `dump`. If nothing helps, the relation is left out,
    and coverage.parquet, the report and the end of the run say so"""
    dump: str = ""
    """name of the dump (sources.dumps) for such relations, or empty; for access dump, the dump that
    everything is read from"""
    holds: tuple[Literal["bear"], ...] = ()
    """released data sets that were merged into the files: the report then says that agreement with
    them is by construction"""


@dataclass(frozen=True)
class Downloads:
    """Limits of every download; what arrived within them is kept, and the next run resumes."""

    hours: Positive = 24.0
    """maximum time for one file in one run"""
    stall: Positive = 60.0
    """seconds without data after which a connection is closed and opened again"""


@dataclass(frozen=True)
class Sums:
    """Checksums of a file as published; null if there are none."""

    md5: Annotated[str, Pattern("^[0-9a-fA-F]{32}$", "32 hexadecimal digits")] | None = None
    """published by figshare and Zenodo"""
    sha1: Annotated[str, Pattern("^[0-9a-fA-F]{40}$", "40 hexadecimal digits")] | None = None
    """published by Wikimedia"""
    sha256: Annotated[str, Pattern("^[0-9a-fA-F]{64}$", "64 hexadecimal digits")] | None = None
    """published by DBpedia's Databus"""


@dataclass(frozen=True)
class Trex:
    """T-REx, the alignments of Wikipedia and Wikidata (KG attributes, section 2)."""

    access: Literal["live", "local", "embedded"] = "live"
    """`live`: downloads `url` to `path`; `local`: a folder or zip of T-REx files at `path`;
    `embedded`: the documents of the embedded graph"""
    path: str = "data/trex/TREx.zip"
    """file or folder"""
    url: Url = _FIGSHARE
    """address of the download; the file is stored in `data`/archives, and `path` links to it"""
    sums: Sums = Sums()
    """published checksums: figshare shows an MD5 on the file's page, which we could not look up, so
    none is checked unless you enter it here"""
    max_bytes: Count = 10_000_000_000
    """maximum size of the download; the file has 4.3 to 4.4 GB"""
    max_bad: Proportion = 0.001
    """fraction of rejected documents above which a file is an error; 1 accepts any"""


@dataclass(frozen=True)
class Archive:
    """A zip archive, and the parts of it that are used."""

    url: Url
    """address of the zip file, which is stored once in `data`/archives"""
    parts: Annotated[dict[str, Annotated[str, Pattern(".", "a path")]], Length(1)]
    """name in the folder: path in the archive, ending in / for a folder"""
    tree: Annotated[str, Pattern("^([^@]+@.+)?$", "owner/name@commit")] = ""
    """the commit whose files resources/lock.tsv lists, each checked before use; empty: the commit
    in the GitHub address. Files that are not listed are reported and used"""
    sums: Sums = Sums()
    """published checksums; none for archives that the host repacks, as GitHub does"""
    max_bytes: Count = 1_000_000_000
    """maximum size of the download"""


@dataclass(frozen=True)
class Released:
    """A released data set, taken from archives."""

    access: Literal["live", "local"] = "live"
    """`live`: downloads `archives`; `local`: reads `folder`"""
    folder: str = ""
    """where its parts lie"""
    archives: tuple[Archive, ...] = ()
    """archives to download"""


@dataclass(frozen=True)
class ArchiveParts(Released):
    """A data set assembled from parts of archives (AutoPrompt, sections 3 to 6)."""

    access: Literal["live", "local", "absent"] = "live"  # type: ignore[assignment]
    """`live`: downloads `archives`; `local`: reads `folder`; `absent`: its benchmarks are not
    available"""


@dataclass(frozen=True)
class Dump:
    """A dump, compressed as .gz, .bz2 or .zst, or uncompressed."""

    access: Literal["live", "local", "embedded"]
    """`embedded`: the embedded graph as a dump; `local`: `file`; `live`: downloads `url` to
    `file`"""
    form: Literal["json", "truthy", "ntriples", "names"]
    """a dump with statements: Wikidata's `json` or `truthy`, or DBpedia's `ntriples`; `names`:
    N-Triples that supplement another dump"""
    file: str = ""
    """path of the dump; required for access local and live"""
    url: Url | None = None
    """address of the download; required for access live. It is stored in `data`/archives, and
    `file` links to it"""
    sums: Sums = Sums()
    """published checksums of the file"""
    max_bytes: Count = 400_000_000_000
    """maximum size of the download; Wikidata's largest dumps have about 150 GB"""
    snapshot: Snapshot | None = None
    """name of the version; required for access live"""
    relations: tuple[str, ...] | None = None
    """ids, or IRIs of form ntriples; null for BEAR's, which are ids"""
    more: tuple[str, ...] = ()
    """names of dumps that supplement this one: labels, sitelink counts (`wikibase:sitelinks`, which
    truthy dumps lack), triples about properties"""

    def __post_init__(self) -> None:
        """Raises ValueError for keys that the access needs, and for relations of another form."""
        needed = {"live": ("file", "url", "snapshot"), "local": ("file",)}.get(self.access, ())
        if missing := [name for name in needed if not getattr(self, name)]:
            raise ValueError(f"{', '.join(missing)} missing, needed where access is {self.access}")
        what, legal = "ids such as P36", r"P[1-9][0-9]*"
        if self.form == "ntriples":
            what, legal = "IRIs", r"[A-Za-z][A-Za-z0-9+.-]*:\S+"
        for relation in self.relations or ():
            if not re.fullmatch(legal, relation):
                raise ValueError(f"relations: {relation!r}; a dump of form {self.form} has {what}")


#: The data sets that are parts of archives.
RELEASED = ("bear", "ontoprobe", "lama", "trex_sentences", "sst2", "sick")
_SENTIMENT = f"{_GITHUB}/yan-soares/research_embeddings_fine_tuning/archive/" + (
    "045c5e94572a60c6bd7173e152c897f6b694c5a8.zip"
)


def _bear() -> Released:
    """relation_info.json came with ace91fd; the data are those of 725b4e3, the first commit."""
    url = f"{_GITHUB}/lm-pub-quiz/BEAR/archive/ace91fd.zip"
    parts = {"BEAR": "BEAR/", "BEAR-big": "BEAR-big/", "relation_info.json": "relation_info.json"}
    return Released(folder="data/bear/ace91fd", archives=(Archive(url, parts),))


def _ontoprobe() -> Released:
    """There is a folder of scripts called memorizing, too."""
    url = f"{_GITHUB}/vickywu1022/OntoProbe-PLMs/archive/cc95300.zip"
    parts = {
        "ontology": "data/ontology/",
        "memorizing": "data/memorizing/",
        "gpt/reasoning": "test-gpt/data-gpt/reasoning/",
    }
    return Released(folder="data/ontoprobe/cc95300", archives=(Archive(url, parts),))


def _lama() -> ArchiveParts:
    """The files of LAMA: facts (trex_original, trex_extend), templates (relations.jsonl,
    optiprompt), words (vocab) and published searched prompts (autoprompt_published)."""
    soft = f"{_GITHUB}/hiaoxui/soft-prompts/archive/eb9047e134de25dd9442dc2a809652814a005b4d.zip"
    known = {"relations.jsonl": "LAMA_relations.jsonl", "optiprompt": ""}
    words = ("common_vocab_cased.txt", "common_vocab_cased_rob.txt")
    where = "relation_metainfo"
    return ArchiveParts(
        folder="data/lama",
        archives=(
            Archive(soft, {"trex_original": "db/trex_original/", "trex_extend": "db/trex_extend/"}),
            Archive(
                f"{_GITHUB}/princeton-nlp/OptiPrompt/archive/9450bc9.zip",
                {name: f"{where}/{path}" for name, path in known.items()},
            ),
            Archive(
                f"{_GITHUB}/taylorshin/LAMA/archive/66481b7.zip",
                {f"vocab/{name}": f"pre-trained_language_models/{name}" for name in words},
            ),
            Archive(
                f"{_GITHUB}/ucinlp/autoprompt/archive/d637675.zip",
                {"autoprompt_published": "prompts/"},
            ),
        ),
    )


def _sentences() -> ArchiveParts:
    url = f"{_GITHUB}/ucinlp/autoprompt/archive/965e0909badb1ade47a6fd3c05dad4615355e2e8.zip"
    return ArchiveParts(
        folder="data/trex_sentences", archives=(Archive(url, {"TREx_all": "data/TREx_all/"}),)
    )


def _sst2() -> ArchiveParts:
    names = [f"sentiment-{split}" for split in ("train", "dev", "test")]
    # beside it lies SST/fine with files of the same names and five classes
    parts = {name: f"data/downstream/SST/binary/{name}" for name in names}
    return ArchiveParts(folder="data/sst2", archives=(Archive(_SENTIMENT, parts),))


def _sick() -> ArchiveParts:
    names = ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt")
    parts = {name: f"data/downstream/SICK/{name}" for name in names}
    return ArchiveParts(folder="data/sick", archives=(Archive(_SENTIMENT, parts),))


DumpName = Annotated[
    str,
    Pattern(
        r"^(?!(wikidata|dbpedia|world|trex|bear)$)[a-z][a-z0-9_]*$",
        "small letters, digits and _, not the name of another source",
    ),
]


@dataclass(frozen=True)
class Columns:
    """Column names of a table of triples. Without a label column of subjects or objects, labels
    come from the tables in `labels`, and without these the ids are used as labels. Ids are the same
    however their letters are composed (Unicode NFC)."""

    subject: str = "subject"
    """id of the subject"""
    relation: str = "relation"
    """id of the relation"""
    object: str = "object"
    """id of the object"""
    subject_label: str = "subject_label"
    """its label"""
    relation_label: str = "relation_label"
    """its label; by default derived from the id: `capital_of` becomes "capital of\""""
    object_label: str = "object_label"
    """its label"""
    id: str = "id"
    """id, in the tables of `labels`"""
    label: str = "label"
    """label, in the tables of `labels`"""


_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS, _OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
_SKOS, _SCHEMA = "http://www.w3.org/2004/02/skos/core#", "http://schema.org/"


def _owl_properties() -> tuple[str, ...]:
    kinds = ("ObjectProperty", "DatatypeProperty", "FunctionalProperty", "TransitiveProperty")
    return (f"{_RDF}Property", *(f"{_OWL}{kind}" for kind in (*kinds, "SymmetricProperty")))


@dataclass(frozen=True)
class Roles:
    """Relations with a special role: by default those of RDFS, OWL, SKOS and schema.org. For a
    table, name its own, such as `type: [P31]`."""

    label: tuple[str, ...] = (f"{_RDFS}label", f"{_SKOS}prefLabel", f"{_SCHEMA}name")
    """labels, best first"""
    type: tuple[str, ...] = (f"{_RDF}type",)
    """from an instance to its class"""
    subclass: tuple[str, ...] = (f"{_RDFS}subClassOf", f"{_SKOS}broader")
    """from a class to its superclass"""
    subproperty: tuple[str, ...] = (f"{_RDFS}subPropertyOf",)
    """from a relation to its superproperty"""
    domain: tuple[str, ...] = (f"{_RDFS}domain", f"{_SCHEMA}domainIncludes")
    """from a relation to the class of its subjects"""
    range: tuple[str, ...] = (f"{_RDFS}range", f"{_SCHEMA}rangeIncludes")
    """from a relation to the class of its objects"""
    classes: tuple[str, ...] = (f"{_OWL}Class", f"{_RDFS}Class", f"{_SKOS}Concept")
    """types of classes"""
    properties: tuple[str, ...] = _owl_properties()
    """types of relations"""


#: What may be wrong with a graph that is given; sources/graphs/raw.py says each in words.
ProblemKind = Literal[
    "missing_label",
    "two_labels",
    "relation_as_entity",
    "loop",
    "long_id",
    "blank_node",
    "bad_iri",
    "import",
]
GraphName = Annotated[
    str,
    Pattern(
        r"^(?!(wikidata|dbpedia|world|world_dbpedia|trex|bear|graph|ontology|world_ontology)$)"
        r"(?!(lama|lama_trex|lama_roberta|re|re_perturbed|sst2|sick|sick_2way|sick_3way)$)"
        r"(?!onto_|auto_)[a-z][a-z0-9_]*(?<!_big)(?<!_lite)$",
        "small letters, digits and _, not the name of another source or task, without onto_ or "
        "auto_ at the beginning, _big or _lite at the end",
    ),
]


@dataclass(frozen=True)
class OwnGraph:
    """Your own graph or ontology. As far as it allows, it yields the benchmarks NAME_big and
    NAME_lite (BEAR), onto_NAME and onto_NAME_lite (OntoProbe) and auto_NAME (AutoPrompt);
    `attributes.graph: NAME` builds the nine attributes from it."""

    form: Literal["table", "rdf", "lm_pub_quiz"]
    """`table`: triples with labels, as .csv, .tsv, .txt (tabs), .parquet or .jsonl; `rdf`: .ttl,
    .nt, .rdf or .owl, optionally compressed as .gz or .bz2; `lm_pub_quiz`: a folder in the format
    of lm-pub-quiz"""
    files: Annotated[tuple[str, ...], Length(1)]
    """the files, or the folder"""
    labels: tuple[str, ...] = ()
    """tables of ids and labels, for form table"""
    header: bool = True
    """whether the first line of a table has column names; otherwise the columns are subject,
    relation and object"""
    columns: Columns = Columns()
    """names of the columns of a table"""
    roles: Roles = field(default_factory=Roles)
    """relations with a special role"""
    ids: Literal["own", "wikidata"] = "own"
    """`wikidata`: ids such as Q31 and P36 are Wikidata's, so that our templates for P36 apply"""
    known: dict[str, Relation] = field(default_factory=dict)
    """relation of the graph: the equivalent Wikidata property, whose templates and settings it
    gets. `roles.type` is P31 and `roles.subclass` is P279"""
    templates: str = ""
    """your table of templates, with the columns of resources/templates/templates.tsv. A relation
    without a template in either table gets one from its label"""
    leave_out: Annotated[tuple[ProblemKind, ...], Length(distinct=True)] = ()
    """problems that are not errors: rows with one are skipped (of two labels, the alphabetically
    first is used), and problems.parquet counts them"""
    bear: Bear = Bear(popularity="statements", min_sitelinks=0, min_answers=2, short="shrink")
    """construction of its BEAR sets"""

    def __post_init__(self) -> None:
        """Raises ValueError for settings of tables where the form is another."""
        given = {"labels": self.labels, "header": not self.header}
        given["columns"] = self.columns != Columns()
        if self.form != "table" and (wrong := [name for name, one in given.items() if one]):
            raise ValueError(f"{', '.join(wrong)}: only for form table, and form is {self.form}")


@dataclass(frozen=True)
class Sources:
    """Where the data come from. `${NAME}` in a path is an environment variable."""

    endpoints: str = "resources/endpoints.tsv"
    """table of the public endpoints and their limits"""
    lock_file: str = "resources/lock.tsv"
    """table of the files read from pinned commits: tree, path, git blob id; made by
    `python -m tools.lock_file`"""
    cut: bool = False
    """whether pinned files may be missing from archives; they are then named and counted. For tests
    with reduced archives"""
    downloads: Downloads = Downloads()
    """limits of downloads"""
    wikidata: Wikidata = Wikidata()
    """facts, and part of the ontology"""
    dbpedia: Dbpedia = Dbpedia()
    """the rest of the ontology"""
    trex: Trex = Trex()
    """T-REx, for `attributes.graph: trex`"""
    bear: Released = field(default_factory=_bear)
    """`BEAR/` and `BEAR-big/`: the data of commit 725b4e3, which lm-pub-quiz downloads, and
    relation_info.json"""
    ontoprobe: Released = field(default_factory=_ontoprobe)
    """the released ontology and tasks"""
    lama: ArchiveParts = field(default_factory=_lama)
    """LAMA's facts, words and templates, for searched prompts"""
    trex_sentences: ArchiveParts = field(default_factory=_sentences)
    """sentences that express facts, for relation extraction"""
    sst2: ArchiveParts = field(default_factory=_sst2)
    """sentiment of sentences (SST-2)"""
    sick: ArchiveParts = field(default_factory=_sick)
    """entailment of pairs of sentences (SICK-E)"""
    dumps: dict[DumpName, Dump] = field(default_factory=dict)
    """statements read from dumps in addition to the pulls, by name. Finished shards are stored in
    `data` and survive an interruption; changed code reads the dump again"""
    graphs: dict[GraphName, OwnGraph] = field(default_factory=dict)
    """your own graphs and ontologies, by name"""
