"""Tests that need a package of the extra `backends` say so; .ci/run installs it."""

import importlib.util

import pytest


def needs(package: str) -> pytest.MarkDecorator:
    """Skip where `package` is not installed."""
    is_missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(is_missing, reason=f"no {package}: the extra backends has it")
