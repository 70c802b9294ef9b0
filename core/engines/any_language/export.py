"""A plan for any language: as text, with a reader to begin with."""

from adapt.core.engines.bundle import Bundle, Program
from adapt.core.engines.exporter import ExportablePlan

_USE = """\
`plan.txt` says all that a reader needs; its format is described in docs/plan-format.md, with keys and their channels
to test a reader by. `PlanReader.java` is one, for Java 17 or later and nothing else: keys in hex, a line each, in;
their channels out.

    printf '%s\n' 616263 null | java {folder}/PlanReader.java {folder}/plan.txt

Keys are the bytes that are hashed: UTF-8 of text, 8 bytes little-endian of an integer. Where a plan only says what an
engine does by itself (schemes kafka, spark and flink), the reader leaves it to the engine.
"""

READER = Program("reads plan.txt, in Java", __package__, "PlanReader.java")


def plan_bundle(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:  # noqa: ARG001 - the plan is as it is
    """The plan alone, with a reader in Java."""
    return Bundle({}, _USE, {READER.file: READER})
