"""Sentence scores equal those of lm-pub-quiz 0.3.3 on relations of the released BEAR."""

from itertools import groupby, pairwise

import pytest

from perf import _scoring_side as sides
from perf import scoring

pytestmark = [pytest.mark.real, pytest.mark.nightly(needs="a real model, for a minute")]

#: relation, instances, template: the answer last, in the middle and first
SLICES = {
    "SmolLM2-135M, causal": (("P36", 1, 0), ("P30", 3, 2), ("P105", 4, 0), ("P412", 3, 1)),
    "BERT 2 x 128": (
        ("P36", 3, 0), ("P36", 3, 2), ("P30", 10, 0), ("P103", 5, 1), ("P105", 10, 2),
        ("P272", 4, 0),
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=SLICES)
def scored(request, real_data, tmp_path_factory, monkeypatch_module):
    monkeypatch_module.setenv("KGPROBE_DATA", str(real_data))
    case = next(c for c in scoring.CASES if c.name.startswith(request.param))
    folder = tmp_path_factory.mktemp("peer") / "model"
    scoring.make_model(case, folder)
    questions = scoring.questions(SLICES[request.param])
    asked = {"folder": str(folder), "kind": case.kind}
    numbered = [dict(q, relation=f"{i:03d}") for i, q in enumerate(questions)]
    return case, questions, sides.peer(asked)(questions), sides.ours(asked)(numbered)


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def test_scores_are_equal_within_the_tolerance(scored):
    case, questions, peer, ours = scored
    assert len(peer) == len(ours) == sum(len(q["options"]) for q in questions)
    worst = max(abs(a - b) for a, b in zip(peer, ours, strict=True))
    assert worst < case.tolerance


def test_options_are_in_the_same_order(scored):
    case, questions, peer, ours = scored
    compared = 0
    owners = [i for i, q in enumerate(questions) for _ in q["options"]]
    for _, group in groupby(zip(owners, peer, ours, strict=True), key=lambda row: row[0]):
        rows = sorted(group, key=lambda row: row[1])
        for (_, first, own), (_, second, other) in pairwise(rows):
            if second - first > 2 * case.tolerance:
                assert other > own
                compared += 1
    assert compared > len(questions)
