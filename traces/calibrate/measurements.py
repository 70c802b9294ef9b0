"""Cost profile from a CSV of measurements."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from adapt.core.costs.calibration import Calibration
from adapt.core.costs.profile import (
    CostSource,
    KeyMean,
    Pause,
    Profile,
    Restart,
    Service,
    SizeMean,
    StateCosts,
    Transport,
    quantiles_of,
)
from adapt.core.costs.samples import Samples, service_of_samples
from adapt.core.errors import BadInput, did_you_mean
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.read_errors import readable

KEY, PAUSE = "key", "pause"
NUMBERS = {
    "service_us": "service time of a row, in microseconds",
    "bytes": "its size",
    "cost_us": "its stated cost, as in column cost_us of a trace",
    "transport_us": "worker time to receive and report a row",
    "produce_us": "worker time to produce a row",
    "latency_us": "time from producer to worker",
    "state_bytes": "state that was moved or restored",
    "serialize_us": "time to serialize it",
    "transfer_us": "time to send it",
    "install_us": "time to install it",
    "restore_us": "time to restore it",
    "pause_at_s": "start of a pause, whose kind is in column pause",
    "pause_us": "its length",
    "stop_s": "time to stop the job",
    "start_s": "time until a started worker takes rows",
}
"""Columns of numbers; all are optional, and so is every cell."""


def calibrate_csv(path: Path) -> Calibration:
    """Derive a cost profile from measurements.

    Each row of the CSV holds one or more measurements, in the columns of `NUMBERS`, `key` and `pause`.
    """
    with readable(path):
        try:
            text = pcsv.ConvertOptions(column_types={KEY: pa.string(), PAUSE: pa.string()}, strings_can_be_null=True)
            table = pcsv.read_csv(arrow_source(path), convert_options=text)
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path} is not a CSV of measurements: {error}") from error
    known = [*NUMBERS, KEY, PAUSE]
    for name in table.column_names:
        if name not in known:
            raise BadInput(f"{path}: unknown column {name!r}{did_you_mean(name, known)}")
    numbers = {name: _numbers(path, table, name) for name in NUMBERS}
    transport = Transport(
        row_s=_mean(numbers["transport_us"], 1e-6),
        produce_s=_mean(numbers["produce_us"], 1e-6),
        latency_s=_median(numbers["latency_us"], 1e-6),
    )
    of_byte = {name: _per_byte(numbers, f"{name}_us") for name in ("serialize", "transfer", "install", "restore")}
    restart = Restart(_median(numbers["stop_s"]), _median(numbers["start_s"]), of_byte["restore"])
    rows = np.isfinite(numbers["service_us"])
    service = Service()
    keys: tuple[KeyMean, ...] = ()
    sizes: tuple[SizeMean, ...] = ()
    if rows.any():
        texts = None if KEY not in table.column_names else table.column(KEY).filter(pa.array(rows)).to_pylist()
        whole = {name: _whole(numbers[name][rows]) for name in ("bytes", "cost_us")}
        costs = None if whole["cost_us"] is None else 1e-6 * whole["cost_us"]
        service, keys, sizes = service_of_samples(
            Samples(1e-6 * numbers["service_us"][rows], texts, whole["bytes"], costs)
        )
    profile = Profile(
        CostSource.CSV,
        f"{path}: {len(table):,} rows of measurements",
        service,
        keys,
        sizes,
        transport,
        StateCosts(None, of_byte["serialize"], None, of_byte["install"], of_byte["transfer"]),
        restart,
        _pauses(path, table, numbers),
    )
    if len(profile.missing()) == len(Profile(CostSource.CSV, "").missing()):
        raise BadInput(f"{path} has no measurements; columns: {', '.join(known)}")
    return Calibration(profile)


def _numbers(path: Path, table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column; NaN where a cell is empty."""
    if name not in table.column_names:
        return np.full(len(table), np.nan)
    column = table.column(name)
    try:
        values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise BadInput(f"{path}: column {name!r} must hold numbers: {error}") from error
    wrong = column.is_valid().to_numpy() & ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise BadInput(f"{path} row {row + 1}: {name!r} must be a number of at least 0 (got {values[row]:g})")
    return values


def _mean(values: NDArray[np.float64], unit: float = 1.0) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) * unit if len(known) else None


def _median(values: NDArray[np.float64], unit: float = 1.0) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) * unit if len(known) else None


def _whole(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """A column without empty cells; None if there is one."""
    return values if np.isfinite(values).all() else None


def _per_byte(numbers: dict[str, NDArray[np.float64]], name: str) -> float | None:
    """Seconds per byte of state, over all measurements with a size."""
    sizes, times = numbers["state_bytes"], numbers[name]
    known = np.isfinite(sizes) & np.isfinite(times)
    total = float(sizes[known].sum())
    return 1e-6 * float(times[known].sum()) / total if total > 0 else None


def _pauses(path: Path, table: pa.Table, numbers: dict[str, NDArray[np.float64]]) -> tuple[Pause, ...]:
    """Pauses by kind, with the mean time from the end of one to the next."""
    known = np.isfinite(numbers["pause_us"]) & (numbers["pause_us"] > 0)
    kinds: list[Any] = table.column(PAUSE).to_pylist() if PAUSE in table.column_names else ["pause"] * len(table)
    found = []
    for kind in sorted({kinds[row] or "pause" for row in np.flatnonzero(known).tolist()}):
        own = known & np.array([(one or "pause") == kind for one in kinds])
        starts, lasts = numbers["pause_at_s"][own], 1e-6 * numbers["pause_us"][own]
        order = np.argsort(starts, kind="stable")
        gaps = starts[order][1:] - (starts + lasts)[order][:-1]
        if not len(gaps) or not np.isfinite(gaps).all() or gaps.mean() <= 0:
            raise BadInput(
                f"{path}: pause {kind!r} needs two or more measurements with pause_at_s, that do not overlap"
            )
        found.append(Pause(kind, float(gaps.mean()), quantiles_of(lasts)))
    return tuple(found)
