"""Rows and benchmarks of OntoProbe that a run asks."""

from kgprobe import experiments
from kgprobe.workflow.answers import has_form
from kgprobe.workflow.run import Row, Run, switches


def schemes_of(run: Run, row: Row) -> tuple[str, ...]:
    """Return the templates and conjunctions for testing the reasoning of a row's model."""
    soft = run.settings.ontoprobe.soft
    is_causal = run.models[row["model"]]["kind"] == "causal"
    return soft.causal.schemes if is_causal else soft.schemes


def memorized_rows(run: Run) -> list[Row]:
    """Return the rows of OntoProbe's memorizing tables, then further ones that a row of reasoning
    needs to determine which of its premises the model has memorized."""
    rows = [r for r in run.probes("ontoprobe", "cloze", "sentence", "soft") if not has_form(r)]
    known = {(row["benchmark"], row["method"], row["model"]) for row in rows}
    for row in run.probes("ontoprobe", "reason"):
        templates = {scheme.split("+")[0] for scheme in schemes_of(run, row)}
        kind = run.models[row["model"]]["kind"]
        for first, prompt, method in ("manual", "templates", "cloze"), ("soft", "soft", "soft"):
            is_known = (row["benchmark"], method, row["model"]) in known
            if first in templates and kind in experiments.KINDS_OF_METHOD[method] and not is_known:
                rows.append({**row, "prompt": prompt, "method": method})
    return rows


def list_sets(run: Run) -> list[str]:
    """Return the benchmarks that are asked, preceded by the full version of every lite one."""
    rows = [*memorized_rows(run), *run.probes("ontoprobe", "reason")]
    names = [row["benchmark"] for row in rows]
    return list(dict.fromkeys([*(name.removesuffix("_lite") for name in names), *names]))


def is_shipped(run: Run) -> bool:
    """Return whether released files determine which premises were memorized."""
    rows = run.probes(None, "choice")
    on_release = any(row["benchmark"] == "onto_released" for row in rows)
    return on_release and switches(run.settings)["mc_split"] == "shipped"
