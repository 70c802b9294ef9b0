"""The names by which generators are chosen; light enough for `--help`."""

from enum import StrEnum


class GeneratorName(StrEnum):
    """A synthetic keyed stream."""

    ZIPF = "zipf"
    """Zipf keys."""

    SELF_SIMILAR = "self-similar"
    """20 % of the keys have 80 % of the rows, and of those again."""
