"""Settings of the sources: graphs that are asked, dumps, T-REx, released data, own graphs."""

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
    """A graph that is asked in SPARQL."""

    access: Literal["live", "local", "embedded", "dump"] = "live"
    """`live`: the `endpoint` named; `local`: `files`, which are asked in process; `embedded`: the
    world in resources/world, asked the same way; `dump`: read out of the dumps named"""
    endpoint: str = "dbpedia"
    """name of the endpoint: wdqs, qlever, dbpedia, or local"""
    snapshot: Snapshot = "2026-11"
    """folder below `data` that the answers are kept in; a finished snapshot is never overwritten"""
    files: tuple[str, ...] = ()
    """RDF files, where access is local"""

    def __post_init__(self) -> None:
        """Raises ValueError where access is dump and none is named."""
        named = [name for name in ("dump", "ontology", "types") if hasattr(self, name)]
        if self.access == "dump" and (missing := [n for n in named if not getattr(self, n)]):
            raise ValueError(f"{', '.join(missing)} missing, needed where access is dump")


@dataclass(frozen=True)
class Dbpedia(SparqlSource):
    """DBpedia, or a part of it."""

    ontology: str = ""
    """name of the dump (sources.dumps) with the ontology, where access is dump: it is loaded
    and asked the same queries; a name that ends in .nt, .ttl or .owl, or .gz behind it"""
    types: str = ""
    """name of the dump with `rdf:type` of the instances, where access is dump; their labels are in
    it or in its `more`. Direct or inherited types, as the file has them"""

    most_instances: Constant[Count] = 10000
    """instances that are pulled of a class; of a larger one about so many, those whose IRI has the
    lowest hash"""


@dataclass(frozen=True)
class Wikidata(SparqlSource):
    """Wikidata, or a part of it."""

    endpoint: str = "wdqs"
    """name of the endpoint: wdqs, qlever, dbpedia, or local"""
    statements: Literal["facts", "facts_truthy"] = "facts"
    """the query for facts: with ranks, or for files that hold best-rank statements only"""
    large: Annotated[tuple[Literal["sitelinks", "dump"], ...], Length(distinct=True)] = (
        "sitelinks",
        "dump",
    )
    """ways out, in this order, for a relation with more subjects than an endpoint can be asked for
    (`most_rows` in resources/endpoints.tsv): `sitelinks` asks only for subjects with
    `bear.min_sitelinks`, `dump` takes it from the `dump` named. Where none suffices, it is
    left out, and coverage.parquet, the report and the end of the run say so"""
    dump: str = ""
    """name of the dump (sources.dumps) that such relations are taken from, or empty; where access
    is dump, that everything is read out of"""
    holds: tuple[Literal["bear"], ...] = ()
    """released sets that were merged into the files: the report then says that agreement with them
    is by construction"""


@dataclass(frozen=True)
class Downloads:
    """Bounds of every download; what arrived within them stays, and the next run goes on there."""

    hours: Positive = 24.0
    """the longest that one file may take in one run"""
    stall: Positive = 60.0
    """seconds without a byte after which a connection is given up and begun again"""


@dataclass(frozen=True)
class Sums:
    """What the publisher says that a file's sums are; null where nothing is published."""

    md5: Annotated[str, Pattern("^[0-9a-fA-F]{32}$", "32 hexadecimal digits")] | None = None
    """as figshare and Zenodo give it"""
    sha1: Annotated[str, Pattern("^[0-9a-fA-F]{40}$", "40 hexadecimal digits")] | None = None
    """as Wikimedia's lists give it"""
    sha256: Annotated[str, Pattern("^[0-9a-fA-F]{64}$", "64 hexadecimal digits")] | None = None
    """as DBpedia's Databus gives it"""


@dataclass(frozen=True)
class Trex:
    """T-REx, the alignments of Wikipedia and Wikidata (KG attributes, section 2)."""

    access: Literal["live", "local", "embedded"] = "live"
    """`live`: downloads `url` to `path`; `local`: a folder or zip of T-REx files at `path`;
    `embedded`: the world's"""
    path: str = "data/trex/TREx.zip"
    """file or folder"""
    url: Url = _FIGSHARE
    """what is downloaded; it is kept below `data`/archives, and `path` is another name of it"""
    sums: Sums = Sums()
    """sums of it that are published: figshare shows an MD5 on the file's page; we could not look it
    up, so none is checked until it is written here"""
    max_bytes: Count = 10_000_000_000
    """the most that is downloaded; the file has 4.3 to 4.4 GB"""
    max_bad: Proportion = 0.001
    """fraction of rejected documents above which a file fails; 1 keeps whatever can be read"""


@dataclass(frozen=True)
class Archive:
    """A zip archive, and what of it is kept."""

    url: Url
    """address of the zip file; it is kept once below `data`/archives, for all who read it"""
    parts: Annotated[dict[str, Annotated[str, Pattern(".", "a path")]], Length(1)]
    """name in the folder: path in the archive, with / at its end for a folder"""
    tree: Annotated[str, Pattern("^([^@]+@.+)?$", "owner/name@commit")] = ""
    """the commit that resources/lock.tsv lists the files of, each checked before it is used; empty:
    the one in an address of GitHub's. What is not in it is reported, and used"""
    sums: Sums = Sums()
    """sums of it that are published; none for archives that hosts pack anew, as GitHub does"""
    max_bytes: Count = 1_000_000_000
    """the most that is downloaded"""


@dataclass(frozen=True)
class Released:
    """A released data set, parts of archives."""

    access: Literal["live", "local"] = "live"
    """`live`: downloads `archives`; `local`: what lies in `folder`"""
    folder: str = ""
    """where its parts lie"""
    archives: tuple[Archive, ...] = ()
    """archives to download"""


@dataclass(frozen=True)
class ArchiveParts(Released):
    """A data set that is put together from parts of archives (AutoPrompt, sections 3 to 6)."""

    access: Literal["live", "local", "absent"] = "live"  # type: ignore[assignment]
    """`live`: downloads `archives`; `local`: what lies in `folder`; `absent`: benchmarks of it are
    refused"""


@dataclass(frozen=True)
class Dump:
    """A dump, packed as .gz, .bz2, .zst or not at all."""

    access: Literal["live", "local", "embedded"]
    """`embedded`: the world as a dump; `local`: `file`; `live`: downloads `url` to `file`"""
    form: Literal["json", "truthy", "ntriples", "names"]
    """Wikidata's `json` or `truthy` dump, or DBpedia's `ntriples`, which statements are read out
    of; `names`: N-Triples of what another one lacks"""
    file: str = ""
    """the dump; needed where access is local or live"""
    url: Url | None = None
    """what is downloaded; needed where access is live. It is kept below `data`/archives, and `file`
    is another name of it"""
    sums: Sums = Sums()
    """sums of the file, where they are published"""
    max_bytes: Count = 400_000_000_000
    """the most that is downloaded; Wikidata's largest dumps have about 150 GB"""
    snapshot: Snapshot | None = None
    """name of the version; needed where access is live"""
    relations: tuple[str, ...] | None = None
    """ids or IRIs; null for BEAR's"""
    more: tuple[str, ...] = ()
    """names of dumps with what this one lacks: labels, numbers of sitelinks (`wikibase:sitelinks`;
    no truthy dump has them), triples about properties"""

    def __post_init__(self) -> None:
        """Raises ValueError for keys that the access needs."""
        needed = {"live": ("file", "url", "snapshot"), "local": ("file",)}.get(self.access, ())
        if missing := [name for name in needed if not getattr(self, name)]:
            raise ValueError(f"{', '.join(missing)} missing, needed where access is {self.access}")


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
    """Names of the columns of a table of triples. Where a file has no column of labels, they come
    from `labels`, and without these the ids are the labels."""

    subject: str = "subject"
    """id of the subject"""
    relation: str = "relation"
    """id of the relation"""
    object: str = "object"
    """id of the object"""
    subject_label: str = "subject_label"
    """its label"""
    relation_label: str = "relation_label"
    """its label; without one it is made of the id: `capital_of` becomes "capital of\""""
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
    """Which relations say what: by default those of RDFS, OWL, SKOS and schema.org. A table names
    its own, such as `type: [P31]`."""

    label: tuple[str, ...] = (f"{_RDFS}label", f"{_SKOS}prefLabel", f"{_SCHEMA}name")
    """labels, best first"""
    type: tuple[str, ...] = (f"{_RDF}type",)
    """an instance and its class"""
    subclass: tuple[str, ...] = (f"{_RDFS}subClassOf", f"{_SKOS}broader")
    """a class and the one above it"""
    subproperty: tuple[str, ...] = (f"{_RDFS}subPropertyOf",)
    """a relation and the one above it"""
    domain: tuple[str, ...] = (f"{_RDFS}domain", f"{_SCHEMA}domainIncludes")
    """a relation and the class of its subjects"""
    range: tuple[str, ...] = (f"{_RDFS}range", f"{_SCHEMA}rangeIncludes")
    """a relation and the class of its objects"""
    classes: tuple[str, ...] = (f"{_OWL}Class", f"{_RDFS}Class", f"{_SKOS}Concept")
    """types that classes have"""
    properties: tuple[str, ...] = _owl_properties()
    """types that relations have"""


#: What may be wrong with a graph that is given; sources/graphs/problems.py says each in words.
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
    """A graph or ontology of your own. Benchmarks NAME_big and NAME_lite (BEAR), onto_NAME and
    onto_NAME_lite (OntoProbe) and auto_NAME (AutoPrompt) are made of it as far as it allows;
    `attributes.graph: NAME` builds the nine attributes on it."""

    form: Literal["table", "rdf", "lm_pub_quiz"]
    """`table`: triples with labels, as .csv, .tsv, .txt (tabs), .parquet
    or .jsonl; `rdf`: .ttl, .nt, .rdf,
    .owl, packed as .gz, .bz2 or not; `lm_pub_quiz`: a folder in lm-pub-quiz's form"""
    files: Annotated[tuple[str, ...], Length(1)]
    """the files, or the folder"""
    labels: tuple[str, ...] = ()
    """tables of ids and labels, for form table"""
    header: bool = True
    """whether the first line of a table names its columns; else they are subject, relation,
    object"""
    columns: Columns = Columns()
    """names of the columns of a table"""
    roles: Roles = field(default_factory=Roles)
    """which relations say what"""
    ids: Literal["own", "wikidata"] = "own"
    """`wikidata`: Q31 and P36 mean what they mean there, and our templates for P36 are taken"""
    known: dict[str, Relation] = field(default_factory=dict)
    """relation of the graph: the property of Wikidata that says the same, whose templates and
    settings it gets. `roles.type` is P31 and `roles.subclass` P279"""
    templates: str = ""
    """own table of templates, with the columns of resources/templates/templates.tsv. A relation
    that has none there or here is worded by its label"""
    leave_out: Annotated[tuple[ProblemKind, ...], Length(distinct=True)] = ()
    """problems that do not end in an error: what has one is left out, or of two labels the first in
    order of the alphabet is taken, and problems.parquet counts it"""
    bear: Bear = Bear(popularity="statements", min_sitelinks=0, min_answers=2, short="shrink")
    """construction of its BEAR sets"""


@dataclass(frozen=True)
class Sources:
    """What comes in from outside, and how. `${NAME}` in a path is an environment variable."""

    endpoints: str = "resources/endpoints.tsv"
    """table of the public endpoints and of the limits that are kept toward them"""
    lock_file: str = "resources/lock.tsv"
    """table of the files that are read of fixed commits: tree, path, git blob id or why there is
    none; `python -m tools.lock_file` makes it"""
    cut: bool = False
    """whether archives may lack files that are pinned; they are named and counted then. For tests
    against archives that were cut"""
    downloads: Downloads = Downloads()
    """how long a download may take"""
    wikidata: Wikidata = Wikidata()
    """facts, and one half of the ontology"""
    dbpedia: Dbpedia = Dbpedia()
    """the other half"""
    trex: Trex = Trex()
    """T-REx, for `attributes.graph: trex`"""
    bear: Released = field(default_factory=_bear)
    """where `BEAR/` and `BEAR-big/` lie: the data of 725b4e3, which lm-pub-quiz downloads, and
    relation_info.json"""
    ontoprobe: Released = field(default_factory=_ontoprobe)
    """the released ontology and tasks"""
    lama: ArchiveParts = field(default_factory=_lama)
    """LAMA's facts, words and templates, which searched prompts are tried on"""
    trex_sentences: ArchiveParts = field(default_factory=_sentences)
    """sentences of facts, for relation extraction"""
    sst2: ArchiveParts = field(default_factory=_sst2)
    """sentiment of sentences"""
    sick: ArchiveParts = field(default_factory=_sick)
    """entailment of pairs of sentences"""
    dumps: dict[DumpName, Dump] = field(default_factory=dict)
    """statements read out of dumps, beside the pulls, by name. Finished shards lie below `data` and
    survive a stop; other code reads the dump anew"""
    graphs: dict[GraphName, OwnGraph] = field(default_factory=dict)
    """graphs and ontologies of your own, by name"""
