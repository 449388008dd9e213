"""A fresh process under a limit of memory that the kernel holds."""

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def group(megabytes: int) -> Iterator[Path | None]:
    """A control group with that limit; None where this user may not make one."""
    for parent, setting in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        folder = ROOT / parent / f"kgprobe-{os.getpid()}"
        # the files are the kernel's: a folder elsewhere has none
        if not (ROOT / parent / "cgroup.procs").exists():
            continue
        try:
            folder.mkdir()
            (folder / setting).write_text(str(megabytes * 1_000_000))
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            continue
        try:
            yield folder
        finally:
            folder.rmdir()
        return
    yield None


def run(command: Sequence[str], megabytes: int) -> subprocess.CompletedProcess[str]:
    """The command, killed by the kernel where it takes more.

    Where control groups cannot be made, what it allocates is limited (RLIMIT_DATA), which counts
    what is never touched as well.
    """
    with group(megabytes) as folder:

        def enter() -> None:
            if folder is None:
                resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 1_000_000,) * 2)
            else:
                (folder / "cgroup.procs").write_text(str(os.getpid()))

        return subprocess.run(command, capture_output=True, text=True, preexec_fn=enter)
