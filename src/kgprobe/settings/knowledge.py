"""Settings of the knowledge that benchmarks are built from: the ontology, joins of statements."""

from dataclasses import dataclass
from typing import Annotated, Literal

from kgprobe.settings.types import Count, Pattern


@dataclass(frozen=True)
class Ontology:
    """Which part of the ontology is used (OntoProbe, section 2.1)."""

    per_class: Count = 20
    """instances sampled per class by seeded hash (OntoProbe, section 2.1)"""
    properties: Count = 50
    """number of properties chosen by the rule (OntoProbe, section 2.1)"""
    choice: Literal["rule", "released"] = "rule"
    """by the rule (domain, range, superproperty, most statements), or the 52 released ones"""


@dataclass(frozen=True)
class Joins:
    """The engine that joins statements. It uses 65 % of the job's `mem_mb` above 500 and spills the
    rest to the job's temporary folder (`resources: tmpdir`)."""

    engine: Literal["duckdb", "spark"] = "duckdb"
    """`duckdb`: on the machine of the job; `spark`: on a cluster, with identical files"""
    master: Annotated[str, Pattern(".", "the address of a master")] = "local[*]"
    """address for Spark: `spark://host:port`, `yarn` or `local[2]`"""
    folder: Annotated[str, Pattern(".", "a path")] = "results/.joins"
    """for Spark: storage that this machine and all workers see under one path, like `results/`"""
