"""The report: pages that need nothing else, escaped, sortable, the same for the same data."""

import dataclasses
import html
import re
from html.parser import HTMLParser

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.metrics.intervals import Interval
from kgprobe.tables.bear import chapter as bear_chapter
from kgprobe.tables.bear import figures
from kgprobe.tables.report import (
    about,
    blocks,
    calibration,
    chapter,
    draw,
    explore,
    findings,
    formats,
    grid,
    headline,
    marks,
    overview,
    pages,
    said,
)
from kgprobe.tables.report.chapter import Chapter, Drawing
from kgprobe.tables.results import Number, frame
from kgprobe.tables.views import View
from tests import browser
from tests.unit.study_frames import benchmark, guesses, probe, results, scores, study
from tests.unit.test_tables_draw import FRAMES, PROBES, SHEET, STUDY, found

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Collects tags, ids, links and text, and checks that tags close in order."""

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


FUNNEL = pl.DataFrame(
    [
        ("world_lite", "P36", 0, "pulled", 10, 10, 9, 5),
        ("world_lite", "P36", 1, "overlap", 10, 7, 7, 5),
        ("world_lite", "P1", 0, "pulled", 4, 4, 4, 2),
        ("world_lite", "P1", 1, "overlap", 4, 4, 4, 2),
    ],
    schema=dict(schema.FUNNEL.columns),
    orient="row",
)
NAMES = {"P36": "capital of <b>"}


def bear(own, sheet=SHEET):
    """BEAR's chapter with every part but the example."""
    svg = draw.svg(figures.size_plot(figures.points_of("world_lite", own, sheet)[0], 12.5), "size")
    shown = grid.of_rows("Size", own.filter(metric="accuracy", group="", slice=""))
    drawings = [
        Drawing("world_lite", "size", "Size", "Grey: published.", svg, data=shown),
        Drawing("calibration", "cal", "Calibration", "As drawn.", svg, data=shown),
    ]
    parts = bear_chapter.arranged(
        own, sheet, NAMES, {"world_lite": "From the <embedded> world"}, drawings
    )
    parts.append(bear_chapter._construction({"world_lite": FUNNEL}, NAMES))
    return chapter.Chapter("bear", "BEAR", "Lead.", parts=parts, terms=bear_chapter.TERMS)


def paged(own, sheet=SHEET, **changed):
    """The report with BEAR's chapter alone; one note of a model holds markup."""
    made = {} if "chapters" in changed else {
        "chapters": [part for part in (bear(own, sheet), calibration.chapter(own, sheet)) if part]
    }  # fmt: skip
    return pages.Report(
        run="small",
        results=own,
        sheet=sheet,
        config={"seed": 0, "sources": {"bear": {"folder": "a&b"}}},
        models=[{"model": m, "revision": "ab" * 20, "note": "<i>x</i>"} for m in sheet],
        experiments=[
            {
                "paper": "bear",
                "benchmark": "world_lite",
                "prompt": "templates",
                "method": "sentence",
                "model": m,
            }
            for m in sheet
        ],
        versions={"kgprobe": "0.1.0"},
        commands={"": "snakemake -- index.html", "bear": "snakemake -- bear.json"},
        **{
            "links": [pages.Link("tables/bear.parquet", "x")],
            **made,
            **changed,
        },
    )


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A benchmark's folder and the SCORES of every model of the sheet."""
    folder = tmp_path_factory.mktemp("asked") / "world_lite"
    contracts = {"items": schema.ITEMS, "candidates": schema.CANDIDATES, "prompts": schema.PROMPTS}
    for name, rows in FRAMES.items():
        schema.write(rows, contracts[name], folder / f"{name}.parquet")
    paths = []
    for seed, model in enumerate(SHEET):
        paths.append(folder.parent / f"{model}.parquet")
        schema.write(scores(guesses(FRAMES, 0.5, seed)), schema.SCORES, paths[-1])
    return folder, paths


@pytest.fixture(scope="module")
def full(asked):
    """The report with pages about the benchmark and its relations."""
    own, (folder, paths) = found(), asked
    made = paged(own)
    about_it = about.benchmarks(
        own, SHEET, made.experiments, paths, {"world_lite": folder}, NAMES, {"world_lite": "a set"}
    )
    return dataclasses.replace(made, benchmarks=list(about_it))


def texts(made):
    """The text of all pages of a report."""
    found = [text for name, text in pages.render(made).items() if name.endswith(".html")]
    return " ".join(" ".join(read(page).text) for page in found)


def resolved(folder, page):
    """(file, anchor) of every link of a page that leads to a place inside the folder."""
    for link in read(page.read_text()).links:
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if target.is_relative_to(folder.resolve()):
            yield target, anchor


def test_the_same_data_give_the_same_bytes_in_pages_whose_links_resolve(full, tmp_path):
    folder = tmp_path / "report"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages/old.html").write_text("of an earlier report")
    (folder / "chapters").mkdir()
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
            # the runtime of the chart names places that it does not go to
            if path.name != "explore.html":
                away = r"@import|url\((?!#)|https?://(?!www.w3.org)"
                assert not re.search(away, path.read_text())
    for page in list(ids):
        for target, anchor in resolved(folder, page):
            count += 1
            assert target.is_file(), (page.name, target)
            assert not anchor or anchor in ids[target], (page.name, target.name, anchor)
    assert count > 300
    outside = {link for path in ids for link in read(path.read_text()).links if "../../" in link}
    assert outside == {"../../tables/bear.parquet"}
    names = {path.name for path in ids}
    assert names >= {"index.html", "bear.html", "bear-world_lite.html", "calibration.html",
                     "model-smol.html", "benchmark-world_lite.html", "relations-world_lite.html",
                     "methods.html", "files.html"}  # fmt: skip


def test_every_table_and_figure_has_its_n_its_data_and_its_command(full):
    made = pages.render(full)
    page = made["pages/bear-world_lite.html"]
    count = page.count('class="block"')
    assert count > 8
    for sign in ('class="n">n =', ".csv", ".md", ".tex", "data-command="):
        assert page.count(sign) >= (count if sign != 'class="n">n =' else count - 2)
    assert 'data-command="snakemake -- bear.json"' in page
    table = made["pages/data/bear-world_lite.accuracy-by-model.csv"].splitlines()
    heads = table[0].split(",")
    assert [h.partition(" (")[2] for h in heads].count("n)") > 1
    (own,) = [line for line in table if "smol-nobos" in line]
    accuracy = found().filter(metric="accuracy", model="smol-nobos", group="", setting="{}")
    assert repr(accuracy["value"][0]) in own
    figure = made["pages/data/bear-world_lite.size.csv"]
    assert figure.startswith("model,") or "value" in figure.splitlines()[0]


def test_a_number_says_how_it_is_traced(full):
    own = found()
    page = pages.render(full)["pages/bear.html"]
    row = own.filter(metric="accuracy", model="smol", group="", slice="", setting="{}")
    told = grid.trace(row.row(0, named=True))
    assert told.startswith(f"{row['value'][0]:.1f} -w paper=bear -w benchmark=world_lite")
    assert f'data-trace="{told}"' in html.unescape(page)
    odd = {**row.row(0, named=True), "setting": '{"instead": "a b"}'}
    assert grid.trace(odd).endswith("""-w 'setting={"instead": "a b"}'""")


def test_text_from_data_is_escaped(full):
    made = pages.render(full)
    # not the runtime of the chart, which takes seconds to read
    html = "".join(made[name] for name in made if name.endswith(".html") and "explore" not in name)
    assert "<i>x</i>" not in html
    assert "&lt;i&gt;x&lt;/i&gt;" in html
    assert "capital of &lt;b&gt;" in html
    bad = dataclasses.replace(full, title='"><script>alert(1)</script>')
    assert "<script>alert" not in pages.render(bad)["index.html"]
    assert not read(html).active


def test_it_says_what_was_run_and_how_to_read_it(full):
    text = texts(full)
    for phrase in ("sources.bear.folder", "a&b", "abababababab", "0.1.0", "BOS forced"):
        assert phrase in text
    for title in ("Models by benchmarks", "Calibration", "Construction", "How to read", "Cite"):
        assert title in text
    assert "They are controls and nothing else" in text
    assert re.search(r"met by\s+2 of 2\s+control probes", text)
    assert "overlap (3)" in text
    assert "From the <embedded> world" in text


def test_the_first_page_counts_every_probe_and_has_every_model(full):
    own = found()
    assert overview.tiles(own, full.experiments)[1:4] == [
        ("1", "benchmark"), ("4", "models"), ("4", "probes")
    ]  # fmt: skip
    shown = overview.matrix(own, SHEET)
    models = [row[0].text for row in shown.rows]
    assert models == [
        "smol",
        "smol-nobos",
        "control-masked",
        "control-causal",
        "random",
        "majority",
    ]
    value = own.filter(metric="accuracy", model="smol", group="", slice="", setting="{}")["value"]
    assert shown.rows[0][1].sort == value[0]
    assert shown.rows[0][1].href == "benchmark-world_lite.html"
    (paper,) = overview.calibrated(own).rows
    assert [cell.text for cell in paper[:4]] == ["bear", "2", "2", "95.0"]


def test_a_run_without_a_principal_number_has_no_matrix():
    """One example whose parts are all wrong: the metric is not defined."""
    undefined = Number(metric="value", benchmark="symmetry", model="smol", method="fill", n=2)
    rows = frame("attributes", [undefined.but(numerator=0.0, denominator=0.0)])
    empty = overview.matrix(rows, SHEET)
    assert empty.rows == []
    page = Chapter("index", "", "", grids=[empty, grid.records("none", [])])
    assert blocks.arranged(page, blocks.Room()) == []
    assert overview.calibrated(rows).rows == []


def test_findings_are_differences_whose_interval_excludes_nothing():
    of = Number(metric="accuracy", benchmark="b", model="m", prompt="templates", n=9)
    apart = {"interval": Interval(-30.0, -10.0, "paired bootstrap"), "value": -20.0}
    rows = [
        of.but(**apart, setting={"instead": "x"}),
        of.but(metric="p after Holm", value=0.01, setting={"instead": "x"}),
        # not so clear after all, or in a part of the benchmark alone
        of.but(**apart, setting={"instead": "y"}),
        of.but(metric="p after Holm", value=0.2, setting={"instead": "y"}),
        of.but(**apart, slice="rare", setting={"instead": "x"}),
        of.but(value=-5.0, interval=Interval(-11.0, 1.0, "paired bootstrap"), benchmark="c",
               setting={"instead": "x"}),
        # a floor is another kind of comparison
        of.but(value=8.0, interval=Interval(2.0, 9.0, "paired bootstrap"),
               setting={"instead": "without the subject"}),
    ]  # fmt: skip
    told = [one.text for one in findings.findings(frame("bear", rows))]
    assert told == [
        "b, m: accuracy is 20.0 points lower than x (-30.0 to -10.0, n = 9).",
        "b, m: accuracy is 8.0 points higher than without the subject (2.0 to 9.0, n = 9).",
    ]


def test_examples_say_what_was_first_and_where_the_right_answer_stood(asked, tmp_path):
    folder, _ = asked
    items = FRAMES["items"].sort("relation", "row")
    sums = {"P36": [0.0, -1.0, -2.0], "P1": [0.0, -1.0]}
    asked_ = items.select("item", "relation").rows()
    answers = {(item, t): sums[relation] for item, relation in asked_ for t in range(3)}
    schema.write(scores(answers), schema.SCORES, tmp_path / "m.parquet")
    row = {"benchmark": "world_lite", "prompt": "templates", "method": "sentence", "model": "m"}
    questions, told = said.answered(folder, [row], [tmp_path / "m.parquet"])
    assert {q.relation for q in questions} == {"P36", "P1"}
    for one in questions:
        cell, place = told["m"][one.item], one.answers[0] + 1
        assert cell.text == "a"
        assert f"right at {place} of" in cell.small
        assert cell.small.startswith("✓") == (one.right == ["a"])
    (page,) = said.by_relation("world_lite", questions, told, NAMES, said.wordings(folder))
    assert [made.title for made in page.grids] == ["P1", "capital of <b> (P36)"]
    assert page.grids[0].caption == "First template: [X] is [Y]."


def test_a_table_is_written_as_data_and_cut_where_it_is_too_wide():
    cells = [
        grid.Cell("a|b_c & d"),
        grid.Cell("12.5", "10 to 15", 12.5, n=7),
        grid.Cell("–", muted=True),
    ]
    made = grid.Grid("T_1", ["model", "P@1, %", "x"], [cells], frozenset({1, 2}), "Caption.")
    assert formats.csv(made).splitlines() == [
        'model,"P@1, %","P@1, % (small print)","P@1, % (n)",x', "a|b_c & d,12.5,10 to 15,7,"
    ]  # fmt: skip
    assert r"| a\|b_c & d | 12.5 (10 to 15) | – |" in formats.markdown(made)
    assert r"a|b\_c \& d & 12.5 (10 to 15) & --" in formats.latex(made)
    wide = grid.Grid("w", [f"column{i}" for i in range(40)], [[grid.Cell("1234567")] * 40],
                     frozenset(range(1, 40)))  # fmt: skip
    parts = list(blocks.cut(wide))
    assert len(parts) > 2
    assert all(part.heads[0] == "column0" and len(part.heads) < 20 for part in parts)
    assert sum(len(part.heads) - 1 for part in parts) == 39
    assert [part.heads for part in blocks.cut(made)] == [list(made.heads)]


def test_parts_that_do_not_exist_leave_no_empty_chapter():
    own = results(STUDY)
    parts = bear_chapter.arranged(own, SHEET, {}, {})
    alone = chapter.Chapter("bear", "BEAR", "Lead.", parts=parts)
    assert calibration.chapter(own, SHEET) is None
    made = pages.render(paged(own, chapters=[alone], links=()))
    assert "pages/bear-world_lite.html" in made
    for name in ("calibration", "bear-calibration", "bear-construction", "files"):
        assert f"pages/{name}.html" not in made
        assert f'{name}.html"' not in "".join(made.values())


def attributes():
    """RESULTS of one model: one metric is defined, the other 0/0; other readings beside."""
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


def test_a_report_without_bear_has_no_word_of_it():
    other = chapter.Chapter("attributes", "Attributes", "Nine patterns.")
    text = texts(paged(attributes(), {"smol": SHEET["smol"]}, chapters=[other]))
    text = text.partition("Cite the papers")[0]
    assert "Nine patterns." in text
    assert "undef" in text
    assert "BEAR" not in text
    for word in ("Chance and majority", "SEM", "items in"):
        assert word not in text


def test_a_mark_that_one_paper_s_answers_alone_told_of_stands_at_the_numbers_everywhere():
    sound = frame("autoprompt", [Number(metric="sound", model="smol", value=0, n=0)])
    alone = chapter.Chapter("bear", "BEAR", "Lead.")
    made = pages.render(paged(pl.concat([found(), sound]), chapters=[alone]))
    first = made["pages/bear.html"].split("<main")[1].split("</table>")[0]
    # the probes and the two baselines
    assert first.split("<tbody>")[1].count("<tr>") == len(PROBES) + 2
    assert first.split("<tbody>")[1].count(marks.MARK) == 3  # accuracy, right under any and SEM
    for name in ("index.html", "pages/bear.html", "pages/model-smol.html"):
        assert "no likelier than the same words shuffled" in made[name]


def test_a_failed_requirement_is_named():
    made = pages.render(paged(found(taught=50.0)))
    html = made["pages/calibration.html"]
    text = " ".join(read(html).text)
    assert re.search(
        r"met by\s+1 of 2\s+control probes\s*; not by bear, world_lite, control-masked", text
    )
    assert "not met" in text
    assert 'class="verdict bad"' in html


def test_an_unbalanced_sample_is_called_one():
    frames = benchmark({"P1": (["a", "b"], ["a", "a", "a", "b"])})
    own = results(study(frames, [(probe("m"), guesses(frames, 0.5, 1))]))
    sheet = {"m": SHEET["smol"]}
    parts = bear_chapter.arranged(own, sheet, {}, {})
    made = chapter.Chapter("bear", "BEAR", "Lead.", parts=parts)
    html = pages.render(paged(own, sheet, chapters=[made]))
    # beside the headline and beside the benchmark's own numbers
    for name in ("bear", "bear-world_lite"):
        assert html[f"pages/{name}.html"].count("The items scored here are not balanced") == 1


def test_a_probe_without_numbers_is_an_error(full):
    with pytest.raises(ValueError, match=r"no accuracy of \['stranger"):
        bear_chapter.arranged(found(), {**SHEET, "stranger": SHEET["smol"]}, {}, {})
    with pytest.raises(ValueError, match="at least one probe"):
        pages.render(dataclasses.replace(full, experiments=[]))


def test_a_chapter_is_read_as_it_was_written(tmp_path):
    chapter.write(bear(found()), tmp_path / "bear.json")
    again = chapter.read(tmp_path / "bear.json")
    assert [part.name for part in again.parts] == [
        "bear-calibration",
        "world_lite",
        "construction",
    ]
    chapter.write(again, tmp_path / "again.json")
    assert chapter.read(tmp_path / "again.json").parts == again.parts


@pytest.mark.parametrize(
    "svg",
    [
        "<html></html>",
        "<svg><script>x</script></svg>",
        '<svg onload="x"></svg>',
        '<svg><image href="http://example.org/x.png"/></svg>',
        "<svg><foreignObject></foreignObject></svg>",
    ],
)
def test_only_plain_svg_goes_in(svg):
    with pytest.raises(ValueError, match="no plain SVG"):
        pages.inline(Drawing("p", "n", "t", "c", svg))


def test_inlined_figures_take_the_theme_and_keep_their_ids_apart():
    svg = f'<?xml?>\n<svg width="9pt" viewBox="0 0 9 9"><path id="a" style="fill: {draw.INK}"/>'
    svg += '<use xlink:href="#a" clip-path="url(#a)"/></svg>'
    text = pages.inline(Drawing("p", "fig 1", "A <b>", "c", svg))
    assert "var(--ink)" in text
    assert 'id="fig-1-a"' in text
    assert 'href="#fig-1-a"' in text
    assert "url(#fig-1-a)" in text
    assert "width=" not in text
    assert 'aria-label="A &lt;b&gt;"' in text


def test_headline_prints_an_aligned_table_and_the_path_of_the_report(tmp_path, capsys):
    schema.write(found(taught=40.0), schema.RESULTS, tmp_path / "bear.parquet")
    assert headline.main([str(tmp_path), "results/index.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "world_lite: 5 items; accuracy in % with its 95 % interval"
    rows = lines[2 : 3 + len(PROBES) + 2]
    assert {row.split()[0] for row in rows} == {"model", *SHEET, "random", "majority"}
    (outside,) = [row for row in rows if row.startswith("control-masked")]
    assert "40.0 (?)" in outside
    assert not any("(?)" in row for row in rows if not row.startswith("control-masked"))
    assert lines[-1] == "report: results/index.html"
    assert headline.main([str(tmp_path / "none.parquet")]) == 1
    assert "no such file" in capsys.readouterr().err
    assert headline.main([]) == 2


def test_headline_of_every_paper_stands_below_bear_s():
    onto = Number(metric="R@1", n=10, benchmark="onto_world", group="TP", model="m", method="cloze")
    prompt = Number(metric="P@1", n=10, benchmark="auto_world", model="m", method="predict")
    ways = {"chosen": 60.0, "fixed": 50.0, "oracle": 99.0}
    rows = [
        *(onto.but(value=v, setting={"choice": c}) for c, v in ways.items()),
        # without dev rows nothing is chosen
        onto.but(value=40.0, benchmark="onto_world_lite", setting={"choice": "fixed"}),
        onto.but(metric="MRR", value=71.0, setting={"choice": "chosen"}),
        onto.but(metric="accuracy", method="choice", value=25.0, setting={"way": "letter"}),
    ]
    own = pl.concat(
        [
            found(),
            frame("ontoprobe", rows),
            attributes(),
            frame("autoprompt", [prompt.but(value=30.0), prompt.but(metric="MRR", value=35.0)]),
        ]
    )
    text = headline.text(own)
    assert text.startswith(headline.text(found()).rstrip("\n"))
    for shown in ("60.0", "40.0", "25.0", "50.0 (1/2)", "undef (0/0)", "30.0"):
        assert shown in text, shown
    for hidden in ("50.0\n", "99.0", "71.0", "35.0"):
        assert hidden not in text, hidden


@pytest.fixture(scope="module")
def folder(full, tmp_path_factory):
    """The pages on disk."""
    made = tmp_path_factory.mktemp("browser") / "report"
    pages.write_report(made, full)
    return made


@pytest.mark.nightly(needs="Chromium")
@pytest.mark.skipif(not browser.is_there(), reason=browser.NEEDED)
def test_pages_are_short_fit_their_screen_and_can_be_read_by_everybody(folder, tmp_path):
    for options in ((), browser.DARK):
        found, console = browser.all_pages(folder, tmp_path / "profile", *options)
        assert len(found) == 2 * len(list(folder.rglob("*.html"))) > 20
        assert browser.faults(found) == []
        assert console == []


@pytest.mark.skipif(not browser.is_there(), reason=browser.NEEDED)
def test_tables_sort_and_filter_and_a_number_shows_its_trace(folder, tmp_path):
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
    down, first, up, second, names, left, told, trace, is_below = title
    values = [float(value) for value in down.split()]
    assert values == sorted(values, reverse=True)
    assert up.split() == sorted(up.split(), key=float)
    assert (first, second) == ("descending", "ascending")
    assert names.split() == sorted(names.split())
    assert left == "control-masked"
    assert told == "1 of 6 rows"
    assert re.fullmatch(r"kgprobe trace [\d.]+ -w paper=bear .* --run small", trace)
    assert is_below == "true"


def test_the_chart_has_every_principal_number_with_its_trace():
    rows = explore.numbers(found())
    whole = [row for row in rows if row["part"] == explore.WHOLE]
    own = found().filter(metric="accuracy", group="", slice="", setting="{}")
    assert {(row["model"], row["value"]) for row in whole} == set(
        own.select("model", "value").rows()
    )
    assert {row["part"] for row in rows} == {explore.WHOLE, "P36", "P1"}
    assert all(row["n"] and row["trace"].startswith(f"{row['value']:.1f} -w ") for row in rows)
    made = explore.specification(rows)
    assert made["data"]["values"] == rows
    assert [one["name"] for one in made["params"]] == [f"chosen_{n}" for n in explore.CHOSEN]


@pytest.mark.skipif(not browser.is_there(), reason=browser.NEEDED)
def test_the_chart_is_filtered_by_its_lists(folder, tmp_path):
    pytest.importorskip("vl_convert")
    choose = """<script type="module">
      const points = () => document.querySelectorAll("#chart .mark-symbol.role-mark path").length;
      const pick = async (name, place) => {
        const list = document.querySelector(`#chart select[name=chosen_${name}]`);
        list.selectedIndex = place;
        list.dispatchEvent(new Event("change"));
        await new Promise((done) => setTimeout(done, 500));
        return points();
      };
      await new Promise((done) => setTimeout(done, 1000));
      const out = [points(), await pick("benchmark", 1), await pick("model", 1)];
      document.title = out.join(" ");
    </script></body>"""
    page = folder / "pages/chosen.html"
    # the runtime has an end of a body, too
    start, _, end = (folder / "pages/explore.html").read_text().rpartition("</body>")
    page.write_text(start + choose + end)
    dom, console = browser.dumped(page, tmp_path / "profile", "--virtual-time-budget=60000")
    page.unlink()
    assert console == []
    # four models and two baselines: all items, then with two relations, then of one model
    assert re.search(r"<title>(.*?)</title>", dom)[1] == "6 18 3"


def test_a_table_says_who_was_asked_though_it_was_one_model_alone():
    own = {"metric": "accuracy", "benchmark": "b", "model": "m", "prompt": "p", "n": 9}
    numbers = [Number(method=name, value=50.0, **own) for name in ("soft", "cloze")]
    view = View("v", "Title", {"metric": ["accuracy"]}, rows=["benchmark", "model", "method"])
    made = grid.of_view(view, frame("bear", numbers))
    assert made.heads == ["model", "method", "accuracy"]
    assert [[cell.text for cell in row[:2]] for row in made.rows] == [["m", "soft"], ["m", "cloze"]]
    nobody = [Number(metric="accuracy", benchmark=b, value=1.0, n=9) for b in ("b", "c")]
    assert grid.of_view(view, frame("bear", nobody)).heads == ["benchmark", "accuracy"]
