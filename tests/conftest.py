"""What all tests share: one Spark session, the real traces, and the command line run in process."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("unhurried", deadline=None)  # the first example of a kernel compiles it
settings.load_profile("unhurried")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The one Spark session of the test run."""
    from adapt.traces.session import SparkOptions, spark_session

    session = spark_session(SparkOptions(master="local[2]"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def real_traces() -> Callable[[str], Path]:
    """Finds a real raw stream by its path under ADAPT_DATA; skips the test, and says so, where it is absent."""
    folder = Path(os.environ.get("ADAPT_DATA", REPOSITORY.parent / "shared" / "data"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"the real trace {name} is not there; set ADAPT_DATA to the folder that holds it")
        return path

    return find
