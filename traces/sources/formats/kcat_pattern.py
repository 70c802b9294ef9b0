"""The patterns of `kcat -f`, taken apart: what stands between fields, and which field is as long as another says."""

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
"""What each of kcat's formatters prints, by the column that it becomes."""

SIZES = {"key": "key_size", "payload": "payload_size"}
"""The column that tells how long another is; -1 for null."""

_NUMBERS = ("partition", "offset", "ts", "key_size", "payload_size")


class Kind(IntEnum):
    """How a piece of a pattern is read."""

    LITERAL = 0
    NUMBER = 1
    SIZE = 2  # a number of 4 bytes, the highest first
    TEXT = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a pattern.

    Attributes:
        kind: How it is read.
        column: The column that it becomes; empty for a literal.
        literal: The bytes that stand there.
        sized: Of text: whether its size stands before it.
    """

    kind: Kind
    column: str = ""
    literal: bytes = b""
    sized: bool = False


def pieces_of(pattern: str) -> tuple[Piece, ...]:
    r"""The pieces of a pattern, in order; literals are never neighbours.

    Raises:
        UsageError: it has a formatter that kcat does not know, none at all, one twice, or text of which nothing tells
            where it ends.
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
            raise UsageError(f"--kcat-format has %{letter}, which is none of kcat's: %{', %'.join(COLUMNS)}, %%")
        column = COLUMNS[letter]
        if column in known:
            raise UsageError(f"--kcat-format has {column} twice (%{letter}); name each once")
        kind = Kind.SIZE if letter == "R" else Kind.NUMBER if column in _NUMBERS else Kind.TEXT
        if pieces and kind in (pieces[-1].kind, Kind.NUMBER) and pieces[-1].kind is Kind.NUMBER:
            raise UsageError(f"--kcat-format has nothing between {pieces[-1].column} and {column}; both are numbers")
        pieces.append(Piece(kind, column, sized=SIZES.get(column) in known))
        known.add(column)
    if not known:
        raise UsageError(r"--kcat-format has no formatter; give what kcat -f was given, such as '%T %p %o %k %s\n'")
    for piece, following in zip(pieces, [*pieces[1:], None], strict=True):
        if piece.kind is Kind.TEXT and not piece.sized and (following is None or following.kind is not Kind.LITERAL):
            raise UsageError(
                f"--kcat-format does not tell where {piece.column} ends; put something behind it that does not come in"
                r" it (\n at the end), or its size before it (%K %k, %S %s)"
            )
    if pieces[-1].kind is Kind.NUMBER:
        raise UsageError(r"--kcat-format ends with a number, to which the next record would be joined; end it with \n")
    return tuple(pieces)


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*)|(.))", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r"}


def _unescaped(text: str) -> Iterator[int]:
    """The bytes that kcat makes of a literal: numbers as C reads them, cut to a byte."""
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
