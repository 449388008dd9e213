"""Runs of mutants one by one, each in a forked process, with tests that are collected once."""

import ast
import functools
import json
import os
import resource
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from tqdm import tqdm

from tests.mutation.changes import Mutant

Trial = tuple[Mutant, str, ast.Module]


def install(name: str, tree: ast.Module) -> None:
    """Replace the loaded module's code by that of a changed tree, wherever it is used."""
    module = sys.modules[name]
    fresh = types.ModuleType(name)
    fresh.__dict__.update(__file__=module.__file__, __package__=module.__package__)
    exec(compile(tree, str(module.__file__), "exec"), fresh.__dict__)
    for key, new in vars(fresh).items():
        old = vars(module).get(key)
        if old is new or key.startswith("__"):
            continue
        if isinstance(new, type):
            for attribute, value in vars(new).items():
                _replace(vars(old).get(attribute), value)
        elif not _replace(old, new):
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(key) is old:
                    setattr(other, key, new)


def _replace(old: Any, new: Any) -> bool:
    """Replace the code of a function, method or property; return False for anything else."""
    old, new = (_plain(one) for one in (old, new))
    if not (isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType)):
        return False
    old.__code__, old.__defaults__ = new.__code__, new.__defaults__
    old.__kwdefaults__ = new.__kwdefaults__
    return True


def _plain(one: Any) -> Any:
    if isinstance(one, property):
        return one.fget
    if isinstance(one, functools.cached_property):
        return one.func
    return getattr(one, "__func__", None) or getattr(one, "__wrapped__", one)


class Trials:
    """A pytest plugin that runs the tests once to record reached lines, then every mutant."""

    def __init__(
        self, trials: Sequence[Trial], folder: Path, fingerprint: str, jobs: int, budget: float
    ) -> None:
        self.trials, self.folder, self.jobs, self.budget = trials, folder, jobs, budget
        self.fingerprint = fingerprint
        self.outcome: dict[str, str] | None = None
        self.kills: Counter[tuple[str, str]] = Counter()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants instead of the tests."""
        if session.testsfailed or _workers():
            raise pytest.UsageError(f"no fork beside threads at work: {_workers()}")
        self.folder.mkdir(parents=True, exist_ok=True)
        items = {item.nodeid: item for item in session.items}
        self.outcome = self._run(items, self._reached(items))
        return True

    def _reached(self, items: dict[str, pytest.Item]) -> dict[str, Any]:
        """Return seconds and {file: lines} by test of a traced run, cached by sources."""
        kept = self.folder / "reached.json"
        if kept.is_file() and (found := json.loads(kept.read_text()))["for"] == self.fingerprint:
            return found["tests"]
        print(f"tracing {len(items)} tests ...", flush=True)
        reached_by: dict[str, Any] = {}
        # each in a separate process, because caches shared between tests would hide reached lines
        for item in tqdm(items.values(), disable=False, mininterval=5):
            part = self.folder / "part.json"
            part.unlink(missing_ok=True)
            child = os.fork()
            if not child:
                _leave(lambda item=item, part=part: _trace(item, self._files(), part))
            if os.waitpid(child, 0)[1]:
                raise pytest.UsageError(f"{item.nodeid} fails without any change; see make test")
            reached_by[item.nodeid] = json.loads(part.read_text())
        kept.write_text(json.dumps({"for": self.fingerprint, "tests": reached_by}))
        return reached_by

    def _files(self) -> set[str]:
        return {str(sys.modules[name].__file__) for _, name, _ in self.trials}

    def _run(self, items: dict[str, pytest.Item], reached: dict[str, Any]) -> dict[str, str]:
        kept = self.folder / "outcome.jsonl"
        lines = (
            [json.loads(line) for line in kept.read_text().splitlines()] if kept.is_file() else []
        )
        done = {row["key"]: row["by"] for row in lines if row["for"] == self.fingerprint}
        hints = {row["key"]: row["by"] for row in lines if row["by"]}
        waiting = [t for t in self.trials if "\t".join(t[0].key) not in done]
        running: dict[int, Trial] = {}
        started = time.monotonic()
        with kept.open("a") as out, tqdm(total=len(waiting), disable=False, mininterval=5) as bar:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    trial = waiting.pop(0)
                    running[self._fork(trial, items, reached, hints)] = trial
                child, status = os.wait()
                if child not in running:
                    continue
                mutant = running.pop(child)[0]
                key, by = "\t".join(mutant.key), self._by(child, status)
                self.kills[mutant.file, by] += 1
                self.kills[mutant.function, by] += 4
                done[key] = by
                out.write(json.dumps({"key": key, "by": by, "for": self.fingerprint}) + "\n")
                out.flush()
                bar.update()
                bar.set_postfix_str(f"{sum(not b for b in done.values())} survive", refresh=False)
        print(f"{len(self.trials)} mutants in {time.monotonic() - started:.0f} s")
        return {"\t".join(t[0].key): done["\t".join(t[0].key)] for t in self.trials}

    def _by(self, child: int, status: int) -> str:
        """Return the detecting test, or how the process ended; "" if all tests passed."""
        outcome = self.folder / f"by-{child}"
        by = outcome.read_text() if outcome.is_file() else ""
        outcome.unlink(missing_ok=True)
        return by or (f"ended with {status}" if status else "")

    def _fork(
        self, trial: Trial, items: dict[str, pytest.Item], reached: dict[str, Any], hints: dict
    ) -> int:
        mutant, name, tree = trial
        order = self._order(mutant, str(sys.modules[name].__file__), reached, hints)
        child = os.fork()
        if child:
            return child
        outcome = self.folder / f"by-{os.getpid()}"
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)

        def work() -> None:
            try:
                with mutant.made():
                    install(name, tree)
            except Exception as error:
                outcome.write_text(f"{type(error).__name__} on import")
                return
            for test in _failing([(items[test], reached[test]["seconds"]) for test in order]):
                outcome.write_text(test)
                return

        _leave(work)
        raise AssertionError

    def _order(
        self, mutant: Mutant, file: str, reached: dict[str, Any], hints: dict[str, str]
    ) -> list[str]:
        """Return tests that reach it: the last detecting one, then quick and effective ones."""
        whole = mutant.function == ""
        wanted = set(mutant.lines)
        tests = [
            test
            for test, trace in reached.items()
            if (lines := trace["lines"].get(file)) and (whole or wanted & set(lines))
        ]
        hint = hints.get("\t".join(mutant.key))

        def cost(test: str) -> tuple[bool, float]:
            worth = 1 + self.kills[mutant.file, test] + self.kills[mutant.function, test]
            return test != hint, (0.01 + reached[test]["seconds"]) / worth

        tests.sort(key=cost)
        spent = list(accumulate(reached[test]["seconds"] for test in tests))
        return [test for test, seconds in zip(tests, spent, strict=True) if seconds <= self.budget]


def _workers() -> list[str]:
    """Count threads that a fork would lose, without the memory threads of polars."""
    tasks = Path("/proc/self/task")
    names = [(task / "comm").read_text().strip() for task in tasks.iterdir() if tasks.is_dir()]
    return [n for n in names[1:] if n not in ("jemalloc_bg_thd", "polars-ooc-clea")]


def _failing(tests: Sequence[tuple[pytest.Item, float]]) -> Iterator[str]:
    """Yield failing tests one by one; one that takes much longer than before ends the process."""
    items = [item for item, _ in tests]
    # no item at all: the line is never reached
    for (item, seconds), after in zip(tests, [*items, None][1:], strict=True):
        most = int(time.process_time() + 5 + 2 * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        reports = runtestprotocol(item, log=False, nextitem=after)
        if any(report.failed for report in reports):
            yield item.nodeid


def _trace(item: pytest.Item, files: set[str], kept: Path) -> None:
    """Write the seconds and the reached lines of a test; raise if it fails."""
    lines: dict[str, set[int]] = {}

    def local(frame: types.FrameType, event: str, _: Any) -> Any:
        lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return local

    def globally(frame: types.FrameType, event: str, arg: Any) -> Any:
        return local(frame, event, arg) if frame.f_code.co_filename in files else None

    start = time.process_time()
    sys.settrace(globally)
    reports = runtestprotocol(item, log=False, nextitem=None)
    sys.settrace(None)
    if any(report.failed for report in reports):
        raise AssertionError(item.nodeid)
    seconds = time.process_time() - start
    reached = {file: sorted(own) for file, own in lines.items()}
    kept.write_text(json.dumps({"seconds": seconds, "lines": reached}))


def _leave(work: Any) -> None:
    """Do the work of a forked process and end it in any case."""
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
