"""The short tier of every test run and the long one, `make soak`."""

import os

import pytest
from hypothesis import settings

SOAK = bool(os.environ.get("ADAPT_SOAK"))

soak = pytest.mark.skipif(not SOAK, reason="long; set ADAPT_SOAK=1")


def examples(short: int) -> settings:
    """So many random examples in the short tier, a thousand in the long one: for a property slow to check."""
    return settings(max_examples=1000 if SOAK else short)
