"""The golden vectors of docs/plan-format.md: nasty keys, and where each scheme puts them.

`python -m tests.core.engines.any_language.plan_vectors` writes them anew.
"""

import json
from pathlib import Path

import pyarrow as pa

from adapt.core.engines.any_language.plan_text import plan_text
from adapt.core.engines.names import BASES, SCHEMES_BY_NAME, Engine, hashing_of
from adapt.core.engines.registry import definition_of, key_groups_of
from adapt.core.keys.columns import ARROW_TYPES, key_bytes
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan, plan_to_data
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme
from adapt.core.stream import KeyType

PAGE = Path(__file__).parents[4] / "docs" / "plan-vectors.json"
SCHEMA = "adapt.plan-vectors/1"
CHANNELS = 7
TOLD = {"trace", "parent", "predicted_loads", "metrics", "parameters"}
"""Fields of a plan that place no key."""
KEYS = {
    KeyType.STRING: [
        *(None, "", "a", "user", "a\0b", "\n", " ", "é", "e\u0301", "ключ", "日本語", "\N{GRINNING FACE}", "\u202eabc"),
        *('"quoted"', "=1+1", "<b>", "0", "00", "x" * 15, "x" * 16, "x" * 17, "x" * 31, "x" * 32, "x" * 33, "x" * 100),
    ],
    KeyType.INT64: [None, 0, 1, -1, 7, 2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)],
    **{
        key_type: [None, 0, 1, -1, 7, limit - 1, -limit]
        for key_type, limit in ((KeyType.INT16, 2**15), (KeyType.INT32, 2**31))
    },
    KeyType.BINARY: [None, b"", b"\0", b"\0\0", b"\xff", b"\x80\x00", b"\xf0\x9f", bytes(range(64)), b"a"],
}


def plans() -> list[Plan]:
    """A plan of every scheme, and of hybrid over every base, by both hashes, for every type of keys."""
    made = [(scheme, Scheme.CONSISTENT) for scheme in SCHEMES_BY_NAME.values()]
    shards = Engine.kinesis_over((0, 5, 2**64, 2**100 + 7, 2**126, 2**127, 2**128 - 2**120))
    made += [(Scheme.HYBRID, base) for base in (*BASES, shards) if base is not Scheme.CONSISTENT]
    return [
        Plan(
            scheme,
            CHANNELS,
            key_type,
            hash=hash,
            replicas=50,
            explicit={key: row % CHANNELS for row, key in enumerate(keys[::4])} if scheme in MAPPED_SCHEMES else {},
            max_parallelism=120 if key_groups_of(hashing_of(scheme, base)) else None,
            base=base,
        )
        for scheme, base in made
        for hash in ((HashName.MURMUR3,) if isinstance(hashing_of(scheme, base), Engine) else tuple(HashName))
        for key_type, keys in KEYS.items()
        if key_type is key_type.storage or (scheme is hashing_of(scheme, base) and isinstance(scheme, Engine))
    ]


def hashes(plan: Plan, keys: pa.Array) -> list[str]:
    """What each key hashes to: in hex 32 digits of murmur3 (h1, h2) or 16 of xxhash64; an engine's own in decimal.

    None of integers of fewer than 64 bits.
    """
    if isinstance(plan.hashing, Engine) and plan.key_type is not plan.key_type.storage:
        return []
    if isinstance(plan.hashing, Engine):
        return [str(number) for number in definition_of(plan.hashing).hash(keys).tolist()]
    high, low = HASHES[plan.hash].positions(keys)
    both = zip(high.tolist(), low.tolist(), strict=True)
    return [f"{h1:016x}" if plan.hash is HashName.XXHASH64 else f"{h1:016x}{h2:016x}" for h1, h2 in both]


def vector(plan: Plan) -> dict[str, object]:
    """A plan in both its forms, and its keys with their hashes and channels."""
    keys = pa.array(KEYS[plan.key_type], ARROW_TYPES[plan.key_type])
    return {
        "plan": {name: value for name, value in plan_to_data(plan).items() if name not in TOLD},
        "text": plan_text(plan).decode(),
        "hashes": hashes(plan, keys),
        "channels": plan.partitioner().channels_of(keys).tolist(),
    }


def in_hex(keys: pa.Array) -> list[str | None]:
    """The bytes of each key in hex, as readers are given them; null is null."""
    found = key_bytes(keys)
    data, ends = found.data.tobytes(), found.offsets.tolist()
    return [
        data[ends[row] : ends[row + 1]].hex() if valid else None
        for row, valid in enumerate(keys.is_valid().to_pylist())
    ]


def vectors() -> str:
    """All of them as JSON; a line a plan."""
    keys = {key_type.value: in_hex(pa.array(KEYS[key_type], ARROW_TYPES[key_type])) for key_type in KEYS}
    lines = ",\n".join(json.dumps(vector(plan)) for plan in plans())
    return f'{{"schema": "{SCHEMA}",\n"keys": {json.dumps(keys)},\n"vectors": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    PAGE.write_text(vectors())
