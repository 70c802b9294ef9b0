"""The names by which generators are chosen; light enough for `--help`."""

from enum import StrEnum


class GeneratorName(StrEnum):
    """A synthetic keyed stream."""

    CLICKS = "clicks"
    """Clicks of users in a shop on the web, in sessions."""

    SALES = "sales"
    """Lines of tickets in shops."""

    ZIPF = "zipf"
    """Zipf keys."""

    SELF_SIMILAR = "self-similar"
    """20 % of the keys have 80 % of the rows, and of those again."""
