"""What a run of the tests says at its end: how many used real data, and what was skipped and why.

With KGPROBE_SKIPS=named (.ci/run sets it) a skip that is not named below fails the run.
"""

import os
from collections import Counter

import pytest

#: How the reason of a skip begins -> why a machine that tests everything may still lack it.
NAMED = {
    "mounting a small file system needs root": "a machine may run its tests as another user",
    "the extra gemma is not installed": "its weights have terms of use that a person accepts",
    "no published figures beside the data": "they belong to the notes, not to the data",
}


def reasons(reporter: pytest.TerminalReporter) -> Counter[str]:
    """Reason -> skipped tests (or modules); the reports of a run that is over."""
    found: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found[told.removeprefix("Skipped: ")] += 1
    return found


def unnamed(found: Counter[str]) -> list[str]:
    """Reasons that fail the run; none where skips are free."""
    if os.environ.get("KGPROBE_SKIPS") != "named":
        return []
    return sorted(reason for reason in found if not reason.startswith(tuple(NAMED)))


class Summary:
    """The closing lines, below pytest's own summary, and the exit status."""

    def __init__(self) -> None:
        self.real = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the `real` tests that ran."""
        if report.when == "call" and report.passed and ("real", True) in report.user_properties:
            self.real += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A skip that is not named is a failure."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:  # one of several processes, whose reports come together elsewhere
            return
        if session.exitstatus == pytest.ExitCode.OK and unnamed(reasons(reporter)):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter):
        """After everything else, so that it stands in the last lines."""
        result = yield
        found = reasons(terminalreporter)
        wrong = unnamed(found)
        say = terminalreporter.write_line
        say(f"tests on real data that ran and passed: {self.real}")
        say(f"tests that were skipped: {found.total()}")
        for reason, count in found.most_common():
            say(f"{count:>6}  {reason}", red=reason in wrong)
        if wrong:
            say(
                f"FAILED: {len(wrong)} of these reasons are not named in tests/skips.py; install "
                "what is missing, or name the reason there with its why",
                red=True,
            )
        return result
