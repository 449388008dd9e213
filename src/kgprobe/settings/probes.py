"""Settings of the probes: methods, question formats, soft and searched prompts, servers."""

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
    """Which reasoning questions causal models are asked, which read candidates token by token."""

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
    """epochs of training"""
    batch: Constant[Count] = 8
    """rows of a step: 8 + 2 of the ten training rows"""
    losses: Annotated[tuple[Literal["bce", "nll"], ...], Length(1, distinct=True)] = ("bce", "nll")
    """with `bce`, causal and seq2seq models score every candidate in every step, with `nll` the
    golds only"""
    masks: Annotated[tuple[Literal["multi", "single"], ...], Length(1, distinct=True)] = (
        "multi",
        "single",
    )
    """one mask per token of a candidate, or a single mask"""
    poolings: Annotated[tuple[Literal["mean", "max", "first"], ...], Length(1, distinct=True)] = (
        "mean",
        "max",
        "first",
    )
    """over the tokens of a candidate (OntoProbe, section 3.1.2)"""
    schemes: Annotated[tuple[Schemes, ...], Length(1, distinct=True)] = (
        "manual+manual",
        "manual+soft",
        "soft+manual",
        "soft+soft",
    )
    """for reasoning: template+conjunction"""
    tuning: Count | None = None
    """epochs of training for the conjunctions; null for `epochs`"""
    rows: Count | None = None
    """maximum number of test rows per task; null for all"""
    rule_rows: Count | None = None
    """maximum number of test rows per rule, asked with every combination of premises, template and
    conjunction; null for all"""
    causal: Constant[CausalRules] = CausalRules()
    """what of reasoning causal models are asked"""


@dataclass(frozen=True)
class Ontoprobe:
    """OntoProbe: memorizing and reasoning over ontological knowledge."""

    mode: Mode = "default"
    """decides every point where the paper and its code disagree; the report lists these with their
    values in each mode and where they take effect"""
    switches: dict[str, str] = field(default_factory=dict)
    """individual points by name (values are strings); benchmarks/ontoprobe/modes.py lists them.
    Those that concern tables (`tp_rows`, `recall`, `ties`, `select`, `premise`, `mc_split`,
    `average`) need no new answers; `item_limit` limits the rows of TP and SCO for manual templates,
    not for soft prompts"""
    lite: Rows = Rows(0, 5, 20)
    """rows per split and task in the lite sets (options scored as sentences), with the rows of
    rules whose first premise is one of them, for testing at most `soft.rule_rows` of each rule"""
    lite_options: Natural = 0
    """options in addition to the golds in the lite sets, 0 for all"""
    lite_templates: Count | None = None
    """number of templates per task in the lite sets; null for all"""
    soft: Soft = Soft()
    """soft prompts and reasoning"""


@dataclass(frozen=True)
class Baselines:
    """Baselines (ours) for every model: the same architecture with random weights, and the model
    itself without the subjects."""

    items: Natural = 300
    """items of a BEAR benchmark that are asked with the first template, equally many per relation
    by hash; 0 for none"""
    rows: Natural = 100
    """the same for the other papers: test rows, facts, or triples of complete examples, with one
    template; 0 for none"""
    largest: Constant[Count] = 3000
    """million parameters; larger models have no such baseline, which would need their memory again
    in float32. Nor do checkpoints of a training and quantized models"""


@dataclass(frozen=True)
class Forms:
    """Question formats (ours): the prompts `question`, `chat`, `few` and `few_shuffled` of the
    graph attributes and OntoProbe's tasks put text around the first template of a relation."""

    items: Natural = 300
    """items of a benchmark that are asked in a format and compared with their plain templates,
    equally many per relation by hash; 0 for all"""
    demonstrations: Constant[Count] = 4
    """examples before the question for `few` and `few_shuffled`, from the training rows"""


@dataclass(frozen=True)
class Fill:
    """Method `fill`: what a model writes into a mask slot (KG attributes, section 4)."""

    k: Count = 10
    """number of best tokens and fillings"""
    strategy: Literal["parallel", "beam"] = "parallel"
    """how multiple masks are filled"""
    beams: Count = 5
    """number of beams for strategy beam"""
    length: Constant[Literal["", "gold", "free"]] = ""
    """as many tokens as the gold, or to the end of the phrase; empty: the kind's own (masked gold,
    others free)"""
    most_masks: Constant[Count] = 12
    """golds of more tokens are left out and counted"""
    most_tokens: Natural = 0
    """maximum length of a free text; 0: the longest gold plus four"""
    stops: Constant[str] = ".\n"
    """what ends a written text, a dot only where it ends a sentence: a blank and a capital follow,
    and no single letter, abbreviation or word with dots stands before it (or a word follows that
    begins sentences). What is scored is the text up to there, `raw` keeps the rest"""
    instruction: Constant[str] = ""
    """before a sentence with [MASK] (API)"""
    failures: Literal["raise", "leave_out"] = "raise"
    """whether a request refused for its content ends the job or is counted as missing"""


Scoring = Literal["answer", "letter", "text", "stem"]


@dataclass(frozen=True)
class Choice:
    """Method `choice`: multiple choice (OntoProbe, section 5.2). Other golds among the options, the
    slips of the released prompts and the released split of the premises are switches of
    `ontoprobe`: `negatives`, `mc_phrasing`, `mc_split`."""

    scorings: Annotated[tuple[Scoring, ...], Length(1, distinct=True)] = get_args(Scoring)
    """generated text (`answer`), or options scored by letter, as text after the question, or in the
    manual prompt (`stem`)"""
    options: Constant[Annotated[int, Range(2, 26)]] = 20
    """options of a question (OntoProbe, section 5.2)"""
    most: Count | None = None
    """maximum number of questions per task; null for 500 of TP and SCO and all of the others"""


@dataclass(frozen=True)
class Api:
    """Models of kind `api`, on OpenAI-compatible servers. No key here changes an answer."""

    url_variable: Constant[Variable] = "KGPROBE_API_URL"
    """environment variable with the base URL"""
    key_variable: Constant[Variable] = "KGPROBE_API_KEY"
    """environment variable with the key"""
    requests_per_minute: Amount = 0
    """maximum requests per minute, 0 for no limit"""
    tokens_per_minute: Amount = 0
    """maximum tokens per minute, 0 for no limit"""
    prices: Annotated[tuple[Amount, ...], Length(2, 2)] = (0, 0)
    """per million prompt and completion tokens"""
    most: Amount = 0
    """cost at which a job stops, 0 for no limit; an answer without token counts is charged the
    maximum"""
    timeout: Positive = 120
    """seconds"""
    attempts: Constant[Count] = 6
    """tries of a request"""
    workers: Count = 1
    """requests at once"""
    cache: Constant[str] = "data/api"
    """folder of the answers"""

    def __post_init__(self) -> None:
        """Raises ValueError for a limit of the cost without prices."""
        if self.most and not any(self.prices):
            raise ValueError(f"most: {self.most} limits nothing while both prices are 0")


@dataclass(frozen=True)
class AttributePrompts:
    """Prompts of the graph attributes (docs/papers/attributes.md, Prompts) and variants of their
    metrics."""

    tables: Annotated[tuple[str, ...], Length(1)] = (
        "resources/templates/attributes.tsv",
        "resources/lama/attributes.tsv",
    )
    """tables of templates in addition to templates.tsv"""
    most: Count | None = None
    """templates per relation: LAMA's, then ours that end with the answer; null for all"""
    synonyms: Annotated[int, Range(0, 2)] = 0
    """variants of each with one word replaced, by resources/templates/synonyms.tsv"""
    stop_space: bool = False
    """keep LAMA's space before the period"""
    api: Constant[Count] = 10
    """prompts a relation for models behind an API, by hash"""
    match: Literal["label", "aliases"] = "aliases"
    """what a generated text must equal: the label of the gold, or label or one of its aliases,
    where the source has some; rules on case, accents, quotes, articles, initials and dates are
    counted one by one"""
    ambiguous_denominator: Literal["or", "head"] = "or"
    """denominator of ambiguous: examples with head or tail right, or with head right"""
    intersect: bool = True
    """leave out for all models an example that one of them cannot be asked"""


Metric = Literal["likelihood", "accuracy"]


@dataclass(frozen=True)
class SearchChanges:
    """Search settings that differ from those of the mode (docs/papers/autoprompt.md, Search);
    probes/prompts/search/settings.py documents each. null: the value of the mode."""

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
    """what the best trigger is selected by"""
    accept: Literal["strict", "best_of_k"] | None = None
    """accept only what beats the current trigger, or always the best candidate"""
    batches: Literal["disjoint", "fresh"] | None = None
    """both batches from one permutation, or a shuffle each"""
    fill_all: bool | None = None
    """require that every initial token is replaced"""
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
    """what to do if it is no better than the majority"""


@dataclass(frozen=True)
class Most:
    """Maximum number of examples per group."""

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
    """number of trigger tokens; null: as in `prompt_tasks`"""
    groups: Annotated[tuple[str, ...], Length(1, distinct=True)] | None = None
    """relations; null: all"""
    most: Most = Most()
    """maximum number of examples per group, by hash of the facts"""
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

    sizes: Annotated[tuple[Annotated[int, Range(4)], ...], Length(1, distinct=True)] = (
        10,
        100,
        1000,
    )
    """training examples (paper)"""
    draws: Count = 10
    """subsets of each size (paper)"""
    selection: Literal["within", "full"] | None = None
    """prompt selection on half of the subset, or on the full dev set, whose score is also reported
    (optimistic; as in the paper); null: `within` by default, `full` in the modes paper and
    released"""
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

    candidates: Annotated[tuple[Count, ...], Length(1, distinct=True)] = (100, 10)
    """k (paper)"""
    label_tokens: Annotated[tuple[Count, ...], Length(1, distinct=True)] = (1, 3, 5)
    """label tokens of a class (paper)"""
    triggers: Annotated[tuple[Count, ...], Length(1, distinct=True)] = (3, 4, 5, 6)
    """trigger tokens (paper)"""
    settings: SearchFields = field(default_factory=lambda: {"restarts": 1})
    """fields of the search"""


@dataclass(frozen=True)
class Demos:
    """Demonstrations in front of the manual prompt (prompts `demos` ...)."""

    k: Count = 4
    """number of training facts shown"""
    draws: Count = 3
    """number of draws of `demos` and of each of its controls"""


@dataclass(frozen=True)
class Autoprompt(Tasks):
    """Prompt search and its baselines. probes/prompt_settings.py lists the prompts: `searched` and
    its controls, `manual`, `lpaqa`, `majority`, `linear_probe` ..."""

    mode: Mode = "default"
    """decides where the paper and the released code disagree: in the search, the selection of
    prompts from few examples, perturbed objects and reciprocal ranks (0 beyond 10,000 in
    `released`). The report of a `released` run says what differs from the released code"""
    draws: Count = 20
    """number of random triggers that a searched prompt is compared with"""
    demos: Demos = Demos()
    """demonstrations"""
    models: dict[str, Annotated[dict[str, Any], PartOf(Tasks)]] = field(default_factory=dict)
    """model: task: the same keys for this model only; they also apply to method `predict`, so that
    all prompts of a model are asked the same examples"""
    low_data: LowData = field(default_factory=LowData)
    """few training examples"""
    grid: SearchGrid = field(default_factory=SearchGrid)
    """label tokens and trigger length"""
    published: dict[str, str] = field(default_factory=dict)
    """model: its file of published searched prompts in LAMA's folder `autoprompt_published`, if it
    is neither bert-base-cased nor roberta-large"""
    transfer: dict[str, str] = field(default_factory=dict)
    """model: the model whose searched prompts its prompt `transferred` uses, as text"""
