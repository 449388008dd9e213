"""Inputs of the tables and the report."""

from pathlib import Path

from kgprobe import experiments
from kgprobe.workflow.benchmarks import files_of, origin_of
from kgprobe.workflow.run import Run
from kgprobe.workflow.sources import COMPARISONS, statement_dumps


def papers(run: Run) -> dict[str, bool]:
    """Return whether the experiments have probes for each paper's tables, in printing order."""
    methods = {"bear": ("sentence",), "ontoprobe": (), "attributes": (), "autoprompt": ()}
    return {paper: bool(run.probes(paper, *methods[paper])) for paper in methods}


def results_files(run: Run, folder: str = "tables") -> list[str]:
    """Return the RESULTS files of the papers that are probed; their printed tables are in folders
    of the same name. With `folder` "judged": their JUDGED files."""
    return [f"<results>/{folder}/{name}.parquet" for name, used in papers(run).items() if used]


def sections(run: Run) -> list[str]:
    """Return the report sections that other jobs write, in printing order."""
    needed = papers(run)
    wanted = {"bear": needed.pop("bear"), "sources": bool(comparisons(run)), **needed}
    return [f"<results>/report/sections/{name}.json" for name, there in wanted.items() if there]


def list_question_files(run: Run, *tables: str) -> list[str]:
    """Return the questions of every probed benchmark, or the given tables of them, which tasks of
    searched prompts do not have."""
    of_auto = [] if tables else files_of(run.probed("autoprompt"), "examples")
    others = [name for paper in papers(run) if paper != "autoprompt" for name in run.probed(paper)]
    return files_of(others, *(tables or ("items",))) + of_auto


def has_controls(run: Run) -> bool:
    """Return whether a control model answers the embedded graph's questions, to validate probes."""
    rows = run.probes("bear", "sentence")
    return any(r["benchmark"] in ("world_big", "world_lite") and run.is_control(r) for r in rows)


def validity(run: Run) -> list[str]:
    """Return the measured validity of the control probes, unless this run measures it itself."""
    path = experiments.located("resources/measured/validity.tsv")
    return [path] if run.settings.run.name != "validity" and Path(path).is_file() else []


def own_graphs(run: Run, paper: str) -> list[str]:
    """Return the user-supplied graphs whose benchmarks are probed for a paper."""
    probed = {run.benchmarks[name].source for name in run.probed(paper)}
    return [name for name in run.settings.sources.graphs if name in probed]


def constructed_sets(run: Run) -> list[str]:
    """Return the probed BEAR-type benchmarks that were constructed rather than loaded."""
    return [b for b in run.probed("bear") if b != "lama" and "released" not in b]


def funnels(run: Run) -> list[str]:
    """Return the construction funnel of every constructed benchmark that is probed."""
    return files_of(sorted({f"{origin_of(b)}_big" for b in constructed_sets(run)}), "funnel")


def side_files(run: Run) -> list[str]:
    """Return additional files: aliases in constructed benchmarks (endpoints lack those of
    user-supplied graphs), benchmarks that user-supplied graphs allow, and facts from dumps."""
    graphs, sets = run.settings.sources.graphs, [*constructed_sets(run), *compared_sets(run)]
    origins = sorted({origin_of(b) for b in sets} - set(graphs))
    return [
        *files_of([f"{origin}_big" for origin in origins], "aliases"),
        *(f"<results>/sources/{graph}/allows.tsv" for graph in graphs),
        *(f"<results>/knowledge/{d}/facts.parquet" for d in sorted(statement_dumps(run.settings))),
    ]


def comparisons(run: Run) -> list[str]:
    """Return the tables that compare rebuilt data."""
    chosen = run.settings.comparisons
    return [
        f"<results>/tables/{COMPARISONS[what]}.parquet" for what in COMPARISONS if what in chosen
    ]


def compared_sets(run: Run) -> list[str]:
    """Return constructed benchmarks that are compared even if no probe asks them."""
    return ["bear_big"] if "bear" in run.settings.comparisons else []


def pulled_facts(run: Run) -> str:
    """Return the pull that dumps are compared with: of the embedded graph, or of Wikidata."""
    dumps = statement_dumps(run.settings).values()
    source = "world" if any(dump.access == "embedded" for dump in dumps) else "wikidata"
    return f"<results>/sources/{source}/facts.parquet"
