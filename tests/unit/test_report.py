"""The report: self-contained, escaped, sortable, the same for the same data."""

import dataclasses
import re
import shutil
import subprocess
from html.parser import HTMLParser

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables.bear import chapter as bear_chapter
from kgprobe.tables.bear import figures
from kgprobe.tables.report import calibration, chapter, draw, grid, headline, marks
from kgprobe.tables.report import page as report
from kgprobe.tables.report.chapter import Drawing
from kgprobe.tables.results import Number, frame
from kgprobe.tables.views import View
from tests.unit.study_frames import benchmark, guesses, probe, results, study
from tests.unit.test_tables_draw import PROBES, SHEET, STUDY, found

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
    drawings = [
        Drawing("world_lite", "size", "Size", "Grey: published.", svg),
        Drawing("calibration", "cal", "Calibration", "As drawn.", svg),
    ]
    parts = bear_chapter.arranged(
        own, sheet, NAMES, {"world_lite": "From the <embedded> world"}, drawings
    )
    parts.append(bear_chapter._construction({"world_lite": FUNNEL}, NAMES))
    return chapter.Chapter("bear", "BEAR", "Lead.", parts=parts, terms=bear_chapter.TERMS)


def paged(own, sheet=SHEET, **changed):
    """The report with BEAR's chapter alone; one note of a model holds markup."""
    made = {} if "chapters" in changed else {
        "chapters": [part for part in (calibration.chapter(own, sheet), bear(own, sheet)) if part]
    }  # fmt: skip
    return report.Report(
        results=own,
        sheet=sheet,
        config={"seed": 0, "sources": {"bear": {"folder": "a&b"}}},
        models=[{"model": m, "revision": "ab" * 20, "note": "<i>x</i>"} for m in sheet],
        experiments=[{"benchmark": "world_lite", "model": m} for m in sheet],
        versions={"kgprobe": "0.1.0"},
        **{
            "links": [report.Link("bear.parquet", "../tables/bear.parquet", "x")],
            **made,
            **changed,
        },
    )


@pytest.fixture(scope="module")
def full():
    return paged(found())


def test_the_same_data_give_the_same_bytes_in_one_closed_file(full, tmp_path):
    report.write_report(tmp_path / "index.html", full)
    html = (tmp_path / "index.html").read_text()
    assert html == report.render(full)
    reader = read(html)
    assert not reader.open
    assert len(reader.ids) == len(set(reader.ids))
    anchors = {link[1:] for link in reader.links if link.startswith("#")}
    assert anchors <= set(reader.ids)
    assert [link for link in reader.links if not link.startswith("#")] == ["../tables/bear.parquet"]
    assert not re.search(r"@import|url\((?!#)", html)
    assert [p.name for p in tmp_path.iterdir()] == ["index.html"]


def test_text_from_data_is_escaped(full):
    html = report.render(full)
    assert "<i>x</i>" not in html
    assert "&lt;i&gt;x&lt;/i&gt;" in html
    assert "capital of &lt;b&gt;" in html
    bad = dataclasses.replace(full, title='"><script>alert(1)</script>')
    assert "<script>alert" not in report.render(bad)
    assert not read(html).active


def test_it_says_what_was_run_and_how_to_read_it(full):
    text = " ".join(read(report.render(full)).text)
    for phrase in ("sources.bear.folder", "a&b", "abababababab", "0.1.0", "BOS none"):
        assert phrase in text
    for title in ("Headline", "Calibration", "Construction", "How to read", "What was run"):
        assert title in text
    assert "They are controls and nothing else" in text
    assert re.search(r"met by\s+2 of 2\s+control probes", text)
    assert "overlap (3)" in text
    assert "From the <embedded> world" in text


def test_parts_that_do_not_exist_leave_no_empty_chapter():
    own = results(STUDY)
    parts = bear_chapter.arranged(own, SHEET, {}, {})
    alone = chapter.Chapter("bear", "BEAR", "Lead.", parts=parts)
    assert calibration.chapter(own, SHEET) is None
    html = report.render(paged(own, chapters=[alone], links=()))
    assert 'id="benchmark-1"' in html
    for name in ("calibration", "bear-calibration", "construction", "files"):
        assert f'id="{name}"' not in html
        assert f'href="#{name}"' not in html


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
    html = report.render(paged(attributes(), {"smol": SHEET["smol"]}, chapters=[other]))
    text = " ".join(read(html).text)
    assert "Nine patterns." in text
    assert "undef" in text
    assert "BEAR" not in text
    for word in ("Chance and majority", "SEM", "items in"):
        assert word not in text


def test_a_mark_that_one_paper_s_answers_alone_told_of_stands_at_the_numbers_everywhere():
    sound = frame("autoprompt", [Number(metric="sound", model="smol", value=0, n=0)])
    html = report.render(paged(pl.concat([found(), sound]), chapters=[]))
    first = html.split('<section id="headline">')[1].split("</table>")[0]
    # the probes and the two baselines
    assert first.count("<tr>") == 1 + len(PROBES) + 2
    assert first.count(marks.MARK) == 3  # accuracy, right under any and SEM
    assert "no likelier than the same words shuffled" in html


def test_a_failed_requirement_is_named():
    html = report.render(paged(found(taught=50.0)))
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
    html = report.render(paged(own, sheet, chapters=[made]))
    # beside the headline and beside the benchmark's own numbers
    assert html.count("The items scored here are not balanced") == 2


def test_a_probe_without_numbers_is_an_error(full):
    with pytest.raises(ValueError, match=r"no accuracy of \['stranger"):
        bear_chapter.arranged(found(), {**SHEET, "stranger": SHEET["smol"]}, {}, {})
    with pytest.raises(ValueError, match="at least one probe"):
        report.render(dataclasses.replace(full, experiments=[]))


def test_a_chapter_is_read_as_it_was_written(full, tmp_path):
    chapter.write(bear(found()), tmp_path / "bear.json")
    again = chapter.read(tmp_path / "bear.json")
    assert [part.name for part in again.parts] == [
        "bear-calibration",
        "benchmark-1",
        "construction",
    ]
    both = [calibration.chapter(found(), SHEET), again]
    assert report.render(paged(found(), chapters=both)) == report.render(
        paged(found(), chapters=[both[0], chapter.read(tmp_path / "bear.json")])
    )


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
        report.inline(Drawing("p", "n", "t", "c", svg))


def test_inlined_figures_take_the_theme_and_keep_their_ids_apart():
    svg = f'<?xml?>\n<svg width="9pt" viewBox="0 0 9 9"><path id="a" style="fill: {draw.INK}"/>'
    svg += '<use xlink:href="#a" clip-path="url(#a)"/></svg>'
    text = report.inline(Drawing("p", "fig 1", "A <b>", "c", svg))
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


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs the browser chromium")
def test_a_press_on_a_head_sorts_and_a_second_one_turns_round(full, tmp_path):
    presses = """<script>
      const table = document.querySelector("#headline table"), out = [];
      const column = (i) => [...table.tBodies[0].rows].map((r) => r.cells[i].dataset.sort);
      const press = (i) => table.tHead.rows[0].cells[i].querySelector("button").click();
      press(1); out.push(column(1).join(" "), table.tHead.rows[0].cells[1].ariaSort);
      press(1); out.push(column(1).join(" "), table.tHead.rows[0].cells[1].ariaSort);
      press(0); out.push(column(0).join(" "));
      document.title = out.join("|");
    </script></body>"""
    page = tmp_path / "index.html"
    page.write_text(report.render(full).replace("</body>", presses))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    down, first, up, second, names = re.search(r"<title>(.*?)</title>", dom)[1].split("|")
    values = [float(value) for value in down.split()]
    assert values == sorted(values, reverse=True)
    assert up.split() == sorted(up.split(), key=float)
    assert (first, second) == ("descending", "ascending")
    assert names.split() == sorted(names.split())


def test_a_table_says_who_was_asked_though_it_was_one_model_alone():
    own = {"metric": "accuracy", "benchmark": "b", "model": "m", "prompt": "p", "n": 9}
    numbers = [Number(method=name, value=50.0, **own) for name in ("soft", "cloze")]
    view = View("v", "Title", {"metric": ["accuracy"]}, rows=["benchmark", "model", "method"])
    made = grid.of_view(view, frame("bear", numbers))
    assert made.heads == ["model", "method", "accuracy"]
    assert [[cell.text for cell in row[:2]] for row in made.rows] == [["m", "soft"], ["m", "cloze"]]
    nobody = [Number(metric="accuracy", benchmark=b, value=1.0, n=9) for b in ("b", "c")]
    assert grid.of_view(view, frame("bear", nobody)).heads == ["benchmark", "accuracy"]
