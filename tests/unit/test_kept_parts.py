"""Parts that a stopped or finished job leaves behind are taken up by the same code only."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgprobe import schema, sheets
from kgprobe.probes.jobs.autoprompt import search, tasks
from kgprobe.sources.dumps import facts
from tests.unit.test_job import Named

ROOT = Path(__file__).parents[2]
MODEL = {"model": "m", "kind": "masked", "source": "hub:m"}
#: script -> what it calls with the folder of its parts, and its wildcards
CALLED = {"read_dump": (facts, "read", {"dump": "mine"})}


class CalledError(BaseException):
    """Ends a script at the call that the test is about; `job` does not catch it."""


def folder_of(script: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder below `tmp_path/parts` that a script keeps its parts in."""
    called, name, wildcards = CALLED[script]

    def stop(*arguments: Any, **_: Any) -> None:
        raise CalledError(*[a for a in arguments if tmp_path / "parts" in Path(str(a)).parents])

    for place, function in (
        (schema, "read"),
        (sheets, "read_table"),
        (tasks, "load"),
        (search, "prepared"),
    ):
        monkeypatch.setattr(place, function, lambda *_: [])
    monkeypatch.setattr(called, name, stop)
    place = str(tmp_path / "parts")
    params = Named(model=MODEL, settings={"access": "local", "form": "json", "snapshot": "one"})
    params["settings"]["relations"] = []
    params["languages"] = ["en"]
    params |= {"mode": "paper", "seed": 0, "shards": place, "states": place, "data": place}
    names = ("questions", "candidates", "prompts", "examples", "relations", "dump")
    rule = SimpleNamespace(
        rule=script,
        threads=1,
        config={},
        log=[],
        params=Named({**params, "code": code}),
        resources={},
    )
    rule.input, rule.output = Named(dict.fromkeys(names, __file__)), Named(prompts="out")
    rule.input["dump"] = [__file__]
    rule.wildcards = Named(wildcards)
    with pytest.raises(CalledError) as told:
        exec((ROOT / "workflow/scripts" / f"{script}.py").read_text(), {"snakemake": rule})
    (found,) = told.value.args
    return Path(found)


@pytest.mark.parametrize("script", CALLED)
def test_other_code_has_another_folder(script, tmp_path, monkeypatch):
    folders = [folder_of(script, code, tmp_path, monkeypatch) for code in ("aa", "bb", "aa")]
    assert folders[0] == folders[2] != folders[1]


def test_no_rule_keeps_parts_of_its_own():
    rules = "\n".join(p.read_text() for p in (ROOT / "workflow/rules").glob("*.smk"))
    assert "/shards" not in rules
    assert rules.count("kept=") == 2, "the hashes of files, and the answers of models"
