"""Settings of the probes: methods and forms of asking, soft prompts, searched prompts, servers."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from kgprobe.settings.benchmarks import Rows
from kgprobe.settings.types import (
    Amount,
    Constant,
    Count,
    Length,
    Mode,
    Natural,
    PartOf,
    Positive,
    Range,
    Seed,
    Variable,
)

Schemes = Literal["manual+manual", "manual+soft", "soft+manual", "soft+soft"]


@dataclass(frozen=True)
class CausalRules:
    """What of reasoning causal models are asked, which read candidates word by word."""

    schemes: Annotated[tuple[Schemes, ...], Length(1, distinct=True)] = ("manual+manual",)
    """template+conjunction, in place of `soft.schemes`"""
    pairs: Count = 1
    """pairs of pseudowords, in place of the switch `pseudoword_pairs`"""
    rows: Count | None = 100
    """most test rows of each rule, by hash, under all premises; null for all"""


@dataclass(frozen=True)
class Soft:
    """Soft prompts and reasoning (OntoProbe, sections 3.1.1 and 3.2.1, appendix A). One prompt is
    trained per task for every combination that the kind of model has."""

    seeds: Count = 3
    """runs of each training"""
    epochs: Count = 100
    """passes over the training rows"""
    batch: Constant[Count] = 8
    """rows of a step: 8 + 2 of the ten training rows"""
    losses: Annotated[tuple[Literal["bce", "nll"], ...], Length(1, distinct=True)] = ("bce", "nll")
    """under `bce` causal and seq2seq models run every candidate in every step, under `nll` the
    golds alone"""
    masks: Annotated[tuple[Literal["multi", "single"], ...], Length(1, distinct=True)] = (
        "multi",
        "single",
    )
    """a mask for every token of a candidate, or one"""
    poolings: Annotated[tuple[Literal["mean", "max", "first"], ...], Length(1, distinct=True)] = (
        "mean",
        "max",
        "first",
    )
    """of the tokens of a candidate (OntoProbe, section 3.1.2)"""
    schemes: Annotated[tuple[Schemes, ...], Length(1, distinct=True)] = (
        "manual+manual",
        "manual+soft",
        "soft+manual",
        "soft+soft",
    )
    """of reasoning: template+conjunction"""
    tuning: Count | None = None
    """epochs of the conjunctions; null for `epochs`"""
    rows: Count | None = None
    """most test rows of each task; null for all"""
    rule_rows: Count | None = None
    """most test rows of each rule, which has them under every premise, template and conjunction;
    null for all"""
    causal: Constant[CausalRules] = CausalRules()
    """what of reasoning causal models are asked"""


@dataclass(frozen=True)
class Ontoprobe:
    """OntoProbe: memorizing and reasoning over ontological knowledge."""

    mode: Mode = "default"
    """sets every point where the paper and its code disagree; the report lists them with their
    values in each mode and where they take effect"""
    switches: dict[str, str] = field(default_factory=dict)
    """single points by name (values are text): what benchmarks/ontoprobe/modes.py lists. Those of
    the tables (`tp_rows`, `recall`, `ties`, `select`, `premise`, `mc_split`, `average`) need no new
    answers; `item_limit` cuts what written templates ask of TP and SCO, soft prompts ask every
    row"""
    lite: Rows = Rows(0, 5, 20)
    """rows of each part per task in the lite sets (options scored as sentences)"""
    lite_options: Natural = 0
    """options kept beside the golds in the lite sets, 0 for all"""
    lite_templates: Count | None = None
    """templates of each task in the lite sets, the first ones; null for all"""
    soft: Soft = Soft()
    """soft prompts and reasoning"""


@dataclass(frozen=True)
class Baselines:
    """Baselines (ours): the same architecture with random weights, and the model itself without the
    subjects, asked beside every model."""

    items: Natural = 300
    """items of a benchmark of BEAR's, the same number of each relation by hash, that are asked
    under the first template; 0: none is"""
    rows: Natural = 100
    """the same of a benchmark of the other papers: test rows, facts, or triples of whole examples,
    under one template; 0: none is"""
    largest: Constant[Count] = 3000
    """millions of weights; larger models have no such baseline, which would take their memory once
    more in float32. Nor have checkpoints of a training and quantized models"""


@dataclass(frozen=True)
class Forms:
    """Forms of asking (ours): the prompts `question`, `chat`, `few` and `few_shuffled` of the graph
    attributes and OntoProbe's tasks put a text around a relation's first template."""

    items: Natural = 300
    """items of a benchmark, the same number of each relation by hash, that are asked in a form and
    compared with their templates alone; 0: all"""
    demonstrations: Constant[Count] = 4
    """examples before the question under `few` and `few_shuffled`, out of the rows for training"""


@dataclass(frozen=True)
class Fill:
    """Method `fill`: what a model writes into a mask slot (KG attributes, section 4)."""

    k: Count = 10
    """best tokens and fillings"""
    strategy: Literal["parallel", "beam"] = "parallel"
    """how several masks are filled"""
    beams: Count = 5
    """beams of the strategy beam"""
    length: Constant[Literal["", "gold", "free"]] = ""
    """as many tokens as the gold, or to the end of the phrase; empty: the kind's own (masked gold,
    others free)"""
    most_masks: Constant[Count] = 12
    """golds of more tokens are left out and counted"""
    most_tokens: Natural = 0
    """of a free text; 0: the longest gold and four more"""
    stops: Constant[str] = ".\n"
    """what ends a written text, a dot only where it ends a sentence: a blank and a capital follow,
    and no single letter, abbreviation or word with dots stands before it (or a word follows that
    begins sentences). What is scored is the text up to there, `raw` keeps the rest"""
    instruction: Constant[str] = ""
    """before a sentence with [MASK] (API)"""
    failures: Literal["raise", "leave_out"] = "raise"
    """a request refused for its content ends the job, or is counted as missing"""


Scoring = Literal["answer", "letter", "text", "stem"]


@dataclass(frozen=True)
class Choice:
    """Method `choice`: multiple choice (OntoProbe, section 5.2). Other golds among the options, the
    slips of the released prompts and the released split of the premises are switches of
    `ontoprobe`: `negatives`, `mc_phrasing`, `mc_split`."""

    scorings: Annotated[tuple[Scoring, ...], Length(1, distinct=True)] = get_args(Scoring)
    """generated text, or options scored as letter, as text after the question, in the manual
    prompt"""
    options: Constant[Annotated[int, Range(2, 26)]] = 20
    """options of a question (OntoProbe, section 5.2)"""
    most: Count | None = None
    """most questions per task; null for 500 of TP and SCO and all others"""


@dataclass(frozen=True)
class Api:
    """Models of kind `api`, on OpenAI-compatible servers. None of these keys changes an answer."""

    url_variable: Constant[Variable] = "KGPROBE_API_URL"
    """environment variable with the base URL"""
    key_variable: Constant[Variable] = "KGPROBE_API_KEY"
    """environment variable with the key"""
    requests_per_minute: Amount = 0
    """most requests, 0: no limit"""
    tokens_per_minute: Amount = 0
    """most tokens, 0: no limit"""
    prices: Annotated[tuple[Amount, ...], Length(2, 2)] = (0, 0)
    """per million prompt and completion tokens"""
    most: Amount = 0
    """cost at which a job stops, 0: no limit; an answer that does not say its tokens is charged as
    many as there can be"""
    timeout: Positive = 120
    """seconds"""
    attempts: Constant[Count] = 6
    """tries of a request"""
    workers: Count = 1
    """requests at once"""
    cache: Constant[str] = "data/api"
    """folder of the answers"""


@dataclass(frozen=True)
class AttributePrompts:
    """Prompts of the graph attributes (docs/papers/attributes.md, Prompts), and how their metrics
    are read."""

    tables: Annotated[tuple[str, ...], Length(1)] = (
        "resources/templates/attributes.tsv",
        "resources/lama/attributes.tsv",
    )
    """tables of templates beside templates.tsv"""
    most: Count | None = None
    """templates a relation, LAMA's first, then our own whose answer stands last; null: all"""
    synonyms: Annotated[int, Range(0, 2)] = 0
    """variants of each with one word replaced, by resources/templates/synonyms.tsv"""
    stop_space: bool = False
    """keep LAMA's space before the stop"""
    api: Constant[Count] = 10
    """prompts a relation for models behind an API, by hash"""
    match: Literal["label", "aliases"] = "aliases"
    """what a generated text must equal: the label of the gold, or label or one of its aliases,
    where the source has some; rules on case, accents, quotes, articles, initials and dates are
    counted one by one"""
    ambiguous_denominator: Literal["or", "head"] = "or"
    """denominator of ambiguous: head or tail right, or head right"""
    intersect: bool = True
    """an example that one model cannot be asked is left out for all"""


Metric = Literal["likelihood", "accuracy"]


@dataclass(frozen=True)
class SearchChanges:
    """Fields of a search that differ from the mode's (docs/papers/autoprompt.md, Search). What each
    does stands in probes/prompts/search/settings.py; null: as the mode has it."""

    candidates: Count | None = None
    """k: tokens tried per iteration"""
    accumulate: Count | None = None
    """A: batches of the gradient, and of the evaluation"""
    batch: Count | None = None
    """B: examples of a batch"""
    evaluation: Natural | None = None
    """examples that candidates are scored on; 0: A * B"""
    iterations: Count | None = None
    """steps of a search"""
    restarts: Count | None = None
    """searches from the start"""
    seed: Seed | None = None
    """of the batches"""
    metric: Metric | None = None
    """what candidates are compared by"""
    dev_metric: Metric | None = None
    """what the best trigger has most of"""
    accept: Literal["strict", "best_of_k"] | None = None
    """only what beats the current trigger, or the best candidate in any case"""
    batches: Literal["disjoint", "fresh"] | None = None
    """both batches from one permutation, or a shuffle each"""
    fill_all: bool | None = None
    """no initial token may be left"""
    initial: str | None = None
    """text of the initial trigger, as many tokens as places, or "" (the mask)"""
    special_filter: Literal["all", "special", "off"] | None = None
    """special tokens are no candidates"""
    label_filter: bool | None = None
    """label tokens are no candidates"""
    gold_filter: Literal["text", "exact", "off"] | None = None
    """golds are no candidates"""
    capital_filter: Literal["all", "slow_tokenizer", "off"] | None = None
    """words with a capital are no candidates"""
    habits: Literal["default", "released"] | None = None
    """small habits of the released code"""


SearchFields = Annotated[dict[str, Any], PartOf(SearchChanges)]


@dataclass(frozen=True)
class Labels:
    """Label tokens of the classes (AutoPrompt, section 2.3)."""

    tokens: Constant[Count] = 3
    """label tokens of a class"""
    epochs: Count = 50
    """of the regression that finds them"""
    at_chance: Literal["stop", "keep"] = "stop"
    """what to do where it is no better than the majority"""


@dataclass(frozen=True)
class Most:
    """Most examples of a group."""

    train: Count | None = None
    """of train; null: all"""
    dev: Count | None = None
    """of dev; null: all"""
    test: Count | None = None
    """of test; null: all"""


@dataclass(frozen=True)
class SearchTask:
    """The search of a task; its sizes (k, A, B, iterations) are the paper's of that task."""

    triggers: Count | None = None
    """trigger tokens; null: those of `prompt_tasks`"""
    groups: tuple[str, ...] | None = None
    """relations; null: all"""
    most: Most = Most()
    """most examples of a group, by hash of the facts"""
    settings: SearchFields = field(default_factory=dict)
    """fields of the search that differ from the mode's"""


@dataclass(frozen=True)
class ClassTask(SearchTask):
    """The search of a task with classes; prompt `searched_words` takes the manual prompt's
    words."""

    groups: Constant[tuple[str, ...] | None] = None
    labels: Labels = Labels()
    """label tokens of a class"""


@dataclass(frozen=True)
class Tasks:
    """The four tasks of searched prompts."""

    facts: SearchTask = SearchTask()
    """fact retrieval (AutoPrompt, section 5)"""
    relation_extraction: SearchTask = SearchTask()
    """relation extraction (AutoPrompt, section 6)"""
    sst2: ClassTask = ClassTask()
    """sentiment (AutoPrompt, section 3)"""
    sick: ClassTask = ClassTask()
    """entailment (AutoPrompt, section 4)"""


@dataclass(frozen=True)
class LowData:
    """Few training examples (AutoPrompt, section 3, Figure 2)."""

    sizes: Annotated[tuple[Annotated[int, Range(4)], ...], Length(1)] = (10, 100, 1000)
    """training examples (paper)"""
    draws: Count = 10
    """subsets of each size (paper)"""
    selection: Literal["within", "full"] | None = None
    """of the prompt within them (half of them), or by the full dev set, which is the score as well
    (optimistic; the paper's); null: `within` by default, `full` in the modes paper and released"""
    triggers: Count = 10
    """trigger tokens (paper)"""
    labels: Constant[Annotated[dict[str, Any], PartOf(Labels)]] = field(
        default_factory=lambda: {"tokens": 3}
    )
    """label tokens (paper: 3)"""
    settings: SearchFields = field(default_factory=dict)
    """fields of the search that differ from the paper's of few examples"""


@dataclass(frozen=True)
class SearchGrid:
    """Label tokens and trigger length, every combination searched (AutoPrompt, Figure 3)."""

    candidates: Annotated[tuple[Count, ...], Length(1)] = (100, 10)
    """k (paper)"""
    label_tokens: Annotated[tuple[Count, ...], Length(1)] = (1, 3, 5)
    """label tokens of a class (paper)"""
    triggers: Annotated[tuple[Count, ...], Length(1)] = (3, 4, 5, 6)
    """trigger tokens (paper)"""
    settings: SearchFields = field(default_factory=lambda: {"restarts": 1})
    """fields of the search"""


@dataclass(frozen=True)
class Demos:
    """Demonstrations in front of the manual prompt (prompts `demos` ...)."""

    k: Count = 4
    """training facts that are shown"""
    draws: Count = 3
    """draws of `demos` and of each of its controls"""


@dataclass(frozen=True)
class Autoprompt(Tasks):
    """Searches of prompts, and what they are compared with. Prompt `searched` and its controls,
    `manual`, `lpaqa`, `majority`, `linear_probe` ... stand in probes/prompt_settings.py."""

    mode: Mode = "default"
    """the rules where paper and released code disagree, in the search, the choice of prompts from
    few examples, perturbed objects and reciprocal ranks (0 beyond 10,000 under `released`). What
    `released` does not reach is printed in the report of such a run"""
    draws: Count = 20
    """random triggers that a searched prompt is compared with"""
    demos: Demos = Demos()
    """demonstrations"""
    models: dict[str, Annotated[dict[str, Any], PartOf(Tasks)]] = field(default_factory=dict)
    """model: task: the same keys for this model alone; method `predict` follows them, so that all
    prompts of a model are asked the same examples"""
    low_data: LowData = field(default_factory=LowData)
    """few training examples"""
    grid: SearchGrid = field(default_factory=SearchGrid)
    """label tokens and trigger length"""
    published: dict[str, str] = field(default_factory=dict)
    """model: its file of published searched prompts in LAMA's folder `autoprompt_published`, where
    it is neither bert-base-cased nor roberta-large"""
    transfer: dict[str, str] = field(default_factory=dict)
    """model: the model whose searched prompts its prompt `transferred` takes over, as text"""
