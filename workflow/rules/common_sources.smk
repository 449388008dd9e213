# Questions about sources: how each is had, which dumps there are, what is compared with what.

from kgprobe.settings import RELEASED
from kgprobe.sources.dumps import pins

EMBEDDED = Wikidata(access="embedded", endpoint="local", snapshot="embedded")


def graph(source):
    """Which of the two graphs a source speaks: the world's facts have Wikidata's shape."""
    return "dbpedia" if source.endswith("dbpedia") else "wikidata"


def endpoint(source):
    """The access settings of a source; the world is always embedded."""
    if source.startswith("world"):
        return EMBEDDED
    return getattr(SETTINGS.sources, source)


#: which pull a constructed set is made from
ORIGIN = {"bear": "wikidata", "world": "world"} | {name: name for name in GRAPHS}
#: OntoProbe set -> its ontology, and the pull whose statements say how well an instance is known
ONTOLOGIES = {"world": ("world_ontology", "world"), "built": ("ontology", "wikidata")}
ONTOLOGIES |= {name: (name, name) for name in GRAPHS}
#: the files of fixed commits and their ids
PINS = pins.read_pins(sheets.located(SETTINGS.sources.pins))
#: dumps by name, and those that statements are read from
NAMED = SETTINGS.sources.dumps
DUMPS = {name: dump for name, dump in NAMED.items() if dump.form != "names"}
#: what an own graph has instead of a table in resources/templates
OUR_TABLES = {
    "relations": "bear_relations",
    "templates": "templates",
    "patterns": "ontology_patterns",
}
#: what an embedded dump of each form is
RENDERED = {
    "json": "<resources>/world/dumps/wikidata.json.bz2",
    "truthy": "<resources>/world/dumps/wikidata.nt.bz2",
    "names": "<resources>/world/dumps/wikidata_names.nt.bz2",
    "ntriples": "<resources>/world/dbpedia.nt.gz",
}


def located_graph(name):
    """An own graph's section, its paths filled in."""
    own = GRAPHS[name]
    return replace(own, files=files(own.files), labels=files(own.labels))


def of_origin(table):
    """The table of templates or relations of a constructed set: ours, or its own graph's."""
    own, ours = f"<results>/benchmarks/own/{{}}/{table}.tsv", OUR_TABLES[table]
    return lambda wildcards: (
        own.format(wildcards.origin)
        if wildcards.origin in GRAPHS
        else f"<resources>/templates/{ours}.tsv"
    )


def origin_of(benchmark):
    """What a set of BEAR's is constructed from."""
    return benchmark.removesuffix("_big").removesuffix("_lite")


def construction(wildcards):
    """How a set is constructed."""
    own = GRAPHS.get(wildcards.origin)
    return asdict(own.bear if own else getattr(SETTINGS, wildcards.origin))


def dump_named(source, key, forms):
    """The dump that a source's setting names. ConfigError where there is none of these forms."""
    name = getattr(getattr(SETTINGS.sources, source), key)
    fitting = [other for other, dump in NAMED.items() if dump.form in forms]
    if name not in fitting:
        raise ConfigError(
            f"sources.{source}.{key} is {name!r}; sources.dumps of form {' or '.join(forms)}: "
            f"{', '.join(fitting) or 'none'}"
        )
    return name


def is_dump(source):
    """Whether a source is read out of dumps."""
    return endpoint(source).access == "dump"


#: what is read for statements: the dumps, and Wikidata itself where it is one of them
READ = dict(DUMPS)
if is_dump("wikidata"):
    READ["wikidata"] = NAMED[dump_named("wikidata", "dump", ("json", "truthy"))]


def rdf(wildcards):
    """RDF files that a local endpoint serves for a source; none when it is pulled live."""
    return rdf_of(wildcards.source)


def rdf_of(source):
    """The same for the source's name."""
    chosen = endpoint(source)
    if chosen.access == "embedded":
        return [f"<resources>/world/{graph(source)}.nt.gz"]
    if chosen.access == "dump" and source == "dbpedia":
        return [dump_file(NAMED[dump_named(source, "ontology", ("ntriples", "names"))])]
    if chosen.access == "dump":
        return [f"<results>/sources/{source}/described.nt"]
    return files(chosen.files) if chosen.access == "local" else []


def left_out(source):
    """The query that counts what the query for facts leaves out, where there is anything to count."""
    truthy = endpoint(source).statements == "facts_truthy"
    return [] if truthy else "<resources>/queries/wikidata/left_out.rq"


def dumped(source):
    """The statements of the dump that relations come from which are too large to be pulled."""
    name = "" if source == "world" else SETTINGS.sources.wikidata.dump
    if name and name not in DUMPS:
        raise ConfigError(
            f"sources.wikidata.dump is {name!r}; sources.dumps has {', '.join(DUMPS) or 'none'}"
        )
    return [f"<results>/sources/{name}/facts.parquet"] if name else []


def read_aliases(source):
    """Other names out of a dump, where that is what a source is."""
    return f"<results>/sources/{source}/aliases.parquet" if is_dump(source) else []


def dump_files(chosen):
    """The files of a dump: its own, and those that have what it lacks."""
    if unknown := [name for name in chosen.more if name not in NAMED]:
        raise ConfigError(
            f"sources.dumps: more names {', '.join(unknown)}; there is "
            f"{', '.join(NAMED)}"
        )
    return [dump_file(one) for one in (chosen, *(NAMED[name] for name in chosen.more))]


def dump_file(chosen):
    """The file of a dump: the embedded one, found on disk, or to be downloaded."""
    if chosen.access == "embedded":
        return RENDERED[chosen.form]
    return files([chosen.file])[0] if chosen.access == "local" else chosen.file


def archives():
    """(data set, number) -> an archive that parts of it are fetched from."""
    sections = {name: getattr(SETTINGS.sources, name) for name in RELEASED}
    return {
        (name, number): archive
        for name, chosen in sections.items()
        for number, archive in enumerate(chosen.archives)
        if chosen.access == "live"
    }


def pinned(archive):
    """The tree that an archive's files are pinned in, if it is."""
    try:
        return pins.chosen(PINS, archive.tree, archive.url)
    except pins.PinError as problem:
        raise WorkflowError(f"config: archive {archive.url}: {problem}") from None


def downloads():
    """name -> (file, address) of what is fetched: live dumps, and the archive of T-REx."""
    found = {
        name: (dump.file, dump.url)
        for name, dump in NAMED.items()
        if dump.access == "live"
    }
    trex = SETTINGS.sources.trex
    if trex.access == "live":
        found["trex"] = (trex.path, trex.url)
    return found


def compared(what):
    """Whether the config asks for a comparison: access, ontology or bear."""
    return what in SETTINGS.comparisons


def compared_dumps():
    """Dumps of Wikidata, which the pull is compared with."""
    return sorted(name for name, dump in DUMPS.items() if dump.form != "ntriples")


def pulled_facts():
    """The pull that dumps are compared with: of the world, or of Wikidata."""
    embedded = any(dump.access == "embedded" for dump in DUMPS.values())
    return f"<results>/sources/{'world' if embedded else 'wikidata'}/facts.parquet"


def comparisons():
    """The tables that the config asks for."""
    names = {
        "access": "access_agreement",
        "ontology": "ontology_agreement",
        "bear": "bear_against_released",
    }
    return [
        f"<results>/tables/{names[what]}.parquet" for what in names if compared(what)
    ]


def constructed():
    """Constructed sets that are compared, though no probe may ask them."""
    return ["bear_big"] if compared("bear") else []


def trex_dump(wildcards=None):
    """The folder or zip of T-REx files."""
    chosen = SETTINGS.sources.trex
    if chosen.access == "embedded":
        return "<resources>/world/trex.zip"
    return chosen.path if chosen.access == "live" else files([chosen.path])[0]


#: files of T-REx that one job reads: starting one costs as much as reading a file
TREX_FILES = 10


def trex_parts():
    """Number of a job that reads T-REx -> names of its files, without their ending."""
    if SETTINGS.sources.trex.access == "embedded":
        return {"000": ["re-nlg_0-10000"]}
    from kgprobe.sources.dumps.trex import PUBLISHED, members

    names = PUBLISHED
    if Path(trex_dump()).exists():
        names = [Path(name).stem for name in members(Path(trex_dump()))]
    starts = range(0, len(names), TREX_FILES)
    return {
        f"{n:03}": names[start : start + TREX_FILES] for n, start in enumerate(starts)
    }


def released_bear(wildcards):
    """The folder of the released set; it is downloaded first where access is live."""
    return released("bear", "BEAR-big" if wildcards.size else "BEAR")


def released(source, part):
    """A folder of a released data set; it is downloaded first where access is live."""
    chosen = getattr(SETTINGS.sources, source)
    path = f"{chosen.folder}/{part}"
    return path if chosen.access == "live" else files([path])[0]
