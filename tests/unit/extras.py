"""Tests that need a package of the extras `peft` and `quantized` say so; .ci/run installs them."""

import importlib.util

import pytest

from kgprobe.probes.models.backends import EXTRAS


def needs(package: str) -> pytest.MarkDecorator:
    """Skip where `package` is not installed."""
    is_missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(
        is_missing, reason=f"no {package}: the extra {EXTRAS[package]} has it"
    )
