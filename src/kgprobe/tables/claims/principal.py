"""The principal claims of the papers: claim in claims.tsv -> its comparison in RESULTS."""

from collections.abc import Iterator, Mapping

from kgprobe.tables.claims.comparison import BASELINE, Comparison, Side

TASKS = "TP|SCO|SPO|DM|RG"
METRICS = "R@1|R@5|MRRa|MRR"


def _all() -> Iterator[tuple[str, Comparison]]:
    yield from _ontoprobe()
    yield from _bear()
    yield from _attributes()
    yield from _autoprompt()


def _ontoprobe() -> Iterator[tuple[str, Comparison]]:
    # Table 4: the best of the models against the frequency baseline
    frequency = Side({"kind": BASELINE, "model": "frequency", "choice": "none"})
    best = Side({"choice": "oracle"})
    strongest = best.highest("model", "prompt", "method")
    for name, task, metric in (
        ("O01", "TP", "R@1"),
        ("O05", "SCO", "R@1"),
        ("O09", "SPO", "R@1"),
        ("O15", "DM", "MRR"),
        ("O16", "RG", "R@1"),
    ):
        cell = {"metric": metric, "group": task}
        yield name, Comparison(strongest.but(**cell), frequency.but(**cell), ("benchmark",))
    cells = ("benchmark", "group", "metric")
    outside = {"metric": METRICS, "group": "TP|SCO|SPO|RG"}
    bert = best.but(model="bert-*", **outside).highest("prompt", "method").mean("model")
    yield "O19", Comparison(bert, frequency.but(**outside), cells)
    any_task = best.but(metric="R@1|R@5|MRR", group=TASKS)
    most = any_task.highest("model", "prompt", "method", "group")
    yield "O26", Comparison(most, 100, ("benchmark", "metric"))

    # models and kinds of templates
    every = best.but(metric=METRICS, group=TASKS)
    own_best = every.highest("prompt", "method").mean("model")
    yield "O27", Comparison(own_best.but(model="roberta-*"), own_best.but(model="bert-*"), cells)
    manual = every.but(prompt="templates", method="cloze")
    averaged = manual.mean("model")
    yield "O28", Comparison(averaged.but(model="roberta-*"), averaged.but(model="bert-*"), cells)
    size = best.but(metric="MRR", group=TASKS).highest("prompt", "method").mean("group")
    yield "O34", Comparison(size, 0, ("benchmark",), "steps")
    soft = every.but(prompt="soft", method="soft")
    yield "O38", Comparison(soft, manual, ("benchmark", "model", "group", "metric"))

    # configurations, the mean over seeds of soft prompts
    each = Side({"group": TASKS, "masks": "single|multi", "pooling": "*", "template": "*"})
    each = each.but(loss="*", seed="*").mean("seed")
    probe = ("benchmark", "model", "group", "metric", "prompt", "method", "template")
    for name, metric, dimension, one, other, rest in (
        ("O46", "R@1", "masks", "single", "multi", ("pooling", "loss")),
        ("O48", METRICS, "pooling", "mean", "first", ("masks", "loss")),
        ("O50", METRICS, "loss", "BCE", "NLL", ("masks", "pooling")),
    ):
        of = each.but(metric=metric)
        a, b = of.but(**{dimension: one}), of.but(**{dimension: other})
        yield name, Comparison(a, b, (*probe, *rest))

    # reasoning: a premise is written (EX), memorized (IM) or neither (NO)
    rules = Side({"metric": "MRR", "method": "reason", "weighting": "rows", "group": "rdfs*"})
    per = ("benchmark", "model", "group")
    average = rules.mean("premise")
    written, memorized = average.but(premise="P1 EX*"), average.but(premise="P1 IM*")
    lacking = average.but(premise="P1 NO*|P1 IM*")
    yield "O52", Comparison(written, lacking, per)
    second = rules.but(premise="P1 EX, P2 EX")
    yield "O54", Comparison(second, average.but(premise="P1 EX, P2 NO|P1 EX, P2 IM"), per)
    yield "O55", Comparison(memorized, average.but(premise="P1 NO*"), per)
    yield "O56", Comparison(rules.but(premise="*").highest("premise"), 1, per)

    # multiple choice
    choice = Side({"metric": "accuracy", "method": "choice"})
    tasks = choice.but(group=TASKS)
    chat = tasks.but(model="gpt-3.5-turbo", scoring="answer")
    stem = tasks.but(model="bert-base-uncased", scoring="stem")
    yield "O65", Comparison(chat, stem, ("benchmark", "group"))
    answered = choice.but(scoring="answer")
    premises = answered.but(premise="IM"), answered.but(premise="NO")
    yield "O73", Comparison(*premises, ("benchmark", "model", "prompt"))


def _bear() -> Iterator[tuple[str, Comparison]]:
    per = ("benchmark",)
    accuracy = Side({"metric": "accuracy", "prompt": "templates", "method": "sentence"})
    bear = accuracy.but(benchmark="!lama*")
    masked, causal = bear.but(kind="masked"), bear.but(kind="causal")
    for name, side in (("B01", bear), ("B02", causal), ("B03", masked)):
        yield name, Comparison(side, 0, per, "pearson")
    yield "B04", Comparison(bear, 0, per, "steps")
    yield "B05", Comparison(masked, causal, per, "near")
    yield "B07", Comparison(bear.but(metric="SEM").mean("model"), 0, per)
    guess = Side({"metric": "accuracy", "kind": BASELINE, "model": "random"})
    sets = {"benchmark": "bear_*|world_*"}
    yield "B10", Comparison(guess.but(model="majority", **sets), guess.but(**sets), per)
    shared = accuracy.but(group="P*")
    lama, released = shared.but(benchmark="lama*"), shared.but(benchmark="bear_released")
    yield "B12", Comparison(lama, released, ("model", "group"))
    yield "B13", Comparison(bear.lowest("model"), guess.but(benchmark="!lama*"), per)
    yield "B15", Comparison(bear.highest("model"), 100, per)
    yield "B17", Comparison(bear.but(slice="1:1"), bear.but(slice="1:N"), (*per, "model"))


def _attributes() -> Iterator[tuple[str, Comparison]]:
    # Table 2 at k = 1; `value` without a benchmark would be the mean of all nine
    table2 = Side({"method": "fill", "alpha": "exact", "gold": "own", "pooling": "best", "k": "1"})
    nine = table2.but(metric="value", benchmark="!")
    largest = nine.of("largest")
    yield "K01", Comparison(largest.mean("benchmark"), 64, ())
    yield "K02", Comparison(largest.highest("benchmark"), largest.lowest("benchmark"), ())
    per = ("benchmark",)
    six = {"benchmark": "symmetry|asymmetry|hierarchy|composite|entity_centric|bias"}
    smaller = nine.of("smaller").but(**six).highest("model")
    yield "K03", Comparison(largest.but(**six), smaller, per)
    for name, attribute, models in (
        ("K05", "bidirectional", "bert-base-uncased"),
        ("K08", "ambiguous", "bert-base-uncased"),
        ("K10", "paths", "bert-base-uncased|text-davinci-003"),
    ):
        ahead = nine.but(benchmark=attribute, model=models).mean("model")
        yield name, Comparison(ahead, largest.but(benchmark=attribute), per)
    bias = nine.but(benchmark="bias")
    tuned = bias.but(model="text-davinci-003|gpt-4").mean("model")
    small = bias.but(model="bert-base-uncased|roberta-base|t5-base").highest("model")
    yield "K11", Comparison(tuned, small, per)
    partial = Side({"metric": "pearson", "slice": "over benchmarks"})
    yield "K21", Comparison(partial, 0, ("model", "method"))
    yield "K22", Comparison(nine.but(metric="triples right"), nine, ("benchmark", "model"))
    deciles = table2.but(metric="proportion right").mean("slice")
    middle = deciles.but(slice="decile 05*|decile 06*")
    ends = deciles.but(slice="decile 01*|decile 10*")
    yield "K26", Comparison(middle, ends, ("benchmark", "model"))


def _autoprompt() -> Iterator[tuple[str, Comparison]]:
    per, paired = ("benchmark",), ("benchmark", "model")
    accuracy = Side({"metric": "accuracy", "method": "predict"})
    sst2 = accuracy.but(benchmark="auto_sst2")
    searched, manual = sst2.but(prompt="searched"), sst2.but(prompt="manual")
    for name, models in (("A04", "bert-*"), ("A05", "roberta-*")):
        yield name, Comparison(searched.but(model=models), manual.but(model=models), paired)
    yield "A08", Comparison(searched, sst2.but(prompt="finetuned"), paired)
    sick = accuracy.but(benchmark="auto_sick*")
    prompted = sick.but(prompt="searched").mean("model")
    yield "A22", Comparison(prompted, sick.but(prompt="majority", kind="*").mean("model"), per)
    two_way = {"benchmark": "auto_sick_2way"}
    tuned = sick.but(model="bert-base-cased", prompt="finetuned", **two_way)
    yield "A23", Comparison(prompted.but(**two_way), tuned, per)
    three_way = sick.but(benchmark="auto_sick_3way")
    probe = three_way.but(prompt="linear_probe")
    yield "A24", Comparison(three_way.but(prompt="searched"), probe, paired)

    # facts
    facts = Side({"metric": "P@1", "method": "predict", "benchmark": "auto_lama|auto_world"})
    best = facts.but(prompt="searched|searched_7").highest("prompt")
    yield "A31", Comparison(best, facts.but(prompt="manual"), paired)
    lama = {"benchmark": "auto_lama"}
    yield "A32", Comparison(best.but(**lama), facts.but(prompt="lpaqa", **lama), paired)
    relations = facts.but(group="P*")
    sides = relations.but(prompt="searched"), relations.but(prompt="manual")
    yield "A37", Comparison(*sides, (*paired, "group"), "wins")

    # relation extraction, and sentences in which another object replaces the true one
    context = facts.but(benchmark="auto_re")
    supervised = context.but(prompt="relation_lstm", kind="*").mean("model")
    bert = context.but(model="bert-*", prompt="searched").mean("model")
    yield "A49", Comparison(bert, supervised, per)
    false = {"benchmark": "auto_re_perturbed"}
    yield "A54", Comparison(supervised.but(**false), supervised, ("prompt",))
    prompts = context.but(prompt="manual|lpaqa|searched")
    yield "A55", Comparison(prompts.but(**false), prompts, ("model", "prompt"))
    both = {"benchmark": "auto_re|auto_re_perturbed"}
    most = prompts.but(**both).highest("model", "prompt")
    yield "A57", Comparison(most, supervised.but(**both), per)


COMPARISONS: Mapping[str, Comparison] = dict(_all())
