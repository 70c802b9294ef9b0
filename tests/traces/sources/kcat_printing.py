"""What `kcat -J` prints, written out by hand as in its json.c."""

import json
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
