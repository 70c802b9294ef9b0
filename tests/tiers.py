"""The short tier of every test run and the long one, `make soak`."""

import os
from datetime import UTC, datetime

import pytest
from hypothesis import settings

SOAK = bool(os.environ.get("ADAPT_SOAK"))

SEED = int(os.environ.get("ADAPT_SEED") or (datetime.now(UTC).date().toordinal() if SOAK else 0))
"""The random seed: in the long tier another one each day, which a failure names and ADAPT_SEED repeats."""

soak = pytest.mark.skipif(not SOAK, reason="long; set ADAPT_SOAK=1")


def examples(short: int) -> settings:
    """So many random examples in the short tier, a thousand in the long one: for a property slow to check."""
    return settings(max_examples=1000 if SOAK else short)
