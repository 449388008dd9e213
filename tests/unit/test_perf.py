"""`make bench` fails where a row misses the target that is written beside it."""

import pytest

from perf import run


def row(**values):
    return {"name": "a", "ours": 5, "peer": 1, "unit": "s", "ratio": 2.0, "target": ""} | values


@pytest.mark.parametrize(
    ("target", "is_missed"),
    [("", False), (2.0, False), (2, False), (2.01, True), ("<= 5", False), ("<= 4.9", True)],
)
def test_a_target_is_the_least_ratio_or_the_most_of_ours(target, is_missed):
    assert run.missed(row(target=target)) == is_missed


def test_a_target_that_says_nothing_is_an_error():
    with pytest.raises(ValueError, match="a: target '= 3'; legal: a number, '<= number', ''"):
        run.missed(row(target="= 3"))


def test_what_misses_is_named_and_fails_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(
        run.subprocess, "run", lambda command: run.subprocess.CompletedProcess(command, 0)
    )
    for rows, code in (([row(target=3)], 1), ([row(target=1), row(target="<= 9")], 0)):
        (tmp_path / "cloze.json").write_text(run.json.dumps(rows))
        assert run.main(["cloze"]) == code
    assert capsys.readouterr().err.strip() == "a: target 3 missed"


def test_every_measurement_is_found():
    assert {"scoring", "cloze", "fill", "autoprompt", "attributes"} <= set(run.names())
    assert not {"run", "equality"} & set(run.names())
