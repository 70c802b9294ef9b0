"""The spark scheme: where Spark SQL puts a key when it shuffles by it."""

from adapt.core.engines.modulo import HashModulo
from adapt.core.engines.spark.hash import spark_hash


class SparkPartitioner(HashModulo):
    """The placement of `repartition(N, key)`, `groupBy(key)` and joins, bit for bit: pmod(hash(key), N).

    It holds for one key column of string, binary or bigint; an int column hashes otherwise. Null is where its hash, 42,
    is.

    Raises:
        UsageError: there is no channel, or 2^31 or more.

    Source: users and peers, section 5.1; held against a live Spark session by the tests.
    """

    __slots__ = ()
    hash = staticmethod(spark_hash)
