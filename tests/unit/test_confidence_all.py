"""Calibration of OntoProbe and attributes: numbers against loops, tables and plots."""

import itertools
import math
from collections.abc import Mapping

import polars as pl
import pytest

from kgprobe.benchmarks.ontoprobe import modes
from kgprobe.metrics.aggregations import folds
from kgprobe.tables.attributes import section as attribute_section
from kgprobe.tables.attributes import views as attribute_views
from kgprobe.tables.ontoprobe import section, views
from tests.unit.study_frames import drawn as rows_of
from tests.unit.study_frames import number
from tests.unit.test_tables_aggregations_all import (
    SEED,
    TASKS,
    onto,
    onto_numbers,
    ranked_numbers,
    ranked_study,
)

Values = Mapping[tuple[str, int], list[float]]
Golds = Mapping[str, set[int]]


def softmax(values):
    weights = [math.exp(value - max(values)) for value in values]
    return [weight / sum(weights) for weight in weights]


def hit(values: list[float], golds: set[int]) -> float:
    leaders = [i for i, value in enumerate(values) if value == max(values)]
    return len(golds & set(leaders)) / len(leaders)


def literal(answers: Values, golds: Golds, half: Mapping[str, int]) -> dict[str, float]:
    """Return all numbers, in percent except Brier; `half`: item -> selection (0) or test (1)."""
    pairs, brier, bins = {}, {}, {}
    for (item, t), values in answers.items():
        own, probabilities = golds[item], softmax(values)
        others = [i for i in range(len(values)) if i not in own]
        right = [
            1.0 if values[g] > values[w] else 0.5 if values[g] == values[w] else 0.0
            for g, w in itertools.product(own, others)
        ]
        pairs.setdefault(item, []).append(sum(right) / len(right))
        errors = [(p - (i in own) / len(own)) ** 2 for i, p in enumerate(probabilities)]
        brier.setdefault(item, []).append(sum(errors))
        sure = max(probabilities)
        bins.setdefault(math.ceil(10 * sure), []).append((sure, hit(values, own), (item, t)))
    differences = [abs(sum(s - h for s, h, _ in own)) for own in bins.values()]
    sides = [[a for own in bins.values() for a in own if half[a[2][0]] == part] for part in (0, 1)]
    limits = sorted({sure for sure, *_ in sides[0]}, reverse=True)

    def net(side, limit):
        return sum(2 * h - 1 for sure, h, _ in side if sure >= limit)

    best = max([0.0, *(net(sides[0], limit) for limit in limits)])
    paying = [one for one in limits if net(sides[0], one) >= best - 1e-9]
    limit = min(paying) if paying else math.inf
    answered = [(item, h) for sure, h, (item, _) in sides[1] if sure >= limit]
    # items weigh the same for any number of templates; here every item has equally many
    result = {
        "K": 100 * sum(sum(p) / len(p) for p in pairs.values()) / len(pairs),
        "Brier": sum(sum(b) / len(b) for b in brier.values()) / len(brier),
        "ECE": 100 * sum(differences) / len(answers),
        "abstention threshold": 100 * limit if paying else None,
        "answered": 100 * len(answered) / len(sides[1]),
        "right less wrong": 100 * net(sides[1], limit) / len(sides[1]),
        "all answered": 100 * net(sides[1], 0) / len(sides[1]),
    }
    if answered:
        result["accuracy of answered"] = 100 * sum(h for _, h in answered) / len(answered)
    return result


def compare(found: pl.DataFrame, wanted: Mapping[str, float | None], **where: object) -> None:
    for metric, value in wanted.items():
        choice = {"choice": "all"} if metric == "all answered" else {}
        name = "right less wrong" if choice else metric
        value = value if value is None else pytest.approx(value)
        assert number(found, name, **where, **choice)["value"] == value, metric
    assert ("accuracy of answered" in found["metric"]) == ("accuracy of answered" in wanted)


def ontoprobe(tmp_path):
    places, answers, path, beside = onto(tmp_path)
    return onto_numbers(places, path, beside), answers


def test_ontoprobe_probabilities_by_task_and_with_several_golds(tmp_path):
    result, answers = ontoprobe(tmp_path)
    for task in TASKS:
        golds = {f"{task}-{r}": {r % 4} | (set() if r % 3 else {(r + 1) % 4}) for r in range(12)}
        asked = {
            key: [v / 2 / (4 if o == 3 else 1) for o, v in enumerate(values)]
            for key, values in answers.items()
            if key[0] in golds
        }
        names = [f"id{r}" for r in range(12)]
        half = dict(zip(golds, folds(names, SEED, f"{task} abstention", 2), strict=True))
        selected = result.filter(group=task)
        compare(selected, literal(asked, golds, half), group=task, aggregation="answer_mean")
        first = literal(
            asked, {i: {max(g, key=lambda o: asked[i, 1][o])} for i, g in golds.items()}, half
        )
        assert first["K"] != pytest.approx(literal(asked, golds, half)["K"]), "of all golds"
        assert number(selected, "K", group=task, aggregation="prior")["n"] == 12


def test_ontoprobes_table_and_plot(tmp_path):
    result, _ = ontoprobe(tmp_path)
    table = views.CONFIDENCE.of(result)
    assert [(row[0], row[-1]) for row in table.rows] == [
        (task, name) for task in TASKS for name in ("answer_mean", "prior")
    ]
    models = {"m": {"kind": "causal", "source": "hub:m"}}
    page = section.section(result, [], {}, "paper", modes.Switches(), models)
    assert "Calibration of the option probabilities" in [one.title for one in page.folded]
    (plot,) = [one for one in page.drawings if one.name == "ontoprobe_reliability"]
    points = [row for row in rows_of(plot.chart) if "n" in row]
    selected = result.filter(aggregation="answer_mean", metric="mean confidence")
    assert sorted(row["sure"] for row in points) == sorted(selected["value"].to_list()) != []
    assert [panel["title"] for panel in plot.chart["concat"]] == list(TASKS)


def test_attributes_probabilities_table_and_plot(tmp_path):
    study, files, rows = ranked_study(tmp_path)
    result = ranked_numbers(study, files, tmp_path)
    items = study.benchmarks["symmetry"].items.sort("item")
    golds = {item: {own[0]} for item, own in items.select("item", "answers").rows()}
    half = {}
    for relation in items["relation"].unique():
        who = items.filter(relation=relation)
        names = [s or subject for s, subject in who.select("subject_id", "subject").rows()]
        places = folds(names, study.seed, f"{relation} abstention", 2)
        half |= dict(zip(who["item"], map(int, places), strict=True))
    asked = {
        (item, t): own["sum"].to_list()
        for (item, t), own in rows.sort("candidate").group_by("item", "template")
    }
    wanted = literal(asked, golds, half)
    compare(result, wanted, aggregation="sum", benchmark="symmetry")
    (view,) = (view for view in attribute_views.FOLDED if view.name == "confidence")
    assert view.of(result).rows[0][-1] == "sum"
    (who,) = files
    (plot,) = attribute_section.drawings(result, [who], {})
    assert plot.name == "attributes_reliability"
    assert len([row for row in rows_of(plot.chart) if "n" in row]) > 1


def test_no_plot_for_models_outside_the_experiment(tmp_path):
    result, _ = ontoprobe(tmp_path)
    page = section.section(result, [], {}, "paper", modes.Switches())
    assert not [one for one in page.drawings if "reliability" in one.name]
