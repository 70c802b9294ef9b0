"""The definition of Spark."""

from adapt.core.engines.engine import EngineDefinition, OtherKeys, WorkUnits
from adapt.core.engines.spark.export import spark_bundle
from adapt.core.engines.spark.hash import spark_hash
from adapt.core.engines.spark.scheme import SparkPartitioner
from adapt.core.engines.unit_owners import in_turn

_DEFAULT = 200

ENGINE = EngineDefinition(
    title="Spark",
    hash=spark_hash,
    hash_title="`hash` of Spark SQL",
    placement=lambda channels, _: SparkPartitioner(channels),
    export=spark_bundle,
    channel="shuffle partition",
    worker="task slot",
    default_channels=_DEFAULT,
    channels_setting="spark.sql.shuffle.partitions",
    key_groups=None,
    null_key="The partition of hash 42, the seed.",
    empty_key="The partition of its hash.",
    rescale="A batch may use another number of partitions in each run. A stateful streaming query restarts from its"
    " checkpoint, which fixes the number of partitions.",
    units=WorkUnits(
        name="shuffle partitions",
        short="partitions",
        workers="task slots",
        count="slots",
        default=lambda _: _DEFAULT,
        most=None,
        note="A free slot takes the next partition; equal partitions take as many rounds as the busiest slot has.",
        owners=in_turn,
    ),
    other_keys=OtherKeys.EXACT,
)
