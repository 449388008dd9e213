"""Run the examples of documentation pages, so that a shown output cannot differ from the real one.

`python docs/worked.py write` runs the lines after >>> of each page and inserts what they print;
`check` reports outputs that differ.
"""

import contextlib
import difflib
import doctest
import io
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("docs/benchmarks.md",)
# the examples read the embedded world's tables, as the programs of tools/ do
sys.path.insert(0, str(ROOT))


def filled(text: str) -> str:
    """Return a page with the current outputs of its examples. Errors of an example are raised."""
    lines, made, at = text.splitlines(keepends=True), list[str](), 0
    names: dict[str, object] = {"__name__": "__main__"}
    for example in doctest.DocTestParser().get_examples(text):
        end = example.lineno + example.source.count("\n")
        made += lines[at:end]
        at = end + example.want.count("\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example.source, f"line {example.lineno + 1}", "single"), names)
        made += [" " * example.indent + line + "\n" for line in printed.getvalue().splitlines()]
    return "".join(made + lines[at:])


def main(arguments: list[str]) -> int:
    """Run `write` or `check`; return the exit status."""
    if arguments not in (["write"], ["check"]):
        print("usage: python docs/worked.py write|check", file=sys.stderr)
        return 2
    differs = 0
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        made = filled(text)
        if arguments == ["write"]:
            (ROOT / name).write_text(made, encoding="utf-8")
        elif made != text:
            told = difflib.unified_diff(
                text.splitlines(), made.splitlines(), name, "make docs", n=1
            )
            print("\n".join(told), file=sys.stderr)
            differs = 1
    return differs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
