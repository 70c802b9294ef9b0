"""Files of costs: profiles, measured service times, means of keys."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adapt.core.costs.profile import Profile
from adapt.core.costs.profile_file import read_profile
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.key_text import keys_from_texts
from adapt.core.stage.conditions.service_times import Service, Spread, SpreadKind
from adapt.core.stage.input.keyed_rows import KEY
from adapt.core.stage.input.profiled import row_costs_of
from adapt.core.stage.input.row_costs import KeyCosts, RowCosts
from adapt.core.stream import KeyType
from adapt.core.units.amounts import seconds_of
from adapt.traces.locations.arrow import arrow_source
from adapt.traces.read_errors import csv_rows, parsed, readable
from adapt.traces.store.trace import Trace

MICROS = "service_us"
_HEADER = ["key", "service_time"]


def read_service_times(path: Path) -> NDArray[np.float64]:
    """Measured service times in seconds, ascending.

    The file is Parquet or CSV, with microseconds in column `service_us`.
    """
    with readable(path):
        try:
            table = (
                pq.read_table(path, columns=[MICROS])
                if path.suffix == ".parquet"
                else pcsv.read_csv(arrow_source(path))
            )
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path} has no measurements of service times: {error}") from error
    if MICROS not in table.column_names:
        near = did_you_mean(MICROS, table.column_names)
        raise BadInput(f"{path} has no column {MICROS!r}{near}; name the one with the microseconds of a row so")
    try:
        micros = np.sort(table.column(MICROS).cast(pa.float64()).to_numpy())
    except pa.ArrowInvalid as error:
        raise BadInput(f"{path}: column {MICROS!r} must hold numbers: {error}") from error
    if not len(micros) or not (np.isfinite(micros).all() and micros[0] >= 0 and micros[-1] > 0):
        raise BadInput(f"{path}: column {MICROS!r} needs numbers of at least 0, one above it, and none missing")
    return micros * 1e-6


def read_key_costs(path: Path, key_type: KeyType) -> KeyCosts:
    """Mean service times of keys.

    The file is a CSV of `key,service_time` such as `amazon,45us`, with or without that header.
    """
    texts: list[str] = []
    mean_s: list[float] = []
    for line, row in csv_rows(path):
        if not texts and [cell.strip().lower() for cell in row] == _HEADER:
            continue
        where = f"{path} line {line}"
        if len(row) != len(_HEADER):
            raise BadInput(f"{where}: expected 2 fields: key, service_time (got {len(row)})")
        try:
            mean_s.append(seconds_of(row[1]))
            keys_from_texts([row[0]], key_type)
        except (UsageError, BadInput) as error:
            raise BadInput(f"{where}: {error}") from error
        texts.append(row[0])
    try:
        return KeyCosts(keys_from_texts(texts, key_type), np.array(mean_s))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def row_costs(service: Service, trace: Trace, seed: int) -> RowCosts | None:
    """The CPU time of each row, or None if it is drawn."""
    if service.key_file is not None:
        return RowCosts(KEY, read_key_costs(Path(service.key_file), trace.key_type), service.spread, seed)
    if service.column is None:
        return None
    if service.column not in trace.columns:
        near = did_you_mean(service.column, trace.columns)
        raise UsageError(
            f"--service-time: {trace.path} has no column {service.column!r}{near}; give a time, a distribution,"
            " or a column with microseconds"
        )
    sample = next(iter(trace.batches([service.column])), None)
    kind = None if sample is None else sample.column(0).type
    if kind is not None and not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise UsageError(f"--service-time: column {service.column!r} holds {kind}, not numbers of microseconds")
    return RowCosts(service.column, spread=service.spread, seed=seed)


def measured(service: Service) -> Service:
    """Service times with the measurements of their file, if they name one."""
    if service.sample_file is None:
        return service
    sample = read_service_times(Path(service.sample_file))
    return Service(float(sample.mean()), spread=Spread(SpreadKind.EMPIRICAL, sample=sample))


def read_cost_profile(path: Path) -> Profile:
    """Read a cost profile."""
    return parsed(path, read_profile)


def profiled_row_costs(path: Path, trace: Trace, row_bytes: float, seed: int) -> RowCosts | None:
    """CPU time of each row by a profile; None if drawn."""
    try:
        return row_costs_of(read_cost_profile(path), list(trace.columns), trace.key_type, row_bytes, seed)
    except BadInput as error:
        raise BadInput(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from error
