"""Files of pins: `key,channel`."""

from pathlib import Path

from adapt.core.errors import BadInput
from adapt.core.partitioning.problem.named_keys import NamedKey, Pin, is_channel
from adapt.traces.read_errors import csv_rows


def read_pins(path: Path) -> list[Pin]:
    """Read a CSV of `key,channel`, with or without that header."""
    pins: dict[str, Pin] = {}
    for line, row in csv_rows(path):
        if not pins and [cell.strip().lower() for cell in row] == ["key", "channel"]:
            continue
        pin = _pin(row, f"{path} line {line}")
        first = pins.setdefault(pin.key.text, pin)
        if first.channel != pin.channel:
            raise BadInput(
                f"{pin.key.where}: key {pin.key.text!r} is pinned to worker {pin.channel}, but"
                f" {first.key.where.removeprefix(f'{path} ')} pins it to {first.channel}; remove one"
            )
    if not pins:
        raise BadInput(f"{path} has no pins; write one key,channel per line")
    return list(pins.values())


def _pin(row: list[str], where: str) -> Pin:
    if len(row) != 2:
        raise BadInput(f"{where}: expected 2 fields: key, worker (got {len(row)})")
    key, channel = row[0], row[1].strip()
    if not is_channel(channel):
        raise BadInput(f"{where}: the worker must be a whole number, at least 0 (got {row[1]!r})")
    return Pin(NamedKey(key, where), int(channel))
