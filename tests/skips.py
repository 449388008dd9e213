"""The summary of a test run: number of tests on real data, tests not run and how to run them."""

from collections import Counter
from typing import Any

import pytest


def reasons(reporter: pytest.TerminalReporter) -> Counter[str]:
    """Map each reason to skipped tests (or modules) from the reports of a finished run."""
    counted: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        counted[reason.removeprefix("Skipped: ")] += 1
    return counted


def tests(count: int) -> str:
    """Return a number of tests as text."""
    return f"{count} test{'s' * (count != 1)}"


class Summary:
    """The final lines, below pytest's own summary."""

    def __init__(self) -> None:
        self.real = self.nightly = 0

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count the tests that `-m "not nightly"` leaves to the other tier."""
        self.nightly += sum(
            any(item.iter_markers("nightly")) or any(item.iter_markers("timing")) for item in items
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the `real` tests that ran."""
        if report.when == "call" and report.passed and ("real", True) in report.user_properties:
            self.real += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send a worker's count, which equals that of every other worker."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["nightly"] = self.nightly

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Receive a worker's count."""
        self.nightly = max(self.nightly, getattr(node, "workeroutput", {}).get("nightly", 0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter):
        """Print after everything else, so that these are the last lines."""
        result = yield
        say = terminalreporter.write_line
        say(f"tests on real data that ran and passed: {self.real}")
        if self.nightly:
            say(f"not tried: {tests(self.nightly)} of the nightly tier (`make test-all`)")
        for reason, count in reasons(terminalreporter).most_common():
            say(f"not tried: {tests(count)}: {reason}")
        return result
