"""The choice of an operator, against a literal scheduler in Python on random states of the memory."""

import random
from dataclasses import replace
from typing import Any

import pytest

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.kernel.layout import HEADER
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.serial import run_serially
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from tests.core.ordered.chains import bound, counting, partitioned, stateful, stateless
from tests.core.ordered.engine.kernel.plain_kernel import plain_schedule

SLICE_NS = 100_000


def literal(operators: list[dict[str, Any]], heuristic: Heuristic, limit: int) -> int:
    """Section 6 as written, over operators that are dictionaries; -1 if none can be scheduled."""
    through, shares = 1.0, []
    for each in operators:
        each["upstream"] = through
        through *= each["outputs"] / each["inputs"]
        each["through"] = through
        shares.append(through)

    def score(number: int, by: Heuristic) -> float:
        each = operators[number]
        cost = max(each["time_ns"] / each["inputs"], 1.0)
        if by is Heuristic.LP:
            return -number if each["waiting"] >= each["minimum"] else len(operators) - number
        if by is Heuristic.QST:
            after = operators[number + 1]["waiting"] if number + 1 < len(operators) else 0
            return number if number + 1 == len(operators) or after <= limit * shares[number] / sum(shares) else 1e300
        if by is Heuristic.ET:
            return -each["waiting"] * cost / (each["working"] + 1)
        spent = each["window_time_ns"] + each["working"] * each["slice_ns"]
        return spent / (cost * max(each["upstream" if by is Heuristic.CT else "through"], 1e-9))

    def best(of: list[int], by: Heuristic) -> int:
        scored = [(score(number, by), number) for number in of]
        return min((each for each in scored if each[0] < 1e300), default=(0, -1))[1]

    ready = [at for at, each in enumerate(operators) if each["waiting"] > 0 and each["working"] < each["most"]]
    teams: dict[Heuristic | None, list[int]] = {}
    for number in ready:
        teams.setdefault(operators[number]["own"], []).append(number)
    rest = [number for own, of in teams.items() for number in (of if own is None else [best(of, own)]) if number >= 0]
    chosen = best(rest, heuristic)
    return chosen if chosen >= 0 else best(ready, heuristic)


def test_it_is_that_of_a_literal_scheduler() -> None:
    choose, chosen = plain_schedule(), set()
    for seed in range(200):
        draw = random.Random(seed)
        of = [stateless(f"s{n}") if draw.random() < 0.7 else stateful(f"k{n}") for n in range(draw.randint(1, 6))]
        some = draw.sample(list(Heuristic), draw.randint(1, 3))
        owns = [draw.choice([None, *some]) for _ in of]
        slices = [draw.choice([None, 1.0, 5_000.0]) for _ in of]
        minimums = [draw.choice([None, 1, 30]) for _ in of]
        of = [
            replace(each, heuristic=own, slice_us=slice_us, lp_minimum=minimum)
            for each, own, slice_us, minimum in zip(of, owns, slices, minimums, strict=True)
        ]
        heuristic, limit, workers = draw.choice(list(Heuristic)), draw.choice([1, 60, 1000]), 3
        settings = RunSettings(workers, heuristic=heuristic, qst_limit=limit, lp_minimum=draw.choice([1, 9]))
        memory = Memory(bound(of, 10), settings, 1, 0)
        states = []
        for at, record in enumerate(memory.operators):
            state = {
                "waiting": draw.choice([0, 0, *range(1, 60)]),
                "working": draw.randint(0, workers - 1),
                **{name: draw.randint(1, 1_000_000) for name in ("inputs", "outputs", "time_ns", "window_time_ns")},
            }
            for name in ("working", "inputs", "outputs", "time_ns", "window_time_ns"):
                record[name] = state[name]
            record["head"], record["tail"], record["next"] = 100, 100 + state["waiting"], 100
            slice_ns = SLICE_NS if slices[at] is None else round(slices[at] * 1000)
            minimum = minimums[at] or settings.lp_minimum
            states.append({**state, "most": record["most_workers"], "own": owns[at], "slice_ns": slice_ns})
            states[-1]["minimum"] = minimum
        expected = literal(states, heuristic, limit)
        assert choose(memory.address, HEADER) == expected, seed
        chosen.add((heuristic, expected))
        memory.release()
    assert len(chosen) > 20


def four(rows: int) -> BoundChain:
    a, b, c, d = stateless("a", 1.5), partitioned("b", 4), counting("c", 3), stateful("d")
    return bound(
        [
            replace(a, heuristic=Heuristic.ET, slice_us=5.0),
            replace(b, heuristic=Heuristic.LP, lp_minimum=5),
            replace(c, heuristic=Heuristic.LP, slice_us=500.0),
            replace(d, heuristic=Heuristic.ET),
        ],
        rows,
        9,
    )


@pytest.mark.parametrize("heuristic", list(Heuristic))
def test_operators_with_heuristics_of_their_own_keep_the_order(heuristic: Heuristic) -> None:
    chain = four(3_000)
    serial = run_serially(chain).egress
    for workers in (1, 3):
        settings = RunSettings(
            workers, heuristic=heuristic, qst_limit=8, queue_capacity=64, ring_buffer=64, checked=True
        )
        assert run_by_workers(chain, settings, pace=1).egress == serial
