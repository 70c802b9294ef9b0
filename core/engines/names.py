"""The names of what a plan is exported for; light enough for `--help`."""

from enum import StrEnum


class Target(StrEnum):
    """What runs an exported plan."""

    SPARK = "spark"
    """Spark, batch and streaming, by columns of its own."""

    KAFKA = "kafka"
    """Producers of Kafka in Python."""

    FLINK = "flink"
    """Flink's keyed state, by key groups."""

    PLAN = "plan"
    """A program in any language: the plan as text, and a reader of it in Java."""
