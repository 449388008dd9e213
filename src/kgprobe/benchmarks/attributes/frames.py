"""Column contracts of the knowledge-graph attributes."""

import polars as pl

from kgprobe.schema import Contract

_ENDS = ("subject", "predicate", "object")
_LABELS, _DEGREES = tuple(f"{end}_label" for end in _ENDS), ("subject_degree", "object_degree")

#: One triple of one example.
EXAMPLES = Contract(
    "EXAMPLES",
    {
        **dict.fromkeys(("benchmark", "example", "pattern"), pl.String),
        "position": pl.Int32,
        **dict.fromkeys(("role", "origin", *_ENDS, *_LABELS, "object_kind"), pl.String),
        **dict.fromkeys(("golds", "gold_labels"), pl.List(pl.String)),
        **dict.fromkeys(_DEGREES, pl.Int64),
        "flags": pl.List(pl.String),
        "sampled": pl.Boolean,
    },
    ("benchmark", "example", "position"),
    frozenset({*_LABELS, *_DEGREES}),
)

#: One step of a construction: how many rows it kept and dropped, and why.
STEPS = Contract(
    "ATTRIBUTE_STEPS",
    {
        "benchmark": pl.String, "position": pl.Int32, "step": pl.String, "kept": pl.Int64,
        "dropped": pl.Int64, "reason": pl.String,
    },
    ("benchmark", "position"),
)  # fmt: skip

#: A pattern that passed the thresholds: candidates, examples of both builds, probed examples.
_PATTERN = ("benchmark", "pattern")
PATTERNS = Contract(
    "ATTRIBUTE_PATTERNS",
    dict.fromkeys(_PATTERN, pl.String)
    | dict.fromkeys(("candidates", "structural", "examples", "sampled"), pl.Int64),
    _PATTERN,
)

#: The counterpart of the paper's Table 1 for one build of one benchmark. `written` predicates have
#: a manual template, those `by_label` the generic template of their label.
SIZES = Contract(
    "ATTRIBUTE_SIZES",
    {
        **dict.fromkeys(("benchmark", "build"), pl.String),
        **dict.fromkeys(("examples", "triples", "patterns", "predicates"), pl.Int64),
        **dict.fromkeys(("written", "by_label", "without_template", "entities"), pl.Int64),
        "triples_per_pattern": pl.Float64,
    },
    ("benchmark", "build"),
)

#: A setting that the paper leaves open, and the size of the structural build with it.
SENSITIVITY = Contract(
    "ATTRIBUTE_SENSITIVITY",
    {
        **dict.fromkeys(("benchmark", "setting"), pl.String),
        "default": pl.Boolean,
        **dict.fromkeys(("patterns", "examples", "triples"), pl.Int64),
    },
    ("benchmark", "setting"),
)

#: Contracts of the reports of a construction.
REPORTS = {"steps": STEPS, "patterns": PATTERNS, "sizes": SIZES}
