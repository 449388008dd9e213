"""Access to sources: files on disk, downloads, dumps, endpoints, and comparisons of them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kgprobe import experiments
from kgprobe.config import ConfigError
from kgprobe.files import PACKAGE, ROOT
from kgprobe.settings import Settings
from kgprobe.settings.sources import RELEASED, Archive, Dump, OwnGraph, SparqlSource, Wikidata
from kgprobe.sources import rdf_forms
from kgprobe.sources.dumps import lock_file

EMBEDDED = Wikidata(access="embedded", endpoint="local", snapshot="embedded")
#: embedded dump of each form
RENDERED = {
    "json": "<resources>/world/dumps/wikidata.json.bz2",
    "truthy": "<resources>/world/dumps/wikidata.nt.bz2",
    "names": "<resources>/world/dumps/wikidata_names.nt.bz2",
    "ntriples": "<resources>/world/dbpedia.nt.gz",
}
#: comparison that the configuration may ask for -> its table
COMPARISONS = {
    "access": "access_agreement",
    "ontology": "ontology_agreement",
    "bear": "bear_against_released",
}
#: T-REx files per job: starting a job costs as much as reading a file
TREX_FILES = 10


def files(paths: Iterable[str]) -> list[str]:
    """Expand environment variables in paths of the configuration. Raises ConfigError for a path
    that contains braces or does not exist, except LAMA's templates: an installed package lacks them
    and uses our templates of the same relations instead."""
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


def files_in(paths: Iterable[str]) -> list[str]:
    """Return the files of paths of the configuration: of a folder, whose own time does not change
    when a file in it is overwritten, those directly in it. Raises ConfigError as `files` does."""
    found = [Path(path) for path in files(paths)]
    held = [sorted(filter(Path.is_file, p.iterdir())) if p.is_dir() else [p] for p in found]
    return files(str(path) for some in held for path in some)


def check_graph(name: str, graph: OwnGraph) -> None:
    """Raise ConfigError for a file or folder that, by its name, is not of the graph's form; paths
    with environment variables are not checked."""
    # this import takes a moment
    from kgprobe.sources.graphs.tables import ENDINGS

    legal = ", ".join(ENDINGS) if graph.form == "table" else rdf_forms.LEGAL
    for path in (path for path in (*graph.files, *graph.labels) if "$" not in path):
        place, wrong = Path(experiments.located(path)), ""
        if place.is_dir() != (graph.form == "lm_pub_quiz"):
            wrong = "a folder; expected a file" if place.is_dir() else "a file; expected a folder"
        elif graph.form == "table" and place.suffix.lower() not in ENDINGS:
            wrong = f"not a known type of table; valid endings: {legal}"
        elif graph.form == "rdf" and rdf_forms.ending(place) not in rdf_forms.FORMS:
            wrong = f"not a known RDF file; valid endings: {legal}"
        if wrong:
            raise ConfigError(f"config: sources.graphs.{name}: form is {graph.form}, and {path} "
                              f"is {wrong}")  # fmt: skip


def data_parts(settings: Settings, source: str, names: Iterable[str]) -> list[str]:
    """Return files or folders of a data set in parts, those to be downloaded if access is live; ""
    stands for everything downloaded. The files below local folders follow, since a folder's own
    time does not change when a file in it is overwritten. Raises ConfigError if they are not
    available."""
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
    if chosen.access == "live":
        return paths
    found = files(paths)
    below = [str(one) for at in found for one in sorted(Path(at).rglob("*")) if one.is_file()]
    # Snakemake takes braces for wildcards; no released file has them in its name
    return [*found, *(at for at in below if not {"{", "}"} & set(at))]


def bear_domains(settings: Settings) -> list[str]:
    """Return the file with the domains of BEAR's relations, if it is next to a local folder."""
    path = f"{settings.sources.bear.folder}/relation_info.json"
    is_there = Path(experiments.located(path)).exists()
    return files([path]) if settings.sources.bear.access == "local" and is_there else []


def graph_of(source: str) -> str:
    """Return the graph whose queries a source answers; the embedded facts have Wikidata's form."""
    return "dbpedia" if source.endswith("dbpedia") else "wikidata"


def endpoint(settings: Settings, source: str) -> SparqlSource:
    """Return the access settings of a source: EMBEDDED for the embedded knowledge graph."""
    section: SparqlSource = getattr(settings.sources, source, EMBEDDED)
    return EMBEDDED if source.startswith("world") else section


def is_dump(settings: Settings, source: str) -> bool:
    """Return whether a source is read from dumps."""
    return endpoint(settings, source).access == "dump"


def own_graph(settings: Settings, name: str) -> dict[str, Any]:
    """Return the section needed for reading a user-supplied graph, with expanded paths."""
    section = settings.sources.graphs[name]
    paths = {"files": files(section.files), "labels": files(section.labels)}
    return without(section, "bear", "templates") | paths


def without(section: Any, *keys: str) -> dict[str, Any]:
    """Return a section as plain values, without keys that should not trigger a rerun."""
    return {key: value for key, value in asdict(section).items() if key not in keys}


def statement_dumps(settings: Settings) -> dict[str, Dump]:
    """Return the dumps that statements are read from, by name."""
    return {name: dump for name, dump in settings.sources.dumps.items() if dump.form != "names"}


def read_dumps(settings: Settings) -> dict[str, Dump]:
    """Return the dumps that statements are read from, by name, including Wikidata if it is one."""
    dumps = statement_dumps(settings)
    if is_dump(settings, "wikidata"):
        dumps["wikidata"] = dump_of(settings, "wikidata", "dump", ("json", "truthy"))
    return dumps


def dump_of(settings: Settings, source: str, key: str, forms: Iterable[str]) -> Dump:
    """Return the dump named in a source's setting. Raises ConfigError if it is unknown or has none
    of these forms."""
    name = getattr(getattr(settings.sources, source), key)
    fitting = {n: dump for n, dump in settings.sources.dumps.items() if dump.form in forms}
    if name not in fitting:
        raise ConfigError(
            f"sources.{source}.{key} is {name!r}; sources.dumps of form {' or '.join(forms)}: "
            f"{', '.join(fitting) or 'none'}"
        )
    return fitting[name]


def dump_files(settings: Settings, dump: Dump) -> list[str]:
    """Return the file of a dump (embedded, on disk, or to be downloaded), and those of the dumps
    that supplement it."""
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


def statement_files(settings: Settings, name: str) -> list[str]:
    """Return the files of a dump that statements are read from. Raises ConfigError if it does not
    say which."""
    dump = read_dumps(settings)[name]
    if dump.form == "ntriples" and not dump.relations:
        raise ConfigError(
            f"sources.dumps.{name}.relations: none, needed to read statements of form ntriples; "
            "expected IRIs (null stands for BEAR's relations, which are Wikidata's)"
        )
    return dump_files(settings, dump)


def rdf_files(settings: Settings, source: str) -> list[str]:
    """Return the RDF files that the queries of a source are run on; none if it is pulled live."""
    chosen = endpoint(settings, source)
    if chosen.access == "embedded":
        return [f"<resources>/world/{graph_of(source)}.nt.gz"]
    if chosen.access == "dump" and source == "dbpedia":
        dump = dump_of(settings, source, "ontology", ("ntriples", "names"))
        return dump_files(settings, replace(dump, more=()))
    if chosen.access == "dump":
        return [f"<results>/sources/{source}/described.nt"]
    if chosen.access == "local" and not chosen.files:
        raise ConfigError(f"config: sources.{source}.files: none, needed where access is local")
    paths = files(chosen.files) if chosen.access == "local" else []
    if wrong := [path for path in paths if rdf_forms.ending(path) not in rdf_forms.FORMS]:
        raise ConfigError(
            f"config: sources.{source}.files: {', '.join(wrong)} is not a known RDF file; "
            f"valid endings: {rdf_forms.LEGAL}"
        )
    return paths


def dump_aliases(settings: Settings, source: str) -> str | list[str]:
    """Return the aliases read from a dump, if the source is one; `[]` is no file."""
    is_read = is_dump(settings, source)
    return f"<results>/sources/{source}/aliases.parquet" if is_read else []


def large_relations(settings: Settings, source: str) -> list[str]:
    """Return the statements from the dump for relations that are too large to be pulled."""
    name = "" if source == "world" else settings.sources.wikidata.dump
    known = statement_dumps(settings)
    if name and name not in known:
        raise ConfigError(
            f"sources.wikidata.dump is {name!r}; sources.dumps has {', '.join(known) or 'none'}"
        )
    return [f"<results>/sources/{name}/facts.parquet"] if name else []


def archives(settings: Settings) -> dict[tuple[str, int], Archive]:
    """Return (data set, number) -> an archive to download parts of the data set from."""
    sections = {name: getattr(settings.sources, name) for name in RELEASED}
    return {
        (name, number): archive
        for name, chosen in sections.items()
        for number, archive in enumerate(chosen.archives)
        if chosen.access == "live"
    }


def pinned(trees: Mapping[str, lock_file.Tree], archive: Archive) -> lock_file.Tree | None:
    """Return the tree in which an archive's files are pinned, or None."""
    try:
        return lock_file.find_tree(trees, archive.tree, archive.url)
    except lock_file.LockError as problem:
        raise ConfigError(f"config: archive {archive.url}: {problem}") from None


def downloads(settings: Settings) -> dict[str, tuple[str, str, dict[str, str | None]]]:
    """Return name -> (file, URL, published sums) of downloads: live dumps, and the archive of
    T-REx."""
    dumps, trex = settings.sources.dumps, settings.sources.trex
    live = {
        name: (dump.file, dump.url or "", asdict(dump.sums))
        for name, dump in dumps.items()
        if dump.access == "live"
    }
    return live | (
        {"trex": (trex.path, trex.url, asdict(trex.sums))} if trex.access == "live" else {}
    )


def trex_dump(settings: Settings) -> str:
    """Return the path of the folder or zip of T-REx files."""
    chosen = settings.sources.trex
    if chosen.access == "embedded":
        return "<resources>/world/trex.zip"
    return chosen.path if chosen.access == "live" else files([chosen.path])[0]


def trex_files(settings: Settings, part: str) -> list[str]:
    """Return the zip of T-REx files, or the files of a job if they are in a folder."""
    place = trex_dump(settings)
    if settings.sources.trex.access == "local" and Path(place).is_dir():
        return [f"{place}/{name}.json" for name in trex_parts(settings)[part]]
    return [place]


def shared(settings: Settings) -> dict[str, list[str]]:
    """Return downloaded files and folders by lock file: runs share them, in the same data folder or
    from two working folders."""
    by_lock: dict[str, list[str]] = {}
    for (name, _), archive in archives(settings).items():
        folder = Path(getattr(settings.sources, name).folder)
        lock = str(folder.parent / f".{folder.name}.lock")
        by_lock.setdefault(lock, []).extend(f"{folder}/{part}" for part in archive.parts)
    for file, *_ in downloads(settings).values():
        path = Path(file)
        by_lock.setdefault(str(path.parent / f".{path.name}.lock"), []).append(file)
    return by_lock


def trex_parts(settings: Settings) -> dict[str, list[str]]:
    """Return the number of a job that reads T-REx -> names of its files without extension."""
    access = settings.sources.trex.access
    if access == "embedded":
        return {"000": ["re-nlg_0-10000"]}
    from kgprobe.sources.dumps.trex import PUBLISHED, members  # takes half a second

    # the jobs of a run must not depend on how much of the archive has been downloaded
    names = PUBLISHED
    if access != "live":
        names = [Path(name).stem for name in members(Path(trex_dump(settings)))]
    starts = range(0, len(names), TREX_FILES)
    return {f"{n:03}": names[start : start + TREX_FILES] for n, start in enumerate(starts)}
