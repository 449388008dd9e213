"""RDF files of every compression are served, and other files are refused in the plan."""

import bz2
import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from kgprobe.config import ConfigError
from kgprobe.settings import Settings
from kgprobe.settings.sources import OwnGraph
from kgprobe.sources.graphs.raw import GraphFileError
from kgprobe.sources.graphs.read import read
from kgprobe.sources.sparql.endpoint import EndpointError, open_store
from kgprobe.workflow.sources import rdf_files

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
NT = (
    "".join(f'<http://x/{n}> <{LABEL}> "{n}" .\n' for n in "ab")
    + "<http://x/a> <p:p> <http://x/b> .\n"
)
TTL = f'@prefix x: <http://x/> .\nx:a <p:p> x:b .\nx:a <{LABEL}> "a" .\nx:b <{LABEL}> "b" .\n'
XML = (
    '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:s="http://www.w3.org/2000/01/rdf-schema#" xmlns:p="p:">'
    '<rdf:Description rdf:about="http://x/a"><s:label>a</s:label><p:p rdf:resource="http://x/b"/>'
    '</rdf:Description><rdf:Description rdf:about="http://x/b"><s:label>b</s:label>'
    "</rdf:Description></rdf:RDF>"
)
NAMES = ["x.nt", "x.nt.gz", "x.nt.bz2", "x.ttl.bz2", "x.owl", "x.owl.gz", "x.rdf.bz2", "y.owl.bz2"]


def write(path: Path) -> Path:
    text = TTL if ".ttl" in path.name or path.name.startswith("y") else NT
    text = XML if ".rdf" in path.name or path.name.startswith("x.owl") else text
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, lambda data: data)
    path.write_bytes(pack(text.encode()))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_local_source_is_loaded_with_any_compression(name, tmp_path):
    assert len(open_store([write(tmp_path / name)], tmp_path / "stores")) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_user_graph_is_read_with_any_compression(name, tmp_path):
    section = OwnGraph("rdf", (str(write(tmp_path / name)),), leave_out=("missing_label",))
    assert read("g", section, ("en",))["facts"].height == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.nq", "<http://x/a> <p:p> <http://x/b> <http://x/g> .\n" * 2),
        ("x.trig", "<http://x/g> { <http://x/a> <p:p> <http://x/b> . }"),
        ("x.jsonld", '{"@id": "http://x/g", "@graph": [{"@id": "http://x/a", '
                     '"p:p": {"@id": "http://x/b"}}]}'),
    ],
)  # fmt: skip
def test_statements_in_named_graphs_are_queried(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    store = open_store([tmp_path / name], tmp_path / "stores")
    found = store.query("SELECT DISTINCT ?o WHERE { ?s <p:p> ?o }")
    assert [row["o"].value for row in found] == ["http://x/b"]


def test_a_truncated_compressed_file_is_reported(tmp_path):
    path = write(tmp_path / "x.nt.bz2")
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(EndpointError, match=r"could not load .*x\.nt\.bz2: "):
        open_store([path], tmp_path / "stores")


@pytest.mark.parametrize("name", ["x.nt.xz", "x.zip", "x.csv", "x.bz2", "x.nt.bz2.zst"])
def test_a_file_without_rdf_extension_is_refused_in_the_plan(name, tmp_path):
    (tmp_path / name).write_bytes(b"?")
    settings, files = Settings(), (str(tmp_path / name),)
    wikidata = replace(settings.sources.wikidata, access="local", files=files)
    settings = replace(settings, sources=replace(settings.sources, wikidata=wikidata))
    with pytest.raises(ConfigError, match=r"sources\.wikidata\.files: .*valid endings: \.nt, "):
        rdf_files(settings, "wikidata")
    with pytest.raises(EndpointError, match="not a known RDF file"):
        open_store(files, tmp_path / "stores")
    with pytest.raises(GraphFileError, match="not a known RDF file"):
        read("g", OwnGraph("rdf", files), ("en",))
