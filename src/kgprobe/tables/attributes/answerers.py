"""Coded answerers through the nine metrics, before any model (metrics/answerers.py).

They are asked about an invented world of which one part is in the training facts whole, one without
what follows from it, one with another conclusion, and one not at all; their answers are scored as a
model's are, as ranked candidates and as written text.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from kgprobe.benchmarks.invented import RULES, cases, word
from kgprobe.metrics import answerers, attributes
from kgprobe.metrics.answerers import ANSWERERS, Question, Statement
from kgprobe.metrics.intervals import Interval
from kgprobe.sampling import hash_key
from kgprobe.tables.answers import Probe
from kgprobe.tables.attributes import numbers as scores
from kgprobe.tables.attributes import study as studies
from kgprobe.tables.attributes.published import NAMES
from kgprobe.tables.attributes.study import HEADLINE, SETTINGS, Benchmark, triples
from kgprobe.tables.report import marks
from kgprobe.tables.report.marks import ANSWERER, INVENTED
from kgprobe.tables.results import Number

#: cases of every arm, options of a question, and draws of the random answerer, which rarely is
#: right in the parts that a ratio is over
CASES, OPTIONS, DRAWS = 60, 20, 10
#: scoring modes of an answerer: options that it ranks, or a text
RANKED, WRITTEN = "ranked", "written"
#: whose invented world has the same form: two hops, and what they lead to
FORM_OF = {"two_steps": "composite"}
_TEMPLATE = 1


def numbers(seed: int = 0, size: int = CASES) -> Iterator[Number]:
    """The metric of every answerer on each of the nine benchmarks, and the verdicts on it
    (`marks.verdict_numbers`)."""
    every = []
    for name in NAMES:
        single, by_item = benchmark(name, seed, size)
        intervals: dict[str, dict[str, Interval | None]] = {RANKED: {}, WRITTEN: {}}
        for model, answer in ANSWERERS.items():
            draws = DRAWS if model == "random" else 1
            copies, questions = _repeat(single, by_item, draws)
            answers = {item: answer(question) for item, question in questions.items()}
            for way, read in ((RANKED, _rank), (WRITTEN, _write)):
                number = _measured(model, way, read(answers, questions, copies), copies, draws)
                intervals[way][model] = number.interval
                yield number
        every.append(marks.all_of(map(answerers.verdicts, intervals.values())))
        yield from marks.verdict_numbers(Number(benchmark=name), every[-1])
    yield from marks.verdict_numbers(Number(), marks.all_of(every))


def benchmark(name: str, seed: int, size: int) -> tuple[Benchmark, dict[str, Question]]:
    """One of the nine in an invented world, and its questions by item, with `OPTIONS` options at
    most: the gold, then others that stand in the same place of other examples, by hash."""
    form = FORM_OF.get(name, name)
    drawn = cases(form, size, seed)
    training = [statement for case in drawn for statement in case.trained_on]
    counts = Counter((s.relation, s.object) for s in training)
    known: dict[str, set[Statement]] = {}
    for statement in training:
        known.setdefault(statement.subject, set()).add(statement)
    pools: dict[tuple[str, int], set[str]] = {}
    for case in drawn:
        for position, (_, relation, label) in enumerate(case.statements):
            pools.setdefault((relation, position), set()).add(label)
    distinct = {
        position: sorted(pool, key=lambda label: hash_key(seed, "option", label))
        for position, pool in pools.items()
    }
    questions, rows, items = {}, [], []
    for case in drawn:
        named = {term for statement in case.statements for term in statement}
        facts = frozenset().union(*(known.get(name, ()) for name in named))
        for position, triple in enumerate(case.statements):
            subject, relation, gold = triple
            item = f"{case.name}#{position}"
            options = _options(item, gold, distinct[relation, position], seed)
            questions[item] = Question(
                subject, relation, options, facts,
                text=f"{subject} {word(relation, seed)}",
                counts={option: counts[relation, option] for option in options},
                rules=(RULES[form],) if form in RULES else (), key=item,
            )  # fmt: skip
            rows.append((name, case.name, case.arm, position, [gold], [gold]))
            items.append((item, relation, item, [options.index(gold)], "{}"))
    columns = ["benchmark", "example", "pattern", "position", "golds", "gold_labels"]
    examples = pl.DataFrame(rows, schema=columns, orient="row")
    columns = ["item", "relation", "candidates", "answers", "meta"]
    frame = pl.DataFrame(items, schema=columns, orient="row")
    return Benchmark(name, examples, frame, pl.DataFrame(), pl.DataFrame()), questions


def _options(item: str, gold: str, pool: Sequence[str], seed: int) -> tuple[str, ...]:
    """The gold and those that follow it in a pool, beginning anywhere."""
    position = pool.index(gold)
    options = [*pool[position:], *pool[:position]][:OPTIONS]
    turn = hash_key(seed, "order", item) % len(options)
    return (*options[turn:], *options[:turn])


def _repeat(
    single: Benchmark, by_item: Mapping[str, Question], draws: int
) -> tuple[Benchmark, dict[str, Question]]:
    """A benchmark and its questions `draws` times, each with examples and keys of its own."""
    every = pl.DataFrame({"draw": range(draws)})
    examples, items = (frame.join(every, how="cross") for frame in (single.examples, single.items))
    examples = examples.with_columns(example=pl.format("{} {}", "example", "draw"))
    items = items.with_columns(
        pl.col("item").str.replace("#", pl.format(" {}#", "draw"), literal=True)
    )
    questions = {
        item.replace("#", f" {draw}#"): replace(question, key=f"{item} {draw}")
        for draw in range(draws)
        for item, question in by_item.items()
    }
    return replace(single, examples=examples, items=items), questions


def _rank(
    answers: Mapping[str, answerers.Scores], questions: Mapping[str, Question], benchmark: Benchmark
) -> pl.DataFrame:
    rows = [(item, _TEMPLATE, i, s) for item, each in answers.items() for i, s in enumerate(each)]
    schema = {"item": pl.String, "template": pl.Int32, "candidate": pl.Int32, "sum": pl.Float64}
    return studies.of_candidates(pl.DataFrame(rows, schema=schema, orient="row"), benchmark.items)


def _write(
    answers: Mapping[str, answerers.Scores], questions: Mapping[str, Question], benchmark: Benchmark
) -> pl.DataFrame:
    chosen = {item: answerers.choose_option(values) for item, values in answers.items()}
    rows = [
        (item, _TEMPLATE, 1, studies.WHOLE, 1, "" if n is None else questions[item].options[n], 0.0)
        for item, n in chosen.items()
    ]
    columns = ["item", "template", "masks", "position", "rank", "text", "logprob"]
    fills = pl.DataFrame(rows, schema=columns, orient="row")
    return studies.of_texts(fills, studies.gold_names(benchmark.examples))


def _measured(model: str, way: str, alphas: pl.DataFrame, copies: Benchmark, draws: int) -> Number:
    probe = Probe(copies.name, "", ANSWERER, model, "answerer")
    rows = triples(probe, alphas, copies).filter(**HEADLINE)
    row = attributes.measure(rows, SETTINGS).row(0, named=True)
    return scores.number(row, n=row["examples"] // draws, slice=INVENTED, setting={"way": way})
