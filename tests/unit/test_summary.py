"""One sentence and one table per paper: about a downloaded model, on enough rows."""

import polars as pl
import pytest

from kgprobe.metrics.intervals import Interval
from kgprobe.probes import prompt_settings
from kgprobe.tables.answers import PRIOR
from kgprobe.tables.report import headline, marks, summary
from kgprobe.tables.results import Number, frame

BEAR = Number(metric="accuracy", benchmark="world_lite", model="m", prompt="templates",
              method="sentence", n=468)  # fmt: skip
ONTO = BEAR.but(metric="R@1", benchmark="onto_world_lite", n=30)
VALUE = BEAR.but(metric="value", method="fill", n=36,
                 setting={"alpha": "exact", "gold": "own", "k": 1, "pooling": "best"})  # fmt: skip
PROMPT = BEAR.but(metric="P@1", benchmark="auto_world", method="predict", n=108)


def results(*more: Number) -> pl.DataFrame:
    letter = ONTO.but(metric="accuracy", benchmark="onto_world", n=10, method="choice",
                      setting={"scoring": "letter"})  # fmt: skip
    numbers = {
        "bear": [
            BEAR.but(value=32.5, interval=Interval(30.0, 35.3, "bootstrap")),
            BEAR.but(value=48.8, setting={"aggregation": PRIOR}),
            BEAR.but(value=9.6, setting={"without": "the subject"}),
            BEAR.but(model="control-causal", value=99.0),
            BEAR.but(model="random", prompt="", method="", value=10.3),
            *more,
        ],
        "ontoprobe": [
            ONTO.but(group="TP", value=50.0, setting={"choice": "chosen"}),
            ONTO.but(group="DM", value=20.0, n=60, setting={"choice": "chosen"}),
            ONTO.but(group="RG", value=90.0, n=6, setting={"choice": "chosen"}),
            letter.but(group="TP", value=10.0),
            letter.but(group="DM", value=30.0),
        ],
        "attributes": [
            VALUE.but(benchmark="bias", value=25.0, numerator=9, denominator=36),
            VALUE.but(benchmark="symmetry", value=75.0, numerator=18, denominator=24),
            VALUE.but(benchmark="paths", value=100.0, numerator=2, denominator=2),
        ],
        "autoprompt": [
            PROMPT.but(prompt="manual", value=34.3),
            PROMPT.but(prompt="demos", value=59.6),
            PROMPT.but(prompt="constant", value=80.0),
            # a control that happens to be above what it controls
            PROMPT.but(prompt="demos_shuffled", value=61.0),
        ],
    }
    return pl.concat(frame(paper, rows) for paper, rows in numbers.items())


def test_each_paper_has_a_sentence_about_the_downloaded_model():
    assert [one.text for one in summary.sentences(results())] == [
        "m answers 32.5 % of 468 questions correctly (chance 10.3 %); asked without the subject, "
        "9.6 %. Corrected for the options' prior: 48.8 %.",
        # (30 x 50 + 60 x 20) / 90; (10 x 10 + 10 x 30) / 20
        "m ranks the right class or property first for 30.0 % of 90 rows: TP 50.0 %, DM 20.0 %; of "
        "20 multiple-choice questions it answers 20.0 % correctly.",
        "m scores 25.0 % on bias (n = 36), 75.0 % on symmetry (n = 24).",
        "m completes 59.6 % of 108 facts correctly with demonstrations (training facts), 34.3 % "
        "with the manual prompt.",
    ]
    hrefs = [one.href for one in summary.sentences(results())]
    assert hrefs == [f"{paper}.html" for paper in headline.PAPERS]


def test_a_number_of_fewer_questions_names_them():
    """Sets with few subjects are not asked without the subject, and may have no prior."""
    found = [
        BEAR.but(value=32.5),
        BEAR.but(value=9.6, setting={"without": "the subject"}, n=400),
        BEAR.but(value=48.8, setting={"aggregation": PRIOR}, n=461),
    ]
    (sentence,) = summary.sentences(frame("bear", found))
    assert sentence.text == (
        "m answers 32.5 % of 468 questions correctly; asked without the subject, 9.6 % of 400. "
        "Corrected for the options' prior: 48.8 % of 461."
    )


def test_subjects_that_are_asked_several_times_are_not_called_questions():
    bounds = Interval(30.0, 35.3, "cluster bootstrap")
    found = frame("bear", [BEAR.but(value=32.5, interval=bounds, n=156)])
    (sentence,) = summary.sentences(found)
    assert sentence.text == "m answers 32.5 % of the questions about 156 subjects correctly."
    title = "world_lite: 156 subjects; accuracy in % with its 95 % interval"
    assert headline.text(found).splitlines()[0] == title
    assert title in summary.text(found)


def test_one_item_is_not_called_items():
    found = headline.text(frame("bear", [BEAR.but(value=100.0, n=1)]))
    assert found.splitlines()[0] == "world_lite: 1 item; accuracy in % with its 95 % interval"


MANUAL = PROMPT.but(prompt="manual", value=34.3)
CLASSES = PROMPT.but(benchmark="auto_sst2", metric="accuracy", prompt="manual", n=872, value=85.2)
SWEPT = CLASSES.but(metric="dev accuracy", method="grid", setting={"k": 100}, value=93.0)


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ([MANUAL.but(interval=Interval(20, 50, "cluster bootstrap"))],
         ["m completes 34.3 % of the facts about 108 subjects correctly with the manual prompt."]),
        # classes have a manual prompt of their own, not that of the facts
        ([MANUAL, CLASSES, CLASSES.but(prompt="searched", value=91.4)],
         ["m classifies 91.4 % of 872 examples correctly with AutoPrompt, 85.2 % with the manual "
          "prompt."]),
        # a constant answer is no model, and the best of a sweep was chosen
        ([CLASSES, SWEPT, *(CLASSES.but(model=name, prompt="", method="", value=90.1)
                            for name in ("majority", "constant"))],
         ["m classifies 85.2 % of 872 examples correctly with the manual prompt."]),
        ([SWEPT], []),
        ([MANUAL, *(MANUAL.but(group=name, n=54) for name in ("P17", "P36"))],
         ["m completes 34.3 % of 108 facts correctly (mean over 2 relations) with the manual "
          "prompt."]),
    ],
)  # fmt: skip
def test_the_sentence_about_prompts(numbers, texts):
    assert [one.text for one in summary.sentences(frame("autoprompt", numbers))] == texts


def test_a_sentence_about_one_task_names_it_once():
    one = ONTO.but(group="TP", value=50.0, setting={"choice": "chosen"})
    (sentence,) = summary.sentences(frame("ontoprobe", [one, one.but(model="x", value=20.0)]))
    assert sentence.text == (
        "Of 2 models m ranks the right class or property first for 50.0 % of 30 rows of TP."
    )


def test_reasoning_is_summarized_for_written_premises_and_enough_rows():
    ranked = ONTO.but(group="TP", value=50.0, setting={"choice": "chosen"})
    setting = {"premise": "P1 EX, P2 EX", "scheme": "manual+manual", "weighting": "rows"}
    rule = ONTO.but(metric="MRR", method="reason", value=0.62, n=48, setting=setting)
    others = [
        rule.but(value=0.1, setting={"premise": "P1 NO, P2 NO"}),
        rule.but(value=0.2, setting={"weighting": "schemes, rules and models"}),
        rule.but(value=0.3, group="rdfs2"),
        rule.but(value=0.4, model=""),
        rule.but(value=0.5, model="control-masked"),
    ]
    found = frame("ontoprobe", [ranked, rule, *others])
    (sentence,) = summary.sentences(found)
    ending = "; with both premises written, conclusions have MRR 0.62 (n = 48)."
    assert sentence.text.endswith(f"30 rows of TP{ending}")
    assert "onto_world_lite: MRR of all rules" in headline.text(found)
    (few,) = summary.sentences(frame("ontoprobe", [ranked, rule.but(n=19)]))
    assert few.text.endswith("30 rows of TP.")


def test_letters_are_those_of_one_benchmark():
    ranked = ONTO.but(group="TP", value=50.0, setting={"choice": "chosen"})
    letter = ONTO.but(metric="accuracy", method="choice", setting={"scoring": "letter"}, group="TP")
    found = frame("ontoprobe", [
        ranked, letter.but(benchmark="onto_world", n=500, value=10.0), letter.but(value=40.0),
    ])  # fmt: skip
    (sentence,) = summary.sentences(found)
    assert sentence.text.endswith(
        "of 30 multiple-choice questions of onto_world_lite it answers 40.0 % correctly."
    )


def test_attributes_that_are_listed_include_the_number_that_chose_the_model():
    """Ranked candidates are another question than written answers."""
    bias = VALUE.but(benchmark="bias", numerator=9, denominator=36)
    found = frame("attributes", [
        bias.but(model="a", value=25.0), bias.but(model="b", value=20.0),
        bias.but(model="b", method="sentence", value=80.0),
    ])  # fmt: skip
    (sentence,) = summary.sentences(found)
    assert sentence.text == "Of 2 models a scores 25.0 % on bias (n = 36)."
    assert sentence.trace.startswith("25.0 ")


def test_the_best_of_several_models_is_reported():
    first, *_ = summary.sentences(results(BEAR.but(model="better", value=60.0)))
    assert first.text.startswith("Of 2 models better answers 60.0 % of 468 questions correctly (")


def test_a_model_whose_tokenizer_does_not_match_is_marked_in_the_sentences():
    incomplete = frame("bear", [Number(metric=marks.COMPLETE, model="m", value=0)])
    made = pl.concat([results(), incomplete])
    assert {one.text[:4] for one in summary.sentences(made)} == {"m (!"}
    assert summary.text(made).splitlines()[-1] == marks.NOTE


def test_one_of_several_sets_of_questions_is_named():
    first, *_ = summary.sentences(results(BEAR.but(benchmark="lama", model="other", value=60.0)))
    assert first.text == "other answers 60.0 % of 468 questions of lama correctly."


def test_the_terminal_has_thirty_lines_at_most_and_no_control_model():
    text = summary.text(results())
    assert len(text.splitlines()) <= 30
    assert "control-causal" not in text
    assert "random" in text
    for few in ("90.0", "100.0"):
        assert few not in text
    assert text.endswith(summary.TOO_FEW)


def test_a_run_with_only_control_models_prints_its_headline():
    own = frame("bear", [BEAR.but(model="control-causal", value=99.0)])
    assert summary.sentences(own) == []
    assert "control-causal" in summary.text(own)


def test_every_prompt_has_a_standalone_description():
    """A sentence names one prompt, without reference to the row above."""
    assert set(prompt_settings.PROMPTS) <= set(headline.PROMPTS)
    relative = ("the same", "their", "ones")
    assert not [w for w in headline.PROMPTS.values() if any(r in w for r in relative)]


def test_a_folder_without_numbers_is_reported(tmp_path, capsys):
    assert summary.main([str(tmp_path)]) == 1
    assert f"{tmp_path}: no RESULTS; expected" in capsys.readouterr().err
