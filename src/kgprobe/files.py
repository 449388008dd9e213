"""Where the project lies, and files that appear whole or not at all."""

import errno
import os
import shutil
from pathlib import Path

PACKAGE = Path(__file__).parent
#: The project's own folder, or what an installed package has of it: what a working folder does not
#: have is looked up here.
ROOT = PACKAGE / "project" if (PACKAGE / "project").is_dir() else PACKAGE.parents[1]


def full_disk(path: Path) -> OSError:
    """What to raise where the disk of a file has no room left."""
    free = shutil.disk_usage(path.parent).free
    return OSError(
        errno.ENOSPC,
        f"No space left on device ({free:,} bytes are free now); make room and run again, "
        "finished files stay",
        str(path),
    )


class atomic:  # noqa: N801  (used like a function)
    """`with atomic(path) as temporary:` the file appears at `path` whole or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def __enter__(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.temporary

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if kind is None:
            os.replace(self.temporary, self.path)
            return
        self.temporary.unlink(missing_ok=True)
        # polars has an error of its own, with the system's in its words
        is_full = f"(os error {errno.ENOSPC})" in str(error)
        if is_full or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
            raise full_disk(self.path) from error
