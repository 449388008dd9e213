"""Choice of answers and instances: its report, spares, manual review, final checks."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe.benchmarks.bear import build, frames
from kgprobe.benchmarks.bear import choice as bear_choice
from tests.unit.test_bear import CONFIG, TEMPLATES, frame, row, statement


def pull(answers: int = 3, each: int = 4, relation: str = "P1") -> pl.DataFrame:
    """Generate `answers` answers with `each` subjects; smaller numbers are more popular."""
    rows = [
        statement(
            f"{100 * a + i}", f"{900 + a}", relation,
            subject_sitelinks=50 - i, object_sitelinks=90 - a,
        )
        for a in range(1, answers + 1)
        for i in range(each)
    ]  # fmt: skip
    return frame(*rows)


def built(statements: pl.DataFrame, relation: dict | None = None, review=(), **config):
    verdicts = [{"relation": r, "subject": s, "verdict": "reject", "note": "x"} for r, s in review]
    return build.build(
        statements, [relation or row()], TEMPLATES, {}, replace(CONFIG, **config),
        review=bear_choice.rejected_subjects(verdicts),
    )  # fmt: skip


def test_choice_reports_attempts_and_popularity_at_the_cutoff():
    choice = (
        built(pull(answers=4)).choice.filter(pl.col("benchmark") == "bear_big").row(0, named=True)
    )
    # total 6, at most 3 answers: 2 subjects each; the first subject left out has 48 sitelinks
    assert (choice["answers"], choice["per_answer"], choice["tried"]) == (3, 2, 0)
    assert (choice["last_answer"], choice["next_answer"]) == (87, 86)
    assert (choice["last_instance"], choice["next_instance"]) == (49, 48)


def test_rejected_instances_are_replaced_by_the_first_spare():
    sets = built(pull(), review=[("P1", "Q101"), ("P1", "Q555")])
    ids = set(sets.big.items["subject_id"])
    assert ids == {"Q100", "Q102", "Q200", "Q201", "Q300", "Q301"}
    outcomes = {s: (o, r) for _, s, _, o, r in sets.reviewed.rows()}
    assert outcomes == {"Q101": ("replaced", "Q102"), "Q555": ("not in the set", None)}
    assert "Q102" not in set(sets.spares["subject"])


def test_without_a_spare_the_relation_is_sampled_again():
    sets = built(pull(each=3).filter(pl.col("subject") != "Q102"), review=[("P1", "Q101")])
    # three answers need two instances each, and one answer has only one left
    assert sets.big.candidates.height == 2
    assert "Q101" not in set(sets.big.items["subject_id"])
    assert sets.reviewed["outcome"].to_list() == ["no spare: relation chosen anew"]


def test_replacements_are_discarded_when_a_relation_is_sampled_again(monkeypatch):
    """Of two rejected subjects only one has a spare; the next choice contains neither."""

    def chosen(subjects: str, spares: str) -> bear_choice.RelationSample:
        rows = [
            {"subject": s, "object": s[0], "position": n} for n, s in enumerate(subjects.split())
        ]
        more = [{"subject": s, "object": s[0], "position": n} for n, s in enumerate(spares.split())]
        schema = {"subject": pl.String, "object": pl.String, "position": pl.Int64}
        frame, rest = (pl.DataFrame(some, schema=schema) for some in (rows, more))
        return bear_choice.RelationSample(frame, rest, ())

    choices = iter([chosen("a1 b1", "a2"), chosen("a3 b3", "")])
    monkeypatch.setattr(bear_choice, "choose", lambda *_: next(choices))
    rejected = {"a1": "x", "b1": "y"}
    rest = pl.DataFrame({"subject": ["a1", "b1", "a2", "a3", "b3"]})
    last, rows = bear_choice.reviewed(rest, row(), CONFIG, rejected)
    assert last.frame["subject"].to_list() == ["a3", "b3"]
    assert {subject: (outcome, by) for _, subject, _, outcome, by in rows} == {
        "a1": ("not in the set", None),
        "b1": ("no spare: relation chosen anew", None),
    }


def test_rejected_pairs_are_replaced_by_the_next_spare():
    one_to_one = row(cardinality="1:1")
    pairs = pull(answers=5, each=1)
    spares = built(pairs, one_to_one).spares
    assert spares.select("subject", "position").rows() == [("Q400", 1)]
    sets = built(pairs, one_to_one, review=[("P1", "Q200")])
    assert set(sets.big.items["subject_id"]) == {"Q100", "Q300", "Q400"}


def test_verdicts_are_checked():
    with pytest.raises(ValueError, match=r"P1/Q1: verdict 'no'; it is reject or keep"):
        bear_choice.rejected_subjects(
            [{"relation": "P1", "subject": "Q1", "verdict": "no", "note": ""}]
        )
    twice = [{"relation": "P1", "subject": "Q1", "verdict": "keep", "note": ""}] * 2
    with pytest.raises(ValueError, match="P1/Q1 is judged twice"):
        bear_choice.rejected_subjects(twice)


def test_nesting_and_overlap_are_checked_at_the_end():
    big = pull(answers=1, each=2)
    with pytest.raises(frames.BalanceError, match="Q201 is in lite and not in big"):
        frames.check_nested("P1", big, frame(statement("201", "901")), "contains")
    shown = frame(statement("1", "901", subject_label="Mexico City", object_label="Mexico"))
    with pytest.raises(frames.BalanceError, match="'Mexico City' overlaps its answer 'Mexico'"):
        frames.check_nested("P1", shown, shown, "contains")
    frames.check_nested("P1", shown, shown, "none")


def test_a_small_relation_shrinks_to_its_largest_balanced_set():
    from kgprobe.benchmarks.bear.choice import _balance
    from kgprobe.settings.benchmarks import Bear, Size

    size, shrink = Size(600, 100, 194), Bear(min_answers=2, short="shrink")
    for counts in ([6, 4, 2], [4, 4, 4], [5, 5], [9, 1, 1, 1], [1, 1]):
        best = max(
            (k * q, k, q)
            for k in range(2, len(counts) + 1)
            for q in range(1, 10)
            if sum(n >= q for n in counts) >= k
        )
        assert _balance(counts, shrink, size) == best[1:]
        assert _balance(counts, Bear(min_answers=2), size) is None
    assert _balance([3], shrink, size) is None
    assert _balance([9] * 9, replace(shrink, min_answers=8), Size(600, 7, 194)) is None


def test_answers_are_sorted_by_composed_labels():
    """A decomposed "É" would sort before F, a composed one sorts after Z."""
    labels = {"Q901": "E\u0301toile", "Q902": "Fort", "Q903": "Zoo"}
    label = pl.col("object").replace_strict(labels)
    options = built(pull().with_columns(object_label=label)).big.candidates
    assert options.sort("index")["label"].to_list() == ["Fort", "Zoo", "E\u0301toile"]
