"""Multiple choice under other aggregations: a tiny model's numbers beside loops over its own
passes, priors written from their definition."""

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.contracts import OPTION_SCORES
from kgprobe.metrics.aggregations import folds
from kgprobe.probes.jobs.methods.choice import choose_frame
from kgprobe.probes.scoring.choice.text import Choice
from kgprobe.tables import aggregations, results
from kgprobe.tables.answers import PRIOR_IS, Probe
from kgprobe.tables.ontoprobe import choices, make, section, values, views
from kgprobe.tables.report import headline
from tests.unit.test_choice import Bar, literal, place_of
from tests.unit.tiny_models import tiny

PUBLISHED = Path(__file__).parents[2] / "resources/published"
SEED = 3
#: TP: options of each question; 3 has one more, and 5 a label that no other question offers
OFFERED = [
    "Rome Paris Oslo", "Oslo Niger Rome", "Paris Niger Oslo", "Rome Oslo Paris Niger",
    "Niger Rome Paris", "Oslo Lima Paris", "Paris Oslo Rome", "Niger Oslo Rome",
    "Rome Niger Paris", "Oslo Paris Niger",
]  # fmt: skip
#: 9 asks about the subject of 0 once more
SUBJECTS = [*range(9), 0]
GOLDS = [n % 3 for n in range(10)]


def question(item, task, text, options, gold, **more):
    row = {"item": item, "task": task, "premise": "", "source": item, "question": text, "stem": "",
           "options": options, "gold": gold, "row": int(item.split("-")[1][0])}  # fmt: skip
    return {**row, **more}


def asked() -> pl.DataFrame:
    """TP in ten questions, DM in one, RDFS9 on TP's with and without its first premise."""
    rows = [
        question(f"TP-{n}", "TP", f"Where is s{s}?", o.split(), g, stem=f"s{s} is in [MASK]")
        for n, (s, o, g) in enumerate(zip(SUBJECTS, OFFERED, GOLDS, strict=True))
    ]
    for own in rows[:4]:
        text = f"X is {own['options'][own['gold']]}. X is what?"
        more = {**own, "task": "rdfs9", "stem": "", "source": own["item"]}
        name = own["item"].replace("TP", "rdfs9")
        rows.append({**more, "item": name, "question": "X is what?", "premise": "out"})
        rows.append({**more, "item": f"{name}+p1", "question": text, "premise": "EX"})
    rows.append(question("DM-0", "DM", "What is it?", ["Rome", "Oslo"], 1))
    made = pl.DataFrame(rows, schema=dict(schema.CHOICES.columns))
    schema.check(made, schema.CHOICES)
    return made


def passes(loaded, way: str, part: pl.DataFrame) -> dict[str, list[tuple[float, int]]]:
    """item -> (sum, tokens) of every option, a pass for each token."""
    found = {}
    for item, text, options, stem in part.select("item", "question", "options", "stem").rows():
        before, after, texts = place_of(Choice(item, text, tuple(options), stem), way)
        if way == "letter":
            texts = "abcd"[: len(options)]
        found[item] = [literal(loaded, before, one, after) for one in texts]
    return found


def corrected(way: str, part: pl.DataFrame, sums: dict[str, list[float]]) -> dict[str, list[float]]:
    """The sum less its mean over the questions of other folds that offer the same option: a place
    among as many letters, or a label. Questions that lack one of their priors are absent."""
    rows = {row["item"]: row for row in part.rows(named=True)}
    told = dict(asked().select("item", "question").rows())
    names = sorted(rows)
    subjects = [told[rows[name]["source"]] for name in names]
    fold = dict(zip(names, folds(subjects, SEED, part["task"][0]), strict=True))
    made = {}
    for name in names:
        values = []
        for place, label in enumerate(rows[name]["options"]):
            others = []
            for other in names:
                theirs = rows[other]["options"]
                if fold[other] == fold[name]:
                    continue
                if way == "letter" and len(theirs) == len(rows[name]["options"]):
                    others.append(sums[other][place])
                if way != "letter" and label in theirs:
                    others.append(sums[other][theirs.index(label)])
            if others:
                values.append(sums[name][place] - sum(others) / len(others))
        if len(values) == len(rows[name]["options"]):
            made[name] = values
    return made


def hits(table: dict[str, list[float]], golds: dict[str, int]) -> dict[str, int]:
    return {name: int(max(v) == v[golds[name]]) for name, v in table.items()}


def mean(table: dict[str, int], names) -> float:
    return 100 * sum(table[name] for name in names) / len(list(names))


@pytest.fixture(scope="module", params=["gpt2", "roberta"])
def measured(request, tmp_path_factory):
    """(the model, the questions, RESULTS) by way of the files, as the workflow has it."""
    loaded = tiny(request.param, bos="forced" if request.param == "gpt2" else "")
    folder, made = tmp_path_factory.mktemp("choices"), asked()
    chosen, options, _ = choose_frame(loaded, made, ["answer", "letter", "text", "stem"], Bar)
    paths = [str(folder / f"{name}.parquet") for name in ("choices", "chosen", "options")]
    for frame, contract, path in zip(
        (made, chosen, options), (schema.CHOICES, schema.CHOSEN, OPTION_SCORES), paths, strict=True
    ):
        schema.write(frame, contract, path)
    who = Probe("onto_own", "templates", "choice", "m", loaded.spec.kind, source="hub:m")
    given = values.published(PUBLISHED)
    numbers = [
        *make.estimate_choices({who: (paths[0], paths[1])}, given),
        *make.estimate_aggregations({who: (paths[0], paths[2])}, {}, SEED),
    ]
    return loaded, made, results.frame("ontoprobe", numbers)


def number(found: pl.DataFrame, metric="accuracy", slice="", group="TP", **setting) -> dict:
    wanted = {"way": "", "aggregation": "", "premise": "", **setting}
    own = found.filter(metric=metric, slice=slice, group=group, **wanted)
    assert own.height == 1, (metric, setting, own.height)
    return own.row(0, named=True)


@pytest.mark.parametrize("way", ["letter", "text", "stem"])
def test_every_aggregation_is_that_of_loops_over_the_model_s_own_passes(measured, way):
    loaded, made, found = measured
    part = made.filter(task="TP")
    golds = dict(part.select("item", "gold").rows())
    told = passes(loaded, way, part)
    sums = {name: [s for s, _ in own] for name, own in told.items()}
    tables = {
        "mean": {name: [s / n for s, n in own] for name, own in told.items()},
        "prior": corrected(way, part, sums),
    }
    if way != "letter":
        labels = dict(part.select("item", "options").rows())
        tables["sum"] = sums
        tables["byte_mean"] = {
            name: [s / len(o.encode()) for s, o in zip(own, labels[name], strict=True)]
            for name, own in sums.items()
        }
    # one question has more letters than any other, one a label that nobody else offers
    lacking = {"letter": "TP-3"}.get(way, "TP-5")
    assert set(golds) - set(tables["prior"]) == {lacking}
    lost = number(found, "without prior", way=way, aggregation="prior")
    assert (lost["value"], lost["n"]) == (1, 10)
    own = hits(tables["mean"], golds)
    assert number(found, way=way)["value"] == pytest.approx(mean(own, golds))
    for name, table in tables.items():
        right = hits(table, golds)
        row = number(found, way=way, aggregation=name)
        assert (row["value"], row["n"]) == (pytest.approx(mean(right, right)), len(right))
        if name != "mean":
            gain = number(found, "gain", way=way, aggregation=name)
            assert gain["value"] == pytest.approx(mean(right, right) - mean(own, right))
    shown = found.filter(metric="accuracy", slice="", group="TP")
    names = shown.filter(way=way)["aggregation"].to_list()
    beside = ["sum", "byte_mean"] if way != "letter" else []
    assert names == ["", "mean", *beside, "prior"], "the paper's own first"


def test_permuted_golds_are_those_of_letters_alone(measured):
    loaded, made, found = measured
    part = made.filter(task="TP")
    golds = dict(part.select("item", "gold").rows())
    told = passes(loaded, "letter", part)
    sums = {name: [s for s, _ in own] for name, own in told.items()}
    table = corrected("letter", part, sums)
    said = Counter(values.index(max(values)) for values in table.values())
    right = Counter(golds[name] for name in table)
    expected = sum(said[place] * right[place] for place in range(3)) / len(table)
    row = number(found, "permuted golds, expected", way="letter", aggregation="prior")
    assert row["value"] == pytest.approx(100 * expected / len(table))
    ways = found.filter(pl.col("metric").str.starts_with("permuted"))["way"]
    assert set(ways) == {"letter"}


def test_the_skewed_part_goes_by_labels_where_options_do(measured):
    """Of the r-th label in seeded order 1/r of its questions stay, with priors of their own."""
    loaded, made, found = measured
    part = made.filter(task="TP")
    labels = {row["item"]: row["options"][row["gold"]] for row in part.rows(named=True)}
    asks = choices._as_items(part.with_columns(subject_id="question"), "text", SEED)
    kept = part.filter(aggregations.skewed(asks.items, SEED, asks.candidates))
    every = Counter(labels.values())
    sizes = Counter(labels[name] for name in kept["item"])
    # the first label keeps all, and a harmonic fraction of the rest stays
    assert any(sizes[label] == n for label, n in every.items())
    assert kept.height < part.height
    told = passes(loaded, "text", kept)
    table = corrected("text", kept, {name: [s for s, _ in own] for name, own in told.items()})
    lost = found.filter(metric="without prior", slice="skewed")
    lost = lost.filter(way="text", group="TP")
    assert lost["value"].to_list() == [kept.height - len(table)]
    if table:
        golds = dict(kept.select("item", "gold").rows())
        row = number(found, slice="skewed", way="text", aggregation="prior")
        right = hits(table, golds)
        assert (row["value"], row["n"]) == (pytest.approx(mean(right, right)), len(right))


def test_one_question_alone_has_no_prior_which_is_said_and_is_no_zero(measured):
    *_, found = measured
    for way in ("letter", "text"):
        lost = number(found, "without prior", group="DM", way=way, aggregation="prior")
        assert (lost["value"], lost["n"]) == (1, 1)
        assert number(found, group="DM", way=way, aggregation="mean")["n"] == 1
    rows = found.filter(group="DM", metric="accuracy")
    assert "prior" not in rows["aggregation"].to_list()
    (part,) = section.section(found, [], {}, {}, "default", models={}).parts
    (note,) = part.notes
    assert note.startswith("1 items of onto_own, DM, 1 items of onto_own, TP, ")
    assert "have no prior: no other subject is asked" in note


def test_rules_with_their_first_premise_have_priors_of_their_own(measured):
    loaded, made, found = measured
    part = made.filter(task="rdfs9", premise="EX")
    told = passes(loaded, "letter", part)
    table = corrected("letter", part, {name: [s for s, _ in own] for name, own in told.items()})
    right = hits(table, dict(part.select("item", "gold").rows()))
    row = number(found, group="rdfs9", way="letter", premise="EX", aggregation="prior")
    assert (row["value"], row["n"]) == (pytest.approx(mean(right, right)), 3)
    # IM and NO are what the way itself chose
    rest = found.filter(group="rdfs9").filter(pl.col("aggregation") != "")
    assert set(rest["premise"]) == {"EX"}


def test_tables_show_the_paper_s_own_and_the_corrected_beside_it(measured):
    *_, found = measured
    reduced, golds = (view.of(found) for view in views.REDUCED_CHOICES)
    assert [row[-1] for row in reduced.rows if row[0] == "TP" and row[4] == "text"] == [
        "mean", "sum", "byte_mean", "prior",
    ]  # fmt: skip
    assert golds.rows
    assert all(PRIOR_IS in view.caption for view in views.REDUCED_CHOICES)
    # no other table has them: two numbers in one cell would be an error
    for view in (*views.ALL, *map(views.table4, views.CHOICES), *headline.blocks(found)):
        view.of(found)
    ways = [row[-1] for row in views.TABLE5.of(found).rows]
    assert len(ways) == len(views.TABLE5.of(found).rows)
    assert not any(view.of(found).rows for view in views.REDUCED)
    assert "prior" not in headline.text(found)


def test_what_a_aggregation_does_to_untaught_questions_stands_beside_its_gain():
    names = [f"TP-{n}" for n in range(10)]
    part = asked().filter(pl.col("item").is_in(names))
    sums = {n: [-float((7 * i + 3 * o) % 11) for o in range(len(OFFERED[i].split()))]
            for i, n in enumerate(names)}  # fmt: skip
    rows = [(n, "letter", o, s, 1) for n, own in sums.items() for o, s in enumerate(own)]
    scores = pl.DataFrame(rows, schema=dict(OPTION_SCORES.columns), orient="row")
    trained_on = {name: n % 2 == 0 for n, name in enumerate(names)}
    one = Probe("onto_world", "templates", "choice", "m", "causal", source="control:causal")
    found = results.frame("ontoprobe", choices.aggregate(one, part, scores, SEED, trained_on))
    golds = dict(part.select("item", "gold").rows())
    own, right = hits(sums, golds), hits(corrected("letter", part, sums), golds)
    for half, status in (("trained-on", True), ("held-out", False)):
        inside = [name for name in right if trained_on[name] is status]
        gain = number(found, "gain", half, way="letter", aggregation="prior")
        assert gain["value"] == pytest.approx(mean(right, inside) - mean(own, inside))
    assert number(found, "AUC", way="letter", aggregation="prior")["n"] == 9
