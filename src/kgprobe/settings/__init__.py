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
    """The name of the run. Two runs never touch each other's files."""

    name: Annotated[str, Pattern(r"^[A-Za-z0-9_-]+$", "letters, digits, - and _")] = "full"
    """folder in results/ and logs/; every file that is merged into config.yaml sets its own"""


@dataclass(frozen=True)
class Tables:
    """The tables of models and of experiments, described below."""

    models: str = "config/models.tsv"
    """table of models"""
    experiments: str = "config/experiments.tsv"
    """table of experiments: what runs"""


@dataclass(frozen=True)
class Settings:
    """The complete configuration, except threads, memory and devices, which belong to the profile
    (profiles/)."""

    run: NamedRun = NamedRun()
    """the name of the run"""
    seed: Seed = 0
    """seed of every sample, split, training and bootstrap"""
    contact: str = ""
    """email address or web page for the User-Agent of live pulls, which are refused without one;
    KGPROBE_CONTACT overrides it"""
    languages: Annotated[tuple[Language, ...], Length(1, distinct=True)] = LANGUAGES
    """languages of labels and aliases, in order of preference. Wikidata removes `en` labels that
    equal the one for all languages, `mul`"""
    data: Annotated[str, Pattern(".", "a path")] = "data"
    """folder of the raw snapshots, outside results/ so that `make clean` keeps them"""
    tables: Tables = Tables()
    """the tables of models and of experiments"""
    sources: Sources = field(default_factory=Sources)
    """where the data come from"""
    comparisons: Annotated[
        tuple[Literal["access", "ontology", "bear"], ...], Length(distinct=True)
    ] = ("ontology", "bear")
    """comparisons for the report's section on sources: dumps with the SPARQL pull (`access`), and
    ours with the released ontology and BEAR"""
    ontology: Ontology = Ontology()
    """which part of the ontology is used"""
    ontoprobe: Ontoprobe = field(default_factory=Ontoprobe)
    """memorizing and reasoning over ontological knowledge"""
    bear: Bear = Bear()
    """construction of BEAR sets from the Wikidata pull"""
    world: World = World()
    """construction of BEAR sets from the embedded graph"""
    released: ReleasedRows = ReleasedRows()
    """which part of the released BEAR data sets is scored"""
    lama: Constant[LamaOptions] = LamaOptions()
    """LAMA's facts with options"""
    baselines: Baselines = Baselines()
    """baselines without knowledge: no subject, random weights"""
    forms: Forms = Forms()
    """question formats"""
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
