"""The report: self-contained, escaped, sortable pages, deterministic for the same data."""

import dataclasses
import errno
import html
import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.knowledge.facts import by_number
from kgprobe.metrics.intervals import Interval
from kgprobe.tables.attributes import study as attribute_study
from kgprobe.tables.bear import figures, make
from kgprobe.tables.bear import section as bear_section
from kgprobe.tables.judged import frame as judged_frame
from kgprobe.tables.ontoprobe import make as ontoprobe
from kgprobe.tables.report import (
    about,
    blocks,
    draw,
    formats,
    grid,
    headline,
    marks,
    overview,
    pages,
    said,
    section,
    summary,
    validity,
)
from kgprobe.tables.report.section import Drawing, Section
from kgprobe.tables.results import Number, frame, plain
from kgprobe.tables.views import View
from kgprobe.tables.views import text as plain_text
from tests import browser
from tests.unit.study_frames import (
    benchmark,
    drawn,
    guesses,
    of_rows,
    probe,
    results,
    study,
    write_benchmark,
    write_onto_world,
)
from tests.unit.test_tables_draw import FRAMES, MODELS, PROBES, STUDY, found

ROOT = Path(__file__).parents[2]
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Parser that collects tags, ids, links and text, and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.text = [], [], [], []
        self.active = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values[k] for k in ("href", "src", "xlink:href") if values.get(k)]
        self.active += [k for k in values if k.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["script"]:
            self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    return reader


FUNNEL = of_rows(
    schema.FUNNEL,
    [
        ("world_lite", "P36", 0, "pulled", 10, 10, 9, 5),
        ("world_lite", "P36", 1, "overlap", 10, 7, 7, 5),
        ("world_lite", "P1", 0, "pulled", 4, 4, 4, 2),
        ("world_lite", "P1", 1, "overlap", 4, 4, 4, 2),
    ],
)
NAMES = {"P36": "capital of <b>"}
#: a row of the table of experiments
ROW = {"paper": "bear", "benchmark": "world_lite", "prompt": "templates", "method": "sentence",
       "model": "m"}  # fmt: skip


def bear(own, models=MODELS):
    """Return BEAR's section with every part but the example."""
    drawn = figures.size_plot(figures.sizes_of("world_lite", own), [12.5], own, models)
    made = draw.specification(drawn)
    shown = grid.of_rows("Size", own.filter(metric="accuracy", group="", slice=""))
    drawings = [Drawing("world_lite", "size", "Size", "Gray: published.", made, data=shown)]
    words = {"world_lite": "From the <embedded> world"}
    parts = bear_section.arranged(own, models, NAMES, words, drawings)
    parts.append(bear_section._construction({"world_lite": FUNNEL}, NAMES))
    return section.Section("bear", "BEAR", "Lead.", parts=parts, terms=bear_section.TERMS)


def paged(own, models=MODELS, **changed):
    """Return the report with BEAR's section only; one note of a model holds markup."""
    made = {} if "sections" in changed else {
        "sections": [part for part in (bear(own, models), validity.section(own, models)) if part]
    }  # fmt: skip
    return pages.Report(
        run="small",
        results=own,
        probed=models,
        config={"seed": 0, "sources": {"bear": {"folder": "a&b"}}},
        models=[{"model": m, "revision": "ab" * 20, "note": "<i>x</i>"} for m in models],
        experiments=[{**ROW, "model": m} for m in models],
        versions={"kgprobe": "0.1.0"},
        commands={"": "snakemake -- index.html", "bear": "snakemake -- bear.json"},
        **{"links": {"tables/bear.parquet": "x"}, **made, **changed},
    )


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return a benchmark's folder."""
    folder = tmp_path_factory.mktemp("asked") / "world_lite"
    write_benchmark(FRAMES, folder)
    return folder


@pytest.fixture(scope="module")
def full(asked):
    """Return the report with pages about the benchmark and its relations."""
    own, judged = found(), make.judged_answers([STUDY])
    made = paged(own)
    about_it = about.benchmarks(
        own, MODELS, made.experiments, judged, {"world_lite": asked}, NAMES, {"world_lite": "a set"}
    )
    return dataclasses.replace(made, benchmarks=list(about_it))


def texts(made):
    """Return the text of all pages of a report."""
    found = [text for name, text in pages.render(made).items() if name.endswith(".html")]
    return " ".join(" ".join(read(page).text) for page in found)


def resolved(folder, page):
    """Return (file, anchor) of every link of a page to a target inside the folder."""
    for link in read(page.read_text()).links:
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if target.is_relative_to(folder.resolve()):
            yield target, anchor


def test_the_same_data_give_the_same_bytes_in_pages_whose_links_resolve(full, tmp_path):
    folder = tmp_path / "report"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages/old.html").write_text("of an earlier report")
    (folder / "sections").mkdir()
    assert pages.write_report(folder, full) == folder / "index.html"
    made = pages.render(full)
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    assert {name: path.read_text() for name, path in files.items()} == made
    ids, count = {}, 0
    for name, path in files.items():
        if name.endswith(".html"):
            reader = read(path.read_text())
            assert not reader.open, name
            assert len(reader.ids) == len(set(reader.ids)), name
            ids[path] = set(reader.ids)
            away = r"@import|url\((?!#)|https?://(?!www.w3.org)"
            assert not re.search(away, path.read_text())
    for page in list(ids):
        for target, anchor in resolved(folder, page):
            count += 1
            assert target.is_file(), (page.name, target)
            assert not anchor or anchor in ids[target], (page.name, target.name, anchor)
    assert count > 200
    outside = {link for path in ids for link in read(path.read_text()).links if "../../" in link}
    assert outside == {"../../tables/bear.parquet"}
    names = {path.name for path in ids}
    assert names == {"index.html", "bear.html", "validity.html", "models.html",
                     "bear-questions.html", "methods.html"}  # fmt: skip
    menu = (folder / "index.html").read_text().partition("<nav")[2].partition("</nav>")[0]
    entries = re.findall(r">([^<>]+)</a>", menu)
    assert len(entries) == len(names) == len(set(entries)), entries


def test_a_full_disk_is_reported_with_the_page_and_the_remedy(full, tmp_path, monkeypatch):
    def write(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write)
    with pytest.raises(OSError, match=r"make room and run again.*\.pages\.part"):
        pages.write_report(tmp_path / "report", full)


def test_every_table_and_figure_has_its_n_its_data_and_its_command(full):
    made = pages.render(full)
    page = made["pages/bear.html"]
    count = page.count('class="block"')
    assert count > 8
    for sign in ('class="n">n =', ".csv", ".md", ".tex", "data-command="):
        assert page.count(sign) >= (count if sign != 'class="n">n =' else count - 2)
    assert 'data-command="snakemake -- bear.json"' in page
    table = made["pages/data/bear.world_lite-accuracy-by-model.csv"].splitlines()
    heads = table[0].split(",")
    assert [h.partition(" (")[2] for h in heads].count("n)") > 1
    (own,) = [line for line in table if "smol-nobos" in line]
    accuracy = found().filter(plain(), metric="accuracy", model="smol-nobos", group="")
    assert repr(accuracy["value"][0]) in own
    # figures need no script
    svg = re.search(r'<svg[^>]* role="img" aria-label="[^"]+">.*?</svg>', page, flags=re.DOTALL)[0]
    assert ">control-masked</text>" in svg
    assert "accuracy, %</text>" in svg
    assert "<script src=" not in page
    figure = made["pages/data/bear.world_lite-size.csv"]
    assert figure.startswith("model,") or "value" in figure.splitlines()[0]


def test_a_number_states_its_source(full):
    own = found()
    page = pages.render(full)["pages/bear.html"]
    row = own.filter(plain(), metric="accuracy", model="smol", group="", slice="")
    trace = grid.trace(row.row(0, named=True))
    assert trace.startswith(f"{row['value'][0]:.1f} -w paper=bear -w benchmark=world_lite")
    assert f'data-trace="{trace}"' in html.unescape(page)
    odd = {**row.row(0, named=True), "instead": "a b"}
    assert grid.trace(odd).endswith("-w 'instead=a b' --exact")


def claimed():
    """Return claims on a synthetic OntoProbe run with a case of each verdict, and their data."""
    from kgprobe.tables.claims import printed, verdicts

    of = Number(benchmark="onto_released", n=500)
    # the same models on the same data, the printed difference but for rounding
    chosen = of.but(method="choice", prompt="templates", metric="accuracy", source="Table 5")
    printed_choice = {
        "gpt-3.5-turbo": ("answer", (70.2, 83.6, 71.8, 86.7, 82.1)),
        "bert-base-uncased": ("stem", (42.6, 52.4, 38.5, 70.0, 82.1)),
    }
    made = [
        chosen.but(model=model, setting={"scoring": scoring}, group=task, published=value,
                   value=value + 0.04, interval=Interval(value - 4, value + 4, "wilson"))
        for model, (scoring, values) in printed_choice.items()
        for task, value in zip(("TP", "SCO", "SPO", "DM", "RG"), values, strict=True)
    ]  # fmt: skip
    for task, value, floor, n in (("TP", 60.0, 20.0, 500), ("SCO", 10.0, 40.0, 500),
                                  ("SPO", 90.0, 20.0, 10)):  # fmt: skip
        of = of.but(group=task, metric="R@1", n=n)
        own = of.but(prompt="templates", method="cloze", model="one")
        made.append(own.but(value=value, interval=Interval(value - 5, value + 5, "wilson"),
                            setting={"choice": "oracle"}))  # fmt: skip
        made.append(of.but(model="frequency", value=floor,
                           interval=Interval(floor, floor, "wilson"),
                           setting={"choice": "none"}))  # fmt: skip
    models = {
        "gpt-3.5-turbo": {"source": "api:x", "kind": "api"},
        "bert-base-uncased": {"source": "hub:x", "kind": "masked"},
        "one": {"source": "hub:x", "kind": "masked"},
    }
    folder = ROOT / "resources/published"
    claims = verdicts.read(folder / "claims.tsv")
    known = printed.read(folder, models)
    return verdicts.find(claims, frame("ontoprobe", made), models, known)


def test_the_page_of_a_paper_begins_with_its_claims_verdicts_and_rows(tmp_path):
    from kgprobe.tables.claims import verdicts
    from kgprobe.tables.claims.section import section as claims_section

    found_ = claimed()
    verdict_rows = verdicts.frame(found_)
    run = tmp_path / "results/small"
    verdicts.write_rows(found_, run / "tables/claim_rows")
    parts = [Section("ontoprobe", "OntoProbe", "Lead."), claims_section(verdict_rows)]
    pages.write_report(run / "report", paged(found(), sections=parts))
    text = (run / "report/pages/ontoprobe.html").read_text()
    heads = r'<tr>\s*(<th[^>]*data-sort="(O\d\d)".*?)</tr>'
    cells = {name: read(row) for row, name in re.findall(heads, text, re.DOTALL)}
    # the principal claims, those covered by this run first
    opening = verdict_rows.filter(pl.col("comparison") != "", paper="ontoprobe")["claim"].to_list()
    assert sorted(cells) == sorted(opening)
    spoken = [name for name in cells if any("claim_rows" in link for link in cells[name].links)]
    assert list(cells)[: len(spoken)] == spoken
    own = " ".join(" ".join(cells["O01"].text).split())
    assert own.endswith("9.4 holds; expected > 0 40 35 to 45 500 one same direction p < .001"), own
    # differences of few items are marked, literally counted
    small = [
        row["n"] for row in verdict_rows.drop_nulls("value").rows(named=True) if 0 < row["n"] < 20
    ]
    parts = [grid for part in claims_section(verdict_rows).parts for grid in part.grids]
    here = [row[2].text for made in parts for row in made.rows]
    assert sum(text.endswith(" †") for text in here) == len(small) > 0
    for name in spoken:
        (link,) = cells[name].links
        kept = (run / "report/pages" / link).resolve()
        assert kept == run / f"tables/claim_rows/{name}.tsv"
        behind = pl.read_csv(kept, separator="\t")
        mean = dict(behind.group_by("side").agg(pl.col("value").mean()).rows())
        row = verdict_rows.row(by_predicate=pl.col("claim") == name, named=True)
        if name in ("O01", "O65"):
            assert mean["a"] - mean["b"] == pytest.approx(row["value"])
        assert f'data-trace="{name}"' in text
    every = (run / "report/pages/claims.html").read_text()
    verdict = dict(verdict_rows.select("claim", "verdict").rows())
    told_of = {"O65": "reproduced", "O01": "same direction", "O05": "opposite", "O09": "undecided",
               "O16": "not tested here"}  # fmt: skip
    assert {name: verdict[name] for name in told_of} == told_of
    for name in told_of:
        (row,) = re.findall(rf'<tr>\s*<th[^>]*data-sort="{name}".*?</tr>', every, re.DOTALL)
        assert verdict[name] in row
    assert "it equals the printed value within" in every
    assert "n = 10, fewer than 20" in every
    # claims that no run can check state why, as do those that fail in print
    for claim in (one.claim for one in found_ if one.claim.untested):
        assert html.escape(claim.untested) in every, claim.claim
    failing = verdict_rows.filter(holds="no").height
    assert every.count("fails in print") == failing > 5
    index = (run / "report/index.html").read_text()
    assert "of 54 claims have numbers in this run: 1 reproduced" in index


def test_text_from_data_is_escaped(full):
    made = pages.render(full)
    html = "".join(made[name] for name in made if name.endswith(".html"))
    assert "<i>x</i>" not in html
    assert "&lt;i&gt;x&lt;/i&gt;" in html
    assert "capital of &lt;b&gt;" in html
    bad = dataclasses.replace(full, title='"><script>alert(1)</script>')
    assert "<script>alert" not in pages.render(bad)["index.html"]
    assert not read(html).active


def test_the_report_states_what_was_run_and_how_to_read_it(full):
    text = texts(full)
    for phrase in ("sources.bear.folder", "a&b", "abababababab", "0.1.0", "BOS forced"):
        assert phrase in text
    assert re.search(r"met by\s+2 of 2\s+control probes", text)
    assert "overlap (3)" in text
    assert "From the <embedded> world" in text


def test_the_first_page_counts_every_probe_and_has_every_model(full):
    own = found()
    assert overview.tiles(own, full.experiments)[1:4] == [
        ("1", "benchmark"), ("4", "models"), ("4", "probes")
    ]  # fmt: skip
    shown = overview.matrix(own, MODELS)
    models = [row[0].text for row in shown.rows]
    assert models == [
        "smol", "smol-nobos", "control-masked", "control-causal", "random", "majority",
    ]  # fmt: skip
    value = own.filter(plain(), metric="accuracy", model="smol", group="", slice="")["value"]
    assert shown.rows[0][1].sort == value[0]
    assert shown.rows[0][1].href == "bear-questions.html#benchmark-world_lite"


def test_a_mean_over_tasks_has_the_mark_of_a_task_that_fails_the_requirement():
    of = Number(benchmark="onto_world", model="control-masked", prompt="templates", method="cloze")
    made = [of.but(metric="R@1", group=task, n=40, value=value, setting={"choice": "fixed"})
            for task, value in (("TP", 95.0), ("SCO", 45.0))]  # fmt: skip
    made += [
        of.but(metric="valid", group="TP", value=1),
        of.but(metric="valid", group="SCO", value=0),
    ]
    shown = overview.matrix(frame("ontoprobe", made), MODELS)
    assert [cell.text for cell in shown.rows[0]] == ["control-masked", "70.0 (?)"]


def test_models_whose_names_differ_in_hyphens_have_sections_of_their_own():
    names = ("x-y", "x--y", "x-y-")
    models = dict.fromkeys(names, MODELS["smol"])
    own = pl.concat(found().filter(model="smol").with_columns(model=pl.lit(n)) for n in names)
    made = pages.render(paged(own, models, sections=[]))
    assert {f"model-{name}" for name in names} <= {*read(made["pages/models.html"]).ids}
    links = [link for link in read(made["index.html"]).links if "#model-" in link]
    assert {link.partition("#model-")[2] for link in links} == {*names}


def test_each_relation_has_its_own_anchor_whatever_its_id(asked, tmp_path):
    """Ids of user-supplied graphs: without URL characters, equal but for case, of any length."""
    names = ["首都", "東京", "Chef", "chef", *("r" * 300 + end for end in "ab")]
    items = pl.concat([FRAMES["items"]] * 2).head(len(names))
    items = items.with_columns(pl.Series(name, names) for name in ("item", "relation"))
    for file in asked.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "items.parquet").unlink()
    schema.write(items, schema.ITEMS, tmp_path / "items.parquet")
    judged = make.judged_answers([STUDY]).clear()
    numbers = [Number(metric="accuracy", benchmark="world_lite", group=name, model="m", n=30,
                      method="sentence", value=1.0) for name in names]  # fmt: skip
    own = frame("bear", numbers)
    page, *_ = about.benchmarks(own, MODELS, [ROW], judged, {"world_lite": tmp_path}, {}, {})
    shown = {b.title: b.anchor for _, blocks in pages.Page(page, "").blocks for b in blocks}
    cells = [cell for part in page.parts for table in part.tables for row in table.rows
             for cell in row if "#" in cell.href]  # fmt: skip
    places = {cell.text: cell.href.partition("#")[2] for cell in cells if cell.text in names}
    assert places == {name: shown[name] for name in names}
    assert len(set(places.values())) == len(names)
    assert max(map(len, places.values())) < 200


@pytest.mark.parametrize(
    ("above", "below", "shown"),
    [(0, 0, "0/0"), (1.23456, 8, "1.235/8"), (1234.56, 9999, "1235/9999"),
     (12345.5, 24690, "12,346/24,690")],
)  # fmt: skip
def test_the_fraction_below_a_number_has_no_exponent(above, below, shown):
    value = 100 * above / below if below else None
    of = Number(metric="value", n=30_000, value=value, numerator=above, denominator=below)
    (row,) = grid.of_view(View("x", "x", {}, ["model"]), frame("attributes", [of])).rows
    assert row[-1].small == shown
    # also in text
    assert plain_text(frame("attributes", [of]).row(0, named=True), 1).endswith(f" ({shown})")


def test_a_run_without_a_principal_number_has_no_matrix():
    """The metric is undefined for one example whose parts are all wrong."""
    undefined = Number(metric="value", benchmark="symmetry", model="smol", method="fill", n=2)
    rows = frame("attributes", [undefined.but(numerator=0.0, denominator=0.0)])
    empty = overview.matrix(rows, MODELS)
    assert empty.rows == []
    page = Section("index", "", "", grids=[empty, grid.records("none", [])])
    assert blocks.arranged(page, blocks.Room()) == []


def test_examples_show_the_first_answer_and_the_gold_rank(asked):
    items = FRAMES["items"].sort("relation", "row")
    sums = {"P36": [0.0, -1.0, -2.0], "P1": [0.0, -1.0]}
    asked_ = items.select("item", "relation").rows()
    answers = {(item, t): sums[relation] for item, relation in asked_ for t in range(3)}
    judged = make.judged_answers([study(FRAMES, [(probe("m"), answers)])])
    questions, model_answers = said.answered(asked, [ROW], judged)
    assert {q.relation for q in questions} == {"P36", "P1"}
    for one in questions:
        cell, place = model_answers["m"][one.item], "abc".index(one.right[0]) + 1
        assert cell.text == "a"
        assert f"right at {place} of" in cell.small
        assert cell.small.startswith("✓") == (one.right == ["a"])
    templates = said.first_templates(asked)
    (page,) = said.by_relation("world_lite", questions, model_answers, NAMES, templates)
    assert [made.title for made in page.grids] == ["P1", "capital of <b> (P36)"]
    assert page.grids[0].caption == "First template: [X] is [Y]."


@pytest.mark.parametrize(
    ("text", "place"),
    [("The ALPHA.", 1), ("Álpha", 1), ("beth", 2), ("Alef", 2), ("alphabet", None)],
)
def test_generated_answers_are_judged_by_the_rules_of_the_tables(asked, text, place):
    """Articles, stops, accents and aliases (if the run has them) count as in metrics/matching."""
    right = FRAMES["items"].filter(relation="P36").sort("row").row(0, named=True)
    texts = [text] if place == 1 or place is None else ["nothing", text]
    rows = [
        (right["item"], 0, 0, rank, -1, said_, -float(rank)) for rank, said_ in enumerate(texts, 1)
    ]
    fills = pl.DataFrame(
        rows, schema=["item", "template", "masks", "rank", "position", "text", "logprob"],
        orient="row",
    )  # fmt: skip
    bench = attribute_study.ProbedAttribute("world_lite", pl.DataFrame(), **FRAMES)
    alphas = attribute_study.of_texts(fills, {right["item"]: [["Alpha", "Beth", "alef"]]})
    who = probe("m", method="fill", kind="causal")
    judged = judged_frame("attributes", [(who, attribute_study.judge(who, alphas, bench))])
    _, answers = said.answered(asked, [{**ROW, "method": "fill"}], judged)
    small = answers["m"][right["item"]].small
    wanted = f"right at {place}" if place else f"right answer not among {len(texts)}"
    assert small.removeprefix("✓ ") == wanted


def test_a_page_that_quotes_questions_states_their_license(tmp_path):
    """Facts of Wikidata are CC0, the questions of the released BEAR are not."""
    leads, made_of = {}, study(FRAMES, [(probe("m"), guesses(FRAMES, 0.5, 1))])
    own, judged = results(made_of), make.judged_answers([made_of])
    for rule, origin in (("load_bear", ""), ("construct_bear", "wikidata"), ("build", "museum")):
        made = {"rule": rule, "wildcards": {"origin": origin}}
        schema.write(FRAMES["items"], schema.ITEMS, tmp_path / rule / "items.parquet", made)
        options, row = FRAMES["candidates"], {**ROW, "benchmark": rule}
        schema.write(options, schema.CANDIDATES, tmp_path / rule / "candidates.parquet")
        made, descriptions = {rule: tmp_path / rule}, {rule: "made here"}
        page, *_ = about.benchmarks(own, MODELS, [row], judged, made, {}, descriptions)
        leads[rule] = page.parts[0].lead
    assert leads == {
        "load_bear": "Made here. License of the questions: CC-BY-SA-4.0 (the released BEAR).",
        "construct_bear": "Made here. License of the questions: CC0-1.0 (Wikidata).",
        "build": "Made here. These questions have the license of the data that they were made "
        "from.",
    }


@pytest.mark.parametrize(
    ("published", "shown"), [(16.38, "[16.38]"), (14.5, "[14.5]"), (1234.25, "[1,234.25]")]
)
def test_a_published_number_is_shown_as_printed(published, shown):
    of = Number(metric="accuracy", benchmark="bear_released", model="m", n=100, value=16.4)
    made = frame("bear", [of.but(published=published, source="a table")])
    assert grid.measured(made.row(0, named=True), 1).text == f"16.4 {shown}"


def test_a_printed_count_has_no_decimals():
    of = Number(metric="items", n=8769, value=8769, published=8839.0, source="Table 1")
    (row,) = frame("ontoprobe", [of]).rows(named=True)
    assert grid.measured(row, 0).text == "8,769 [8,839]"


@pytest.fixture
def trained_on(tmp_path):
    return write_onto_world(tmp_path / "onto_world", (1, 1), (3, 3))


def test_choices_and_conclusions_are_shown_with_their_question(trained_on):
    row = {**ROW, "paper": "ontoprobe", "benchmark": "onto_world"}
    rows = [{**row, "method": "choice"}, {**row, "method": "reason"}]
    one, other = (probe("m", "onto_world", method=row["method"]) for row in rows)
    ranks, chosen = (trained_on / f"{name}.parquet" for name in ("ranks", "chosen"))
    study = ontoprobe.OntoProbeStudy({"onto_world": trained_on})
    files = {other: (ranks, "")}, {one: (trained_on / "choices.parquet", chosen)}
    judged = ontoprobe.judged_answers(study, {}, {}, *files)
    (asked_,), answers = said.answered(trained_on, rows, judged, said.CHOICE)
    assert (asked_.subject, asked_.right) == ("What is the type of Dante?", ["(c) writer"])
    cell = answers["m"]["TP-0"]
    assert (cell.text, cell.small) == ("answer: writer ✓", "letter: lake; text: “I am a poem”")
    (asked_,), answers = said.answered(trained_on, rows, judged, said.REASON)
    assert asked_.subject == "Poet is a writer . [X] is a poet . Therefore, [X] is a [MASK] ."
    cells = {head: (own["rdfs9-0"].text, own["rdfs9-0"].small) for head, own in answers.items()}
    assert cells == {
        "m, premises written": ("✓ right at 1 of 3", ""),
        "m, conclusion alone": ("right at 3 of 3", ""),
    }
    numbers = frame("ontoprobe", [Number(benchmark="onto_world", model="m", method="choice",
        prompt="templates", metric="accuracy", group="TP", n=1, value=100.0)])  # fmt: skip
    models = {"m": {"model": "m", "kind": "causal", "source": "x", "dtype": "", "bos": ""}}
    made = about.benchmarks(numbers, models, rows, judged, {"onto_world": trained_on}, {}, {})
    (page,) = made
    (first, *apart) = [part.name for part in page.parts]
    assert (page.name, first) == ("ontoprobe-questions", "benchmark-onto_world")
    assert {"relations-onto_world-choice", "relations-onto_world-reason"} <= set(apart)


def test_a_benchmark_without_reasoning_shows_no_rules(trained_on):
    nothing = schema.read(trained_on / "reasoning.parquet", schema.ITEMS).clear()
    empty = dataclasses.replace(schema.ITEMS, may_be_empty=True)
    schema.write(nothing, empty, trained_on / "reasoning.parquet")
    assert said.questions(trained_on, said.REASON) == []


def test_a_table_is_written_as_data():
    cells = [
        grid.Cell("a|b_c\n & d"),
        grid.Cell("12.5", "10 to 15", 12.5, n=7),
        grid.Cell("–", muted=True),
    ]
    made = grid.Grid("T_1", ["model", "P@1, %", "x"], [cells], frozenset({1, 2}), "Caption.")
    assert formats.csv(made).splitlines() == [
        'model,"P@1, %","P@1, % (small print)","P@1, % (n)",x', '"a|b_c', ' & d",12.5,10 to 15,7,'
    ]  # fmt: skip
    assert r"| a\|b_c & d | 12.5 (10 to 15) | – |" in formats.markdown(made)
    assert r"a\textbar{}b\_c \& d & 12.5 (10 to 15) & --" in formats.latex(made)


def test_markdown_and_latex_characters_in_a_table_are_escaped():
    cells = [[grid.Cell(text)] for text in (r"[X] \| <mask> *a* `b`", "*")]
    made = grid.Grid("T", ["prompt"], cells)
    assert r"| [X] \\\| \<mask> \*a\* \`b\` |" in formats.markdown(made).splitlines()
    # after \\ a [ begins its space, and a * is a part of it
    body = formats.latex(made).partition(r"\midrule")[2].splitlines()
    assert body[1] == (
        r"{[}X] \textbackslash{}\textbar{} \textless{}mask\textgreater{} {*}a{*} `b` \\"
    )
    assert body[2] == r"{*} \\"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("_x_", r"\_x\_"),
        ("__init__", r"\_\_init\_\_"),
        ("world_lite", "world_lite"),
        ("~~gone~~", r"\~\~gone\~\~"),
        ("[a](http://b)", r"\[a](http://b)"),
        ("[X] is [Y]", "[X] is [Y]"),
        ("AT&amp;T &#65; R&D", r"AT\&amp;T \&#65; R&D"),
    ],
)
def test_a_label_reads_in_markdown_as_it_is_written(text, written):
    made = grid.Grid(text, ["prompt"], [[grid.Cell(text)]], caption=f"First template: {text}")
    lines = formats.markdown(made).splitlines()
    assert (lines[0], lines[4]) == (f"**{written}**", f"| {written} |")
    assert lines[-1] == f"First template: {written}"


def test_counts_beyond_a_million_are_written_in_full():
    """With six digits, the data of a figure had n 1.23457e+06."""
    row = dict.fromkeys(schema.RESULTS.columns, "") | dict.fromkeys(schema.RESULTS.nullable)
    row |= {"metric": "accuracy", "model": "m", "value": 12.3456789, "n": 1_234_567}
    row |= {"numerator": 152_415.5, "denominator": 1_234_567.0}
    results = pl.DataFrame([row], schema=dict(schema.RESULTS.columns))
    made = grid.of_rows("T", results)
    assert formats.csv(made).splitlines() == ["value,value (n),n", "12.3456789,1234567,1234567"]
    assert plain_text(row, 1) == "12.3 (152,416/1,234,567)"


def test_a_missing_number_is_empty_in_csv():
    """The data of a figure had a dash where a number has no interval."""
    bounds = Interval(10.0, 30.0, "wilson")
    two = [Number(metric="R@1", value=20.0, n=30, interval=bounds), Number(metric="MRR", n=30)]
    made = grid.of_rows("T", frame("ontoprobe", two))
    assert formats.csv(made).splitlines() == [
        "metric,value,value (n),low,high,n", "R@1,20.0,30,10.0,30.0,30", "MRR,,30,,,30",
    ]  # fmt: skip


def test_the_first_table_precedes_figures_and_other_tables(tmp_path):
    first, long = (
        grid.Grid(name, ["a", "b"], [[grid.Cell("x"), grid.Cell("1 (?)")]] * 99)
        for name in ("First", "Long")
    )
    empty = grid.Grid("Empty", ["a"], [])
    figure = Drawing("made", "figure", "Figure", "Caption", {}, data=long)
    made = Section("made", "Made", "Lead.", grids=[empty, first, *[long] * 20],
                   drawings=[figure] * 9)  # fmt: skip
    section.write(made, tmp_path / "made.json")
    again = section.read(tmp_path / "made.json")
    assert any(note.startswith("(?)") for note in again.notes)
    shown = blocks.arranged(again, blocks.Room())
    assert [one.title for one in shown][:2] == ["First", "Figure"]
    assert not shown[0].is_folded
    assert shown[-1].is_folded


def test_missing_parts_leave_no_empty_section():
    own = results(STUDY)
    parts = bear_section.arranged(own, MODELS, {}, {})
    alone = section.Section("bear", "BEAR", "Lead.", parts=parts)
    assert validity.section(own, MODELS) is None
    empty = section.Section("measured", "Measured before", "Lead.")
    made = pages.render(paged(own, sections=[alone, empty], links={}))
    assert "measured.html" not in made["index.html"] + " ".join(made)
    assert 'id="world_lite"' in made["pages/bear.html"]
    assert "Construction" not in made["pages/bear.html"]
    assert "pages/validity.html" not in made
    assert 'validity.html"' not in "".join(made.values())
    assert "Files of the run" not in made["pages/methods.html"]


def attributes():
    """RESULTS of one model: one metric is defined, the other 0/0; with other aggregations."""
    setting = {"k": 1, "pooling": "best", "alpha": "exact", "gold": "own"}
    of = Number(metric="value", n=5, benchmark="symmetry", model="smol", method="fill",
                setting=setting)  # fmt: skip
    numbers = [
        of.but(value=50.0, numerator=1, denominator=2),
        of.but(benchmark="bias", numerator=0, denominator=0),
        of.but(value=1.0, setting={"k": 5}),
        of.but(value=1.0, model="BERT", method="published", n=0),
    ]
    return frame("attributes", numbers)


def test_a_report_without_bear_does_not_mention_it():
    other = section.Section("attributes", "Attributes", "Nine patterns.")
    text = texts(paged(attributes(), {"smol": MODELS["smol"]}, sections=[other]))
    text = text.partition("Cite the papers")[0]
    assert "Nine patterns." in text
    assert "undef" in text
    assert "BEAR" not in text
    for word in ("Chance and majority", "SEM", "items in"):
        assert word not in text


def test_a_mark_from_one_paper_s_answers_is_shown_at_all_numbers():
    sound = frame("autoprompt", [Number(metric="weights complete", model="smol", value=0, n=0)])
    alone = section.Section("bear", "BEAR", "Lead.")
    made = pages.render(paged(pl.concat([found(), sound]), sections=[alone]))
    first = made["pages/bear.html"].split("<main")[1].split("</table>")[0]
    # the probes and the two baselines
    assert first.split("<tbody>")[1].count("<tr>") == len(PROBES) + 2
    assert first.split("<tbody>")[1].count(marks.MARK) == 3  # accuracy, right under any and SEM
    for name in ("index.html", "pages/bear.html", "pages/models.html"):
        assert "no more likely than the same words shuffled" in made[name]


def test_a_failed_requirement_is_reported():
    html = pages.render(paged(found(trained_on=50.0)))["pages/validity.html"]
    text = " ".join(read(html).text)
    assert re.search(
        r"met by\s+1 of 2\s+control probes.* that fail the requirement .*"
        r"bear, sentence.* 1 of 2 .*world_lite, control-masked",
        text,
        re.DOTALL,
    )
    assert "not met" in text
    assert 'class="verdict bad"' in html


def test_an_unbalanced_sample_is_reported():
    frames = benchmark({"P1": (["a", "b"], ["a", "a", "a", "b"])})
    own = results(study(frames, [(probe("m"), guesses(frames, 0.5, 1))]))
    models = {"m": MODELS["smol"]}
    parts = bear_section.arranged(own, models, {}, {})
    made = section.Section("bear", "BEAR", "Lead.", parts=parts)
    html = pages.render(paged(own, models, sections=[made]))
    assert html["pages/bear.html"].count("The items scored here are not balanced") == 1


def test_a_probe_without_numbers_is_an_error(full):
    with pytest.raises(ValueError, match=r"no accuracy of \['stranger"):
        bear_section.arranged(found(), {**MODELS, "stranger": MODELS["smol"]}, {}, {})
    with pytest.raises(ValueError, match="at least one probe"):
        pages.render(dataclasses.replace(full, experiments=[]))


@pytest.mark.parametrize("mark", [
    {"type": "image", "url": "http://example.org/x.png"}, {"type": "text", "href": "x.html"},
])  # fmt: skip
def test_only_plain_svg_is_accepted(mark):
    chart = {"data": {"values": [{"a": 1}]}, "mark": mark, "encoding": {"x": {"field": "a"}}}
    with pytest.raises(ValueError, match="no plain SVG"):
        pages.inline(Drawing("p", "n", "t", "c", chart))


def test_a_label_may_hold_words_forbidden_in_tags():
    label = 'JavaScript: phase one = url(x) @import href="y"'
    chart = {
        "data": {"values": [{"a": label}]},
        "mark": "bar",
        "encoding": {"y": {"field": "a", "type": "nominal", "axis": {"labelLimit": 0}}},
    }
    assert label in html.unescape(pages.inline(Drawing("p", "n", "t", "c", chart)))


def test_inlined_figures_use_the_theme_and_have_separate_ids():
    chart = {"data": {"values": [{"a": "</script><b>"}]},
             "mark": {"type": "bar", "color": draw.INK, "clip": True},
             "encoding": {"x": {"field": "a", "type": "nominal"}}}  # fmt: skip
    text = pages.inline(Drawing("p", "fig 1", "t", "A <b>", chart))
    assert "var(--ink)" in text
    assert draw.INK not in text
    (own,) = re.findall(r'\bid="([^"]*)"', text)
    assert own.startswith("fig-1-")
    assert f"url(#{own})" in text
    assert "width=" not in text.split(">")[0]
    assert 'aria-label="A &lt;b&gt;"' in text
    assert "&lt;/script&gt;&lt;b&gt;" in text


def test_headline_prints_an_aligned_table_and_the_path_of_the_report(tmp_path, capsys):
    schema.write(found(trained_on=40.0), schema.RESULTS, tmp_path / "bear.parquet")
    assert summary.main([str(tmp_path), "results/index.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "world_lite: 5 items; accuracy in % with its 95 % interval"
    rows = lines[2 : 3 + len(PROBES) + 2]
    assert {row.split()[0] for row in rows} == {"model", *MODELS, "random", "majority"}
    (outside,) = [row for row in rows if row.startswith("control-masked")]
    assert "40.0 † (?)" in outside
    assert not any("(?)" in row for row in rows if not row.startswith("control-masked"))
    assert lines[-1] == "report: results/index.html"
    assert summary.main([str(tmp_path / "none.parquet")]) == 1
    assert "no such file" in capsys.readouterr().err
    assert summary.main([]) == 2


def test_headlines_of_other_papers_follow_bear_s():
    onto = Number(metric="R@1", n=10, benchmark="onto_world", group="TP", model="m", method="cloze")
    prompt = Number(metric="P@1", n=10, benchmark="auto_world", model="m", method="predict")
    ways = {"chosen": 60.0, "fixed": 50.0, "oracle": 99.0}
    rows = [
        *(onto.but(value=v, setting={"choice": c}) for c, v in ways.items()),
        # without dev rows nothing is selected
        onto.but(value=40.0, benchmark="onto_world_lite", setting={"choice": "fixed"}),
        onto.but(metric="MRR", value=71.0, setting={"choice": "chosen"}),
        onto.but(metric="accuracy", method="choice", value=25.0, setting={"scoring": "letter"}),
    ]
    own = pl.concat([
        found(), frame("ontoprobe", rows), attributes(),
        frame("autoprompt", [prompt.but(value=30.0), prompt.but(metric="MRR", value=35.0)]),
    ])  # fmt: skip
    text = headline.text(own)
    first, *_ = headline.text(found()).partition("\n\nSEM: ")
    assert text.startswith(f"{first}\n\nonto_world: ")
    assert text.count("SEM: standard error over the templates, in points.") == 1
    assert text.count("correct in all: items right under every template, in %.") == 1
    for shown in ("60.0", "40.0", "25.0", "50.0 (1/2)", "undef (0/0)", "30.0"):
        assert shown in text, shown
    for hidden in ("50.0\n", "99.0", "71.0", "35.0"):
        assert hidden not in text, hidden


@pytest.fixture(scope="module")
def folder(full, tmp_path_factory):
    """Return the folder of the pages on disk."""
    made = tmp_path_factory.mktemp("browser") / "report"
    pages.write_report(made, full)
    return made


@pytest.mark.nightly(needs="Chromium")
@pytest.mark.skipif(not browser.is_there(), reason=browser.NEEDED)
def test_pages_are_short_fit_the_screen_and_are_accessible(folder, tmp_path):
    for options in ((), browser.DARK):
        found, console = browser.all_pages(folder, tmp_path / "profile", *options)
        assert len(found) == 2 * len(list(folder.rglob("*.html"))) > 10
        assert browser.faults(found) == []
        assert console == []


@pytest.mark.skipif(not browser.is_there(), reason=browser.NEEDED)
def test_tables_sort_and_filter_and_a_number_shows_its_source(folder, tmp_path):
    presses = """<script>
      const block = document.querySelector("#models-by-benchmarks"), out = [];
      const table = block.querySelector("table");
      const column = (i) => [...table.tBodies[0].rows].map((r) => r.cells[i].dataset.sort);
      const press = (i) => table.tHead.rows[0].cells[i].querySelector("button").click();
      press(1); out.push(column(1).join(" "), table.tHead.rows[0].cells[1].ariaSort);
      press(1); out.push(column(1).join(" "), table.tHead.rows[0].cells[1].ariaSort);
      press(0); out.push(column(0).join(" "));
      const input = block.querySelector("input");
      input.value = "CONTROL masked"; input.dispatchEvent(new Event("input"));
      const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden);
      out.push(shown.map((row) => row.cells[0].firstChild.textContent).join(" "));
      out.push(block.querySelector("[role=status]").textContent);
      shown[0].cells[1].click();
      out.push(document.querySelector("#trace code").textContent);
      input.value = ""; input.dispatchEvent(new Event("input"));
      const cell = table.querySelector("[tabindex='0']");
      cell.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
      out.push(document.activeElement === cell.parentElement.nextElementSibling.cells[1]);
      document.title = out.join("|");
    </script></body>"""
    page = folder / "pressed.html"
    page.write_text((folder / "index.html").read_text().replace("</body>", presses))
    dom, console = browser.dumped(page, tmp_path / "profile")
    page.unlink()
    assert console == []
    title = re.search(r"<title>(.*?)</title>", dom)[1].split("|")
    down, first, up, second, names, left, counted, trace, is_below = title
    values = [float(value) for value in down.split()]
    assert values == sorted(values, reverse=True)
    assert up.split() == sorted(up.split(), key=float)
    assert (first, second) == ("descending", "ascending")
    assert names.split() == sorted(names.split())
    assert left == "control-masked"
    assert counted == "1 of 6 rows"
    assert re.fullmatch(r"kgprobe trace [\d.]+ -w paper=bear .* --run small", trace)
    assert is_below == "true"


def test_the_overview_has_all_principal_numbers_without_controls():
    made = overview.picture(found())
    own = found().filter(plain(), metric="accuracy", group="", slice="")
    own = own.filter(pl.col("model").str.starts_with("smol"))
    shown = drawn(made.chart)
    points = {(row["model"], row["value"], row["n"]) for row in shown}
    assert points == set(own.select("model", "value", "n").rows())
    assert len(shown) == len(made.data.rows) == own.height > 1
    assert made.chart["config"]["font"] == draw.CONFIG["font"]
    assert overview.picture(found().filter(model="random")) is None


def test_a_table_names_the_model_even_if_there_is_only_one():
    own = {"metric": "accuracy", "benchmark": "b", "model": "m", "prompt": "p", "n": 9}
    numbers = [Number(method=name, value=50.0, **own) for name in ("soft", "cloze")]
    view = View("v", "Title", {"metric": ["accuracy"]}, rows=["benchmark", "model", "method"])
    made = grid.of_view(view, frame("bear", numbers))
    assert made.heads == ["model", "method", "accuracy"]
    assert [[cell.text for cell in row[:2]] for row in made.rows] == [["m", "soft"], ["m", "cloze"]]
    nobody = [Number(metric="accuracy", benchmark=b, value=1.0, n=9) for b in ("b", "c")]
    assert grid.of_view(view, frame("bear", nobody)).heads == ["benchmark", "accuracy"]


def test_relations_with_digits_that_are_no_numbers_are_sorted():
    """In Python, a superscript is a digit, but int() cannot read it."""
    assert sorted(["P²", "m²", "P10", "P9"], key=grid.property_order) == ["P9", "P10", "P²", "m²"]
    assert sorted(["m²", "P2", "P10"], key=by_number) == ["m²", "P2", "P10"]
