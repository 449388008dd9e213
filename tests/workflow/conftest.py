"""One warm process for all plans of a worker."""

from collections.abc import Iterator

import pytest

from tests.workflow.plans import Planner
from tests.workflow.project import Project


@pytest.fixture(scope="session")
def planner() -> Iterator[Planner]:
    """Plans dry runs."""
    made = Planner(Project.environment())
    yield made
    made.close()
