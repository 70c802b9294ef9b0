"""Lengths of stretches of a stream, in time or in rows, as a user writes them."""

from dataclasses import dataclass

from adapt.core.errors import UsageError
from adapt.core.units.durations import UNITS, duration_text, duration_us


@dataclass(frozen=True, slots=True)
class Length:
    """How long a period, a window or a pane is: so much time, or so many rows.

    Attributes:
        size: Microseconds, or rows; from 1.
        in_rows: Which of the two.

    Raises:
        UsageError: the length is not positive.
    """

    size: int
    in_rows: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.size < 2**63:
            raise UsageError(f"a length of {self} is none; give one from 1 row or 1ms up")

    @classmethod
    def parse(cls, text: str, what: str = "period") -> "Length":
        """A length as a user writes it: a time such as `7d`, `1h` or `500ms`, or rows such as `1000rows` or `1000`.

        Args:
            what: What it is the length of, for the refusal.

        Raises:
            UsageError: it is neither, or nothing.
        """
        digits = text.strip().lower().removesuffix("rows").removesuffix("row").rstrip()
        if digits.isascii() and digits.isdigit() and len(digits) < 20:
            return cls(int(digits), in_rows=True)
        try:
            return cls(duration_us(text))
        except UsageError as error:
            raise UsageError(
                f"{what} {text!r} is neither a length of time (a number and {UNITS}; such as 7d) nor a number of rows"
                f" (such as 1000rows): {error}"
            ) from error

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.size}rows" if self.in_rows else duration_text(self.size)
