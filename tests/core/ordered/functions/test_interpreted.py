"""Functions that users write in Python: in the serial run and the model, and refused by threads."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.chain import Operator, PythonFunction
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.serial import run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.model.model import run_model
from tests.core.ordered.chains import bound, counting, partitioned


def second_times(value: int, state: dict[Any, Any]) -> Iterator[int]:
    """Every second tuple of a key, with the sum of the values so far."""
    state["sum"] = state.get("sum", 0) + value
    state["seen"] = state.get("seen", 0) + 1
    if state["seen"] % 2 == 0:
        yield state["sum"]


def operator(call: Any, kind: OperatorKind = OperatorKind.PARTITIONED) -> Operator:
    keyed = {"key": "key", "partitions": 4} if kind is OperatorKind.PARTITIONED else {}
    return Operator("own", kind, cost=2.0, selectivity=0.5, function=PythonFunction("mine:own", call), **keyed)


def kept(chain: BoundChain) -> list[int]:
    return [row[-1] for row in run_serially(chain, keep=1000).kept]


def test_each_key_has_a_state_of_its_own() -> None:
    chain = bound([operator(second_times)], 60, keys=3)
    sums, seen, expected = [0] * 3, [0] * 3, []
    for key, value in chain.tuples.tolist():
        sums[key] += value
        seen[key] += 1
        if seen[key] % 2 == 0:
            expected.append(sums[key])
    assert kept(chain) == expected


def test_a_stateful_one_has_one_state_and_a_stateless_one_none() -> None:
    assert kept(bound([operator(second_times, OperatorKind.STATEFUL)], 6)) == [1, 6, 15]
    assert kept(bound([operator(second_times, OperatorKind.STATELESS)], 6)) == []


def test_values_are_words_of_64_bits() -> None:
    assert kept(bound([operator(lambda value, _: [value - 1, 2**64 + value], OperatorKind.STATELESS)], 2)) == [
        2**64 - 1,
        0,
        0,
        1,
    ]


def test_the_model_runs_it_by_its_cost_and_selectivity() -> None:
    chain = bound([operator(second_times), counting("c")], 1000)
    done = run_model(chain, RunSettings(), Contention(), np.random.default_rng(1), (2.0, 0.0)).run
    assert done.elapsed_s == pytest.approx(1000 * 2e-6)
    assert done.operators[0].outputs == pytest.approx(500, abs=80)


def test_threads_refuse_it_and_say_what_runs_it() -> None:
    with pytest.raises(UsageError) as refused:
        run_by_workers(bound([partitioned("b"), operator(second_times)], 10), RunSettings(), pace=1)
    for part in ("operator 'own' runs mine:own, a Python function", "backend sim", "serial run", "work, count"):
        assert part in str(refused.value)


def endless(value: int, state: dict[Any, Any]) -> Iterable[int]:
    return range(1 << 16)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda value, _: [1 // value], "operator .own.: mine:own failed on the value 0: ZeroDivisionError"),
        (lambda *_: None, "mine:own failed on the value 0: TypeError"),
        (endless, "mine:own gives 65536 outputs for the value 0"),
    ],
)
def test_one_that_fails_is_named_with_the_value(call: Any, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        run_serially(bound([operator(call, OperatorKind.STATELESS)], 3))
