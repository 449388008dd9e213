"""Measurements of report pages in headless Chromium, in one process for all pages.

A driver page opens every page in a frame of a given width, measures it, and writes the results into
itself, which `--dump-dom` prints.
"""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import axe_core_python

AXE = Path(axe_core_python.__file__).parent / "axe.min.js"
MEASURE = Path(__file__).with_suffix(".js")
#: reason for a skip without a browser
NEEDED = "needs the browser chromium: apt-get install -y chromium"
#: pixels: a screen's height, and the widths at which pages are measured
SCREEN, WIDE, NARROW = 800, 1280, 390
#: option of the browser for dark pages
DARK = ("--blink-settings=preferredColorScheme=0",)


def dumped(page: Path, profile: Path, *options: str) -> tuple[str, list[str]]:
    """Return the page after its scripts ran, and their console output."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--allow-file-access-from-files", "--enable-logging=stderr", "--log-level=0"]
    command += [f"--user-data-dir={profile}", "--window-size=1400,900", *options, page.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


def measured(
    folder: Path, pages: Iterable[tuple[str, int, bool]], profile: Path, *options: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return measurements for (name, width, whether to run axe) of a folder's pages, and console
    lines."""
    axe = json.dumps(AXE.read_text(encoding="utf-8")).replace("</", "<\\/")
    asked = json.dumps([list(page) for page in pages])
    frame = folder / "measure.html"
    script = f"const AXE = {axe}, SCREEN = {SCREEN}, ASKED = {asked};\n{MEASURE.read_text()}"
    frame.write_text(f"<!doctype html><meta charset=utf-8><body><script>{script}</script></body>")
    try:
        dom, console = dumped(frame, profile, "--virtual-time-budget=900000", *options)
    finally:
        frame.unlink()
    found_json = re.search(r"FOUND(\[.*\])DNUOF", dom, flags=re.DOTALL)
    assert found_json, dom[-2000:]
    return json.loads(html.unescape(found_json[1])), console


def all_pages(folder: Path, profile: Path, *options: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return `measured` of every page of a report, wide (with axe) and narrow."""
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.html"))]
    asked = [(name, width, width == WIDE) for width in (WIDE, NARROW) for name in names]
    return measured(folder, asked, profile, *options)


def faults(found: Iterable[dict[str, Any]]) -> list[str]:
    """Return errors of measured pages: too long, too wide, too small, or not accessible."""
    problems = []
    for page in found:
        where = f"{page['name']} at {page['width']}"
        if "error" in page:
            problems.append(f"{where}: {page['error']}")
            continue
        most = SCREEN * (3 if page["name"] == "index.html" else 8)
        if page["width"] == WIDE:
            problems += [f"{where}: {page['height']} high"] * (page["height"] > most)
        problems += [f"{where}: {page['overflow']} too wide"] * (page["overflow"] > 0)
        problems += [f"{where}: {page['small']:.1f}: {page['smallest']}"] * (page["small"] < 10)
        problems += [f"{where}: {one}" for one in page["axe"]]
    return problems


def is_there() -> bool:
    """Return whether a browser is installed."""
    return shutil.which("chromium") is not None
