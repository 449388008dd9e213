"""The configuration: every key with its type, its default, its legal values and what it means.

A class is a section, a field a key, the text below a field its meaning. `kgprobe.config` makes of
them the JSON schema, the table in config/README.md and config/config.yaml, and refuses what they do
not allow. The defaults are the full rebuild. `null` (None) leaves a choice open.

Rules hand sections to scripts as plain values (`dataclasses.asdict`), complete, and a script builds
its section again with `typed`. So a number depends on what a rule hands over and on nothing here.

Sources: BEAR is Wiland et al. 2024, OntoProbe Wu et al. 2023, KG attributes Mruthyunjaya et al.
2023, AutoPrompt Shin et al. 2020; "ours" marks what no paper states.
"""

import types
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Range:
    """Legal numbers: from `least` to `most`, with `inside` neither end itself."""

    least: float | None = None
    most: float | None = None
    inside: bool = False


@dataclass(frozen=True)
class Pattern:
    """Legal texts: a regular expression, and in words what it asks for."""

    regex: str
    words: str


@dataclass(frozen=True)
class Length:
    """Legal lists: so many elements, without repetition where they are `distinct`."""

    least: int = 0
    most: int | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Fixed:
    """A constant of a method: no key of the configuration, though code and tests can vary it."""


@dataclass(frozen=True)
class PartOf:
    """A mapping of some keys of this section; what is not given is decided elsewhere."""

    section: str


Value = TypeVar("Value")
Constant = Annotated[Value, Fixed()]
Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
#: what a hash takes as its key
Seed = Annotated[int, Range(0, 2**63 - 1)]
Proportion = Annotated[float, Range(0, 1)]
Inner = Annotated[float, Range(0, 1, inside=True)]
Positive = Annotated[float, Range(0, inside=True)]
Amount = Annotated[float, Range(0)]
Url = Annotated[str, Pattern(r"^https?://", "an address http(s)://...")]
Snapshot = Annotated[
    str, Pattern(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "letters, digits, dots, - and _")
]
Language = Annotated[
    str, Pattern(r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$", "a language code such as en or mul")
]
#: Of labels, best first: Wikidata deletes `en` labels that equal the `mul` one.
LANGUAGES = ("en", "mul")
Relation = Annotated[str, Pattern(r"^P[1-9][0-9]*$", "a property such as P31")]
OfGraph = Annotated[
    str, Pattern(r"^(?!Q\d+$)\S(.*\S)?$", "the id of a relation, P31 or the graph's own")
]
Variable = Annotated[str, Pattern(r"^[A-Z_][A-Z0-9_]*$", "a name of an environment variable")]
Mode = Literal["default", "paper", "released"]
Overlap = Literal["error", "remove_train", "keep"]

_FIGSHARE = "https://api.figshare.com/v2/file/download/8760241"
_GITHUB = "https://github.com"


# -- sources --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NamedRun:
    """What is made once, below one name. Two runs never touch each other's files."""

    name: Annotated[str, Pattern(r"^[A-Za-z0-9_-]+$", "letters, digits, - and _")] = "full"
    """folder below results/ and logs/; every file that is laid over config.yaml gives its own"""


@dataclass(frozen=True)
class Tables:
    """The tables of models and of experiments, described below."""

    models: str = "config/models.tsv"
    """what models there are"""
    experiments: str = "config/experiments.tsv"
    """what runs"""


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


# -- own graphs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How large a BEAR set is (BEAR, section 3)."""

    total: Count = 600
    """instances per relation"""
    max_answers: Annotated[int, Range(2)] = 100
    """most options of a relation"""
    one_to_one: Annotated[int, Range(2)] = 194
    """instances of a one-to-one relation"""


@dataclass(frozen=True)
class Bear:
    """Construction of BEAR sets from a pull (BEAR, section 3)."""

    popularity: Literal["sitelinks", "statements"] = "sitelinks"
    """sitelinks, or the number of pulled statements that an entity stands in, for sources
    without"""
    min_sitelinks: Natural = 5
    """entities below it are dropped"""
    min_answers: Annotated[int, Range(2)] = 5
    """a relation with fewer feasible answers is dropped and reported"""
    single_valued: Literal["best_rank", "all_ranks"] = "best_rank"
    """one object among best-rank statements, or among all that are not deprecated"""
    inverse_unique: bool = True
    """one-to-one relations: the object has one subject in the pull"""
    overlap: Literal["contains", "words", "none"] = "contains"
    """when names of answer and subject overlap"""
    spares: Constant[Natural] = 2
    """instances kept in reserve per answer"""
    short: Literal["drop", "shrink"] = "drop"
    """what becomes of a relation with fewer instances than `total`: it is dropped and reported, or
    the largest balanced set that it has is taken"""
    big: Size = Size()
    """BEAR-big (BEAR, section 3)"""
    lite: Size = Size(150, 25, 60)
    """BEAR (BEAR, section 3)"""


@dataclass(frozen=True)
class World(Bear):
    """Construction of BEAR sets from the embedded world."""

    popularity: Constant[Literal["sitelinks", "statements"]] = "sitelinks"
    min_sitelinks: Constant[Natural] = 0
    min_answers: Constant[Annotated[int, Range(2)]] = 5
    single_valued: Constant[Literal["best_rank", "all_ranks"]] = "best_rank"
    inverse_unique: Constant[bool] = True
    overlap: Constant[Literal["contains", "words", "none"]] = "contains"
    short: Constant[Literal["drop", "shrink"]] = "drop"
    big: Size = Size(60, 12, 40)
    """world_big"""
    lite: Size = Size(20, 8, 20)
    """world_lite"""


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


# -- knowledge and benchmarks ---------------------------------------------------------------------


@dataclass(frozen=True)
class Ontology:
    """What of the ontology is taken (OntoProbe, section 2.1)."""

    per_class: Count = 20
    """instances sampled per class by seeded hash (OntoProbe, section 2.1)"""
    properties: Count = 50
    """number of properties chosen by the rule (OntoProbe, section 2.1)"""
    choice: Literal["rule", "released"] = "rule"
    """by the rule (domain, range, superproperty, most statements), or the 52 released ones"""


@dataclass(frozen=True)
class Rows:
    """Rows of each part."""

    train: Natural = 0
    """rows to train on"""
    dev: Natural = 0
    """rows to choose by"""
    test: Natural = 0
    """rows to score"""


Schemes = Literal["manual+manual", "manual+soft", "soft+manual", "soft+soft"]


@dataclass(frozen=True)
class CausalRules:
    """What of reasoning causal models are asked, which read candidates word by word."""

    schemes: Annotated[tuple[Schemes, ...], Length(1, distinct=True)] = ("manual+manual",)
    """template+conjunction, in place of `soft.schemes`"""
    pairs: Count = 1
    """pairs of pseudowords, in place of the switch `pseudoword_pairs`"""
    rows: Count | None = 100
    """most test rows of each rule, by hash, under all premises; null for all"""


@dataclass(frozen=True)
class Soft:
    """Soft prompts and reasoning (OntoProbe, sections 3.1.1 and 3.2.1, appendix A). One prompt is
    trained per task for every combination that the kind of model has."""

    seeds: Count = 3
    """runs of each training"""
    epochs: Count = 100
    """passes over the training rows"""
    batch: Constant[Count] = 8
    """rows of a step: 8 + 2 of the ten training rows"""
    losses: Annotated[tuple[Literal["bce", "nll"], ...], Length(1, distinct=True)] = ("bce", "nll")
    """under `bce` causal and seq2seq models run every candidate in every step, under `nll` the
    golds alone"""
    masks: Annotated[tuple[Literal["multi", "single"], ...], Length(1, distinct=True)] = (
        "multi",
        "single",
    )
    """a mask for every token of a candidate, or one"""
    poolings: Annotated[tuple[Literal["mean", "max", "first"], ...], Length(1, distinct=True)] = (
        "mean",
        "max",
        "first",
    )
    """of the tokens of a candidate (OntoProbe, section 3.1.2)"""
    schemes: Annotated[tuple[Schemes, ...], Length(1, distinct=True)] = (
        "manual+manual",
        "manual+soft",
        "soft+manual",
        "soft+soft",
    )
    """of reasoning: template+conjunction"""
    tuning: Count | None = None
    """epochs of the conjunctions; null for `epochs`"""
    rows: Count | None = None
    """most test rows of each task; null for all"""
    rule_rows: Count | None = None
    """most test rows of each rule, which has them under every premise, template and conjunction;
    null for all"""
    causal: Constant[CausalRules] = CausalRules()
    """what of reasoning causal models are asked"""


@dataclass(frozen=True)
class Ontoprobe:
    """OntoProbe: memorizing and reasoning over ontological knowledge."""

    mode: Mode = "default"
    """sets every point where the paper and its code disagree; the report lists them with their
    values in each mode and where they take effect"""
    switches: dict[str, str] = field(default_factory=dict)
    """single points by name (values are text): what benchmarks/ontoprobe/modes.py lists. Those of
    the tables (`tp_rows`, `recall`, `ties`, `select`, `premise`, `mc_split`, `average`) need no new
    answers; `item_limit` cuts what written templates ask of TP and SCO, soft prompts ask every
    row"""
    lite: Rows = Rows(0, 5, 20)
    """rows of each part per task in the lite sets (options scored as sentences)"""
    lite_options: Natural = 0
    """options kept beside the golds in the lite sets, 0 for all"""
    lite_templates: Count | None = None
    """templates of each task in the lite sets, the first ones; null for all"""
    soft: Soft = Soft()
    """soft prompts and reasoning"""


@dataclass(frozen=True)
class ReleasedRows:
    """Which part of the released BEAR sets is scored."""

    instances_per_relation: Count | None = None
    """rows of every relation, drawn by hash; null is all"""
    templates: Annotated[tuple[Annotated[int, Range(0, 2)], ...], Length(1, distinct=True)] = (
        0,
        1,
        2,
    )
    """which of the three templates"""


@dataclass(frozen=True)
class LamaOptions:
    """LAMA's T-REx facts with options (ours): benchmark `lama`."""

    facts: Count = 200
    """most subjects of a relation, drawn by hash"""
    options: Annotated[int, Range(2)] = 30
    """options of a question: what is right and other objects of the relation, drawn by hash"""


@dataclass(frozen=True)
class Baselines:
    """Baselines (ours): the same architecture with random weights, and the model itself without the
    subjects, asked beside every model."""

    items: Natural = 300
    """items of a benchmark of BEAR's, the same number of each relation by hash, that are asked
    under the first template; 0: none is"""
    rows: Natural = 100
    """the same of a benchmark of the other papers: test rows, facts, or triples of whole examples,
    under one template; 0: none is"""
    largest: Constant[Count] = 3000
    """millions of weights; larger models have no such baseline, which would take their memory once
    more in float32. Nor have checkpoints of a training and quantized models"""


@dataclass(frozen=True)
class Forms:
    """Forms of asking (ours): the prompts `question`, `chat`, `few` and `few_shuffled` of the graph
    attributes and OntoProbe's tasks put a text around a relation's first template."""

    items: Natural = 300
    """items of a benchmark, the same number of each relation by hash, that are asked in a form and
    compared with their templates alone; 0: all"""
    demonstrations: Constant[Count] = 4
    """examples before the question under `few` and `few_shuffled`, out of the rows for training"""


Attribute = Literal[
    "symmetry",
    "asymmetry",
    "bidirectional",
    "hierarchy",
    "composite",
    "paths",
    "entity_centric",
    "bias",
    "ambiguous",
]
#: each names a module of benchmarks/attributes and a section of `attributes`
ATTRIBUTES: tuple[str, ...] = get_args(Attribute)


# -- answering ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fill:
    """Method `fill`: what a model writes into a mask slot (KG attributes, section 4)."""

    k: Count = 10
    """best tokens and fillings"""
    strategy: Literal["parallel", "beam"] = "parallel"
    """how several masks are filled"""
    beams: Count = 5
    """beams of the strategy beam"""
    length: Constant[Literal["", "gold", "free"]] = ""
    """as many tokens as the gold, or to the end of the phrase; empty: the kind's own (masked gold,
    others free)"""
    most_masks: Constant[Count] = 12
    """golds of more tokens are left out and counted"""
    most_tokens: Natural = 0
    """of a free text; 0: the longest gold and four more"""
    stops: Constant[str] = ".\n"
    """what ends a written text, a dot only where it ends a sentence: a blank and a capital follow,
    and no single letter, abbreviation or word with dots stands before it (or a word follows that
    begins sentences). What is scored is the text up to there, `raw` keeps the rest"""
    instruction: Constant[str] = ""
    """before a sentence with [MASK] (API)"""
    failures: Literal["raise", "leave_out"] = "raise"
    """a request refused for its content ends the job, or is counted as missing"""


Scoring = Literal["answer", "letter", "text", "stem"]


@dataclass(frozen=True)
class Choice:
    """Method `choice`: multiple choice (OntoProbe, section 5.2). Other golds among the options, the
    slips of the released prompts and the released split of the premises are switches of
    `ontoprobe`: `negatives`, `mc_phrasing`, `mc_split`."""

    scorings: Annotated[tuple[Scoring, ...], Length(1, distinct=True)] = get_args(Scoring)
    """generated text, or options scored as letter, as text after the question, in the manual
    prompt"""
    options: Constant[Annotated[int, Range(2, 26)]] = 20
    """options of a question (OntoProbe, section 5.2)"""
    most: Count | None = None
    """most questions per task; null for 500 of TP and SCO and all others"""


@dataclass(frozen=True)
class Api:
    """Models of kind `api`, on OpenAI-compatible servers. None of these keys changes an answer."""

    url_variable: Constant[Variable] = "KGPROBE_API_URL"
    """environment variable with the base URL"""
    key_variable: Constant[Variable] = "KGPROBE_API_KEY"
    """environment variable with the key"""
    requests_per_minute: Amount = 0
    """most requests, 0: no limit"""
    tokens_per_minute: Amount = 0
    """most tokens, 0: no limit"""
    prices: Annotated[tuple[Amount, ...], Length(2, 2)] = (0, 0)
    """per million prompt and completion tokens"""
    most: Amount = 0
    """cost at which a job stops, 0: no limit; an answer that does not say its tokens is charged as
    many as there can be"""
    timeout: Positive = 120
    """seconds"""
    attempts: Constant[Count] = 6
    """tries of a request"""
    workers: Count = 1
    """requests at once"""
    cache: Constant[str] = "data/api"
    """folder of the answers"""


# -- the nine attributes of a graph ---------------------------------------------------------------


@dataclass(frozen=True)
class Symmetry:
    """Relations that hold both ways (KG attributes, section 3)."""

    min_triples: Count | None = None
    """fewest triples of a predicate; null: as `thresholds` has it (paper: 50)"""
    ratio: Annotated[float, Range(0, 1)] = 0.5
    """least fraction of symmetric triples (paper)"""
    ratio_over: Literal["triples", "pairs"] = "triples"
    """fraction of triples, or of unordered pairs"""
    cap_pairs: Count = 100
    """most pairs per predicate (paper)"""


@dataclass(frozen=True)
class Asymmetry:
    """Relations that hold one way (KG attributes, section 3)."""

    min_triples: Count | None = None
    """fewest triples of a predicate; null: as `thresholds` has it (paper: 25)"""
    ratio: Annotated[float, Range(0, 1)] = 0.5
    """least fraction of one-way triples (paper)"""
    cap: Count = 100
    """most triples per predicate (paper)"""
    strict: bool = False
    """no symmetric triple at all"""


@dataclass(frozen=True)
class Bidirectional:
    """Pairs of inverse relations (KG attributes, section 3)."""

    min_triples: Count | None = None
    """fewest triples in the `denominator`; null: as `thresholds` has it (paper: 50)"""
    ratio: Annotated[float, Range(0, 1)] = 0.5
    """least fraction of them that both predicates have"""
    denominator: Literal["min", "max", "first", "second"] = "min"
    """of the triples of both predicates"""
    cap: Count = 100
    """most examples per pair"""


@dataclass(frozen=True)
class Hierarchy:
    """Chains of classes (KG attributes, section 3)."""

    n: Count = 1000
    """chains (paper)"""
    direct: Literal["keep", "drop"] = "keep"
    """chains whose ends are linked as well"""
    two_hop: Literal["own", "same"] = "own"
    """own template for the inferred row, or the same as P279's"""


@dataclass(frozen=True)
class Composite:
    """Triangles of relations (KG attributes, section 3)."""

    categories: Count = 10
    """top categories (paper)"""
    category_relations: tuple[OfGraph, ...] = ("P31",)
    """relations that lead to categories"""
    member: Literal["a", "all", "any"] = "a"
    """which member of the triangle must be in one"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """relations left out"""
    min_combo: Count | None = None
    """a combination of relations is frequent from so many on; null: as `thresholds` has it (paper:
    100)"""
    cap: Count = 100
    """most of a frequent combination (paper)"""
    keep_rare: bool = True
    """rarer ones are kept whole"""
    fallback: Constant[Count] = 1000
    """random ones when none is frequent (paper)"""
    max_out: Constant[Count] = 2000
    """edges of a hub that are expanded"""


@dataclass(frozen=True)
class Paths:
    """Paths of two relations (KG attributes, section 3)."""

    categories: Count = 10
    """top categories (paper)"""
    category_relations: tuple[OfGraph, ...] = ("P31",)
    """relations that lead to categories"""
    seeds: Count = 50
    """members of each category that paths begin at (paper)"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """relations left out"""
    endpoints_differ: bool = True
    """a path does not end where it begins"""
    relations_differ: bool = True
    """its two relations differ"""
    min_combo: Count | None = None
    """a combination of relations is frequent from so many on; null: as `thresholds` has it (paper:
    100)"""
    count_on: Literal["seeds", "graph"] = "seeds"
    """counted on the paths of the seeds, or of the whole graph"""
    cap: Count = 100
    """most of a frequent combination"""
    keep_rare: bool = True
    """rarer ones are kept whole"""
    fallback_per_entity: Constant[Count] = 10
    """random ones of an entity when none is frequent (paper)"""
    max_out: Constant[Count] = 2000
    """edges of a hub that are expanded"""


@dataclass(frozen=True)
class EntityCentric:
    """Facts of one entity (KG attributes, section 3)."""

    facts: Count | None = None
    """facts of an entity; null: as `thresholds` has it (paper: 20)"""
    top: Count | None = None
    """entities by degree; null: as `thresholds` has it (paper: 1000)"""
    entities: Count = 270
    """of them, by hash"""
    eval_entities: Count = 50
    """of these, probed"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """relations left out"""
    relations: Literal["all", "lama"] = "all"
    """which relations count"""
    directions: Literal["out", "both"] = "out"
    """facts that begin at the entity, or those that end there as well"""
    allow_short: Constant[bool] = False
    """entities with fewer facts"""


@dataclass(frozen=True)
class Bias:
    """Sensitive relations (KG attributes, section 3)."""

    relations: tuple[OfGraph, ...] = ("P21", "P30", "P91", "P140")
    """sensitive relations (paper)"""
    max_degree: Count = 2
    """of the subject (paper)"""
    literal_edges: bool = False
    """dates count for the degree"""


_AMBIGUOUS = (
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 "
    "P140 P159 P176 P178 P190 P264 P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P530 P740 "
    "P937 P1001 P1303 P1376 P1412"
)


@dataclass(frozen=True)
class Ambiguous:
    """Two entities of one name (KG attributes, section 3)."""

    source: Literal["labels", "amber"] = "labels"
    """pairs by the labels of the graph, or AmbER's"""
    amber_sets: str | None = None
    """AmbER's file"""
    fold_case: bool = False
    """names are equal without regard to case"""
    relations: tuple[OfGraph, ...] = tuple(_AMBIGUOUS.split())
    """relations that both have"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """of them, left out"""
    examples: Count = 375
    """size of the benchmark (paper, Table 1)"""
    drop_same_object: bool = False
    """without pairs of the same object"""


@dataclass(frozen=True)
class Joins:
    """What joins statements. Memory is 65 % of what the job's `mem_mb` has above 500; what does not
    fit is spilled to the job's temporary folder (`resources: tmpdir`)."""

    engine: Literal["duckdb", "spark"] = "duckdb"
    """`duckdb`: on the machine of the job; `spark`: on a cluster, the same files"""
    master: Annotated[str, Pattern(".", "the address of a master")] = "local[*]"
    """of Spark: `spark://host:port`, `yarn` or `local[2]`"""
    folder: Annotated[str, Pattern(".", "a path")] = "results/.joins"
    """for Spark: storage that this machine and all workers see under one path, as they must see
    `results/`"""


@dataclass(frozen=True)
class Attributes:
    """The nine benchmarks of knowledge-graph structure. What the paper leaves open is a key whose
    default is the reading that fits its tables best (docs/papers/attributes.md, Decisions); the
    table of sensitivity shows what the other readings would give."""

    graph: str = "trex"
    """`world`: the embedded one; `trex`: the ingested T-REx with its dates; or a name of
    `sources.graphs`, whose relations the keys below name by their own ids, or by the property of
    Wikidata that says the same (`known` and `roles` of its section)"""
    thresholds: Literal["paper", "small", "table"] = "paper"
    """`small`, for graphs under about a million statements: `min_triples` 10 / 5 / 5 (symmetry,
    asymmetry, bidirectional), `min_combo` 10, `facts` 10, `top` 100; `table`: as small, with `top`
    200, for tables of triples in which many entities lack a label. A threshold that is given
    itself wins. Every table of results names it"""
    eval_examples: Count | None = 1000
    """size of the evaluation sample of a benchmark; null probes all. Bias and ambiguous are always
    probed whole (paper, section 4)"""
    require_labels: Constant[bool] = True
    """false skips labels and templates: the structural build alone, nothing to probe"""
    literals: bool = True
    """whether dates are objects in asymmetry; they are dropped everywhere else"""
    missing_template: Literal["error", "drop"] = "drop"
    """every sampled predicate without template is named in one message, or such candidates are left
    out, and the funnel lists the predicates"""
    candidates: Annotated[int, Range(2)] = 100
    """options per relation for ranking; the golds are always among them"""
    sensitivity: bool = True
    """also build every alternative of what the paper leaves open"""
    symmetry: Symmetry = Symmetry()
    """relations that hold both ways"""
    asymmetry: Asymmetry = Asymmetry()
    """relations that hold one way"""
    bidirectional: Bidirectional = Bidirectional()
    """pairs of inverse relations"""
    hierarchy: Hierarchy = Hierarchy()
    """chains of classes"""
    composite: Composite = Composite()
    """triangles of relations"""
    paths: Paths = Paths()
    """paths of two relations"""
    entity_centric: EntityCentric = EntityCentric()
    """facts of one entity"""
    bias: Bias = Bias()
    """sensitive relations"""
    ambiguous: Ambiguous = Ambiguous()
    """two entities of one name"""


@dataclass(frozen=True)
class AttributePrompts:
    """Prompts of the graph attributes (docs/papers/attributes.md, Prompts), and how their metrics
    are read."""

    tables: Annotated[tuple[str, ...], Length(1)] = (
        "resources/templates/attributes.tsv",
        "resources/lama/attributes.tsv",
    )
    """tables of templates beside templates.tsv"""
    most: Count | None = None
    """templates a relation, LAMA's first, then our own whose answer stands last; null: all"""
    synonyms: Annotated[int, Range(0, 2)] = 0
    """variants of each with one word replaced, by resources/templates/synonyms.tsv"""
    stop_space: bool = False
    """keep LAMA's space before the stop"""
    api: Constant[Count] = 10
    """prompts a relation for models behind an API, by hash"""
    match: Literal["label", "aliases"] = "aliases"
    """what a generated text must equal: the label of the gold, or label or one of its aliases,
    where the source has some; rules on case, accents, quotes, articles, initials and dates are
    counted one by one"""
    ambiguous_denominator: Literal["or", "head"] = "or"
    """denominator of ambiguous: head or tail right, or head right"""
    intersect: bool = True
    """an example that one model cannot be asked is left out for all"""


# -- AutoPrompt -----------------------------------------------------------------------------------

Metric = Literal["likelihood", "accuracy"]


@dataclass(frozen=True)
class SearchChanges:
    """Fields of a search that differ from the mode's (docs/papers/autoprompt.md, Search). What each
    does stands in probes/prompts/search/settings.py; null: as the mode has it."""

    candidates: Count | None = None
    """k: tokens tried per iteration"""
    accumulate: Count | None = None
    """A: batches of the gradient, and of the evaluation"""
    batch: Count | None = None
    """B: examples of a batch"""
    evaluation: Natural | None = None
    """examples that candidates are scored on; 0: A * B"""
    iterations: Count | None = None
    """steps of a search"""
    restarts: Count | None = None
    """searches from the start"""
    seed: Seed | None = None
    """of the batches"""
    metric: Metric | None = None
    """what candidates are compared by"""
    dev_metric: Metric | None = None
    """what the best trigger has most of"""
    accept: Literal["strict", "best_of_k"] | None = None
    """only what beats the current trigger, or the best candidate in any case"""
    batches: Literal["disjoint", "fresh"] | None = None
    """both batches from one permutation, or a shuffle each"""
    fill_all: bool | None = None
    """no initial token may be left"""
    initial: str | None = None
    """text of the initial trigger, as many tokens as places, or "" (the mask)"""
    special_filter: Literal["all", "special", "off"] | None = None
    """special tokens are no candidates"""
    label_filter: bool | None = None
    """label tokens are no candidates"""
    gold_filter: Literal["text", "exact", "off"] | None = None
    """golds are no candidates"""
    capital_filter: Literal["all", "slow_tokenizer", "off"] | None = None
    """words with a capital are no candidates"""
    habits: Literal["default", "released"] | None = None
    """small habits of the released code"""


SearchFields = Annotated[dict[str, Any], PartOf("SearchChanges")]


@dataclass(frozen=True)
class Labels:
    """Label tokens of the classes (AutoPrompt, section 2.3)."""

    tokens: Constant[Count] = 3
    """label tokens of a class"""
    epochs: Count = 50
    """of the regression that finds them"""
    at_chance: Literal["stop", "keep"] = "stop"
    """what to do where it is no better than the majority"""


@dataclass(frozen=True)
class Most:
    """Most examples of a group."""

    train: Count | None = None
    """of train; null: all"""
    dev: Count | None = None
    """of dev; null: all"""
    test: Count | None = None
    """of test; null: all"""


@dataclass(frozen=True)
class SearchTask:
    """The search of a task; its sizes (k, A, B, iterations) are the paper's of that task."""

    triggers: Count | None = None
    """trigger tokens; null: those of `prompt_tasks`"""
    groups: tuple[str, ...] | None = None
    """relations; null: all"""
    most: Most = Most()
    """most examples of a group, by hash of the facts"""
    settings: SearchFields = field(default_factory=dict)
    """fields of the search that differ from the mode's"""


@dataclass(frozen=True)
class ClassTask(SearchTask):
    """The search of a task with classes; prompt `searched_words` takes the manual prompt's
    words."""

    groups: Constant[tuple[str, ...] | None] = None
    labels: Labels = Labels()
    """label tokens of a class"""


@dataclass(frozen=True)
class Tasks:
    """The four tasks of searched prompts."""

    facts: SearchTask = SearchTask()
    """fact retrieval (AutoPrompt, section 5)"""
    relation_extraction: SearchTask = SearchTask()
    """relation extraction (AutoPrompt, section 6)"""
    sst2: ClassTask = ClassTask()
    """sentiment (AutoPrompt, section 3)"""
    sick: ClassTask = ClassTask()
    """entailment (AutoPrompt, section 4)"""


@dataclass(frozen=True)
class LowData:
    """Few training examples (AutoPrompt, section 3, Figure 2)."""

    sizes: Annotated[tuple[Annotated[int, Range(4)], ...], Length(1)] = (10, 100, 1000)
    """training examples (paper)"""
    draws: Count = 10
    """subsets of each size (paper)"""
    selection: Literal["within", "full"] | None = None
    """of the prompt within them (half of them), or by the full dev set, which is the score as well
    (optimistic; the paper's); null: `within` by default, `full` in the modes paper and released"""
    triggers: Count = 10
    """trigger tokens (paper)"""
    labels: Constant[Annotated[dict[str, Any], PartOf("Labels")]] = field(
        default_factory=lambda: {"tokens": 3}
    )
    """label tokens (paper: 3)"""
    settings: SearchFields = field(default_factory=dict)
    """fields of the search that differ from the paper's of few examples"""


@dataclass(frozen=True)
class SearchGrid:
    """Label tokens and trigger length, every combination searched (AutoPrompt, Figure 3)."""

    candidates: Annotated[tuple[Count, ...], Length(1)] = (100, 10)
    """k (paper)"""
    label_tokens: Annotated[tuple[Count, ...], Length(1)] = (1, 3, 5)
    """label tokens of a class (paper)"""
    triggers: Annotated[tuple[Count, ...], Length(1)] = (3, 4, 5, 6)
    """trigger tokens (paper)"""
    settings: SearchFields = field(default_factory=lambda: {"restarts": 1})
    """fields of the search"""


@dataclass(frozen=True)
class Demos:
    """Demonstrations in front of the manual prompt (prompts `demos` ...)."""

    k: Count = 4
    """training facts that are shown"""
    draws: Count = 3
    """draws of `demos` and of each of its controls"""


@dataclass(frozen=True)
class Autoprompt(Tasks):
    """Searches of prompts, and what they are compared with. Prompt `searched` and its controls,
    `manual`, `lpaqa`, `majority`, `linear_probe` ... stand in probes/prompt_settings.py."""

    mode: Mode = "default"
    """the rules where paper and released code disagree, in the search, the choice of prompts from
    few examples, perturbed objects and reciprocal ranks (0 beyond 10,000 under `released`). What
    `released` does not reach is printed in the report of such a run"""
    draws: Count = 20
    """random triggers that a searched prompt is compared with"""
    demos: Demos = Demos()
    """demonstrations"""
    models: dict[str, Annotated[dict[str, Any], PartOf("Tasks")]] = field(default_factory=dict)
    """model: task: the same keys for this model alone; method `predict` follows them, so that all
    prompts of a model are asked the same examples"""
    low_data: LowData = field(default_factory=LowData)
    """few training examples"""
    grid: SearchGrid = field(default_factory=SearchGrid)
    """label tokens and trigger length"""
    published: dict[str, str] = field(default_factory=dict)
    """model: its file of published searched prompts in LAMA's folder `autoprompt_published`, where
    it is neither bert-base-cased nor roberta-large"""
    transfer: dict[str, str] = field(default_factory=dict)
    """model: the model whose searched prompts its prompt `transferred` takes over, as text"""


@dataclass(frozen=True)
class Triggers:
    """Trigger tokens of the search templates, per task."""

    facts: Natural = 5
    """fact retrieval (AutoPrompt, section 5)"""
    relation_extraction: Natural = 5
    """relation extraction (AutoPrompt, section 6)"""
    sst2: Natural = 5
    """sentiment"""
    sick: Natural = 4
    """entailment"""


Shares = Annotated[tuple[Inner, ...], Length(2, 2)]


@dataclass(frozen=True)
class PromptFacts:
    """Fact retrieval (AutoPrompt, section 5)."""

    search: Literal["files", "pulls"] = "files"
    """facts to search with: those published with LAMA, or our T-REx facts, then our Wikidata facts,
    LAMA's test facts excluded"""
    relations: Annotated[tuple[Relation, ...], Length(1)] | None = None
    """relations by id; null for all 41"""
    most: Count = 1000
    """most facts of a relation out of pulls (paper, section 5)"""
    overlap: Overlap = "keep"
    """test facts that stand in train or dev, too: an error, or they leave these, or the published
    sets stay as published, and the no-overlap score stands beside"""
    single_token_for: tuple[str, ...] = ()
    """models of the table: only facts whose object is one token for all of them.
    `auto_lama_roberta` has the words common to BERT and RoBERTa without it"""
    least: Constant[Rows] = Rows(40, 10, 20)
    """fewest examples of a relation; fewer are an error that names relation, needed and found"""


@dataclass(frozen=True)
class PromptSentences:
    """Relation extraction (AutoPrompt, section 6)."""

    words: Constant[Count] = 50
    """of the longest sentence"""
    shares: Constant[Shares] = (0.6, 0.2)
    """of the facts in train and dev, by hash of the subject"""
    exclude: Constant[tuple[Relation, ...]] = ("P527", "P1376")
    """relations left out (paper)"""
    perturbed: Literal["fact", "released"] | None = None
    """one new object per fact, in its slot, or one per test sentence, for every occurrence; null:
    as `autoprompt.mode` has it"""
    least: Constant[Rows] = Rows(20, 5, 5)
    """fewest examples of a relation"""


@dataclass(frozen=True)
class PromptClasses:
    """Sentiment and entailment (AutoPrompt, sections 3 and 4)."""

    overlap: Overlap = "keep"
    """texts of test that stand in train or dev, too"""
    draws: Count = 5
    """samples of the balanced forms of SICK-E; each is a group with a prompt of its own"""


@dataclass(frozen=True)
class PromptWorld:
    """Fact retrieval on the embedded world (ours)."""

    relations: Annotated[tuple[Relation, ...], Length(1)] = ("P17", "P30")
    """relations of the world"""
    shares: Constant[Shares] = (0.3, 0.15)
    """of the training facts in train and dev, the others are test facts"""
    held_out: Constant[Natural] = 60
    """as many others beside them"""
    least: Rows = Rows(4, 2, 10)
    """fewest examples of a relation"""


@dataclass(frozen=True)
class PromptGraph:
    """Fact retrieval on all facts of a graph, `auto_NAME` (ours)."""

    relations: Annotated[tuple[OfGraph, ...], Length(1)] | None = None
    """relations by id; null for all that have `least` examples and a template"""
    shares: Constant[Shares] = (0.6, 0.2)
    """of the facts in train and dev, by hash of the subject; the others are test facts (the paper's
    set of T-REx)"""
    most: Constant[Count] = 1000
    """most facts of a relation, by hash of the subject (paper, section 5)"""
    least: Rows = Rows(4, 2, 4)
    """fewest examples of a relation"""


@dataclass(frozen=True)
class PromptWorldAll(PromptGraph):
    """Fact retrieval on all facts of the embedded world, `auto_world_all` (ours)."""

    relations: Constant[Annotated[tuple[OfGraph, ...], Length(1)] | None] = ("P17",)
    """relations by id; null for all that have enough examples and a template"""
    least: Constant[Rows] = Rows(4, 2, 4)


@dataclass(frozen=True)
class PromptTasks:
    """Tasks that prompts are searched for (benchmarks `auto_*`)."""

    triggers: Constant[Triggers] = Triggers()
    """trigger tokens"""
    facts: PromptFacts = PromptFacts()
    """fact retrieval"""
    sentences: PromptSentences = PromptSentences()
    """relation extraction"""
    classes: PromptClasses = PromptClasses()
    """sentiment and entailment"""
    world: PromptWorld = PromptWorld()
    """the embedded world"""
    world_all: PromptWorldAll = PromptWorldAll()
    """the embedded world whatever is trained on (`auto_world_all`), for models from elsewhere"""
    graphs: PromptGraph = PromptGraph()
    """graphs of `sources.graphs`"""


@dataclass(frozen=True)
class Settings:
    """The whole configuration. Threads, memory and devices are never here: they belong to the
    profile (profiles/)."""

    run: NamedRun = NamedRun()
    """what this run is called"""
    seed: Seed = 0
    """seeds every sample, split, training and bootstrap"""
    contact: str = ""
    """mail address or page for the User-Agent of live pulls; KGPROBE_CONTACT overrides it. A live
    pull without one stops before its first request"""
    languages: Annotated[tuple[Language, ...], Length(1, distinct=True)] = LANGUAGES
    """of labels and aliases, best first: an entity's label is in the first that it has one in.
    Wikidata deletes labels in `en` that equal the one for all languages, `mul`"""
    data: Annotated[str, Pattern(".", "a path")] = "data"
    """folder of the raw snapshots; outside results/, so that cleaning results keeps them"""
    tables: Tables = Tables()
    """the tables of models and of experiments"""
    sources: Sources = field(default_factory=Sources)
    """what comes in from outside"""
    comparisons: Annotated[
        tuple[Literal["access", "ontology", "bear"], ...], Length(distinct=True)
    ] = ("ontology", "bear")
    """tables that compare what is rebuilt: dumps with the pull over SPARQL, ours with the released
    ontology and BEAR; they make the report's section on sources"""
    ontology: Ontology = Ontology()
    """what of the ontology is taken"""
    ontoprobe: Ontoprobe = field(default_factory=Ontoprobe)
    """memorizing and reasoning over ontological knowledge"""
    bear: Bear = Bear()
    """construction of BEAR sets from the Wikidata pull"""
    world: World = World()
    """construction of BEAR sets from the embedded world"""
    released: ReleasedRows = ReleasedRows()
    """which part of the released BEAR sets is scored"""
    lama: Constant[LamaOptions] = LamaOptions()
    """LAMA's facts with options"""
    baselines: Baselines = Baselines()
    """what is reached without knowing: without the subject, by random weights"""
    forms: Forms = Forms()
    """forms of asking"""
    fill: Fill = Fill()
    """method fill"""
    choice: Choice = Choice()
    """method choice"""
    api: Api = Api()
    """models behind an API"""
    joins: Joins = Joins()
    """the engine of joins over statements"""
    attributes: Attributes = Attributes()
    """the nine benchmarks of knowledge-graph structure"""
    attribute_prompts: AttributePrompts = AttributePrompts()
    """prompts of the graph attributes"""
    autoprompt: Autoprompt = field(default_factory=Autoprompt)
    """searched prompts"""
    prompt_tasks: PromptTasks = PromptTasks()
    """tasks that prompts are searched for"""


# -- plain values and types -----------------------------------------------------------------------


@cache
def hints(section: Any) -> dict[str, Any]:
    """Field -> its type, with what `Annotated` adds."""
    return get_type_hints(section, include_extras=True)


def keys(section: Any) -> list[Field[Any]]:
    """The fields of a section that are keys of the configuration, and sections that have some."""
    known = hints(section if isinstance(section, type) else type(section))
    return [one for one in fields(section) if _is_key(known[one.name])]


def _is_key(hint: Any) -> bool:
    if isinstance(hint, type) and is_dataclass(hint):
        return bool(keys(hint))
    return Fixed() not in getattr(hint, "__metadata__", ())


Section = TypeVar("Section")


def typed(
    section: type[Section], given: Mapping[str, Any], below: Section | None = None
) -> Section:
    """The section made of plain values; keys that are missing come from `below`, else the default.

    Values are converted, not checked: `kgprobe.config` checks them. Raises ValueError for what no
    field alone can tell.
    """
    known, values = hints(section), {}  # type: ignore[arg-type]
    for key in fields(section):  # type: ignore[arg-type]
        older = getattr(below, key.name, None)
        if key.name in given:
            values[key.name] = _value(known[key.name], given[key.name], older)
        elif below is not None:
            values[key.name] = older
    return section(**values)


def _value(hint: Any, value: Any, older: Any) -> Any:
    """`value` as the type has it: sections from mappings, tuples from lists."""
    kind, inside = get_origin(hint), get_args(hint)
    if value is None or isinstance(value, str):
        return value
    if kind is Annotated:
        part = next((mark for mark in inside[1:] if isinstance(mark, PartOf)), None)
        return _keys(globals()[part.section], value) if part else _value(inside[0], value, older)
    if kind in (Union, types.UnionType):
        whole = [one for one in inside if one is not type(None)]
        return _value(whole[0], value, older) if len(whole) == 1 else value
    if kind is tuple:
        return tuple(_value(inside[0], one, None) for one in value)
    if kind is dict:
        return {key: _value(inside[1], one, None) for key, one in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return typed(hint, value, older)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)  # YAML's 1.0, which JSON schema takes for an integer
    return value


def _keys(section: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Some keys of a section, and of those inside it, with values as the section has them."""
    known = hints(section)
    return {
        key: _keys(known[key], one) if is_dataclass(known[key]) else _value(known[key], one, None)
        for key, one in given.items()
    }
