"""Every view with a prior-corrected number states what it uses and what it assumes."""

import dataclasses
from html import unescape

import polars as pl

from kgprobe.tables import results, scored
from kgprobe.tables.attributes import views as attribute_views
from kgprobe.tables.bear import views as bear_views
from kgprobe.tables.ontoprobe import views as ontoprobe_views
from kgprobe.tables.report import headline, pages
from kgprobe.tables.views import View
from tests.unit.study_frames import probe, scores
from tests.unit.test_report import MODELS, found, paged
from tests.unit.test_slices_all import ASKED, answers

#: texts that have to be in the caption
SAID = ("uses other questions' texts", "no labels", "assumes balanced answers")


def has_caption(text: str) -> bool:
    return all(words in text for words in SAID)


def corrected(paper: str, benchmark: str, own: str, group: str = "") -> pl.DataFrame:
    """Return RESULTS of candidates scored as sentences, including prior-corrected ones."""
    asked = dataclasses.replace(ASKED, aggregation=own, group=group)
    one = scored.Scored(probe("m", benchmark), scores(answers(0.6, 1)), asked)
    made = results.frame(paper, scored.estimates([one]))
    assert "prior" in made["aggregation"]
    return made


def shows(view: View, own: pl.DataFrame) -> bool:
    """Return whether a number of the view is prior-corrected."""
    return "prior" in view.select(own)["aggregation"]


def with_prior() -> pl.DataFrame:
    """Return RESULTS of BEAR in which each model has a prior-corrected accuracy and gain."""
    own = found()
    rows = own.filter(
        pl.col("model").is_in(list(MODELS)), results.plain(), metric="accuracy", group="", slice=""
    )
    rows = rows.with_columns(aggregation=pl.lit("prior"), published=None, source=None)
    more = [rows, rows.with_columns(metric=pl.lit("gain")), rows.with_columns(metric=pl.lit("K"))]
    return pl.concat([own.filter(aggregation=""), *(part.cast(own.schema) for part in more)])


def test_every_view_with_a_corrected_number_has_the_caption():
    bear = with_prior()
    made = {
        "bear": (bear, list(bear_views.views(bear, list(MODELS)).values())),
        "ontoprobe": (
            corrected("ontoprobe", "onto_world", "answer_mean", "TP"),
            [*ontoprobe_views.ALL, ontoprobe_views.TABLE4],
        ),
        "attributes": (corrected("attributes", "symmetry", "sum"), attribute_views.ALL),
    }
    for paper, (own, views) in made.items():
        shown = [view for view in views if shows(view, own)]
        assert {"aggregations", "confidence"} <= {view.name for view in shown}, paper
        silent = [view.name for view in shown if not has_caption(view.caption)]
        assert not silent, f"{paper}: no word of what the prior uses: {silent}"


def test_the_terminal_prints_the_caption_once_and_only_if_needed():
    plain = with_prior().filter(aggregation="")
    assert "prior-corrected" not in headline.text(plain)
    assert "balanced answers" not in headline.text(plain)
    text = headline.text(with_prior())
    assert "prior-corrected" in text
    assert has_caption(text)
    assert text.count("balanced answers") == 1


def test_report_pages_with_a_corrected_number_have_the_caption():
    made = pages.render(paged(with_prior()))
    texts = {name: unescape(text) for name, text in made.items() if name.endswith(".html")}
    shown = [name for name, text in texts.items() if "prior-corrected" in text or ", prior" in text]
    assert {"index.html", "pages/bear.html"} <= set(shown)
    assert "pages/models.html" in shown
    assert not [name for name in shown if not has_caption(texts[name])]
