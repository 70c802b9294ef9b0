"""The definition of Kinesis."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.engine import EngineDefinition, OtherKeys, WorkUnits
from adapt.core.engines.hash_functions.md5 import md5
from adapt.core.engines.kinesis.scheme import MOST_SHARDS, KinesisPartitioner
from adapt.core.engines.names import Engine
from adapt.core.engines.placement import as_text
from adapt.core.keys.columns import key_bytes, key_type_of, one_array


def kinesis_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64]:
    """The high word of the MD5 of each key; shape (rows,)."""
    column = one_array(keys)
    return md5(as_text(key_bytes(column), key_type_of(column.type)))[0]


def definition(engine: Engine) -> EngineDefinition:
    """The definition of Kinesis, over even shards or those of a list."""
    return EngineDefinition(
        title="Kinesis",
        hash=kinesis_hash,
        hash_title="MD5",
        placement=lambda channels, _: KinesisPartitioner(channels, engine.shards),
        export=None,
        channel="shard",
        worker="worker of the Kinesis Client Library",
        default_channels=len(engine.shards) or 4,
        channels_setting="ShardCount",
        key_groups=None,
        null_key="Kinesis rejects it; adapt hashes it as empty text.",
        empty_key="Kinesis rejects it; adapt hashes it as empty text.",
        rescale="Shards are split or merged: the keys of a range move to new shards, and the old ones are read to their"
        " end first. `UpdateShardCount` makes even ranges again.",
        units=WorkUnits(
            name="shards",
            short="shards",
            workers="workers",
            count="workers",
            default=None,
            most=MOST_SHARDS,
            note="A shard takes 1 MB or 1,000 records a second, so that a hot key needs a range of its own.",
        ),
        other_keys=OtherKeys.TEXT,
    )
