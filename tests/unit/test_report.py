"""The report: self-contained, escaped, sortable, the same for the same data."""

import dataclasses
import re
import shutil
import subprocess
from html.parser import HTMLParser

import polars as pl
import pytest

from kgprobe import schema
from kgprobe.tables import (
    bear,
    bear_chapter,
    bear_figures,
    bear_templates,
    calibration,
    chapter,
    draw,
    draw_size,
    headline,
    marks,
    report,
)
from kgprobe.tables import table as tables
from kgprobe.tables.drawing import Drawing
from tests.unit.study_frames import benchmark, guesses, probe, scores, study
from tests.unit.test_tables_draw import FRAMES, PROBES, STUDY, calibrated

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


@pytest.fixture(scope="module")
def shown():
    """BEAR's chapter with every part."""
    svg = draw.svg(draw_size.size_plot(bear_figures.size([STUDY]), PROBES, 12.5), "size")
    raw = scores(guesses(FRAMES, 0.5, 0))
    funnel = pl.DataFrame(
        [
            ("world_lite", "P36", 0, "pulled", 10, 10, 9, 5),
            ("world_lite", "P36", 1, "overlap", 10, 7, 7, 5),
            ("world_lite", "P1", 0, "pulled", 4, 4, 4, 2),
            ("world_lite", "P1", 1, "overlap", 4, 4, 4, 2),
        ],
        schema=dict(schema.FUNNEL.columns),
        orient="row",
    )
    return bear_chapter.Shown(
        probes=PROBES,
        tables={
            "bear_models": bear.models([STUDY]),
            "bear_relations": bear.relations([STUDY]),
            "bear_templates": bear_templates.templates([STUDY]),
            "bear_differences": bear.differences([STUDY]),
            "calibration": calibrated(),
        },
        drawings=[
            Drawing("world_lite", "size", "Size", "Grey: published.", svg),
            Drawing("calibration", "cal", "Calibration", "As drawn.", svg),
        ],
        example=bear_chapter.Example(
            "smol", "capital", bear_figures.example(STUDY, PROBES[0], raw, "P36/Qs0")
        ),
        funnels={"world_lite": funnel},
        descriptions={"world_lite": "From the <embedded> world"},
        relation_names={"P36": "capital of <b>"},
    )


def paged(shown, **changed):
    """The report with BEAR's chapter alone; one note of a model holds markup."""
    controls = {p.model for p in PROBES if p.control}
    made = [calibration.chapter(shown.tables, controls), bear_chapter.chapter(shown)]
    return report.Report(
        probes=shown.probes,
        headline=headline.build(shown.tables),
        config={"seed": 0, "sources": {"bear": {"folder": "a&b"}}},
        models=[{"model": p.model, "revision": "ab" * 20, "note": "<i>x</i>"} for p in PROBES],
        experiments=[{"benchmark": p.benchmark, "model": p.model} for p in PROBES],
        versions={"kgprobe": "0.1.0"},
        **{
            "chapters": [part for part in made if part],
            "links": [report.Link("bear_models.parquet", "../tables/bear_models.parquet", "x")],
            **changed,
        },
    )


@pytest.fixture(scope="module")
def full(shown):
    return paged(shown)


def test_the_same_data_give_the_same_bytes_in_one_closed_file(full, tmp_path):
    report.write_report(tmp_path / "index.html", full)
    html = (tmp_path / "index.html").read_text()
    assert html == report.render(full)
    reader = read(html)
    assert not reader.open
    assert len(reader.ids) == len(set(reader.ids))
    anchors = {link[1:] for link in reader.links if link.startswith("#")}
    assert anchors <= set(reader.ids)
    assert [link for link in reader.links if not link.startswith("#")] == [
        "../tables/bear_models.parquet"
    ]
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


def test_parts_that_do_not_exist_leave_no_empty_chapter(shown):
    bare = dataclasses.replace(
        shown,
        tables={"bear_models": shown.tables["bear_models"]},
        drawings=(),
        example=None,
        funnels={},
    )
    html = report.render(paged(bare, links=()))
    assert 'id="benchmark-1"' in html
    for name in ("calibration", "example", "construction", "files"):
        assert f'id="{name}"' not in html
        assert f'href="#{name}"' not in html


def test_a_report_without_bear_has_no_word_of_it(full):
    other = chapter.Chapter("attributes", "Attributes", "Nine patterns.")
    frame = headline.build({"kg_table2": attributes_table()})
    html = report.render(dataclasses.replace(full, headline=frame, chapters=[other]))
    text = " ".join(read(html).text)
    assert "Nine patterns." in text
    assert "undef" in text
    assert "BEAR" not in text
    for word in ("Chance and majority", "SEM", "items in"):
        assert word not in text


def test_a_mark_that_one_paper_s_answers_alone_told_of_stands_at_the_name_everywhere(shown):
    page = paged(shown)
    known = [dataclasses.replace(p, model=p.model + marks.MARK) for p in PROBES[:1]] + PROBES[1:]
    html = report.render(dataclasses.replace(page, probes=known, chapters=[]))
    first = html.split('<section id="headline">')[1].split("</table>")[0]
    assert first.count("<tr>") == 1 + len(PROBES)
    assert first.count(f"{PROBES[0].model}{marks.MARK}<small>") == 1
    assert "no likelier than the same words shuffled" in html


def attributes_table():
    """`kg_table2` of one model: one metric is defined, the other 0/0; baselines beside."""
    name = f"@1 | {PROBES[0].model} | fill | best prompt (oracle)"
    cells = [("symmetry", 50.0), ("symmetry, numerator", 1), ("symmetry, denominator", 2)]
    cells += [("symmetry, undefined", 3), ("bias, numerator", 0), ("bias, denominator", 0)]
    rows = [tables.cell("kg_table2", name, column, value, 5) for column, value in cells]
    for other in (name.replace("@1", "@5"), "@1 | BERT | published", "@1 | f | baseline | x"):
        rows.append(tables.cell("kg_table2", other, "symmetry", 1.0, 5))
    return tables.build(rows)


def test_a_failed_requirement_is_named(shown):
    worse = shown.tables["calibration"].with_columns(
        pl.when((pl.col("column") == "taught") & pl.col("row").str.contains("masked"))
        .then(50.0)
        .otherwise(pl.col("value"))
        .alias("value")
    )
    changed = dataclasses.replace(shown, tables={**shown.tables, "calibration": worse})
    html = report.render(paged(changed))
    text = " ".join(read(html).text)
    assert re.search(r"met by\s+1 of 2\s+control probes\s*; not by BEAR: control-masked", text)
    assert "not met" in text
    assert 'class="verdict bad"' in html


def test_an_unbalanced_sample_is_called_one():
    frames = benchmark({"P1": (["a", "b"], ["a", "a", "a", "b"])})
    one = study(frames, [(probe("m"), guesses(frames, 0.5, 1))])
    unbalanced = bear_chapter.Shown([probe("m")], {"bear_models": bear.models([one])})
    html = report.render(paged(unbalanced))
    # beside the headline and beside the benchmark's own numbers
    assert html.count("The items scored here are not balanced") == 2


def test_a_probe_without_numbers_is_an_error(shown, full):
    stranger = probe("stranger")
    with pytest.raises(ValueError, match=r"no row for \['stranger"):
        bear_chapter.chapter(dataclasses.replace(shown, probes=[*PROBES, stranger]))
    with pytest.raises(ValueError, match="at least one probe"):
        report.render(dataclasses.replace(full, probes=[]))


def test_a_chapter_is_read_as_it_was_written(shown, tmp_path):
    made = bear_chapter.chapter(shown)
    chapter.write(made, tmp_path / "bear.json")
    again = chapter.read(tmp_path / "bear.json")
    assert [part.name for part in again.parts] == [
        "bear-calibration",
        "benchmark-1",
        "example",
        "construction",
    ]
    both = [calibration.chapter(shown.tables, {"control-masked", "control-causal"}), again]
    assert report.render(paged(shown, chapters=both)) == report.render(paged(shown))


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


def test_headline_names_every_probe_with_its_chance_and_calibration():
    frame = headline.build({"bear_models": bear.models([STUDY]), "calibration": calibrated()})
    schema.check(frame, schema.TABLE)
    cells = tables.lookup(frame)
    assert {row for row, _ in cells} == {p.label for p in PROBES}
    assert cells[PROBES[0].label, "taught"]["value"] == 95.0
    assert (PROBES[2].label, "taught") not in cells
    assert cells[PROBES[2].label, "chance"]["value"] == pytest.approx(100 * (3 / 3 + 2 / 2) / 5)


def test_headline_prints_an_aligned_table_and_the_path_of_the_report(tmp_path, capsys):
    schema.write(bear.models([STUDY]), schema.TABLE, tmp_path / "bear_models.parquet")
    assert headline.main([str(tmp_path / "bear_models.parquet"), "results/index.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "world_lite: 5 items; accuracy in % with its 95 % interval"
    rows = [line for line in lines[2:] if ", sentence" in line or line.startswith("model,")]
    assert len(rows) == 5
    assert len({len(row) for row in rows}) == 1
    assert lines[-1] == "report: results/index.html"
    assert headline.main([str(tmp_path / "none.parquet")]) == 1
    assert "no such file" in capsys.readouterr().err
    assert headline.main([]) == 2


def test_headline_of_every_paper_stands_below_bear_s():
    onto = [
        ("m (control) | onto_world | TP | manual | chosen", "R@1", 60.0),
        ("m (control) | onto_world | TP | manual | chosen", "MRR", 70.0),
        ("m (control) | onto_world | TP | manual | fixed", "R@1", 50.0),
        ("m (control) | onto_world | TP | manual | oracle", "R@1", 99.0),
        # without dev rows nothing is chosen
        ("m (control) | onto_world_lite | TP | soft | fixed", "R@1", 40.0),
        ("m (control) | onto_world_lite | TP | soft | oracle", "R@1", 98.0),
    ]
    low = [
        ("auto_sst2 | m | finetuned", size, value) for size, value in (("10", 55.0), ("1000", 81.0))
    ]
    grid = [("auto_sst2 | m | k 3", "1 x 3", 61.0), ("auto_sst2 | m | k 3", "2 x 3", 66.0)]
    made = {
        "bear_models": bear.models([STUDY]),
        "ontoprobe_memorising": small("ontoprobe_memorising", onto),
        "ontoprobe_table5": small("t5", [("m | onto_world | letter", "TP", 25.0)]),
        "kg_table2": attributes_table(),
        "autoprompt_table4": small(
            "t4", [("m | searched", "World P@1", 30.0), ("m | searched", "World MRR", 35.0)]
        ),
        "autoprompt_table5": small("t5", [("m | manual", "perturbed", 31.0)]),
        "autoprompt_figure2": small("f2", low),
        "autoprompt_figure3": small("f3", grid),
    }
    frame = headline.build(made)
    schema.check(frame, schema.TABLE)
    found = {
        (row, column): value
        for paper, row, column, value in frame.select("paper", "row", "column", "value").rows()
        if paper != "kgprobe"
    }
    kg = f"{PROBES[0].model} | attributes | fill, best prompt (oracle)"
    assert found == {
        ("m | onto_world | manual, chosen on dev", "TP"): 60.0,
        ("m | onto_world_lite | soft, fixed", "TP"): 40.0,
        ("m | onto_world, multiple choice | letter", "TP"): 25.0,
        (kg, "symmetry"): 50.0,
        (kg, "symmetry, numerator"): 1.0,
        (kg, "symmetry, denominator"): 2.0,
        (kg, "bias, numerator"): 0.0,
        (kg, "bias, denominator"): 0.0,
        ("m | auto_world | searched", "P@1"): 30.0,
        ("m | auto_re_perturbed | manual", "P@1"): 31.0,
        ("m | auto_sst2 | finetuned, 1000 examples", "dev accuracy"): 81.0,
        ("m | auto_sst2 | best of the grid (oracle), k 3", "dev accuracy"): 66.0,
    }
    alone = headline.text(headline.build({"bear_models": made["bear_models"]}))
    text = headline.text(frame)
    assert text.startswith(alone.rstrip("\n"))
    assert "50.0 (1/2)  undef" in " ".join(text.split("attributes: ")[1].splitlines())


def small(name, cells):
    """A TABLE of (row, column, value)."""
    return tables.build([tables.cell(name, row, column, value, 10) for row, column, value in cells])


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs the browser chromium")
def test_a_press_on_a_head_sorts_and_a_second_one_turns_round(full, tmp_path):
    presses = """<script>
      const table = document.querySelector("#headline table"), out = [];
      const column = (i) => [...table.tBodies[0].rows].map((r) => r.cells[i].dataset.sort);
      const press = (i) => table.tHead.rows[0].cells[i].querySelector("button").click();
      press(2); out.push(column(2).join(" "), table.tHead.rows[0].cells[2].ariaSort);
      press(2); out.push(column(2).join(" "), table.tHead.rows[0].cells[2].ariaSort);
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
