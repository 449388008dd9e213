"""Export questions in the formats of other programs, each in a folder of its own.

    lm-pub-quiz    a folder for `Dataset.from_path`
    lm-eval        tasks of lm-evaluation-harness, one per template under a group
    huggingface    a data set with its card

Kinds of questions: `sentences` (ITEMS under their written templates) or `choices` (CHOICES of
OntoProbe, including those of its rules).

The last two name their sources and the licenses of these. `contracts` describes the columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from kgprobe import schema
from kgprobe.benchmarks.bear.frames import BearFrames
from kgprobe.sampling import select_asked
from kgprobe.tables.exports import card, huggingface, lm_eval, lm_pub_quiz, origins
from kgprobe.tables.exports.folders import OTHERS, ExportError, whole_folder
from kgprobe.tables.exports.huggingface import FILE, Asked
from kgprobe.tables.exports.origins import BEAR, Source

#: pattern of the paths that the folder of a format may contain, with what Python leaves there when
#: a harness imports the loader
OURS = (
    rf"README\.md|SOURCES\.md|[^/]+/{FILE}|kgprobe_[^/]+\.(yaml|py)"
    r"|__pycache__/kgprobe_[^/]+\.pyc"
)
#: the file that every folder but lm-pub-quiz's contains
SIGN = "SOURCES.md"
#: suffix of the name of multiple-choice questions
CHOICES = "choices"
KINDS = ("sentences", CHOICES)
NAMES = ("lm-pub-quiz", "lm-eval", "huggingface")
#: characters that `datasets` refuses in the name of a configuration, or reads as a pattern of files
REFUSED = set("<>:/\\|?*[]")


def read(folder: Path, kind: str, sets: Callable[[], BearFrames]) -> Asked:
    """Return a benchmark's questions of a kind: `sets()` or CHOICES. Raises ExportError if it has
    none."""
    if kind == "sentences":
        return sets()
    path = folder / f"{kind}.parquet"
    if not path.is_file():
        raise ExportError(f"{folder}: no {path.name}; expected a benchmark of OntoProbe in a "
                          f"run's folder, results/RUN/benchmarks/onto_world")  # fmt: skip
    return schema.read(path, schema.CHOICES)


def sources(form: str, folder: Path, license: str = "") -> list[Source]:
    """Return the sources that an export of a benchmark's folder names, as `origins.of`.

    lm-pub-quiz's folder names none, so that no license has to be known.
    """
    return [] if form == "lm-pub-quiz" and not license else origins.of(folder, license)


def write(
    form: str,
    name: str,
    questions: Asked,
    sources: Sequence[Source],
    folder: Path,
    relations: pl.DataFrame | None = None,
    paper: str = BEAR,
) -> None:
    """Write the questions `name` in the format `form` (NAMES) to `folder`, atomically.

    `relations` (RELATIONS): lm-pub-quiz reads cardinality and domains from a file next to the
    folder. `paper`: what the card of a set of sentences cites. Raises ExportError if the format
    cannot express the questions, or the folder contains something else.
    """
    if isinstance(questions, BearFrames):
        items = select_asked(questions.items)
        # a template without questions would be a task without rows
        has_items = pl.col("relation").is_in(items["relation"].unique().implode())
        questions = replace(questions, items=items, prompts=questions.prompts.filter(has_items))
    rows = questions.items if isinstance(questions, BearFrames) else questions
    if not rows.height:
        raise ExportError(f"{name}: no question that is asked; expected a benchmark with "
                          "items that are not for training alone")  # fmt: skip
    if form == "lm-pub-quiz":
        if not isinstance(questions, BearFrames):
            raise ExportError(f"lm-pub-quiz knows no lettered questions; {OTHERS}")
        # its loader takes every file in the folder for a relation
        lm_pub_quiz.export(questions, folder, relations)
        return
    if form == "lm-eval" and "," in name:
        raise ExportError(f"{name}: names a group of tasks, and lm-evaluation-harness separates "
                          "tasks by commas; rename the benchmark's folder")  # fmt: skip
    if form == "huggingface" and (wrong := sorted(REFUSED & set(name))):
        raise ExportError(f"{name}: names a configuration, which Hugging Face's loader refuses "
                          f"with {' '.join(wrong)}; rename the benchmark's folder")  # fmt: skip
    with whole_folder(folder, OURS, SIGN) as temporary:
        huggingface.write_rows(questions, temporary / name / FILE)
        texts = (
            lm_eval.files(name, questions)
            if form == "lm-eval"
            else {"README.md": card.write(name, questions, sources, paper)}
        )
        for file, text in {**texts, SIGN: describe_sources(name, sources)}.items():
            (temporary / file).write_text(text, encoding="utf-8")


#: advice on comparing accuracies with those of another program
BOS = (
    "The log-likelihoods of a causal model depend on the token before the sentence. The default "
    "BOS policy of kgprobe is `forced`: one BOS token, or EOS if there is none, as in "
    "lm-evaluation-harness with an empty context and in lm-pub-quiz 0.3.3. Multiple-choice "
    "questions have a context, before which lm-evaluation-harness adds no BOS unless "
    "`--model_args` contains `add_bos_token=True`; without it, compare with `--bos none`. Only "
    "compare numbers with the same policy."
)


def describe_sources(name: str, sources: Sequence[Source]) -> str:
    """Describe the sources of an export."""
    lines = [f"# Sources of {name}", ""]
    for source in sources:
        place = f", {source.url}" if source.url else ""
        lines.append(f"* {source.title}: {source.license}{place}. Name: {source.attribution}")
    lines += ["", BOS]
    return "\n".join(lines) + "\n"
