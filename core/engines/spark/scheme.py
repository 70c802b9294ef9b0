"""The spark scheme: the placement of a Spark SQL shuffle by key."""

from adapt.core.engines.modulo import HashModulo
from adapt.core.engines.spark.hash import spark_hash


class SparkPartitioner(HashModulo):
    """The exact placement of `repartition(N, key)`, `groupBy(key)` and joins: pmod(hash(key), N).

    For one string, binary or bigint column; int columns have other hashes. Null hashes to 42.

    Raises:
        UsageError: the number of channels is not from 1 to 2^31 - 1.

    Source: users and peers, section 5.1; tested against Spark.
    """

    __slots__ = ()
    hash = staticmethod(spark_hash)
