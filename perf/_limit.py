"""Run a fresh process under a memory limit that the kernel enforces."""

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def group(megabytes: int) -> Iterator[Path | None]:
    """Create a control group with that limit; return None if this user may not create one."""
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
    """Run a command that the kernel kills if it exceeds the limit.

    Without control groups, allocation is limited (RLIMIT_DATA), which also counts memory that is
    never touched.
    """
    with group(megabytes) as folder:

        def enter() -> None:
            if folder is None:
                resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 1_000_000,) * 2)
            else:
                (folder / "cgroup.procs").write_text(str(os.getpid()))

        return subprocess.run(command, capture_output=True, text=True, preexec_fn=enter)
