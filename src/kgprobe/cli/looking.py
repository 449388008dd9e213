"""`kgprobe list` and `kgprobe show`: list models, benchmarks and runs, and show questions."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgprobe.cli import names, screen
from kgprobe.cli.asking import Json, Questions

if TYPE_CHECKING:
    from kgprobe.questions import Benchmark


def _models() -> list[dict[str, Any]]:
    columns = ("model", "kind", "parameters", "source")
    return [{column: row.get(column, "") for column in columns} for row in names.rows()]


def _benchmarks() -> list[dict[str, Any]]:
    from kgprobe.questions import benchmark, packaged

    return [_size(benchmark(name)) for name in packaged()]


def _size(bench: "Benchmark") -> dict[str, Any]:
    relations, templates = bench.items["relation"].n_unique(), bench.prompts["index"].n_unique()
    return {"benchmark": bench.name, "items": bench.items.height, "relations": relations,
            "templates": templates}  # fmt: skip


def _methods() -> list[dict[str, Any]]:
    from kgprobe.experiments import KINDS_OF_METHOD

    return [
        {"method": name, "kinds": ", ".join(kinds),
         "asked by": "kgprobe probe, run" if name == "sentence" else "kgprobe run"}
        for name, kinds in KINDS_OF_METHOD.items()
    ]  # fmt: skip


def _prompts() -> list[dict[str, Any]]:
    from kgprobe.questions import benchmark, packaged

    return [
        {"benchmark": name, "relation": relation, "prompt": index, "text": text}
        for name in packaged()
        for relation, index, text in benchmark(name).prompts.select(
            "relation", "index", "text"
        ).sort("relation", "index").rows()
    ]  # fmt: skip


def _runs() -> list[dict[str, Any]]:
    rows = []
    for folder in names.folders():
        tables = sorted(path.stem for path in folder.glob("tables/*.parquet"))
        page = folder / "report" / "index.html"
        rows.append({"run": folder.name, "tables": ", ".join(tables) or "unfinished",
                      "report": str(page) if page.is_file() else ""})  # fmt: skip
    return rows


KINDS = {"models": _models, "benchmarks": _benchmarks, "methods": _methods, "prompts": _prompts,
         "runs": _runs}  # fmt: skip


def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="models, benchmarks, methods, prompts or runs.",
            autocompletion=names.among(*KINDS),
        ),
    ],
    as_json: Json = False,
) -> None:
    """List models, benchmarks, runs and the like.

    Example: kgprobe list models
    """
    with screen.report_errors(as_json):
        rows = KINDS[screen.choose(what, list(KINDS), "list")]()
        if as_json:
            screen.data(rows)
        elif not rows:
            screen.say(
                "no run in results/ of this folder; start one with kgprobe probe or kgprobe run"
            )
        elif what != "runs":
            screen.table(rows)
        else:  # without paths, which a narrow screen would cut
            screen.table([{**row, "report": "yes" if row["report"] else "-"} for row in rows])
            if any(row["report"] for row in rows):
                screen.say("report: results/RUN/report/index.html")


def show(
    benchmark: Questions,
    item: Annotated[
        str,
        typer.Argument(help="One of its items, such as P36/Q414.", autocompletion=names.items),
    ] = "",
    as_json: Json = False,
) -> None:
    """Show a benchmark, or one of its questions.

    Example: kgprobe show world_lite
    """
    with screen.report_errors(as_json):
        from kgprobe.questions import benchmark as opened

        bench = opened(benchmark)
        if not item:
            size, rows = _size(bench), _relations(bench)
            if as_json:
                screen.data({**size, "by_relation": rows})
            else:
                screen.table([size])
                screen.table(rows)
            return
        question = _question(bench, item)
        if as_json:
            screen.data(question)
            return
        for key in ("item", "relation", "subject", "answers"):
            screen.say(f"{key}: {question[key]}")
        screen.say(f"options: {', '.join(question['options'])}")
        for text in question["sentences"]:
            screen.say(f"sentence: {text}")


def _relations(bench: "Benchmark") -> list[dict[str, Any]]:
    """Return a row for each relation: items, options, the first template and an example item."""
    sizes = dict(bench.candidates["set"].value_counts().rows())
    rows = []
    for (relation,), items in bench.items.sort("item").group_by("relation", maintain_order=True):
        texts = bench.prompts.filter(relation=relation).sort("index")["text"]
        first = texts[0] if len(texts) else ""
        rows.append({"relation": relation, "items": items.height,
                      "options": sizes[items["candidates"][0]], "example": items["item"][0],
                      "template": first})  # fmt: skip
    return sorted(rows, key=lambda row: str(row["relation"]))


def _question(bench: "Benchmark", item: str) -> dict[str, Any]:
    """Return one question: subject, options, gold answers, and the sentences with the first one."""
    from kgprobe.experiments import nearest
    from kgprobe.templates import fill

    rows = bench.items.filter(item=item).to_dicts()
    if not rows:
        near = nearest(item, bench.items["item"])
        raise ValueError(f"{bench.name} has no item {item!r}{near}; `kgprobe show {bench.name}` "
                         "lists one of each relation")  # fmt: skip
    row = rows[0]
    options = bench.candidates.filter(set=row["candidates"]).sort("index")["label"].to_list()
    right = [options[i] for i in row["answers"]]
    texts = bench.prompts.filter(relation=row["relation"]).sort("index")["text"]
    said = [fill(t, row["subject"], right[0]).text for t in texts]
    return {"item": item, "relation": row["relation"], "subject": row["subject"],
            "answers": ", ".join(right), "options": options, "sentences": said}  # fmt: skip


COMMANDS = (list_, show)
