"""The benchmarks that a table of experiments may name."""

from collections.abc import Iterable
from dataclasses import dataclass

from kgprobe.config import ConfigError
from kgprobe.settings.benchmarks import ATTRIBUTES


@dataclass(frozen=True)
class BenchmarkEntry:
    """A paper's benchmark. `source`: the user-supplied graph, or the data set of a prompt task,
    that it is built from; `parts`: the parts of the data set that it uses."""

    paper: str
    description: str
    source: str = ""
    parts: tuple[str, ...] = ()


CONSTRUCTED = {
    "bear_big": "constructed from the Wikidata pull",
    "bear_lite": "constructed from the Wikidata pull",
    "world_big": "constructed from the embedded graph",
    "world_lite": "constructed from the embedded graph",
    "bear_released": "the released BEAR",
    "bear_big_released": "the released BEAR-big",
    "lama": "LAMA's T-REx facts with options",
    "onto_world": "OntoProbe's tasks from the ontology of the embedded graph",
    "onto_world_lite": "a small subset of onto_world, for options scored as sentences",
    "onto_built": "OntoProbe's tasks from the pulled ontology",
    "onto_built_lite": "a small subset of onto_built, for options scored as sentences",
    "onto_released": "the released OntoProbe",
    "onto_released_lite": "a small subset of the released OntoProbe",
}
_SICK = "sick", ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt")
#: tasks for searched prompts -> data set and its parts
PROMPT_TASKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "auto_lama": ("lama", ("trex_original",)),
    "auto_lama_trex": ("lama", ("trex_extend",)),
    "auto_lama_roberta": ("lama", ("trex_original",)),
    "auto_re": ("trex_sentences", ("",)),
    "auto_re_perturbed": ("trex_sentences", ("",)),
    "auto_sst2": ("sst2", ("sentiment-train", "sentiment-dev", "sentiment-test")),
    "auto_sick": _SICK,
    "auto_world": ("world", ()),
    "auto_world_all": ("world", ()),
    "auto_sick_2way": _SICK,
    "auto_sick_3way": _SICK,
}
#: benchmarks built from a user-supplied graph
OF_GRAPH = {
    "{}_big": ("bear", "constructed from {}"),
    "{}_lite": ("bear", "a smaller set constructed from {}"),
    "onto_{}": ("ontoprobe", "OntoProbe's tasks from {}"),
    "onto_{}_lite": ("ontoprobe", "a small subset of OntoProbe's tasks from {}"),
    "auto_{}": ("autoprompt", "a prompt task of {}"),
}


def known_benchmarks(graphs: Iterable[str] = ()) -> dict[str, BenchmarkEntry]:
    """Return all benchmarks by name, those of user-supplied graphs last."""
    entries = {
        name: BenchmarkEntry("ontoprobe" if name.startswith("onto_") else "bear", description)
        for name, description in CONSTRUCTED.items()
    }
    for name in ATTRIBUTES:
        entries[name] = BenchmarkEntry("attributes", "an attribute of the knowledge graph")
    for name, (source, parts) in PROMPT_TASKS.items():
        entries[name] = BenchmarkEntry("autoprompt", f"a prompt task of {source}", source, parts)
    for graph in graphs:
        for name, (paper, description) in OF_GRAPH.items():
            entries[name.format(graph)] = BenchmarkEntry(paper, description.format(graph), graph)
    return entries


def check_names(graphs: Iterable[str]) -> None:
    """Raise ConfigError if a user-supplied graph or a benchmark built from it has a name in use."""
    known = known_benchmarks()
    for graph in graphs:
        names = [graph, *(name.format(graph) for name in OF_GRAPH)]
        if clashes := [name for name in names if name in known]:
            raise ConfigError(
                f"config: sources.graphs.{graph}: {clashes[0]} is a benchmark already "
                f"({known[clashes[0]].description}); give the graph another name"
            )


def origin_of(benchmark: str) -> str:
    """Return the source that one of BEAR's benchmarks is constructed from.

    >>> origin_of("world_lite")
    'world'
    """
    return benchmark.removesuffix("_big").removesuffix("_lite")


def files_of(benchmarks: Iterable[str], *tables: str) -> list[str]:
    """Return the given tables of every benchmark.

    >>> files_of(["lama"], "items")
    ['<results>/benchmarks/lama/items.parquet']
    """
    return [f"<results>/benchmarks/{b}/{table}.parquet" for b in benchmarks for table in tables]
