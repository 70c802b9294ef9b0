"""The names by which generators are chosen; light enough for `--help`."""

from enum import StrEnum


class GeneratorName(StrEnum):
    """A synthetic keyed stream."""

    ZIPF = "zipf"
    """Keys by a Zipf distribution that stays, at a rate that stays."""
