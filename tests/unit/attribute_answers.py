"""A small run of three benchmarks with known answers: two models, masked and generated."""

import polars as pl

from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.knowledge.graph import EDGES, LITERAL_EDGES
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import study as st
from kgprobe.tables.attributes.study import ALPHA, KS, RANKS

#: (benchmark, example, pattern, role, origin, s, p, o) in the order of positions
ROWS = [
    *[
        ("symmetry", f"symmetry/P26/Q{i}/Q{i + 1}", "P26", role, "stored", s, "P26", o)
        for i in (1, 3, 5, 7)
        for role, s, o in (("forward", i, i + 1), ("backward", i + 1, i))
    ],
    *[
        ("asymmetry", f"asymmetry/P19/Q{i}/Q9", "P19", role, origin, s, "P19", o)
        for i in (1, 3)
        for role, origin, s, o in (("forward", "stored", i, 9), ("reversed", "reversed", 9, i))
    ],
    *[("bias", f"bias/P21/Q{i}/Q10", "P21", "fact", "stored", i, "P21", 10) for i in (1, 3)],
]
#: (model, benchmark) -> alphas at 1 of the rows in order, per prompt; at 3 and 5 all are right
ANSWERS = {
    ("large", "symmetry"): ([1, 1, 1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]),
    ("large", "asymmetry"): ([1, 0, 1, 1], [1, 0, 1, 1]),
    ("large", "bias"): ([1, 0], [0, 0]),
    ("small", "symmetry"): ([0] * 8, [0] * 8),
    ("small", "asymmetry"): ([0] * 4, [0] * 4),
    ("small", "bias"): ([0, 0], [0, 0]),
}


def benchmarks() -> dict[str, st.ProbedAttribute]:
    """Return the examples, items, candidates and prompts of the three benchmarks."""
    made = {}
    for name in ("symmetry", "asymmetry", "bias"):
        examples, items, seen = [], [], dict[str, int]()
        for b, example, pattern, role, origin, s, p, o in (r for r in ROWS if r[0] == name):
            position = seen[example] = seen.get(example, -1) + 1
            examples.append(
                (b, example, pattern, position, role, origin, f"Q{s}", p, f"Q{o}", f"label {s}",
                 None, f"label {o}", "entity", [f"Q{o}"], [f"label {o}"], 10 * s, 10 * o, [], True)
            )  # fmt: skip
            items.append(
                (f"{example}#{position}", example, role, p, f"label {s}", f"Q{s}",
                 f"{b}/{p}", [o], len(items), "{}")
            )  # fmt: skip
        relation = str(items[0][3])
        names = [(f"{name}/{relation}", i, f"Q{i}", f"label {i}") for i in range(11)]
        texts = ("[X] one [Y].", "[X] two [Y].")
        prompts = [(f"{relation}/{i}", relation, i, text, "own") for i, text in enumerate(texts)]
        made[name] = st.ProbedAttribute(
            name,
            pl.DataFrame(examples, schema=dict(EXAMPLES.columns), orient="row"),
            pl.DataFrame(items, schema=dict(ITEMS.columns), orient="row"),
            pl.DataFrame(names, schema=dict(CANDIDATES.columns), orient="row"),
            pl.DataFrame(prompts, schema=dict(PROMPTS.columns), orient="row"),
        )
    return made


def answers(made: dict[str, st.ProbedAttribute]) -> dict[Probe, pl.DataFrame]:
    """Return the answers of the two models; one of their first texts is verbose."""
    found = {}
    for (model, name), per_prompt in ANSWERS.items():
        items = made[name].items.sort("row")["item"].to_list()
        rows = [
            (item, template, k, "exact", gold, float(alpha) if k == 1 else 1.0, -1.0 - template,
             "right" if alpha else f"wrong {template}", None if template else "", n == 0)
            for template, alphas in enumerate(per_prompt)
            for n, (item, alpha) in enumerate(zip(items, alphas, strict=True))
            for k in KS
            for gold in ("own", "set")
        ]  # fmt: skip
        size = {"large": 2000, "small": 1000}[model]
        source = "control:causal" if model == "small" else "hub:large"
        probe = Probe(
            name, "templates", "fill", model, "causal", "forced", parameters=size, source=source
        )
        columns = ALPHA | {name: RANKS[name] for name in ("rule", "verbose")}
        found[probe] = pl.DataFrame(rows, schema=columns, orient="row")
    return found


def guesses(made: dict[str, st.ProbedAttribute]) -> pl.DataFrame:
    """Return baselines for a graph of each stored triple once, one more object of P21, no
    literals."""
    stored = [(r[5], int(r[6][1:]), r[7]) for r in ROWS if r[4] == "stored"]
    edges = pl.DataFrame([*stored, (5, 21, 11)], schema=dict(EDGES.columns), orient="row")
    literals = pl.DataFrame([], schema=dict(LITERAL_EDGES.columns))
    return st.guesses(edges, literals, [own.examples for own in made.values()])


def study() -> st.AttributesStudy:
    """Return the study of the run."""
    made = benchmarks()
    return st.AttributesStudy(made, answers(made), guesses(made))
