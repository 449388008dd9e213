"""Documentation pages that are elsewhere in the repository or generated from the code.

A hook of mkdocs: the pages are read from their source, so that they cannot differ from it.
"""

import inspect
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from kgprobe import contracts
from kgprobe.contracts import MEANING, Contract

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
#: the run whose report is part of the site, where it was made
RUN, REPORT = ROOT / "results/embedded", "report/index.html"
#: page -> the file that it is
ELSEWHERE = {
    "index.md": "README.md",
    "settings.md": "config/README.md",
    "runs.md": "results/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}


def on_files(files: "Files", config: Any) -> "Files":
    """Add the pages that are not in docs/."""
    from mkdocs.structure.files import File  # the tests read this module without mkdocs

    for page, name in ELSEWHERE.items():
        text = linked((ROOT / name).read_text(encoding="utf-8"), Path(name).parent)
        if page == "index.md":
            text = with_report(text, RUN)
        files.append(File.generated(config, page, content=text))
    made = {"columns.md": columns()}
    for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = notebook(path)
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_post_build(config: Any) -> None:
    """Copy the report unchanged: mkdocs would render some of its files as pages, or skip them."""
    for path in run_files(RUN):
        target = Path(config.site_dir) / "run" / path.relative_to(RUN)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def with_report(text: str, run: Path) -> str:
    """Return the first page, with a link to the report of a run if there is one."""
    if not (run / REPORT).is_file():
        return text
    name = f"`results/{run.name}/{REPORT}`"
    return text.replace(name, f'<a href="run/{REPORT}">{name}</a>')


def run_files(run: Path) -> list[Path]:
    """Yield the files of a run's report, and the files of the run that its pages link to."""
    found = {path for path in (run / "report").rglob("*") if path.is_file()}
    for page in [path for path in found if path.suffix == ".html"]:
        for link in re.findall(r'href="([^":#]+)', page.read_text(encoding="utf-8")):
            target = (page.parent / unquote(link)).resolve()
            if target.is_relative_to(run.resolve()):
                inside = target.rglob("*") if target.is_dir() else [target]
                own = (run / path.relative_to(run.resolve()) for path in inside)
                found |= {path for path in own if path.is_file()}
    return sorted(path for path in found if not path.name.startswith("."))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to the pages that are generated from those files."""
    return linked(markdown, Path("docs") / Path(page.file.src_uri).parent)


def on_page_content(html: str, **_: Any) -> str:
    """Let long names in table cells break after their dots, not inside words."""

    def breakable(found: re.Match[str]) -> str:
        return re.sub(r"([._])", r"\1<wbr>", found[0])

    return re.sub(r"(?<=<td><code>)[\w.]+(?=</code>)", breakable, html)


def linked(text: str, folder: Path) -> str:
    """Return `text` of a file in `folder` with its links as the site needs them."""
    pages = {name: page for page, name in ELSEWHERE.items()}

    def page(found: re.Match[str]) -> str:
        target, sign, anchor = found[1].partition("#")
        place = (ROOT / folder / target).resolve()
        if not target or "://" in target or not place.is_relative_to(ROOT):
            return found[0]
        inside = place.relative_to(ROOT).as_posix()
        depth = "../" * (len(folder.parts) - 1) if folder.parts[:1] == ("docs",) else ""
        below = inside.startswith("docs/") or inside != target
        named = pages.get(inside, inside.removeprefix("docs/") if below else None)
        return f"]({depth}{named}{sign}{anchor})" if named else found[0]

    return re.sub(r"\]\(([^)\s]+)\)", page, text)


def notebook(path: Path) -> str:
    """Render a notebook as a page: its text, its code (which a test runs), and a link to the
    file."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    title, *rest = parts
    return "\n\n".join([title, f"[The notebook]({path.name}) has no outputs: run it.", *rest, ""])


def columns() -> str:
    """Return the data dictionary: every contract with its description, key and columns."""
    source = inspect.getsource(contracts)
    parts = [
        "# Columns of every file\n\nMade of `src/kgprobe/contracts.py`; `schema.write` and "
        "`schema.read` hold every file to it. Columns in **bold** are the key, † may be empty.\n"
    ]
    for name, contract in vars(contracts).items():
        if isinstance(contract, Contract):
            parts += [f"## {name}", "", read_comment(source, name), "", *table(contract), ""]
    return "\n".join(parts)


def read_comment(source: str, name: str) -> str:
    """The comment above a contract."""
    found = re.search(rf"((?:^#: .*\n)+){name} = _contract\(", source, flags=re.MULTILINE)
    return " ".join(line.removeprefix("#: ") for line in found[1].splitlines()) if found else ""


def table(contract: Contract) -> list[str]:
    """Render the columns of a contract as a table."""
    told: Mapping[str, str] = MEANING.get(contract.name, {})
    rows = ["| column | type | what it holds |", "|---|---|---|"]
    for name, dtype in contract.columns.items():
        shown = f"**{name}**" if name in contract.key else name
        sign = " †" if name in contract.nullable else ""
        rows.append(f"| {shown}{sign} | {dtype} | {told.get(name, '')} |")
    return rows
