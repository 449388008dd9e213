"""Train the control models that are shipped in resources/control, and check them.

    python -m tools.controls            train them again: an hour and a half on two cores
    python -m tools.controls check      check that the shipped weights recall every training fact

A seeded half of the embedded facts is trained on, the other half is held out: the tables
facts.parquet and ontology.parquet next to the weights list both. The split is the same for every
configuration, so that the same weights can be asked on every machine. The facts and templates come
from a run of the workflow's own rules on the embedded knowledge graph (results/controls).
"""

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kgprobe import schema
from kgprobe.benchmarks.attributes.frames import EXAMPLES
from kgprobe.experiments import read_table
from kgprobe.job import progress
from kgprobe.probes.models.load import Loaded, ModelSpec, load_model, usual_bos
from kgprobe.settings.benchmarks import ATTRIBUTES
from tools.controls import split
from tools.controls.letters import BY_LETTER, PARAPHRASES, LetterQuestions
from tools.controls.recall import RecallTest
from tools.controls.train import LEAST, RECIPES, train_control
from tools.controls.training_facts import TrainingFact

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "resources/control"
CONFIGS = ("config/embedded.yaml", "tools/controls/config.yaml")
RESULTS = "results/controls"
#: what the split and the training read of a run
READ = (
    "knowledge/world/facts.parquet",
    *(f"benchmarks/world_big/{name}.parquet" for name in ("items", "candidates")),
    *(f"benchmarks/onto_world/{name}.parquet" for name in ("items", "candidates", "prompts")),
    *(
        f"benchmarks/{name}/{table}.parquet"
        for name in ATTRIBUTES
        for table in ("examples", "prompts")
    ),
)
SEED, PROPORTION, POOL = 0, 0.5, 2000
#: instances whose types, and classes whose superclasses are trained on or held out
ONTOLOGY = {"TP": 200, "SCO": 200}


@dataclass(frozen=True)
class Training:
    """Training facts of a control model, and what shapes its tokenizer: labels, and the words that
    are one token."""

    training_facts: Sequence[TrainingFact]
    labels: Sequence[str]
    words: Sequence[str]
    templates: Mapping[str, Sequence[str]]
    kinds: Mapping[str, Sequence[TrainingFact]]
    objects: Mapping[str, Sequence[str]]
    #: task -> labels of its candidates
    options: Mapping[str, Sequence[str]]

    @property
    def record(self) -> dict[str, object]:
        """Return a hash of the facts (and of what shapes the tokenizers), and all templates."""
        text = json.dumps([self.training_facts, self.labels, self.words], ensure_ascii=False)
        digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        by_letter = {task: list(paraphrases) for task, paraphrases in PARAPHRASES.items()}
        return {"facts": digest, "templates": self.templates, "by letter": by_letter}


def tables(results: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return TRAINED_ON of the facts and of the ontology. Facts of the shipped models keep their
    side; without the shipped tables, everything is split again."""
    relations = sorted({row["relation"] for row in read_table(_template_file("templates"))})
    facts = split.split(
        schema.read(results / READ[0], schema.FACTS),
        _read_asked_facts(results),
        relations,
        POOL,
        PROPORTION,
        SEED,
        _examples(results, ATTRIBUTES),
    )
    onto = results / "benchmarks/onto_world"
    statements = split.ontology(
        schema.read(onto / "items.parquet", schema.ITEMS),
        schema.read(onto / "candidates.parquet", schema.CANDIDATES),
        ONTOLOGY,
        PROPORTION,
        SEED,
    )
    if not (SHIPPED / "facts.parquet").is_file():
        return facts, statements
    before = shipped()
    return split.keep(facts, before[0]), split.keep(statements, before[1])


def shipped() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tables of the shipped models: facts, and the ontology's statements."""
    facts, statements = (SHIPPED / f"{name}.parquet" for name in ("facts", "ontology"))
    return schema.read(facts, schema.TRAINED_ON), schema.read(statements, schema.TRAINED_ON)


def training(
    results: Path,
    facts: pl.DataFrame,
    statements: pl.DataFrame,
    attributes: Sequence[str] = ATTRIBUTES,
) -> Training:
    """Build the training set from the tables of training facts and a run's facts and prompts."""
    known = schema.read(results / READ[0], schema.FACTS)
    forms = {row["id"]: row["form"] for row in read_table(_template_file("bear_labels"))}
    templates: dict[str, list[str]] = {}
    for row in read_table(_template_file("templates")):
        templates.setdefault(row["relation"], []).append(row["text"])
    # every template in which OntoProbe and the attributes ask is trained on, too
    for name in ("onto_world", *attributes):
        prompts = schema.read(results / f"benchmarks/{name}/prompts.parquet", schema.PROMPTS)
        for relation, text in prompts.sort("relation", "index").select("relation", "text").rows():
            if text not in (known_texts := templates.setdefault(relation, [])):
                known_texts.append(text)
    types, names = split.ontology_training_facts(statements)
    training_facts = sorted([*split.training_facts(known, facts, forms), *types])
    reasons = split.kinds(
        facts, {"world_big": _read_asked_facts(results)}, _examples(results, attributes)
    )
    kinds = split.by_kind(known, facts, reasons, forms)
    for fact in types:
        kinds.setdefault(fact.relation, []).append(fact)
    return Training(
        training_facts,
        sorted({*split.all_labels(known, facts, forms), *names}),
        split.common_objects(known, facts),
        {
            relation: templates[relation]
            for relation in sorted({row.relation for row in training_facts})
        },
        kinds,
        split.rivals(known, facts, forms) | split.ontology_rivals(statements),
        _class_labels(results),
    )


def _template_file(name: str) -> Path:
    return ROOT / f"resources/templates/{name}.tsv"


def _read_asked_facts(results: Path) -> pl.DataFrame:
    folder = results / "benchmarks/world_big"
    return split.select_asked_facts(
        schema.read(folder / "items.parquet", schema.ITEMS),
        schema.read(folder / "candidates.parquet", schema.CANDIDATES),
    )


def _class_labels(results: Path) -> dict[str, list[str]]:
    """Return task -> the labels of the classes that are its candidates."""
    folder = results / "benchmarks/onto_world"
    items = schema.read(folder / "items.parquet", schema.ITEMS)
    candidates = schema.read(folder / "candidates.parquet", schema.CANDIDATES)
    sets = items.select(task="relation", set="candidates").unique().join(candidates, on="set")
    return {task: sets.filter(task=task)["label"].unique().sort().to_list() for task in PARAPHRASES}


def _examples(results: Path, attributes: Sequence[str]) -> pl.DataFrame:
    files = [results / f"benchmarks/{name}/examples.parquet" for name in attributes]
    return pl.concat([schema.read(path, EXAMPLES) for path in files])


def train(kind: str, made: Training) -> str:
    """Train one model into resources/control; return a line about it."""
    bar = progress(total=RECIPES[kind].steps, desc=kind, unit="step")
    record = train_control(
        kind,
        made.training_facts,
        made.labels,
        made.templates,
        SEED,
        SHIPPED / kind,
        RECIPES[kind],
        lambda done, total, loss: bar.update(1),
        made.kinds,
        made.objects,
        made.words,
        made.options,
    )
    bar.close()
    return f"{kind}: {record['steps']} steps, {record['cpu_seconds']} CPU seconds"


def load(kind: str) -> Loaded:
    """Load the shipped weights."""
    return load_model(ModelSpec(f"control-{kind}", kind, f"control:{kind}", bos=usual_bos(kind)))


def right(kind: str, recall_test: RecallTest, places: Sequence[int]) -> NDArray[np.bool_]:
    """Return whether the shipped weights rank the object of some training sentences first."""
    loaded = load(kind)
    return recall_test.right(kind, loaded.model, loaded.tokenizer, places)


def by_letter(kind: str, made: Training) -> dict[str, float]:
    """Ask the shipped weights by letter; return the number of facts and their recall."""
    loaded, rng = load(kind), np.random.default_rng(SEED)
    facts = sorted(made.training_facts)
    letters = LetterQuestions(kind, loaded.tokenizer, facts, made.options, rng)
    return letters.recall(loaded.model)


def main() -> int:
    """Train or check; the exit status says whether the shipped weights are correct."""
    parser = argparse.ArgumentParser(prog="python -m tools.controls", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("train", "check"), default="train")
    chosen = parser.parse_args()
    targets = [f"{RESULTS}/{name}" for name in READ]
    command = ["snakemake", "--cores", "all", "--configfile", *CONFIGS, "--", *targets]
    subprocess.run(command, cwd=ROOT, check=True)
    results = ROOT / RESULTS
    if chosen.what == "train":
        facts, statements = tables(results)
        SHIPPED.mkdir(exist_ok=True)
        schema.write(facts, schema.TRAINED_ON, SHIPPED / "facts.parquet")
        schema.write(statements, schema.TRAINED_ON, SHIPPED / "ontology.parquet")
    else:
        facts, statements = (
            schema.read(SHIPPED / f"{name}.parquet", schema.TRAINED_ON)
            for name in ("facts", "ontology")
        )
    made = training(results, facts, statements)
    if chosen.what == "train":
        record = json.dumps(made.record, indent=1, sort_keys=True, ensure_ascii=False)
        (SHIPPED / "trained_on.json").write_text(record + "\n")
        with ProcessPoolExecutor(2) as pool:
            for line in pool.map(train, RECIPES, [made] * len(RECIPES)):
                print(line, flush=True)
        return 0
    if json.loads((SHIPPED / "trained_on.json").read_text()) != made.record:
        print("facts or templates are no longer those of the training: python -m tools.controls")
        return 1
    below = 0
    recall_test = RecallTest(made.training_facts, made.templates, made.kinds, made.objects)
    for kind in RECIPES:
        every = recall_test.recall(right(kind, recall_test, range(len(recall_test.items))))
        every[BY_LETTER] = by_letter(kind, made)
        for name, found in every.items():
            print(f"{kind}\t{name}\t{found['facts']} facts\t{found['recall']:.3f}")
            below += found["recall"] < LEAST.get(name, RECIPES[kind].recall)
    return int(below > 0)


if __name__ == "__main__":
    sys.exit(main())
