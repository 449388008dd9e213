"""How sources are had: files on disk, downloads, dumps, endpoints, and what is compared."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kgprobe import experiments
from kgprobe.config import ConfigError
from kgprobe.files import PACKAGE, ROOT
from kgprobe.settings import Settings
from kgprobe.settings.sources import RELEASED, Archive, Dump, SparqlSource, Wikidata
from kgprobe.sources import rdf_forms
from kgprobe.sources.dumps import lock_file

EMBEDDED = Wikidata(access="embedded", endpoint="local", snapshot="embedded")
#: what an embedded dump of each form is
RENDERED = {
    "json": "<resources>/world/dumps/wikidata.json.bz2",
    "truthy": "<resources>/world/dumps/wikidata.nt.bz2",
    "names": "<resources>/world/dumps/wikidata_names.nt.bz2",
    "ntriples": "<resources>/world/dbpedia.nt.gz",
}
#: comparison that the config may ask for -> its table
COMPARISONS = {
    "access": "access_agreement",
    "ontology": "ontology_agreement",
    "bear": "bear_against_released",
}
#: files of T-REx that one job reads: starting one costs as much as reading a file
TREX_FILES = 10


def files(paths: Iterable[str]) -> list[str]:
    """Paths of the config with their environment variables filled in. Raises ConfigError for one
    that holds braces, or that does not exist, except LAMA's templates, which an installed package
    does not have: our own of the same relations are used then."""
    found = {path: experiments.located(path) for path in paths}
    if ROOT.parent == PACKAGE:
        found = {p: at for p, at in found.items()
                 if Path(at).exists() or not at.startswith("resources/lama/")}  # fmt: skip
    for path, at in found.items():
        if not Path(at).exists():
            remedy = "correct the path, which begins at the folder of the run"
            if "KGPROBE_DATA" in path:
                remedy = "set KGPROBE_DATA to the folder of the real data, or correct the path"
            raise ConfigError(f"config: no such file or folder: {at}; {remedy}")
        if {"{", "}"} & set(at):
            raise ConfigError(f"{at}: braces in a path are Snakemake's wildcards; rename it")
    return list(found.values())


def data_parts(settings: Settings, source: str, names: Iterable[str]) -> list[str]:
    """Files or folders of a data set in parts, downloaded first where access is live; "" stands for
    all that is downloaded. Raises ConfigError where they are not to be had."""
    if not (names := list(names)):
        return []
    chosen = getattr(settings.sources, source)
    if chosen.access == "absent":
        raise ConfigError(
            f"config: sources.{source}.access is absent, but {', '.join(names) or source} is "
            "needed; write local (and the folder) or live, or leave out the experiments that need "
            "it"
        )
    if chosen.access == "live":
        downloaded = [name for archive in chosen.archives for name in archive.parts]
        names = [name for n in names for name in ([n] if n else downloaded)]
    paths = [f"{chosen.folder}/{name}".rstrip("/") for name in names]
    return paths if chosen.access == "live" else files(paths)


def graph_of(source: str) -> str:
    """The graph whose queries a source answers: the world's facts have Wikidata's shape."""
    return "dbpedia" if source.endswith("dbpedia") else "wikidata"


def endpoint(settings: Settings, source: str) -> SparqlSource:
    """The access settings of a source; the world is always embedded."""
    section: SparqlSource = getattr(settings.sources, source, EMBEDDED)
    return EMBEDDED if source.startswith("world") else section


def is_dump(settings: Settings, source: str) -> bool:
    """Whether a source is read out of dumps."""
    return endpoint(settings, source).access == "dump"


def own_graph(settings: Settings, name: str) -> dict[str, Any]:
    """The section of an own graph that it is read by, its paths filled in."""
    section = settings.sources.graphs[name]
    paths = {"files": files(section.files), "labels": files(section.labels)}
    return without(section, "bear", "templates") | paths


def without(section: Any, *keys: str) -> dict[str, Any]:
    """A section as plain values, but for keys that a job does not read: they rerun nothing."""
    return {key: value for key, value in asdict(section).items() if key not in keys}


def statement_dumps(settings: Settings) -> dict[str, Dump]:
    """Dumps that statements are read from, by name."""
    return {name: dump for name, dump in settings.sources.dumps.items() if dump.form != "names"}


def read_dumps(settings: Settings) -> dict[str, Dump]:
    """Dumps that statements are read from, by name, and Wikidata itself where it is one of them."""
    dumps = statement_dumps(settings)
    if is_dump(settings, "wikidata"):
        dumps["wikidata"] = dump_of(settings, "wikidata", "dump", ("json", "truthy"))
    return dumps


def dump_of(settings: Settings, source: str, key: str, forms: Iterable[str]) -> Dump:
    """The dump that a source's setting names. Raises ConfigError where there is none of these
    forms."""
    name = getattr(getattr(settings.sources, source), key)
    fitting = {n: dump for n, dump in settings.sources.dumps.items() if dump.form in forms}
    if name not in fitting:
        raise ConfigError(
            f"sources.{source}.{key} is {name!r}; sources.dumps of form {' or '.join(forms)}: "
            f"{', '.join(fitting) or 'none'}"
        )
    return fitting[name]


def dump_files(settings: Settings, dump: Dump) -> list[str]:
    """The file of a dump (embedded, on disk, or to be downloaded), and those of the dumps that have
    what it lacks."""
    known = settings.sources.dumps
    if unknown := [name for name in dump.more if name not in known]:
        raise ConfigError(
            f"sources.dumps: more names {', '.join(unknown)}; there is {', '.join(known)}"
        )
    paths = []
    for one in (dump, *(known[name] for name in dump.more)):
        if one.access == "embedded":
            paths.append(RENDERED[one.form])
        else:
            paths += files([one.file]) if one.access == "local" else [one.file]
    return paths


def rdf_files(settings: Settings, source: str) -> list[str]:
    """RDF files that the queries of a source are asked of; none when it is pulled live."""
    chosen = endpoint(settings, source)
    if chosen.access == "embedded":
        return [f"<resources>/world/{graph_of(source)}.nt.gz"]
    if chosen.access == "dump" and source == "dbpedia":
        dump = dump_of(settings, source, "ontology", ("ntriples", "names"))
        return dump_files(settings, replace(dump, more=()))
    if chosen.access == "dump":
        return [f"<results>/sources/{source}/described.nt"]
    paths = files(chosen.files) if chosen.access == "local" else []
    if wrong := [path for path in paths if rdf_forms.ending(path) not in rdf_forms.FORMS]:
        raise ConfigError(
            f"config: sources.{source}.files: {', '.join(wrong)} is no RDF that is known by its "
            f"name; valid endings: {rdf_forms.LEGAL}"
        )
    return paths


def dump_aliases(settings: Settings, source: str) -> str | list[str]:
    """Other names out of a dump, where that is what a source is; `[]` is no file."""
    is_read = is_dump(settings, source)
    return f"<results>/sources/{source}/aliases.parquet" if is_read else []


def large_relations(settings: Settings, source: str) -> list[str]:
    """The statements of the dump that relations come from which are too large to be pulled."""
    name = "" if source == "world" else settings.sources.wikidata.dump
    known = statement_dumps(settings)
    if name and name not in known:
        raise ConfigError(
            f"sources.wikidata.dump is {name!r}; sources.dumps has {', '.join(known) or 'none'}"
        )
    return [f"<results>/sources/{name}/facts.parquet"] if name else []


def archives(settings: Settings) -> dict[tuple[str, int], Archive]:
    """(data set, number) -> an archive that parts of it are downloaded from."""
    sections = {name: getattr(settings.sources, name) for name in RELEASED}
    return {
        (name, number): archive
        for name, chosen in sections.items()
        for number, archive in enumerate(chosen.archives)
        if chosen.access == "live"
    }


def pinned(trees: Mapping[str, lock_file.Tree], archive: Archive) -> lock_file.Tree | None:
    """The tree that an archive's files are pinned in, if it is."""
    try:
        return lock_file.find_tree(trees, archive.tree, archive.url)
    except lock_file.LockError as problem:
        raise ConfigError(f"config: archive {archive.url}: {problem}") from None


def downloads(settings: Settings) -> dict[str, tuple[str, str]]:
    """name -> (file, address) of what is downloaded: live dumps, and the archive of T-REx."""
    dumps, trex = settings.sources.dumps, settings.sources.trex
    live = {n: (dump.file, dump.url or "") for n, dump in dumps.items() if dump.access == "live"}
    return live | ({"trex": (trex.path, trex.url)} if trex.access == "live" else {})


def trex_dump(settings: Settings) -> str:
    """The folder or zip of T-REx files."""
    chosen = settings.sources.trex
    if chosen.access == "embedded":
        return "<resources>/world/trex.zip"
    return chosen.path if chosen.access == "live" else files([chosen.path])[0]


def shared(settings: Settings) -> dict[str, list[str]]:
    """Files and folders that are downloaded, by the file whose lock says who downloads them: runs
    share them, below the same folder of data or from two working folders."""
    by_lock: dict[str, list[str]] = {}
    for (name, _), archive in archives(settings).items():
        folder = Path(getattr(settings.sources, name).folder)
        lock = str(folder.parent / f".{folder.name}.lock")
        by_lock.setdefault(lock, []).extend(f"{folder}/{part}" for part in archive.parts)
    for file, _ in downloads(settings).values():
        path = Path(file)
        by_lock.setdefault(str(path.parent / f".{path.name}.lock"), []).append(file)
    return by_lock


def trex_parts(settings: Settings) -> dict[str, list[str]]:
    """Number of a job that reads T-REx -> names of its files, without their ending."""
    access = settings.sources.trex.access
    if access == "embedded":
        return {"000": ["re-nlg_0-10000"]}
    from kgprobe.sources.dumps.trex import PUBLISHED, members  # half a second

    # the jobs of a run must not depend on how much of the archive has come
    names = PUBLISHED
    if access != "live":
        names = [Path(name).stem for name in members(Path(trex_dump(settings)))]
    starts = range(0, len(names), TREX_FILES)
    return {f"{n:03}": names[start : start + TREX_FILES] for n, start in enumerate(starts)}
