"""`make mutate`: check that tests detect every small change of code that affects a number.

    python -m tests.mutation [metrics] [attributes] [--only TEXT] [--jobs N] [--list]
    python -m tests.mutation --draw 40 --seed 1     for the whole package: see drawn.py

Tests are collected once; every mutant is a forked process in which the changed module's code
replaces the loaded code, and which runs the tests that reach the changed line until one fails.
Outcomes are stored in results/mutation, so that a stopped run resumes; a changed source or test
file restarts it, with the test that failed last time first. tests/mutants.tsv lists the survivors
with reasons: an unlisted survivor, or a listed mutant that is now detected, fails the run.
"""

import argparse
import hashlib
import importlib
import os
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    # before anything reads them
    os.environ |= {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "TQDM_DISABLE": "1"}

import hypothesis
import pytest

from tests.mutation import drawn, survivors
from tests.mutation.changes import Mutant, mutants
from tests.mutation.trial import Trials

ROOT = Path(__file__).parents[2]
SOURCE, KEPT = ROOT / "src" / "kgprobe", ROOT / "results" / "mutation"
#: group -> (modules, test files that may detect mutants)
GROUPS = {
    "metrics": (
        ["metrics/attributes", "metrics/bootstrap", "metrics/cloze", "metrics/intervals",
         "metrics/matching", "metrics/prompts", "metrics/ranking"],
        ["test_metrics_attributes", "test_bootstrap", "test_metrics_cloze", "test_metrics_prompts",
         "test_intervals", "test_matching", "test_ranking"],
    ),
    "attributes": (
        [f"benchmarks/attributes/{name}" for name in (
            "symmetry", "asymmetry", "bidirectional", "hierarchy", "composite", "paths",
            "entity_centric", "bias", "ambiguous", "amber", "chains", "checks", "construct",
            "examples",
        )] + ["knowledge/graph", "knowledge/engine"],
        ["test_attributes_worked", "test_attributes_input", "test_attributes_checks",
         "test_attributes_sampling", "test_attributes_limits", "test_label_templates",
         "test_attributes_brute"],
    ),
}  # fmt: skip


def fingerprint(tests: list[str]) -> str:
    """Return a hash of all files of the package, of the tests of a group and of their helpers."""
    folder = ROOT / "tests" / "unit"
    helpers = {path for path in folder.glob("*.py") if not path.name.startswith("test_")}
    files = {*SOURCE.rglob("*.py"), *helpers, *(folder / f"{name}.py" for name in tests)}
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def tried(group: str, only: str, jobs: int, budget: float) -> tuple[list[Mutant], dict[str, str]]:
    """Return the mutants of a group, and the detecting test by key ("" for none)."""
    modules, tests = GROUPS[group]
    every = []
    for name in modules:
        tree, own = mutants(SOURCE / f"{name}.py", f"{name}.py")
        module = "kgprobe." + name.replace("/", ".")
        every += [(mutant, module, tree) for mutant in own if only in "\t".join(mutant.key)]
    hypothesis.settings.register_profile(
        "mutation", database=None, derandomize=True, deadline=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    )  # fmt: skip
    hypothesis.settings.load_profile("mutation")
    for name in modules:
        importlib.import_module("kgprobe." + name.replace("/", "."))
    # a subset of mutants has a separate folder: reached lines were traced for that subset only
    kept = KEPT / (f"{group} only {only.replace('/', '.')}" if only else group)
    trials = Trials(every, kept, fingerprint(tests), jobs, budget)
    files = [str(ROOT / "tests" / "unit" / f"{name}.py") for name in tests]
    code = pytest.main(
        ["-q", "-s", "-p", "no:cacheprovider", "-W", "ignore", *files], plugins=[trials]
    )
    if trials.outcome is None:
        sys.exit(f"{group}: the tests could not be tried (pytest: {code})")
    return [mutant for mutant, _, _ in every], trials.outcome


def main() -> int:
    """Test the groups and compare the survivors with the list."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS], default=[])
    parser.add_argument("--only", default="", help="mutants whose line in the list holds this text")
    parser.add_argument("--jobs", type=int, default=0, help="at once; else all cores, or 2")
    parser.add_argument("--budget", type=float, default=60, help="most seconds of tests a mutant")
    parser.add_argument("--list", action="store_true", help="print the survivors without reason")
    parser.add_argument("--draw", type=int, help="so many mutants of the whole package")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--tests", nargs="+", default=[], help="with --draw: these tests only")
    parsed = parser.parse_args()
    if parsed.draw:
        parsed.jobs = parsed.jobs or 2
        return drawn.run(parsed)
    parsed.jobs = parsed.jobs or os.cpu_count() or 1
    if len(parsed.groups) != 1:
        # pytest can be used once in a process
        options = sys.argv[1 + len(parsed.groups) :]
        start = [sys.executable, "-m", "tests.mutation"]
        return max(subprocess.call([*start, g, *options]) for g in parsed.groups or GROUPS)
    every, outcome = tried(parsed.groups[0], parsed.only, parsed.jobs, parsed.budget)
    return survivors.report(ROOT / "tests" / "mutants.tsv", every, outcome, parsed.list)


if __name__ == "__main__":
    sys.exit(main())
