"""Where the project lies, and files that appear whole or not at all."""

import errno
import os
import shutil
from pathlib import Path

PACKAGE = Path(__file__).parent
#: The project's own folder, or what an installed package has of it: what a working folder does not
#: have is looked up here.
ROOT = PACKAGE / "project" if (PACKAGE / "project").is_dir() else PACKAGE.parents[1]


class atomic:  # noqa: N801  (used like a function)
    """`with atomic(path) as temporary:` the file appears at `path` whole or not at all."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def __enter__(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self.temporary

    def __exit__(self, kind: object, error: object, *_: object) -> None:
        if kind is None:
            os.replace(self.temporary, self.path)
            return
        self.temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            free = shutil.disk_usage(self.path.parent).free
            raise OSError(
                errno.ENOSPC,
                f"No space left on device ({free:,} bytes are free now); make room and run again, "
                "finished files stay",
                str(self.path),
            ) from error
