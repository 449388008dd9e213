"""Generated answers keep whole names: the labels of the excerpt of Wikidata in a sentence."""

import polars as pl
import pytest

from kgprobe.metrics.matching import matched
from kgprobe.probes.scoring.fill.reading import answer

pytestmark = pytest.mark.real
FORMS = {
    "a sentence follows": "{}. It is a name.",
    "a line end follows": "{}\nIt is a name.",
    "the text ends": "{}.",
}


@pytest.fixture(scope="module")
def labels(real_data):
    path = real_data / "wikidata" / "entity_labels.tsv"
    frame = pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False)
    found = [name.strip() for name in frame["label"].to_list()]
    assert len(found) == 59_691
    return found


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_at_most_one_label_in_a_thousand_is_truncated(labels, form):
    read = {label: answer(form.format(label)) for label in labels}
    lost = [label for label in labels if read[label] != label]
    assert len(lost) <= len(labels) / 1000, (len(lost), lost[:50])
    unmatched = [label for label in labels if not matched(read[label], [label])]
    assert len(unmatched) <= len(labels) / 1000, (len(unmatched), unmatched[:50])


def test_a_label_whose_dot_ends_the_sentence_is_kept(labels):
    dotted = [label for label in labels if label.endswith(".")]
    assert len(dotted) > 300
    lost = [label for label in dotted if answer(f"{label} It is a name.") != label]
    assert len(lost) <= 0.1 * len(dotted), lost
    assert all(matched(answer(f"{label} It is a name."), [label]) for label in dotted)
