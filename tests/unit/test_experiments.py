"""Invalid tables: the message shows file, line, value and valid values."""

from pathlib import Path

import pytest

from kgprobe import experiments

ROOT = Path(__file__).parents[2]
MODELS = experiments.read_schema(ROOT / "workflow/schemas/models.schema.json")
EXPERIMENTS = experiments.read_schema(ROOT / "workflow/schemas/experiments.schema.json")

HEADER = "model\tkind\tsource\trevision\tdtype\tbos\n"
REMOTE = "a\tapi\tapi:some-model\t\tfloat32\t-\n"
GOOD = "m\tcausal\tfolder:x\t\tfloat32\tnone\nb\tmasked\tfolder:y\t\tfloat32\t-\n"


def table(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "table.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def models(tmp_path: Path, text: str) -> dict[str, dict[str, str]]:
    path = table(tmp_path, HEADER + text)
    return experiments.by_name(experiments.read_rows(path, MODELS), path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: missing column|empty"),
        (
            HEADER.replace("bos", "box") + GOOD,
            r"line 1: unknown column 'box' .did you mean 'bos'.*; valid: ",
        ),
        (
            HEADER.replace("dtype", "quantised") + GOOD,
            "line 1: unknown column 'quantised', which is 'quantized' now; valid: ",
        ),
        (HEADER + GOOD + "c\tcausal\tfolder:x\t\tfloat32\tnone\tmore\n", "line 4: 7 cells"),
        (
            HEADER + "\n# comment\n" + GOOD.replace("masked", "mask"),
            "line 5, column 'kind': 'mask'",
        ),
        (b"model\tkind\n\xe9\n", r"line 2: byte 11 \(0xe9\) is not UTF-8"),
        # line ends of old Macs, a cell above the limit of module csv
        ((HEADER + GOOD).replace("\n", "\r"), r"line 1: unknown column 'bos\\rm'"),
        (HEADER + GOOD.replace("masked", "x" * 200_000), "line 3, column 'kind': 'xxx"),
        ("model\t" + HEADER + GOOD, "line 1: column 'model' appears twice"),
        ("_line\t" + HEADER + GOOD, "line 1: unknown column '_line'; valid: .'model'"),
    ],
)
def test_invalid_tables_are_reported_with_the_line(tmp_path, text, message):
    with pytest.raises(experiments.TableError, match=message):
        experiments.read_rows(table(tmp_path, text), MODELS)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("m\tmasked\tfolder:z\t\tfloat32\t-", "line 4: model 'm' already stands in line 2"),
        ("M\tmasked\tfolder:z\t\tfloat32\t-", "model 'M' and 'm' in line 2 differ in case only"),
        ("random\tmasked\tfolder:z\t\tfloat32\t-", "line 4: a model called 'random', as a guess"),
        ("g\tcausal\thub:a/b\t\tfloat32\tnone", "line 4: hub model 'g' has no revision"),
        ("g\tcausal\thub:a/b\tmain\tfloat32\tnone", "line 4: revision 'main' of 'g' may move"),
        ("g\tcausal\thub:a/b\tstep16\tfloat32\tnone", "revision 'step16' of 'g' may move"),
        ("g\tcausal\tfolder:z\t\tfloat32\t-", "line 4: bos is '-' for the causal model 'g'"),
        ("g\tmasked\tfolder:z\t\tfloat32\tnone", "line 4: bos is 'none' for the masked model"),
        ("g\tapi\tfolder:z\t\tfloat32\t-", "line 4: source 'folder:z' for the api model 'g'"),
        ("g\tmasked\tapi:z\t\tfloat32\t-", "line 4: source 'api:z' for the masked model 'g'"),
    ],
)
def test_invalid_model_rows_raise(tmp_path, row, message):
    with pytest.raises(experiments.TableError, match=message):
        models(tmp_path, GOOD + row + "\n")


#: benchmark -> paper, as in the rules
KNOWN = {"bear_big": "bear", "bear_lite": "bear", "symmetry": "attributes", "bias": "attributes"}
TITLES = "paper\tbenchmark\tprompt\tmethod\tmodel\n"


def probes(tmp_path: Path, *rows: str) -> list[dict[str, str]]:
    """Return the checked expansion of experiment rows."""
    known = models(tmp_path, GOOD + REMOTE)
    known["m"]["groups"], known["b"]["groups"] = "small,own", "own"
    path = table(tmp_path, TITLES + "".join("\t".join(row.split()) + "\n" for row in rows))
    expanded = experiments.products(
        experiments.read_rows(path, EXPERIMENTS), path, known, KNOWN, ["t", "soft"]
    )
    experiments.check_experiments(expanded, path, known)
    return expanded


def test_empty_table_raises(tmp_path):
    with pytest.raises(experiments.TableError, match=r"table\.tsv: no row below its header"):
        probes(tmp_path, "# only a comment")
    with pytest.raises(experiments.TableError, match=r"table\.tsv: no row below its header"):
        models(tmp_path, "")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("bear beer t sentence m", "line 3: unknown benchmark 'beer'.*valid: bear_big, bear_lite"),
        ("bear bear_lit t sentence m", "line 3: unknown benchmark .*did you mean 'bear_lite'"),
        ("bear bear_big x sentence m", "line 3: unknown prompt 'x'"),
        (
            "bear bear_big t sentense m",
            "line 3: unknown method 'sentense' .did you mean 'sentence'",
        ),
        ("bear bear_big t sentence q", "line 3: unknown model 'q'; valid: a, b, m, own, small"),
        ("bear bear_big t sentence m,ovn", "line 3: unknown model 'ovn' .did you mean 'own'"),
        ("bear bear_big t sentence c*", r"line 3: no model matches 'c\*'; valid: a, b, m"),
        ("bear s* t sentence m", r"line 3: no benchmark matches 's\*'; valid: "),
        ("bear bear_big t sentence m,", "line 3: unknown model ''"),
        (
            "bear bear_big t sentence a",
            "line 3: method 'sentence' does not work with the api model 'a'; "
            "valid kinds: masked, causal, seq2seq",
        ),
        ("bear bear_* t sentence own", "line 3: same probe as in line 2: bear_big t sentence b"),
        (
            "bear bear_big t sentence-orignal m",
            "line 3: unknown method 'sentence-orignal' with the causal model 'm'; valid: sentence, "
            "sentence-sum$",
        ),
        ("bear bear_big t sentence- m", "line 3: unknown method 'sentence-' with the causal"),
        ("bear bear_big t sentence-pll m", "line 3: unknown method 'sentence-pll' with the causal"),
        ("bear bear_big t fill-../x m", r"line 3: unknown method 'fill-\.\./x' .*; valid: fill$"),
    ],
)
def test_names_in_experiments_are_checked(tmp_path, row, message):
    with pytest.raises(experiments.TableError, match=message):
        probes(tmp_path, "bear bear_big t sentence b", row)


def test_rows_expand_to_the_product_of_their_cells(tmp_path):
    rows = "attributes * t fill own,a", "bear bear_b*,bear_lite,bear_big t sentence m"
    expanded = probes(tmp_path, *rows)
    names = ("paper", "benchmark", "prompt", "method", "model", "_line")
    result = [tuple(row[name] for name in names) for row in expanded]
    # literal: models vary slowest, patterns match only benchmarks of the paper, names count once
    assert result == [
        ("attributes", "symmetry", "t", "fill", "m", "2"),
        ("attributes", "bias", "t", "fill", "m", "2"),
        ("attributes", "symmetry", "t", "fill", "b", "2"),
        ("attributes", "bias", "t", "fill", "b", "2"),
        ("attributes", "symmetry", "t", "fill", "a", "2"),
        ("attributes", "bias", "t", "fill", "a", "2"),
        ("bear", "bear_big", "t", "sentence", "m", "3"),
        ("bear", "bear_lite", "t", "sentence", "m", "3"),
    ]
    assert experiments.describe_rows(expanded, "table.tsv").splitlines() == [
        "table.tsv: 8 probes",
        "  line 2: 6 = attributes x symmetry, bias x t x fill x m, b, a",
        "  line 3: 2 = bear x bear_big, bear_lite x t x sentence x m",
    ]


def test_group_named_like_a_model_raises(tmp_path):
    text = HEADER.replace("bos", "bos\tgroups") + GOOD.replace("\n", "\tb\n")
    path = table(tmp_path, text)
    with pytest.raises(experiments.TableError, match="line 2: group 'b' is the name of a model"):
        experiments.by_name(experiments.read_rows(path, MODELS), path)


def test_missing_table_is_reported(tmp_path):
    with pytest.raises(experiments.TableError, match=r"none\.tsv: no such file"):
        experiments.read_rows(tmp_path / "none.tsv", MODELS)


def test_paths_use_the_data_folder_of_the_environment(monkeypatch):
    monkeypatch.setenv("KGPROBE_DATA", "/elsewhere")
    assert experiments.expand("${KGPROBE_DATA}/bear") == "/elsewhere/bear"
    monkeypatch.delenv("KGPROBE_DATA")
    assert experiments.expand("${KGPROBE_DATA}/bear") == "../shared/data/bear"


@pytest.mark.parametrize("method", ["fill", "choice"])
def test_every_kind_supports_fill_and_choice(tmp_path, method):
    expanded = probes(tmp_path, f"bear bear_big t {method} *")
    assert [row["model"] for row in expanded] == ["m", "b", "a"]


def check_papers(*rows: str) -> None:
    papers = {"world_lite": "bear", "onto_world": "ontoprobe", "onto_world_lite": "ontoprobe"}
    names = ("paper", "benchmark", "prompt", "method", "model")
    cells = [dict(zip(names, f"{row} m".split(), strict=True)) for row in rows]
    experiments.check_papers([{**one, "_line": "2"} for one in cells], "table", papers)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("bear world_lite templates fill", "method 'fill' with paper bear; valid: sentence"),
        ("bear onto_world templates sentence",
         "benchmark 'onto_world' with paper bear; valid: world_lite"),
        ("ontoprobe onto_world_lite templates choice", "needs the whole set, 'onto_world'"),
        ("ontoprobe onto_world templates soft",
         "prompt 'templates' with method 'soft'; valid: soft"),
        ("bear world_lite soft sentence",
         "prompt 'soft' with method 'sentence'; valid: templates"),
    ],
)  # fmt: skip
def test_rows_missing_from_every_table_raise(row, message):
    with pytest.raises(experiments.TableError, match=message):
        check_papers(row)


def test_rows_shown_in_tables_are_accepted():
    check_papers("bear world_lite templates sentence-original", "ontoprobe onto_world soft soft")


WIDE = HEADER.rstrip("\n") + "\tquantized\tadapter\tdevice_map\tpublished\n"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("g\tcausal\tfolder:z\t\tfloat32\tnone\tint3\t\t\t", "'quantized': 'int3' is not one of"),
        (
            "g\tcausal\tfolder:z\t\tfloat32\tnone\t\tlora\t\t",
            "'adapter': 'lora'; expected folder:PATH",
        ),
        ("a model\tcausal\tfolder:z\t\tfloat32\tnone", "'a model'; expected a name for files"),
        ("g\tapi\tapi:z\t\tfloat32\t-\t\t\tauto\t", "'auto' for a model of kind api"),
        ("g\tapi\tapi:z\t\tfloat32\t-\tint8\t\t\t", "'int8' for a model of kind api"),
        ("g\tcausal\tfolder:z\t\tfloat32\tnone\t\tfolder:l\t\tgpt2", "leave published empty"),
    ],
)
def test_model_loading_columns_are_checked(tmp_path, row, message):
    path = table(tmp_path, WIDE + row + "\n")
    with pytest.raises(experiments.TableError, match=f"line 2.*{message}"):
        experiments.by_name(experiments.read_rows(path, MODELS), path)


#: characters that end a line for str.splitlines but may be part of a label
ODD = "Nord\u2028est", "Nord\u0085est", "Nord\u2029est", "Nord\x0cest", "Nord\x1eest"


@pytest.mark.parametrize("label", ODD)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_line_feeds_end_a_line(tmp_path, label, end):
    path = tmp_path / "odd.tsv"
    text = end.join(["relation\tname", "", f"P1\t{label}", "  ", "P2\tSud", ""])
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    lines = [(1, "relation\tname"), (3, f"P1\t{label}"), (5, "P2\tSud")]
    assert experiments.text_lines(path) == lines
    rows = experiments.read_table(path)
    assert rows == [{"relation": "P1", "name": label}, {"relation": "P2", "name": "Sud"}]
