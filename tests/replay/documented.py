"""docs/sources.md: what the public services do, as the replay does it, made from its own table.

python -m tests.replay.documented
"""

from kgprobe.files import atomic
from tests.conftest import ROOT
from tests.replay.world import SERVICES

PAGE = ROOT / "docs/sources.md"
HEAD = """# The sources as they are

What each public service really does, where that is documented, what the client does about it, and
the test that shows it. `make replay` runs the full configuration against an imitation of these
services that does the same (`tests/replay`); `tests/contract` has the single faults. Made from
`tests/replay/world.py` by `make docs`.

| source | what it does | documented | what the client does | test |
|---|---|---|---|---|
"""


def text() -> str:
    """The whole page."""
    lines = [
        f"| {line.source} | {line.does} | {line.documented} | {line.client} | `{line.test}` |"
        for line in SERVICES
    ]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    with atomic(PAGE) as temporary:
        temporary.write_text(text(), encoding="utf-8")
