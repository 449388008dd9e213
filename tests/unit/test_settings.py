"""The configuration: files generated from its types, refused values, and error messages."""

import datetime
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pytest
import yaml
from snakemake.utils import update_config

from kgprobe import config
from kgprobe.experiments import TableError
from kgprobe.probes.prompts.search.settings import SearchSettings as Searching
from kgprobe.settings import Settings
from kgprobe.settings.benchmarks import Attributes, Size
from kgprobe.settings.probes import SearchChanges
from kgprobe.settings.types import typed

ROOT = Path(__file__).parents[2]


def plain() -> dict[str, Any]:
    """Return the configuration of config.yaml."""
    return yaml.safe_load((ROOT / config.CONFIG).read_text())


def test_files_generated_from_the_settings_are_up_to_date():
    made = config.generated_files(ROOT)
    assert len(made) == 3
    for path, text in made.items():
        assert path.read_text() == text, f"{path.name}: make docs"


def test_the_defaults_are_the_full_rebuild():
    assert config.read(plain()) == Settings()
    assert config.read({"run": {"name": "full"}}) == Settings()


@pytest.mark.parametrize("name", ["embedded", "real"])
def test_every_config_of_the_project_is_legal(name):
    merged, given = plain(), yaml.safe_load((ROOT / f"config/{name}.yaml").read_text())
    update_config(merged, given)
    read = config.read(merged)
    assert read.tables.experiments == f"config/experiments.{name}.tsv"
    assert read != Settings()


@pytest.mark.parametrize("path", sorted((ROOT / "config").rglob("*.yaml")), ids=lambda p: p.name)
def test_each_config_names_its_schema_and_is_valid_under_it(path):
    text = path.read_text()
    first, _, _ = text.partition("\n")
    assert first + "\n" == config.schema_line(path.parent)
    place = path.parent / first.partition("$schema=")[2]
    assert place.resolve() == ROOT / config.SCHEMA
    schema = jsonschema.Draft202012Validator(json.loads(place.read_text()))
    assert not list(schema.iter_errors(yaml.safe_load(text)))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("twin", {"items": 3}, r"top level: unknown key 'twin', which is 'baselines' now; valid: "),
        ("floors", {"words": ["it"]}, "unknown key 'floors', which is 'baselines' now; valid: "),
        ("wording", {"most": 2}, "'wording', which is 'attribute_prompts' now; valid: "),
        ("attributes.hierarchy.two_up", "own", "'two_up', which is 'two_hop' now; valid: "),
        (
            "bear.popularty",
            1,
            r"bear: unknown key 'popularty' .did you mean 'popularity'.*; valid: ",
        ),
        ("seed", "zero", "seed: 'zero'; valid: an integer, at least 0"),
        ("seed", True, "seed: True; valid: an integer"),
        ("seed", 2**63, "seed: 9223372036854775808; valid: an integer, at least 0, at most 9.2"),
        (
            "fill.strategy",
            "beams",
            "fill.strategy: 'beams' .did you mean 'beam'.*valid: 'parallel', ",
        ),
        ("choice.most", 0, "choice.most: 0; valid: an integer, at least 1 or null"),
        ("comparisons", ["acess"], "comparisons.0: 'acess' .did you mean 'access'"),
        ("attributes.bias.relations", ["Q5"], "relations.0: 'Q5'; valid: the id of a relation"),
        ("api.most", "1e-5", r"api.most: '1e-5' .did you mean 1.0e-05\?.; valid: a number"),
        ("api.most", 5, "api: most: 5 limits nothing while both prices are 0"),
        ("api.prices", [1], r"api.prices: \[1\]; valid: list, 2 values: "),
        ("attributes", None, "attributes: empty; write keys below it or take it out; valid: "),
        ("autoprompt.models", {"m": {"fact": {}}}, "unknown key 'fact' .did you mean 'facts'"),
        ("autoprompt.grid.settings.restart", 1, "unknown key 'restart' .did you mean 'restarts'"),
        ("sources.dumps.bear", {}, "dumps: 'bear'; valid: small letters, digits and _, not"),
        (
            "sources.dumps.x",
            {"access": "live", "form": "json", "file": "a"},
            "sources.dumps.x: url, snapshot missing, needed where access is live",
        ),
        ("sheets.models", "own.tsv", "unknown key 'sheets', which is 'tables' now; valid: "),
        ("sources.dumps.x", {"form": "json"}, "'access' is a required property"),
        (
            "sources.dumps.x",
            {"access": "local", "form": "truthy", "file": "a", "relations": ["P36", "Q36"]},
            "sources.dumps.x: relations: 'Q36'; a dump of form truthy has ids such as P36",
        ),
        (
            "sources.dumps.x",
            {"access": "local", "form": "ntriples", "file": "a", "relations": ["P36"]},
            "sources.dumps.x: relations: 'P36'; a dump of form ntriples has IRIs",
        ),
        ("autoprompt.facts.groups", [], r"groups: \[\]; valid: list, at least one of distinct val"),
        # every fact of a relation that is named twice would count twice
        ("prompt_tasks.world.relations", ["P17", "P17"], r"list, at least one of distinct values"),
        ("prompt_tasks.facts.relations", ["P17", "P17"], r"list, at least one of distinct values"),
        ("prompt_tasks.graphs.relations", ["a", "a"], r"list, at least one of distinct values"),
        ("autoprompt.low_data.sizes", [10, 10], r"list, at least one of distinct values"),
        (
            "sources.wikidata.snapshot",
            datetime.date(2026, 11, 29),
            "snapshot: 2026-11-29, which is a date unless it is quoted; valid: letters",
        ),
        ("run.name", "own\n", r"run\.name: 'own\\n'; valid: letters, digits, - and _"),
        ("attributes.bias.relations", ["P5\n"], r"relations.0: 'P5\\n'; valid: the id of a rel"),
        (
            "sources.graphs",
            {"mine\n": {"form": "rdf", "files": ["a"]}},
            r"graphs: 'mine\\n'; valid",
        ),
    ],
)
def test_a_wrong_key_or_value_is_reported_with_a_correction(tmp_path, key, value, message):
    own: Any = value
    for part in reversed(key.split(".")):
        own = {part: own}
    path = tmp_path / "own.yaml"
    own = {"run": {"name": "own"}, **own}
    path.write_text(yaml.safe_dump(own))
    merged = plain()
    update_config(merged, own)
    with pytest.raises(config.ConfigError, match=message) as problem:
        config.read(merged, [ROOT / config.CONFIG, path])
    assert f"{path}: " in str(problem.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("run: {name: a}\nbear: {short: 1}\nbear: {}\n", "line 3: .*the key bear appears twice"),
        ("run: {name: a, name: b}\n", "line 1: .*the key name appears twice"),
        ("run: {name: a}\n5: b\n", "line 2: .*the key 5 is not a string"),
        ("run: {{name}}\n", "line 1: .*the key that is not a single word is not a string"),
        ("run: {name: a}\nsources: {on: b}\n", "line 2: .*the key on is not a string"),
        ("run: {name: a}\nbear:\n  most: .nan\n", "line 3: .*\\.nan is not a finite number"),
        ("run: {name: a}\nseed: 010\n", "line 2: .*010 is not a decimal number"),
        ("run: {name: a}\nseed: 1:30\n", "line 2: .*1:30 is not a decimal number"),
        ("run: {name: a}\nseed: 0x10\n", "line 2: .*0x10 is not a decimal number"),
        ("run: {name: a}\nseed: -0b1\n", "line 2: .*-0b1 is not a decimal number"),
        ("run: {name: a}\nbear:\n  most: 1:30.5\n", "line 3: .*1:30.5 is not a decimal number"),
        ('run: {name: "\x01"}\n', "not valid YAML: unacceptable character"),
        ("run: {name: a}\nbear: &b\n  x: *b\n", "line 2: .*an anchor contains its own alias"),
        ("run: {name: a}\nbear: &b [*b]\n", "line 2: .*an anchor contains its own alias"),
    ],
)
def test_a_key_is_a_string_and_unique(tmp_path, text, told):
    """PyYAML keeps the last of two equal sections and drops the first. Snakemake reads files the
    same way, so merged files are checked too."""
    path = tmp_path / "own.yaml"
    path.write_text(text)
    for read in (config.load, lambda files: config.read(plain(), files)):
        with pytest.raises(TableError, match=rf"{path}.*{told}"):
            read([ROOT / config.CONFIG, path])


@pytest.mark.parametrize("run", ["name", "myname", "5", "[name]", "true"])
def test_a_run_that_is_no_section_is_reported(tmp_path, run):
    path = tmp_path / "own.yaml"
    path.write_text(f"run: {run}\n")
    with pytest.raises(config.ConfigError, match=r"own\.yaml: run: .*; valid: mapping of name"):
        config.load([ROOT / config.CONFIG, path])


def test_a_run_of_several_files_is_named_after_the_last(capsys):
    files = ["config/embedded.yaml", "config/validity.yaml"]
    assert config.main(["name", *files]) == 0
    assert capsys.readouterr().out == f"{config.settings_of(files).run.name}\n"
    assert config.main(["name", "config/embeded.yaml"]) == 1
    assert "did you mean 'config/embedded.yaml'" in capsys.readouterr().err


def test_anchors_and_merge_keys_are_read(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "run: {name: a}\nsources:\n  wikidata: &w {access: embedded}\n  dbpedia: {<<: *w}\n"
    )
    assert config.load([path]).sources.dbpedia.access == "embedded"


def test_paths_that_a_run_writes_to_may_hold_environment_variables(tmp_path, monkeypatch):
    """Snakemake would take `${NAME}` in the output of a rule for a wildcard."""
    path = tmp_path / "own.yaml"
    dump = "access: live, form: json, url: https://x.org/a, snapshot: a, file: '${PLACE}/a.json'"
    path.write_text(
        "run: {name: a}\ndata: ${PLACE}/data\njoins: {folder: '${PLACE}/joins'}\nsources:\n"
        "  trex: {path: '${PLACE}/t.zip'}\n  lama: {access: live, folder: '${PLACE}/lama'}\n"
        f"  bear: {{access: local, folder: '${{PLACE}}/bear'}}\n  dumps: {{x: {{{dump}}}}}\n"
    )
    monkeypatch.setenv("PLACE", "/large")
    settings = config.load([path])
    sources = settings.sources
    assert (settings.data, settings.joins.folder) == ("/large/data", "/large/joins")
    assert (sources.trex.path, sources.lama.folder) == ("/large/t.zip", "/large/lama")
    assert sources.dumps["x"].file == "/large/a.json"
    assert sources.bear.folder == "${PLACE}/bear"  # expanded where it is read
    monkeypatch.delenv("PLACE")
    with pytest.raises(config.ConfigError, match=r"own\.yaml: .*PLACE.*; set the environment var"):
        config.load([path])


def test_a_key_in_no_file_is_attributed_to_the_command_line():
    with pytest.raises(config.ConfigError, match="--config: top level: unknown key 'sead'"):
        config.read({**plain(), "sead": 1}, [ROOT / config.CONFIG])


def test_a_missing_key_keeps_the_default_of_its_section():
    read = config.read(
        {"run": {"name": "a"}, "bear": {"lite": {"total": 7}}, "world": {"lite": {"total": 9}}}
    )
    assert read.bear.lite == Size(7, 25, 60)
    assert (read.world.lite, read.world.min_sitelinks) == (Size(9, 8, 20), 0)
    assert read.world.big == Size(60, 12, 40)


def test_a_graph_with_one_key_of_bear_keeps_the_other_defaults_of_graphs():
    """Facts of a user have no sitelinks: with BEAR's own minimum, no fact would be left."""
    graph = {"form": "table", "files": ["a.csv"]}
    sections = [{**graph, "bear": bear} for bear in ({}, {"lite": {"total": 20}})]
    graphs = {"a": graph, "b": sections[0], "c": sections[1]}
    given = config.read({"run": {"name": "mine"}, "sources": {"graphs": graphs}}).sources.graphs
    usual = given["a"].bear
    assert (usual.popularity, usual.min_sitelinks, usual.short) == ("statements", 0, "shrink")
    assert given["b"].bear == usual
    assert given["c"].bear == replace(usual, lite=replace(usual.lite, total=20))


def test_a_section_round_trips_through_plain_values():
    assert typed(Attributes, asdict(Settings().attributes)) == Settings().attributes
    assert typed(Settings, asdict(Settings())) == Settings()


def test_search_settings_match_the_fields_of_the_search():
    hints = get_type_hints(SearchChanges)
    assert hints.keys() == get_type_hints(Searching).keys() - {"mode", "task", "truncate"}


@pytest.mark.parametrize("text", ["seed: 1.0", "seed: 1"])
def test_a_whole_number_is_an_integer_in_any_notation(text):
    """A float would change hashes, and with them every sample."""
    seed = typed(Settings, yaml.safe_load(text)).seed
    assert seed == 1
    assert type(seed) is int


def test_whole_numbers_are_integers_in_every_section():
    """This includes keys that only override a task's values, in every config section."""
    texts = ["{facts: %s}", "{grid: %s}", "{low_data: %s}", "{models: {bert: {sst2: %s}}}"]
    for text in texts:
        config = yaml.safe_load("autoprompt: " + text % "{settings: {seed: 2.0, batch: 8.0}}")
        given = asdict(typed(Settings, config))["autoprompt"]
        place = yaml.safe_load(text % "here")
        while isinstance(place, dict):
            ((key, place),) = place.items()
            given = given[key]
        assert given["settings"] == {"seed": 2, "batch": 8}
        assert {type(value) for value in given["settings"].values()} == {int}
    labels = typed(Settings, {"autoprompt": {"low_data": {"labels": {"tokens": 2.0}}}})
    assert repr(labels.autoprompt.low_data.labels["tokens"]) == "2"
