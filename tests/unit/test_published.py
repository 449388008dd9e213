"""The copy of the papers' published numbers is complete, consistent and equal to the print."""

from pathlib import Path

import polars as pl
import pytest
from tokenizers import pre_tokenizers
from transformers import GPT2Tokenizer

from kgprobe.tables.answers import Probe
from kgprobe.tables.bear import make, published

FOLDER = Path(__file__).parents[2] / "resources" / "published"
#: How a causal model's name begins -> whether its tokenizer puts a BOS in front by itself.
#: GPT2Tokenizer (GPT-2, SmolLM) and GPTNeoXTokenizer (Mamba) add none; OPT's is GPT2Tokenizer with
#: add_bos_token configured; LlamaTokenizer, GemmaTokenizer and Llama 3's template add one.
ADDS_BOS = {
    "gpt2": False, "SmolLM": False, "mamba": False, "opt": True, "Llama-2": True,
    "Meta-Llama-3": True, "Mistral": True, "gemma": True,
}  # fmt: skip


def test_the_leaderboard_has_the_paper_s_models_and_their_correlations():
    board = published.read(FOLDER)
    paper = board.leaderboard.filter(pl.col("listed") == "paper")
    assert paper.group_by("kind").len().sort("kind").rows() == [("causal", 16), ("masked", 6)]
    found = {(n.metric, n.slice): n.value for n in make.estimates([], board)}
    keys = ("pearson", ""), ("spearman", ""), ("pearson", "causal"), ("pearson", "masked")
    assert [found[key] for key in keys] == pytest.approx([0.877, 0.888, 0.852, -0.093], abs=5e-4)
    assert board.baseline("bear_released", 7731) == 4.68


def test_every_model_of_the_table_has_its_published_row():
    board = published.read(FOLDER)
    models = published.read_tsv(FOLDER.parents[1] / "config" / "models.tsv")
    named = {name for name in models["published"].drop_nulls() if name}
    assert named <= set(board.leaderboard["model"])
    assert set(board.remeasured["model"]) <= set(board.leaderboard["model"])


def adds_bos(name: str) -> bool:
    return next(adds for start, adds in ADDS_BOS.items() if name.startswith(start))


def test_the_leaderboard_states_what_each_tokenizer_adds():
    rows = published.read(FOLDER).models().select("model", "kind", "bos").rows()
    stated = [(name, bos) for name, kind, bos in rows if kind == "causal" and bos]
    assert len(stated) == 29  # only phi-4 was not checked
    assert stated == [(name, "added" if adds_bos(name) else "none") for name, _ in stated]
    assert {bos for _, kind, bos in rows if kind == "masked"} == {None}


@pytest.mark.parametrize("adds", [False, True])
def test_gpt2_and_opt_tokenizers_add_bos_as_configured(adds):
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["</s>", *letters])}
    options = {"add_bos_token": True} if adds else {}
    made = GPT2Tokenizer(vocab=vocabulary, merges=[], bos_token="</s>", **options)
    assert made("ab")["input_ids"] == [0] * adds + [vocabulary["a"], vocabulary["b"]]


def rows_in_print() -> list[dict[str, str]]:
    """Return the rows of config/models.tsv that name a published number."""
    frame = published.read_tsv(FOLDER.parents[1] / "config" / "models.tsv")
    return frame.filter(pl.col("published").is_not_null()).rows(named=True)


def beside(row: dict[str, str], **changes: str) -> tuple[float, str] | None:
    """Return (published number, source) for a complete BEAR answer by a row of models.tsv."""
    names = ("model", "kind", "bos", "dtype", "published")
    fields = {name: row[name] for name in names} | changes
    probe = Probe(benchmark="bear_released", prompt="templates", method="sentence", **fields)
    return published.read(FOLDER).score(probe, 7731, [0, 1, 2])


def test_rows_with_a_published_figure_have_the_figure_s_bos_policy():
    kinds = [row["kind"] for row in rows_in_print()]
    assert kinds.count("causal") >= 6
    assert kinds.count("masked") >= 5
    for row in rows_in_print():
        assert beside(row) is not None, f"{row['model']}: no figure under BOS {row['bos']}"
        if row["kind"] == "causal":
            assert (row["bos"] != "none") == adds_bos(row["published"]), row["model"]


def test_a_published_number_is_shown_for_its_bos_policy_only():
    rows = {row["model"]: row for row in rows_in_print()}
    policies = ("none", "default", "forced")
    expected = {
        "opt-125m": [None, 16.38, 16.38],
        "opt-1.3b": [None, 31.46, 31.46],
        "gpt2": [13.49, 13.49, 14.51],
        "gpt2-large": [22.24, 22.24, None],
    }
    for model, figures in expected.items():
        found = [beside(rows[model], bos=policy) for policy in policies]
        assert [figure and figure[0] for figure in found] == figures
    phi = {"kind": "causal", "model": "phi", "published": "phi-4"}
    assert [beside(rows["gpt2"], **phi, bos=b) for b in policies] == [None] * 3


def test_bear_relations_add_up_to_the_released_sets():
    frame = published.read_tsv(FOLDER / "bear_relations.tsv").with_columns(
        pl.col("instances", "answers", "per_answer").cast(pl.Int64)
    )
    sums = frame.group_by("set").agg(pl.len(), pl.col("instances").sum()).sort("set")
    assert sums.rows() == [("BEAR", 60, 7731), ("BEAR-big", 78, 40916)]
    assert (frame["answers"] * frame["per_answer"] == frame["instances"]).all()
    bear = frame.filter(pl.col("set") == "BEAR")
    random = (bear["instances"] / bear["answers"]).sum() / 7731
    assert 100 * random == pytest.approx(4.682, abs=5e-4)


@pytest.mark.parametrize(
    ("name", "rows", "key"),
    [
        ("autoprompt_sentiment", 10, "model method"),
        ("autoprompt_inference", 6, "model method"),
        ("autoprompt_facts", 10, "set model prompt"),
        ("autoprompt_relation_extraction", 5, "model prompt"),
        ("autoprompt_relations", 41, "relation"),
        ("attributes_sizes", 9, "benchmark"),
        ("attributes_scores", 45, "benchmark model"),
        ("attributes_arithmetic", 9, "benchmark"),
        ("ontoprobe_sizes", 5, "task"),
        ("ontoprobe_memorizing", 234, "task model template metric"),
        ("ontoprobe_configurations", 684, "task model template masks pooling loss"),
        ("ontoprobe_choice", 10, "task model"),
        ("ontoprobe_reasoning", 21, "premise rule"),
        ("bear_leaderboard", 37, "model"),
        ("bear_remeasured", 5, "model"),
        ("bear_relations", 138, "relation set"),
    ],
)
def test_rows_and_keys(name, rows, key):
    frame = published.read_tsv(FOLDER / f"{name}.tsv")
    assert frame.height == rows
    assert not frame.select(key.split()).is_duplicated().any()


def test_a_missing_column_and_a_missing_file_are_reported(tmp_path):
    (tmp_path / "a.tsv").write_text("model\tscore\nx\ty\n")
    with pytest.raises(ValueError, match=r"a\.tsv: columns"):
        published.read_tsv(tmp_path / "a.tsv", published.REMEASURED)
    with pytest.raises(ValueError, match=r"a\.tsv: a cell is not a number"):
        published.read_tsv(tmp_path / "a.tsv", {"model": pl.String, "score": pl.Float64})
    with pytest.raises(ValueError, match="no such table"):
        published.read_tsv(tmp_path / "b.tsv")


@pytest.mark.real
def test_every_printed_value_is_stored_to_the_last_digit(real_data):
    """Compare multisets of the printed numbers, table by table."""
    printed = real_data.parent / "published"
    if not printed.is_dir():
        pytest.skip("no published figures beside the data")
    pairs = {
        "autoprompt_sentiment": ("autoprompt_table1", ["accuracy"], ["dev", "test"]),
        "autoprompt_facts": ("autoprompt_table4", ["MRR", "P@10"], ["mrr", "p_at_10"]),
        "autoprompt_relations": ("autoprompt_table6", ["LAMA", "LPAQA"], ["lama", "lpaqa"]),
        "bear_leaderboard": ("bear_leaderboard", ["mean_percent", "sem_percent"], ["score", "sem"]),
        "attributes_scores": ("kg_table2", ["value"], ["at_1", "at_3", "at_5"]),
        "ontoprobe_memorizing": ("ontoprobe_table4", ["value"], ["value"]),
        "ontoprobe_configurations": ("ontoprobe_tableC2", ["value"], ["R@1", "R@5", "MRRa", "MRR"]),
        "ontoprobe_reasoning": ("ontoprobe_table6", ["accuracy"], ["accuracy"]),
    }
    for ours, (theirs, old, new) in pairs.items():
        expected, found = printed / f"{theirs}.tsv", FOLDER / f"{ours}.tsv"
        assert numbers(found, new) == numbers(expected, old), ours


def numbers(path: Path, columns: list[str]) -> list[str]:
    frame = published.read_tsv(path)
    return sorted(value for c in columns for value in frame[c].drop_nulls().to_list() if value)
