"""What holds of alphas whatever a model answers: bounds, growth with k, row order."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from kgprobe.schema import FILL_GOLDS, FILLS
from kgprobe.tables.attributes import alpha as aa

WORDS = ("Rome", "rome.", "the UK", "UK", "Paris", "no")
run = settings(max_examples=40, deadline=None, derandomize=True)


@st.composite
def masked(draw):
    """FILLS and FILL_GOLDS of two items, two prompts, up to two golds of up to three tokens."""
    tops, golds = [], []
    for item in "ab":
        for template in (0, 1):
            for gold in range(draw(st.integers(1, 2))):
                size = draw(st.integers(1, 3))
                sure = draw(st.floats(-9, 0))
                tops.append((item, template, size, -1, 1, -1, "x", "x", sure))
                for position in range(size):
                    best = draw(st.integers(1, 7))
                    worst = best + draw(st.integers(0, 3))
                    golds.append((item, template, gold, position, size, 7, best, worst, -1.0))
    fills = pl.DataFrame(tops, schema=dict(FILLS.columns), orient="row")
    return (
        fills.unique(["item", "template", "masks"], keep="first", maintain_order=True),
        pl.DataFrame(golds, schema=dict(FILL_GOLDS.columns), orient="row"),
    )


def check(alphas):
    """Bounds, growth with k, the set of golds beside the own one, order of the poolings."""
    assert alphas["alpha"].is_between(0, 1).all()
    keys = ["item", "template", "kind", "gold"]
    grown = alphas.sort("k").group_by(keys).agg((pl.col("alpha").diff() < -1e-12).any())
    assert not grown["alpha"].any()
    wide = alphas.pivot(on="gold", index=["item", "template", "kind", "k"], values="alpha")
    assert (wide["set"] >= wide["own"] - 1e-12).all()
    pooled = aa.pooled(alphas).pivot(
        on="pooling", index=["item", "k", "kind", "gold"], values="alpha"
    )
    for other in ("mean", "base", "confident"):
        assert (pooled["best"] >= pooled[other] - 1e-12).all()


@run
@given(masked())
def test_alphas_at_masks(given_):
    fills, golds = given_
    found = aa.of_masks(fills, golds)
    check(found)
    wide = found.pivot(on="kind", index=["item", "template", "gold", "k"], values="alpha")
    assert (wide["token_mean"] >= wide["exact"] - 1e-12).all()
    keys = ["item", "template", "k", "kind", "gold"]
    turned = aa.of_masks(fills.reverse(), golds.reverse())
    assert turned.sort(keys).equals(found.sort(keys))


@run
@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=5, max_size=5), min_size=1, max_size=6))
def test_alphas_of_texts(answers):
    rows = [
        ("a", template, 0, -1, rank, -1, text, text, -float(rank))
        for template, texts in enumerate(answers)
        for rank, text in enumerate(texts, 1)
    ]
    fills = pl.DataFrame(rows, schema=dict(FILLS.columns), orient="row")
    labels, names = {"a": [["Rome"], ["Paris"]]}, {"a": [["Rome", "UK"], ["Paris"]]}
    found = aa.of_texts(fills, labels)
    check(found)
    check(aa.of_texts(fills, names))
    keys = ["item", "template", "k", "kind", "gold"]
    assert aa.of_texts(fills.reverse(), labels).sort(keys).equals(found.sort(keys))
    # an alias makes nothing wrong
    more = found.join(aa.of_texts(fills, names), on=keys, suffix="_names")
    assert (more["alpha_names"] >= more["alpha"]).all()
