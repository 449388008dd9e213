from pathlib import Path

from kgprobe import schema
from kgprobe.benchmarks.bear.exposed import facts
from kgprobe.job import job
from kgprobe.tables.answers import folders, judge, questions
from kgprobe.tables.bear import curves, exposures
from kgprobe.tables.report import chapter, draw
from kgprobe.tables.results import frame
from kgprobe.tables.views import write_all

with job(snakemake) as run:
    sheet, places = run.params.models, folders(run.input.questions)
    counted = {f"control-{Path(path).stem}": path for path in run.input.get("counted", [])}
    tops, answered, found = iter(run.input.get("top", [])), [], []
    for row, path in zip(run.params.exposed, run.input.get("exposed", []), strict=True):
        items, candidates, _ = questions(places[row["benchmark"]])
        if row["method"] == "cloze":
            ranks = schema.read(path, schema.RANKS)
            told = exposures.of_ranks(ranks, schema.read(next(tops), schema.TOPS))
        else:
            scores = schema.read(path, schema.SCORES)
            told = exposures.of_scores(judge(scores, items, candidates, where=path))
        seen = schema.read(counted[row["model"]], schema.EXPOSED)
        told = told.join(facts(items, candidates).select("item", "fact"), on="item").join(
            seen.select("fact", "targets", exposures="sentences"), on="fact"
        )
        answered.append(exposures.Answered(sheet[row["model"]]["kind"], row["method"], told))
    found += exposures.numbers(answered, run.params.area, run.params.seed)
    for row, path in zip(run.params.experiments, run.input.get("stepped", []), strict=True):
        items, candidates, _ = questions(places[row["benchmark"]])
        judged = judge(schema.read(path, schema.SCORES), items, candidates, where=path)
        asked = {name: row[name] for name in ("benchmark", "prompt", "method")}
        own = sheet[row["model"]]
        series = own["source"].rpartition("/")[2]
        found += exposures.of_steps(series, int(own["step"]), asked, judged)
    made = frame("bear", found)
    schema.write(made, schema.RESULTS, run.output.results, run.provenance(seed=run.params.seed))
    write_all(curves.views(made), made, run.output.texts)
    kinds = {f"control-exposed-{row['kind']}": row["kind"] for row in sheet.values()}
    kinds |= {row["source"].rpartition("/")[2]: row["kind"] for row in sheet.values()}
    drawn = curves.figures(made, kinds, run.params.area)
    for one in drawn:
        draw.save(one.figure, Path(run.output.chapter).parents[1] / "figures" / one.name)
    chapter.write(curves.chapter(made, drawn), run.output.chapter)
