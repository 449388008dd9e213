"""Parts that a stopped or finished job leaves behind are taken up by the same code only."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgprobe import schema, sheets
from kgprobe.probes.jobs import fill, score
from kgprobe.probes.jobs.autoprompt import search, sweep, tasks
from kgprobe.sources.dumps import facts
from tests.unit.test_job import Named

ROOT = Path(__file__).parents[2]
MODEL = {"model": "m", "kind": "masked", "source": "hub:m"}
#: script -> what it calls with the folder of its parts, and its wildcards
CALLED = {
    "score": (score, "score_frame", {"method": "sentence"}),
    "search_prompts": (search, "search_task", {"searched": "searched"}),
    "sweep": (sweep, "low_data", {"sweep": "low_data", "prompt": "searched"}),
    "read_dump": (facts, "read", {"dump": "mine"}),
}


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
        rule=script, threads=1, config={}, log=[], params=Named({**params, "code": code})
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


def test_no_other_rule_keeps_parts():
    rules = "\n".join(p.read_text() for p in (ROOT / "workflow/rules").glob("*.smk"))
    found = set()
    for block in re.split(r"^ *rule\b", rules, flags=re.MULTILINE)[1:]:
        if "/shards/" in block:
            found |= set(re.findall(r"scripts/(\w+)\.py", block))
    assert found == set(CALLED) - {"read_dump"} | {"fill"}


class Flat(Named):
    """Inputs that are lists: Snakemake's own are walked flat."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        return (path for paths in self.values() for path in paths)


def fill_rule(tmp_path: Path, code: str) -> SimpleNamespace:
    """Rule `fill` over three benchmarks."""
    rule = SimpleNamespace(rule="fill", threads=1, config={"api": {"workers": 1}}, log=[])
    asked = [(f"b{i}", "p") for i in range(3)]
    rule.params = Named(shards=str(tmp_path / "parts"), settings={"k": 1}, seed=0, code=code)
    rule.params |= {"model": MODEL, "asked": asked, "few": [0] * 3}
    rule.input = Flat(weights=[])
    for kind in ("questions", "candidates", "prompts"):
        rule.input[kind] = [str(tmp_path / f"{kind}{i}") for i in range(3)]
        for path in rule.input[kind]:
            Path(path).write_text(path[-1])
    rule.output = Named(
        {kind: [str(tmp_path / f"{i}.{kind}") for i in range(3)] for kind in ("golds", "fills")}
    )
    rule.wildcards = Named()
    return rule


@pytest.mark.parametrize(("code", "later"), [("aa", [1, 2]), ("bb", [0, 1, 2])])
def test_filled_benchmarks_are_taken_up_by_the_same_code(code, later, tmp_path, monkeypatch):
    calls: list[int] = []

    def read(path: str, _: schema.Contract) -> str:
        return Path(path).name

    def fill_frame(*arguments: Any) -> tuple[str, str, dict[str, Any]]:
        calls.append(int(arguments[1][-1]))
        if len(calls) == 2:
            raise CalledError
        return "fills", "golds", {"parameters": 1}

    def write(frame: str, _: schema.Contract, path: Path, told: dict[str, Any]) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(told))

    monkeypatch.setattr(schema, "read", read)
    monkeypatch.setattr(schema, "write", write)
    monkeypatch.setattr(schema, "provenance", lambda path: json.loads(path.read_text()))
    monkeypatch.setattr(fill, "answerer", lambda *_: "model")
    monkeypatch.setattr(fill, "fill_frame", fill_frame)
    script = (ROOT / "workflow/scripts/fill.py").read_text()
    with pytest.raises(CalledError):
        exec(script, {"snakemake": fill_rule(tmp_path, "aa")})
    assert calls == [0, 1]
    assert not list(tmp_path.glob("*.fills"))
    rule = fill_rule(tmp_path, code)
    exec(script, {"snakemake": rule})
    assert calls[2:] == later
    made = [json.loads(Path(path).read_text()) for path in rule.output["fills"]]
    assert [m["wildcards"]["benchmark"] for m in made] == ["b0", "b1", "b2"]
    assert {m["code"] for m in made} == {code}
    assert all(Path(path).is_file() for path in rule.output["golds"])
    assert not (tmp_path / "parts").exists()
