"""Rates of real quotes, which replace lost packet traces."""

import os
from functools import cache
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow.csv as csv

from adapt.core.arrays import Floats
from paper.spread import ROOT

STREAMS = ("forex/oanda/tick/eurusd", "forex/fxcm/tick/eurusd")
"""The inputs: a currency pair at two venues, with times in milliseconds of the day."""

_LATE_MS = (0, 5 * 3_600_000)
"""Delay of each venue's clock behind UTC."""

_PERIOD_MS = 60_000
_DAY_MS = 86_400_000


def are_there() -> bool:
    """Whether the traces are in the folder `ADAPT_DATA`."""
    return all(any((_folder() / stream).glob("*_quote.zip")) for stream in STREAMS)


@cache
def quote_rates() -> Floats:
    """Quotes per second by minute; shape (minutes, streams).

    Raises:
        FileNotFoundError: the traces are missing.
    """
    times = [_times_ms(_folder() / stream, late) for stream, late in zip(STREAMS, _LATE_MS, strict=True)]
    first = max(each.min() for each in times) // _PERIOD_MS
    end = min(each.max() for each in times) // _PERIOD_MS
    minutes = [np.bincount(each[each // _PERIOD_MS >= first] // _PERIOD_MS - first) for each in times]
    return np.stack([each[: int(end - first)] for each in minutes], axis=1) / (_PERIOD_MS / 1000)


def _folder() -> Path:
    return Path(os.environ.get("ADAPT_DATA", ROOT.parent / "shared" / "data")) / "fx-ticks"


def _times_ms(folder: Path, late_ms: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Times of all quotes in a folder with a file per day, in milliseconds since the first day."""
    days = [np.datetime64(f"{path.name[:4]}-{path.name[4:6]}-{path.name[6:8]}") for path in sorted(folder.iterdir())]
    times = []
    for path, day in zip(sorted(folder.iterdir()), days, strict=True):
        with ZipFile(path) as packed:
            text = packed.read(packed.namelist()[0])
        columns = csv.read_csv(BytesIO(text), csv.ReadOptions(autogenerate_column_names=True))
        since_ms = int((day - days[0]).astype(int)) * _DAY_MS + late_ms
        times.append(np.floor(columns.column(0).to_numpy()).astype(np.int64) + since_ms)
    return np.concatenate(times)
