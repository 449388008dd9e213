"""Settings of the benchmarks: BEAR sets, the nine attributes, the tasks that prompts are searched
for, and what is asked of released sets."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from kgprobe.settings.types import (
    Constant,
    Count,
    Inner,
    Length,
    Natural,
    OfGraph,
    Overlap,
    Range,
    Relation,
)


@dataclass(frozen=True)
class Size:
    """Size of a BEAR set (BEAR, section 3)."""

    total: Count = 600
    """instances per relation"""
    max_answers: Annotated[int, Range(2)] = 100
    """maximum number of options of a relation"""
    one_to_one: Annotated[int, Range(2)] = 194
    """instances of a one-to-one relation"""


@dataclass(frozen=True)
class Bear:
    """Construction of BEAR sets from a pull (BEAR, section 3)."""

    popularity: Literal["sitelinks", "statements"] = "sitelinks"
    """sitelinks, or, for sources without them, the number of pulled statements with the entity"""
    min_sitelinks: Natural = 5
    """entities with fewer are dropped"""
    min_answers: Annotated[int, Range(2)] = 5
    """a relation with fewer feasible answers is dropped and reported"""
    single_valued: Literal["best_rank", "all_ranks"] = "best_rank"
    """whether the only object counts among best-rank statements or among all that are not
    deprecated"""
    inverse_unique: bool = True
    """for one-to-one relations, require that the object has a single subject in the pull"""
    overlap: Literal["contains", "words", "none"] = "contains"
    """when the names of answer and subject count as overlapping"""
    spares: Constant[Natural] = 2
    """instances kept in reserve per answer"""
    short: Literal["drop", "shrink"] = "drop"
    """for a relation with fewer instances than `total`: drop and report it, or use its largest
    balanced set"""
    big: Size = Size()
    """BEAR-big (BEAR, section 3)"""
    lite: Size = Size(150, 25, 60)
    """BEAR (BEAR, section 3)"""


@dataclass(frozen=True)
class World(Bear):
    """Construction of BEAR sets from the embedded graph."""

    popularity: Constant[Literal["sitelinks", "statements"]] = "sitelinks"
    min_sitelinks: Constant[Natural] = 0
    min_answers: Constant[Annotated[int, Range(2)]] = 5
    single_valued: Constant[Literal["best_rank", "all_ranks"]] = "best_rank"
    inverse_unique: Constant[bool] = True
    overlap: Constant[Literal["contains", "words", "none"]] = "contains"
    short: Constant[Literal["drop", "shrink"]] = "drop"
    big: Size = Size(60, 12, 40)
    """world_big"""
    lite: Size = Size(20, 8, 20)
    """world_lite"""


@dataclass(frozen=True)
class Rows:
    """Number of rows per split."""

    train: Natural = 0
    """rows to train on"""
    dev: Natural = 0
    """rows to choose by"""
    test: Natural = 0
    """rows to score"""


@dataclass(frozen=True)
class ReleasedRows:
    """Which part of the released BEAR data sets is scored."""

    instances_per_relation: Count | None = None
    """rows per relation, drawn by hash; null for all"""
    templates: Annotated[tuple[Annotated[int, Range(0, 2)], ...], Length(1, distinct=True)] = (
        0,
        1,
        2,
    )
    """which of the three templates"""


@dataclass(frozen=True)
class LamaOptions:
    """LAMA's T-REx facts with options (ours): benchmark `lama`."""

    facts: Count = 200
    """most subjects of a relation, drawn by hash"""
    options: Annotated[int, Range(2)] = 30
    """options of a question: what is right and other objects of the relation, drawn by hash"""


Attribute = Literal[
    "symmetry",
    "asymmetry",
    "bidirectional",
    "hierarchy",
    "composite",
    "paths",
    "entity_centric",
    "bias",
    "ambiguous",
]
#: each names a module of benchmarks/attributes and a section of `attributes`
ATTRIBUTES: tuple[str, ...] = get_args(Attribute)


@dataclass(frozen=True)
class Symmetry:
    """Relations that hold both ways (KG attributes, section 3)."""

    min_triples: Count | None = None
    """fewest triples of a predicate; null: as `thresholds` has it (paper: 50)"""
    ratio: Annotated[float, Range(0, 1)] = 0.5
    """minimum fraction of symmetric triples (paper)"""
    ratio_over: Literal["triples", "pairs"] = "triples"
    """whether that is a fraction of triples or of unordered pairs"""
    cap_pairs: Count = 100
    """maximum number of pairs per predicate (paper)"""


@dataclass(frozen=True)
class Asymmetry:
    """Relations that hold in one direction only (KG attributes, section 3)."""

    min_triples: Count | None = None
    """fewest triples of a predicate; null: as `thresholds` has it (paper: 25)"""
    ratio: Annotated[float, Range(0, 1)] = 0.5
    """minimum fraction of one-way triples (paper)"""
    cap: Count = 100
    """maximum number of triples per predicate (paper)"""
    strict: bool = False
    """allow no symmetric triple at all"""


@dataclass(frozen=True)
class Bidirectional:
    """Pairs of inverse relations (KG attributes, section 3)."""

    min_triples: Count | None = None
    """fewest triples in the `denominator`; null: as `thresholds` has it (paper: 50)"""
    ratio: Annotated[float, Range(0, 1)] = 0.5
    """minimum fraction of triples that exist in both directions"""
    denominator: Literal["min", "max", "first", "second"] = "min"
    """whose number of triples is the denominator of that fraction"""
    cap: Count = 100
    """maximum number of examples per pair"""


@dataclass(frozen=True)
class Hierarchy:
    """Chains of classes (KG attributes, section 3)."""

    n: Count = 1000
    """number of chains (paper)"""
    direct: Literal["keep", "drop"] = "keep"
    """chains whose ends are also linked directly"""
    two_hop: Literal["own", "same"] = "own"
    """whether the inferred row has its own template or that of P279"""


@dataclass(frozen=True)
class Composite:
    """Triangles of relations (KG attributes, section 3)."""

    categories: Count = 10
    """top categories (paper)"""
    category_relations: tuple[OfGraph, ...] = ("P31",)
    """relations that lead to categories"""
    member: Literal["a", "all", "any"] = "a"
    """which member of the triangle must be in one"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """relations left out"""
    min_combo: Count | None = None
    """a combination of relations is frequent from so many on; null: as `thresholds` has it (paper:
    100)"""
    cap: Count = 100
    """most of a frequent combination (paper)"""
    keep_rare: bool = True
    """rarer ones are kept whole"""
    fallback: Constant[Count] = 1000
    """random ones when none is frequent (paper)"""
    max_out: Constant[Count] = 2000
    """edges of a hub that are expanded"""


@dataclass(frozen=True)
class Paths:
    """Paths of two relations (KG attributes, section 3)."""

    categories: Count = 10
    """top categories (paper)"""
    category_relations: tuple[OfGraph, ...] = ("P31",)
    """relations that lead to categories"""
    seeds: Count = 50
    """members of each category that paths begin at (paper)"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """relations left out"""
    endpoints_differ: bool = True
    """a path does not end where it begins"""
    relations_differ: bool = True
    """its two relations differ"""
    min_combo: Count | None = None
    """a combination of relations is frequent from so many on; null: as `thresholds` has it (paper:
    100)"""
    count_on: Literal["seeds", "graph"] = "seeds"
    """counted on the paths of the seeds, or of the whole graph"""
    cap: Count = 100
    """most of a frequent combination"""
    keep_rare: bool = True
    """rarer ones are kept whole"""
    fallback_per_entity: Constant[Count] = 10
    """random ones of an entity when none is frequent (paper)"""
    max_out: Constant[Count] = 2000
    """edges of a hub that are expanded"""


@dataclass(frozen=True)
class EntityCentric:
    """Facts of one entity (KG attributes, section 3)."""

    facts: Count | None = None
    """facts of an entity; null: as `thresholds` has it (paper: 20)"""
    top: Count | None = None
    """entities by degree; null: as `thresholds` has it (paper: 1000)"""
    entities: Count = 270
    """of them, by hash"""
    eval_entities: Count = 50
    """of these, probed"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """relations left out"""
    relations: Literal["all", "lama"] = "all"
    """which relations count"""
    directions: Literal["out", "both"] = "out"
    """facts that begin at the entity, or those that end there as well"""
    allow_short: Constant[bool] = False
    """entities with fewer facts"""


@dataclass(frozen=True)
class Bias:
    """Sensitive relations (KG attributes, section 3)."""

    relations: tuple[OfGraph, ...] = ("P21", "P30", "P91", "P140")
    """sensitive relations (paper)"""
    max_degree: Count = 2
    """of the subject (paper)"""
    literal_edges: bool = False
    """dates count for the degree"""


#: The relations that LAMA's T-REx part covers.
LAMA = tuple(
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 "
    "P140 P159 P176 P178 P190 P264 P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P530 P740 "
    "P937 P1001 P1303 P1376 P1412".split()
)


@dataclass(frozen=True)
class Ambiguous:
    """Two entities with the same name (KG attributes, section 3)."""

    source: Literal["labels", "amber"] = "labels"
    """pairs by the labels of the graph, or AmbER's"""
    amber_sets: str | None = None
    """AmbER's file"""
    fold_case: bool = False
    """ignore case when comparing names"""
    relations: tuple[OfGraph, ...] = LAMA
    """relations that both have"""
    exclude: tuple[OfGraph, ...] = ("P31",)
    """of them, left out"""
    examples: Count = 375
    """size of the benchmark (paper, Table 1)"""
    drop_same_object: bool = False
    """drop pairs with the same object"""


@dataclass(frozen=True)
class Attributes:
    """The nine benchmarks of knowledge-graph structure. What the paper leaves open is a key whose
    default fits its tables best (docs/papers/attributes.md, Decisions); the sensitivity table shows
    the results of the alternatives."""

    graph: str = "trex"
    """`world`: the embedded graph; `trex`: the ingested T-REx with its dates; or a name of
    `sources.graphs`, whose relations the keys below name by their own ids or by the equivalent
    Wikidata property (`known` and `roles` of its section)"""
    thresholds: Literal["paper", "small", "table"] = "paper"
    """`small`, for graphs under about a million statements: `min_triples` 10 / 5 / 5 (symmetry,
    asymmetry, bidirectional), `min_combo` 10, `facts` 10, `top` 100; `table`: as small, with `top`
    200, for tables of triples in which many entities lack a label. A threshold that is given
    itself wins. Every table of results names it"""
    eval_examples: Count | None = 1000
    """size of the evaluation sample of a benchmark; null for all. Bias and ambiguous are always
    evaluated completely (paper, section 4)"""
    require_labels: Constant[bool] = True
    """false skips labels and templates: the structural build alone, nothing to probe"""
    literals: bool = True
    """whether dates are objects in asymmetry; they are dropped everywhere else"""
    missing_template: Literal["error", "drop"] = "drop"
    """list all sampled predicates without a template in an error, or leave such candidates out and
    list the predicates in the funnel"""
    candidates: Annotated[int, Range(2)] = 100
    """options per relation for ranking; the golds are always among them"""
    sensitivity: bool = True
    """also build every alternative of what the paper leaves open"""
    symmetry: Symmetry = Symmetry()
    """relations that hold in both directions"""
    asymmetry: Asymmetry = Asymmetry()
    """relations that hold in one direction only"""
    bidirectional: Bidirectional = Bidirectional()
    """pairs of inverse relations"""
    hierarchy: Hierarchy = Hierarchy()
    """chains of classes"""
    composite: Composite = Composite()
    """triangles of relations"""
    paths: Paths = Paths()
    """paths of two relations"""
    entity_centric: EntityCentric = EntityCentric()
    """facts of one entity"""
    bias: Bias = Bias()
    """sensitive relations"""
    ambiguous: Ambiguous = Ambiguous()
    """two entities with the same name"""


@dataclass(frozen=True)
class Triggers:
    """Trigger tokens of the search templates, per task."""

    facts: Natural = 5
    """fact retrieval (AutoPrompt, section 5)"""
    relation_extraction: Natural = 5
    """relation extraction (AutoPrompt, section 6)"""
    sst2: Natural = 5
    """sentiment"""
    sick: Natural = 4
    """entailment"""


Shares = Annotated[tuple[Inner, ...], Length(2, 2)]


@dataclass(frozen=True)
class PromptFacts:
    """Fact retrieval (AutoPrompt, section 5)."""

    search: Literal["files", "pulls"] = "files"
    """facts to search with: those published with LAMA, or our T-REx facts followed by our Wikidata
    facts, without LAMA's test facts"""
    relations: Annotated[tuple[Relation, ...], Length(1, distinct=True)] | None = None
    """relations by id; null for all 41"""
    most: Count = 1000
    """maximum number of facts of a relation from pulls (paper, section 5)"""
    overlap: Overlap = "keep"
    """test facts that also occur in train or dev: raise an error, remove them there, or keep the
    published sets and also report the score without them"""
    single_token_for: tuple[str, ...] = ()
    """models: use only facts whose object is one token for all of them. `auto_lama_roberta` already
    has the words that BERT and RoBERTa share"""
    least: Constant[Rows] = Rows(40, 10, 20)
    """fewest examples of a relation; fewer are an error that names relation, needed and found"""


@dataclass(frozen=True)
class PromptSentences:
    """Relation extraction (AutoPrompt, section 6)."""

    words: Constant[Count] = 50
    """of the longest sentence"""
    shares: Constant[Shares] = (0.6, 0.2)
    """of the facts in train and dev, by hash of the subject"""
    exclude: Constant[tuple[Relation, ...]] = ("P527", "P1376")
    """relations left out (paper)"""
    perturbed: Literal["fact", "released"] | None = None
    """one new object per fact, in its slot, or one per test sentence, for every occurrence; null:
    as `autoprompt.mode` has it"""
    least: Constant[Rows] = Rows(20, 5, 5)
    """fewest examples of a relation"""


@dataclass(frozen=True)
class PromptClasses:
    """Sentiment and entailment (AutoPrompt, sections 3 and 4)."""

    overlap: Overlap = "keep"
    """test texts that also occur in train or dev"""
    draws: Count = 5
    """samples of the balanced variants of SICK-E; each is a group with its own prompt"""


@dataclass(frozen=True)
class PromptWorld:
    """Fact retrieval on the embedded graph (ours)."""

    relations: Annotated[tuple[Relation, ...], Length(1, distinct=True)] = ("P17", "P30")
    """relations of the embedded graph"""
    shares: Constant[Shares] = (0.3, 0.15)
    """of the training facts in train and dev, the others are test facts"""
    held_out: Constant[Natural] = 60
    """as many others beside them"""
    least: Rows = Rows(4, 2, 10)
    """fewest examples of a relation"""


@dataclass(frozen=True)
class PromptGraph:
    """Fact retrieval on all facts of a graph, `auto_NAME` (ours)."""

    relations: Annotated[tuple[OfGraph, ...], Length(1, distinct=True)] | None = None
    """relations by id; null for all that have `least` examples and a template"""
    shares: Constant[Shares] = (0.6, 0.2)
    """of the facts in train and dev, by hash of the subject; the others are test facts (the paper's
    set of T-REx)"""
    most: Constant[Count] = 1000
    """most facts of a relation, by hash of the subject (paper, section 5)"""
    least: Rows = Rows(4, 2, 4)
    """fewest examples of a relation"""


@dataclass(frozen=True)
class PromptWorldAll(PromptGraph):
    """Fact retrieval on all facts of the embedded world, `auto_world_all` (ours)."""

    relations: Constant[Annotated[tuple[OfGraph, ...], Length(1, distinct=True)] | None] = ("P17",)
    """relations by id; null for all that have enough examples and a template"""
    least: Constant[Rows] = Rows(4, 2, 4)


@dataclass(frozen=True)
class PromptTasks:
    """Tasks that prompts are searched for (benchmarks `auto_*`)."""

    triggers: Constant[Triggers] = Triggers()
    """trigger tokens"""
    facts: PromptFacts = PromptFacts()
    """fact retrieval"""
    sentences: PromptSentences = PromptSentences()
    """relation extraction"""
    classes: PromptClasses = PromptClasses()
    """sentiment and entailment"""
    world: PromptWorld = PromptWorld()
    """the embedded world"""
    world_all: PromptWorldAll = PromptWorldAll()
    """the embedded world whatever is trained on (`auto_world_all`), for models from elsewhere"""
    graphs: PromptGraph = PromptGraph()
    """graphs of `sources.graphs`"""
