"""The loop of a user: edit one of a chain's operators, and run it again in a new process with the kept machine code."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from tests.tiers import SOAK

OPERATORS = """
from collections.abc import Iterator
from typing import NamedTuple

class Row(NamedTuple):
    ts: int
    value: int

class Mean(NamedTuple):
    ts: int
    value: int
    mean: float

def scaled(value):
    return {0} * value

def repeated(ts: int) -> Iterator[Row]:
    for number in range(ts % {1} + 1):
        yield Row(ts, scaled(ts) + number)
        if number % 3 == 0:
            yield Row(ts + 1, scaled(number))

class Means:
    rows: int
    total: float

    def step(self, ts: int, value: int) -> Iterator[Mean]:
        self.rows += 1
        self.total += value % {2}
        for number in range(value % 3):
            if number % {3} == 0:
                yield Mean(ts, number, self.total / self.rows)
        if self.rows % {3}:
            yield Mean(ts, value, self.total / self.rows)
"""

SCRIPT = """
import sys
import numpy as np, pyarrow as pa
from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.chain.own import own_function
from adapt.core.ordered.engine.reference import run_serially
import mine

kinds = {"repeated": OperatorKind.STATELESS, "Means": OperatorKind.STATEFUL}
functions = [own_function(f"mine:{name}", getattr(mine, name)) for name in kinds]
operators = [Operator(of.name, kind, function=of) for of, kind in zip(functions, kinds.values())]
chain = bind(Chain(tuple(operators)), {"ts": pa.array(np.arange(200))})
plain = run_serially(chain).egress
assert plain.tuples
assert run_serially(chain, compiled=True).egress == plain
if sys.argv[1:]:
    from adapt.core.ordered.engine.settings import RunSettings
    from adapt.core.ordered.engine.threads import run_by_workers
    assert run_by_workers(chain, RunSettings(2), pace=1).egress == plain
"""


def test_a_chain_of_which_one_operator_is_edited_gives_what_plain_python_gives(tmp_path: Path) -> None:
    random, numbers = Random(1), [2, 3, 5, 4]
    places = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for edit in range(101 if SOAK else 3):
        (tmp_path / "mine.py").write_text(OPERATORS.format(*numbers))
        subprocess.run([sys.executable, "-c", SCRIPT, *["threads"] * SOAK], env=places, check=True)
        place = random.randrange(4) if edit > 3 else 2 * (edit % 2)  # first the one and the other, by turns
        numbers[place] = random.randrange(2, 100)
