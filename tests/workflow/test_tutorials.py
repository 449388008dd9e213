"""All commands of each tutorial are run, and their output is compared with the page."""

import pytest

from tests.unit.screens import check_screens, prepare
from tests.workflow.project import ROOT, Project

pytestmark = pytest.mark.nightly(
    gate="unit/test_first_minutes.py::test_a_screen_that_is_another_or_missing_fails"
)


@pytest.mark.parametrize(("page", "commands"), [("your_model", 5), ("dump", 4), ("paper", 1)])
def test_the_commands_of_a_tutorial_give_its_output(page, commands, tmp_path):
    """The tutorial on user-supplied graphs is run in tests/workflow/test_own_graph.py."""
    folder = Project(tmp_path).folder
    text = (ROOT / f"docs/tutorials/{page}.md").read_text()
    prepare(text, folder)
    assert check_screens(text, folder) == commands


def test_the_tests_of_a_method_pass():
    assert check_screens((ROOT / "docs/tutorials/method.md").read_text(), ROOT) == 1
