"""Paths of the project, and atomic writing of files."""

import errno
import os
import shutil
from pathlib import Path

PACKAGE = Path(__file__).parent
#: The project's folder, or the copy of it in an installed package: the fallback for files that are
#: missing in the working folder.
ROOT = PACKAGE / "project" if (PACKAGE / "project").is_dir() else PACKAGE.parents[1]


def full_disk(path: Path) -> OSError:
    """Return the error to raise when the disk of this file is full."""
    free = shutil.disk_usage(path.parent).free
    return OSError(
        errno.ENOSPC,
        f"No space left on device ({free:,} bytes are free now); make room and run again, "
        "finished files stay",
        str(path),
    )


def not_utf8(error: UnicodeEncodeError) -> str:
    """Describe a text with an unpaired surrogate, as JSON and names of files may hold."""
    shown = ascii(error.object[max(error.start - 20, 0) : error.start + 1])
    return f"{shown} is not UTF-8; expected text, or a name, that is"


class atomic:  # noqa: N801  (used like a function)
    """Write a file whole or not at all: `with atomic(path) as temporary:` renames it to `path`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def __enter__(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.temporary

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if kind is None:
            try:
                os.replace(self.temporary, self.path)
            except OSError:  # a folder of that name, or one that cannot be written to
                self.temporary.unlink(missing_ok=True)
                raise
            return
        self.temporary.unlink(missing_ok=True)
        # polars raises its own error, which contains the system's error as text
        is_full = f"(os error {errno.ENOSPC})" in str(error)
        if is_full or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
            raise full_disk(self.path) from error
