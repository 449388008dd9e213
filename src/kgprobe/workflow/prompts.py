"""Inputs of prompts that are written, searched or trained."""

from kgprobe import experiments
from kgprobe.probes import prompt_settings
from kgprobe.workflow.run import Row, Run
from kgprobe.workflow.sources import data_parts


def list_written(run: Run, row: Row) -> list[str]:
    """Return the prompts without training that the model of a row is asked on its benchmark."""
    return [
        other["prompt"]
        for other in run.probes("autoprompt", "predict")
        if (other["benchmark"], other["model"]) == (row["benchmark"], row["model"])
        and other["prompt"] in prompt_settings.WRITTEN
    ]


def find_searched(run: Run, row: Row) -> str:
    """Return the folder of searched prompts that some written prompt is derived from, or ""."""
    is_needed = set(list_written(run, row)) & set(prompt_settings.OF_SEARCHED)
    return f"<results>/prompts/searched/{row['benchmark']}/{row['model']}" if is_needed else ""


def find_source(run: Run, row: Row) -> str:
    """Return the folder of searched prompts that "transferred" takes from another model, or "".
    Raises TableError if the configuration names no such model, or one that is not searched."""
    if "transferred" not in list_written(run, row):
        return ""
    chosen, settings = run.settings.autoprompt.transfer, run.settings
    if row["model"] not in chosen:
        raise experiments.TableError(
            f"{settings.tables.experiments}: prompt transferred for {row['model']!r}: name in "
            "autoprompt.transfer the model that its prompts come from"
        )
    source, kinds = chosen[row["model"]], experiments.KINDS_OF_METHOD["predict"]
    searched = [name for name, model in run.models.items() if model["kind"] in kinds]
    if source not in searched:
        raise experiments.TableError(
            f"config: autoprompt.transfer.{row['model']} is {source!r}"
            f"{experiments.nearest(source, searched)}; valid: {', '.join(searched)}"
        )
    return f"<results>/prompts/searched/{row['benchmark']}/{source}"


def find_published(run: Run, row: Row) -> list[str]:
    """Return the folder of the published searched prompts if they are asked, then its files if it
    is local."""
    is_needed = "published" in list_written(run, row)
    return data_parts(run.settings, "lama", ["autoprompt_published"]) if is_needed else []
