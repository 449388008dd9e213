"""Mutants of the whole package, sampled by seed, each run with the gate's tests that reach it.

    python -m tests.mutation --draw 40 --seed 1 [--jobs N] [--only TEXT] [--tests PATH ...]

Every mutant of src/kgprobe has the same probability. In a copy of the project each sampled
statement appends its mutant's number and the current test to a file, also in processes that tests
start; the gate runs there once. A statement outside of functions counts as reached by tests that
run a function of its module and by the test files that import it. Then one pytest for each mutant
runs the tests that reach it, cheap files first, then the others of those files, which may use a
fixture's results; the tests of tests/mini share one run, so that all of them reach what one does.
(Effects of one file's tests through a cache on another's are not detected.) The first failure or a
timeout counts as detected. Tests that fail without a change are reported and left out.

Outcomes are in results/mutation/drawn-SEED.jsonl and valid for the same files and options. The run
fails if more than one mutant in ten survives without a reason in tests/mutants.tsv. pytest also
loads this file as a plug-in, which selects the tests and writes their outcomes.
"""

import ast
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import survivors
from tests.mutation.changes import Mutant, mutants

ROOT = Path(__file__).parents[2]
PACKAGE, FOLDER, MINI = "src/kgprobe", "KGPROBE_DRAWN", "tests/mini"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: code that every process of the instrumented copy runs first
SITE = """
import os, sys
seen = set()
def reached(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if (number, test) not in seen:
        seen.add((number, test))
        with open(FILE, "a") as file:
            file.write(f"{number}\\t{test}\\n")
sys.reached = reached
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests of the list, in its order; without a list, all."""
    kept = Path(os.environ[FOLDER]) / "tests.json"
    if kept.is_file():
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[test] for test in json.loads(kept.read_text()) if test in by_name]


def pytest_runtest_logreport(report: Any) -> None:
    """Write the outcome of a test's phase (or of the import of a file)."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        row = [report.nodeid, report.outcome, getattr(report, "duration", 0)]
        with (Path(os.environ[FOLDER]) / "reports.jsonl").open("a") as out:
            out.write(json.dumps(row) + "\n")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that cannot be imported as failed."""
    if report.failed:
        pytest_runtest_logreport(report)


def changed(text: str, mutant: Mutant) -> str:
    """Return the text of a module with a mutant's change, the rest unchanged."""
    node, lines = mutant.node, text.encode().split(b"\n")
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    with mutant.made():
        new = ast.unparse(node).encode()
    new = b"(" + new + b")" if isinstance(node, ast.expr) else new
    new = lines[first][: node.col_offset] + new + lines[last][node.end_col_offset :]
    return b"\n".join([*lines[:first], new, *lines[last + 1 :]]).decode()


def holders(text: str, mutant: Mutant) -> tuple[list[Any], list[Any]]:
    """Return the statements that hold a mutant: those outside its function, then those inside."""
    every = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    line = mutant.lines.start
    found = [node for node in every if node.lineno <= line <= (node.end_lineno or 0)]
    inner = max((i for i, n in enumerate(found) if isinstance(n, FUNCTIONS)), default=len(found))
    return found[:inner], found[inner:]


def spots(text: str, mutant: Mutant) -> Iterator[tuple[int, int]]:
    """Return (line, indent) of where to record that a mutant's statement is reached."""
    (outer, inner), lines = holders(text, mutant), text.split("\n")
    functions = inner[:1] or [n for n in ast.walk(ast.parse(text)) if isinstance(n, FUNCTIONS)]
    for node in reversed(inner[1:]) if inner else outer[:1]:
        start = lines[node.lineno - 1]
        if not start[: node.col_offset].strip() and not start.lstrip().startswith("elif"):
            decorators = [one.lineno for one in getattr(node, "decorator_list", [])]
            yield min([node.lineno, *decorators]), node.col_offset
            if inner:
                return
    for function in functions:
        first = function.body[0]
        if first.lineno > function.lineno:
            # after its docstring
            after = first.end_lineno + 1 if ast.get_docstring(function) is not None else 0
            decorators = [one.lineno for one in getattr(first, "decorator_list", [])]
            yield after or min([first.lineno, *decorators]), first.col_offset


def marked(text: str, numbered: Mapping[int, Mutant]) -> str:
    """Return the text of a module that records which mutants' statements are reached."""
    calls = defaultdict(list)
    for number, mutant in numbered.items():
        for spot in spots(text, mutant):
            # a no-op call if SITE is not on the path
            calls[spot].append(f"getattr(__import__('sys'), 'reached', int)({number})")
    lines = text.split("\n")
    for (line, indent), own in sorted(calls.items(), reverse=True):
        lines.insert(line - 1, " " * indent + "; ".join(own))
    return "\n".join(lines)


class Copy:
    """A copy of the working tree (tracked files, and new ones that are not ignored), for pytest."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.beside = folder, folder.with_name(f"{folder.name}.out")
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            # git treats a link to a folder as a file
            if (ROOT / name).is_file() or (ROOT / name).is_symlink():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)

    def write(self, file: str, text: str) -> None:
        """Write a module's text and delete compiled files, which know only size and second."""
        path = self.folder / PACKAGE / file
        path.write_text(text)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def begin(self, *options: str, tests: list[str] | None = None) -> None:
        """Start pytest with these tests."""
        shutil.rmtree(self.beside, ignore_errors=True)
        self.beside.mkdir()
        if tests is not None:
            (self.beside / "tests.json").write_text(json.dumps(tests))
        data = os.environ.get("KGPROBE_DATA") or ROOT / "../shared/data"
        known = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder}",
            "KGPROBE_DATA": str(Path(data).resolve()), FOLDER: str(self.beside),
        }  # fmt: skip
        # set for the forks of the other mode only
        known = {k: v for k, v in known.items() if k not in ("POLARS_MAX_THREADS", "TQDM_DISABLE")}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not nightly and not timing",
                   "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "tests.mutation.drawn",
                   # a busy machine is slower; a mutant has a separate time limit
                   "--timeout", "300", "--basetemp", str(self.beside / "tmp"), *options,
                   *sorted({test.partition("::")[0] for test in tests or []})]  # fmt: skip
        with (self.beside / "output").open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=known, stdout=out, stderr=out, start_new_session=True
            )

    def end(self) -> None:
        """End pytest and what its tests started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def reports(self) -> list[tuple[str, str, float]]:
        """Return (test, outcome, seconds) of every phase of the tests that ran last."""
        kept = self.beside / "reports.jsonl"
        return list(map(json.loads, kept.read_text().splitlines())) if kept.is_file() else []

    def passing(self, *options: str, tests: list[str] | None = None) -> tuple[Counter, list[str]]:
        """Return the seconds of passing tests, and the failing tests."""
        self.begin(*options, tests=tests)
        try:
            code = self.process.wait()
        finally:
            self.end()
        if code not in (0, 1):
            sys.exit(f"the tests could not be run:\n{(self.beside / 'output').read_text()[-3000:]}")
        seconds: Counter[str] = Counter()
        ends: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
        for test, outcome, took in self.reports():
            seconds[test] += took
            ends[outcome].add(test)
        for test in ends["failed"] | ends["skipped"]:
            del seconds[test]
        return seconds, sorted(ends["failed"])


def reaching(copy: Copy, drawn: list[Mutant], told: Namespace) -> dict[str, Any]:
    """Return passing tests with seconds, and for each mutant (in order) those that reach it."""
    log, package = copy.folder.with_name("reached"), copy.folder / PACKAGE
    log.touch()
    texts = {mutant.file: (package / mutant.file).read_text() for mutant in drawn}
    sites = [copy.folder / "sitecustomize.py", copy.folder / "src/sitecustomize.py"]
    for site in sites:
        site.write_text(SITE.replace("FILE", repr(str(log))))
    for file, text in texts.items():
        copy.write(file, marked(text, {i: m for i, m in enumerate(drawn) if m.file == file}))
    dealt = ["-n", str(told.jobs), "--dist", "loadfile", "--no-loadscope-reorder"]
    seconds, failed = copy.passing(*dealt, *told.tests)
    for site in sites:
        site.unlink()
    for file, text in texts.items():
        copy.write(file, text)
    if failed:
        # some tests read the source, which is restored
        more, failed = copy.passing(tests=failed)
        seconds |= more
    reached: dict[int, set[str]] = {i: set() for i in range(len(drawn))}
    for line in log.read_text().splitlines():
        number, _, test = line.partition("\t")
        reached[int(number)].add(test)
    for mutant, tests in zip(drawn, reached.values(), strict=True):
        if not holders(texts[mutant.file], mutant)[1]:
            files = importers(copy.folder, mutant.file)
            tests |= {test for test in seconds if test.partition("::")[0] in files}
        tests |= {
            t for t in seconds if t.startswith(MINI) and any(o.startswith(MINI) for o in tests)
        }
    every = [sorted(tests & seconds.keys()) for tests in reached.values()]
    return {"seconds": seconds, "failed": failed, "reached": every}


def importers(folder: Path, file: str) -> set[str]:
    """Return the test files that import a module."""
    module = "kgprobe." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    found = set()
    for path in (folder / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in getattr(node, "names", []) if isinstance(a, ast.alias)]
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}", *(f"{node.module}.{name}" for name in names)]
            if module in names:
                found.add(str(path.relative_to(folder)))
    return found


def order(reached: list[str], seconds: Mapping[str, float]) -> list[str]:
    """Order tests: those that reach it, cheap files first; the rest of their files; mini last."""
    costs: Counter[str] = Counter()
    for test in reached:
        costs[test.partition("::")[0]] += seconds[test]

    def key(test: str) -> tuple[bool, bool, float, str, float]:
        file = test.partition("::")[0]
        return file.startswith(MINI), test not in reached, costs[file], file, seconds[test]

    return sorted((test for test in seconds if test.partition("::")[0] in costs), key=key)


def noticed(
    waiting: list[Mutant], tests: Mapping[Mutant, list[str]], seconds: Mapping, copies: list[Copy]
) -> Iterator[tuple[Mutant, str]]:
    """Yield (mutant, detecting test or "") as they end, one at a time in each copy."""
    running: dict[Copy, tuple[Mutant, str, float]] = {}
    try:
        while waiting or running:
            for copy in [copy for copy in copies if copy not in running][: len(waiting)]:
                mutant = waiting.pop(0)
                text = (copy.folder / PACKAGE / mutant.file).read_text()
                copy.write(mutant.file, changed(text, mutant))
                own = order(tests[mutant], seconds)
                copy.begin("-x", tests=own)
                latest = time.monotonic() + 120 + 3 * sum(seconds[test] for test in own)
                running[copy] = mutant, text, latest
            time.sleep(0.1)
            for copy, (mutant, text, latest) in list(running.items()):
                code = copy.process.poll()
                if code is None and time.monotonic() < latest:
                    continue
                copy.end()
                del running[copy]
                copy.write(mutant.file, text)
                if code == 5:
                    raise RuntimeError(f"{mutant.key}: none of {tests[mutant]} ran")
                failed = [test for test, outcome, _ in copy.reports() if outcome == "failed"]
                ended = "the limit of its time" if code is None else f"pytest, which ended: {code}"
                yield mutant, failed[0] if failed else ended if code != 0 else ""
    finally:
        for copy in running:
            copy.end()


def run(told: Namespace) -> int:
    """Sample mutants, run the tests and print the table."""
    # processes of tests end with the run
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    every: list[Mutant] = []
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        every += mutants(path, path.relative_to(ROOT / PACKAGE).as_posix())[1]
    every = [mutant for mutant in every if told.only in "\t".join(mutant.key)]
    drawn = random.Random(told.seed).sample(every, min(told.draw, len(every)))
    folder = ROOT / "results" / "mutation"
    folder.mkdir(parents=True, exist_ok=True)
    kept, traced = folder / f"drawn-{told.seed}.jsonl", folder / f"drawn-{told.seed}-reached.json"
    with tempfile.TemporaryDirectory(prefix="drawn-") as temporary:
        copies = [Copy(Path(temporary) / str(i)) for i in range(told.jobs)]
        digest = hashlib.blake2b(repr((told.draw, told.only, told.tests)).encode(), digest_size=8)
        for path in sorted(path for path in copies[0].folder.rglob("*") if path.is_file()):
            digest.update(path.read_bytes() if path.name != "mutants.tsv" else b"")
        same = digest.hexdigest()
        found = json.loads(traced.read_text()) if traced.is_file() else {}
        if found.get("for") != same:
            print(f"{len(drawn)} of {len(every)} mutants; running the tests once ...", flush=True)
            found = {"for": same, **reaching(copies[0], drawn, told)}
            traced.write_text(json.dumps(found))
        for test in found["failed"]:
            print(f"left out, fails without a change: {test}")
        tests = dict(zip(drawn, found["reached"], strict=True))
        rows = map(json.loads, kept.read_text().splitlines() if kept.is_file() else [])
        done = {row["key"]: row["by"] for row in rows if row["for"] == same}
        done |= {"\t".join(mutant.key): "" for mutant in drawn if not tests[mutant]}
        waiting = [mutant for mutant in drawn if "\t".join(mutant.key) not in done]
        with kept.open("a") as out:
            for mutant, by in noticed(waiting, tests, found["seconds"], copies):
                key = "\t".join(mutant.key)
                done[key] = by
                out.write(json.dumps({"key": key, "by": by, "for": same}) + "\n")
                out.flush()
                print(f"{len(done)}/{len(drawn)} {key}: {by or 'SURVIVES'}", flush=True)
    return report(survivors.read(ROOT / "tests/mutants.tsv"), tests, done)


def report(
    listed: Mapping[tuple[str, ...], str],
    tests: Mapping[Mutant, list[str]],
    done: Mapping[str, str],
) -> int:
    """Print table and counts; return 1 if more than one in ten survives without a reason."""
    alive = [mutant.key for mutant in tests if not done["\t".join(mutant.key)]]
    for mutant, own in tests.items():
        reason = listed.get(mutant.key) or f"reached by {len(own)} tests"
        if own and all(test.startswith(MINI) for test in own):
            reason = "only tests/mini reaches it: tried with all of its tests"
        by = done["\t".join(mutant.key)]
        where = f"{PACKAGE}/{mutant.file}:{mutant.node.lineno}"
        print(where, mutant.function, mutant.change, by or "SURVIVES", reason, sep="\t")
    new = [key for key in alive if key not in listed]
    if new:
        print("\nsurvive and are not in tests/mutants.tsv:", *map("\t".join, new), sep="\n")
    print(f"\n{len(tests)} mutants, {len(tests) - len(alive)} noticed, {len(alive)} survive")
    return int(10 * len(new) > len(tests))
