"""Content-addressed answers: a changed template reruns only its own questions."""

import errno
import subprocess
import sys
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.job import job
from kgprobe.probes.jobs import stage
from kgprobe.probes.jobs.kept import Kept, merge_records
from kgprobe.probes.jobs.methods import cloze as rank_job
from kgprobe.probes.jobs.methods import fill as fill_job
from kgprobe.probes.models import batching
from kgprobe.probes.models.journal import Journal
from kgprobe.probes.models.load import ModelSpec
from kgprobe.probes.scoring.sentence import score as sentences
from kgprobe.settings.probes import Api
from kgprobe.templates import NO_SUBJECTS
from tests.unit.test_fills import CANDIDATES, ITEMS, PROMPTS
from tests.unit.test_job import Named
from tests.unit.tiny_models import save, tiny

OTHER = ITEMS.with_columns(pl.lit("P31").alias("relation"), pl.col("item") + "2")
MADE = {
    "sentence": ["scores"],
    "fill": ["fills", "golds"],
    "cloze": ["ranks", "top"],
    "content_free": ["content_free"],
}
SETTINGS: dict[str, dict[str, Any]] = {
    "sentence": {"method": "sentence"},
    "fill": {"fill": {"k": 3, "most_tokens": 0, "strategy": "parallel"}, "few": 0, "seed": 0},
    "cloze": {"candidate_space": "auto", "unknown_candidates": "keep"},
    "content_free": {"method": "content_free"},
}


class Project:
    """A benchmark of two relations with two templates each, a tiny model, a folder for answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        save(tiny("bert", double=False), folder / "bert")
        self.model = {"model": "m", "kind": "masked", "source": f"folder:{folder / 'bert'}"}
        self.prompts = pl.concat(
            [PROMPTS, PROMPTS.with_columns(pl.lit("P31").alias("relation"), pl.col("prompt") + "2")]
        )

    def run(
        self, methods: dict[str, str], name: str = "run", threads: int = 1, **wrong: str
    ) -> SimpleNamespace:
        """Answer all questions of methods (-> code hash); `wrong`: method -> another items file."""
        place = self.folder / name
        tables = {
            "questions": (pl.concat([ITEMS, OTHER]), schema.ITEMS),
            "candidates": (CANDIDATES, schema.CANDIDATES),
            "prompts": (self.prompts, schema.PROMPTS),
        }
        files = {table: str(place / f"{table}.parquet") for table in tables}
        for table, (frame, contract) in tables.items():
            # the provenance of a table is not part of the question
            schema.write(frame.cast(dict(contract.columns)), contract, files[table], {"run": name})
        parts = [
            {
                "method": method, "benchmark": "b", "prompt": "templates",
                "input": files | ({"questions": wrong[method]} if method in wrong else {}),
                "output": {n: str(place / f"{method}.{n}.parquet") for n in MADE[method]},
                "settings": SETTINGS[method],
            }
            for method in methods
        ]  # fmt: skip
        params = Named(
            model=self.model, asked=parts, code=methods, kept=str(self.folder / "answers")
        )
        rule = SimpleNamespace(
            rule="probes_m", threads=threads, config={"api": {}}, log=[], params=params,
            resources={},
        )  # fmt: skip
        rule.input = Named({**files, **wrong})
        rule.output, rule.wildcards = Named(), Named()
        with job(rule) as run:
            stage.ask(run)
        return SimpleNamespace(
            **{
                f"{method}_{n}": pl.read_parquet(place / f"{method}.{n}.parquet")
                for method in methods
                for n in MADE[method]
            },
            told=schema.provenance(parts[0]["output"][MADE[parts[0]["method"]][0]]),
        )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[tuple[str, int]]]:
    """Map methods to the (item, template) pairs that reached a model since the last clear."""
    result: dict[str, set[tuple[str, int]]] = {}

    def watch(place: Any, name: str, method: str, pairs: Any) -> None:
        known = getattr(place, name)

        def called(*arguments: Any, **options: Any) -> Any:
            result.setdefault(method, set()).update(pairs(arguments))
            return known(*arguments, **options)

        monkeypatch.setattr(place, name, called)

    watch(fill_job.predict, "predict", "fill", lambda a: {(b.item, b.template) for b in a[1]})
    watch(rank_job.rank, "rank", "cloze", lambda a: {(q.item, q.template) for q in a[1]})
    watch(
        sentences, "score", "sentence",
        lambda a: {(i.item, t) for i in a[1] for t, _ in a[3][i.relation]},
    )  # fmt: skip
    return result


METHODS = {"sentence": "s1", "fill": "f1", "cloze": "c1"}
ALL = {(item, index) for item in ("a", "b", "a2", "b2") for index in (0, 3)}


def changed(project: Project) -> None:
    """Change the text of one template of one relation."""
    is_one = (pl.col("relation") == "P31") & (pl.col("index") == 3)
    text = pl.when(is_one).then(pl.lit("[Y] , capital of [X] .")).otherwise(pl.col("text"))
    project.prompts = project.prompts.with_columns(text.alias("text"))


def test_changed_template_reruns_only_its_questions(tmp_path, asked):
    project = Project(tmp_path)
    first = project.run(METHODS)
    assert asked == dict.fromkeys(METHODS, ALL)
    asked.clear()
    again = project.run(METHODS, "again")
    assert asked == {}
    assert again.told["inputs"].keys() != first.told["inputs"].keys(), "of its own run"
    assert again.told["model"] == first.told["model"]
    assert again.told["code"] == "s1"
    changed(project)
    third = project.run(METHODS, "third")
    assert asked == {method: {("a2", 3), ("b2", 3)} for method in METHODS}
    asked.clear()
    project.folder.joinpath("answers").rename(tmp_path / "away")
    fresh = project.run(METHODS, "fresh")
    assert asked == dict.fromkeys(METHODS, ALL)
    other = (pl.col("item").str.ends_with("2")) & (pl.col("template") == 3)
    for method, names in ((method, MADE[method]) for method in METHODS):
        for name in names:
            one, same, mixed, whole = (
                getattr(run, f"{method}_{name}") for run in (first, again, third, fresh)
            )
            assert one.equals(same)
            assert mixed.filter(~other).equals(one.filter(~other))
            keys = [c for c, dtype in whole.schema.items() if dtype != pl.Float64]
            assert mixed.select(keys).equals(whole.select(keys))
            numbers = [c for c in whole.columns if c not in keys]
            for number in numbers:
                assert (mixed[number] - whole[number]).fill_null(0).abs().max() < 1e-4


def test_changed_method_code_reruns_that_method(tmp_path, asked):
    project = Project(tmp_path)
    project.run(METHODS)
    asked.clear()
    project.run({**METHODS, "cloze": "c2"}, "again")
    assert asked == {"cloze": ALL}


def test_another_model_with_the_same_name_is_rerun(tmp_path, asked):
    project = Project(tmp_path)
    project.run({"fill": "f"})
    asked.clear()
    loaded = tiny("bert", double=False)
    loaded.model.get_input_embeddings().weight.data[7] += 1
    loaded.model.save_pretrained(tmp_path / "bert")
    project.run({"fill": "f"}, "again")
    assert asked == {"fill": ALL}


def files(folder: Path) -> dict[str, bytes]:
    """Return the answers of a run as bytes."""
    return {path.name: path.read_bytes() for path in folder.glob("*.*.parquet")}


def test_processes_and_threads_give_identical_bytes(tmp_path, asked, capsys):
    """Each process uses one thread; the job only loads what processes have stored."""
    project = Project(tmp_path)
    methods = {"fill": "f1", "sentence": "s1", "cloze": "c1", "content_free": "t1"}
    project.run(methods)
    alone = files(tmp_path / "run")
    assert len(alone) == 6
    assert asked.keys() == {"fill", "sentence", "cloze"}
    asked.clear()
    tmp_path.joinpath("answers").rename(tmp_path / "away")
    capsys.readouterr()
    project.run(methods, threads=2)
    assert files(tmp_path / "run") == alone
    assert "process" in capsys.readouterr().err
    # finished shards are joined in the job
    assert asked.keys() == {"sentence"}
    assert not list(tmp_path.glob("answers/*/unfinished"))
    # stored answers need no process
    project.run(methods, threads=2)
    assert files(tmp_path / "run") == alone
    assert "process" not in capsys.readouterr().err


@pytest.mark.parametrize("threads", [1, 2])
def test_failures_are_reported_once_and_others_finish(tmp_path, capsys, monkeypatch, threads):
    project = Project(tmp_path)
    wrong = {**SETTINGS["fill"], "fill": {**SETTINGS["fill"]["fill"], "length": "free"}}
    monkeypatch.setitem(SETTINGS, "fill", wrong)
    (tmp_path / "broken.parquet").write_text("no table")
    with pytest.raises(SystemExit):
        project.run(
            {"fill": "f1", "sentence": "s1", "cloze": "c1", "content_free": "t1"},
            threads=threads,
            sentence=str(tmp_path / "broken.parquet"),
        )
    shown = capsys.readouterr().err
    assert "2 of 4 parts failed" in shown
    assert "sentence of b, prompt templates: ContractError" in shown
    assert "broken.parquet" in shown
    assert "fill of b, prompt templates: ValueError: " in shown
    assert shown.count("fill of b, prompt templates: begins") == 1, "it is not tried again"
    assert files(tmp_path / "run").keys() == {
        "cloze.ranks.parquet",
        "cloze.top.parquet",
        "content_free.content_free.parquet",
    }


def test_long_tasks_start_first(monkeypatch):
    """A long last task would leave the other processes idle."""
    begun = []
    methods = ("fill", "predict", "baseline-fill", "choice", "sentence")
    parts = [SimpleNamespace(method=m, spec=SimpleNamespace(model="m"), module=m) for m in methods]
    parts[-1].module = SimpleNamespace(share=None)
    monkeypatch.setattr(stage, "_lacks", lambda part: part.method != "choice")
    monkeypatch.setattr(stage.workers, "run", lambda work, given, *_: begun.append(given[1:3]))
    assert stage.run_processes(parts, ("arguments",), 2) == {}
    assert begun == [([4], [1, 0, 2])]


def kept(folder: Path, units: set[str]) -> None:
    store = Kept(folder, "context")
    store.keep(units, store.new(), {"of": sorted(units), "kind": "x"})


def test_answers_from_one_run_come_first_and_unfinished_ones_never(tmp_path):
    kept(tmp_path, {"a"})
    kept(tmp_path, {"b", "c"})
    kept(tmp_path, {"a", "b", "d"})
    kept(tmp_path, {"a", "b"})
    store = Kept(tmp_path, "context")
    (store.new() / "half.parquet").write_text("")
    groups, missing = store.find({"a", "b"})
    assert [sorted(g.units) for g in groups] == [["a", "b"]]
    assert groups[0].is_whole
    assert missing == set()
    groups, missing = store.find({"b", "c", "d", "e"})
    assert missing == {"e"}
    assert sorted(unit for g in groups for unit in g.units) == ["b", "c", "d"]
    assert Kept(tmp_path, "other").find({"a"}) == ([], {"a"})


def test_answers_stored_by_another_run_meanwhile_stay_and_unnamed_ones_are_not_read(tmp_path):
    store = Kept(tmp_path, "context")
    mine, other = store.new(), store.folder / ".0.part"
    other.mkdir()
    (other / "answers.parquet").write_text("theirs")
    (mine / "answers.parquet").write_text("mine")
    (mine / "record.json").write_text('{"units": ["a"], "record": {}}')
    assert store.find({"a"}) == ([], {"a"})
    theirs = store.keep({"a"}, other, {"of": "theirs"})
    group = store.keep({"a"}, mine, {"of": "mine"})
    assert (group.folder, dict(group.record)) == (theirs.folder, {"of": "theirs"})
    assert (group.folder / "answers.parquet").read_text() == "theirs"


def test_a_full_disk_is_reported_with_the_record_and_the_remedy(tmp_path, monkeypatch):
    def write(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    store = Kept(tmp_path, "context")
    made = store.new()
    monkeypatch.setattr(Path, "write_text", write)
    with pytest.raises(OSError, match=r"make room and run again.*record\.json'$"):
        store.keep({"a"}, made, {})


@pytest.mark.parametrize("damaged", ["record.json", "scores.parquet"])
def test_a_damaged_file_of_stored_answers_is_named_with_the_remedy(tmp_path, capsys, damaged):
    """The store is shared by all runs, so that one empty file stopped each of them."""
    project = Project(tmp_path)
    project.run({"sentence": "1"})
    (path,) = (tmp_path / "answers").glob(f"*/[!.]*/{damaged}")
    path.write_bytes(b"")
    with pytest.raises(SystemExit):
        project.run({"sentence": "1"}, "again")
    told = capsys.readouterr().err
    assert f"{path}: damaged (" in told
    assert f"; remove {path.parent}, whose answers are then computed again" in told


@pytest.mark.parametrize("text", ["[]", '"a"', "[1]", "{}", '{"units": ["a"]}', '{"units": 1}',
                                  '{"units": ["a"], "record": []}'])  # fmt: skip
def test_a_record_of_stored_answers_with_other_json_is_named_with_the_remedy(tmp_path, text):
    store = Kept(tmp_path, "context")
    path = store.folder / "0" / "record.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ValueError, match=r"damaged \(.*\); remove") as caught:
        store.find({"a"})
    assert f"{path}: damaged (" in str(caught.value)
    assert f"; remove {path.parent}, whose" in str(caught.value)


def test_another_configuration_of_a_folder_is_another_model(tmp_path):
    spec = ModelSpec(**Project(tmp_path).model)
    before = stage.identity(spec, Api())
    path = tmp_path / "bert/config.json"
    path.write_text(path.read_text().replace('"layer_norm_eps": ', '"layer_norm_eps": 1'))
    changed = stage.identity(spec, Api())
    assert changed != before
    (tmp_path / "bert/chat_template.jinja").write_text("{{ messages[0].content }}")
    assert stage.identity(spec, Api()) != changed


def test_answers_depend_on_the_versions_of_all_libraries_also_of_those_not_yet_imported():
    """A job imports tokenizers only when it reads a tokenizer."""
    code = (
        "from kgprobe.probes.jobs import stage\n"
        "spec = stage.ModelSpec('m', 'masked', 'control:masked')\n"
        "print(*stage.identity(spec, stage.Api())['versions'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(ran.stdout.split()) == sorted(stage.LIBRARIES)


def test_records_of_separate_runs_are_listed_together():
    one, two = {"model": "m", "fed": 3}, {"model": "m", "fed": 4, "notes": []}
    assert merge_records([one]) == one
    assert merge_records([one, two]) == {
        "model": "m",
        "asked_apart": [{"fed": 3}, {"fed": 4, "notes": []}],
    }


def test_content_free_scores_are_stored_by_template(tmp_path, asked):
    """One score per template and set of options, for any number of items that share it."""
    project, path = Project(tmp_path), str(tmp_path / "four.parquet")
    others = (ITEMS.with_columns(pl.col("item", "subject") + n) for n in ("", "!"))
    four = pl.concat(others)
    assert four["subject"].n_unique() == 4
    four = pl.concat(
        [four, four.with_columns(pl.lit("P31").alias("relation"), pl.col("item") + "2")]
    )
    schema.write(four.cast(dict(schema.ITEMS.columns)), schema.ITEMS, path, {})
    first = project.run({"content_free": "c1"}, content_free=path)
    assert len(asked["sentence"]) == 2 * 2 * len(NO_SUBJECTS)
    frame = first.content_free_content_free
    assert sorted(frame["subject"].unique()) == sorted(NO_SUBJECTS)
    options = CANDIDATES.filter(pl.col("set").is_in(four["candidates"].implode())).height
    assert frame.height == 2 * 2 * len(NO_SUBJECTS) * options
    asked.clear()
    assert project.run(
        {"content_free": "c1"}, "again", content_free=path
    ).content_free_content_free.equals(frame)
    assert asked == {}
    changed(project)
    third = project.run(
        {"content_free": "c1"}, "third", content_free=path
    ).content_free_content_free
    assert {template for _, template in asked["sentence"]} == {3}
    assert len(asked["sentence"]) == len(NO_SUBJECTS)
    is_new = (pl.col("relation") == "P31") & (pl.col("template") == 3)
    assert third.filter(~is_new).equals(frame.filter(~is_new))
    assert not third.filter(is_new).equals(frame.filter(is_new))
    # two subjects share these options: no pass is run, and only the columns are written
    asked.clear()
    assert not project.run({"content_free": "c1"}, "few").content_free_content_free.height
    assert asked == {}


@pytest.mark.parametrize("method", list(METHODS))
def test_interrupted_job_resumes_within_a_method(tmp_path, monkeypatch, method):
    monkeypatch.setitem(batching.CAPS, "cpu", 16)
    monkeypatch.setattr(batching, "STARTS", 1)
    known, computed = Journal.step, []

    def step(self: Journal, name: str, compute: Any, most: int = 10**9) -> Any:
        def counted() -> Any:
            if len(computed) == most:
                raise KeyboardInterrupt
            computed.append(name)
            return compute()

        return known(self, name, counted)

    project = Project(tmp_path)
    monkeypatch.setattr(Journal, "step", step)
    expected = vars(project.run({method: "x"}))
    count, answers = len(computed), tmp_path / "answers"
    answers.rename(tmp_path / "away")
    computed.clear()
    monkeypatch.setattr(Journal, "step", partialmethod(step, most=count - 1))
    with pytest.raises(KeyboardInterrupt):
        project.run({method: "x"})
    assert list(answers.glob("*/unfinished/*"))
    computed.clear()
    monkeypatch.setattr(Journal, "step", step)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    # what is computed, but cannot be stored, is not lost either
    with monkeypatch.context() as patch:
        patch.setattr(Kept, "keep", full)
        with pytest.raises(SystemExit):
            project.run({method: "x"})
    assert 0 < len(computed) < count
    computed.clear()
    result = vars(project.run({method: "x"}))
    assert not computed
    for name, frame in expected.items():
        assert result[name].equals(frame) if name != "told" else result[name] == frame
    assert not list(answers.glob("*/unfinished"))
