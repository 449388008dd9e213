"""AutoPrompt's tables: hand-counted values, and printed values only for comparable numbers."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.benchmarks.autoprompt import frames
from kgprobe.metrics import prompts as metrics
from kgprobe.probes import ranked
from kgprobe.probes.jobs.autoprompt import search, tasks
from kgprobe.probes.prompts.search.settings import NOT_RELEASED
from kgprobe.sampling import hash_key
from kgprobe.tables import judged, results
from kgprobe.tables.autoprompt import make, numbers, published, texts, views
from kgprobe.tables.autoprompt import section as autoprompt_report
from kgprobe.tables.claims import paired
from kgprobe.tables.report import grid, headline, section
from kgprobe.tables.results import Number
from tests.unit.prompt_outcomes import answered, examples, outcomes, the
from tests.unit.study_frames import drawn as rows_of
from tests.unit.study_frames import of_rows

FOLDER = Path(__file__).parents[2] / "resources" / "published"
FIGURES = published.read(FOLDER)
#: test examples of the released files (tests/real counts them)
SIZES = {
    "auto_lama": 34_039, "auto_lama_trex": 7_266, "auto_lama_roberta": 29_520, "auto_sst2": 1_821,
    "auto_sick": 4_927, "auto_sick_3way": 2_160, "auto_sick_2way": 1_440,
}  # fmt: skip
#: rows of the table of models
MODELS = {
    name: {"kind": "masked", "source": source, "dtype": "float32", "bos": "-"}
    for name, source in (("bert-base-cased", "hub:x"), ("c", "control:m"), ("m", "hub:x"))
}


def printed(model: str, prompt: str, benchmark: str, metric: str = "P@1", **more):
    """Return the printed value for the number of the whole set, and its table."""
    own = Number(
        metric=metric, n=1, value=0.0, model=model, prompt=prompt, benchmark=benchmark, **more
    )
    size = SIZES.get(benchmark, 1)
    found = published.beside(own, published.by_key(FIGURES), model, size)
    return found.published, found.source


def test_every_headline_value_of_the_paper_is_in_the_tables():
    table4 = "Shin et al. 2020, Table 4"
    for prompt, *values in (
        ("manual", 31.10, 40.27, 59.49),
        ("lpaqa", 34.10, 43.57, 62.03),
        ("searched", 42.94, 53.06, 72.17),
        ("searched_7", 43.34, 53.89, 73.93),
    ):
        for metric, value in zip(("P@1", "MRR", "P@10"), values, strict=True):
            assert printed("bert-base-cased", prompt, "auto_lama", metric) == (value, table4)
    assert printed("bert-base-cased", "searched", "auto_lama_trex")[0] == 45.40
    assert printed("roberta-large", "searched", "auto_lama_roberta")[0] == 40.01
    assert printed("roberta-large", "manual", "auto_lama") == (None, None)
    of_classes = {"metric": "accuracy"}
    assert printed("roberta-large", "searched", "auto_sst2", **of_classes)[0] == 91.4
    dev = {**of_classes, "slice": "dev"}
    assert printed("bert-base-cased", "linear_probe", "auto_sst2", **dev)[0] == 85.2
    assert printed("bert-base-cased", "finetuned", "auto_sst2", **dev) == (None, None)
    assert printed("any", "majority", "auto_sick", **of_classes)[0] == 56.7
    # draws, relations and training sentences are not the paper's: a row of its own quotes the value
    for name in ("auto_sick_3way", "auto_sick_2way"):
        assert printed("bert-base-cased", "searched", name, **of_classes) == (None, None)
    quoted = {f.value for f in FIGURES if f.benchmark == "auto_sick_3way"}
    assert quoted >= {33.3, 55.4, 69.3}
    assert printed("bert-base-cased", "searched", "auto_re_perturbed") == (None, None)
    quoted = [f.value for f in FIGURES if f.benchmark == "auto_re_perturbed"]
    assert sorted(quoted) == [28.02, 28.95, 30.79, 56.43, 58.81]


def test_the_means_of_the_printed_table_6_and_its_ten_losses():
    figures = results.frame("autoprompt", FIGURES).filter(pl.col("group") != "")
    shown = grid.of_view(views.PRINTED6, views.ordered(figures), also=autoprompt_report.as_printed)
    values: dict[str, dict[str, float]] = {}
    for row in figures.filter(metric="P@1").rows(named=True):
        values.setdefault(row["prompt"], {})[row["group"]] = row["value"]
    for name in ("LAMA", "LPAQA top-1", "AutoPrompt 5 tokens"):
        assert f"{name} {sum(values[name].values()) / len(TESTED):.2f}" in shown.caption
    own, *others = (values[n] for n in ("AutoPrompt 5 tokens", "LAMA", "LPAQA top-1"))
    lost = [r for r in TESTED if own[r] < max(other[r] for other in others)]
    assert shown.caption.endswith(f"of the two others on {', '.join(lost)}.")
    assert len(lost) == 10
    assert len(shown.rows) == len(TESTED)
    assert [cell.text for cell in shown.rows[0]] == ["P17", "1,000", "52.15", "31.29", "35.48"]


#: test facts of LAMA per relation
TESTED = dict(
    pair.split(":")
    for pair in (
        "P17:930 P19:944 P20:953 P27:966 P30:975 P31:922 P36:703 P37:966 P39:892 P47:922 P101:696 "
        "P103:977 P106:958 P108:383 P127:687 P131:881 P136:931 P138:645 P140:473 P159:967 P176:982 "
        "P178:592 P190:995 P264:429 P276:959 P279:964 P361:932 P364:856 P407:877 P413:952 P449:881 "
        "P463:225 P495:909 P527:976 P530:996 P740:936 P937:954 P1001:701 P1303:949 P1376:234 "
        "P1412:969"
    ).split()
)


def test_the_printed_values_are_whole_facts_and_macro_averages():
    own = {(f.group, f.prompt): f.value for f in FIGURES if f.group and f.metric == "P@1"}
    values = {r: own[r, "AutoPrompt 5 tokens"] for r in TESTED}
    sizes = {relation: int(n) for relation, n in TESTED.items()}
    assert sum(sizes.values()) == 34_039
    micro = sum(values[r] * sizes[r] for r in values) / 34_039
    assert micro == pytest.approx(42.29, abs=5e-3)
    for relation, n in sizes.items():
        if relation != "P279":  # printed over 963 facts, one object being outside the vocabulary
            right = round(values[relation] * n / 100)
            assert values[relation] == pytest.approx(100 * right / n, abs=0.0051), relation
    one = [own[r, "LAMA"] for r in ("P36", "P1376")]  # one to one
    assert sum(one) / 2 == pytest.approx(68.05, abs=5e-3)


def two_relations(prompt: str, ranks, benchmark="auto_world", **more):
    frame = examples({"P36": {"train": 2, "test": 4}, "P37": {"train": 1, "test": 2}})
    return answered(benchmark, prompt, frame, ranks, **more)


def measured(*own, trained_on=None):
    """Return every number of some answers, with printed values."""
    return list(make.measure(own, FIGURES, {}, trained_on))


def framed(made):
    return results.frame("autoprompt", [*FIGURES, *made])


MICRO = {"weighting": "items"}


def test_facts_are_averaged_over_relations_and_counted_over_facts():
    own = two_relations("searched", {"P36": [1, 1, 1, 2], "P37": [4, 2]})
    made = [n for n in measured(own) if n.prompt == "searched"]
    whole = the(made, "P@1")
    assert whole.value == pytest.approx(100 * (3 / 4 + 0) / 2)
    assert the(made, "P@1", setting=MICRO).value == pytest.approx(100 * 3 / 6)
    assert the(made, "P@1", group="P36").value == pytest.approx(75)
    assert the(made, "P@10").value == pytest.approx(100)
    assert the(made, "MRR").value == pytest.approx(100 * (3.5 / 4 + 0.375) / 2)
    assert (whole.n, whole.method) == (6, "predict")
    assert whole.interval.low < whole.value < whole.interval.high


def test_a_printed_value_needs_the_whole_set_and_the_same_model():
    part = two_relations("searched", {"P36": [1], "P37": [1]}, benchmark="auto_lama")
    made = measured(part)
    own = [n for n in made if n.prompt == "searched"]
    assert the(own, "P@1").published is None
    beside = the(own, "P@1", group="P36")
    assert (beside.published, beside.source) == (60.6, "Shin et al. 2020, Table 6")
    counted = the(made, "search facts", group="P36")
    assert (counted.value, counted.n, counted.interval, counted.published) == (2, 2, None, 1000)
    other = two_relations("searched", {"P36": [1], "P37": [1]}, benchmark="auto_lama", model="x")
    assert the(measured(other), "P@1", group="P36", model="x").published is None
    # Table 6 counts the facts of Original: of T-REx, a fifth of them is for the test
    split = two_relations("searched", {"P36": [1], "P37": [1]}, benchmark="auto_lama_trex")
    assert the(measured(split), "search facts", group="P36").published is None
    world = two_relations("searched", {"P36": [1], "P37": [1]})
    assert {n.published for n in measured(world)} == {None}
    # of a part of the facts, not even their number has a printed counterpart
    sampled = measured(replace(part, is_sampled=True))
    assert the(sampled, "search facts", group="P36").published is None


def test_the_no_overlap_subset_has_a_separate_n():
    frame = examples({"P36": {"train": 1, "test": 4}}, flags={"test0": ["inverse"]})
    own = answered("auto_world", "manual", frame, {"P36": [1, 2, 2, 2]})
    made = [n for n in measured(own) if n.prompt == "manual"]
    part = the(made, "P@1", slice="no overlap")
    assert (part.value, part.n) == (0.0, 3)
    assert the(made, "P@1").value == 25.0


def test_samples_are_averaged_with_minimum_and_maximum():
    frame = examples({"P36": {"train": 1, "test": 2}})
    ends = enumerate(([1, 1], [2, 2]))
    drawn = pl.concat(outcomes(frame, {"P36": own}, f"random_triggers {n}") for n, own in ends)
    own = answered("auto_world", "random_triggers", frame, drawn)
    made = [n for n in measured(own) if n.prompt == "random_triggers"]
    assert (the(made, "P@1").value, the(made, "P@1").n) == (50, 2)
    assert the(made, "P@1", setting={"draw": "lowest"}).value == 0
    assert the(made, "P@1", setting={"draw": "highest"}).value == 100


def test_the_gain_is_paired():
    one = two_relations("searched", {"P36": [1], "P37": [1, 2]})
    two = two_relations("manual", {"P36": [2], "P37": [2, 1]})
    gain = the(measured(one, two), "P@1", setting={"instead": "manual"})
    assert (gain.value, gain.n, gain.prompt) == (50, 6, "searched")
    assert gain.interval.low < 50 < gain.interval.high
    assert gain.interval.kind == "paired bootstrap"
    # equal in every sample: no information about other facts
    alike = two_relations("manual", {"P36": [2], "P37": [2]})
    best = two_relations("searched", {"P36": [1], "P37": [1]})
    gain = the(measured(best, alike), "P@1", setting={"instead": "manual"})
    assert (gain.value, gain.interval) == (100, None)
    # in any order of rows; no number without common examples
    pair = [numbers.per_example(a) for a in (one, two)]
    found = numbers.gain(Number(), *pair, "p1", 0)
    shuffled = pair[0].sample(fraction=1.0, shuffle=True, seed=1)
    assert numbers.gain(Number(), shuffled, pair[1], "p1", 0) == found
    with pytest.raises(ValueError, match="no example shared"):
        numbers.gain(Number(), pair[0], pair[1].head(0), "p1", 0)


def test_the_facts_of_a_subject_are_drawn_together_and_n_counts_subjects():
    """Three objects of each subject, all answered alike, are one answer."""
    spreads = []
    for count in (1, 3):
        named = pl.Series([f'{{"sub": "S{i}"}}' for i in range(30) for _ in range(count)] * 2)
        frame = examples({"P36": {"test": 30 * count}, "P37": {"test": 30 * count}})
        frame = frame.with_columns(fields=named)
        first = [1 + (i % 3 == 0) for i in range(30) for _ in range(count)]
        one, two = (
            answered("auto_world", prompt, frame, {"P36": ranks, "P37": ranks[::-1]})
            for prompt, ranks in (("searched", first), ("manual", [2 - r // 2 for r in first]))
        )
        made = measured(one, two)
        own = [n for n in made if n.prompt == "searched"]
        gain = the(own, "P@1", setting={"instead": "manual"})
        whole, part = the(own, "P@1"), the(own, "P@1", group="P36")
        assert [x.n for x in (whole, part, the(own, numbers.MAJORITY), gain)] == [60, 30, 60, 60]
        rows = framed(own).filter(
            prompt="searched", metric="P@1", group="", slice="", instead="", weighting="", gold=""
        )
        judged_rows = judged.frame("autoprompt", [(one.probe, numbers.judge(one))])
        drawn = paired.RunAnswers(judged_rows).draws(rows.row(0, named=True))
        bounds = [x.interval.high - x.interval.low for x in (whole, part, gain)]
        spreads.append([*bounds, drawn.values.std()])
    assert spreads[0] == pytest.approx(spreads[1], rel=0.1)


def test_five_samples_of_equal_sentences_do_not_narrow_the_interval():
    spreads = []
    for count in (1, 5):
        names = [f"draw{i}" for i in range(count)]
        frame = examples({name: {"train": 3, "test": 40} for name in names}, labels=("a", "b"))
        one, two = (
            answered("auto_sick_3way", prompt, frame, dict.fromkeys(names, ranks))
            for prompt, ranks in (("searched", [1, 2, 1]), ("manual", [2, 1, 2, 2, 2]))
        )
        made = measured(one, two)
        gain = the(made, "accuracy", setting={"instead": "manual"})
        assert (gain.value, gain.n) == (pytest.approx(47.5), 40)
        rows = framed(made).filter(
            metric="accuracy", prompt="searched", slice="", instead="", draw=""
        )
        judged_rows = judged.frame("autoprompt", [(one.probe, numbers.judge(one))])
        drawn = paired.RunAnswers(judged_rows).draws(rows.row(0, named=True))
        spreads.append((gain.interval.high - gain.interval.low, drawn.values.std()))
    assert spreads[0] == pytest.approx(spreads[1], rel=0.1)


def classes(benchmark: str, prompt: str, ranks):
    frame = examples({"": {"train": 4, "dev": 4, "test": 8}}, labels=("negative", "positive"))
    return answered(benchmark, prompt, frame, {"": ranks})


def test_accuracy_on_dev_and_test_and_by_class():
    made = measured(classes("auto_sst2", "searched", [1, 2, 1, 1]))
    own = [n for n in made if n.prompt == "searched"]
    assert the(own, "accuracy", slice="dev").value == 75
    assert the(own, "accuracy").n == 8
    assert the(own, "accuracy", slice="class: negative").value == 100
    assert the(own, "accuracy", slice="class: positive").value == 50
    sick = measured(classes("auto_sick_2way", "majority", [1, 2]))
    assert the(sick, "accuracy", model="bert-base-cased").value == 50
    # the views show them in their places
    frame = framed([*made, *sick])
    shown, folded = views.of(autoprompt_report.select_reported(frame))
    texts_of = {view.name: view.of(frame) for view in (*shown, *folded)}
    ours = ("predict", "bert-base-cased", "searched")
    assert texts_of["table1"].cells[ours, ("dev", "accuracy", "")]["value"] == 75
    assert texts_of["table2"].cells[(*ours[:2], "majority"), ("auto_sick_2way", "accuracy", "")]
    assert ("class: negative",) in texts_of["classes"].columns


def sentences(prompt: str = "searched"):
    """Return two facts of one relation, the first with two sentences, original and perturbed."""
    base = examples({"P36": {"test": 3}}, labels=("Paris",)).with_columns(
        pl.Series("fact", ["a", "a", "b"]),
        pl.Series("fields", ['{"sub": "France", "context": "Paris is in France."}'] * 3),
    )
    perturbed = '{"sub": "France", "context": "Rome is in France.", "old": "Paris"}'
    changed = base.with_columns(label=pl.lit("Rome"), fields=pl.lit(perturbed))
    ranks = {"P36": [2, 1, 2]}
    second = outcomes(changed, ranks, prompt)
    second = second.with_columns(pl.Series("answer", ["paris", "Rome", "Oslo"]))
    return [
        answered("auto_re", prompt, base, ranks),
        answered("auto_re_perturbed", prompt, changed, second),
    ]


def test_a_fact_is_right_for_any_sentence_and_memory_is_reported():
    made = [n for n in measured(*sentences()) if n.prompt == "searched"]
    read = [n for n in made if n.benchmark == "auto_re"]
    assert the(read, "P@1").value == 50
    assert the(read, "P@1").published is None
    assert the(read, "P@1 per sentence").value == pytest.approx(100 / 3)
    assert the(read, "sentences per fact").value == 1.5
    perturbed = [n for n in made if n.benchmark == "auto_re_perturbed"]
    assert the(perturbed, "old object answered").value == 50
    assert the(read, "P@1", setting={"instead": "auto_re_perturbed"}).value == 0


@pytest.mark.parametrize("right", [(1, 2, 1), (1, 1, 1)])
def test_five_sentences_of_a_fact_do_not_narrow_the_interval(right):
    """Facts are resampled for the mean over relations, over all sentences, and for one relation."""
    widths = []
    for count in (1, 5):
        facts = [f"{i:02d}" for i in range(30) for _ in range(count)]
        frame = examples({name: {"test": len(facts)} for name in ("P36", "P37")}).with_columns(
            fact=pl.format("{}/{}", "group", pl.Series(facts * 2)),
            fields=pl.Series([f'{{"sub": "S{fact}"}}' for fact in facts * 2]),
        )
        ranks = [right[i % 3] for i in range(30) for _ in range(count)]
        found = outcomes(frame, {"P36": ranks, "P37": ranks[::-1]})
        made = [n for n in measured(answered("auto_re", "searched", frame, found))
                if n.metric == "P@1 per sentence"]  # fmt: skip
        assert {n.n for n in made} == {30, 60}
        widths.append([n.interval.high - n.interval.low for n in made])
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_perturbed_sentences_strike_out_the_old_object():
    file = texts.Prompt("auto_re", "searched", "bert-base-cased", "P36",
                        {"template": "{sub} [T] [P] .", "tokens": ["x"]})  # fmt: skip
    rows = [*texts.contexts(sentences(), [file], each=2)]
    assert [row["half"] for row in rows] == ["original"] * 2 + ["perturbed"] * 2
    assert rows[0]["prompt"] == "{sub} x [P] ."
    assert rows[2]["context"] == "~~Paris~~ Rome is in France."
    assert rows[2]["object"] == "~~Paris~~ Rome"


def prompt_file(group: str, labels=None, restarts=()):
    content = {
        "template": "{sub} [T]x2 [P] .", "tokens": ["Ġseat", "##ed"], "label_tokens": labels or {},
        "restarts": list(restarts), "round_trip": False,
    }  # fmt: skip
    return texts.Prompt("auto_world", "searched", "bert-base-cased", group, content)


def test_prompts_are_written_out_with_their_scores():
    own = two_relations("searched", {"P36": [1], "P37": [1]})
    made = framed(measured(own, two_relations("manual", {"P36": [2], "P37": [2]})))
    prompts = [prompt_file("P37"), prompt_file("P36", {"x": ["Ġgood"]})]
    rows = [*texts.of_relations(prompts, made, {"auto_world": {"P36": "{sub} [P] ."}})]
    assert [row["relation"] for row in rows] == ["P36", "P37"]
    assert rows[0]["prompt"] == "{sub} seat ##ed [P] ."
    assert rows[0]["manual prompt"] == "{sub} [P] ."
    assert str(rows[0]["P@1"]).startswith("100.0 (")
    assert str(rows[0]["manual P@1"]).startswith("0.0 (")
    (task,) = texts.of_tasks(prompts[1:], [own])
    assert task["label tokens"] == "x: good"
    assert "{sub}" not in str(task["prompt"])


@pytest.mark.parametrize(
    ("token", "word"),
    [
        ("\u0120caf\u00c3\u00a9", "caf\u00e9"),  # byte-level BPE, as RoBERTa and SmolLM2 have it
        ("\u00e6\u013f\u00b1", "\u6771"),
        ("\u0120\u00c3", "\u00c3"),  # a part of a character
        ("\u010a", "\u010a"),  # a line end stays one character
        ("\u2581Rom", "Rom"),
        ("caf\u00e9", "caf\u00e9"),  # WordPiece
        ("##\u6771", "##\u6771"),
        ("\u0120the", "the"),
    ],
)
def test_triggers_are_written_out_as_text(token, word):
    assert texts.fill_triggers("{sub} [T] [P] .", [token]) == f"{{sub}} {word} [P] ."


def test_restarts_show_the_gain_from_selection():
    runs = [{"dev": -2.0}, {"dev": -1.0}, {"dev": -3.0}]
    made = list(texts.restarts([prompt_file("P36", restarts=runs)]))
    values = {n.setting["choice"]: n.value for n in made}
    assert values == {"chosen": -1, "mean": -2, "lowest": -3}
    assert {(n.benchmark, n.model, n.prompt, n.n) for n in made} == {
        ("auto_world", "bert-base-cased", "searched", 3)
    }
    assert not list(texts.restarts([prompt_file("P36")]))


def points(**columns):
    rows = {"method": "searched", "size": 10, "draw": 0, "k": 10, "label_tokens": 3, "triggers": 10}
    n = len(next(iter(columns.values())))
    full = {k: columns.get(k, [v] * n) for k, v in {**rows, "value": 0.5, "n": 40}.items()}
    return pl.DataFrame(full, schema=dict(schema.SWEEPS.columns))


def test_figure_2_has_mean_minimum_and_maximum_of_the_subsets():
    frame = points(draw=[0, 1, 2, 0], size=[10, 10, 10, 100], value=[0.5, 0.6, 0.7, 0.8])
    made = list(numbers.low_data("auto_sst2", "m", frame))
    few = the(made, "accuracy", slice="dev", setting={"size": 10})
    assert (few.value, few.n, few.prompt, few.method) == (
        pytest.approx(60), 3, "searched", "low_data",
    )  # fmt: skip
    assert few.interval[:2] == (50, 70)
    (drawing,) = autoprompt_report.drawings(framed(made))
    shown = [(row["at"], row["value"], row["low"], row["high"]) for row in rows_of(drawing.chart)]
    assert shown == [(10, pytest.approx(60), 50, 70), (100, 80, 80, 80)]


def test_figure_3_has_a_cell_for_every_size_of_labels_and_trigger():
    frame = points(triggers=[3, 4, 3], label_tokens=[1, 1, 3], value=[0.5, 0.55, 0.6])
    made = list(numbers.grid("auto_sst2", "m", frame))
    shown = [n for n in made if n.metric == "accuracy"]
    at = {(n.setting["labels"], n.setting["triggers"]): n for n in shown}
    assert at[1, 4].value == pytest.approx(55)
    assert at[3, 3].n == 40
    assert len([*autoprompt_report.drawings(framed(made))]) == 1


@pytest.mark.parametrize("method", ["low_data", "grid"])
def test_a_run_with_only_a_sweep_has_figure_and_headline(method):
    frame = points(triggers=[3, 4], size=[10, 20], value=[0.6, 0.5])
    made = list(getattr(numbers, method)("auto_sst2", "m", frame))
    page = autoprompt_report.section(framed(made), MODELS, {}, "default")
    assert len(page.drawings) == 1
    assert not page.grids
    # the best of the grid, or the most examples: chosen, so no interval
    (chosen,) = [n for n in made if n.metric == "dev accuracy"]
    assert "dev accuracy" in headline.text(framed(made))
    assert (chosen.value, chosen.interval) == (60 if method == "grid" else 50, None)


def test_released_mode_notes_optimism_and_differences():
    made = framed(numbers.low_data("auto_sst2", "m", points(value=[0.6])))
    notes = autoprompt_report.section(made, MODELS, {}, "released", "full").notes
    assert any(note.startswith("Figure 2 is optimistic") for note in notes)
    assert NOT_RELEASED
    assert any(all(point in note for point in NOT_RELEASED) for note in notes)
    plain = autoprompt_report.section(made, MODELS, {}, "default").notes
    assert not any("optimistic" in note or NOT_RELEASED[0] in note for note in plain)


def stored(own, folder, mode="default", **given):
    """Return answers as read from the files of a run, whose settings gave these keys."""
    schema.write(own.examples, schema.EXAMPLES, folder / "examples.parquet")
    schema.write(own.outcomes, schema.OUTCOMES, folder / "o.parquet")
    names = ("benchmark", "prompt", "model", "method")
    row, folders = {n: getattr(own.probe, n) for n in names}, {own.probe.benchmark: folder}
    paths = [folder / "o.parquet"]
    (found,) = numbers.answered([row], MODELS, paths, folders, mode, given=[given])
    return found


@pytest.mark.parametrize(("mode", "mrr"), [("default", 1 / 10_001), ("released", 0)])
def test_the_mode_sets_the_cut_of_reciprocal_ranks(tmp_path, mode, mrr):
    own = two_relations("searched", {"P36": [10_001], "P37": [10_001]}, model="m")
    assert the(numbers.facts(stored(own, tmp_path, mode)), "MRR").value == pytest.approx(100 * mrr)
    # and in the score of a prompt file
    task = tasks.ProbeTask("auto_world", own.examples, [], {})
    scores = search.scores(task, own.outcomes, "P36", metrics.cut_of(mode))
    assert scores["test_mrr"]["value"] == pytest.approx(mrr, abs=1e-6)


def test_the_section_has_our_numbers_and_quotes_the_paper(tmp_path):
    own = [
        two_relations("searched", {"P36": [1], "P37": [2]}, model="c", source="control:masked"),
        two_relations("majority", {"P36": [2], "P37": [2]}),
        classes("auto_sst2", "searched", [1, 2]),
        *sentences(),
    ]
    known = of_rows(schema.TRAINED_ON, [("test0", "P36", "s", "o", True)])
    made = framed(measured(*own, trained_on=known))
    records = {"Table 3: prompts": [{"task": "x"}]}
    page = autoprompt_report.section(made, MODELS, records, "default", remarks=["a note"])
    assert "a note" in page.notes
    titles = [shown.title for shown in page.grids]
    assert titles[:3] == [view.title for view in (views.TABLE1, views.TABLE4, views.TABLE5)]
    quoted = [row for row in page.grids[0].rows if row[0].text == "printed"]
    assert len(quoted) == 10
    assert ["printed", "bilstm+elmo", "supervised"] in [[c.text for c in r[:3]] for r in quoted]
    # printed values of unprobed sets are in no table
    assert not any(row[0].text == "printed" for row in page.grids[1].rows)
    assert autoprompt_report.CONTROLS in page.notes
    section.write(page, tmp_path / "c.json")
    assert section.read(tmp_path / "c.json").grids[0].title == titles[0]


def test_rows_are_in_the_order_of_prompts():
    frame = examples({"P36": {"train": 1, "test": 2}})
    own = [
        answered("auto_world", prompt, frame, {"P36": [1, 2]})
        for prompt in ("searched", "majority", "other", "manual")
    ]
    shown = views.TABLE4.of(autoprompt_report.select_reported(framed(measured(*own))))
    assert [row[2] for row in shown.rows] == ["majority", "manual", "searched", "other"]


def told(size, known):
    """Return TRAINED_ON of test facts, of which those with these numbers were trained on."""
    rows = [(f"test{i}", "P36", f"test{i}", "x", i in known) for i in range(size)]
    return of_rows(schema.TRAINED_ON, rows)


def test_chance_is_the_accuracy_of_the_most_common_answer():
    """Two of four held-out facts have the only training answer: 50 %, the limit is 65."""
    frame = examples({"P36": {"train": 2, "test": 6}}, ["Paris"] * 4 + ["Rome", "Oslo"])
    trained_on = told(6, known=(0, 1))
    asked = answered("auto_world", "manual", frame, {"P36": [1, 1, 1, 1, 2, 2]}, "c", "control:m")
    made = measured(asked, trained_on=trained_on)
    assert (the(made, "held-out").value, the(made, "held-out").n) == (50, 4)
    assert the(made, "chance for held-out").value == pytest.approx(50)
    assert the(made, "limit for held-out").value == pytest.approx(65)
    assert the(made, "valid").value == 1


def test_validity_ignores_rankings_of_other_true_answers():
    """The first of two trained-on facts has another true object, ranked before its gold."""
    frame = examples({"P36": {"train": 1, "test": 4}}, [f"City {i}" for i in range(4)])
    trained_on = told(4, known=(0, 1))
    manual = answered("auto_world", "manual", frame, {"P36": [2, 1, 2, 2]}, "c", "control:m")
    is_first = pl.col("example") == "test0"
    other_is_true = manual.outcomes.with_columns(
        pl.when(is_first).then(pl.lit(1)).otherwise(pl.col(name)).cast(pl.Int32).alias(name)
        for name in ("filtered_best", "filtered_worst")
    )
    made = measured(replace(manual, outcomes=other_is_true), trained_on=trained_on)
    assert the(made, "trained-on").value == 100
    assert the(made, "P@1", slice="trained-on", setting=MICRO).value == 100
    assert the(made, "held-out").value == 0


def test_a_prompt_outside_the_requirement_is_marked_at_every_number():
    """Facts test0 and test2 of ten are trained on; chance: one of twenty tokens, the limit 15 %."""
    frame = examples({"P36": {"train": 1, "test": 10}}, [f"City {i}" for i in range(10)])
    trained_on = told(10, known=(0, 2))
    ranks = {
        "manual": [1, 2, 1, *[2] * 7],  # the trained-on ones alone
        "searched": [1, 1, 1, 1, *[2] * 6],  # two of eight held-out ones, too: 25 %
        "majority": [1] * 10,
        "random_triggers": [2] * 10,
    }
    found = [
        answered("auto_world", prompt, frame, {"P36": own}, "c", "control:m")
        for prompt, own in ranks.items()
    ]
    hub = answered("auto_world", "manual", frame, {"P36": [2]})
    made = measured(*found, hub, trained_on=trained_on)
    # baselines use no model, controls should fail, other models have no training facts
    asked = {(n.model, n.prompt): n.value for n in made if n.metric == "valid"}
    assert asked == {("c", "manual"): 1, ("c", "searched"): 0}
    manual, searched = (
        [n for n in made if (n.model, n.prompt) == ("c", prompt)]
        for prompt in ("manual", "searched")
    )
    assert (the(manual, "trained-on").value, the(manual, "trained-on").n) == (100, 2)
    assert (the(manual, "held-out").value, the(manual, "held-out").n) == (0, 8)
    assert (the(searched, "held-out").value, the(searched, "held-out").n) == (25, 8)
    assert the(searched, "limit for held-out").value == pytest.approx(15)
    assert the(searched, "P@1", slice="held-out", setting=MICRO).value == 25
    runs = {"template": "{sub} [T] [P]", "tokens": ["x"], "restarts": [{"dev": 0.5}]}
    prompt = texts.Prompt("auto_world", "searched", "c", "P36", runs)
    frame = framed([*made, *texts.restarts([prompt])])
    (shown,) = (
        view for view in autoprompt_report.section(frame, MODELS, {}, "default").grids
        if view.title == views.TABLE4.title
    )  # fmt: skip
    for row in shown.rows:
        is_outside = {"c", views.PROMPTS["searched"]} <= {cell.text for cell in row}
        assert all(("(?)" in cell.text) == is_outside for cell in row if cell.hint)
    assert sum("(?)" in cell.text for row in shown.rows for cell in row) > 3
    (row,) = texts.of_relations([prompt], frame, {})
    assert row["P@1"].startswith("40.0 (")
    assert row["P@1"].endswith(" (?)")
    assert row["manual P@1"].endswith("n 10")


def test_demonstrations_are_judged_on_objects_they_do_not_contain():
    """Two samples that each show one object; a shown answer does not count."""
    frame = examples({"P36": {"train": 2, "test": 4}, "P37": {"test": 4}}, ["Rome", "Oslo"])
    first = outcomes(frame, {"P36": [1, 1, 1, 2], "P37": [2, 1]}, "demos:00")
    second = outcomes(frame, {"P36": [2, 1, 1, 1], "P37": [1, 1]}, "demos:01")
    shown = pl.DataFrame(
        [("demos:00", "P36", "Rome"), ("demos:01", "P36", "Oslo"), ("demos:01", "P37", "Oslo")],
        schema=numbers.DEMONSTRATED, orient="row",
    )  # fmt: skip
    own = replace(
        answered("auto_world", "demos", frame, pl.concat([first, second])), demonstrated=shown
    )
    manual = answered("auto_world", "manual", frame, {"P36": [2], "P37": [1, 2]})
    made = measured(own, manual)
    unseen = {"prompt": "demos", "slice": "object not demonstrated"}
    # of P36 (second 0, first 1, second 1, first 0), of P37 (both 1/2, first 1, both 1/2, first 1)
    value = the(made, "P@1", **unseen)
    assert (value.value, value.n) == (pytest.approx(100 * (1 / 2 + 3 / 4) / 2), 8)
    # the manual prompt is right on every other one of P37
    gain = the(made, "P@1", **unseen, setting={"instead": "manual"})
    assert gain.value == pytest.approx(100 * (1 / 2 + 1 / 4) / 2)
    assert the(made, "P@1", prompt="demos", setting={"instead": "manual"}).n == 8
    assert the(made, "majority", **unseen).n == 8


WORDS = {"train": ["Islam", "Islam", "Hinduism"], "dev": ["Islam"],
         "test": ["Hinduism", "Hinduism", "Islam", "Shinto"]}  # fmt: skip


def religion(prompt="searched", ranks=(1, 2, 2, 2), words=None, benchmark="auto_lama", **more):
    """Return a relation whose train and test distributions differ."""
    words = words or WORDS
    frame = examples({"P140": {split: len(own) for split, own in words.items()}})
    labels = [words[r["split"]][int(r["example"].removeprefix(r["split"]))]
              for r in frame.iter_rows(named=True)]  # fmt: skip
    frame = frame.with_columns(pl.Series("label", labels))
    return answered(benchmark, prompt, frame, {"P140": ranks}, **more)


def test_a_relation_has_majority_best_constant_and_shift():
    made = measured(religion())
    common = the(made, "P@1", group="P140", model="majority")
    assert (common.value, common.n) == (25, 4)
    assert the(made, "P@1", group="P140", model="constant").value == 50
    seen = the(made, "test objects seen in train", group="P140")
    assert (seen.value, seen.n) == (pytest.approx(200 / 3), 3)
    # (|2/3 - 1/4| + |1/3 - 1/2| + |0 - 1/4|) / 2
    apart = the(made, "total variation, train to test", group="P140")
    assert (apart.value, apart.n) == (pytest.approx(100 * 5 / 12), 4)
    # without training facts there is no distribution to compare with
    alone = measured(religion(words={**WORDS, "train": []}))
    assert the(alone, "total variation, train to test", group="P140").value is None
    printed = views.RELATIONS[0].where_also(group=["P140"]).of(results.frame("autoprompt", made))
    assert printed.columns[4] == ("P@1", "majority", "")
    assert printed.columns[-1] == ("P@1", "bert-base-cased", "searched")


def test_of_equally_common_labels_each_counts_by_its_chance():
    words = {**WORDS, "train": ["Islam", "Hinduism", "Shinto"]}
    found = numbers.hits(religion(words=words), numbers.MAJORITY)
    assert found["p1"].to_list() == pytest.approx([1 / 3] * 4)


def test_unanswerable_labels_are_left_out_of_the_majority():
    own = religion()
    lost = own.outcomes.join(own.examples, on=["group", "split", "example"])["label"] == "Islam"
    own = replace(
        own,
        outcomes=own.outcomes.with_columns(
            pl.when(pl.Series(lost)).then(None).otherwise(pl.col(name)).alias(name)
            for name in ("best", "worst", "filtered_best", "filtered_worst")
        ),
    )
    found = numbers.hits(own, numbers.MAJORITY)
    assert found["unit"].to_list() == ["test0", "test1", "test3"]
    assert found["p1"].to_list() == [1, 1, 0]


def test_a_label_without_a_rank_only_on_dev_is_left_out_of_the_majority():
    """No test fact has the label, so only the dev facts show that it cannot be an answer."""
    words = {"train": ["Zen Buddhism"] * 3 + ["Islam"] * 2, "dev": ["Zen Buddhism", "Islam"],
             "test": ["Islam", "Islam", "Hinduism"]}  # fmt: skip
    own = religion(words=words)
    options = ["Hinduism", "Islam"]
    own = replace(own, outcomes=ranked.majority(own.examples, options))
    expected = numbers.per_example(own)["p1"].to_list()
    assert expected == [1, 1, 0]
    assert numbers.hits(own, numbers.MAJORITY)["p1"].to_list() == expected


@pytest.mark.parametrize("seed", range(3))
def test_majority_and_constant_equal_the_answering_baselines(seed):
    def drawn(split, n):
        return ["abcd"[hash_key(seed, split, str(i)) % 4] for i in range(n)]

    own = religion(words={s: drawn(s, n) for s, n in (("train", 7), ("dev", 3), ("test", 9))})
    options = sorted(set(own.examples["label"]))
    for name, answer in ((numbers.MAJORITY, ranked.majority), (numbers.BEST, ranked.constant)):
        rows = replace(own, outcomes=answer(own.examples, options))
        for split in ("dev", "test"):
            expected = numbers.per_example(rows, split)
            found = numbers.hits(own, name, split)
            assert found["unit"].to_list() == expected["unit"].to_list()
            assert found["p1"].to_list() == pytest.approx(expected["p1"].to_list())


def test_a_number_below_the_majority_is_marked_in_every_table():
    words = {**WORDS, "train": ["Hinduism"] * 3}
    low, high = religion(words=words), religion("manual", (1, 1, 1, 2), words)
    made = results.frame("autoprompt", [*FIGURES, *measured(low, high)])
    manual = {"auto_lama": {"P140": "{sub} [P] ."}}
    content = {"template": "{sub} [T] [P] .", "tokens": ["faith"]}
    file = texts.Prompt("auto_lama", "searched", "bert-base-cased", "P140", content)
    (row,) = texts.of_relations([file], made, manual)
    assert row["P@1"].startswith("25.0 (")
    assert row["P@1"].endswith(", below majority")
    assert row["majority P@1"].startswith("50.0 (")
    assert row["best constant P@1"].startswith("50.0 (")
    assert not row["manual P@1"].endswith("majority")
    page = autoprompt_report.section(made, MODELS, {}, "default")
    marked = {
        (grid.title, head)
        for grid in page.grids
        for line in grid.rows
        for head, cell in zip(grid.heads, line, strict=True)
        if autoprompt_report.BELOW in cell.text
    }
    assert marked == {
        (views.TABLE4.title, "Original, P@1"),
        (views.RELATIONS[0].title, "P@1, bert-base-cased, AutoPrompt"),
    }
    assert autoprompt_report.BELOW_NOTE in page.notes


def test_a_model_with_fewer_examples_has_a_separate_majority():
    whole = religion("manual", (1, 1, 1, 1))
    part = religion(model="other")
    part = replace(part, outcomes=part.outcomes.filter(pl.col("example").is_in(["test2", "dev0"])))
    made = measured(part, whole)
    assert the(made, "P@1", group="P140", model="majority").value == 25
    assert the(made, "majority", group="P140", model="other").value == 100
    assert the(made, "majority", group="P140", model="bert-base-cased").value == 25
    frame = results.frame("autoprompt", made)
    rows = {
        (r["model"], r["metric"]): r
        for r in frame.filter(results.plain(), group="P140").iter_rows(named=True)
    }
    beating = autoprompt_report.majorities(frame)
    assert rows["other", "P@1"]["value"] == 0
    assert beating(rows["other", "P@1"]) == 100
    assert beating(rows["other", "majority"]) is None
    assert beating(rows["", "test facts"]) is None


def test_a_sample_of_a_relation_s_test_facts_has_no_printed_value(tmp_path):
    for most, printed_value in ((1, None), (99, 0.63), (None, 0.63)):
        found = stored(religion("manual"), tmp_path, most={"test": most}, groups=["P140"])
        kept = found.outcomes.join(found.examples, on=numbers.KEY, how="semi")
        made = measured(replace(found, outcomes=kept))
        assert the(made, "P@1", group="P140", model="bert-base-cased").published == printed_value


def test_the_majority_is_of_the_model_s_training_facts(tmp_path):
    own = religion(words={**WORDS, "train": ["Islam"] * 3 + ["Hinduism"] * 5})
    for most in (1, 2, None):
        found = stored(own, tmp_path, most={"train": most})
        task = frames.part(own.examples, {"most": {"train": most}})
        baseline = ranked.majority(task, sorted(set(own.examples["label"])))
        expected = numbers.per_example(replace(own, outcomes=baseline))["p1"].to_list()
        values = numbers.hits(found, numbers.MAJORITY)["p1"].to_list()
        assert values == pytest.approx(expected), most
        counted = the(numbers.of_benchmark([found]), "search facts", group="P140")
        assert counted.value == (most or 8) + 1


def test_classes_and_sentences_have_majority_baselines_too():
    words = {"train": ["no", "no", "yes"], "dev": ["no", "yes"], "test": ["yes", "yes", "no"]}
    frame = religion(words=words).examples.with_columns(pl.lit("").alias("group"))
    own = answered("auto_sst2", "searched", frame, {"": [1, 2]})
    made = [n for n in measured(own) if n.prompt == "searched"]
    assert the(made, "majority", slice="dev").value == 50
    assert the(made, "majority").value == pytest.approx(100 / 3)
    assert the(made, "best constant").value == pytest.approx(200 / 3)
    apart = the(measured(own), "total variation, train to test")
    assert apart.value == pytest.approx(100 / 3)
    read = religion(benchmark="auto_re")
    # two sentences of one fact count once
    facts = read.examples["fact"].to_list()
    one = ["test0" if fact == "test1" else fact for fact in facts]
    read = replace(read, examples=read.examples.with_columns(pl.Series("fact", one)))
    made = measured(read)
    found = the(made, "majority")
    assert (found.value, found.n) == (pytest.approx(100 / 3), 3)
    assert the(made, "P@1", group="P140", model="majority").n == 3
