"""Weighted sums of the rows that an aggregate gets."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.network.network import Operator
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.running.window_drop import windows_at

MOST_RESULTS = 5_000_000
"""Limit of results of an aggregate, which must all fit in memory."""

_FOLDED = 1 << 16
"""Rows collected before they are summed."""

Live: TypeAlias = Callable[[Indices], NDArray[np.bool_]]
"""Whether windows of these numbers are kept."""


class Sample:
    """Weighted sums of rows, by window and group.

    Every row has the weight w = 1 / the probability that it was kept, and v = w^2 - w, its part of the variance of a
    sum of weights. Where whole windows are dropped, the rows of the others are complete and weigh 1.

    Source: Horvitz and Thompson, 1952: sums of weights are unbiased, and so is this estimate of their variance.
    """

    def __init__(self, operator: Operator, numbers: Sequence[str], groups: Sequence[str]) -> None:
        """An aggregate's sample, without rows yet.

        Args:
            numbers: The first columns of values.
            groups: Those after them.
        """
        assert operator.window is not None
        self._operator, self._window = operator.name, operator.window
        self._columns = {
            each.column: numbers.index(each.column) for each in operator.computes if each.column is not None
        }
        by = operator.window.group_by
        self._group = None if by is None else len(numbers) + groups.index(by)
        names = [f"{what} {column}" for column in self._columns for what in ("w", "v", "wx", "vx", "vxx")]
        extremes = [(f"{what} {column}", what) for column in self._columns for what in ("min", "max")]
        self._how = [(name, "sum") for name in ("rows", "w", "v", *names)] + extremes
        self._sums: pa.Table | None = None
        self._new: list[pa.Table] = []
        self.variances: dict[str | None, float] = dict.fromkeys((None, *self._columns), 0.0)
        """Of the total over all results, of counts and of the sums of columns."""

    def add(self, at_us: NDArray[np.int64], values: Floats, weights: Floats, live: Live | None = None) -> None:
        """Rows that the aggregate has processed.

        Args:
            at_us: Arrival, in microseconds since the start; shape (rows,).
            values: Shape (rows, columns).
            weights: Shape (rows,); ignored where windows are dropped.
            live: Where windows are dropped: which are kept.

        Raises:
            BadInput: there are too many results.
        """
        first, last = windows_at(self._window, at_us)
        of_row = last - first + 1
        rows = np.repeat(np.arange(len(at_us)), of_row)
        windows = np.arange(len(rows)) - np.repeat(np.cumsum(of_row) - of_row, of_row) + first[rows]
        if live is not None:
            kept = live(windows)
            rows, windows, weights = rows[kept], windows[kept], np.ones(len(at_us))
        spread = weights * weights - weights
        self.variances[None] += float(spread @ of_row.astype(float) ** 2)
        cells = {
            "window": windows,
            "group": values[rows, self._group].astype(np.int64) if self._group is not None else np.zeros_like(windows),
            "rows": np.ones(len(rows)),
            "w": weights[rows],
            "v": spread[rows],
        }
        for column, at in self._columns.items():
            x = values[:, at]
            there = np.isfinite(x)
            w, v, x_or_0 = weights * there, spread * there, np.where(there, x, 0.0)
            self.variances[column] += float(spread @ (of_row * x_or_0) ** 2)
            by_row = {"w": w, "v": v, "wx": w * x_or_0, "vx": v * x_or_0, "vxx": v * x_or_0 * x_or_0}
            extremes = {"min": np.where(there, x, np.inf), "max": np.where(there, x, -np.inf)}
            cells.update({f"{what} {column}": each[rows] for what, each in {**by_row, **extremes}.items()})
        self._new.append(pa.table(cells).select(["window", "group", *(name for name, _ in self._how)]))
        if sum(len(each) for each in self._new) >= max(_FOLDED, 0 if self._sums is None else len(self._sums)):
            self._fold()

    def keep(self, live: Live) -> None:
        """Leave out results of windows that are not kept after all."""
        self._fold()
        if self._sums is not None:
            self._sums = self._sums.filter(pa.array(live(self._sums.column("window").to_numpy())))

    def results(self) -> dict[str, NDArray[Any]]:
        """The sums, one per window and group in this order."""
        self._fold()
        if self._sums is None:
            return {name: np.zeros(0) for name in ("window", "group", *(name for name, _ in self._how))}
        ordered = self._sums.sort_by([("window", "ascending"), ("group", "ascending")])
        return {name: ordered.column(name).to_numpy() for name in ordered.column_names}

    def _fold(self) -> None:
        """Add up what is new."""
        if not self._new:
            return
        table = pa.concat_tables([*([] if self._sums is None else [self._sums]), *self._new])
        summed = table.group_by(["window", "group"], use_threads=False).aggregate(self._how)
        named = summed.rename_columns({f"{name}_{what}": name for name, what in self._how})
        self._sums = named.select(["window", "group", *(name for name, _ in self._how)])
        self._new = []
        if len(self._sums) > MOST_RESULTS:
            raise BadInput(
                f"operator {self._operator!r} has more than {MOST_RESULTS:,} results in this trace; give its window a "
                "longer slide, or group by a column with fewer values"
            )
