"""Lengths of periods and windows: in time (7d) or in rows (1000rows)."""

from dataclasses import dataclass

from adapt.core.errors import UsageError
from adapt.core.units.durations import duration_text, duration_us


@dataclass(frozen=True, slots=True)
class Length:
    """Length of a period or window, in time or in rows."""

    size: int  # microseconds, or rows; at least 1
    in_rows: bool = False  # whether the size is in rows

    def __post_init__(self) -> None:
        if not 1 <= self.size < 2**63:
            raise UsageError(f"a length must be above 0 and fit 64 bits (got {self})")

    @classmethod
    def parse(cls, text: str, what: str = "--period") -> "Length":
        """Read a length in time (7d, 500ms) or in rows (1000rows).

        Args:
            what: The option or field it comes from, which an error begins with.
        """
        given = text.strip().lower()
        number = given.removesuffix("rows").removesuffix("row").rstrip()
        whole = number.isascii() and number.isdigit() and len(number) < 19
        if whole and number == given and int(number):
            raise UsageError(f"{what} {number} needs a unit: {number}rows or {number}h?")
        try:
            size = int(number) if whole else duration_us(text)
        except UsageError as error:
            raise UsageError(f"{what} {error}, or a number of rows such as 1000rows") from error
        if not size:
            raise UsageError(f"{what} must be above 0 (got {text})")
        return cls(size, in_rows=whole)

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.size}rows" if self.in_rows else duration_text(self.size)
