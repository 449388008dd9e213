"""Everything that a model is asked, as parts of two stages: `prompts` are searched or trained with
the model, `probes` are answered by it."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from kgprobe.probes import prompt_settings
from kgprobe.settings.benchmarks import ATTRIBUTES
from kgprobe.workflow import prompts
from kgprobe.workflow.answers import answer_files, beside, has_form, method_of
from kgprobe.workflow.attributes import graph_facts
from kgprobe.workflow.ontoprobe import memorized_rows, schemes_of
from kgprobe.workflow.run import Row, Run, switches

#: methods of the first stage
PREPARED = ("soft_prompts", "searched", "trained", "sweep")
#: model -> its published searched prompts (AutoPrompt, released code), in LAMA's folder
PUBLISHED = {
    "bert-base-cased": "fact_retrieval_bert_prompts.jsonl",
    "roberta-large": "fact_retrieval_roberta_prompts.jsonl",
}
#: (file or files by name, settings by name)
Asked = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class PlannedPart:
    """The work that a row requires, as plain values; rows may share a part. `prompt`: a folder."""

    method: str
    benchmark: str
    prompt: str
    input: dict[str, str | list[str]]
    output: dict[str, str]
    settings: dict[str, Any]


def part_of(run: Run, row: Row) -> PlannedPart:
    """Return the part that a row requires."""
    method = method_of(row)
    prompt = "prompts" if method.endswith("predict") else row["prompt"]
    files, known = _method_inputs(run, row)
    return PlannedPart(method, row["benchmark"], prompt, files, answer_files(row), known)


def stages(run: Run) -> dict[tuple[str, str], list[PlannedPart]]:
    """Return (stage, model) -> the distinct parts of that stage for the model."""
    grouped: dict[tuple[str, str], dict[str, PlannedPart]] = {}
    for row in [*run.rows, *memorized_rows(run)]:
        for one in [*prepared(run, row), row, *beside(run, row)]:
            stage = "prompts" if method_of(one) in PREPARED else "probes"
            part = part_of(run, one)
            grouped.setdefault((stage, one["model"]), {})[next(iter(part.output.values()))] = part
    return {key: list(parts.values()) for key, parts in grouped.items()}


def inputs_of(parts: Iterable[PlannedPart]) -> list[str]:
    """Return the distinct input files of some parts."""
    values = [value for part in parts for value in part.input.values()]
    paths = [path for v in values for path in ([v] if isinstance(v, str) else v)]
    return list(dict.fromkeys(filter(None, paths)))


def outputs_of(parts: Iterable[PlannedPart]) -> list[str]:
    """Return the distinct output files and folders of some parts."""
    return list(dict.fromkeys(path for part in parts for path in part.output.values()))


def plain(run: Run, parts: Iterable[PlannedPart]) -> Any:
    """Convert parts to plain values, with the folder of this run in their paths."""
    text = json.dumps([asdict(part) for part in parts])
    return json.loads(text.replace("<results>", f"results/{run.settings.run.name}"))


def prepared(run: Run, row: Row) -> list[Row]:
    """Return the rows of the first stage that a row needs, whether or not they are in the table."""
    method = method_of(row)
    if method in ("soft", "reason") and soft_prompts(run, row):
        return [{**row, "prompt": "soft", "method": "soft_prompts"}]
    if method != "predict":
        return []
    folders = prompts.find_searched(run, row), prompts.find_source(run, row)
    models = [folder.rpartition("/")[2] for folder in folders if folder]
    return [{**row, "prompt": "searched", "model": model} for model in models]


def soft_prompts(run: Run, row: Row) -> str:
    """Return the folder of soft prompts that a row needs, also for soft reasoning, or ""."""
    is_soft = any(scheme.startswith("soft+") for scheme in schemes_of(run, row))
    is_needed = row["method"] == "soft" or is_soft
    return answer_files(row, "soft_prompts")["prompts"] if is_needed else ""


def _method_inputs(run: Run, row: Row) -> Asked:
    """Return the inputs of a row's method, and its settings."""
    if row.get("without"):
        files, known = _method_inputs(run, {**row, "without": ""})
        if "draws" in known:
            known |= {"prompts": [row["prompt"]]}
            files |= {"found": "", "other": "", "published": ""}
        return files, known | _of_baseline(run, row)
    method, settings = method_of(row), run.settings
    folder = f"<results>/benchmarks/{row['benchmark']}"
    if method in ("predict", "searched", "trained", "sweep"):
        return _of_prompts(run, row)
    tables = {"questions": f"{folder}/items.parquet", "candidates": f"{folder}/candidates.parquet"}
    if method in ("soft_prompts", "soft", "reason"):
        return _of_soft(run, row, tables)
    if method == "choice":
        return {"questions": f"{folder}/choices.parquet"}, {"scorings": settings.choice.scorings}
    tables["prompts"] = f"{folder}/prompts.parquet"
    if method == "cloze":
        return tables, switches(settings, "candidate_space", "unknown_candidates")
    if method == "fill":
        is_costly = run.models[row["model"]]["kind"] == "api" and row["benchmark"] in ATTRIBUTES
        few = settings.attribute_prompts.api if is_costly else 0
        known = {"fill": asdict(settings.fill), "few": few, "seed": settings.seed}
    else:
        known = {"method": row["method"]}
    if has_form(row) and method != "content_free":
        more, known["form"] = _of_form(run, row)
        tables |= more
    return tables, known


def _of_form(run: Run, row: Row) -> Asked:
    """Return inputs and settings of a prompt format: a lite benchmark takes its demonstrations from
    the full one, attributes from the facts of their graph."""
    chosen, files = run.settings.forms, {}
    known = {"name": row["prompt"], "items": chosen.items, "seed": run.settings.seed}
    if row["prompt"].startswith("few"):
        known["demonstrations"] = chosen.demonstrations
        whole = row["benchmark"].removesuffix("_lite")
        if whole != row["benchmark"]:
            files["training"] = f"<results>/benchmarks/{whole}/items.parquet"
            files["training_options"] = f"<results>/benchmarks/{whole}/candidates.parquet"
        if row["paper"] == "attributes":
            files["facts"] = graph_facts(run.settings)[0]
    return files, known


def _of_baseline(run: Run, row: Row) -> dict[str, Any]:
    """Return the settings of a baseline, in addition to those of its method."""
    limits = run.settings.baselines
    return {
        "without": row["without"],
        "items": limits.items if row["paper"] == "bear" else limits.rows,
        # OntoProbe specifies the last one in advance
        "template": "last" if row["paper"] == "ontoprobe" else "first",
        "whole": row["paper"] == "attributes",
        "seed": run.settings.seed,
    }


def _of_soft(run: Run, row: Row, tables: dict[str, Any]) -> Asked:
    """Return inputs and settings of OntoProbe's soft prompts, and of the probes that use them."""
    method, chosen = method_of(row), run.settings.ontoprobe
    known: dict[str, Any] = {"switches": switches(run.settings)}
    if method == "reason":
        tables["questions"] = f"<results>/benchmarks/{row['benchmark']}/reasoning.parquet"
        known["seed"] = run.settings.seed
    if method == "soft":
        known["rows"] = chosen.soft.rows
    else:
        known["soft"] = asdict(chosen.soft)
    if method != "soft_prompts":
        tables["prompts"] = soft_prompts(run, row)
    return tables, known


def _of_prompts(run: Run, row: Row) -> Asked:
    """Return inputs and settings of prompts that are written, searched or trained."""
    auto, method = run.settings.autoprompt, method_of(row)
    config, benchmark, model = asdict(auto), row["benchmark"], row["model"]
    tables = "examples.parquet", "vocabulary.json", "task.json"
    files: dict[str, Any] = {
        table.partition(".")[0]: f"<results>/benchmarks/{benchmark}/{table}" for table in tables
    }
    known: dict[str, Any] = {
        "section": prompt_settings.section(config, benchmark, model),
        "mode": auto.mode,
        "seed": run.settings.seed,
    }
    if method == "sweep":
        known["section"] = prompt_settings.sweep(config, row["method"], benchmark, model)
        return files, known | {"sweep": row["method"]}
    if method == "trained":
        return files, known
    if method == "predict":
        files["found"] = prompts.find_searched(run, row)
        files["other"] = prompts.find_source(run, row)
        known |= {
            "prompts": prompts.list_written(run, row),
            "published": (PUBLISHED | auto.published).get(model, ""),
            "draws": auto.draws,
            "demos": config["demos"],
        }
        files["published"] = prompts.find_published(run, row)
    return files, known
