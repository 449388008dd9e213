"""Exports: other tools read the content of the frames, for released and constructed sets."""

import json
import py_compile
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import datasets
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from lm_pub_quiz import Dataset
from snakemake.iocontainers import Namedlist
from typer.testing import CliRunner

from kgprobe import benchmark, schema
from kgprobe.benchmarks.bear import build
from kgprobe.benchmarks.bear import released as bear_released
from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.cli import app
from kgprobe.contracts import MEANING
from kgprobe.questions import TABLES
from kgprobe.tables.exports import card, formats, huggingface, lm_pub_quiz, origins
from kgprobe.tables.exports.folders import ExportError
from kgprobe.tables.exports.origins import SOURCES
from kgprobe.tables.report import about
from kgprobe.templates import fill
from tests.unit.test_bear import built

ROOT = Path(__file__).parents[2]
RELATIONS = [{"relation": "P1", "cardinality": "1:N"}, {"relation": "P2", "cardinality": "1:1"}]


@pytest.fixture(scope="module")
def constructed() -> BearFrames:
    """Build a small set with awkward labels: non-ASCII, quotes, digits, an escaped line break."""
    sets = built().big
    names = {"s1x": 'Ångström "A" / \\n', "s2x": "1984", "s3x": "😀 東京", "s100x": "null"}
    return BearFrames(
        sets.items.with_columns(pl.col("subject").replace(names)), sets.candidates, sets.prompts
    )


def assert_equal_content(loaded: Dataset, sets: BearFrames) -> None:
    """Assert that lm-pub-quiz has relations, templates, options, instances, indices of `sets`."""
    assert set(loaded.relation_codes) == set(sets.items["relation"])
    for relation in loaded:
        name = relation.relation_code
        items = sets.items.filter(pl.col("relation") == name).sort("row")
        options = sets.candidates.filter(pl.col("set") == items["candidates"][0]).sort("index")
        prompts = sets.prompts.filter(pl.col("relation") == name).sort("index")
        assert relation.templates == prompts["text"].to_list()
        assert relation.answer_space.tolist() == options["label"].to_list()
        assert relation.answer_space.index.tolist() == options["id"].to_list()
        frame = relation.instance_table
        answers = items["answers"].list.first()
        assert frame["sub_id"].tolist() == items["subject_id"].to_list()
        assert frame["sub_label"].tolist() == items["subject"].to_list()
        assert frame["answer_idx"].tolist() == answers.to_list()
        assert frame["obj_label"].tolist() == options["label"].gather(answers).to_list()


def assert_equal_sets(one: BearFrames, two: BearFrames) -> None:
    for name, key in (("items", "item"), ("candidates", ["set", "index"]), ("prompts", "prompt")):
        assert getattr(one, name).sort(key).equals(getattr(two, name).sort(key)), name


def test_lm_pub_quiz_loads_a_constructed_set_with_equal_content(constructed, tmp_path):
    folder = tmp_path / "made"
    relations = build.relations_of(constructed, RELATIONS)
    lm_pub_quiz.export(constructed, folder, relations)
    loaded = Dataset.from_path(folder, relation_info=tmp_path / "relation_info.json")
    assert loaded.name == "made"
    assert_equal_content(loaded, constructed)
    kinds = {r.relation_code: r.relation_info("cardinality") for r in loaded}
    assert kinds == {"P1": "multiple instances per answer", "P2": "single instance per answer"}


def test_the_workflow_writes_the_relations_file_like_the_command(tmp_path):
    given = ROOT / "resources/benchmarks/world_lite"
    command = ["export", str(given), "--as", "lm-pub-quiz", "--to", str(tmp_path / "a/world_lite")]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, "../relation_info.json" in done.stdout) == (0, True)
    fake = SimpleNamespace(
        rule="export", config={}, threads=1, log=[], resources=Namedlist(),
        input=Namedlist(fromdict={"questions": str(given / "items.parquet")}),
        output=Namedlist(fromdict={"folder": str(tmp_path / "b/world_lite")}),
        params=Namedlist(fromdict={"kind": "sentences"}),
        wildcards=Namedlist(fromdict={"form": "lm-pub-quiz", "benchmark": "world_lite"}),
    )  # fmt: skip
    runpy.run_path(str(ROOT / "workflow/scripts/export.py"), {"snakemake": fake})
    one, two = (
        {
            path.relative_to(tmp_path / name): path.read_text()
            for path in (tmp_path / name).rglob("*.json*")
        }
        for name in "ab"
    )
    assert Path("relation_info.json") in one
    assert one == two


def test_sets_in_one_folder_share_the_relations_file(constructed, tmp_path):
    relations = build.relations_of(constructed, RELATIONS)
    for name, part in (("one", relations[:1]), ("two", relations[1:])):
        formats.write("lm-pub-quiz", name, constructed, [], tmp_path / name, part)
    assert set(json.loads((tmp_path / "relation_info.json").read_text())) == {"P1", "P2"}
    alone = relations.select("relation", domains=pl.lit(["Arts"]))
    formats.write("lm-pub-quiz", "three", constructed, [], tmp_path / "three", alone)
    info = json.loads((tmp_path / "relation_info.json").read_text())
    assert info["P1"] == {"domains": ["Arts"]}
    (tmp_path / "relation_info.json").write_text("no JSON")
    with pytest.raises(ExportError, match=r"relation_info\.json, line 1: not JSON"):
        formats.write("lm-pub-quiz", "two", constructed, [], tmp_path / "two", relations)
    assert (tmp_path / "relation_info.json").read_text() == "no JSON"
    fresh = tmp_path / "fresh"
    with pytest.raises(ExportError, match=r"relation_info\.json, line 1: not JSON"):
        lm_pub_quiz.export(constructed, fresh, pl.DataFrame(RELATIONS))
    assert not fresh.exists()
    (tmp_path / "relation_info.json").write_text("[]")
    with pytest.raises(ExportError, match=r"relation_info\.json: expected an entry for each"):
        formats.write("lm-pub-quiz", "two", constructed, [], tmp_path / "two", relations)


def test_an_unknown_cardinality_is_refused_before_anything_is_written(constructed, tmp_path):
    relations = pl.DataFrame([{"relation": "P1", "cardinality": "N:M"}])
    with pytest.raises(ExportError, match="relation P1: its cardinality is 'N:M'; valid: 1:1, 1:N"):
        lm_pub_quiz.export(constructed, tmp_path / "set", relations)
    assert not list(tmp_path.iterdir())


def test_a_subject_that_holds_any_of_its_right_answers_is_counted(constructed):
    one = constructed.items.head(1)
    labels = constructed.candidates.filter(set=one["candidates"][0]).sort("index")["label"]
    subject = pl.lit(f"the {labels[1].upper()} of it")
    for answers, held in (([0, 1], 1), ([0], 0)):
        right = pl.lit(answers, dtype=pl.List(pl.Int32))
        items = one.with_columns(answers=right, subject=subject)
        assert card.overlaps(replace(constructed, items=items)) == (held, 1)


@pytest.mark.parametrize("form", formats.NAMES)
def test_an_export_without_questions_is_refused(form, constructed, tmp_path):
    trained = constructed.items.with_columns(role=pl.lit("train"))
    none = pl.DataFrame(schema=dict(schema.CHOICES.columns))
    for questions in (replace(constructed, items=trained), none):
        if form != "lm-pub-quiz" or questions is not none:
            with pytest.raises(ExportError, match="made: no question that is asked; expected"):
                formats.write(form, "made", questions, [], tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_export_and_load_round_trips(constructed, tmp_path):
    lm_pub_quiz.export(constructed, tmp_path / "made")
    benchmark = constructed.candidates["set"][0].split("/")[0]
    # the format has no field for sitelinks
    metas = [json.loads(meta) for meta in constructed.items["meta"]]
    assert all(set(meta) == {"aliases", "sitelinks"} for meta in metas)
    bare = pl.Series("meta", [json.dumps({"aliases": meta["aliases"]}) for meta in metas])
    expected = replace(constructed, items=constructed.items.with_columns(bare))
    assert_equal_sets(bear_released.load(tmp_path / "made", benchmark=benchmark), expected)


def test_a_folder_of_lm_pub_quiz_is_released_only_at_its_size(constructed, tmp_path, monkeypatch):
    made = tmp_path / "made"
    lm_pub_quiz.export(constructed, made)
    assert not benchmark(made).provenance
    with pytest.raises(ExportError, match="the license of these questions is not known"):
        origins.of(made)
    assert origins.of(made, "CC0-1.0")[0].title == "made"
    monkeypatch.setattr(bear_released, "SIZES", (constructed.items.height,))
    assert benchmark(made).provenance == {"rule": "load_bear"}
    assert origins.of(made) == [SOURCES["bear"]]


def test_the_folder_holds_only_ascii_tables(constructed, tmp_path):
    folder = tmp_path / "made"
    lm_pub_quiz.export(constructed, folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"metadata_relations.json", "P1.jsonl", "P2.jsonl"}
    for path in folder.iterdir():
        path.read_text(encoding="ascii")
    assert list(tmp_path.iterdir()) == [folder]


def test_an_older_export_is_replaced_and_foreign_files_are_not(constructed, tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "P999.jsonl").write_text("{}\n")
    (folder / "metadata_relations.json").write_text("{}\n")
    lm_pub_quiz.export(constructed, folder)
    assert not (folder / "P999.jsonl").exists()
    (folder / "thesis.docx").write_text("years of work")
    with pytest.raises(ExportError, match=r"contains 'thesis\.docx'"):
        lm_pub_quiz.export(constructed, folder)
    assert (folder / "thesis.docx").read_text() == "years of work"


@pytest.mark.parametrize("form", formats.NAMES)
@pytest.mark.parametrize(
    "names",
    [["train.jsonl"], ["my_task.yaml", "utils.py"], ["README.md"], ["config.yaml", "SOURCES.md"]],
)
def test_a_folder_of_user_files_is_never_replaced(constructed, tmp_path, form, names):
    folder = tmp_path / "tasks"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("years of work")
    with pytest.raises(ExportError, match=r"tasks: contains '\w+\.\w+'"):
        formats.write(form, "x", constructed, [SOURCES["world"]], folder)
    assert {path.name for path in folder.iterdir()} == set(names)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(ExportError, match=r"link: is a link; an export needs a folder of its own"):
        formats.write(form, "x", constructed, [SOURCES["world"]], tmp_path / "link")


@pytest.mark.parametrize("form", formats.NAMES)
def test_the_working_folder_is_never_replaced(constructed, tmp_path, form, monkeypatch):
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/b")
    for folder in (".", "..", tmp_path / "a"):
        with pytest.raises(ExportError, match="holds the working folder, and an export"):
            formats.write(form, "x", constructed, [SOURCES["world"]], Path(folder))
    assert Path.cwd().is_dir()


@pytest.mark.parametrize("form", formats.NAMES)
def test_an_export_of_any_name_is_replaced_by_the_next(constructed, tmp_path, form):
    named = replace(
        constructed,
        items=constructed.items.with_columns(pl.col("relation").replace("P1", "born in: a")),
        prompts=constructed.prompts.with_columns(pl.col("relation").replace("P1", "born in: a")),
    )
    for _ in range(2):
        formats.write(form, "my set v1.2", named, [SOURCES["world"]], tmp_path / "made")


def test_an_export_that_a_harness_has_used_is_replaced(constructed, tmp_path):
    """Python compiles the imported loader, which was taken for somebody's file."""
    folder = tmp_path / "made"
    for _ in range(2):
        formats.write("lm-eval", "set", constructed, [SOURCES["world"]], folder)
        py_compile.compile(str(folder / "kgprobe_rows.py"), doraise=True)
    assert [path.suffix for path in (folder / "__pycache__").iterdir()] == [".pyc"]


def test_questions_with_separate_options_have_rows_with_these(constructed, tmp_path):
    """One question has a separate set of options, two of them right."""
    first = constructed.items.sort("item").row(0, named=True)
    own = {**first, "candidates": "apart", "answers": [0, 2]}
    others = constructed.items.filter(pl.col("item") != first["item"])
    items = pl.concat([others, pl.DataFrame([own], schema=others.schema)])
    sets = [("apart", i, "", label) for i, label in enumerate(("one", "two", "three"))]
    candidates = pl.concat([
        constructed.candidates,
        pl.DataFrame(sets, schema=constructed.candidates.schema, orient="row"),
    ])  # fmt: skip
    prompts = constructed.prompts.with_columns(text=pl.lit("Then [X] was [Y]."))
    formats.write("huggingface", "big", BearFrames(items, candidates, prompts),
                  [SOURCES["wikidata"]], tmp_path / "hub")  # fmt: skip
    rows = loaded_rows(tmp_path / "hub", "big", tmp_path / "cache")
    (row,) = [r for r in rows if r["item"] == first["item"] and r["template_index"] == 0]
    assert row["answer_options"] == ["one", "two", "three"]
    assert row["correct"] == [0, 2]
    assert row["text_options"][1] == f"Then {first['subject']} was two."
    assert all(len(r["correct"]) == 1 for r in rows if r["item"] != first["item"])


CHOICES = pl.DataFrame(
    [
        {"item": "TP-0", "task": "TP", "premise": "", "source": "TP-0", "stem": "", "row": 0,
         "question": "What is Dante?", "options": ["lake", "writer"], "gold": 1},
        {"item": "rdfs9-0+p1", "task": "rdfs9", "premise": "EX", "source": "SCO-0", "stem": "",
         "row": 0, "question": "What is X?", "options": ["sea", "ship", "poet"], "gold": 0},
    ],
    schema=dict(schema.CHOICES.columns),
)  # fmt: skip


def test_lettered_questions_are_exported_with_their_options(tmp_path):
    for form in formats.NAMES[1:]:
        formats.write(form, "x_choices", CHOICES, [SOURCES["world"]], tmp_path / form)
    rows = loaded_rows(tmp_path / "huggingface", "x_choices", tmp_path / "cache")
    assert rows[0]["prompt"] == "What is Dante? (a) lake, (b) writer\nAnswer:"
    assert (rows[0]["options"], rows[0]["correct"]) == (["lake", "writer"], 1)
    group = yaml.safe_load((tmp_path / "lm-eval/kgprobe_x_choices.yaml").read_text())
    parts = ["TP", "rdfs9_EX"]
    assert group["task"] == [f"kgprobe_x_choices_{part}" for part in parts]
    assert "Wu et al." in (tmp_path / "huggingface/README.md").read_text()
    with pytest.raises(ExportError, match=r"no lettered questions; use --as lm-eval"):
        formats.write("lm-pub-quiz", "x", CHOICES, [SOURCES["world"]], tmp_path / "quiz")


def test_missing_sets_or_templates_are_an_error(constructed, tmp_path):
    with pytest.raises(ExportError, match=r"no choices\.parquet; expected a benchmark"):
        formats.read(tmp_path, "choices", lambda: constructed)
    bare = replace(constructed, prompts=constructed.prompts.clear())
    with pytest.raises(ExportError, match="no written template, which sentences are made of"):
        formats.write("huggingface", "x", bare, [SOURCES["world"]], tmp_path / "made")


def test_content_that_a_format_cannot_express_is_an_error(constructed, tmp_path):
    slot = constructed.prompts.filter((pl.col("relation") != "P2") | (pl.col("index") != 1))
    two = constructed.items.with_columns(answers=pl.lit([0, 1], dtype=pl.List(pl.Int32)))
    wrong = [
        ({"prompts": slot}, r"P2: templates \[0, 2\]"),
        ({"items": two}, "2 correct options, expected one"),
    ]
    for relation in ("http://x.org/p", "v1.2", "two\nlines", "é" * 125):
        named = constructed.items.with_columns(pl.col("relation").replace("P1", relation))
        message = rf"{relation}: .* a slash, a full\s+stop, .* than 249 bytes; use"
        wrong.append(({"items": named}, message))
    for changed, message in wrong:
        with pytest.raises(ExportError, match=message):
            lm_pub_quiz.export(replace(constructed, **changed), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def loaded_rows(folder, configuration: str, cache) -> datasets.Dataset:
    return datasets.load_dataset(
        str(folder), configuration, split="test", cache_dir=str(cache),
        verification_mode="all_checks",
    )  # fmt: skip


def test_every_exported_column_has_a_description():
    for contract in (schema.ITEMS, schema.CANDIDATES, schema.PROMPTS, schema.CHOICES):
        assert list(MEANING[contract.name]) == list(contract.columns)


@pytest.mark.parametrize("form", formats.NAMES[1:])
def test_every_export_lists_its_sources_and_is_deterministic(constructed, tmp_path, form):
    sources = [SOURCES["lama"], SOURCES["trex"]]
    for name in ("a", "b"):
        formats.write(form, "big", constructed, sources, tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert len(files) >= 3
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    sources_page = (tmp_path / "a/SOURCES.md").read_text()
    assert "LAMA: CC-BY-NC-4.0" in sources_page
    assert "T-REx: CC-BY-SA-4.0" in sources_page


def written(folder, sets, **told):
    folder.mkdir()
    schema.write(sets.items, schema.ITEMS, folder / "items.parquet", told)
    return folder


def test_questions_have_the_sources_of_their_inputs(constructed, tmp_path):
    made = {"rule": "construct_bear", "wildcards": {"origin": "wikidata"}}
    assert origins.of(written(tmp_path / "a", constructed, **made)) == [SOURCES["wikidata"]]
    released = {"rule": "load_bear", "wildcards": {}}
    assert origins.of(written(tmp_path / "b", constructed, **released)) == [SOURCES["bear"]]
    packaged = {"source": "resources/world"}
    assert origins.of(written(tmp_path / "c", constructed, **packaged)) == [SOURCES["world"]]
    (tmp_path / "e").mkdir()
    facts = tmp_path / "e/examples.parquet"
    schema.write(constructed.items, schema.ITEMS, facts, {"rule": "build_prompt_facts"})
    assert origins.of(tmp_path / "e") == [SOURCES["trex"]]
    own = written(tmp_path / "d", constructed, **made | {"wildcards": {"origin": "museum"}})
    with pytest.raises(ExportError, match=r"of museum is not known; .*--license"):
        origins.of(own)
    assert origins.of(own, "CC-BY-4.0")[0].license == "CC-BY-4.0"
    with pytest.raises(ExportError, match=r"the license .* is CC-BY-SA-4.0; omit --license"):
        origins.of(tmp_path / "e", "CC-BY-4.0")
    assert origins.of(tmp_path / "e", "CC-BY-SA-4.0") == [SOURCES["trex"]]


def test_lm_pub_quiz_names_no_license_and_demands_none(constructed, tmp_path):
    own, made_by = tmp_path / "own", {"rule": "construct_bear", "wildcards": {"origin": "museum"}}
    for name, contract in TABLES.items():
        schema.write(getattr(constructed, name), contract, own / f"{name}.parquet", made_by)
    for form, code in (("lm-pub-quiz", 0), ("lm-eval", 1)):
        made = tmp_path / form
        done = CliRunner().invoke(app, ["export", str(own), "--as", form, "--to", str(made)])
        assert (done.exit_code, made.exists()) == (code, not code), done.output
    assert formats.sources("lm-pub-quiz", own) == []
    assert formats.sources("lm-eval", own, "CC-BY-4.0")[0].license == "CC-BY-4.0"


def test_tasks_whose_names_have_a_comma_are_refused(constructed, tmp_path):
    """lm-evaluation-harness separates the names after --tasks by commas."""
    with pytest.raises(ExportError, match=r"^a,b: names a group of tasks.*commas; rename"):
        formats.write("lm-eval", "a,b", constructed, [], tmp_path / "made")
    assert not (tmp_path / "made").exists()
    formats.write("lm-pub-quiz", "a,b", constructed, [], tmp_path / "made")


def test_questions_released_without_a_license_say_so(constructed, tmp_path):
    folder = written(tmp_path / "onto", constructed, rule="load_ontoprobe", wildcards={})
    with pytest.raises(ExportError, match="the released OntoProbe has no license; ask its authors"):
        origins.of(folder)
    (source,) = origins.of(folder, "CC-BY-4.0")
    assert (source.title, source.license) == ("the released OntoProbe", "CC-BY-4.0")
    assert source.attribution == origins.ONTOPROBE
    said = "These questions are from the released OntoProbe, which has no license."
    assert about._licenses(folder) == said


def test_rows_hold_filled_sentences_and_the_correct_index(constructed, tmp_path):
    huggingface.write_rows(constructed, tmp_path / "rows.parquet")
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    joined = constructed.items.join(rows, on="item", suffix="_row")
    assert joined.height == rows.height
    for row in joined.iter_rows(named=True):
        assert row["correct"] == row["answers"][0]
        texts = [fill(row["template"], row["subject"], o).text for o in row["answer_options"]]
        assert row["text_options"] == texts
        assert row["composite_id"] == f"{row['relation']}-{row['row']}-{row['template_index']}"
    first = [text[0] for text in rows["text_options"].explode()]
    assert all(letter.isupper() or not letter.isalpha() for letter in first)


def header(text: str) -> dict:
    return yaml.safe_load(text.split("---\n")[1])


def test_the_card_describes_the_sets(constructed):
    released = card.write("BEAR", constructed, [SOURCES["bear"]])
    assert header(released)["license"] == ["cc-by-sa-4.0"]
    made = card.write("x", constructed, [SOURCES["wikidata"]])
    fields = header(made)
    assert fields["license"] == ["cc0-1.0"]
    assert fields["pretty_name"] == "x"
    assert fields["size_categories"] == ["n<1K"]
    own = replace(SOURCES["world"], license="Museum: terms of use #2")
    assert header(card.write("x", constructed, [own]))["license"] == [own.license.lower()]
    path = f"BEAR/{huggingface.FILE}"
    files = [{"split": "test", "path": path}]
    assert header(released)["configs"] == [{"config_name": "BEAR", "data_files": files}]
    assert "**It is not the paper's set**" in made
    # a part of the released set
    assert card.PART.format(9, 3) in released
    assert card.RELEASED not in released


@pytest.mark.parametrize(
    ("rule", "paper"),
    [
        ("construct_bear", origins.BEAR),
        ("construct_ontoprobe", origins.ONTOPROBE),
        ("load_ontoprobe", origins.ONTOPROBE),
        ("build_attributes_symmetry", origins.ATTRIBUTES),
    ],
)
def test_the_card_cites_the_paper_of_the_questions(constructed, tmp_path, rule, paper):
    folder = written(tmp_path / "set", constructed, rule=rule, source="resources/world")
    given = origins.of(folder), tmp_path / "out"
    formats.write("huggingface", "set", constructed, *given, paper=origins.paper_of(folder))
    text = (tmp_path / "out/README.md").read_text()
    assert text.partition("## Citation\n\n")[2] == f"{paper}\n"


def test_the_card_states_the_label_language_if_known(constructed, tmp_path):
    def languages(name, **record):
        sources = origins.of(written(tmp_path / name, constructed, **record))
        return header(card.write(name, constructed, sources)).get("language")

    pulled = {"rule": "construct_bear", "wildcards": {"origin": "wikidata"}}
    assert languages("a", **pulled, languages=["de-AT", "mul"]) == ["de"]
    assert languages("b", **pulled, languages=["en", "mul"]) == ["en"]
    assert languages("no", **pulled, languages=["no"]) == ["no"]
    # also after a probe wrote the questions that it asked
    schema.write(constructed.candidates, schema.CANDIDATES, tmp_path / "a/candidates.parquet")
    schema.write(constructed.prompts, schema.PROMPTS, tmp_path / "a/prompts.parquet")
    benchmark(tmp_path / "a").sampled(3).write(tmp_path / "asked")
    assert origins.of(tmp_path / "asked") == origins.of(tmp_path / "a")
    assert languages("c", **pulled) is None
    assert languages("d", rule="load_bear", wildcards={}, languages=["de"]) == ["en"]
    own = {"rule": "construct_bear", "wildcards": {"origin": "museum"}, "languages": ["en"]}
    sources = origins.of(written(tmp_path / "e", constructed, **own), "CC-BY-4.0")
    assert "language" not in header(card.write("e", constructed, sources))
    choices_card = card.write("f", pl.DataFrame({"task": [], "premise": []}), [])
    assert "language" not in header(choices_card)


def test_a_card_calls_only_balanced_sets_balanced(constructed):
    origin = [SOURCES["wikidata"]]
    said = card.write("x", constructed, origin)
    assert card.has_balanced_options(constructed)
    assert card.BALANCED in said
    # one answer more often than the others
    first = constructed.items.head(1)
    others = constructed.items.filter(pl.col("item") != first["item"][0])
    skewed = replace(constructed, items=others)
    # separate options of each item
    items = constructed.items.with_columns(candidates="item")
    own = replace(constructed, items=items, candidates=constructed.items.select(
        "item", named="candidates").join(constructed.candidates, left_on="named", right_on="set")
        .select(set="item", index="index", id="id", label="label"))  # fmt: skip
    # options that are never right, as in a sample: a constant guess is right more often than chance
    sampled = replace(constructed, items=constructed.items.unique("relation"))
    # an option that is right for a question with two right options, too
    several = replace(constructed, items=constructed.items.with_columns(
        answers=pl.when(pl.col("item") == first["item"][0])
        .then(pl.lit([0, 1], dtype=pl.List(pl.Int32))).otherwise("answers")))  # fmt: skip
    for sets in (skewed, own, sampled, several):
        assert not card.has_balanced_options(sets)
        card_text = card.write("x", sets, origin)
        assert card.UNBALANCED in card_text
        assert "is balanced" not in card_text


def test_the_card_prints_size_balance_and_chance():
    text = card.write("big", built().big, [SOURCES["wikidata"]])
    # P1: 6 items with 3 options, P2: 3 with 3
    assert "| big | 2 | 9 | 27 | 3 to 3 | 33.333 % | 33.333 % | 0 | 0 |" in text


@pytest.mark.parametrize("name", ["2020", "no", "x #y", "{z}", "2020-01-01"])
def test_a_name_that_is_no_yaml_string_is_quoted(constructed, tmp_path, name):
    formats.write("huggingface", name, constructed, [], tmp_path / "huggingface")
    (config,) = header((tmp_path / "huggingface/README.md").read_text("utf-8"))["configs"]
    assert config["config_name"] == name
    assert (tmp_path / "huggingface" / config["data_files"][0]["path"]).is_file()
    datasets.BuilderConfig(config["config_name"])


@pytest.mark.parametrize("name", ["2020", "no", "a: b", "x #y", "{z}", "2020-01-01"])
def test_a_task_whose_name_is_no_yaml_string_is_quoted(constructed, tmp_path, name):
    formats.write("lm-eval", name, constructed, [], tmp_path / "lm-eval")
    texts = {p.stem: p.read_text("utf-8") for p in (tmp_path / "lm-eval").glob("*.yaml")}
    tasks = {stem: yaml.safe_load(t.replace("!function", "")) for stem, t in texts.items()}
    group = tasks.pop(f"kgprobe_{name}")
    assert group["group"] == f"kgprobe_{name}"
    assert set(group["task"]) < {task["task"] for task in tasks.values()} == set(tasks)
    assert {t["dataset_kwargs"]["configuration"] for t in tasks.values()} == {name}


@pytest.mark.parametrize("name", ["a: b", "a|b", "set[1]", "what?"])
def test_a_name_that_hugging_face_refuses_is_an_error(constructed, tmp_path, name):
    with pytest.raises(ExportError, match=r"names a configuration, which .* refuses"):
        formats.write("huggingface", name, constructed, [], tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_the_harness_has_a_task_for_each_template_under_a_group(constructed, tmp_path):
    formats.write("lm-eval", "big", constructed, [SOURCES["wikidata"]], tmp_path / "made")
    text = (tmp_path / "made/kgprobe_big_template_1.yaml").read_text()
    task_fields = yaml.safe_load(text.replace("!function ", ""))
    assert task_fields["output_type"] == "multiple_choice"
    assert task_fields["doc_to_text"] == ""
    assert task_fields["target_delimiter"] == ""
    assert task_fields["dataset_kwargs"] == {"configuration": "big", "template": 1}
    columns = pq.read_schema(tmp_path / "made/big" / huggingface.FILE).names
    assert task_fields["doc_to_choice"] in columns
    assert task_fields["doc_to_target"] in columns
    group = yaml.safe_load((tmp_path / "made/kgprobe_big.yaml").read_text())
    assert group["task"] == [f"kgprobe_big_template_{i}" for i in range(3)]


def test_a_template_of_a_relation_without_questions_is_no_task(constructed, tmp_path):
    """lm-evaluation-harness stops at a task without rows."""
    rows = constructed.prompts.head(2).with_columns(
        relation=pl.Series(["P9", "P2"]),
        prompt=pl.Series(["P9/7", "P2/8"]),
        index=pl.Series([7, 8], dtype=pl.Int32),
    )
    role = pl.when(relation="P2").then(pl.lit("train")).otherwise("role")
    items = constructed.items.with_columns(role=role)
    sets = replace(constructed, items=items, prompts=pl.concat([constructed.prompts, rows]))
    formats.write("lm-eval", "big", sets, [], tmp_path / "made")
    group = yaml.safe_load((tmp_path / "made/kgprobe_big.yaml").read_text())
    assert group["task"] == [f"kgprobe_big_template_{i}" for i in range(3)]


def test_a_bar_in_a_name_does_not_end_its_cell_in_the_card(constructed):
    source = origins.Source("mine | yours", "CC0-1.0", "", "me")
    text = card.write("a|b", constructed, [source])
    assert r"| mine \| yours | CC0-1.0 | me | |" in text.splitlines()
    assert r"| a\|b | 2 | 9 | 27 |" in text


@pytest.mark.real
@pytest.mark.parametrize(("name", "own", "anyone"), [("BEAR", 4, 17), ("BEAR-big", 47, 321)])
def test_the_released_sets_round_trip_and_load_in_lm_pub_quiz(
    real_data, tmp_path, name, own, anyone
):
    sets = bear_released.load(real_data / "bear" / name)
    relations = bear_released.relations(real_data / "bear" / name, sets)
    lm_pub_quiz.export(sets, tmp_path / name, relations)
    again = bear_released.load(tmp_path / name)
    assert_equal_sets(again, sets)
    assert bear_released.relations(tmp_path / name, again).equals(relations)
    info = tmp_path / "relation_info.json"
    assert_equal_content(Dataset.from_path(tmp_path / name, relation_info=info), sets)
    assert card.overlaps(sets) == (own, anyone)


@pytest.mark.real
def test_released_row_counts_are_the_published_ones(real_data, tmp_path):
    sets = bear_released.load(real_data / "bear/BEAR")
    huggingface.write_rows(sets, tmp_path / "rows.parquet")
    file = pq.ParquetFile(tmp_path / "rows.parquet")
    assert file.metadata.num_rows == 23_193
    assert card.RELEASED in card.write("BEAR", sets, [SOURCES["bear"]])
    few = bear_released.load(real_data / "bear/BEAR", instances=5, templates=[0])
    assert card.PART.format(300, 1) in card.write("BEAR", few, [SOURCES["bear"]])
    table = file.read(columns=["correct", "answer_options", "text_options"])
    sizes = np.array([len(options) for options in table["text_options"].to_pylist()])
    assert sizes.sum() == 628_497
    source = json.loads((real_data / "bear/BEAR/metadata_relations.json").read_text())
    assert len(source) == file.num_row_groups
    schema.check(sets.items, schema.ITEMS)
