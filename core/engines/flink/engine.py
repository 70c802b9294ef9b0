"""The definition of Flink."""

from adapt.core.engines.engine import EngineDefinition, KeyGroupLimits, WorkUnits
from adapt.core.engines.flink.export import flink_bundle
from adapt.core.engines.flink.hash import flink_hash
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.unit_owners import in_key_group_ranges
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, default_max_parallelism
from adapt.core.stream import KeyType

ENGINE = EngineDefinition(
    title="Flink",
    hash=flink_hash,
    hash_title="Java's `hashCode`, mixed by MurmurHash3",
    placement=FlinkPartitioner,
    export=flink_bundle,
    channel="subtask",
    worker="subtask",
    default_channels=1,
    channels_setting="parallelism.default",
    key_groups=KeyGroupLimits(default_max_parallelism, MOST_GROUPS, fixed=True),
    null_key="`keyBy` rejects it; adapt uses hash code 0.",
    empty_key="The key group of hash code 0.",
    rescale="The job restarts from a savepoint or checkpoint, and whole key groups move between subtasks. The number"
    " of key groups (max parallelism) is fixed at the first start.",
    units=WorkUnits(
        name="key groups",
        short="groups",
        workers="subtasks",
        count="parallelism",
        default=default_max_parallelism,
        most=MOST_GROUPS,
        note="The max parallelism of a job cannot change: state of another max parallelism cannot be restored.",
        owners=in_key_group_ranges,
    ),
    key_types=frozenset({KeyType.INT8, KeyType.INT16, KeyType.INT32, KeyType.INT64}),
)
