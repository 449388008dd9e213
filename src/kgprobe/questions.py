"""Benchmarks by name or folder, without a model: the package's, those of runs, and released BEAR
benchmarks.

    from kgprobe.questions import benchmark

    benchmark("world_lite").with_prompt({"P36": "[Y] governs [X]."}).sampled(20)
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from kgprobe import experiments, sampling, schema
from kgprobe.benchmarks.bear import released
from kgprobe.contracts import COUNTS
from kgprobe.tables.answers import choosable, gold_ids, questions
from kgprobe.templates import sentence

#: the benchmarks of the package
BENCHMARKS = "resources/benchmarks"
#: the files of a benchmark's folder, and their contracts
TABLES = {"items": schema.ITEMS, "candidates": schema.CANDIDATES, "prompts": schema.PROMPTS}
#: the optional file of cardinalities and domains
RELATIONS = "relations.parquet"
#: methods that score whole sentences: `sentence`, and its variants for each kind of model
METHODS = ("sentence", *(f"sentence-{name}" for of in experiments.VARIANTS_OF_KIND.values()
                         for name in of))  # fmt: skip
#: prompt names of a benchmark's own templates, and of user-supplied templates
OWN, GIVEN = "templates", "given"


class BenchmarkError(ValueError):
    """There is no such benchmark, or it cannot be read; the message lists what exists.

    >>> try:
    ...     benchmark("world_light")
    ... except BenchmarkError as error:
    ...     print(str(error).partition(";")[0])
    world_light: neither a folder nor a benchmark of the package (did you mean 'world_lite'?)
    """


@dataclass(frozen=True)
class Benchmark:
    """Questions: ITEMS, their options (CANDIDATES) and the sentences that ask them (PROMPTS).

    >>> benchmark("world_lite").items.height
    468
    """

    name: str
    items: pl.DataFrame
    candidates: pl.DataFrame
    prompts: pl.DataFrame
    #: provenance of the file of items: rule, wildcards, source (which determines the license), and
    #: the languages of its labels
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: for a sample: (relation, id) of the correct answers of the whole benchmark
    golds: pl.DataFrame | None = field(default=None, repr=False, compare=False)
    #: cardinality, perhaps domains, of the relations of the whole benchmark
    relations: pl.DataFrame | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        relations = self.items["relation"].n_unique()
        return f"Benchmark({self.name}: {self.items.height} items, {relations} relations)"

    def with_prompt(self, prompt: str | int | Mapping[str, str]) -> "Benchmark":
        """Return the questions with other prompts: all `templates`, the one of an index, or one
        template for each relation, which drops the relations that are not given.

        >>> asked = benchmark("world_lite").with_prompt({"P36": "[Y] governs [X]."})
        >>> asked.prompts["text"].to_list()
        ['[Y] governs [X].']
        """
        if prompt == OWN:
            return self
        if isinstance(prompt, Mapping):
            if not prompt:
                raise BenchmarkError(
                    f"{self.name}: no prompt is given; expected a template for each relation, as "
                    '{"P36": "The capital of [X] is [Y]."}'
                )
            for relation, text in prompt.items():
                sentence(text, relation)
            new = self._of(set(prompt))
            # also for a relation that has no template of its own
            rows = [(f"{name}/{GIVEN}", name, 0, prompt[name], GIVEN) for name in sorted(prompt)]
            prompts = pl.DataFrame(rows, schema=dict(schema.PROMPTS.columns), orient="row")
        else:
            new, prompts = self, self.prompts.filter(pl.col("index").cast(pl.String) == str(prompt))
            if not prompts.height:
                legal = ", ".join(map(str, sorted(set(self.prompts["index"]))))
                raise BenchmarkError(f"{self.name} has no prompt {prompt!r}; valid: {OWN}, {legal}")
        # one prompt per question: with index 0, two benchmarks can be compared
        return replace(new, prompts=prompts.with_columns(index=pl.lit(0, dtype=pl.Int32)))

    def sampled(self, limit: int) -> "Benchmark":
        """Sample at most `limit` questions by hash: a smaller sample is a subset of a larger one,
        and the sample is the same on every machine.

        >>> benchmark("world_lite").sampled(20).items.height
        20
        """
        if limit < 1:
            raise BenchmarkError(f"a sample of {limit} questions; expected 1 or more")
        items = sampling.take(self.items, limit, 0, ["item"], label=self.name)
        held = pl.col("relation").is_in(items["relation"].unique().implode())
        sets = pl.col("set").is_in(items["candidates"].unique().implode())
        golds = gold_ids(self.items, self.candidates) if self.golds is None else self.golds
        relations = self._cardinalities() if self.relations is None else self.relations
        return replace(
            self, items=items, prompts=self.prompts.filter(held),
            candidates=self.candidates.filter(sets), golds=golds, relations=relations,
        )  # fmt: skip

    def _cardinalities(self) -> pl.DataFrame:
        """Derive the cardinality of the relations, which a sample does not show."""
        from kgprobe.tables.study import Study

        kinds = Study(self.items, self.candidates, self.prompts).cardinality
        names = ["relation", "cardinality"]
        return pl.DataFrame(sorted(kinds.items()), schema=names, orient="row")

    def write(self, folder: Path) -> None:
        """Write the questions in the format that `benchmark` reads.

        >>> place = Path(folder).parent / "twenty"
        >>> benchmark("world_lite").sampled(20).write(place)
        >>> benchmark(place).items.height
        20
        """
        for name, contract in TABLES.items():
            schema.write(getattr(self, name), contract, folder / f"{name}.parquet", self.provenance)
        if self.relations is None:
            (folder / RELATIONS).unlink(missing_ok=True)
            return
        rows = self.relations.join(self.items, on="relation", how="semi")
        nullable = frozenset(rows.columns) - {"relation"}
        contract = schema.Contract("RELATIONS", dict(rows.schema), ("relation",), nullable)
        schema.write(rows, contract, folder / RELATIONS, self.provenance)

    def _of(self, relations: set[str]) -> "Benchmark":
        """Return the questions about these relations. Raises BenchmarkError for unknown ones."""
        known = set(self.items["relation"])
        if unknown := sorted(relations - known):
            near = experiments.nearest(unknown[0], known)
            raise BenchmarkError(f"{self.name} asks of no {unknown[0]!r}{near}; valid: "
                                 f"{', '.join(sorted(known))}")  # fmt: skip
        items, prompts = (
            f.filter(pl.col("relation").is_in(sorted(relations)))
            for f in (self.items, self.prompts)
        )
        sets = items["candidates"].unique()
        return replace(
            self, items=items, prompts=prompts,
            candidates=self.candidates.filter(pl.col("set").is_in(sets.implode())),
        )  # fmt: skip


def check_askable(benchmark: Benchmark) -> None:
    """Raise BenchmarkError, before anything is asked, if a question has no template or no wrong
    option."""
    items = benchmark.items
    lacking = items.join(benchmark.prompts, on="relation", how="anti")["relation"].value_counts()
    for relation, count in lacking.sort("relation").head(1).rows():
        raise BenchmarkError(f"relation {relation}: no template for its {count} items")
    chosen = choosable(items, benchmark.candidates)
    for item in items.join(chosen, on="item", how="anti")["item"].sort().head(1):
        raise BenchmarkError(f"{benchmark.name}: item {item}: all of its options are right; "
                             "expected a wrong one")  # fmt: skip


def check_options(one: Benchmark, other: Benchmark) -> None:
    """Raise ValueError, naming the difference, if shared questions have other options or right
    answers: then a difference in accuracy could come from the questions."""
    shared = one.items.select("item", "answers", set="candidates").join(
        other.items.select("item", "answers", set="candidates"), on="item", suffix="_other"
    )
    rows = [b.candidates.sort("set", "index").group_by("set") for b in (one, other)]
    ours, theirs = (dict(group.agg("label").rows()) for group in rows)
    for row in shared.unique(["set", "set_other"], maintain_order=True).rows(named=True):
        here, there = ours[row["set"]], theirs[row["set_other"]]
        if here != there:
            apart = sorted(set(here) ^ set(there))
            what = (
                f"differ in {', '.join(map(repr, apart[:3]))}"
                if apart
                else "stand in another order"
            )
            raise ValueError(
                f"{one.name}: item {row['item']} has {len(here)} options in one probe and "
                f"{len(there)} in the other, which {what}; only probes of the same options can be "
                "compared"
            )
    for row in shared.filter(pl.col("answers") != pl.col("answers_other")).rows(named=True):
        options = ours[row["set"]]
        right = [", ".join(options[i] for i in row[name]) for name in ("answers", "answers_other")]
        raise ValueError(
            f"{one.name}: the right answer of item {row['item']} is {right[0]} in one probe and "
            f"{right[1]} in the other; only probes of the same right answers can be compared"
        )


def benchmark(name_or_folder: str | Path) -> Benchmark:
    """Read a benchmark by its name in the package or from a folder: a run's
    `results/RUN/benchmarks/NAME`, or a released BEAR. Items for training are left out.

    Raises BenchmarkError.

    >>> benchmark("world_lite")
    Benchmark(world_lite: 468 items, 28 relations)
    """
    folder = folder_of(name_or_folder)
    if (folder / "metadata_relations.json").is_file():
        sets = released.load(folder, benchmark=folder.name)
        return Benchmark(
            folder.name, sets.items, sets.candidates, sets.prompts, {"rule": "load_bear"}
        )
    lacking = [f"{t}.parquet" for t in TABLES if not (folder / f"{t}.parquet").is_file()]
    if lacking:
        held = ", ".join(sorted(path.name for path in folder.iterdir())[:8])
        raise BenchmarkError(
            f"{folder}: no benchmark, it lacks {', '.join(lacking)} and holds {held or 'nothing'}; "
            "expected a run's results/RUN/benchmarks/NAME, or a released BEAR with "
            "metadata_relations.json and a P36.jsonl for each relation"
        )
    provenance = schema.provenance(folder / "items.parquet")
    kept = ("rule", "wildcards", "source", "languages")
    record: dict[str, Any] = {key: provenance[key] for key in kept if key in provenance}
    items, candidates, prompts = questions(folder)
    _check_items(folder, items, candidates)
    for row in prompts.filter(pl.struct("relation", "index").is_duplicated()).rows(named=True):
        raise BenchmarkError(f"{folder / 'prompts.parquet'}: relation {row['relation']} has "
                             f"index {row['index']} twice; expected once")  # fmt: skip
    # this import takes a moment
    from kgprobe.tables.study import relations_of

    asked = sampling.select_asked(items)
    if items.height and not asked.height:
        raise BenchmarkError(f"{folder / 'items.parquet'}: all {items.height} items are for "
                             "training; expected items with role fact or test")  # fmt: skip
    relations = relations_of(folder / RELATIONS)
    return Benchmark(folder.name, asked, candidates, prompts, record, relations=relations)


def _check_items(folder: Path, items: pl.DataFrame, candidates: pl.DataFrame) -> None:
    """Raise BenchmarkError for an item whose options or right answers are missing, whose options
    are not numbered from 0, whose right answers are empty or repeated, or whose role or meta is
    invalid."""
    roles = ["fact", "test", "train", "dev"]
    if not set(items["role"]) <= set(roles):
        # roles of the attributes' examples; this import takes a second
        from kgprobe.benchmarks.attributes.checks import ROLES

        roles = list(dict.fromkeys([*roles, *chain.from_iterable(ROLES.values())]))
    asked = items.select("item", "role", "meta", set="candidates", index="answers")
    count = pl.col("index").list.len()
    once = (count > 0) & (count == pl.col("index").list.n_unique())
    is_read = pl.Series([_is_read(text) for text in items["meta"]], dtype=pl.Boolean)
    there = "is not in candidates.parquet"
    number = pl.col("index")
    numbered = candidates.group_by("set").agg(pl.len(), first=number.min(), last=number.max())
    gaps = numbered.filter((pl.col("first") != 0) | (pl.col("last") >= pl.col("len")))
    for wrong, what in (
        (asked.join(candidates, on="set", how="anti"), f"set of options {{set!r}} {there}"),
        (
            asked.join(gaps, on="set"),
            "{len} options {set!r} have the indices {first} to {last}; expected 0, 1, 2, ...",
        ),
        (asked.filter(~once), "right answers are {index}; expected at least one, each once"),
        (
            asked.explode("index").join(candidates, on=["set", "index"], how="anti"),
            f"right answer, option {{index}} of {{set!r}}, {there}",
        ),
        (
            asked.filter(~pl.col("role").is_in(roles)),
            f"role is {{role!r}}; valid: {', '.join(roles)}",
        ),
        (
            asked.filter(~is_read),
            "meta is {meta!r}; expected a JSON object, as {{}}, where "
            f"{', '.join(COUNTS)} are whole numbers",
        ),
    ):
        for row in wrong.sort("item").head(1).rows(named=True):
            raise BenchmarkError(f"{folder / 'items.parquet'}: item {row['item']}: its "
                                 f"{what.format(**row)}")  # fmt: skip


def _is_read(text: str) -> bool:
    """Return whether an item's meta is a JSON object whose COUNTS are non-negative integers."""
    try:
        counts = [json.loads(text).get(name) for name in COUNTS]
    except (ValueError, AttributeError):
        return False
    return all(n is None or (type(n) is int and 0 <= n < 2**63) for n in counts)


def folder_of(name_or_folder: str | Path) -> Path:
    """Return the folder of a benchmark. Raises BenchmarkError."""
    folder = Path(name_or_folder)
    packed = Path(experiments.located(BENCHMARKS))
    names = packaged()
    if str(name_or_folder) in names:
        folder = packed / folder
    if not folder.is_dir():
        near = experiments.nearest(str(name_or_folder), names)
        raise BenchmarkError(f"{name_or_folder}: neither a folder nor a benchmark of the package"
                             f"{near}; valid: {', '.join(names)}, or a folder")  # fmt: skip
    # files are named after the folder, and the paths . and .. have no name
    return folder if folder.name.strip(".") else folder.resolve()


def packaged() -> list[str]:
    """Return the names of the package's benchmarks."""
    return sorted(path.name for path in Path(experiments.located(BENCHMARKS)).iterdir())


def single(template: str, subject: str, options: Sequence[str] = ()) -> Benchmark:
    """Return a benchmark of one question without known answer. Raises TemplateError for a template
    without one [X] and one [Y], BenchmarkError for options that are fewer than two or not all
    different, and for a subject or an option that is not a string.

    >>> single("The capital of [X] is [Y].", "France", ["Paris", "Rome"]).candidates.height
    2
    """
    sentence(template)
    labels = [options] if isinstance(options, str) else list(options)
    if wrong := [one for one in (subject, *labels) if not isinstance(one, str)]:
        raise BenchmarkError(
            f"{wrong[0]!r} is not a string; expected a subject and options of text"
        )
    if len(set(labels)) < len(labels) or len(labels) == 1:
        raise BenchmarkError(f"options {labels}: two or more are needed, each once")
    item = {
        "item": "asked", "group": "asked", "role": "fact", "relation": "asked", "subject": subject,
        "subject_id": "", "candidates": "asked", "answers": [], "row": 0,
        "meta": "{}",
    }  # fmt: skip
    rows = [{"set": "asked", "index": i, "id": "", "label": label} for i, label in
            enumerate(labels)]  # fmt: skip
    prompt = {"prompt": "asked", "relation": "asked", "index": 0, "text": template, "kind": GIVEN}
    return Benchmark(
        "asked",
        pl.DataFrame([item], schema=dict(schema.ITEMS.columns)),
        pl.DataFrame(rows, schema=dict(schema.CANDIDATES.columns)),
        pl.DataFrame([prompt], schema=dict(schema.PROMPTS.columns)),
    )


def check_method(method: str) -> None:
    """Raise BenchmarkError for a method that does not score whole sentences."""
    if method not in METHODS:
        raise BenchmarkError(f"method {method!r}{experiments.nearest(method, METHODS)}; valid: "
                             f"{', '.join(METHODS)} (others are asked by the workflow)"
                             )  # fmt: skip
