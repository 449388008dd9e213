"""Names and settings of prompts in the config and the table of experiments; few imports."""

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

#: the name of a prompt file for all groups
ALL = "all"
#: maximum characters of the name of a prompt file: file systems allow 255 bytes
LONGEST = 200

#: prompts found by a search
SEARCHED = tuple(
    "searched searched_7 searched_balanced searched_words searched_reinitialised "
    "searched_embeddings".split()
)
#: trained classifiers
TRAINED = ("linear_probe", "finetuned", "relation_lstm")
#: prompts without training: one file for all those of a model and benchmark
WRITTEN = tuple(
    "majority constant manual lpaqa published initial_triggers random_triggers shuffled_triggers "
    "transferred demos demos_shuffled demos_other".split()
)
PROMPTS = (*SEARCHED, *TRAINED, *WRITTEN)
#: prompts that do not query a model's knowledge, or are controls that are meant to fail
NOT_ASKING = (
    "majority", "constant", *TRAINED, "initial_triggers", "random_triggers", "shuffled_triggers",
    "searched_reinitialised", "searched_embeddings", "demos_shuffled", "demos_other",
)  # fmt: skip
#: prompts derived from the searched ones of the same model
OF_SEARCHED = ("initial_triggers", "random_triggers", "shuffled_triggers")
#: method of an experiment -> its valid prompts
METHODS = {
    "predict": PROMPTS,
    "low_data": ("searched", "finetuned"),
    "grid": ("searched",),
}
#: decisions outside of the search by mode (docs/papers/autoprompt.md, Decisions); a value in the
#: config overrides the mode, unless it is null
POINTS = {
    # low-data curves: the criterion that selects a prompt
    "selection": {"default": "within", "paper": "full", "released": "full"},
    # perturbed contexts: one new object per fact, or per test sentence
    "perturbed": {"default": "fact", "paper": "fact", "released": "released"},
}
#: prefix of a benchmark's name -> its task, which has its own settings; all others ask for facts
TASKS = {
    "auto_re": "relation_extraction",
    "auto_sst2": "sst2",
    "auto_sick": "sick",
}


def task(benchmark: str) -> str:
    """Return facts, relation_extraction, sst2 or sick: the section of the settings of a search.

    >>> task("auto_sick_3way"), task("auto_lama_trex")
    ('sick', 'facts')
    """
    return next((t for start, t in TASKS.items() if benchmark.startswith(start)), "facts")


def section(config: Mapping[str, Any], benchmark: str, model: str) -> dict[str, Any]:
    """Merge the settings of a search for the task and, over them, the model's own for that task.

    `config` is the key `autoprompt`.
    """
    name = task(benchmark)
    overrides = config["models"].get(model, {}).get(name, {})
    return merge(config[name], overrides)


#: the search with few training examples (AutoPrompt, section 3)
FEW_EXAMPLES = {"candidates": 10, "accumulate": 1, "batch": 24, "iterations": 100, "restarts": 1}


def sweep(config: Mapping[str, Any], method: str, benchmark: str, model: str) -> dict[str, Any]:
    """Merge the settings of a search and, over them, those of the sweep (low_data or grid)."""
    below = {"settings": FEW_EXAMPLES} if method == "low_data" else {}
    settings = merge(merge(section(config, benchmark, model), below), config[method])
    if "selection" in settings:
        settings["selection"] = point("selection", settings["selection"], config["mode"])
    return settings


def point(name: str, given: str | None, mode: str) -> str:
    """Return the value of one of POINTS: the config's, or the mode's if the config has null.

    >>> point("selection", None, "released"), point("selection", "within", "released")
    ('full', 'within')
    """
    return POINTS[name][mode] if given is None else given


def merge(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `second` recursively into a copy of `first`.

    >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}})
    {'a': {'b': 1, 'c': 3}}
    """
    result = dict(first)
    for key, value in second.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return result


def problems(rows: list[dict[str, str]]) -> list[str]:
    """Return the validation errors of table rows about prompts: `line N: ...`."""
    messages = []
    for row in rows:
        method, prompt = row["method"], row["prompt"]
        legal = METHODS.get(method)
        if (legal is not None) != (row["paper"] == "autoprompt"):
            messages.append(
                f"line {row['_line']}: methods {', '.join(METHODS)} go with paper autoprompt, "
                f"and no other does; here {method!r} with {row['paper']!r}"
            )
        elif legal is not None and prompt not in legal:
            messages.append(
                f"line {row['_line']}: prompt {prompt!r} with method {method!r}; "
                f"valid: {', '.join(legal)}"
            )
    return messages


def file_of(group: str) -> str:
    """Return the name, without extension, of the prompt file of a group: a relation's id, which may
    be an IRI, with its reserved characters quoted and shortened to LONGEST.

    >>> file_of("P36"), file_of(""), file_of("http://a.org/in")
    ('P36', 'all', 'http%3A%2F%2Fa.org%2Fin')
    """
    name = quote(group, safe=" ") or ALL
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(group.encode()).hexdigest()[:16]
    return f"{name[: LONGEST - 17]}~{digest}"


def group_of(file: str, search: str) -> str:
    """Return the group of a prompt file, "" for all groups, by its name without extension and the
    name of its search, `task/group` or `task`.

    >>> group_of("all", "auto_own"), group_of("all", "auto_own/all")
    ('', 'all')
    """
    group = search.partition("/")[2]
    if file_of(group) == file:
        return group
    return "" if file == ALL else unquote(file)
