"""Tables on a terminal, legible at 80 columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

from adapt.core.labels import breakable, headed
from adapt.core.report.transposed import upright
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import is_numeric, shown, visible

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Paragraph: TypeAlias = Sequence[str]
"""A heading, and sentences under it."""

_GAP = 2
_LEAST_BAR = 6
NEXT = "Next: "
"""What a note that ends with a command to run begins with."""

_MOST_BAR = 60
_EIGHTHS = " ▏▎▍▌▋▊▉"
_NARROW_TEXT = 16
_LONGEST_CELL = 400
_MOST_LEADING = 3


def terminal_text(tables: Sequence[Table], out: TextIO, lead: Sequence[Paragraph] = ()) -> str:
    """The tables as wide as `out`, in color if it supports colors.

    The first sentence of each leading paragraph is bold.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        for number, (heading, *sentences) in enumerate(lead):
            if number:
                console.print()
            console.print(Text(visible(heading), style="bold"))
            for sentence in sentences:
                console.print(Text(visible(sentence)))
        for number, table in enumerate(map(upright, tables)):
            if number or lead:
                console.print()
            console.print(Text(visible(table.title), style="bold"))
            for block in blocks(table, console.width):
                console.print()
                console.print(_drawn(block, bool(table.rows)))
            if not table.rows:
                console.print(Text("no rows", style="dim"))
            if table.note:
                console.print()
                is_command = table.note.startswith(NEXT)  # kept on one line, so that it pastes whole
                console.print(Text(visible(table.note), style="dim"), soft_wrap=is_command)
    return "".join(line.rstrip(" ") + "\n" for line in captured.get().splitlines())


@dataclass(frozen=True, slots=True)
class Strip:
    """One column as drawn: cell texts and widths."""

    column: Column
    cells: tuple[str, ...]
    width: int
    lengths: tuple[float, ...] = ()
    """Lengths of the bars next to the cells, from 0 to 1; empty without bars."""

    def natural(self) -> int:
        """The width at which no cell folds."""
        return max((_cells_wide(cell) for cell in self.cells), default=0)

    def lines(self) -> int:
        """The lines of its longest cell, at least."""
        return max(1, -(-self.natural() // max(self.width, 1)))

    def least(self) -> int:
        """The least legible width: only text may fold."""
        is_whole = is_numeric(self.column.kind) or self.column.kind is Kind.TIME
        natural = self.natural() if is_whole else min(self.natural(), _NARROW_TEXT)
        return max(natural, *(_cells_wide(piece) for piece in self._pieces()))

    def heading(self) -> str:
        """The column's name, folded after underscores and spaces to the width."""
        lines = [""]
        for piece in self._pieces():
            if lines[-1] and _cells_wide(lines[-1] + piece.rstrip()) > self.width:
                lines.append("")
            lines[-1] += piece
        return "\n".join(line.rstrip() for line in lines)

    def named(self) -> int:
        """The width at which the name stays on one line."""
        return _cells_wide("".join(self._pieces()).rstrip())

    def wide(self, width: int) -> "Strip":
        """The same column at another width."""
        return replace(self, width=width)

    def with_bars(self, room: int) -> "Strip":
        """The column with bars next to its numbers, as long as fits."""
        wide = min(room - 1, _MOST_BAR)
        if wide < _LEAST_BAR:
            return self
        drawn = (_bar(length, wide) for length in self.lengths)
        cells = (f"{cell:>{self.width}} {bar:<{wide}}" for cell, bar in zip(self.cells, drawn, strict=True))
        return Strip(self.column, tuple(cells), self.width + 1 + wide)

    def _pieces(self) -> list[str]:
        return breakable(headed(self.column))


def blocks(table: Table, width: int) -> list[list[Strip]]:
    """Blocks of columns that fit `width`, starting with the identifying columns."""
    strips = [_strip(table, at) for at in range(len(table.columns))]
    leading = strips[: _leading(table)]
    parts: list[list[Strip]] = [list(leading)]
    for strip in strips[len(leading) :]:
        if len(parts[-1]) > len(leading) and _taken([*parts[-1], strip]) > width:
            parts.append(list(leading))
        parts[-1].append(strip)
    return [_grown(part, width) for part in parts]


def _strip(table: Table, at: int) -> Strip:
    column = table.columns[at]
    lengths: tuple[float, ...] = ()
    if column.bar:
        drawn = [_height(row[each]) for row in table.rows for each, other in enumerate(table.columns) if other.bar]
        longest = max(drawn, default=0.0) or 1.0
        lengths = tuple(_height(row[at]) / longest for row in table.rows)
    strip = Strip(column, tuple(shown(row[at], column, _LONGEST_CELL) for row in table.rows), 0, lengths)
    return strip.wide(strip.least())


def _height(cell: Cell) -> float:
    return float(cell) if isinstance(cell, (int, float)) and cell > 0 else 0.0


def _bar(length: float, wide: int) -> str:
    """A bar, to an eighth of a character."""
    eighths = round(8 * length * wide)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _leading(table: Table) -> int:
    """How many first columns identify the rows: one to three, never all."""
    most = max(1, min(_MOST_LEADING, len(table.columns) - 1))
    for count in range(1, most):
        if len({row[:count] for row in table.rows}) == len(table.rows):
            return count
    return min(most, len(table.columns))


def _taken(strips: Sequence[Strip]) -> int:
    return sum(strip.width for strip in strips) + _GAP * (len(strips) - 1)


def _grown(strips: list[Strip], width: int) -> list[Strip]:
    """Spare width given to folded cells, the most folded first, then to folded names."""
    while (room := width - _taken(strips)) > 0:
        at = max(range(len(strips)), key=lambda each: strips[each].lines())
        lines = strips[at].lines()
        if lines == 1:
            break
        strips[at] = strips[at].wide(min(strips[at].width + room, -(-strips[at].natural() // (lines - 1))))
    for at, strip in enumerate(strips):
        room = width - _taken(strips)
        strips[at] = strip.wide(max(strip.width, min(strip.named(), strip.width + max(0, room))))
    barred = [at for at, strip in enumerate(strips) if strip.lengths]
    room = (width - _taken(strips)) // max(len(barred), 1)
    for at in barred:
        strips[at] = strips[at].with_bars(room)
    return strips


def _drawn(strips: Sequence[Strip], has_rows: bool) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        box=box.SIMPLE_HEAD if has_rows else None, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0)
    )
    for strip in strips:
        is_barred = strip.column.bar and not strip.lengths
        side: Literal["right", "left"] = "right" if is_numeric(strip.column.kind) and not is_barred else "left"
        heading = Text(strip.heading(), style="bold", justify=side)
        drawn.add_column(heading, justify=side, width=strip.width, overflow="fold", vertical="top")
    for row in zip(*(strip.cells for strip in strips), strict=True):
        drawn.add_row(*(Text(cell, overflow="fold") for cell in row))
    return drawn


def _cells_wide(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
