"""JSON Lines readers ignore extra content and report invalid objects with their line."""

import gzip
import json

import pytest

from kgprobe.benchmarks.attributes.amber import read_amber
from kgprobe.benchmarks.autoprompt.facts import read_facts, read_vocabulary
from kgprobe.benchmarks.autoprompt.relations import read_records
from kgprobe.benchmarks.autoprompt.templates import read_templates
from kgprobe.benchmarks.bear import lama, released
from kgprobe.benchmarks.ontoprobe import released as onto_released
from kgprobe.settings.benchmarks import LamaOptions

#: a name with characters that are line breaks elsewhere
NAME = "Pa\u2028ris \u0085 of\u2029 France"
TEXT = "The capital of [X] is [Y]."
FACTS = [{"sub": "France", "obj": NAME}, {"sub": "Italy", "obj": "Rome"}]
TEMPLATES = [
    {"relation": "P36", "template": TEXT, "type": "1-1"},
    {"relation": "P30", "template": f"[X] lies in [Y] ({NAME}).", "type": "N-1"},
]
INSTANCES = [
    {"sub_id": "Q142", "sub_label": "France", "obj_id": "Q90", "obj_label": NAME},
    {"sub_id": "Q38", "sub_label": "Italy", "obj_id": "Q220", "obj_label": "Rome"},
]
RECORDS = [
    {
        "predicate_id": "P36", "sub_uri": f"Q{n}", "obj_uri": "Q90", "sub_label": "France",
        "obj_label": NAME, "evidences": [
            {"sub_surface": "France", "obj_surface": NAME, "masked_sentence": "France has [MASK]."}
        ],
    }
    for n in range(2)
]  # fmt: skip


def _released(folder):
    metadata = {"P36": {"templates": [TEXT]}}
    (folder / "metadata_relations.json").write_text("\ufeff" + json.dumps(metadata), "utf-8")
    frames = released.load(folder, templates=[0])
    return [frames.items.rows(), frames.candidates.rows(), frames.prompts.rows()]


def _facts(folder):
    (folder / "P36/train.jsonl").write_text("")
    (folder / "P36/dev.jsonl").write_text("")
    return read_facts(folder).rows()


READERS = {
    "facts": (FACTS, "P36/test.jsonl", _facts),
    "templates": (TEMPLATES, "all.jsonl", lambda f: read_templates(f / "all.jsonl")),
    "records": (RECORDS, "P36.jsonl", read_records),
    "packed records": (RECORDS, "P36.jsonl.gz", read_records),
    "lama": (FACTS, "test.jsonl", lambda f: lama._facts(f / "test.jsonl")),
    "released": (INSTANCES, "P36.jsonl", _released),
    "amber": ([{"name": NAME, "qids": {"Q1": {"is_head": True, "popularity": 3}}}, {"qids": {}}],
              "amber_sets.jsonl", lambda f: read_amber(str(f / "amber_sets.jsonl"))),
}  # fmt: skip


def write_file(folder, file, text):
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    (folder / file).write_bytes(gzip.compress(data) if file.endswith(".gz") else data)
    return folder


def lines_of(name):
    return [json.dumps(row, ensure_ascii=False) for row in READERS[name][0]]


@pytest.mark.parametrize("name", READERS)
def test_extra_content_beside_the_objects_is_ignored(name, tmp_path):
    _, file, read = READERS[name]
    plain = read(write_file(tmp_path / "plain", file, "\n".join(lines_of(name)) + "\n"))
    assert plain
    # byte order marks of concatenated files, blank lines, and other blanks around an object
    between = "\u2028\r\n\ufeff\r\n \t\r\n\u2028\n\ufeff\u0085"
    odd = "\ufeff\r\n" + between.join(lines_of(name)) + "\u00a0\r\n\r\n"
    assert str(read(write_file(tmp_path / "odd", file, odd))) == str(plain).replace("plain", "odd")


@pytest.mark.parametrize("name", [name for name in READERS if "packed" not in name])
def test_a_carriage_return_ends_a_line_where_no_line_feed_does(name, tmp_path):
    _, file, read = READERS[name]
    plain = read(write_file(tmp_path / "plain", file, "\n".join(lines_of(name)) + "\n"))
    mac = read(write_file(tmp_path / "odd", file, "\r".join(lines_of(name)) + "\r"))
    assert str(mac) == str(plain).replace("plain", "odd")


@pytest.mark.parametrize("wrong", ['{"relation": "P36", ', "[1]", '"text"', "null"])
@pytest.mark.parametrize("name", READERS)
def test_non_objects_are_reported_with_their_line(name, wrong, tmp_path):
    _, file, read = READERS[name]
    first, second = lines_of(name)
    text = f"{first}\n\n\n{wrong}\n{second}\n"
    with pytest.raises(ValueError, match=rf"{file}, line 4: "):
        read(write_file(tmp_path, file, text))


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("lama", {"sub": ["France"], "obj": NAME}, r"sub is \['France'\], expected text"),
        ("lama", {"sub": "France", "obj": 5}, "obj is 5, expected text"),
        ("facts", {"sub": {"id": 1}, "obj": NAME}, r"sub is {'id': 1}, expected text"),
        ("facts", {"sub": "France", "obj": " "}, "obj is ' ', expected text"),
        ("templates", {"relation": ["P36"], "template": TEXT}, r"relation is \['P36'\], expected"),
        ("amber", {"qids": {"Q1": {"is_head": True}}}, "not an AmbER set"),
        ("amber", {"qids": {"Q1": {"is_head": True, "popularity": None}}}, "not an AmbER set"),
        ("amber", {"qids": ["Q1"]}, "not an AmbER set"),
    ],
)
def test_non_text_is_reported_with_its_line(name, row, message, tmp_path):
    _, file, read = READERS[name]
    text = "\n".join([*lines_of(name), json.dumps(row)])
    with pytest.raises(ValueError, match=rf"{file}, line 3: {message}"):
        read(write_file(tmp_path, file, text))


def test_answers_outside_their_space_are_reported_with_their_line(tmp_path):
    rows = [{**INSTANCES[0], "answer_idx": 0}, {**INSTANCES[1], "answer_idx": 7}]
    text = "\n\n".join(map(json.dumps, rows))
    with pytest.raises(released.ReleasedError, match=r"P36\.jsonl, line 3: answer Q220, index 7"):
        _released(write_file(tmp_path, "P36.jsonl", text))


def test_windows_line_ends_do_not_change_the_vocabulary(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_bytes("\ufeffParis\r\nRome\r\n\r\n".encode())
    assert read_vocabulary(path) == ["Paris", "Rome"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"rdfs:Class": "C",\n "rdfs:label": }]', "class.json, line 2: not JSON"),
        ('[{"rdfs:Class": "C"}]', "class.json, entry 0: without rdfs:label"),
        ("[3]", "class.json, entry 0: without rdfs:Class, rdfs:label"),
        ("{}", "class.json: holds dict, expected a list"),
    ],
)
def test_invalid_released_ontology_is_reported_with_its_location(text, message, tmp_path):
    (tmp_path / "class.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        onto_released.classes(tmp_path)


def test_files_beside_the_folders_of_lama_s_relations_are_ignored(tmp_path):
    """Such as those in which some systems keep how a folder is displayed."""
    for split in lama.SPLITS:
        write_file(tmp_path, f"facts/P36/{split}.jsonl", json.dumps(FACTS[1]))
    write_file(tmp_path, "facts/.DS_Store", "\0")
    write_file(tmp_path, "templates.jsonl", json.dumps(TEMPLATES[0]))
    found = lama.load(tmp_path / "facts", tmp_path / "templates.jsonl", LamaOptions(), 0)
    assert found.items["item"].to_list() == ["P36/Italy"]
