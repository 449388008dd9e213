"""The five memorising tasks of OntoProbe as items, candidate sets and prompts (sec. 3.1)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from kgprobe.benchmarks import ontoprobe_text as words
from kgprobe.benchmarks.ontoprobe_checks import Problems
from kgprobe.benchmarks.ontoprobe_concepts import SET_OF, TASKS, Row, Taken
from kgprobe.sampling import hash_key
from kgprobe.schema import CANDIDATES, FUNNEL, ITEMS, PROMPTS


@dataclass(frozen=True)
class Sets:
    """The frames of a benchmark, in their contracts."""

    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame
    funnel: pl.DataFrame


def build(taken: Taken, switches: Mapping[str, str], name: str) -> Sets:
    """Items, candidates, prompts and funnel of the five tasks; `name` is the benchmark's.

    Raises one ValueError that names every gold that is not among its task's candidates and every
    property without pattern, with file, row and label.
    """
    labels = candidate_labels(taken)
    index = {s: _index(found) for s, found in labels.items()}
    ranges = {p.label: p.range for p in taken.concepts.properties}
    domains = {p.label: _spelt(p.domain, labels["class"]) for p in taken.concepts.properties}
    problems, rows = Problems(name), []
    late = beyond(taken.rows, switches)
    for row in taken.rows:
        with problems.of(row.task):
            is_late = (row.task, row.row) in late
            rows.append(_item(row, switches, index[SET_OF[row.task]], ranges, domains, is_late))
    problems.check()
    items = _linked(pl.DataFrame(rows, schema=dict(ITEMS.columns), orient="row"))
    sets = [(s, i, label, label) for s, found in labels.items() for i, label in enumerate(found)]
    return Sets(
        items,
        pl.DataFrame(sets, schema=dict(CANDIDATES.columns), orient="row"),
        prompts(switches),
        funnel(taken, items, name),
    )


def candidate_labels(taken: Taken) -> dict[str, list[str]]:
    """The candidate sets: class, property, pattern; the last two again with missing subjects.

    A premise asks for properties and patterns that may not be candidates of their task (released:
    two labels, one pattern); `property+` and `pattern+` have them at the end.
    """
    known = taken.concepts
    found = {"class": known.class_labels(), "property": known.property_labels()}
    found["pattern"] = known.pattern_labels()
    asked = [r for r in taken.rows if r.task == "SPO"]
    names = [words.norm(r.subject) for r in asked]
    forms = [words.bare(r.pattern) for r in taken.rows if r.pattern]
    found["property+"] = list(dict.fromkeys([*found["property"], *names]))
    found["pattern+"] = list(dict.fromkeys([*found["pattern"], *forms]))
    return {key: value for key, value in found.items() if value}


def beyond(rows: Sequence[Row], switches: Mapping[str, str]) -> set[tuple[str, int]]:
    """(task, row) of the test rows of TP and SCO after the first `item_limit` (released: 500).

    The released code leaves them out in its zero-shot mode, that is under written templates; its
    few-shot mode, soft prompts, asks all. In `meta` they are `soft_only`.
    """
    if switches["item_limit"] == "none":
        return set()
    tested = {t: [r.row for r in rows if (r.task, r.role) == (t, "test")] for t in ("TP", "SCO")}
    return {(t, row) for t, own in tested.items() for row in own[int(switches["item_limit"]) :]}


def prompts(switches: Mapping[str, str]) -> pl.DataFrame:
    """PROMPTS: manual templates m1, m2, m3 as index 1, 2, 3."""
    rows = []
    for task, texts in words.TEMPLATES.items():
        for number, text in enumerate(texts, 1):
            if (task, number, switches["sco_m2"]) == ("SCO", 2, "class"):
                text = "[X] has class [Y] ."
            rows.append((f"{task}-m{number}", task, number, text, "manual"))
    return pl.DataFrame(rows, schema=dict(PROMPTS.columns), orient="row")


def funnel(taken: Taken, items: pl.DataFrame, name: str) -> pl.DataFrame:
    """FUNNEL: what every step of the choice kept, then train, dev, test and distinct test rows."""
    steps = list(taken.steps)
    for task in TASKS:
        own = items.filter(pl.col("relation") == task)
        steps.append((task, "rows", own.height))
        steps += [(task, f"rows for {r}", own.filter(role=r).height) for r in ("train", "dev")]
        steps.append((task, "rows for test", own.filter(role="test").height))
        once = own.filter(pl.col("meta").str.json_path_match("$.repeat").is_null(), role="test")
        steps.append((task, "distinct rows for test", once.height))
    rows = []
    before: dict[str, int] = {}
    for position, (task, step, kept) in enumerate(steps):
        entering = max(before.get(task, kept), kept)
        rows.append((name, task, position, step, entering, kept, kept, 0))
        if not step.startswith("rows for") or step == "rows for test":
            before[task] = kept
    return pl.DataFrame(rows, schema=dict(FUNNEL.columns), orient="row")


#: rows with one of these keys in `meta` are not in the lite sets
LEFT_OUT = ("repeat", "soft_only")


def lite(sets: Sets, sizes: Mapping[str, int], options: int, seed: int) -> Sets:
    """A small part of every task, for scoring options as sentences.

    `sizes` is the number of rows of each part (train, dev, test) per task; test rows are taken by
    seeded hash, at most one of a finest gold before a second one. `options` > 0 keeps the golds of
    the kept rows and so many other candidates of each set, by seeded hash.
    """
    chosen = pl.concat(
        [
            _few(sets.items.filter(relation=task, role=role), sizes.get(role, 0), seed)
            for task in TASKS
            for role in ("train", "dev", "test")
        ]
    )
    if options <= 0:
        return replace(sets, items=chosen)
    kept = []
    for (name,), group in sets.candidates.group_by("set", maintain_order=True):
        golds = set(chosen.filter(candidates=name)["answers"].explode().to_list())
        others = group.filter(~pl.col("index").is_in(list(golds)))
        order = sorted(others.rows(), key=lambda r: hash_key(seed, "option", str(name), r[3]))
        places = sorted(golds | {r[1] for r in order[:options]})
        kept.append(group.filter(pl.col("index").is_in(places)).sort("index"))
    renumbered = pl.concat(kept).with_columns(
        new=pl.int_range(pl.len(), dtype=pl.Int32).over("set")
    )
    place = {(s, i): n for s, i, n in renumbered.select("set", "index", "new").rows()}
    answers = [
        [place[s, a] for a in golds] for s, golds in chosen.select("candidates", "answers").rows()
    ]
    items = chosen.with_columns(answers=pl.Series(answers, dtype=pl.List(pl.Int32)))
    candidates = renumbered.with_columns(index="new").select(list(CANDIDATES.columns))
    return replace(sets, items=items, candidates=candidates)


def _few(items: pl.DataFrame, n: int, seed: int) -> pl.DataFrame:
    """At most `n` rows, spread over finest golds: the n-th of every one before the n+1-th.

    Repeats and rows that no written template asks are not among them.
    """
    keys = [hash_key(seed, "lite", i) for i in items["item"].to_list()]
    ordered = items.with_columns(
        _key=pl.Series(keys, dtype=pl.UInt64),
        _gold=pl.col("answers").list.first(),
    ).filter(*(pl.col("meta").str.json_path_match(f"$.{k}").is_null() for k in LEFT_OUT))
    ordered = ordered.sort("_key").with_columns(_turn=pl.int_range(pl.len()).over("_gold"))
    return ordered.sort("_turn", "_key").head(n).sort("row").select(items.columns)


def _item(
    row: Row,
    switches: Mapping[str, str],
    index: Mapping[str, int],
    ranges: Mapping[str, str | None],
    domains: Mapping[str, str | None],
    is_soft_only: bool,
) -> tuple[object, ...]:
    answers = []
    for gold in row.golds:
        if words.norm(gold) not in index:
            raise ValueError(
                f"{row.where}: {row.task} row {row.row} ({row.subject!r}): its gold {gold!r} is "
                f"not among the {len(index)} {SET_OF[row.task]} candidates; correct the label or "
                "add the concept to the ontology"
            )
        answers.append(index[words.norm(gold)])
    label = row.subject if switches["labels"] == "unicode" else words.ascii_drop(row.subject)
    shown = words.subject(label, switches["upper_first"], row.task == "TP")
    if row.task in ("DM", "RG"):
        if not row.pattern:
            raise ValueError(
                f"{row.where}: {row.task} row {row.row} ({row.subject!r}) has no pattern; add one "
                "to resources/templates/ontology_patterns.tsv"
            )
        rule, other = (
            (words.domain_clause, ranges) if row.task == "DM" else (words.range_clause, domains)
        )
        shown = rule(row.pattern, other.get(row.subject), switches["wording"])
    leak = any(words.norm(g).casefold() in row.subject.casefold() for g in row.golds)
    meta = {
        "soft_subject": row.subject if row.task in ("DM", "RG") else shown,
        "label": row.subject,
        "finest": words.norm(row.golds[0]),
        "depth": row.depth,
        "leak": row.task in ("TP", "SCO") and leak,
    }
    if row.popularity is not None:
        meta["popularity"] = row.popularity
    if row.pattern:
        meta["pattern"] = row.pattern
    if is_soft_only:
        meta["soft_only"] = True
    key = f"{row.task}-{row.row}"
    text = json.dumps(meta, ensure_ascii=False, sort_keys=True)
    own = SET_OF[row.task]
    return (key, row.task, row.role, row.task, shown, row.id, "", own, answers, row.row, text)


def _linked(items: pl.DataFrame) -> pl.DataFrame:
    """Adds to `meta` the first equal row (repeat) and the row of train or dev with its subject."""
    first: dict[tuple[object, ...], str] = {}
    early: dict[tuple[str, str], str] = {}
    metas = []
    columns = ("item", "relation", "role", "subject_id", "answers", "meta")
    for item, task, role, _subject, answers, text in items.select(columns).rows():
        meta = json.loads(text)
        key = (task, meta["label"], tuple(sorted(answers)))
        other = first.setdefault(key, item)
        if other != item:
            meta["repeat"] = other
        if role != "test":
            early.setdefault((task, meta["label"]), item)
        elif (task, meta["label"]) in early:
            meta["twin"] = early[task, meta["label"]]
        metas.append(json.dumps(meta, ensure_ascii=False, sort_keys=True))
    return items.with_columns(meta=pl.Series(metas, dtype=pl.String))


def _index(labels: Sequence[str]) -> dict[str, int]:
    return {label: number for number, label in enumerate(labels)}


def _spelt(label: str | None, labels: Sequence[str]) -> str | None:
    """The label as the candidates spell it ("legal case" is "Legal Case")."""
    if label is None:
        return None
    known = {own.casefold(): own for own in labels}
    return known.get(words.norm(label).casefold(), label)
