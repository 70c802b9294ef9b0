"""What an aggregate computes from columns of the rows of its windows."""

import re
from dataclasses import dataclass
from enum import StrEnum

from adapt.core.errors import BadInput, did_you_mean


class Function(StrEnum):
    """A function of the rows of a window or group."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Computed:
    """A function over a column, or the groups where it is highest.

    Examples: avg(price), top(3, count).
    """

    function: Function
    column: str | None = None  # of numbers; None for count
    top: int | None = None  # how many groups; None: the values themselves

    def __str__(self) -> str:
        """As in network files."""
        text = str(self.function) + (f"({self.column})" if self.column else "")
        return f"top({self.top}, {text})" if self.top else text


def computed_of(text: str) -> Computed:
    """Parse "count", "sum(COLUMN)", or "top(3, sum(COLUMN))".

    Raises:
        BadInput: it is something else.
    """
    ranked = re.fullmatch(r"top\(\s*(\d+)\s*,\s*(.+)\)", text.strip())
    top, inner = (int(ranked[1]), ranked[2]) if ranked else (None, text)
    match = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", inner.strip())
    name, column = (match[1], (match[2] or "").strip() or None) if match else (inner, None)
    if name not in [str(function) for function in Function]:
        form = f"there is no function {name!r}{did_you_mean(name, Function)}"
    elif (column is None) != (name == Function.COUNT):
        form = "count takes no column" if column else f"{name} needs a column"
    elif top == 0:
        form = "top needs at least 1 group"
    else:
        return Computed(Function(name), column, top)
    raise BadInput(f'compute {text!r}: {form}; write "count", "sum(COLUMN)" or "top(3, sum(COLUMN))"')
