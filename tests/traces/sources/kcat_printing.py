"""What kcat prints, written out by hand: `-f` as in its format.c, `-J` as in its json.c."""

import json
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Message:
    """A record of a topic."""

    key: bytes | None
    payload: bytes | None
    partition: int = 0
    offset: int = 0
    ts: int = 1_431_857_103_000
    topic: str = "clicks"
    headers: list = field(default_factory=list)


def printed(message, pattern):
    """A record as `kcat -f PATTERN` prints it."""
    pieces = []
    for letter, text in re.findall(r"%(.)|([^%]+)", pattern, re.DOTALL):
        pieces.append(_formatted(message, letter) if letter else _unescaped(text))
    return b"".join(pieces)


def _formatted(message, letter):
    key, payload = message.key or b"", message.payload or b""
    size = {"K": -1 if message.key is None else len(key), "S": -1 if message.payload is None else len(payload)}
    match letter:
        case "k":
            return key
        case "s":
            return payload
        case "K" | "S":
            return b"%d" % size[letter]
        case "R":
            return size["S"].to_bytes(4, "big", signed=True)
        case "t":
            return message.topic.encode()
        case "h":
            return ",".join(f"{name}={value}" for name, value in message.headers).encode()
        case "%":
            return b"%"
    return b"%d" % {"p": message.partition, "o": message.offset, "T": message.ts}[letter]


def _unescaped(text):
    named = {r"\n": "\n", r"\t": "\t", r"\r": "\r"}
    text = re.sub(r"\\[ntr]", lambda found: named[found.group()], text)
    return re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found.group(1), 16)), text).encode("latin1")


def envelope(message):
    """A record as `kcat -J` prints it; key and payload are text."""
    fields = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        **({"tstype": "create", "ts": message.ts} if message.ts >= 0 else {}),
        "broker": 1,
        **({"headers": [part for pair in message.headers for part in pair]} if message.headers else {}),
        "key": None if message.key is None else message.key.decode(),
        "payload": None if message.payload is None else message.payload.decode(),
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"
