"""Options of commands that start Spark."""

import pytest

from adapt.cli.options.spark import Spark
from adapt.core.errors import UsageError


def test_a_spark_setting_is_a_name_and_a_value_that_may_hold_the_sign():
    options = Spark("local[2]", spark_conf=["spark.a=1", "spark.b=x=y", "spark.c="]).options()
    assert options.conf == {"spark.a": "1", "spark.b": "x=y", "spark.c": ""}
    for wrong in ("spark.a", "=1"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            Spark("local[2]", spark_conf=[wrong]).options()
