"""The configuration: every key with its type, its default, its legal values and what it means.

A module for each stage, a class for each section, a field for each key with its meaning in the text
below. `kgprobe.config` makes of them the JSON schema, the table in config/README.md and
config/config.yaml, and refuses what they do not allow. The defaults are the full rebuild. `null`
(None) leaves a choice open.

Rules hand sections to scripts as plain values (`dataclasses.asdict`), complete, and a script builds
its section again with `typed`. So a number depends on what a rule hands over and on nothing here.

Sources: BEAR is Wiland et al. 2024, OntoProbe Wu et al. 2023, KG attributes Mruthyunjaya et al.
2023, AutoPrompt Shin et al. 2020; "ours" marks what no paper states.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from kgprobe.settings.benchmarks import (
    Attributes,
    Bear,
    LamaOptions,
    PromptTasks,
    ReleasedRows,
    World,
)
from kgprobe.settings.knowledge import Joins, Ontology
from kgprobe.settings.probes import (
    Api,
    AttributePrompts,
    Autoprompt,
    Baselines,
    Choice,
    Fill,
    Forms,
    Ontoprobe,
)
from kgprobe.settings.sources import Sources
from kgprobe.settings.types import LANGUAGES, Constant, Language, Length, Pattern, Seed


@dataclass(frozen=True)
class NamedRun:
    """What is made once, below one name. Two runs never touch each other's files."""

    name: Annotated[str, Pattern(r"^[A-Za-z0-9_-]+$", "letters, digits, - and _")] = "full"
    """folder below results/ and logs/; every file that is laid over config.yaml gives its own"""


@dataclass(frozen=True)
class Tables:
    """The tables of models and of experiments, described below."""

    models: str = "config/models.tsv"
    """what models there are"""
    experiments: str = "config/experiments.tsv"
    """what runs"""


@dataclass(frozen=True)
class Settings:
    """The whole configuration. Threads, memory and devices are never here: they belong to the
    profile (profiles/)."""

    run: NamedRun = NamedRun()
    """what this run is called"""
    seed: Seed = 0
    """seeds every sample, split, training and bootstrap"""
    contact: str = ""
    """mail address or page for the User-Agent of live pulls; KGPROBE_CONTACT overrides it. A live
    pull without one stops before its first request"""
    languages: Annotated[tuple[Language, ...], Length(1, distinct=True)] = LANGUAGES
    """of labels and aliases, best first: an entity's label is in the first that it has one in.
    Wikidata deletes labels in `en` that equal the one for all languages, `mul`"""
    data: Annotated[str, Pattern(".", "a path")] = "data"
    """folder of the raw snapshots; outside results/, so that cleaning results keeps them"""
    tables: Tables = Tables()
    """the tables of models and of experiments"""
    sources: Sources = field(default_factory=Sources)
    """what comes in from outside"""
    comparisons: Annotated[
        tuple[Literal["access", "ontology", "bear"], ...], Length(distinct=True)
    ] = ("ontology", "bear")
    """tables that compare what is rebuilt: dumps with the pull over SPARQL, ours with the released
    ontology and BEAR; they make the report's section on sources"""
    ontology: Ontology = Ontology()
    """what of the ontology is taken"""
    ontoprobe: Ontoprobe = field(default_factory=Ontoprobe)
    """memorizing and reasoning over ontological knowledge"""
    bear: Bear = Bear()
    """construction of BEAR sets from the Wikidata pull"""
    world: World = World()
    """construction of BEAR sets from the embedded world"""
    released: ReleasedRows = ReleasedRows()
    """which part of the released BEAR sets is scored"""
    lama: Constant[LamaOptions] = LamaOptions()
    """LAMA's facts with options"""
    baselines: Baselines = Baselines()
    """what is reached without knowing: without the subject, by random weights"""
    forms: Forms = Forms()
    """forms of asking"""
    fill: Fill = Fill()
    """method fill"""
    choice: Choice = Choice()
    """method choice"""
    api: Api = Api()
    """models behind an API"""
    joins: Joins = Joins()
    """the engine of joins over statements"""
    attributes: Attributes = Attributes()
    """the nine benchmarks of knowledge-graph structure"""
    attribute_prompts: AttributePrompts = AttributePrompts()
    """prompts of the graph attributes"""
    autoprompt: Autoprompt = field(default_factory=Autoprompt)
    """searched prompts"""
    prompt_tasks: PromptTasks = PromptTasks()
    """tasks that prompts are searched for"""
