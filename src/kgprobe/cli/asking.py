"""`kgprobe probe` and `kgprobe ask`: query a model, store its answers and print them."""

import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgprobe.cli import names, screen

if TYPE_CHECKING:
    from kgprobe.library import Results

Bos = Annotated[
    str,
    typer.Option(
        help="BOS policy of causal models: forced (BOS, or EOS if there is none), none, or default "
        "(what the tokenizer adds). A row of models.tsv has its own; otherwise it is forced.",
    ),
]
Questions = Annotated[
    str,
    typer.Argument(
        help="A benchmark of the package, or the folder of one.", autocompletion=names.benchmarks
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Model = Annotated[
    str,
    typer.Argument(
        help="A folder, a row of models.tsv, gguf:PACKAGE or a name on the hub.",
        autocompletion=names.models,
    ),
]


def probe(
    model: Model,
    on: Annotated[
        str,
        typer.Option(
            help=("A benchmark of the package, or the folder of one."),
            autocompletion=names.benchmarks,
        ),
    ],
    limit: Annotated[
        int | None,
        typer.Option(
            parser=screen.whole(1), metavar="N", help="Ask only a sample of this many questions."
        ),
    ] = None,
    prompt: Annotated[
        str,
        typer.Option(
            help=(
                "templates (all), the index of one template, or a JSON file with a template per "
                "relation."
            ),
            autocompletion=names.prompts,
        ),
    ] = "templates",
    method: Annotated[
        str,
        typer.Option(help="sentence, or sentence-VARIANT.", autocompletion=names.methods),
    ] = "sentence",
    bos: Bos = "",
    name: Annotated[
        str,
        typer.Option(help=("Name of the run; by default made from model, benchmark and options.")),
    ] = "",
    as_json: Json = False,
) -> None:
    """Ask a model all questions of a benchmark.

    Everything is kept in results/NAME; after a stop the same command goes on there.

    Example: kgprobe probe bert-base-cased --on world_lite --limit 100
    """
    with screen.report_errors(as_json):
        # before the imports that take seconds: most mistakes are caught here
        from kgprobe.questions import GIVEN, benchmark, check_askable, check_method

        questions = benchmark(on)
        check_method(method)
        texts = _texts(prompt)
        asked = questions.with_prompt(texts)
        check_askable(asked)
        if isinstance(texts, Mapping):  # a sample of the questions that have a template
            questions = asked
        questions = questions.sampled(limit) if limit else questions
        if isinstance(texts, Mapping):
            texts = {r: texts[r] for r in questions.items["relation"].unique().sort()}
        asked = questions.with_prompt(texts)
        # the path of the working folder (.) has no name
        who = Path(model).resolve().name if Path(model).is_dir() else Path(model).name
        words = [who, questions.name, *([f"limit{limit}"] if limit else [])]
        words += [Path(w).stem for w, usual in ((prompt, "templates"), (method, "sentence"))
                  if w != usual]  # fmt: skip
        words += [f"bos-{bos}"] if bos else []
        run = name or re.sub(r"[^A-Za-z0-9_-]+", "-", "-".join(words)).lstrip("-")
        folder = Path("results") / run
        _check_name(run, folder)
        check_model(model)
        count = questions.items.height
        screen.note(f"{questions.name}: loading {who} to ask {count:,} questions")

        library = import_library()
        from kgprobe.cli import kept

        if method != "sentence":
            check_method(method, library.spec_of(model).kind)
        try:
            loaded = library.load(model, bos=bos)
            named = GIVEN if isinstance(texts, Mapping) else texts
            record = {**loaded.record, "bos": loaded.spec.bos}
            kept.check(folder, record, asked, named, method)
            results = library.probe(
                loaded, questions, texts, method, folder=folder / "shards", progress=screen.RichBar
            )
        except KeyboardInterrupt:
            is_kept = any((folder / "shards").glob("*"))
            raise KeyboardInterrupt(
                f"scores so far are in {folder}; run the same command to resume"
                if is_kept
                else "nothing has been scored yet"
            ) from None
        given = {"on": on, "limit": str(limit or ""), "prompt": prompt, "method": method,
                 "bos": bos, "name": run}  # fmt: skip
        options = [word for key, value in given.items() if value for word in (f"--{key}", value)]
        page = kept.write(results, folder, shlex.join(["kgprobe", "probe", model, *options]))
        _show(results, run, page, as_json)


def _check_name(run: str, folder: Path) -> None:
    """Raise ValueError for an invalid run name, one that a run of the workflow has, or a folder
    that cannot be written to."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", run):
        raise ValueError(f"--name {run!r}; valid: letters, digits, - and _")
    if folder.exists() and not (folder / "shards").is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} contains a run of the workflow; choose another --name")
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(
            f"{above} cannot be written to, and results go to {folder}; run kgprobe in another "
            "folder"
        )


def check_model(model: str) -> None:
    """Raise ValueError, before torch is imported, if no model of this name can be found."""
    from kgprobe import experiments
    from kgprobe.probes.models import reachable

    reachable.check(model, experiments.by_name(names.rows(), reachable.MODELS))


def import_library() -> ModuleType:
    """Import `kgprobe.library` (and torch) with transformers' progress bars and advice disabled:
    its advice on attention masks does not apply to how causal models are asked."""
    from transformers.utils import logging

    from kgprobe import library

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    return library


def _texts(prompt: str) -> str | Mapping[str, str]:
    """Return the keyword given as `--prompt`, or the templates of the JSON file that it names."""
    if not prompt.endswith(".json"):
        return prompt
    from kgprobe import experiments

    text = experiments.read_text(prompt)
    try:
        templates = json.loads(text, object_pairs_hook=experiments.unique_keys)
    except ValueError as error:
        raise ValueError(f"{prompt}: not valid JSON: {error}") from error
    if not (isinstance(templates, dict) and templates) or not all(
        isinstance(v, str) for v in templates.values()
    ):
        raise ValueError(f'{prompt}: expected {{"P36": "The capital of [X] is [Y]."}}')
    return templates


def _show(results: "Results", run: str, page: Path, as_json: bool) -> None:
    rows = results.table().to_dicts()
    if as_json:
        whole = {key: value for key, value in rows[0].items() if key != "relation"}
        screen.data({"run": run, "model": results.probe.model, "benchmark": results.benchmark.name,
                     "prompt": results.probe.prompt, "method": results.probe.method, **whole,
                     "relations": rows[1:], "report": str(page)})  # fmt: skip
        return
    from kgprobe.tables.report import headline

    screen.say(headline.text(results.frame))
    screen.say(f"report: {page}")


def ask(
    model: Model,
    template: Annotated[str, typer.Argument(help='A sentence: "The capital of [X] is [Y]."')],
    subject: Annotated[str, typer.Option("--x", "-x", help="The subject, in place of [X].")],
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="An answer option; repeat for each.")
    ] = None,
    bos: Bos = "",
    k: Annotated[
        int,
        typer.Option(
            "--k",
            "-k",
            parser=screen.whole(1),
            metavar="N",
            help="Without options: the number of answers to generate.",
        ),
    ] = 5,
    as_json: Json = False,
) -> None:
    """Ask a model one question.

    Example: kgprobe ask gpt2 "The capital of [X] is [Y]." -x France -o Paris -o Rome
    """
    with screen.report_errors(as_json):
        from kgprobe.questions import check_count, single

        single(template, subject, option or [])
        check_count(k)
        check_model(model)
        library = import_library()
        if not option:
            library.check_generated(model, template)
        loaded = library.load(model, bos=bos)
        rows: list[dict[str, Any]] = library.ask(
            loaded, template, X=subject, options=option or [], k=k
        ).to_dicts()
        screen.data(rows) if as_json else screen.table(rows)


COMMANDS = (probe, ask)
