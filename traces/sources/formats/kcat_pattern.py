"""Parser for the format strings of `kcat -f`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from adapt.core.errors import UsageError

COLUMNS = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "T": "ts",
    "h": "headers",
    "k": "key",
    "K": "key_size",
    "s": "payload",
    "S": "payload_size",
    "R": "payload_size",
}
"""Column of each kcat formatter."""

SIZES = {"key": "key_size", "payload": "payload_size"}
"""Column with the size of another; -1 for null."""

_NUMBERS = ("partition", "offset", "ts", "key_size", "payload_size")


class Kind(IntEnum):
    """How a piece of a pattern is read."""

    LITERAL = 0
    NUMBER = 1
    SIZE = 2  # a big-endian number of 4 bytes
    TEXT = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a pattern.

    Attributes:
        kind: How it is read.
        column: Its column; empty for a literal.
        literal: Its bytes.
        sized: For text: whether its size comes before it.
    """

    kind: Kind
    column: str = ""
    literal: bytes = b""
    sized: bool = False


def pieces_of(pattern: str) -> tuple[Piece, ...]:
    r"""The pieces of a pattern, in order, with adjacent literals merged.

    Raises:
        UsageError: a formatter is unknown or repeated, there is none, or the end of a text field is ambiguous.
    """
    pieces: list[Piece] = []
    known: set[str] = set()
    for found in re.finditer(r"%(.?)|[^%]+", pattern, re.DOTALL):
        letter = found.group(1)
        if letter is None or letter == "%":
            literal = b"%" if letter else bytes(_unescaped(found.group()))
            if pieces and pieces[-1].kind is Kind.LITERAL:
                literal = pieces.pop().literal + literal
            pieces.append(Piece(Kind.LITERAL, literal=literal))
            continue
        if letter not in COLUMNS:
            raise UsageError(f"--kcat-format has an unknown formatter %{letter}; available: %{', %'.join(COLUMNS)}, %%")
        column = COLUMNS[letter]
        if column in known:
            raise UsageError(f"--kcat-format has {column} twice (%{letter}); give each field once")
        kind = Kind.SIZE if letter == "R" else Kind.NUMBER if column in _NUMBERS else Kind.TEXT
        if pieces and kind in (pieces[-1].kind, Kind.NUMBER) and pieces[-1].kind is Kind.NUMBER:
            raise UsageError(f"--kcat-format needs a separator between the numbers {pieces[-1].column} and {column}")
        pieces.append(Piece(kind, column, sized=SIZES.get(column) in known))
        known.add(column)
    if not known:
        raise UsageError(r"--kcat-format has no formatter; give the format of kcat -f, such as '%T %p %o %k %s\n'")
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        if piece.kind is Kind.TEXT and not piece.sized and (following is None or following.kind is not Kind.LITERAL):
            raise UsageError(
                f"--kcat-format does not show where {piece.column} ends; add a separator after it (such as \\n), or its"
                " size before it (%K %k, %S %s)"
            )
    if pieces[-1].kind is Kind.NUMBER:
        raise UsageError(r"--kcat-format ends with a number, which the next record would continue; end it with \n")
    return tuple(pieces)


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*)|(.))", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r"}


def _unescaped(text: str) -> Iterator[int]:
    """Bytes of a literal with kcat's escapes: numbers as in C, cut to a byte."""
    at = 0
    for found in _ESCAPE.finditer(text):
        yield from text[at : found.start()].encode()
        at = found.end()
        sixteen, eight, ten, letter = found.groups()
        if letter is not None:
            yield from _NAMED.get(letter, letter).encode()
        else:
            yield (int(sixteen, 16) if sixteen else int(eight, 8) if eight else int(ten)) & 0xFF
    yield from text[at:].encode()
