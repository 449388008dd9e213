"""The built-in templates of the tasks are valid for their model kinds."""

import pytest

from kgprobe.benchmarks.autoprompt import templates
from kgprobe.benchmarks.autoprompt.frames import TaskError
from kgprobe.templates import Template

FIELDS = {
    "facts": {"sub"},
    "relation_extraction": {"context", "sub"},
    "sst2": {"sentence"},
    "sick": {"prem", "hyp"},
}


@pytest.mark.parametrize("task", FIELDS)
@pytest.mark.parametrize("triggers", [1, 5])
def test_search_templates_parse_for_their_model_kinds(task, triggers):
    for kind, text in templates.search_templates(task, triggers).items():
        found = Template.parse(text, "masked" if kind == "roberta" else kind)
        assert found.triggers == triggers
        assert set(found.fields) == FIELDS[task]
    assert templates.TRUNCATE[task] in {"", *FIELDS[task]}


def test_manual_prompts_parse_for_their_kinds():
    for kind, text in templates.MANUAL_SST2.items():
        assert Template.parse(text, kind).triggers == 0
    for context in (False, True):
        made = templates.manual("The capital of [X] is [Y] .", context)
        for kind, text in made.items():
            found = Template.parse(text, "masked" if kind == "roberta" else kind)
            assert set(found.fields) == FIELDS["relation_extraction" if context else "facts"]


def test_the_causal_template_is_the_first_manual_one_ending_in_the_answer():
    rows = [
        {"relation": "P27", "index": "2", "kind": "manual", "text": "Citizenship of [X]: [Y]."},
        {"relation": "P27", "index": "0", "kind": "manual", "text": "[Y] is the land of [X]."},
        {"relation": "P27", "index": "1", "kind": "paraphrase", "text": "[X] is from [Y]."},
    ]
    assert templates.own_endings(rows) == {"P27": "Citizenship of [X]: [Y]."}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"relation": "P1", "template": "[X] and [X] in [Y]"}', "line 2"),
        ('{"relation": "P1", "template": "[X] and [X] in [Y]"}', "one [X] and one [Y]"),
        ('{"template": "[X] in [Y]"}', "line 2: relation is None, expected text"),
        ("[1]", "line 2: '[1]'; expected a JSON object"),
        ("{", "line 2: not JSON"),
    ],
)
def test_a_bad_template_file_is_reported_with_its_row(tmp_path, line, message):
    good = '{"relation": "P0", "template": "[X] in [Y]"}'
    (tmp_path / "relations.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(TaskError) as error:
        templates.read_templates(tmp_path / "relations.jsonl")
    assert message in str(error.value)
    assert "relations.jsonl" in str(error.value)
