"""`kgprobe export`: write questions in the formats of other tools."""

from pathlib import Path
from typing import Annotated

import typer

from kgprobe.cli import names, screen
from kgprobe.cli.asking import Json, Questions


def export(
    what: Questions,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            help="lm-pub-quiz, lm-eval or huggingface.",
            autocompletion=names.forms,
        ),
    ],
    to: Annotated[Path, typer.Option(help="Target folder, new or with an older export.")],
    questions: Annotated[
        str,
        typer.Option(
            help="sentences, or choices for OntoProbe's benchmarks.",
            autocompletion=names.among("sentences", "choices"),
        ),
    ] = "sentences",
    license: Annotated[
        str, typer.Option(help="SPDX id of the license of your own graph, such as CC-BY-4.0.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Export questions for other tools.

    Example: kgprobe export world_lite --as lm-eval --to exported
    """
    with screen.report_errors(as_json):
        from kgprobe.tables.exports import formats, origins
        from kgprobe.tables.exports.lm_pub_quiz import INFO
        from kgprobe.tables.study import relations_of

        # `--to=~/x` arrives unexpanded from the shell, and only pyarrow would expand it
        to, chosen = to.expanduser(), screen.choose(form, formats.NAMES, "--as")
        from kgprobe.benchmarks.bear.frames import BearFrames
        from kgprobe.questions import benchmark, folder_of

        kind = screen.choose(questions, formats.KINDS, "--questions")
        bench, sources = benchmark(what), formats.sources(chosen, folder_of(what), license)
        sets = BearFrames(bench.items, bench.candidates, bench.prompts)
        content = formats.read(folder_of(what), kind, lambda: sets)
        name = bench.name + (f"_{kind}" if kind != formats.KINDS[0] else "")
        relations = relations_of(folder_of(what) / "relations.parquet")
        paper = origins.paper_of(folder_of(what))
        formats.write(chosen, name, content, sources, to, relations, paper)
        tree = [p.relative_to(to).as_posix() for p in to.rglob("*") if p.is_file()]
        if chosen == "lm-pub-quiz" and relations is not None:
            tree.append(f"../{INFO}")  # next to the folder, in which each file is a relation
        tree.sort()
        if as_json:
            screen.data({"folder": str(to), "as": chosen, "files": tree})
        else:
            screen.say(f"{to}: {len(tree)} files, {', '.join(tree[:6])}" + " ..." * (len(tree) > 6))


COMMANDS = (export,)
