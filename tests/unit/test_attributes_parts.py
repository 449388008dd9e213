"""One job builds several attributes, each independently and hashed by its own code."""

import runpy
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.code import Code
from kgprobe.knowledge import graph as knowledge
from kgprobe.knowledge.engine_duckdb import DuckDB
from kgprobe.settings.benchmarks import ATTRIBUTES, Attributes
from kgprobe.settings.knowledge import Joins
from tests.unit.attribute_graphs import LABELS, ROOT, WORKED, facts

SCRIPT = ROOT / "workflow/scripts/build_attributes.py"
FILES = ("questions", "candidates", "examples", "steps", "patterns", "sizes", "sensitivity")


class Names(dict[str, Any]):
    """Named files or parameters of a rule, as Snakemake passes them."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __iter__(self):
        values = (v if isinstance(v, list) else [v] for v in self.values())
        return (path for some in values for path in some)


def build(folder: Path, attributes: list[str], **section: Any) -> Names:
    """Run the rule's script on the worked example and return its outputs."""
    tables = Names({name: str(folder / f"{name}.parquet") for name in knowledge.TABLES})
    with DuckDB() as engine:
        encoded = knowledge.encode(engine, engine.table(facts(WORKED.values(), LABELS)))
        knowledge.write(encoded, tables, {})
    properties = folder / "properties.parquet"
    labels = dict.fromkeys(("property", "datatype", "label"), pl.String)
    pl.DataFrame(schema=labels).write_parquet(properties)
    bias, names = (str(ROOT / "resources" / name) for name in
                   ("templates/attributes_bias.tsv", "world/properties.tsv"))  # fmt: skip
    none: dict[str, Any] = {"worded": [], "wikidata": [], "tables": [], "trained_on": []}
    inputs = {**tables, **none, "trained_on_options": [], "properties": str(properties)}
    output = Names({kind: [str(folder / f"{name}.{kind}") for name in attributes]
                    for kind in FILES})  # fmt: skip
    params = {
        "code": {name: f"code of {name}" for name in attributes}, "attributes": attributes,
        "settings": {**asdict(Attributes()), "sensitivity": False, **section},
        "joins": asdict(Joins()), "templated": ["P279/P279", *(f"P{n}" for n in range(1, 400))],
        "nouns": {}, "section": None, "seed": 0,
    }  # fmt: skip
    rule = SimpleNamespace(
        rule="build_attributes", input=Names(inputs, bias=bias, names=names), output=output,
        params=Names(params), wildcards=Names(), config={}, threads=1,
        resources=SimpleNamespace(mem_mb=3000), log=[str(folder / "log")],
    )  # fmt: skip
    runpy.run_path(str(SCRIPT), {"snakemake": rule})
    return output


def test_failed_attributes_do_not_stop_the_others(tmp_path, capfd):
    high = {"symmetry": {"min_triples": 1000}, "hierarchy": {"n": 5}, "paths": {"seeds": 5}}
    with pytest.raises(SystemExit):
        build(tmp_path, ["symmetry", "hierarchy", "bidirectional", "bias"], **high)
    shown = capfd.readouterr().err
    assert "2 of 4 parts failed" in shown
    assert "symmetry; bidirectional" in shown
    log = (tmp_path / "log").read_text()
    for name in ("symmetry", "bidirectional"):
        assert f"{name}: no example is left" in log
        assert not (tmp_path / f"{name}.examples").exists()
    for name in ("hierarchy", "bias"):
        assert schema.read(tmp_path / f"{name}.questions", schema.ITEMS).height


def test_a_file_depends_only_on_the_code_of_its_attribute(tmp_path):
    output = build(tmp_path, ["hierarchy", "bias"])
    for number, name in enumerate(("hierarchy", "bias")):
        for kind in FILES:
            assert schema.provenance(output[kind][number])["code"] == f"code of {name}"
    code = Code(ROOT / "src/kgprobe")
    shared = {"asymmetry": {"symmetry"}}  # counts of symmetric triples
    for name in ATTRIBUTES:
        modules = code.closure(SCRIPT, f"benchmarks/attributes/{name}")
        others = {other for other in ATTRIBUTES if f"benchmarks/attributes/{other}" in modules}
        assert others == {name} | shared.get(name, set())
