"""Build the five memorizing tasks of OntoProbe: items, candidate sets and prompts (sec. 3.1).

Errors in an ontology and its questions are collected per task and raised together at the end.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace

import polars as pl

from kgprobe.benchmarks.funnel import Funnel
from kgprobe.benchmarks.ontoprobe import concepts
from kgprobe.benchmarks.ontoprobe.concepts import SET_OF, TASKS, ConceptRows, Concepts, TaskRow
from kgprobe.benchmarks.ontoprobe.modes import Switches
from kgprobe.sampling import hash_key, take
from kgprobe.schema import CANDIDATES, ITEMS, PROMPTS
from kgprobe.settings.benchmarks import Rows

#: name of a lite set of candidates of the entailment rules
OF_RULES = "{} of rules"
#: keys in `meta` that exclude rows from the lite sets
LEFT_OUT = ("repeat", "soft_only")


@dataclass(frozen=True)
class OntoProbeFrames:
    """The frames of a benchmark, under their contracts."""

    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame
    funnel: pl.DataFrame
    #: ITEMS of the entailment rules
    rules: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=dict(ITEMS.columns)))


def build(concept_rows: ConceptRows, switches: Switches, name: str) -> OntoProbeFrames:
    """Build the frames of the five tasks of the benchmark `name`. Raises one ValueError that names
    every gold that is not a candidate and every property without a pattern."""
    labels = candidate_labels(concept_rows)
    index = {s: {label: n for n, label in enumerate(names)} for s, names in labels.items()}
    # spelled like the classes ("legal case" is "Legal Case")
    classes = [n for c in concept_rows.concepts.classes for n in (c.label, *c.chain)]
    spelling = {concepts.name_of(label): label for label in reversed(classes)}
    ends = {
        p.label: (spelling.get(concepts.name_of(p.domain or ""), p.domain), p.range)
        for p in concept_rows.concepts.properties
    }
    problems, rows = TaskProblems(name), []
    late = beyond(concept_rows.rows, switches)
    for row in concept_rows.rows:
        with problems.of(row.task):
            is_late, known = (row.task, row.row) in late, index[SET_OF[row.task]]
            rows.append(_item(row, switches, known, ends.get(row.subject, (None, None)), is_late))
    problems.check()
    items = _link_repeats(pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row"))
    sets = [(s, i, label, label) for s, names in labels.items() for i, label in enumerate(names)]
    candidates = pl.DataFrame(sets, schema=dict(CANDIDATES.columns), orient="row")
    return OntoProbeFrames(items, candidates, prompts(switches), funnel(concept_rows, items, name))


def candidate_labels(concept_rows: ConceptRows) -> dict[str, list[str]]:
    """Return the candidate sets: class, property, pattern. Premises also ask for properties and
    patterns that may not be candidates of their task (released: two labels, one pattern);
    `property+` and `pattern+` append these."""
    known, patterns = concept_rows.concepts, concept_rows.concepts.patterns
    classes = [n for c in known.classes for n in (c.label, *c.chain)]
    properties = [n for p in known.properties for n in (p.label, *p.above)]
    subjects = [r.subject for r in concept_rows.rows if r.task == "SPO"]
    forms = [patterns[n] for n in properties if n in patterns]
    more = [r.pattern for r in concept_rows.rows if r.pattern]
    sets = {
        "class": map(concepts.norm, classes),
        "property": map(concepts.norm, properties),
        "pattern": map(concepts.bare, forms),
        "property+": map(concepts.norm, [*properties, *subjects]),
        "pattern+": map(concepts.bare, [*forms, *more]),
    }
    distinct_labels = {name: list(dict.fromkeys(labels)) for name, labels in sets.items()}
    return {name: labels for name, labels in distinct_labels.items() if labels}


def beyond(rows: Sequence[TaskRow], switches: Switches) -> set[tuple[str, int]]:
    """Return (task, row) of the test rows of TP and SCO after the first `item_limit` (released:
    500): the released code uses them only with soft prompts, so `meta` marks them `soft_only`."""
    limit = len(rows) if switches.item_limit == "none" else int(switches.item_limit)
    tested = ([r for r in rows if (r.task, r.role) == (t, "test")] for t in ("TP", "SCO"))
    return {(row.task, row.row) for group in tested for row in group[limit:]}


def prompts(switches: Switches) -> pl.DataFrame:
    """Return PROMPTS: the manual templates m1, m2, m3 with index 1, 2, 3."""
    rows = []
    for task, texts in concepts.TEMPLATES.items():
        for number, text in enumerate(texts, 1):
            if (task, number, switches.sco_m2) == ("SCO", 2, "class"):
                text = "[X] has class [Y] ."
            rows.append((f"{task}-m{number}", task, number, text, "manual"))
    return pl.DataFrame(rows, schema=dict(PROMPTS.columns), orient="row")


def funnel(concept_rows: ConceptRows, items: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return FUNNEL: rows kept by each step, then train, dev, test and distinct test rows."""
    steps = list(concept_rows.steps)
    for task in TASKS:
        rows = items.filter(pl.col("relation") == task)
        steps.append((task, "rows", rows.height))
        roles = ("train", "dev", "test")
        steps += [(task, f"rows for {r}", rows.filter(role=r).height) for r in roles]
        once = rows.filter(pl.col("meta").str.json_path_match("$.repeat").is_null(), role="test")
        steps.append((task, "distinct rows for test", once.height))
    counted, before = Funnel(name, through=True), dict[str, int]()
    for task, step, kept in steps:
        # every row counts as a subject
        counted.add(task, step, max(before.get(task, kept), kept), kept, range(kept))
        if not step.startswith("rows for") or step == "rows for test":
            before[task] = kept
    return counted.frame()


def lite(
    sets: OntoProbeFrames,
    sizes: Rows,
    options: int,
    seed: int,
    templates: int | None = None,
    rule_rows: int | None = None,
) -> OntoProbeFrames:
    """Return a subset of every task, to score options as sentences: `sizes` rows of each split, the
    first `templates` prompts, and, if `options` > 0, the golds of the kept rows and that many
    other candidates of each set, by seeded hash. Rows of rules are those whose first premise is a
    kept row, at most `rule_rows` for testing; their candidates are then sets of their own, with the
    golds of their tests of P2."""
    parts = [
        _few(sets.items.filter(relation=task, role=role), most, seed)
        for task in TASKS
        for role, most in asdict(sizes).items()
    ]
    chosen = pl.concat(parts)
    if templates is not None:
        is_first = pl.col("index").rank("dense").over("relation") <= templates
        sets = replace(sets, prompts=sets.prompts.filter(is_first))
    premise = pl.col("meta").str.json_path_match("$.p1_item")
    rules = sampled(sets.rules.filter(premise.is_in(chosen["item"].implode())), rule_rows, seed)
    if options <= 0:
        return replace(sets, items=chosen, rules=rules)
    metas = [json.loads(text) for text in rules["meta"]]
    tests = [test for meta in metas for test in meta["p2_tests"].values()]
    named = rules.with_columns(pl.format(OF_RULES, "candidates").alias("candidates"))
    for test in tests:
        test["candidates"] = OF_RULES.format(test["candidates"])
    used = {*named["candidates"], *(test["candidates"] for test in tests)}
    copies = sets.candidates.with_columns(set=pl.format(OF_RULES, "set"))
    every = pl.concat([sets.candidates, copies.filter(pl.col("set").is_in(used))])
    questions = pl.concat([chosen, named]).select("candidates", "answers").rows()
    questions += [(test["candidates"], test["golds"]) for test in tests]
    golds = {(name, index) for name, indices in questions for index in indices}
    candidates, new = _few_candidates(every, golds, options, seed)
    for test in tests:
        test["golds"] = [new[test["candidates"], index] for index in test["golds"]]
    texts = [json.dumps(meta, ensure_ascii=False, sort_keys=True) for meta in metas]
    items, rules = (_renumber(frame, new) for frame in (chosen, named))
    rules = rules.with_columns(meta=pl.Series(texts, dtype=pl.String))
    return replace(sets, items=items, candidates=candidates, rules=rules)


def sampled(rules: pl.DataFrame, rows: int | None, seed: int) -> pl.DataFrame:
    """Select at most `rows` test items of each rule, by hash, and all other items."""
    test, rest = rules.filter(role="test"), rules.filter(pl.col("role") != "test")
    sample = take(test, rows or max(test.height, 1), seed, ["item"], ["relation"], "premises")
    return pl.concat([rest, sample]).sort("item")


def _few_candidates(
    candidates: pl.DataFrame, golds: set[tuple[str, int]], options: int, seed: int
) -> tuple[pl.DataFrame, dict[tuple[str, int], int]]:
    """Return the `golds` (set, index) among CANDIDATES and `options` others of each set, by seeded
    hash, with new indices; and (set, index) -> new index."""
    rows = candidates.select("set", "index", "label").rows()
    keys = pl.Series([hash_key(seed, "option", s, label) for s, _, label in rows], dtype=pl.UInt64)
    is_gold = pl.Series([(name, index) in golds for name, index, _ in rows], dtype=pl.Boolean)
    known = candidates.with_columns(key=keys, gold=is_gold)
    place = pl.col("key").rank("ordinal").over("set", "gold")
    kept = known.filter(pl.col("gold") | (place <= options))
    kept = kept.with_columns(new=pl.int_range(pl.len(), dtype=pl.Int32).over("set"))
    new = {(name, index): at for name, index, at in kept.select("set", "index", "new").rows()}
    return kept.with_columns(index="new").select(list(CANDIDATES.columns)), new


def _renumber(items: pl.DataFrame, new: Mapping[tuple[str, int], int]) -> pl.DataFrame:
    """Return ITEMS with the new indices of their answers; `new`: from `_few_candidates`."""
    rows = items.select("candidates", "answers").rows()
    answers = [[new[name, index] for index in indices] for name, indices in rows]
    return items.with_columns(answers=pl.Series(answers, dtype=pl.List(pl.Int32)))


def _few(items: pl.DataFrame, n: int, seed: int) -> pl.DataFrame:
    """Sample at most `n` rows by seeded hash, spread over finest golds: one row of each, then a
    second of each, and so on. Repeats and soft-prompt-only rows are excluded."""
    keys = pl.Series([hash_key(seed, "lite", i) for i in items["item"]], dtype=pl.UInt64)
    usable = (pl.col("meta").str.json_path_match(f"$.{key}").is_null() for key in LEFT_OUT)
    ordered = items.with_columns(_key=keys).filter(*usable).sort("_key")
    turn = pl.int_range(pl.len()).over(pl.col("answers").list.first())
    return ordered.sort(turn, "_key").head(n).sort("row").select(items.columns)


def index_of_gold(known: Mapping[str, int], label: str, name: str, row: TaskRow) -> int:
    """Return the index of a row's gold in its candidate set. Raises ValueError if it is missing."""
    if label not in known:
        raise ValueError(
            f"{row.title}: its gold {label!r} is not among the {len(known)} {name} candidates; "
            "correct the label or add the concept to the ontology"
        )
    return known[label]


def _item(
    row: TaskRow,
    switches: Switches,
    index: Mapping[str, int],
    ends: tuple[str | None, str | None],
    is_soft_only: bool,
) -> tuple[object, ...]:
    """Return one row of ITEMS; `ends`: domain and range of the property that it is about."""
    set_name, about_end = SET_OF[row.task], row.task in ("DM", "RG")
    answers = [index_of_gold(index, concepts.norm(gold), set_name, row) for gold in row.golds]
    label = row.subject if switches.labels == "unicode" else concepts.ascii_drop(row.subject)
    if not label.strip():
        raise ValueError(
            f"{row.title}: nothing is left of its subject under labels: ascii_drop; set "
            "ontoprobe.switches.labels: unicode or remove the row"
        )
    shown = concepts.subject(label, switches.upper_first, row.task == "TP")
    if about_end:
        if not row.pattern:
            raise ValueError(
                f"{row.title} has no pattern; add one to resources/templates/ontology_patterns.tsv"
            )
        if row.task == "DM":
            shown = concepts.domain_clause(row.pattern, ends[1], switches.phrasing)
        else:
            shown = concepts.range_clause(row.pattern, ends[0], switches.phrasing)
    leak = any(concepts.norm(g).casefold() in row.subject.casefold() for g in row.golds)
    meta = {
        "soft_subject": row.subject if about_end else shown,
        "label": row.subject,
        **({} if label == row.subject else {"ascii": label}),
        "finest": concepts.norm(row.golds[0]),
        "depth": row.depth,
        "leak": row.task in ("TP", "SCO") and leak,
        **({} if row.popularity is None else {"popularity": row.popularity}),
        **({"pattern": row.pattern} if row.pattern else {}),
        **({"soft_only": True} if is_soft_only else {}),
    }
    key = f"{row.task}-{row.row}"
    text = json.dumps(meta, ensure_ascii=False, sort_keys=True)
    return (key, row.task, row.role, row.task, shown, row.id, set_name, answers, row.row, text)


def _link_repeats(items: pl.DataFrame) -> pl.DataFrame:
    """Add to `meta`: the first identical row (repeat), and the train or dev row of the subject."""
    first: dict[tuple[object, ...], str] = {}
    early: dict[tuple[str, str], str] = {}
    metas = []
    columns = ("item", "relation", "role", "answers", "meta")
    for item, task, role, answers, text in items.select(columns).rows():
        meta = json.loads(text)
        who = task, meta["label"]
        other = first.setdefault((*who, *sorted(answers)), item)
        if other != item:
            meta["repeat"] = other
        if role != "test":
            early.setdefault(who, item)
        elif who in early:
            meta["twin"] = early[who]
        metas.append(json.dumps(meta, ensure_ascii=False, sort_keys=True))
    return items.with_columns(meta=pl.Series(metas, dtype=pl.String))


#: how many problems of a task are listed
SHOWN = 5


@dataclass(frozen=True)
class TaskProblems:
    """Problems by task (or "ontology"), collected so that no task hides those of another."""

    what: str
    messages: dict[str, list[str]] = field(default_factory=dict)

    def add(self, task: str, message: str) -> None:
        """Add a problem; the message names file, row and remedy."""
        self.messages.setdefault(task, []).append(message)

    @contextmanager
    def of(self, task: str) -> Iterator[None]:
        """Record a ValueError in the body as a problem of the task."""
        try:
            yield
        except ValueError as error:
            self.add(task, str(error))

    def check(self) -> None:
        """Raise one ValueError that lists all problems, if there are any."""
        if not self.messages:
            return
        lines = [f"{self.what}: {', '.join(self.messages)} cannot be built"]
        for task, messages in self.messages.items():
            lines += [f"  {task}: {message}" for message in messages[:SHOWN]]
            if len(messages) > SHOWN:
                lines.append(f"  {task}: ... and {len(messages) - SHOWN} more")
        raise ValueError("\n".join(lines))


def distinct(rows: Sequence[TaskRow], problems: TaskProblems) -> None:
    """Record every test question that also is in train or dev."""
    seen = {(r.task, r.subject, frozenset(r.golds)): r for r in rows if r.role != "test"}
    for row in rows:
        other = seen.get((row.task, row.subject, frozenset(row.golds)))
        if row.role == "test" and other:
            text = f"is also row {other.row}, which is for {other.role}; remove one of them"
            problems.add(row.task, f"{row.title} {text}")


def check_known_concepts(
    rows: Sequence[TaskRow], known: Concepts, files: str, problems: TaskProblems
) -> None:
    """Record rows about a class without instances (TP) or a property without domain or range (DM,
    RG); `files` names the ontology's location in messages."""
    instances = {c.label: c.instances for c in known.classes}
    ends = {(p.label, task): end for p in known.properties
            for task, end in (("DM", p.domain), ("RG", p.range))}  # fmt: skip
    for row in rows:
        text = ""
        if row.task == "TP" and instances.get(row.golds[0]) == ():
            text = f" is of the class {row.golds[0]!r}, which has no instance in {files}; add the "
            text += "instance there or remove the row"
        elif not ends.get((row.subject, row.task), True):
            end = "domain" if row.task == "DM" else "range"
            text = f": the property has no {end} in {files}; add it there or remove the row"
        if text:
            problems.add(row.task, f"{row.title}{text}")
