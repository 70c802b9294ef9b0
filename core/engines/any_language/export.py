"""Export of plans as text, with a reader in Java."""

from adapt.core.engines.exporter import Bundle, ExportablePlan, Program

_USE = """\
`plan.txt` has all that a reader needs. docs/plan-format.md describes its format, with test vectors for readers.
`PlanReader.java` is a reader for Java 17 or later without dependencies: it reads keys in hex, one per line, and prints
their channels.

    printf '%s\n' 616263 null | java {folder}/PlanReader.java {folder}/plan.txt

Keys are the hashed bytes: UTF-8 of text, 8 bytes little-endian of an integer. `Splitter.java`, another class without
dependencies, routes by a plan that changes: it continues a splitter that `adapt.write_splitter` saved.
"""

READER = Program("reader of plan.txt in Java", __package__, "PlanReader.java")

SPLITTER = Program("counts, routes and plans anew in Java", __package__, "Splitter.java")


def plan_bundle(plan: ExportablePlan, max_parallelism: int | None) -> Bundle:  # noqa: ARG001 - unused
    """The plan alone, with a reader and a splitter in Java."""
    return Bundle({}, _USE, {each.file: each for each in (READER, SPLITTER)})
