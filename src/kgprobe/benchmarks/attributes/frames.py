"""Column contracts of the knowledge-graph attributes."""

import polars as pl

from kgprobe.schema import Contract

#: The relations that LAMA's T-REx part covers.
LAMA = tuple(
    int(number)
    for number in (
        "17 19 20 27 30 31 36 37 39 47 101 103 106 108 127 131 136 138 140 159 176 178 190 264 "
        "276 279 361 364 407 413 449 463 495 527 530 740 937 1001 1303 1376 1412"
    ).split()
)

#: One triple of one example.
EXAMPLES = Contract(
    "EXAMPLES",
    {
        "benchmark": pl.String,
        "example": pl.String,
        "pattern": pl.String,
        "position": pl.Int32,
        "role": pl.String,
        "origin": pl.String,
        "subject": pl.String,
        "predicate": pl.String,
        "object": pl.String,
        "subject_label": pl.String,
        "predicate_label": pl.String,
        "object_label": pl.String,
        "object_kind": pl.String,
        "golds": pl.List(pl.String),
        "gold_labels": pl.List(pl.String),
        "subject_degree": pl.Int64,
        "object_degree": pl.Int64,
        "flags": pl.List(pl.String),
        "sampled": pl.Boolean,
    },
    ("benchmark", "example", "position"),
    frozenset(
        {"subject_label", "predicate_label", "object_label", "subject_degree", "object_degree"}
    ),
)

#: One step of a construction: how many it kept and dropped, and why.
STEPS = Contract(
    "ATTRIBUTE_STEPS",
    {
        "benchmark": pl.String,
        "position": pl.Int32,
        "step": pl.String,
        "kept": pl.Int64,
        "dropped": pl.Int64,
        "reason": pl.String,
    },
    ("benchmark", "position"),
)

#: A pattern that passed the thresholds: candidates in the graph, with labels, taken, probed.
PATTERNS = Contract(
    "ATTRIBUTE_PATTERNS",
    {
        "benchmark": pl.String,
        "pattern": pl.String,
        "candidates": pl.Int64,
        "structural": pl.Int64,
        "examples": pl.Int64,
        "sampled": pl.Int64,
    },
    ("benchmark", "pattern"),
)

#: The counterpart of the paper's Table 1 for one build of one benchmark. Predicates `written` have
#: a template that somebody wrote, those `by_label` the generic wording of their label.
SIZES = Contract(
    "ATTRIBUTE_SIZES",
    {
        "benchmark": pl.String,
        "build": pl.String,
        "examples": pl.Int64,
        "triples": pl.Int64,
        "patterns": pl.Int64,
        "predicates": pl.Int64,
        "written": pl.Int64,
        "by_label": pl.Int64,
        "without_template": pl.Int64,
        "entities": pl.Int64,
        "triples_per_pattern": pl.Float64,
    },
    ("benchmark", "build"),
)

#: A threshold that the paper leaves open, another value, and what the structural build becomes.
SENSITIVITY = Contract(
    "ATTRIBUTE_SENSITIVITY",
    {
        "benchmark": pl.String,
        "setting": pl.String,
        "default": pl.Boolean,
        "patterns": pl.Int64,
        "examples": pl.Int64,
        "triples": pl.Int64,
    },
    ("benchmark", "setting"),
)

#: The reports of a construction by their name in `Benchmark`, and with its examples.
REPORTS = {"steps": STEPS, "patterns": PATTERNS, "sizes": SIZES}
OUTPUTS = {"examples": EXAMPLES, **REPORTS}
