"""Training that gives the same weights on every run: one thread, own random numbers."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def steady(seed: int) -> Iterator[None]:
    """While open, torch works on one thread with numbers from `seed`; afterwards all is as before.

    Sums over several threads are taken in another order, and training magnifies that.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
