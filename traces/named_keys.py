"""Files in which a user names keys: pins (`key,channel`), and lists with a key a line."""

import csv
from pathlib import Path

from adapt.core.errors import BadInput
from adapt.core.partitioning.problem.named_keys import NamedKey, Pin, is_channel
from adapt.traces.read_errors import readable

_BOM = "\ufeff"


def read_pins(path: Path) -> list[Pin]:
    """Read a CSV of `key,channel`; a header of these names and blank lines are passed over.

    Raises:
        BadInput: the file cannot be read, or a line is no pin, or pins a key to another channel than a line before.
    """
    pins: dict[str, Pin] = {}
    line = 0
    try:
        with readable(path), path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                line = rows.line_num
                if not row or (not pins and [cell.strip().lower() for cell in row] == ["key", "channel"]):
                    continue
                pin = _pin(row, f"{path} line {line}")
                first = pins.setdefault(pin.key.text, pin)
                if first.channel != pin.channel:
                    raise BadInput(
                        f"{pin.key.where}: key {pin.key.text!r} is pinned to channel {pin.channel}, but to"
                        f" {first.channel} on {first.key.where.removeprefix(f'{path} ')}; remove one"
                    )
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is no CSV in UTF-8: {error.reason} somewhere after line {line}") from error
    except csv.Error as error:
        raise BadInput(f"{path} line {line + 1}: {error}") from error
    if not pins:
        raise BadInput(f"{path}: there are no pins in it; a line is key,channel")
    return list(pins.values())


def _pin(row: list[str], where: str) -> Pin:
    if len(row) != 2:
        raise BadInput(f"{where}: {len(row)} fields where key,channel are expected")
    key, channel = row[0], row[1].strip()
    if not is_channel(channel):
        raise BadInput(f"{where}: the channel {row[1]!r} is not a whole number from 0 up")
    return Pin(NamedKey(key, where), int(channel))


def read_key_list(path: Path) -> list[NamedKey]:
    """Read a file with a key a line, as `adapt partition route` does: an empty line is the empty key.

    Raises:
        BadInput: the file cannot be read, is not UTF-8, or has no line.
    """
    with readable(path):
        data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path} line {line}: not UTF-8 text; keys are text, numbers, or binary in hex") from error
    lines = text.removeprefix(_BOM).removesuffix("\n").split("\n") if text else []
    if not lines:
        raise BadInput(f"{path}: there are no keys in it; give one a line")
    return [NamedKey(key.removesuffix("\r"), f"{path} line {number}") for number, key in enumerate(lines, 1)]
