"""Scoring whole frames: shards resume after an interruption and are split among processes."""

import importlib.metadata

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.probes.jobs import score
from kgprobe.probes.jobs.methods import content_free
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.scoring.sentence import score as sentence
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS
from kgprobe.templates import NO_SUBJECTS
from tests.unit.tiny_models import save, tiny

LABELS = ["Paris", "Rome", "Berlin", "Niger", "Nigeria"]


def capitals(roles: list[str], *texts: str) -> tuple[pl.DataFrame, ...]:
    """Return ITEMS of countries with these roles, CANDIDATES, and PROMPTS of these texts."""
    items = [
        (f"P36/Q{i}", "P36", role, "P36", f"country {i}", f"Q{i}", "s", [0], i, "{}")
        for i, role in enumerate(roles)
    ]
    candidates = [("s", i, f"Q{i}", label) for i, label in enumerate(LABELS)]
    prompts = [(f"P36/{i}", "P36", i, text, "manual") for i, text in enumerate(texts)]
    return tuple(
        pl.DataFrame(rows, schema=dict(contract.columns), orient="row")
        for rows, contract in ((items, ITEMS), (candidates, CANDIDATES), (prompts, PROMPTS))
    )


class Bar:
    """A progress bar that counts."""

    def __init__(self, **named: object) -> None:
        self.total, self.done = named["total"], 0

    def update(self, n: int) -> None:
        self.done += n

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def spec(tmp_path_factory) -> ModelSpec:
    folder = tmp_path_factory.mktemp("model")
    save(tiny("gpt2", bos="forced"), folder)
    return ModelSpec("tiny", "causal", f"folder:{folder}", bos="forced")


@pytest.fixture(scope="module")
def frames() -> tuple[pl.DataFrame, ...]:
    return capitals(["fact"] * 12, "The capital of [X] is [Y].")


def scores(spec, frames, folder=None):
    bars: list[Bar] = []

    def progress(**named):
        bars.append(Bar(**named))
        return bars[-1]

    result = score.score_frame(spec, *frames, "sentence", folder, shard=10, progress=progress)
    assert bars[0].done == bars[0].total == 60
    return result


def test_shards_of_other_questions_are_ignored(spec, frames, tmp_path):
    scores(spec, frames, tmp_path)
    items, candidates, prompts = frames
    other = prompts.with_columns(text=pl.lit("[X] has the capital [Y]."))
    changed, _ = scores(spec, (items, candidates, other), tmp_path)
    assert changed.equals(scores(spec, (items, candidates, other))[0])


def test_shards_of_other_libraries_are_ignored(spec, frames, tmp_path, monkeypatch):
    scores(spec, frames, tmp_path)
    shards = sorted(tmp_path.glob("shard-*.journal"))
    stored = [path.read_bytes() for path in shards]
    scores(spec, frames, tmp_path)
    assert [path.read_bytes() for path in shards] == stored
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0")
    scores(spec, frames, tmp_path)
    assert len(stored) == 6
    for path, before in zip(shards, stored, strict=True):
        assert path.read_bytes() != before


@pytest.mark.parametrize("count", [2, 3, 7])
def test_subsets_join_to_identical_results_without_rescoring(
    spec, frames, tmp_path, monkeypatch, count
):
    whole, record = scores(spec, frames)
    for k in range(count):
        score.score_frame(spec, *frames, "sentence", tmp_path, shard=10, part=(k, count))
    assert len(list(tmp_path.glob("shard-*.journal"))) == 6

    def never(*given):
        raise AssertionError("a finished shard was scored again")

    monkeypatch.setattr(sentence, "_score", never)
    shared, again = scores(spec, frames, tmp_path)
    assert shared.equals(whole)
    assert again == record


def test_content_free_subjects_score_like_item_subjects(spec, frames):
    """Sums equal those of an item with that subject; one row per option, template and subject."""
    items, candidates, prompts = frames
    asked = content_free.without_subject(items)
    assert asked["subject"].to_list() == list(NO_SUBJECTS)
    plain, record = score.score_frame(spec, asked, candidates, prompts, "sentence")
    result = content_free.with_subjects(plain, asked)
    schema.check(result, schema.CONTENT_FREE)
    named = items.head(len(NO_SUBJECTS)).with_columns(subject=pl.Series(NO_SUBJECTS))
    literal, _ = score.score_frame(spec, named, candidates, prompts, "sentence")
    subjects = dict(named.select("item", "subject").rows())
    for row in literal.iter_rows(named=True):
        selected = result.filter(
            subject=subjects[row["item"]], template=row["template"], candidate=row["candidate"]
        )
        assert selected["sum"].to_list() == [pytest.approx(row["sum"], abs=1e-4)]
        assert selected["count"].to_list() == [row["count"]]
    assert result.height == literal.height == len(NO_SUBJECTS) * len(LABELS)
    assert record["sentences"] == result.height


def test_options_shared_by_few_subjects_have_no_content_free_rows(frames):
    assert not content_free.without_subject(frames[0].head(len(NO_SUBJECTS))).height
