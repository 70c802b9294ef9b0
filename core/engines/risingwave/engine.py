"""The definition of RisingWave."""

from functools import partial

from adapt.core.engines.engine import EngineDefinition, WorkUnits
from adapt.core.engines.placement import hash_of_column
from adapt.core.engines.risingwave.scheme import VNODES, RisingWavePartitioner, risingwave_hash
from adapt.core.stream import KeyType

ENGINE = EngineDefinition(
    title="RisingWave",
    hash=partial(hash_of_column, risingwave_hash),
    hash_title="CRC-32 of the key's bytes as in Rust's `Hash`",
    placement=lambda channels, _: RisingWavePartitioner(channels),
    export=None,
    channel="actor of a fragment",
    worker="actor",
    default_channels=4,
    channels_setting="streaming_parallelism",
    key_groups=None,
    null_key="The vnode of a word of its own (0xFFFFFFF0).",
    empty_key="The vnode of its hash.",
    rescale="Whole vnodes move between actors, without a restart. Here ranges are as of a new fragment.",
    units=WorkUnits(
        name="vnodes",
        short="vnodes",
        workers="actors",
        count="parallelism",
        default=lambda _: VNODES,
        most=VNODES,
        note="The number of vnodes of a fragment is fixed when it is made (`streaming_max_parallelism`).",
    ),
    key_types=frozenset({KeyType.INT16, KeyType.INT32, KeyType.INT64}),
)
