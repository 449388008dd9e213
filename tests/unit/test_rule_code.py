"""Rules name every module of the package that their numbers come from."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "kgprobe"
RULES = "\n".join(
    (ROOT / "workflow" / "rules" / f"{stage}.smk").read_text()
    for stage in ("models", "probes", "prompts")
)
COMMON = "\n".join(
    path.read_text() for path in sorted((ROOT / "workflow" / "rules").glob("common*.smk"))
)
#: rule -> the modules that its script calls
CALLED = {
    "score": ["probes/answers"],
    "rank": ["probes/ranks"],
    "train_soft": ["probes/soft_memory"],
    "rank_soft": ["probes/soft_memory"],
    "reason": ["probes/reasoned", "probes/soft_memory"],
    "fill": ["probes/fills"],
    "choose": ["probes/choices", "probes/fills"],
    "train_control": ["probes/models/control", "probes/taught"],
    "unpack_model": ["probes/models/unpack"],
    "search_prompts": ["probes/searched", "probes/prompt_tasks"],
    "predict": ["probes/prompt_answers", "probes/prompt_tasks"],
    "train_baseline": ["probes/prompt_trained", "probes/prompt_tasks"],
    "sweep": ["probes/prompt_sweeps", "probes/searched", "probes/prompt_tasks"],
}


def imported(module: str) -> set[str]:
    """Modules of the probe stage that a module imports, as paths without ending."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("kgprobe."):
            continue
        base = (node.module or "").removeprefix("kgprobe.").replace(".", "/")
        for path in (base, *(f"{base}/{name.name}" for name in node.names)):
            if path.startswith("probes/") and (PACKAGE / f"{path}.py").is_file():
                found.add(path)
    return found


def reached(modules: list[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imported(module)
    return found


def named(rule: str) -> set[str]:
    """Modules in the rule's `code`, of the lists and functions that it unpacks, its prompt's."""
    block = re.split(rf"^rule {rule}:$", RULES, flags=re.MULTILINE)[1].split("    output:")[0]
    for constant in re.findall(r"\*([A-Z_]+)", block):
        literal = re.search(rf"^{constant} = [\[{{].*?^[\]}}]$", RULES, re.MULTILINE | re.DOTALL)
        assert literal, constant
        block += literal[0]
    for function in re.findall(r"\*(\w+)\(", block):
        body = re.search(rf"^def {function}\(.*?(?=^\S)", COMMON, re.MULTILINE | re.DOTALL)
        assert body, function
        block += body[0]
    block = block.replace("probes/prompts/{w.prompt}", "probes/prompts/templates")
    return set(re.findall(r'"(probes/[\w/]+)"', block))


@pytest.mark.parametrize("rule", CALLED)
def test_every_module_behind_the_numbers_is_an_input(rule):
    assert reached(CALLED[rule]) - named(rule) == set()


@pytest.mark.parametrize("rule", CALLED)
def test_every_named_module_exists(rule):
    assert [m for m in named(rule) if not (PACKAGE / f"{m}.py").is_file()] == []
