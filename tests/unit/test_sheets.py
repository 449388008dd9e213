"""Bad config and sheets: the message names file, line, value and what would be right."""

import copy
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from kgprobe import sheets

ROOT = Path(__file__).parents[2]
MODELS = sheets.read_schema(ROOT / "workflow/schemas/models.schema.json")
EXPERIMENTS = sheets.read_schema(ROOT / "workflow/schemas/experiments.schema.json")
CONFIG = sheets.read_schema(ROOT / "workflow/schemas/config.schema.json")

HEADER = "model\tkind\tsource\trevision\tdtype\tbos\n"
REMOTE = "a\tapi\tapi:some-model\t\tfloat32\t-\n"
GOOD = "m\tcausal\tfolder:x\t\tfloat32\tnone\nb\tmasked\tfolder:y\t\tfloat32\t-\n"


def sheet(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "sheet.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def models(tmp_path: Path, text: str) -> dict[str, dict[str, str]]:
    path = sheet(tmp_path, HEADER + text)
    return sheets.by_name(sheets.read_sheet(path, MODELS), path)


@pytest.mark.parametrize("name", ["embedded", "real"])
def test_every_config_of_the_project_is_legal(name):
    merged = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    sheets.check_config(merged, CONFIG)
    update_config(merged, yaml.safe_load((ROOT / f"config/{name}.yaml").read_text()))
    sheets.check_config(merged, CONFIG)


def test_unknown_config_keys_are_named_with_the_legal_ones():
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    broken = copy.deepcopy(config)
    broken["bear"]["popularty"] = 1
    with pytest.raises(sheets.SheetError, match=r"bear: unknown key 'popularty'; legal: .*popular"):
        sheets.check_config(broken, CONFIG)
    config["seed"] = "zero"
    with pytest.raises(sheets.SheetError, match="seed: 'zero' is not of type 'integer'"):
        sheets.check_config(config, CONFIG)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: missing column|empty"),
        (HEADER.replace("bos", "box") + GOOD, "line 1: unknown column 'box'; legal: "),
        (HEADER + GOOD + "c\tcausal\tfolder:x\t\tfloat32\tnone\tmore\n", "line 4: 7 cells"),
        (
            HEADER + "\n# comment\n" + GOOD.replace("masked", "mask"),
            "line 5, column 'kind': 'mask'",
        ),
        (b"model\tkind\n\xe9\n", r"line 2: byte 11 \(0xe9\) is not UTF-8"),
    ],
)
def test_a_bad_sheet_names_the_line(tmp_path, text, message):
    with pytest.raises(sheets.SheetError, match=message):
        sheets.read_sheet(sheet(tmp_path, text), MODELS)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("m\tmasked\tfolder:z\t\tfloat32\t-", "line 4: model 'm' already stands in line 2"),
        ("g\tcausal\thub:a/b\t\tfloat32\tnone", "line 4: hub model 'g' has no revision"),
        ("g\tcausal\tfolder:z\t\tfloat32\t-", "line 4: bos is '-' for the causal model 'g'"),
        ("g\tmasked\tfolder:z\t\tfloat32\tnone", "line 4: bos is 'none' for the masked model"),
        ("g\tapi\tfolder:z\t\tfloat32\t-", "line 4: source 'folder:z' for the api model 'g'"),
        ("g\tmasked\tapi:z\t\tfloat32\t-", "line 4: source 'api:z' for the masked model 'g'"),
    ],
)
def test_models_that_cannot_be(tmp_path, row, message):
    with pytest.raises(sheets.SheetError, match=message):
        models(tmp_path, GOOD + row + "\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "bear\tbeer\tt\tsentence\tm",
            "line 3: unknown benchmark 'beer' .did you mean 'bear'.*legal",
        ),
        ("bear\tbear\tx\tsentence\tm", "line 3: unknown prompt 'x'"),
        (
            "bear\tbear\tt\tsentense\tm",
            "line 3: unknown method 'sentense' .did you mean 'sentence'",
        ),
        ("bear\tbear\tt\tsentence\tq", "line 3: unknown model 'q'; legal: a, b, m"),
        (
            "bear\tbear\tt\tsentence\ta",
            "line 3: method 'sentence' does not work with the api model 'a'; "
            "legal kinds: masked, causal, seq2seq",
        ),
        ("bear\tbear\tt\tsentence\tb", "line 3: same probe as in line 2"),
    ],
)
def test_every_name_of_an_experiment_is_checked(tmp_path, row, message):
    known = models(tmp_path, GOOD + REMOTE)
    header = "paper\tbenchmark\tprompt\tmethod\tmodel\n"
    path = sheet(tmp_path, header + "bear\tbear\tt\tsentence\tb\n" + row + "\n")
    rows = sheets.read_sheet(path, EXPERIMENTS)
    with pytest.raises(sheets.SheetError, match=message):
        sheets.check_experiments(rows, path, known, ["bear"], ["t"])


def test_a_missing_sheet_is_named(tmp_path):
    with pytest.raises(sheets.SheetError, match=r"none\.tsv: no such file"):
        sheets.read_sheet(tmp_path / "none.tsv", MODELS)


def test_paths_take_the_data_folder_from_the_environment(monkeypatch):
    monkeypatch.setenv("KGPROBE_DATA", "/elsewhere")
    assert sheets.expand("${KGPROBE_DATA}/bear") == "/elsewhere/bear"
    monkeypatch.delenv("KGPROBE_DATA")
    assert sheets.expand("${KGPROBE_DATA}/bear") == "../shared/data/bear"


@pytest.mark.parametrize("method", ["fill", "choice"])
def test_every_kind_fills_and_chooses(tmp_path, method):
    known = models(tmp_path, GOOD + REMOTE + "s\tseq2seq\tfolder:s\t\tfloat32\t-\n")
    header = "paper\tbenchmark\tprompt\tmethod\tmodel\n"
    lines = [f"bear\tbear\tt\t{method}\t{model}\n" for model in known]
    rows = sheets.read_sheet(sheet(tmp_path, header + "".join(lines)), EXPERIMENTS)
    sheets.check_experiments(rows, "sheet", known, ["bear"], ["t"])


PAPERS = {"world_lite": "bear", "onto_world": "ontoprobe", "onto_world_lite": "ontoprobe"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("bear world_lite templates fill", "method 'fill' with paper bear; legal: sentence"),
        (
            "bear onto_world templates sentence",
            "benchmark 'onto_world' with paper bear; legal: world_lite",
        ),
        ("ontoprobe onto_world_lite templates reason", "needs the whole set, 'onto_world'"),
        (
            "ontoprobe onto_world templates soft",
            "prompt 'templates' with method 'soft'; legal: soft",
        ),
        ("bear world_lite soft sentence", "prompt 'soft' with method 'sentence'; legal: templates"),
    ],
)
def test_a_row_that_no_table_would_show_is_refused(row, message):
    names = ("paper", "benchmark", "prompt", "method")
    rows = [{**dict(zip(names, row.split(), strict=True)), "model": "m", "_line": "2"}]
    with pytest.raises(sheets.SheetError, match=message):
        sheets.check_papers(rows, "sheet", PAPERS)


def test_rows_that_tables_show_are_not_refused():
    rows = ["bear world_lite templates sentence-original", "ontoprobe onto_world soft soft"]
    names = ("paper", "benchmark", "prompt", "method")
    made = [{**dict(zip(names, r.split(), strict=True)), "_line": "2"} for r in rows]
    sheets.check_papers(made, "sheet", PAPERS)
