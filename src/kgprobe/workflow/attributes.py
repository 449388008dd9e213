"""The graph that the attributes are built on, and the inputs that depend on it."""

from dataclasses import dataclass
from typing import Any

from kgprobe import experiments
from kgprobe.config import ConfigError
from kgprobe.settings import Settings
from kgprobe.workflow.answers import has_form
from kgprobe.workflow.run import Row, Run
from kgprobe.workflow.sources import files, without


@dataclass(frozen=True)
class GraphInputs:
    """Inputs of the graph that depend on the configuration; `[]` is no file."""

    #: the section of a user-supplied graph whose ids are not Wikidata's
    section: dict[str, Any] | None
    #: source of its entities' aliases and of its properties
    source: str
    #: its property dump, whose labels verbalize relations without a template
    properties: str
    #: templates of its relations that replace ours
    templates: str | list[str]
    #: aliases of the answers, which a generated text may equal; no endpoint has those of entities
    #: of a user-supplied graph
    aliases: str | list[str]


def graph(settings: Settings) -> GraphInputs:
    """Return the inputs of the graph named in the configuration."""
    name, source = settings.attributes.graph, "wikidata"
    section = settings.sources.graphs.get(name)
    is_own = section is not None and section.ids == "own"
    if name == "world":
        source = name
    is_named = settings.attribute_prompts.match != "label" and not is_own
    return GraphInputs(
        section=without(section, "bear", "templates") if is_own else None,
        source=source,
        properties=f"<results>/sources/{name if is_own else source}/properties.parquet",
        templates=f"<results>/benchmarks/own/{name}/templates.tsv" if is_own else [],
        aliases="<results>/benchmarks/graph/aliases.parquet" if is_named else [],
    )


def graph_facts(settings: Settings) -> list[str]:
    """Return the fact files of the graph that the attributes are built on."""
    name = settings.attributes.graph
    dates = ["<results>/knowledge/trex/dates.parquet"] if name == "trex" else []
    return [f"<results>/knowledge/{name}/facts.parquet", *dates]


def amber_sets(settings: Settings) -> list[str]:
    """Return AmbER's file, if pairs of ambiguous entities come from it. Raises ConfigError for one
    that is not named or does not exist."""
    section = settings.attributes.ambiguous
    if section.source != "amber":
        return []
    if not section.amber_sets:
        raise ConfigError("config: attributes.ambiguous.amber_sets: missing, needed where source "
                          "is amber")  # fmt: skip
    return files([section.amber_sets])


def plain_rows(run: Run) -> list[Row]:
    """Return the rows of the attributes without a prompt format."""
    return [row for row in run.probes("attributes") if not has_form(row)]


def template_rows(settings: Settings) -> list[dict[str, str]]:
    """Read templates.tsv and the tables in `attribute_prompts`. Raises TableError."""
    general = f"{experiments.located('resources')}/templates/templates.tsv"
    paths = [general, *files(settings.attribute_prompts.tables)]
    rows = [row for path in paths for row in experiments.read_table(path)]
    if any("relation" not in row for row in rows):
        raise experiments.TableError(f"templates: a table without the column relation: {paths}")
    return rows
