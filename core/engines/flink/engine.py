"""Flink, as adapt knows it."""

from adapt.core.engines.engine import EngineDefinition, KeyGroupLimits, WorkUnits
from adapt.core.engines.flink.export import flink_bundle
from adapt.core.engines.flink.hash import flink_hash
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.partitioning.schemes.key_groups import MOST_GROUPS, default_max_parallelism

ENGINE = EngineDefinition(
    title="Flink",
    hash=flink_hash,
    hash_title="the hash codes of Java",
    placement=FlinkPartitioner,
    export=flink_bundle,
    channel="subtask",
    worker="subtask",
    default_channels=1,
    channels_setting="parallelism.default",
    key_groups=KeyGroupLimits(default_max_parallelism, MOST_GROUPS, fixed=True),
    null_key="`keyBy` refuses it; adapt places it by hash code 0.",
    empty_key="The key group of its hash code, 0 of the empty `String`.",
    rescale="The job restarts from a savepoint or a checkpoint, and whole key groups change their subtask. The number"
    " of key groups (max parallelism) is fixed at the first start.",
    units=WorkUnits(
        name="key groups",
        short="groups",
        workers="subtasks",
        count="parallelism",
        default=default_max_parallelism,
        most=MOST_GROUPS,
        note="A running job keeps its max parallelism: state that was written with another is not restored.",
    ),
)
