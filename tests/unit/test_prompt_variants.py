"""The templates of the attribute benchmarks: tables, selection, sources."""

import json
from collections import Counter
from pathlib import Path

import pytest

from kgprobe.experiments import read_table
from kgprobe.probes.prompts.variants import relations
from kgprobe.templates import answer_is_last

ROOT = Path(__file__).parents[2]
SHARED = read_table(ROOT / "resources" / "templates" / "templates.tsv")
MORE = [
    row
    for folder in ("templates", "lama")
    for row in read_table(ROOT / "resources" / folder / "attributes.tsv")
]
TABLE = relations.join(SHARED, MORE)
LAMA = (
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 P140 P159 "
    "P176 P178 P190 P264 P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P530 P740 P937 P1001 "
    "P1303 P1376 P1412"
).split()


def test_lama_relations_have_lama_s_template_and_others_a_project_one():
    assert {r for r, ws in TABLE.items() if any(w.kind == "lama" for w in ws)} >= set(LAMA)
    for relation, ws in TABLE.items():
        kinds = Counter(w.kind for w in ws)
        assert kinds["lama"] <= 1
        assert kinds["own"] >= 1, relation
        assert answer_is_last(next(w for w in ws if w.kind == "own").text), relation


def test_relations_with_some_facts_have_five_other_templates():
    # the rare ones of the real graph, with fewer than ten labeled facts or none, have two, or four
    # where they are among the hundred most frequent without labels
    few = {r for r, ws in TABLE.items() if len(ws) < 6}
    assert len(TABLE) - len(few) > 240
    assert {len(TABLE[r]) for r in few} == {3, 5}
    assert not few & {row["relation"] for row in SHARED}


def test_texts_are_sentences_without_duplicates():
    texts = [w.text for ws in TABLE.values() for w in ws if w.kind != "lama"]
    assert [text for text, n in Counter(texts).items() if n > 1] == []
    for row in MORE:
        text = row["text"]
        assert text == " ".join(text.split())
        assert text.endswith(" ." if row["kind"] == "lama" else ".")
        assert text[0].isupper() or text[0] == "["
        assert text.count("[X]") == text.count("[Y]") == 1
        assert (row["kind"] == "paraphrase") == bool(row["parent"])


def test_the_space_before_the_stop_is_removed_by_default():
    assert TABLE["P19"][-1].text == "[X] was born in [Y]."
    kept = relations.join(SHARED, MORE, stop_space=True)
    assert kept["P19"][-1].text == "[X] was born in [Y] ."


def test_selection_begins_with_lama_and_smaller_ones_are_subsets():
    triples = {"P27": 3, "P26": 2, "P279/P279": 1}
    everything = relations.choose(TABLE, triples)
    assert [len(everything[r]) for r in ("P26", "P27", "P279/P279")] == [6, 6, 6]
    assert everything["P27"][0].text == "[X] is [Y] citizen."
    before: dict[str, set[str]] = {r: set() for r in triples}
    for most in (1, 2, 3, 4, 6):
        chosen = relations.choose(TABLE, triples, most)
        for relation, ws in chosen.items():
            ids = {w.id for w in ws}
            assert len(ids) == most
            assert before[relation] < ids
            before[relation] = ids
        assert chosen["P26"][0].text == "[X] was married to [Y]."
    assert relations.choose(TABLE, triples, 2)["P27"][1].text == "[X] is a citizen of [Y]."
    assert relations.choose(TABLE, triples, 4, 1) != relations.choose(TABLE, triples, 4, 2)


def test_all_relations_without_template_are_reported_at_once():
    with pytest.raises(
        relations.MissingTemplateError, match=r"3 relations .*P8 \(9\), P7 \(5\), P9 "
    ):
        relations.choose(TABLE, {"P9": 2, "P7": 5, "P19": 4, "P8": 9})


def test_rows_give_the_source_of_every_prompt():
    chosen = relations.choose(TABLE, {"P26": 1}, 3)
    (first,) = (w for w in chosen["P26"] if w.id == "P26/0")
    word = first.text.split()[1]
    drawn = [{"prompt": "P26/0", "word": word, "synonym": own} for own in ("b", word)]
    prompts, origins = (
        frame.to_dicts() for frame in relations.frames(relations.with_synonyms(chosen, drawn, 2))
    )
    assert [row["index"] for row in prompts] == [0, 1, 2, 3]
    assert len({row["prompt"] for row in prompts}) == 4
    assert origins[-1] == {
        "prompt": "P26/0/synonym/0", "relation": "P26", "kind": "synonym", "parent": "P26/0",
        "change": f"{word} > b",
    }  # fmt: skip
    known = {row["prompt"] for row in origins}
    assert {row["parent"] for row in origins} - {""} <= known | {w.id for w in TABLE["P26"]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"index": "0"}, "appears twice"),
        ({"index": "9", "kind": "poem"}, "kind 'poem'; valid"),
        ({"index": "9", "text": "[X] is here."}, r"one \[X\] and one \[Y\]"),
        ({"index": "9", "parent": "8"}, "no parent P26/8"),
    ],
)
def test_bad_rows_are_reported(row, message):
    good = {"relation": "P26", "kind": "paraphrase", "text": "[X] and [Y].", "parent": "0"}
    with pytest.raises(ValueError, match=message):
        relations.join(SHARED, [{**good, **row}])


@pytest.mark.real
def test_lama_s_templates_are_lama_s(real_data):
    lines = (real_data / "lama" / "relations.jsonl").read_text().splitlines()
    printed = {row["relation"]: row["template"] for row in map(json.loads, lines)}
    ours = {row["relation"]: row["text"] for row in MORE if row["kind"] == "lama"}
    assert ours == printed


def test_prompts_of_the_questions_of_a_benchmark():
    import polars as pl

    from kgprobe import schema
    from kgprobe.settings.probes import AttributePrompts

    rows = [
        (f"i{n}", "g", "r", relation, "s", "Q1", "set", [0], n, "{}")
        for n, relation in enumerate(["P26", "P26", "P279/P279"])
    ]
    items = pl.DataFrame(rows, schema=dict(schema.ITEMS.columns), orient="row")
    prompts, origins = relations.word(items, SHARED, MORE, AttributePrompts())
    schema.check(prompts, schema.PROMPTS)
    schema.check(origins, schema.PROMPT_ORIGINS)
    assert set(prompts["relation"]) == {"P26", "P279/P279"}
    few, _ = relations.word(items, SHARED, MORE, AttributePrompts(most=2))
    assert set(few["prompt"]) < set(prompts["prompt"])
    assert few.height == 4


@pytest.mark.real
def test_every_relation_of_the_real_triples_has_a_written_template(real_data):
    import polars as pl

    triples = pl.read_parquet(real_data / "wikidata" / "triples.parquet", columns=["p"])
    counts = dict(triples.group_by("p").len().rows())
    assert len(counts) == 511
    assert [name for name in counts if not TABLE.get(name)] == []
    for relation in counts:
        first = next(w for w in TABLE[relation] if w.kind == "own")
        assert first.text.endswith("[Y]."), relation
        assert {w.kind for w in TABLE[relation]} <= {"lama", "own", "paraphrase"}, relation


#: subject and object of real triples whose relations are easily reversed
DIRECTED = {
    ("P279", "folktronica", "electronica"): "folktronica is a kind of electronica.",
    ("P1962", "Michelangelo", "Lorenzo de' Medici"): (
        "A patron of Michelangelo was Lorenzo de' Medici."
    ),
    ("P1268", "the team", "the federation"): "the team represents the federation.",
    ("P1875", "James Stewart", "the agency"): "James Stewart is represented by the agency.",
    ("P2499", "EFL Championship", "Premier League"): (
        "The league above EFL Championship is Premier League."
    ),
    ("P2522", "Chelsea", "the final"): "A competition or event won by Chelsea is the final.",
    ("P2822", "ash", "combustion"): "ash is a by-product of combustion.",
    ("P2849", "blood", "bone marrow"): "In living things, blood is produced by bone marrow.",
    ("P3205", "Tolkien", "Havard"): "Tolkien was a patient of Havard.",
    ("P3448", "Eugène", "Napoleon"): "Eugène is a stepchild of Napoleon.",
    ("P4967", "master's degree", "bachelor's degree"): (
        "The prerequisite for master's degree is bachelor's degree."
    ),
    ("P5940", "Nemesis", "the comic"): "The plot of Nemesis is expanded in the comic.",
}


@pytest.mark.parametrize(("relation", "subject", "object_"), DIRECTED)
def test_the_subject_is_in_the_subject_slot(relation, subject, object_):
    own = next(w for w in TABLE[relation] if w.kind == "own")
    said = own.text.replace("[X]", subject).replace("[Y]", object_)
    assert said == DIRECTED[relation, subject, object_]


def test_a_text_is_asked_once():
    chosen = relations.choose(TABLE, {"P36": 1}, 2)["P36"]
    assert len({w.text for w in chosen}) == 2  # our first template of P36 is LAMA's
    assert [w.kind for w in chosen] == ["lama", "own"]
    every = relations.choose(TABLE, dict.fromkeys(TABLE, 1))
    for relation, ws in every.items():
        assert len({w.text for w in ws}) == len(ws), relation
        assert {w.text for w in ws} == {w.text for w in TABLE[relation]}
        assert any(answer_is_last(w.text) for w in ws), relation
