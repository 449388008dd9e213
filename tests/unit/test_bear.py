"""BEAR construction on small pulls: every filter, balance, order, ties, funnel."""

from dataclasses import replace

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.bear import build, filters, frames
from kgprobe.schema import STATEMENTS
from kgprobe.settings.benchmarks import Bear, Size

CONFIG = Bear(min_answers=2, spares=1, big=Size(6, 3, 3), lite=Size(2, 2, 2))
TEMPLATES = {r: [(i, f"[X] {r} {i} [Y].") for i in range(3)] for r in ("P1", "P2", "P17")}


def row(relation="P1", cardinality="1:N", symmetric="no", ancestor="") -> dict[str, str]:
    return {
        "relation": relation,
        "cardinality": cardinality,
        "symmetric": symmetric,
        "ancestor": ancestor,
    }


def statement(subject: str, obj: str, relation: str = "P1", **changes) -> dict:
    base = {
        "kg": "wikidata", "relation": relation, "subject": f"Q{subject}",
        "subject_label": f"s{subject}x", "subject_sitelinks": 10, "object": f"Q{obj}",
        "object_label": f"o{obj}y", "object_sitelinks": 10, "object_kind": "item",
        "rank": "normal",
    }  # fmt: skip
    return {**base, **changes}


def frame(*rows: dict) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict(STATEMENTS.columns))


def reasons(
    statements: pl.DataFrame, relation: dict | None = None, **config
) -> dict[str, str | None]:
    """Map each subject to the reason of its first statement, under the given settings."""
    popular = build.with_popularity(statements, "sitelinks")
    judged = filters.filtered(popular, relation or row(), replace(CONFIG, **config))
    return dict(judged.select("subject", "reason").rows())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"subject_label": None}, "no_label"),
        ({"object_label": " "}, "no_label"),
        ({"object_label": "Q900"}, "no_label"),
        ({"object_kind": "literal"}, "not_an_item"),
        ({"object": "Q1", "object_label": "z"}, "not_an_item"),
        ({"subject_sitelinks": 4}, "unpopular"),
        ({"object_sitelinks": None}, "unpopular"),
        ({"subject_label": "greater o900y"}, "overlap"),
        ({"subject_label": "O900Ý"}, "overlap"),
        ({}, None),
    ],
)
def test_statements_get_the_first_matching_reason(changes, reason):
    assert reasons(frame(statement("1", "900", **changes)))["Q1"] == reason


def test_multi_valued_filter_precedes_popularity():
    pull = frame(statement("1", "900"), statement("1", "901", object_sitelinks=0))
    assert set(reasons(pull).values()) == {"multi_valued"}


def test_single_valued_filter_uses_best_rank_or_all_ranks():
    pull = frame(statement("1", "900", rank="preferred"), statement("1", "901"))
    popular = build.with_popularity(pull, "sitelinks")
    best = filters.filtered(popular, row(), CONFIG).sort("object")["reason"].to_list()
    assert best == [None, "multi_valued"]
    every = filters.filtered(popular, row(), replace(CONFIG, single_valued="all_ranks"))
    assert set(every["reason"]) == {"multi_valued"}


def test_inverse_uniqueness_applies_to_one_to_one_relations_only():
    pull = frame(statement("1", "900"), statement("2", "900"))
    assert set(reasons(pull).values()) == {None}
    assert set(reasons(pull, row(cardinality="1:1")).values()) == {"not_inverse_unique"}
    assert set(reasons(pull, row(cardinality="1:1"), inverse_unique=False).values()) == {None}


def test_equal_labels_keep_the_more_popular_then_the_lower_id():
    pull = frame(
        statement("1", "900", subject_label="same"),
        statement("2", "901", subject_label="SAME", subject_sitelinks=20),
        statement("3", "902", object_label="twin"),
        statement("4", "903", object_label="twin"),
    )
    assert reasons(pull) == {
        "Q1": "duplicate_subject_label", "Q2": None, "Q3": None, "Q4": "duplicate_object_label",
    }  # fmt: skip


def test_mirrored_statements_keep_the_more_popular_subject():
    pull = frame(
        statement("1", "2", subject_sitelinks=9, object_sitelinks=30),
        statement("2", "1", subject_sitelinks=30, object_sitelinks=9, subject_label="o2y",
                  object_label="s1x"),
    )  # fmt: skip
    assert reasons(pull, row(symmetric="yes")) == {"Q1": "mirror", "Q2": None}


def test_mirrored_statements_in_two_ranks_are_each_counted_once():
    """Both ranks of the less popular direction are dropped, and no row is added."""
    there = [
        statement("1", "2", rank=rank, object_sitelinks=30) for rank in ("normal", "preferred")
    ]
    back = [
        statement("2", "1", rank=rank, subject_sitelinks=30, subject_label="o2y",
                  object_label="s1x")
        for rank in ("normal", "preferred")
    ]  # fmt: skip
    pull = build.with_popularity(frame(*there, *back), "sitelinks")
    judged = filters.filtered(pull, row(symmetric="yes"), CONFIG)
    assert judged["reason"].to_list() == ["mirror", "mirror", None, None]


def test_mapping_replaces_a_place_with_its_country():
    pull = frame(
        statement("1", "50"), statement("2", "60"), statement("3", "900"),
        statement("50", "900", "P17"), statement("60", "900", "P17"),
        statement("60", "901", "P17"),
    )  # fmt: skip
    popular = build.with_popularity(pull, "sitelinks")
    births = popular.filter(pl.col("relation") == "P1")
    result = filters.map_to_ancestors(births, "P17", popular).sort("subject")
    assert result.select("object", "object_label", "object_kind").rows() == [
        ("Q900", "o900y", "item"),
        ("Q60", "o60y", "unmapped"),
        ("Q900", "o900y", "item"),
    ]
    judged = filters.filtered(result, row(ancestor="P17"), CONFIG)
    assert dict(judged.select("subject", "reason").rows())["Q2"] == "no_ancestor"


@pytest.mark.parametrize(
    ("subject", "answer", "rule", "expected"),
    [
        ("Mexico City", "Mexico", "contains", True),
        ("Oman", "Romania", "contains", True),
        ("Côte d'Ivoire", "cote", "contains", True),
        ("Niger", "Nigeria", "contains", True),
        ("Chad", "Chadwick", "none", False),
        ("Iran", "Ira", "contains", False),
        ("Bank of England", "Bank of Japan", "contains", False),
        ("Bank of England", "Bank of Japan", "words", True),
        # a vowel sign is a combining mark and not a word boundary
        ("सूरत", "रत", "contains", False),
    ],
)
def test_overlap_of_labels(subject, answer, rule, expected):
    assert filters.overlap(filters.fold(subject), filters.fold(answer), rule) is expected


def pull(relation: str, sizes: dict[str, int], start: int = 1) -> list[dict]:
    """Generate `sizes` subjects per answer, the later ones less popular."""
    rows, number = [], start
    for answer, size in sizes.items():
        for i in range(size):
            popularity = {"subject_sitelinks": 100 - i, "object_sitelinks": 100}
            rows.append(statement(str(number), answer, relation, **popularity))
            number += 1
    return rows


def built(step: int = 1, coverage: pl.DataFrame | None = None, **config) -> build.NestedSets:
    """Build the sets of two relations; statements and relations are reversed if `step` is -1."""
    rows = [
        *pull("P1", {"900": 4, "901": 3, "902": 2, "903": 1}),
        *pull("P2", {str(950 + i): 1 for i in range(5)}, start=100),
    ]
    statements, relations = frame(*rows[::step]), [row("P1"), row("P2", "1:1")][::step]
    forms = {"Q900": "the Form"}
    return build.build(
        statements, relations, TEMPLATES, forms, replace(CONFIG, **config), "t", coverage=coverage
    )


def test_funnel_starts_with_the_sampling_of_a_relation():
    coverage = pl.DataFrame({
        "relation": ["P1", "P2"], "way": ["pulled", "sampled"], "reason": ["", "too many rows"],
    })  # fmt: skip
    steps = built(coverage=coverage).funnel.sort("relation", "position")
    first = steps.unique("relation", keep="first", maintain_order=True)
    by_relation = dict(first.select("relation", "step").rows())
    assert by_relation["P2"] == "sampled: too many rows"
    assert "sampled" not in by_relation["P1"]


def test_the_largest_feasible_number_of_answers_is_chosen():
    result = built()
    choice = {(b, r): (k, q) for b, r, _, k, q, *_ in result.choice.rows()}
    # 3 answers need round(6 / 3) = 2 instances each: 900, 901, 902
    assert choice["t_big", "P1"] == (3, 2)
    assert choice["t_lite", "P1"] == (2, 1)
    assert choice["t_big", "P2"] == (3, 1)
    labels = result.big.candidates.filter(pl.col("set") == "t_big/P1").sort("index")["label"]
    assert labels.to_list() == ["the Form", "o901y", "o902y"]


def test_sets_are_balanced_nested_and_match_their_schemas(tmp_path):
    result = built()
    for sets in (result.big, result.lite):
        frames.check_balance(sets)
        schema.check(sets.items, schema.ITEMS)
        schema.check(sets.candidates, schema.CANDIDATES)
        schema.check(sets.prompts, schema.PROMPTS)
    assert set(result.lite.items["item"]) < set(result.big.items["item"])
    for name, contract in build.REPORTS.items():
        schema.write(getattr(result, name), contract, tmp_path / f"{name}.parquet")


def test_most_popular_instances_are_kept_and_the_next_are_spares():
    result = built()
    assert "P1/Q1" in result.big.items["item"]
    assert result.spares.filter(pl.col("object") == "Q900")["subject"].to_list() == ["Q3"]


def test_row_order_does_not_matter():
    forward, backward = built(), built(step=-1)
    for name, key in (
        ("items", ["item"]),
        ("candidates", ["set", "index"]),
        ("prompts", ["prompt"]),
    ):
        one, two = getattr(forward.big, name), getattr(backward.big, name)
        assert one.sort(key).equals(two.sort(key))
    assert forward.choice.equals(backward.choice)


def test_the_funnel_accounts_for_every_statement():
    result = built(min_sitelinks=98)
    steps = result.funnel.filter(pl.col("relation") == "P1").sort("position")
    assert steps["rows_in"][0] == 10
    assert steps["rows_in"].to_list()[1:] == steps["rows_out"].to_list()[:-1]
    lost = result.dropped.filter(pl.col("relation") == "P1").height
    assert steps["rows_out"][-1] == 10 - lost
    assert lost > 0


def test_relations_without_a_small_set_are_dropped_and_reported():
    """P1 has three answers with two instances but not two with three; P2 is one-to-one."""
    result = built(big=Size(6, 3, 3), lite=Size(6, 2, 2))
    assert set(result.big.items["relation"]) == set(result.lite.items["relation"]) == {"P2"}
    none = [0] * 5 + [None] * 4
    for row in result.choice.filter(relation="P1").rows():
        assert row[1:] == ("P1", "1:N", *none, "too few answers")
    assert set(result.spares["relation"]) == {"P2"}
    assert result.describe("lite").endswith(" questions; without P1 (too few answers)")
    last = result.funnel.filter(relation="P1").sort("position").row(-1, named=True)
    assert (last["step"], last["rows_in"], last["rows_out"]) == ("too few answers", 10, 0)


def test_a_set_names_the_relations_that_it_lacks():
    rows = frame(*(s for n in range(8) for s in pull(f"P{n + 10}", {f"{n}0": 2, f"{n}1": 2})))
    names = [f"P{n + 10}" for n in range(8)]
    texts = {name: [(i, f"[X] {i} [Y].") for i in range(3)] for name in names[:2]}
    least = replace(CONFIG, short="shrink", min_answers=2)
    whole = build.build(rows, list(map(row, names)), texts, {}, least, "t")
    left_out = "without P12, P13, P14, P15, P16 and 1 more (0 templates, needs three)"
    assert whole.describe("big") == f"2 relations, 8 questions; {left_out}"
    kept = whole.funnel.sort("position").group_by("relation").last().filter(pl.col("rows_out") > 0)
    assert sorted(kept["relation"]) == names[:2]


def test_no_relation_left_raises_with_the_settings_to_lower():
    with pytest.raises(ValueError, match=r"no relation has 50 answers.*lower `total`"):
        built(min_answers=50)
    # the sets of a user's graph take what there is: no setting helps, and no funnel is written
    rows = frame(*pull("P1", {"900": 2}), statement("9", "901"), statement("9", "902"))
    least = replace(CONFIG, short="shrink")
    with pytest.raises(ValueError, match=r"2 answers .*; add facts: .*filters: 2 multi_valued$"):
        build.build(rows, [row("P1")], TEMPLATES, {}, least, "t")
    rows = frame(*pull("P9", {"900": 4, "901": 3}))
    with pytest.raises(
        ValueError, match="t: P9 have enough answers and not three templates; write"
    ):
        build.build(rows, [row("P9")], TEMPLATES, {}, CONFIG, "t")


def test_popularity_is_counted_from_statements():
    statements = frame(statement("1", "900"), statement("2", "900"), statement("3", "901"))
    counted = build.with_popularity(statements, "statements").sort("subject")
    assert counted["object_popularity"].to_list() == [2, 2, 1]


def test_a_statement_about_an_entity_and_itself_counts_once():
    statements = frame(statement("1", "900"), statement("900", "900"))
    counted = build.with_popularity(statements, "statements")
    assert counted["object_popularity"].to_list() == [2, 2]
    items = pl.DataFrame({"subject_id": ["Q900"], "meta": ["{}"]})
    without_links = statements.with_columns(subject_sitelinks=pl.lit(None, pl.Int64))
    popular = frames.BearFrames(items, items, items).with_popularity(without_links)
    assert popular.items["meta"].to_list() == ['{"statements": 2}']


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.items.head(s.items.height - 1), "different numbers of instances|ever right"),
        (lambda s: s.items.with_columns(subject=pl.lit("same")), "subject 'same' occurs twice"),
    ],
)
def test_unbalanced_sets_raise_with_the_relation(change, message):
    sets = built().big
    with pytest.raises(frames.BalanceError, match=f"P\\d: .*({message})"):
        frames.check_balance(frames.BearFrames(change(sets), sets.candidates, sets.prompts))
