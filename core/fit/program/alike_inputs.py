"""Alike inputs, which a planner adds up and treats as one."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program, Scaled

_ALIKE = 1e-12
"""Relative difference up to which inputs count as alike."""


@dataclass(frozen=True, slots=True, eq=False)
class AlikeInputs:
    """The inputs of a program by set of alike ones.

    Tuples of alike inputs load every node and link and score the same, up to a factor, on each of their arcs. So the
    best score depends only on the sum of their rates times factors: what any plan keeps of them is as well kept as the
    same share of each.
    """

    inputs: Indices  # numbers of the inputs with variables, shape (inputs,)
    first: Indices  # number of the first input of each set, ascending, shape (sets,)
    set_of: Indices  # the set of each input, shape (inputs,)
    factor: Floats  # tuples of the first input of the set that one tuple is like, shape (inputs,)
    arcs: tuple[Indices, ...]  # the arcs of each input, those that are alike at the same place; by input

    @classmethod
    def from_program(cls, program: Program) -> "AlikeInputs":
        """The alike inputs of a program."""
        scaled = Scaled.from_program(program)
        columns = (np.concatenate((scaled.rows, scaled.weights[None])) / scaled.unit).T
        inputs = np.unique(program.input_of[program.input_of >= 0])
        sets: dict[bytes, int] = {}
        set_of, sizes = np.zeros(len(inputs), np.int64), np.ones(len(inputs))
        first: list[int] = []
        arcs: list[Indices] = []
        for at, entering in enumerate(inputs):
            variables = np.flatnonzero(program.input_of == entering)
            mine = columns[variables]
            sizes[at] = np.abs(mine).max() or 1.0
            rounded = np.round(mine / sizes[at] / _ALIKE) + 0.0
            by_size = np.lexsort(rounded.T)
            arcs.append(program.drop_arcs[variables[by_size]])
            key = rounded[by_size].tobytes()
            if key not in sets:
                sets[key] = len(first)
                first.append(at)
            set_of[at] = sets[key]
        order = np.array(first, np.int64)
        return cls(inputs, inputs[order], set_of, sizes / sizes[order[set_of]], tuple(arcs))
