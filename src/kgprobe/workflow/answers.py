"""Paths of the answers to a row of the table of experiments, and the row's baselines."""

from collections.abc import Iterable

from kgprobe.contracts import WITHOUT
from kgprobe.probes import prompt_settings
from kgprobe.templates import FORMS
from kgprobe.workflow.run import Row, Run

#: method (a module of probes/jobs/methods) -> the answer files that it writes
PATTERNS = {
    "sentence": {"scores": "scores/{benchmark}/{prompt}/{method}/{model}.parquet"},
    "content_free": {"content_free": "scores/{benchmark}/{prompt}/{method}/{model}.parquet"},
    "fill": {
        "fills": "fills/{benchmark}/{prompt}/{model}.parquet",
        "golds": "fills/{benchmark}/{prompt}/{model}.golds.parquet",
    },
    "choice": {"chosen": "choices/{benchmark}/{prompt}/{model}.parquet"},
    "cloze": {
        "ranks": "ranks/{benchmark}/templates/{model}.parquet",
        "top": "ranks/{benchmark}/templates/{model}.top.parquet",
    },
    "soft": {
        "ranks": "ranks/{benchmark}/soft/{model}.parquet",
        "curves": "ranks/{benchmark}/soft/{model}.curves.parquet",
    },
    "reason": {
        "ranks": "ranks/{benchmark}/reason/{model}.parquet",
        "premises": "ranks/{benchmark}/reason/{model}.premise.parquet",
    },
    "predict": {"outcomes": "outcomes/{benchmark}/prompts/{model}.parquet"},
    "soft_prompts": {"prompts": "prompts/soft/{benchmark}/{model}"},
    "searched": {
        "prompts": "prompts/{prompt}/{benchmark}/{model}",
        "outcomes": "outcomes/{benchmark}/{prompt}/{model}.parquet",
    },
    "trained": {"outcomes": "outcomes/{benchmark}/{prompt}/{model}.parquet"},
    "sweep": {"sweep": "sweeps/{method}/{benchmark}/{prompt}/{model}.parquet"},
}
#: what a baseline leaves out (methods/baseline.py) -> the folder of its answers
BASELINES = dict(zip(WITHOUT, ("no_subject", "random_init"), strict=True))


def method_of(row: Row) -> str:
    """Return the module that answers a row; for a baseline with the prefix "baseline-"."""
    if row.get("without"):
        return f"baseline-{method_of({**row, 'without': ''})}"
    method = row["method"].split("-")[0]
    if method in ("low_data", "grid"):
        return "sweep"
    if method != "predict" or row["prompt"] in prompt_settings.WRITTEN:
        return method
    return "searched" if row["prompt"] in prompt_settings.SEARCHED else "trained"


def answer_files(row: Row, method: str = "") -> dict[str, str]:
    """Return the answer files of a row by name; one file may contain several rows."""
    folder = "<results>"
    if without := row.get("without"):
        folder += f"/baselines/{BASELINES[without]}"
    patterns = PATTERNS[method or method_of(row).rpartition("-")[2]]
    return {name: f"{folder}/{pattern.format(**row)}" for name, pattern in patterns.items()}


def answers_of(rows: Iterable[Row], name: str = "") -> list[str]:
    """Return one answer file for each row, or with `name` the file of that name if a row has it."""
    per_row = [answer_files(row) for row in rows]
    if name:
        return [files[name] for files in per_row if name in files]
    return [files.get("outcomes") or next(iter(files.values())) for files in per_row]


def has_form(row: Row) -> bool:
    """Return whether a row wraps its templates in a prompt format (probes/jobs/forms.py)."""
    return row["prompt"] in FORMS


def form_rows(run: Run, paper: str) -> list[Row]:
    """Return the rows of a paper that wrap their templates in a prompt format."""
    return list(filter(has_form, run.probes(paper)))


def beside(run: Run, row: Row) -> list[Row]:
    """Return the rows that accompany a row: its options after content-free subjects, and its
    baselines. There are none for prompt formats, whose tables show neither."""
    if has_form(row):
        return []
    rows: list[Row] = [{**row, "without": without} for without in _left_out(run, row)]
    if method_of(row) == "sentence":
        rows.insert(0, {**row, "method": row["method"].replace("sentence", "content_free", 1)})
    return rows


def content_free_files(run: Run, rows: Iterable[Row]) -> list[str]:
    """Return the score files after content-free subjects that accompany rows of whole sentences."""
    others = [one for row in rows for one in beside(run, row)]
    return answers_of(one for one in others if method_of(one) == "content_free")


def baseline_rows(run: Run, rows: Iterable[Row]) -> list[Row]:
    """Return the baselines of some rows, each a row with what it leaves out in `without`."""
    return [one for row in rows for one in beside(run, row) if one.get("without")]


def _left_out(run: Run, row: Row) -> list[str]:
    """Return what the baselines of a row leave out: the subject, trained weights, both or nothing.

    Answers of a server cost money. Sentences whose options are shared have no subject to leave out:
    content-free subjects serve for all. A randomly initialized model generates one of tens of
    thousands of tokens, which is never right, so it fills no mask slot. Soft prompts, premises and
    choices have no baseline, nor have searched prompts, whose controls are prompts of their own.
    """
    method, limits, model = method_of(row), run.settings.baselines, run.models[row["model"]]
    is_manual = row["prompt"] == "manual" and prompt_settings.task(row["benchmark"]) == "facts"
    is_asked = method in ("sentence", "cloze", "fill") or (method == "predict" and is_manual)
    most = limits.items if row["paper"] == "bear" else limits.rows
    if not most or not is_asked or model["kind"] == "api":
        return []
    names = []
    if method != "sentence" or row["paper"] == "attributes":
        names.append("the subject")
    # checkpoints of one training would all be equal; quantized weights cannot be reinitialized
    is_stored = not model.get("step") and not model.get("quantized")
    if method != "fill" and is_stored and int(model.get("parameters") or 0) <= limits.largest:
        names.append("trained weights")
    return names
