"""Names of the generators, light enough for `--help`."""

from enum import StrEnum


class GeneratorName(StrEnum):
    """A synthetic keyed stream."""

    CALLS = "calls"
    """Calls between mobile phones, some of which are cloned."""

    CLICKS = "clicks"
    """User sessions in a web shop."""

    PACKETS = "packets"
    """Self-similar bursts, as of network packets."""

    SALES = "sales"
    """Lines of shop tickets."""

    ZIPF = "zipf"
    """Zipf keys."""

    SELF_SIMILAR = "self-similar"
    """Keys of which 20 % get 80 % of the rows, at every scale."""
