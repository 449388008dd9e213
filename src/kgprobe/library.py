"""The Python API: load models and benchmarks, run probes and ask single questions.

    import kgprobe

    results = kgprobe.probe("bert-base-cased", "world_lite")
    results.table()
    kgprobe.ask("bert-base-cased", "The capital of [X] is [Y].", X="France",
                options=["Paris", "Rome"])

Scoring and judging are the same as in the workflow. On a CPU one thread is used, so that results
are bit-identical across machines. In the examples `folder` is the folder of a model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
import torch
import transformers
from transformers.models.auto import modeling_auto

from kgprobe import experiments, schema
from kgprobe.job import progress
from kgprobe.probes.jobs.methods.fill import fill_frame
from kgprobe.probes.jobs.score import score_frame
from kgprobe.probes.models import device, reachable
from kgprobe.probes.models.load import (
    AUTO,
    Loaded,
    ModelError,
    ModelSpec,
    as_model_error,
    check_fit,
    check_tokenizer,
    hashes_in_memory,
    load_model,
    usual_bos,
    window,
)
from kgprobe.probes.models.reachable import MODELS
from kgprobe.probes.text.encode import POLICIES
from kgprobe.questions import (
    GIVEN,
    OWN,
    Benchmark,
    benchmark,
    check_askable,
    check_count,
    check_method,
    check_options,
    check_tables,
    select_asked,
    single,
)
from kgprobe.settings.probes import Fill
from kgprobe.tables import results
from kgprobe.tables.answers import Probe, judge
from kgprobe.tables.bear import make
from kgprobe.tables.bear.figures import relations_plot
from kgprobe.tables.report.draw import Chart, styled
from kgprobe.tables.study import Study
from kgprobe.templates import cut

#: the schema of the table of models
SCHEMA = "workflow/schemas/models.schema.json"
RELATIONS = "resources/templates/bear_relations.tsv"


# -- models ---------------------------------------------------------------------------------------


def load(
    model: Any, tokenizer: Any = None, *, kind: str = "", bos: str = "", name: str = "",
    revision: str = "", dtype: str = "",
) -> Loaded:  # fmt: skip
    """Load a model: `model` is a folder, a row of models.tsv, `gguf:PACKAGE`, a name on the hub, or
    a transformers model with its `tokenizer`.

    `kind` (masked, causal, seq2seq) is read from the model's configuration by default. `bos` of
    causal models is `forced` (one BOS, else EOS, first, as in the workflow's own rows and in
    lm-evaluation-harness), `none` or `default` (what the tokenizer adds). A row defines both.
    `name` is used in results. `revision` is a hub revision; the commit it resolves to (default: of
    branch main) is recorded. `dtype` is the compute dtype: by default that of the row, else
    float32. Raises ModelError, also for arguments that do not apply to the model.

    >>> loaded = load(folder)
    >>> loaded.spec.kind, loaded.spec.bos
    ('causal', 'forced')
    >>> load(loaded.model, loaded.tokenizer, name="mine").spec.model
    'mine'
    """
    device.ready()
    given, read = {"kind": kind, "bos": bos}, {"revision": revision, "dtype": dtype}
    if isinstance(model, Loaded):
        _refuse("a loaded model", {**given, **read, "name": name, "tokenizer": tokenizer})
        return model
    given["model"] = name
    if not isinstance(model, str | Path):
        _refuse("a model in memory", read)
        return _load_given(model, tokenizer, given)
    _refuse(f"{model}, which has its own,", {"tokenizer": tokenizer})
    spec = spec_of(model, given, revision, dtype)
    _check_bos(spec)
    return load_model(spec)


def _refuse(model: str, arguments: Mapping[str, Any]) -> None:
    """Raise ModelError for given arguments that do not apply to such a model."""
    if names := [name for name, value in arguments.items() if value]:
        raise ModelError(f"{model} takes no {' and no '.join(names)}")


def _check_bos(spec: ModelSpec) -> None:
    """Raise ModelError for a BOS policy that is invalid for the model's kind."""
    legal = POLICIES if spec.kind == "causal" else (usual_bos(spec.kind),)
    if spec.bos not in legal:
        raise ModelError(
            f"{spec.model}: bos is {spec.bos!r}; valid: {', '.join(legal)} of a {spec.kind} model"
        )


def _load_given(model: Any, tokenizer: Any, given: Mapping[str, str]) -> Loaded:
    """Wrap a model that is already in memory for scoring, after checking it."""
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise ModelError(
            f"a {type(model).__name__} is not a model; expected a folder, a name, or a model of "
            "transformers with its tokenizer"
        )
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError("a model object needs its fast tokenizer as a second argument")
    name = type(model).__name__
    kind = given["kind"] or _kind(name, model.config, [name])
    has_both = bool(getattr(model.config, "is_encoder_decoder", False))
    if kind not in AUTO or has_both != (kind == "seq2seq"):
        legal = ["seq2seq"] if has_both else [other for other in AUTO if other != "seq2seq"]
        raise ModelError(f"{name}: kind {kind!r}; valid: {', '.join(legal)}")
    dtype = str(model.dtype).removeprefix("torch.")
    bos = given["bos"] or usual_bos(kind)
    spec = _check_name(ModelSpec(given["model"] or name, kind, "given", "", dtype, bos))
    _check_bos(spec)
    check_tokenizer(spec, tokenizer)
    place = torch.device(str(model.device))
    loaded = Loaded(spec, model.eval(), tokenizer, place, window(model.config))
    check_fit(loaded, {"missing_keys": [], "mismatched_keys": [], "unexpected_keys": []})
    return loaded


def _check_name(spec: ModelSpec) -> ModelSpec:
    """Return the spec. Raises ModelError if the model has the name of a guessing baseline."""
    if spec.model in experiments.GUESSES:
        raise ModelError(experiments.guess_fault(spec.model))
    return spec


def spec_of(
    model: str | Path, given: Mapping[str, str] = {}, revision: str = "", dtype: str = ""
) -> ModelSpec:
    """Return the row of models.tsv for a folder, a row's name, a package or a name on the hub.

    `given` overrides columns, or fills them if there is no such row. Raises ModelError.

    >>> spec_of(folder).kind
    'causal'
    """
    return _check_name(_find(model, given, revision, dtype))


def _spec(model: Any) -> ModelSpec:
    """Return the row of a model as in `load`, without loading its weights."""
    return spec_of(model) if isinstance(model, str | Path) else load(model).spec


def _find(model: str | Path, given: Mapping[str, str], revision: str, dtype: str) -> ModelSpec:
    text = str(model)
    reachable.check_given(text)
    scheme, _, rest = text.partition(":")
    rows = experiments.by_name(
        experiments.read_rows(
            experiments.located(MODELS), experiments.read_schema(experiments.located(SCHEMA))
        ),
        MODELS,
    )
    if text in rows and not Path(text).is_dir():
        spec = ModelSpec.of(rows[text])
        if spec.kind == "api":
            raise ModelError(f"{text}: {spec.source} is asked by a run of the workflow")
        _refuse(f"{text}, whose row names one,", {"revision": revision})
        reachable.check_row(rows[text])
        given = {**given, "dtype": dtype}
        return replace(spec, **{key: value for key, value in given.items() if value})
    dtype = dtype or "float32"
    if scheme == "gguf":
        spec = ModelSpec(rest, "causal", text, revision, dtype, usual_bos("causal"))
        return replace(spec, **{key: value for key, value in given.items() if value})
    if scheme == "folder" or Path(text).is_dir() or isinstance(model, Path):
        place = rest if scheme == "folder" else text
        _refuse(f"the folder {place}", {"revision": revision})
        reachable.check_folder(Path(place))
        source, commit, short = f"folder:{Path(place)}", "", Path(place).resolve().name
    else:
        place = rest if scheme == "hub" else text
        commit = reachable.commit(place, revision, rows)
        source, short = f"hub:{place}", place.rpartition("/")[2]
    kind = given.get("kind") or _configured(place, commit)
    bos = given.get("bos") or usual_bos(kind)
    return ModelSpec(given.get("model") or short, kind, source, commit, dtype, bos)


def _configured(place: str, commit: str) -> str:
    """Return the kind of model according to the config.json of a folder or hub repository."""
    options = {"revision": commit} if commit else {"local_files_only": True}
    with as_model_error(f"{place}: config.json cannot be read"):
        config = transformers.AutoConfig.from_pretrained(place, **options)
    return _kind(place, config, list(config.architectures or []))


def _kind(where: str, config: Any, architectures: Sequence[str]) -> str:
    """Return the kind of model (masked, causal, seq2seq) according to its architecture."""
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq"
    masked = set(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values())
    causal = set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    for kind, known in (("masked", masked), ("causal", causal)):
        if known & set(architectures):
            return kind
    names = ", ".join(architectures) or "no architecture"
    raise ModelError(
        f"{where}: {names} in config.json is not a known language model; set kind to one of "
        f"{', '.join(AUTO)}"
    )


# -- probing --------------------------------------------------------------------------------------


def probe(
    model: Any,
    benchmark: str | Path | Benchmark,
    prompt: str | int | Mapping[str, str] = OWN,
    method: str = "sentence",
    *,
    folder: str | Path | None = None,
    progress: Callable[..., Any] = progress,
) -> "Results":
    """Ask a model all questions of a benchmark: the option with the likeliest sentence is chosen.

    `model` is as in `load`, `benchmark` as in `benchmark`. `prompt`: all `templates` (their mean
    is reported), the index of one, or a template for each relation. `method`: `sentence`, or
    another pseudo-log-likelihood of masked models, such as `sentence-original`. With `folder`,
    scores are stored there in parts, so that the same call resumes after a stop. Raises
    ModelError, BenchmarkError, and ValueError for other methods.

    >>> results = probe(folder, "world_lite", prompt={"P36": "The capital of [X] is [Y]."})
    >>> results.table().columns
    ['relation', 'accuracy', 'low', 'high', 'n', 'chance']
    """
    check_method(method)
    questions = benchmark if isinstance(benchmark, Benchmark) else _opened(benchmark)
    check_tables(questions)
    asked = select_asked(questions.items, f"{questions.name}: items")
    questions = replace(questions, items=asked).with_prompt(prompt)
    check_askable(questions)
    if method != "sentence":
        check_method(method, _spec(model).kind)
    loaded = load(model)
    spec = loaded.spec
    folder = None if folder is None else Path(folder)
    if folder is not None and spec.source == "given":
        # scores that other weights left in the folder must not be reused
        loaded.record |= hashes_in_memory(loaded)
    scores, record = score_frame(
        spec, questions.items, questions.candidates, questions.prompts, method, folder,
        load=lambda _: loaded, progress=progress,
    )  # fmt: skip
    schema.check(scores, schema.SCORES)
    answers = judge(scores, questions.items, questions.candidates, prompts=questions.prompts)
    named = GIVEN if isinstance(prompt, Mapping) else str(prompt)
    row = Probe(
        questions.name, named, method, spec.model, spec.kind, spec.bos, spec.dtype,
        loaded.parameters, source=spec.source,
    )  # fmt: skip
    return Results(questions, row, answers, scores, record)


_opened = benchmark


@dataclass(frozen=True, repr=False)
class Results:
    """A model's results: the questions, the probe (model, prompt, method), `answers` (judged, one
    row per item and template), `scores` (SCORES) and the record of how they were made.

    >>> results = probe(folder, "world_lite", prompt={"P36": "The capital of [X] is [Y]."})
    >>> results.answers.height == results.benchmark.items.height
    True
    >>> results.frame.filter(metric="MRR").height
    1
    >>> results._repr_html_().startswith("<p>tiny-llama on world_lite, given</p>")
    True
    """

    benchmark: Benchmark
    probe: Probe
    answers: pl.DataFrame
    scores: pl.DataFrame
    record: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Every number as a row of RESULTS, like in the workflow's tables.

        >>> results = probe(folder, "world_lite", prompt={"P36": "The capital of [X] is [Y]."})
        >>> sorted(results.frame.filter(metric="accuracy")["model"].unique())
        ['majority', 'random', 'tiny-llama']
        """
        return results.frame("bear", make.estimates([self._study(self)]))

    @property
    def judged(self) -> pl.DataFrame:
        """Every answer as a row of JUDGED.

        >>> results = probe(folder, "world_lite", prompt={"P36": "The capital of [X] is [Y]."})
        >>> results.judged.height == results.answers.height
        True
        """
        return make.judged_answers([self._study(self)])

    def table(self) -> pl.DataFrame:
        """Return accuracy in percent with its 95 % interval and n, overall and per relation.

        >>> results = probe(folder, "world_lite", prompt={"P36": "The capital of [X] is [Y]."})
        >>> results.table()["relation"].to_list()
        ['all', 'P36']
        """
        acc = self.frame.filter(results.plain(), metric="accuracy", slice="")
        chance = acc.filter(model="random").select("group", chance="value")
        rows = acc.filter(model=self.probe.model, method=self.probe.method).join(chance, on="group")
        named = pl.when(pl.col("group") == "").then(pl.lit("all")).otherwise("group")
        return rows.sort("group").select(
            named.alias("relation"), pl.col("value").alias("accuracy"), "low", "high", "n", "chance"
        )

    def plot(self) -> Chart:
        """Draw accuracy per relation as an Altair chart, which notebooks display.

        >>> results = probe(folder, "world_lite", prompt={"P36": "The capital of [X] is [Y]."})
        >>> type(results.plot()).__name__
        'LayerChart'
        """
        rows = experiments.read_table(experiments.located(RELATIONS))
        titles = {row["relation"]: row["note"] for row in rows}
        titles = {name: titles.get(name, name) for name in self.benchmark.items["relation"]}
        models = {self.probe.model: {"kind": self.probe.kind}}
        return styled(relations_plot(self.frame, models, titles))

    def compare(self, other: "Results") -> pl.DataFrame:
        """Return the accuracy minus that of `other` on shared questions, in percentage points: the
        paired difference with its 95 % interval, p of a two-sided paired permutation test, n.

        Raises ValueError if questions, options or right answers differ, or if both probes are the
        same.

        >>> capital = {"P36": "The capital of [X] is [Y]."}
        >>> reworded = {"P36": "[Y] is the capital of [X]."}
        >>> first = probe(load(folder, name="first"), "world_lite", capital)
        >>> first.compare(probe(load(folder, name="second"), "world_lite", reworded)).columns
        ['model', 'instead', 'difference', 'low', 'high', 'p', 'n']
        """
        check_options(self.benchmark, other.benchmark)
        return make.compare(self._study(self, other))

    def _study(self, *runs: "Results") -> Study:
        data = self.benchmark
        probes = [(one.probe, one.answers) for one in runs]
        questions = data.items, data.candidates, data.prompts
        return Study(
            *questions, benchmark=data.name, probes=probes, golds=data.golds,
            relations=data.relations,
        )  # fmt: skip

    def __repr__(self) -> str:
        accuracy, low, high, n = self.table().select("accuracy", "low", "high", "n").row(0)
        bounds = f"[{low:.1f}, {high:.1f}]"
        return f"Results({self._title()}: accuracy {accuracy:.1f} {bounds}, n {n})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._title())}</p>{self.table()._repr_html_()}"

    def _title(self) -> str:
        return f"{self.probe.model} on {self.benchmark.name}, {self.probe.prompt}"


# -- one question ---------------------------------------------------------------------------------


def ask(
    model: Any, template: str, *, X: str, options: Sequence[str] = (), k: int = 5  # noqa: N803
) -> pl.DataFrame:  # fmt: skip
    """Ask a model about one subject: [X] stands for the subject, [Y] for the answer.

    With `options` returns option, score (log-likelihood of its sentence in nats) and probability
    (softmax over the options), best first. Without them, returns the k likeliest texts that the
    model generates for [Y], with their log-probability: causal models if [Y] is last, seq2seq
    models anywhere; masked models, which fill a given number of masks, need options. Raises
    ModelError, and ValueError for a template without one [X] and one [Y] and for options that are
    fewer than two or not all different.

    >>> answers = ask(folder, "The capital of [X] is [Y].", X="France", options=["Paris", "Rome"])
    >>> sorted(answers["option"]), round(answers["probability"].sum(), 6)
    (['Paris', 'Rome'], 1.0)
    >>> ask(folder, "The capital of [X] is [Y].", X="France").columns
    ['text', 'logprob']
    """
    question = single(template, X, options)
    has_options = question.candidates.height > 0
    check_count(k)
    if not has_options:
        check_generated(model, template)
    loaded = load(model)
    frames = question.items, question.candidates, question.prompts
    if has_options:
        scores, _ = score_frame(loaded.spec, *frames, "sentence", load=lambda _: loaded)
        named = scores.join(question.candidates.select("label", candidate="index"), on="candidate")
        best = named.sort("sum", "candidate", descending=[True, False])
        weight = (pl.col("sum") - pl.col("sum").max()).exp()
        return best.select(option="label", score="sum", probability=weight / weight.sum())
    fills, _, _ = fill_frame(loaded, *frames, Fill(k=k, length="free", most_tokens=10))
    whole = fills.filter(position=-1).sort("rank")
    return whole.select("text", "logprob")


def check_generated(model: Any, template: str) -> None:
    """Raise ValueError, before weights are loaded, if a model cannot generate texts for [Y]."""
    spec = _spec(model)
    if spec.kind == "masked":
        raise ValueError(f"{spec.model} is a masked model, which fills a given number of masks: "
                         "give options")  # fmt: skip
    if spec.kind == "causal" and any(map(str.isalnum, cut(template)[1])):
        raise ValueError(f"{spec.model} is a causal model, which answers only at the end: put [Y] "
                         "last in the template, or give options")  # fmt: skip
