"""Plans as lines of text, for readers without a JSON parser."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.engines.engine import OtherKeys
from adapt.core.engines.exporter import ExportablePlan
from adapt.core.engines.hexadecimal import hex_of
from adapt.core.engines.names import Engine, name_in_plans, shards_of
from adapt.core.engines.registry import definition_of
from adapt.core.errors import BadInput
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import KeyType

HEADER = "adapt.plan.text/1"
"""The first line; readers refuse version numbers that they do not know."""

BASED_HEADER = "adapt.plan.text/2"
"""The first line of plans over another base than the ring."""

TYPED_HEADER = "adapt.plan.text/3"
"""The first line of plans for keys that an engine hashes as integers of fewer than 64 bits."""

END = "end"
"""The last line; a text without it is truncated."""


def has_text(plan: ExportablePlan) -> bool:
    """Whether the text can describe how keys are hashed."""
    if plan.key_type.storage in (KeyType.INT64, plan.key_type) or not isinstance(plan.hashing, Engine):
        return True
    return definition_of(plan.hashing).other_keys is not OtherKeys.EXACT


def plan_text(plan: ExportablePlan) -> bytes:
    """The plan as ASCII text, one field per line: name, space, value.

    Fields that the scheme does not use are omitted. A pinned key is a line `key CHANNEL HEX` with its hashed bytes
    (UTF-8 of strings, 8 bytes little-endian of integers), or `null` for the null key.

    Source: docs/plan-format.md.
    """
    header, fields = HEADER, dict[str, object](scheme=name_in_plans(plan.scheme))
    if plan.base is not Scheme.CONSISTENT:
        header, fields["base"] = BASED_HEADER, name_in_plans(plan.base)
    if not has_text(plan):
        raise BadInput(
            f"{plan.hashing} hashes {plan.key_type} keys by their type, which plans as text do not describe; export the"
            f" plan --to {plan.hashing}, or build it over the ring (--engine consistent)"
        )
    whole = plan.key_type.storage is KeyType.INT64
    header = TYPED_HEADER if whole and plan.key_type is not KeyType.INT64 else header
    fields |= {"channels": plan.channels, "key_type": plan.key_type if whole else plan.key_type.storage}
    if not isinstance(plan.hashing, Engine):
        fields["hash"] = plan.hash.value
    if plan.hashing is Scheme.CONSISTENT:
        fields["replicas"] = plan.replicas
    if shards_of(plan.hashing):
        fields["shards"] = " ".join(map(str, shards_of(plan.hashing)))
    if plan.max_parallelism is not None:
        fields["max_parallelism"] = plan.max_parallelism
    fields["content_hash"] = plan.content_hash()
    null = "" if plan.explicit.of_null is None else f"key {plan.explicit.of_null} null\n"
    head = "".join(f"{name} {value}\n" for name, value in fields.items())
    return f"{header}\n{head}{null}".encode() + _explicit_lines(plan) + f"{END}\n".encode()


def _explicit_lines(plan: ExportablePlan) -> bytes:
    present = plan.explicit.column.is_valid()
    keys = plan.explicit.column.filter(present)
    if not len(keys):
        return b""
    channels = pa.array(plan.explicit.channels).filter(present).cast(pa.large_string())
    blank, end = pa.scalar(" ", pa.large_string()), pa.scalar("", pa.large_string())
    lines = pc.binary_join_element_wise(pa.scalar("key", pa.large_string()), channels, hex_of(keys), blank)
    lines = pc.binary_join_element_wise(lines, pa.scalar("\n", pa.large_string()), end)
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int64, len(lines) + 1, lines.offset * 8)
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
