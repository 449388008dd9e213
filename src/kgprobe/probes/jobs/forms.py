"""Forms of asking: the text around a template, and the selection of items.

    templates     Dante was born in [Y].
    question      Question: Dante was born in what?\\nAnswer: [Y].
    chat          the question as a user's message in the model's own chat template, then [Y].
    few           k sentences of the same template about other subjects, one per line, before it
    few_shuffled  the same with permuted answers: the format without its information

The scored text is the sentence of an option, as without a form; text before it is read
and not scored. Generated text fills the answer's position; a server gets the question of the chat
form as a user message, and applies its own template. A sample of the test rows is used, with
the first template of their relation.

Examples are training rows of the same relation, chosen by hash for each item; an answer is repeated
only after every other answer occurred. Graph attributes have no training rows: their examples are
facts of their graph, and if it states none (inferred relations) other rows of the benchmark. None
contains the queried subject, as subject or as answer. None contains one of the item's golds, unless
the relation has no row with another answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import normalize

import polars as pl

from kgprobe import schema
from kgprobe.job import log
from kgprobe.probes.api.client import Client
from kgprobe.probes.jobs.score import Tables, tables
from kgprobe.probes.scoring.fill.rows import FillItem
from kgprobe.probes.scoring.sentence.score import bos_prefix
from kgprobe.probes.text.encode import fits, refuse_control_tokens, render_chat
from kgprobe.sampling import by_hand, hash_key, sample_evenly, select_asked, take
from kgprobe.templates import ANSWER, FORMS, SUBJECT, fill, parse, question, stop

#: maximum facts of a relation that may be used as examples
MOST = 500
#: placeholder for the message while a chat template is applied
_MESSAGE = "\N{OBJECT REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Form:
    """A form by name (templates.FORMS), its maximum number of items of a benchmark (0: all), and
    its number of examples, if it has any."""

    name: str
    items: int
    seed: int
    demonstrations: int = 0


@dataclass(frozen=True)
class Demonstration:
    """A row that may be used as an example: its item, subject, answer, and all correct answers."""

    item: str
    subject: str
    answer: str
    golds: frozenset[str]


def sample(items: pl.DataFrame, form: Form) -> pl.DataFrame:
    """Select the ITEMS to use: distinct test rows, evenly from all relations as far as possible."""
    test = select_asked(items)
    test = test.filter(pl.col("meta").str.json_path_match("$.repeat").is_null())
    return sample_evenly(
        test, form.items or test.height, form.seed, ["item"], ["relation"], "forms"
    )


def pools(items: pl.DataFrame, candidates: pl.DataFrame) -> dict[str, list[Demonstration]]:
    """Map relation -> possible examples: training rows, or all rows if the benchmark has none."""
    rows = by_hand(items)
    training = rows.filter(role="train")
    rows = training if training.height else rows
    label = {(s, i): name for s, i, name in candidates.select("set", "index", "label").rows()}
    by_relation: dict[str, list[Demonstration]] = {}
    columns = rows.sort("item").select("item", "relation", "subject", "candidates", "answers")
    for item, relation, subject, options, answers in columns.rows():
        golds = [label[options, answer] for answer in answers]
        example = Demonstration(item, subject, golds[0], frozenset(map(_read, golds)))
        if _is_plain(example):
            by_relation.setdefault(relation, []).append(example)
    return by_relation


def stated(facts: pl.DataFrame, seed: int) -> dict[str, list[Demonstration]]:
    """Map relation -> possible examples from labeled FACTS: at most MOST, by hash."""
    named = facts.drop_nulls(["subject_label", "object_label"])
    chosen = take(named, MOST, seed, ["subject", "object"], ["relation"], "forms")
    golds: dict[tuple[str, str], set[str]] = {}
    both = named.join(chosen, on=["relation", "subject"], how="semi")
    for relation, subject, answer in both.select("relation", "subject", "object_label").rows():
        golds.setdefault((relation, subject), set()).add(_read(answer))
    by_relation: dict[str, list[Demonstration]] = {}
    columns = ("relation", "subject", "object", "subject_label", "object_label")
    for relation, subject, object_, label, answer in chosen.select(columns).rows():
        name = f"{relation} {subject} {object_}"
        example = Demonstration(name, label, answer, frozenset(golds[relation, subject]))
        if _is_plain(example):
            by_relation.setdefault(relation, []).append(example)
    return by_relation


def demonstrations(
    target: Demonstration, pool: Sequence[Demonstration], most: int, seed: int
) -> list[Demonstration]:
    """Choose at most `most` rows of the pool by hash of both items; the module lists exclusions."""
    subject = _read(target.subject)
    others = [one for one in pool if subject not in (_read(one.subject), _read(one.answer))]
    others = [one for one in others if one.item != target.item]
    free = [one for one in others if not target.golds & {_read(one.subject), _read(one.answer)}]
    if not free and all(_read(one.answer) in target.golds for one in pool):
        free = others
    key = {one: hash_key(seed, "forms", target.item, one.item) for one in free}
    turns: Counter[str] = Counter()
    order: list[tuple[int, int, Demonstration]] = []
    for one in sorted(free, key=lambda one: (key[one], one.item)):
        turns[_read(one.answer)] += 1
        order.append((turns[_read(one.answer)], len(order), one))
    return [one for *_, one in sorted(order, key=lambda entry: entry[:2])[:most]]


def shuffled(shown: Sequence[Demonstration]) -> list[Demonstration]:
    """Permute the answers of the examples so that, if possible, none keeps its own: sorted by
    answer, they are shifted by the count of the most frequent answer."""
    order = sorted(range(len(shown)), key=lambda place: (shown[place].answer, place))
    step = max(Counter(one.answer for one in shown).values(), default=0)
    result = list(shown)
    for place, number in enumerate(order):
        other = shown[order[(place + step) % len(order)]]
        result[number] = replace(shown[number], answer=other.answer)
    return result


def chat(loaded: Any) -> tuple[str, str]:
    """Return the text of the chat template before and after a user message, up to the answer.

    Tokens that the BOS policy adds anyway are removed. Raises ValueError for a model without one.
    """
    tokenizer, model = loaded.tokenizer, loaded.spec.model
    if not getattr(tokenizer, "chat_template", None):
        raise ValueError(
            f"{model} has no chat template: take it out of the row with prompt chat "
            f"(others: {', '.join(name for name in FORMS if name != 'chat')})"
        )
    text = render_chat(tokenizer, _MESSAGE)
    before, marker, behind = text.partition(_MESSAGE)
    if not marker:
        raise ValueError(f"{model}: its chat template does not show the user's message")
    is_causal = loaded.spec.kind == "causal"
    front = [int(token) for token in bos_prefix(loaded)[0]] if is_causal else []
    for token in tokenizer.convert_ids_to_tokens(front):
        before = before.removeprefix(token)
    return before, behind


def apply_form(text: str, form: Form, around: tuple[str, str] = ("", "")) -> tuple[str, str]:
    """Return (text before, template) of a template in a form without examples; `around`: `chat`.

    >>> apply_form("[X] was born in [Y] .", Form("question", 0, 0))
    ('Question: ', '[X] was born in what?\\nAnswer: [Y] .')
    """
    if form.name == "question":
        return "Question: ", f"{question(text)}\nAnswer: [Y]{stop(text)}"
    if form.name == "chat":
        return around[0], f"{question(text)}{around[1]}[Y]{stop(text)}"
    return "", text


def tables_in(
    loaded: Any,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    form: Form,
    training: Mapping[str, Sequence[Demonstration]] | None = None,
) -> tuple[Tables, dict[str, int]]:
    """Return the inputs for scoring ITEMS in a form, and counts of used and excluded items.

    `training`: possible examples by relation, if other than the rows of the benchmark.
    Counts: `items` drawn; `too_long` for the model and `without_example`, both excluded; with
    examples also items with `fewer_examples` than requested, `examples`, and shuffled examples
    that are `still_right`. Raises ValueError if no item is left.
    """
    (questions, options, templates), tally = build_questions(
        loaded, items, candidates, prompts, form, training
    )
    kept = []
    for item in questions:
        # scoring reports relations without template
        sentences = [
            fill(text, item.subject, label).behind(item.prefix).text
            for _, text in templates.get(item.relation, ())
            for label in options[item.candidates]
        ]
        if not sentences or fits(loaded, sentences):
            kept.append(item)
    tally["too_long"] = len(questions) - len(kept)
    if tally["too_long"]:
        log.warning(
            "%s, form %s: %d of %d items are longer than its %d tokens and are left out",
            loaded.spec.model, form.name, tally["too_long"], tally["items"], loaded.limit,
        )  # fmt: skip
    if not kept:
        raise ValueError(describe_unasked(form, tally))
    return (kept, options, templates), tally


def describe_unasked(form: Form, tally: Mapping[str, int]) -> str:
    """Describe, by the counts of `tables_in`, why no item is left."""
    counts = (f"{name.replace('_', ' ')} {n}" for name, n in tally.items() if name != "items")
    return f"form {form.name}: none of {tally['items']} items can be asked: {', '.join(counts)}"


def fill_items_of(inputs: Tables, items: pl.DataFrame) -> list[FillItem]:
    """Build every question in every template of its relation, with its answers as golds.

    Raises one ValueError for all relations without template.
    """
    questions, options, templates = inputs
    lacking = sorted({one.relation for one in questions} - set(templates))
    if lacking:
        raise ValueError(f"no template for {len(lacking)} relations: {', '.join(lacking)}")
    golds = dict(items.select("item", "answers").rows())
    return [
        FillItem(
            one.item, index, text, one.subject,
            tuple(options[one.candidates][answer] for answer in golds[one.item]), prefix=one.prefix,
        )
        for one in sorted(questions, key=lambda one: one.item)
        for index, text in templates[one.relation]
    ]  # fmt: skip


def of_part(part: Any) -> tuple[Form, dict[str, list[Demonstration]] | None]:
    """Return the form of a Part (stage.py), and its possible examples, if it has files for them."""
    form = Form(**part.settings["form"])
    if part.input.get("training"):
        options = part.read("training_options", schema.CANDIDATES)
        return form, pools(part.read("training", schema.ITEMS), options)
    if part.input.get("facts"):
        relations = part.read("questions", schema.ITEMS)["relation"].unique().to_list()
        facts = pl.scan_parquet(part.input["facts"]).filter(pl.col("relation").is_in(relations))
        return form, stated(facts.collect(), form.seed)
    return form, None


def build_questions(
    answerer: Any,
    items: pl.DataFrame,
    candidates: pl.DataFrame,
    prompts: pl.DataFrame,
    form: Form,
    training: Mapping[str, Sequence[Demonstration]] | None = None,
) -> tuple[Tables, dict[str, int]]:
    """Build the inputs of a model or a server's client, whether they fit into the model or not, and
    the counts of `tables_in` except `too_long`."""
    rows = sample(items, form)
    first = prompts.filter(pl.col("index") == pl.col("index").min().over("relation"))
    is_own = form.name == "chat" and not isinstance(answerer, Client)
    around = chat(answerer) if is_own else ("", "")
    formed = [apply_form(text, form, around) for text in first["text"]]
    texts = pl.Series("text", [text for _, text in formed], dtype=pl.String)
    questions, options, templates = tables(rows, candidates, first.with_columns(texts))
    fronts: dict[str, str] = dict(
        zip(first["relation"], (front for front, _ in formed), strict=True)
    )
    tally = {"items": len(questions)}
    if form.name.startswith("few"):
        tally["demonstrations"] = form.demonstrations
        pool = {**pools(items, candidates), **(training or {})}
        shown = _draw_examples(form, rows, candidates, pool, tally)
        template_of = dict(first.select("relation", "text").rows())
        questions = [
            replace(q, prefix="".join(f"{fill(text, s.subject, s.answer).text}\n" for s in few))
            for q in questions
            if (few := shown[q.item]) and (text := template_of.get(q.relation))
        ]
        if not isinstance(answerer, Client):
            refuse_control_tokens(
                answerer.tokenizer,
                [q.prefix for q in questions],
                lambda n: f"the examples before item {questions[n].item}",
            )
    else:
        # subjects of OntoProbe's domains and ranges are sentences with a full stop
        questions = [
            replace(q, prefix=fronts.get(q.relation, ""), subject=q.subject.removesuffix(" ."))
            for q in questions
        ]
    return (questions, options, templates), tally


def _draw_examples(
    form: Form,
    rows: pl.DataFrame,
    candidates: pl.DataFrame,
    pool: Mapping[str, Sequence[Demonstration]],
    tally: dict[str, int],
) -> Mapping[str, list[Demonstration]]:
    """Map item -> its examples; add counts to `tally`."""
    # without items with a label that looks like a slot
    known = {one.item: one for few in pools(rows, candidates).values() for one in few}
    drawn: dict[str, list[Demonstration]] = {item: [] for item in rows["item"]}
    for item, relation in rows.select("item", "relation").rows():
        if item in known:
            one, examples = known[item], pool.get(relation, [])
            few = demonstrations(one, examples, form.demonstrations, form.seed)
            drawn[item] = shuffled(few) if form.name == "few_shuffled" else few
    sizes = [len(few) for few in drawn.values()]
    tally["examples"] = sum(sizes)
    tally["without_example"] = sizes.count(0)
    tally["fewer_examples"] = sum(0 < size < form.demonstrations for size in sizes)
    if form.name == "few_shuffled":
        shown = [one for few in drawn.values() for one in few]
        tally["still_right"] = sum(_read(one.answer) in one.golds for one in shown)
    lacking = rows.filter(pl.col("item").is_in([item for item, few in drawn.items() if not few]))
    for relation, count in sorted(lacking.group_by("relation").len().rows()):
        log.warning(
            "form %s: relation %s has no valid demonstration for %d of its items, which are left "
            "out; add training rows with other subjects and answers",
            form.name, relation, count,
        )  # fmt: skip
    return drawn


def _is_plain(row: Demonstration) -> bool:
    """Return whether no label looks like a slot, since it could not fill a template."""
    return not {SUBJECT, ANSWER} & set(parse(row.subject + row.answer).slots)


def _read(label: str) -> str:
    """Normalize a label for comparison; letters with accents may be composed or not."""
    return " ".join(normalize("NFKC", label).casefold().split())
