"""`kgprobe init`: write the three files for starting a run on a user-supplied table of facts."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from kgprobe.cli import names, screen
from kgprobe.cli.asking import Json, check_model, import_library

#: columns that every row of the table of models has
COLUMNS = ("model", "kind", "source", "revision", "dtype", "bos")
METHOD = "sentence"
Form = Literal["table", "rdf"]
CONFIG = """\
{schema}# A graph of your own (docs/tutorials/own_graph.md). config/README.md has every key.
{text}"""


def init(
    name: Annotated[
        str,
        typer.Argument(help=("The new folder, which is also the name of the run and the graph.")),
    ],
    facts: Annotated[
        Path,
        typer.Option(
            help=("A table of facts (subject, relation, object) or RDF; it is not moved.")
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A folder, a row of models.tsv, gguf:PACKAGE or a name on the hub.",
            autocompletion=names.models,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Write the files of a run on facts of your own.

    config.yaml, models.tsv and experiments.tsv in a new folder, which asks the model for the facts
    by multiple choice (BEAR). Nothing is overwritten.

    Example: kgprobe init mine --facts facts.csv --model ./my-model
    """
    with screen.report_errors(as_json):
        import yaml

        from kgprobe.config import schema_line
        from kgprobe.workflow import sources

        graph = _graph(name)
        if os.path.lexists(name):
            raise ValueError(f"{name} already exists and is not overwritten; choose the "
                             "name of a new folder")  # fmt: skip
        form, counts = _facts(graph, facts)
        row = _model(model)
        kind, _, place = row["source"].partition(":")
        sources.files([str(facts), *([place] if kind == "folder" else [])])
        config = {
            "run": {"name": name},
            "tables": {kind: f"{name}/{kind}.tsv" for kind in ("models", "experiments")},
            "sources": {"graphs": {graph: {"form": form, "files": [str(facts)]}}},
            # the comparisons in config/config.yaml are between models that are not probed here
            "comparisons": [],
        }
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=1000)
        experiment = {"paper": "bear", "benchmark": f"{graph}_lite", "prompt": "templates",
                 "method": METHOD, "model": row["model"]}  # fmt: skip
        texts = {
            "config.yaml": CONFIG.format(schema=schema_line(name), text=text),
            "models.tsv": _table(row),
            "experiments.tsv": _table(experiment),
        }
        with _new_folder(name) as folder:
            for file, content in texts.items():
                (folder / file).write_text(content, encoding="utf-8")
        written = [f"{name}/{file}" for file in texts]
        command = f"kgprobe run {name}/config.yaml --cores 2"
        if as_json:
            screen.data({"written": written, **counts, "benchmark": experiment["benchmark"],
                         "model": row["model"], "kind": row["kind"], "next": command})  # fmt: skip
            return
        number = {name: f"{n:,} {name[:-1] if n == 1 else name}" for name, n in counts.items()}
        screen.say(f"{facts}: {number['facts']} of {number['relations']}")
        screen.say(f"{row['model']}: a {row['kind']} model from {row['source']}")
        screen.say(f"Written: {', '.join(written)}.")
        screen.say(f"Next: {command}")
        screen.say(f"Then read results/{name}/tables/headline.txt or open "
                   f"results/{name}/report/index.html.")  # fmt: skip


def _graph(name: str) -> str:
    """Return the name of the graph: the run's name in lowercase with underscores for hyphens."""
    from kgprobe.files import ROOT
    from kgprobe.settings.sources import GraphName
    from kgprobe.workflow.benchmarks import check_names

    _, pattern = get_args(GraphName)
    graph = name.lower().replace("-", "_")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or not re.search(pattern.regex, graph):
        raise ValueError(f"{name!r} cannot name a graph; valid: {pattern.words}")
    check_names([graph])
    # in the project's own folder, a name in use is reported as one that exists
    if (ROOT / name).exists() and not os.path.lexists(name):
        raise ValueError(
            f"{name!r} cannot name a graph; valid: {pattern.words}; a folder of that name would "
            "hide the project's own"
        )
    return graph


def _facts(graph: str, path: Path) -> tuple[Form, dict[str, int]]:
    """Return the format of a file of facts and the counts that a run would read from it. Raises
    ValueError for an invalid file."""
    from kgprobe.settings.sources import OwnGraph
    from kgprobe.settings.types import LANGUAGES
    from kgprobe.sources import rdf_forms
    from kgprobe.sources.graphs import read, tables

    if not path.is_file():
        what = "a folder" if path.is_dir() else "no such file"
        raise ValueError(
            f"{path}: {what}; expected a table with the columns subject, relation and object"
        )
    is_table = (
        path.suffix.lower() in tables.ENDINGS or rdf_forms.ending(path) not in rdf_forms.FORMS
    )
    form: Form = "table" if is_table else "rdf"
    try:
        facts = read.read(graph, OwnGraph(form, (str(path),)), LANGUAGES)["facts"]
    except UnicodeEncodeError:  # of the file's name, which is reported like any text
        raise
    except ValueError as error:
        text = str(error).removeprefix(f"sources.graphs.{graph}: ")
        # there is no configuration yet
        text = text.replace("count and skip them: ", "count and skip them, in a configuration: ")
        raise ValueError(text) from error
    return form, {"facts": facts.height, "relations": facts["relation"].n_unique()}


def _model(model: str) -> dict[str, str]:
    """Return the row of the table of models for the value of `--model`."""
    from kgprobe.experiments import KINDS_OF_METHOD

    rows = {row["model"]: row for row in names.rows()}
    check_model(model)
    if model in rows and not Path(model).is_dir():
        row = {key: value for key, value in rows[model].items() if key not in ("_line", "groups")}
    else:
        spec = import_library().spec_of(model)
        row = {column: str(getattr(spec, column)) for column in COLUMNS}
        row["model"] = re.sub(r"[^A-Za-z0-9._-]+", "-", row["model"]).strip("-._") or "model"
    if row["kind"] not in KINDS_OF_METHOD[METHOD]:
        legal = ", ".join(KINDS_OF_METHOD[METHOD])
        raise ValueError(f"{model}: a model of kind {row['kind']} gives no probabilities of "
                         f"sentences; valid kinds: {legal}")  # fmt: skip
    if re.search(r"[\t\r\n]", row["source"]):
        raise ValueError(f"{row['source']!r}: a table of models cannot hold a path with a tab or a "
                         "line end; rename the folder")  # fmt: skip
    return {**dict.fromkeys(COLUMNS, ""), **{key: value for key, value in row.items() if value}}


def _table(row: dict[str, str]) -> str:
    """Format a tab-separated table of one row."""
    return "\t".join(row) + "\n" + "\t".join(row.values()) + "\n"


@contextlib.contextmanager
def _new_folder(name: str) -> Iterator[Path]:
    """Create a folder that appears complete or not at all."""
    folder = Path(f".{name}.{os.getpid()}.part")
    try:
        folder.mkdir()
        yield folder
        folder.rename(name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


COMMANDS = (init,)
