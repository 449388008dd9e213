"""The column contracts of all parquet files: one contract for each kind of row.

`schema` reads and writes files under these contracts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Contract:
    """The contract of a table: columns with dtypes, the unique key, and the nullable columns.

    Floats are finite in every contract. `positive`: integer columns (counts, ranks) whose non-null
    values are at least 1.
    """

    name: str
    columns: Mapping[str, pl.DataType | type[pl.DataType]]
    key: tuple[str, ...]
    nullable: frozenset[str] = field(default_factory=frozenset)
    #: whether a file without rows is valid (a dump file without triples) or an error
    may_be_empty: bool = False
    positive: frozenset[str] = field(default_factory=frozenset)


def _contract(
    name: str, key: str, nullable: str = "", positive: str = "", **columns: object
) -> Contract:
    return Contract(
        name,
        columns,  # type: ignore[arg-type]
        tuple(key.split()),
        frozenset(nullable.split()),
        positive=frozenset(positive.split()),
    )


def _of(dtype: object, names: str) -> dict[str, Any]:
    """Return columns of one dtype, in this order."""
    return dict.fromkeys(names.split(), dtype)


#: A statement as pulled from its source, with all fields by which benchmarks select.
STATEMENTS = _contract(
    "STATEMENTS",
    key="kg relation subject object object_kind rank",
    nullable="subject_label subject_sitelinks object_label object_sitelinks",
    **_of(pl.String, "kg relation subject subject_label"),
    subject_sitelinks=pl.Int64,
    **_of(pl.String, "object object_label"),
    object_sitelinks=pl.Int64,
    **_of(pl.String, "object_kind rank"),
)

#: Methods that get all statements of a relation: a query, or a dump that is read for all relations.
WHOLE = ("pulled", "read")
#: How the statements of a relation were obtained: `way` is one of WHOLE, sitelinks (well-known
#: subjects only), dump (this relation's statements only, from a dump) or left out; `reason` says
#: why not all were obtained, and what a dump lacks. Then counts of the statements that are not
#: deprecated, by kind of value, and of the deprecated ones; `redirected`: statements whose object
#: was merged into another item, which replaces it here; null where they were not counted.
COVERAGE = _contract(
    "COVERAGE",
    key="relation",
    nullable="item unknown no_value literal other deprecated redirected",
    **_of(pl.String, "relation way"),
    rows=pl.Int64,
    reason=pl.String,
    **_of(pl.Int64, "item unknown no_value literal other deprecated redirected"),
)
COVERAGE = replace(COVERAGE, may_be_empty=True)  # DBpedia dumps are not queried by relation

#: An instance of a class, with its label.
TYPES = replace(
    _contract(
        "TYPES",
        key="class instance label",
        nullable="label",
        **_of(pl.String, "class instance label"),
    ),
    may_be_empty=True,
)

#: A fact: a distinct statement of best rank. A past value next to a preferred one is not a fact.
FACTS = _contract(
    "FACTS",
    key="kg relation subject object",
    nullable="subject_label object_label",
    **_of(pl.String, "kg subject subject_label relation object object_label"),
)

#: One question about one fact. `answers` holds indices into the candidate set.
ITEMS = _contract(
    "ITEMS",
    key="item",
    **_of(pl.String, "item group role relation subject subject_id candidates"),
    answers=pl.List(pl.Int32),
    row=pl.Int32,
    meta=pl.String,
)

#: One option of a candidate set.
CANDIDATES = _contract(
    "CANDIDATES",
    key="set index",
    set=pl.String,
    index=pl.Int32,
    **_of(pl.String, "id label"),
)

#: One template of a relation, with the placeholders [X] (subject) and [Y] (answer).
PROMPTS = _contract(
    "PROMPTS",
    key="prompt",
    **_of(pl.String, "prompt relation"),
    index=pl.Int32,
    **_of(pl.String, "text kind"),
)

#: The origin of a prompt: the prompt from which it was derived, and the change.
PROMPT_ORIGINS = _contract(
    "PROMPT_ORIGINS",
    key="prompt",
    **_of(pl.String, "prompt relation kind parent change"),
)

#: Log-likelihoods (natural logarithm) of one option of one item under one template. answer_count
#: is 0 if no token of an answer can be scored (BOS policy none, answer is the first token).
SCORES = _contract(
    "SCORES",
    key="item template candidate",
    positive="count",
    nullable="continuation_sum",
    item=pl.String,
    **_of(pl.Int32, "template candidate"),
    sum=pl.Float64,
    count=pl.Int32,
    answer_sum=pl.Float64,
    answer_count=pl.Int32,
    continuation_sum=pl.Float64,
)

#: Log-likelihoods of an option after a content-free subject, once for each template and candidate
#: set of a relation: `subject` is the text that replaces the subject.
CONTENT_FREE = _contract(
    "CONTENT_FREE",
    key="relation set subject template candidate",
    positive="count",
    nullable="continuation_sum",
    **_of(pl.String, "relation set subject"),
    **_of(pl.Int32, "template candidate"),
    sum=pl.Float64,
    count=pl.Int32,
    answer_sum=pl.Float64,
    answer_count=pl.Int32,
    continuation_sum=pl.Float64,
)
CONTENT_FREE = replace(CONTENT_FREE, may_be_empty=True)  # candidate sets shared by few subjects

#: Accuracy of a model checkpoint during training under one template: fraction of the items whose
#: best option is correct (expected under random tie breaking), with its 95 % interval.
PROBED = _contract(
    "PROBED",
    key="step template",
    positive="n",
    step=pl.Int64,
    template=pl.Int32,
    **_of(pl.Float64, "accuracy low high"),
    interval=pl.String,
    n=pl.Int64,
)

#: Rank range and score of a gold candidate (index `gold` of its set) under one configuration.
#: `in_order`: rank when ties go to fewer tokens, then to the lower index. `tokens`: token count.
RANKS = _contract(
    "RANKS",
    key="item template masks pooling gold",
    positive="best worst in_order tokens",
    item=pl.String,
    template=pl.Int32,
    **_of(pl.String, "masks pooling"),
    **_of(pl.Int32, "gold best worst in_order tokens"),
    score=pl.Float64,
)

#: The best candidates under one configuration; `place` is the rank, from 1.
TOPS = _contract(
    "TOPS",
    key="item template masks pooling place",
    positive="place",
    item=pl.String,
    template=pl.Int32,
    **_of(pl.String, "masks pooling"),
    **_of(pl.Int32, "place candidate"),
    score=pl.Float64,
)

#: A filling of a slot. Position 0 and up: the best tokens at it; position -1: whole fillings.
#: `masks` is the number of masks or tokens requested, 0 if the model generated to the end of a
#: phrase. `text` is what is scored, extracted from `raw`, all that was generated.
FILLS = _contract(
    "FILLS",
    key="item template masks position rank",
    positive="rank",
    nullable="logprob",
    item=pl.String,
    **_of(pl.Int32, "template masks position rank"),
    token=pl.Int64,
    **_of(pl.String, "text raw"),
    logprob=pl.Float64,
)

#: Rank range of every token of a gold at its mask, or after the gold's earlier tokens.
FILL_GOLDS = _contract(
    "FILL_GOLDS",
    key="item template gold position",
    positive="masks best worst",
    item=pl.String,
    **_of(pl.Int32, "template gold position masks"),
    token=pl.Int64,
    **_of(pl.Int32, "best worst"),
    logprob=pl.Float64,
)
FILL_GOLDS = replace(FILL_GOLDS, may_be_empty=True)  # API servers return no ranks

#: A multiple-choice question. `premise` is "" (memorizing), out or EX (first premise given);
#: `source` is the memorizing question of the same row; `stem` the manual prompt with [MASK], or "".
CHOICES = _contract(
    "CHOICES",
    key="item",
    **_of(pl.String, "item task premise source question stem"),
    options=pl.List(pl.String),
    **_of(pl.Int32, "gold row"),
)

#: The option chosen in one scoring mode; null if no option is found in the answer.
CHOSEN = _contract(
    "CHOSEN",
    key="item scoring",
    nullable="chosen margin",
    **_of(pl.String, "item scoring"),
    chosen=pl.Int32,
    **_of(pl.String, "rule text"),
    margin=pl.Float64,
)

#: RANKS for soft prompts, which also have a training loss and a seed (template is always 0).
SOFT_RANKS = _contract(
    "SOFT_RANKS",
    key="item masks pooling loss seed gold",
    positive="best worst in_order tokens",
    item=pl.String,
    template=pl.Int32,
    **_of(pl.String, "masks pooling loss"),
    **_of(pl.Int32, "seed gold best worst in_order tokens"),
    score=pl.Float64,
)

#: One training epoch of a soft prompt; `kept` marks the epoch whose vectors were kept.
SOFT_CURVES = _contract(
    "SOFT_CURVES",
    key="task masks pooling loss seed epoch",
    **_of(pl.String, "task masks pooling loss"),
    **_of(pl.Int32, "seed epoch"),
    **_of(pl.Float64, "training dev"),
    kept=pl.Boolean,
)

#: Rank range of a gold of a reasoning item: scheme is template + conjunction, p1 and p2 say which
#: premises are in the prompt, pair is the number of the pseudowords.
REASON_RANKS = _contract(
    "REASON_RANKS",
    key="item scheme p1 p2 pair gold",
    positive="best worst in_order",
    **_of(pl.String, "item scheme"),
    **_of(pl.Boolean, "p1 p2"),
    **_of(pl.Int32, "pair gold best worst in_order"),
    score=pl.Float64,
)

#: Rank range of the second premise itself, queried with the same pseudowords, per template kind.
PREMISE_RANKS = _contract(
    "PREMISE_RANKS",
    key="item kind pair",
    positive="best worst in_order",
    **_of(pl.String, "item kind"),
    **_of(pl.Int32, "pair best worst in_order"),
    score=pl.Float64,
)

#: Which facts the control models were trained on.
TRAINED_ON = _contract(
    "TRAINED_ON",
    key="fact",
    **_of(pl.String, "fact relation subject object"),
    trained_on=pl.Boolean,
)

#: Counts in the `meta` of ITEMS by which items are sliced.
COUNTS = ("sitelinks", "statements", "popularity")
#: What a probe can be run without, in print order: values of the setting `without`. Its numbers
#: are then baselines, which need no knowledge of the facts.
WITHOUT = ("the subject", "trained weights")

#: Further settings of a number: RESULTS has a column for each.
SETTING: Mapping[str, str] = {
    "alpha": "how a written answer was compared with a gold answer (exact, verbatim, each rule)",
    "bin": "lower edge of a bin, of log10 of popularity or of confidence",
    "choice": "how a configuration was chosen (chosen on dev, fixed, oracle), or all if nothing "
    "was left out",
    "demonstrations": "examples shown before the question",
    "draw": "the random subset or triggers",
    "drawn": "what a bootstrap resamples instead of examples (patterns, entities)",
    "form": "variant of a data set or text (released, paper, balanced), or of a rule's premises "
    "(none, true, irrelevant ...)",
    "gold": "own: the object of the triple; set: every object of the subject; filtered: own, with "
    "the others removed",
    "instead": "the other probe of a difference: its model and whatever else differs",
    "k": "how many answers count",
    "labels": "label tokens of a class",
    "loss": "training loss of soft prompts",
    "masks": "one or several masks in a mask slot, or sentence",
    "mode": "the mode where paper and code disagree",
    "pooling": "how several tokens, or several prompts, become one score",
    "premise": "which premises are in the prompt (P1 EX, P2 IM ...)",
    "prompts": "number of prompts among which the best one is taken",
    "aggregation": "how token scores become the score of an option",
    "scheme": "template and conjunction of a reasoning prompt",
    "seed": "seed of what was trained or drawn",
    "size": "number of training examples",
    "template": "number or name of the template",
    "triggers": "number of trigger tokens",
    "scoring": "scoring mode of multiple choice",
    "weighting": "what has equal weight: items, relations, entities, configurations",
    "without": "what was removed (the subject, trained weights)",
}

#: Every measured number of every paper: which model was asked what and how, in terms of the table
#: of experiments (baselines are models); what was measured, on which slice, under which settings
#: (the columns of SETTING). A dimension that does not apply is "".
#: `value` is null where it is undefined (0 of 0). n counts distinct items, or subjects where a
#: relation asks for some several times; `interval` names the kind of low and high (wilson,
#: bootstrap, ..., none). `published` and its `source` are given only where model, data and metric
#: are the same.
RESULTS = _contract(
    "RESULTS",
    key=f"paper benchmark group model prompt method metric slice {' '.join(SETTING)}",
    nullable="value low high numerator denominator published source",
    **_of(pl.String, "paper benchmark group model prompt method metric slice"),
    **_of(pl.String, " ".join(SETTING)),
    **_of(pl.Float64, "value low high"),
    interval=pl.String,
    n=pl.Int64,
    **_of(pl.Float64, "numerator denominator published"),
    source=pl.String,
)

#: Columns of SETTING that tell apart a probe's answers to one item.
GIVEN_UNDER = (
    "template", "masks", "pooling", "loss", "seed", "scheme", "premise", "draw", "scoring",
)  # fmt: skip
#: An answer of a probe under its own score aggregation, judged by one gold `matching` (as `gold` in
#: RESULTS; any: the best-ranked correct answer counts). For AutoPrompt items are test examples,
#: GROUP/EXAMPLE. Other facts about an item (role, split, whether trained on) can be joined by it.
#: `subject`: its id, or its label; for a lettered question the memorizing question of its row.
#: `answer`: the top answer. `hit`: 0 to 1, ties shared, null if no gold can be answered.
#: `rank_low`, `rank_high`: rank of the gold if ties go in its favor and against it, null if it is
#: not among the answers; `margin`: lead of the gold over the best other option in nats;
#: `options`: how many were ranked, or how many texts were generated; 0 where a sentence gave none
#: (relation LSTM).
JUDGED = _contract(
    "JUDGED",
    key=f"paper benchmark group model prompt method matching item {' '.join(GIVEN_UNDER)}",
    nullable="answer hit rank_low rank_high margin options",
    positive="rank_low rank_high",
    **_of(pl.String, "paper benchmark group model prompt method matching item"),
    **dict.fromkeys((*GIVEN_UNDER, "relation", "subject", "answer"), pl.String),
    hit=pl.Float64,
    **_of(pl.Int64, "rank_low rank_high"),
    margin=pl.Float64,
    options=pl.Int64,
)
JUDGED = replace(JUDGED, may_be_empty=True)  # a run that has only sweeps

#: The outcome of a paper's claim: `a` and `b` are the means of its two sides over `pairs`, `value`
#: the difference in the claim's direction with its 95 % bounds, `n` the fewest items behind one of
#: its numbers, `p` two-sided and Holm-corrected over all claims of the run. `printed`: the same
#: from the papers' tables. `comparison` is what is compared, "" except for principal claims;
#: `needs` what has to be run. Null: nothing to compare, no interval, or not in print.
CLAIMS = _contract(
    "CLAIMS",
    key="claim",
    nullable="a b value low high p printed",
    **_of(
        pl.String,
        "claim paper statement where comparison needs holds direction verdict reason models",
    ),
    **_of(pl.Float64, "a b value low high p printed"),
    **_of(pl.Int64, "n pairs"),
)

#: How many rows each construction step received and kept.
FUNNEL = _contract(
    "FUNNEL",
    key="benchmark relation position",
    **_of(pl.String, "benchmark relation"),
    position=pl.Int32,
    step=pl.String,
    **_of(pl.Int64, "rows_in rows_out subjects answers"),
)

#: An example of a prompt task: a fact, or a sentence with its class. `group` is the relation (""
#: if the task has none), `fields` (JSON) fills a template, `label` is the class or gold object.
#: `surfaces`: other spellings that count as right; `others`: further right answers of this subject;
#: `flags`: what excludes it from the no-overlap subset (pair, inverse, within, same). Examples
#: of one `fact` belong together (sentences of relation extraction).
EXAMPLES = _contract(
    "EXAMPLES",
    key="group split example",
    **_of(pl.String, "group split example fact fields label"),
    **_of(pl.List(pl.String), "surfaces others flags"),
)

#: The outcome of an example under a prompt (or a baseline of that name): rank range of the gold
#: label among the `options` labels or words that can be predicted, the same without `others`, the
#: top answer, and log-probability of the gold. Ranks are null if the gold is not among the options.
OUTCOMES = _contract(
    "OUTCOMES",
    key="prompt group split example",
    positive="best worst filtered_best filtered_worst",
    nullable="best worst filtered_best filtered_worst logprob",
    **_of(pl.String, "prompt group split example"),
    **_of(pl.Int32, "best worst filtered_best filtered_worst options"),
    answer=pl.String,
    logprob=pl.Float64,
)

#: A point of a sweep: dev accuracy (0 .. 1) on `n` examples, of a prompt search or a fine-tuned
#: model (`method`) with `size` training examples, the `draw`-th subset of that size.
SWEEPS = _contract(
    "SWEEPS",
    key="method size draw k label_tokens triggers",
    positive="size n",
    method=pl.String,
    size=pl.Int64,
    **_of(pl.Int32, "draw k label_tokens triggers"),
    value=pl.Float64,
    n=pl.Int64,
)

#: One sentence per column about its meaning, by contract, for questions. SENTENCES are the rows of
#: exported ones, one per question and template; LETTERED those of CHOICES.
MEANING: Mapping[str, Mapping[str, str]] = {
    "ITEMS": {
        "item": "Name of the question: relation and subject, such as P36/Q142.",
        "group": "What the question belongs to; by default its relation.",
        "role": "Split of the question: test, or train and dev if something is trained.",
        "relation": "Id of the relation; P and a number is a Wikidata property.",
        "subject": "Label of the subject, as in the sentence.",
        "subject_id": "Id of the subject in its source.",
        "candidates": "Name of the set of options, a key of the candidates.",
        "answers": "Indices of the correct options in that set.",
        "row": "Position of the question within its relation.",
        "meta": "Further facts as a JSON object: aliases, sitelinks.",
    },
    "CANDIDATES": {
        "set": "Name of the set of options.",
        "index": "Position of the option in its set, from 0.",
        "id": "Id of the option in its source.",
        "label": "Label of the option, as in the sentence.",
    },
    "PROMPTS": {
        "prompt": "Name of the template.",
        "relation": "Id of the relation that it asks about.",
        "index": "Number of the template within its relation, from 0.",
        "text": "The template: [X] stands for the subject, [Y] for the option.",
        "kind": "Where the template comes from.",
    },
    "SENTENCES": {
        "composite_id": "Relation, row of the question in its relation, template: P36-0-2.",
        "relation": "Id of the relation; P and a number is a Wikidata property.",
        "item": "Name of the question: relation and subject, such as P36/Q142.",
        "template_index": "Number of the template, from 0.",
        "template": "Text of the template: [X] stands for the subject, [Y] for the option.",
        "subject": "Label of the subject.",
        "answer_options": (
            "Labels of all options of the question; questions with the same options list them in "
            "one order."
        ),
        "correct": "Index of the correct option; a list if questions have several.",
        "text_options": "The template filled with each option, its first character upper-cased.",
    },
    "CHOICES": {
        "item": "Name of the question: task or rule, and row; +p1 if the premise is given.",
        "task": "TP, SCO, SPO, DM or RG, or the RDFS rule to apply.",
        "premise": "The first premise: out (not given), EX (given), or empty for a task.",
        "source": "The memorizing question for the same row.",
        "question": "The question, after the premises that are given.",
        "stem": "The same as a sentence with [MASK]; empty if there is none.",
        "options": "Labels of the options, in the order of their letters.",
        "gold": "Index of the correct option.",
        "row": "Position of the question within its task or rule.",
    },
    "LETTERED": {
        "item": "Name of the question: task or rule, and row; +p1 if the premise is given.",
        "part": "Task, or rule with its premise: the group of an accuracy.",
        "task": "TP, SCO, SPO, DM or RG, or the RDFS rule to apply.",
        "premise": "The first premise: out (not given), EX (given), or empty for a task.",
        "source": "The memorizing question for the same row.",
        "prompt": "The prompt: question, lettered options, and Answer.",
        "question": "The question, after the premises that are given.",
        "options": "Labels of the options, in the order of their letters.",
        "correct": "Index of the correct option.",
    },
}
