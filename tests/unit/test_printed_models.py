"""Every model in a paper's printed tables has a row in config/models.tsv, in the paper's group."""

import re
from pathlib import Path

import pytest

from kgprobe import experiments

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "resources/published"
SCHEMA = experiments.read_schema(ROOT / "workflow/schemas/models.schema.json")
ROWS = experiments.by_name(
    experiments.read_rows(ROOT / "config/models.tsv", SCHEMA), "config/models.tsv"
)


def group(name: str) -> set[str]:
    """Return the models of a group."""
    return {model for model, row in ROWS.items() if name in row["groups"].split(",")}


def printed(table: str, column: str = "model") -> set[str]:
    """Return the values of a column in a table of published figures."""
    return {row[column] for row in experiments.read_table(PUBLISHED / f"{table}.tsv")}


def hub_name(model: str) -> str:
    """Return the name of a model's repository, without its owner."""
    return ROWS[model]["source"].rpartition("/")[2]


def test_models_of_the_leaderboard_and_of_the_bear_paper():
    board = experiments.read_table(PUBLISHED / "bear_leaderboard.tsv")
    for name, listed, count in (("bear", {"paper"}, 22), ("leaderboard", {"paper", "later"}, 36)):
        names = {row["model"] for row in board if row["listed"] in listed}
        assert len(group(name)) == len(names) == count
        assert {hub_name(model) for model in group(name)} == names
    later = {ROWS[model]["published"] for model in group("leaderboard")} - {""}
    assert len(later) == 35  # phi-4: whether its figure has a BOS was not checked
    for row in board:
        for model in group("leaderboard"):
            if hub_name(model) == row["model"]:
                assert ROWS[model]["kind"] == row["kind"]
                # the leaderboard lists Gemma's 2.5 B as 2 B
                board_says = float(row["parameters"]) / 1e6
                assert 0.75 < int(ROWS[model]["parameters"]) / board_says < 1.26, model


def test_the_other_papers_models():
    six = printed("ontoprobe_memorizing") - {"frequency-baseline"}
    assert group("ontoprobe") == six
    assert len(six) == 6
    served = {ROWS[model]["source"].removeprefix("api:") for model in group("ontoprobe_api")}
    assert served | group("ontoprobe") >= printed("ontoprobe_choice")
    facts = printed("autoprompt_facts") | printed("autoprompt_relation_extraction") - {"lstm"}
    assert group("autoprompt") == facts
    names = group("attributes") | {
        ROWS[model]["source"].removeprefix("api:") for model in group("attributes_api")
    }
    assert names == printed("attributes_scores")
    assert group("attributes") >= {"bert-base-uncased", "roberta-base", "t5-base"}


def test_unverified_revisions_are_marked_and_others_are_commits():
    hub = {model: row for model, row in ROWS.items() if row["source"].startswith("hub:")}
    assert len(hub) == 40
    marked = {model for model, row in hub.items() if experiments.UNSEEN in row["note"]}
    assert marked == {"mamba-790m", "mamba-2.8b"}
    for model, row in hub.items():
        expected = "main" if model in marked else r"[0-9a-f]{40}"
        assert re.fullmatch(expected, row["revision"]), model
        assert row["parameters"], f"{model}: its jobs cannot be planned without its size"
    # gpt2-bos has the weights of gpt2, probed with a BOS token
    assert hub["gpt2-bos"]["revision"] == hub["gpt2"]["revision"]
    own = [row for model, row in hub.items() if model != "gpt2-bos"]
    commits = [row["revision"] for row in own if row["revision"] != "main"]
    assert len(set(commits)) == len(commits)


@pytest.mark.parametrize("owner", ["meta-llama", "google"])
def test_gated_models_state_their_requirements(owner):
    gated = [r for r in ROWS.values() if r["source"].startswith(f"hub:{owner}/")]
    assert gated
    assert all("HF_TOKEN" in row["note"] for row in gated)
