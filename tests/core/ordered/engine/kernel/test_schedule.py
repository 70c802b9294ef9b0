"""The choice of an operator, against a literal scheduler in Python on random states of the memory."""

import random
from typing import Any

from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.kernel.layout import HEADER
from adapt.core.ordered.engine.memory import Memory
from adapt.core.ordered.engine.settings import RunSettings
from tests.core.ordered.chains import bound, stateful, stateless
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
    return best(ready, heuristic)


def test_it_is_that_of_a_literal_scheduler() -> None:
    choose, chosen = plain_schedule(), set()
    for seed in range(200):
        draw = random.Random(seed)
        of = [stateless(f"s{n}") if draw.random() < 0.7 else stateful(f"k{n}") for n in range(draw.randint(1, 6))]
        heuristic, limit, workers = draw.choice(list(Heuristic)), draw.choice([1, 60, 1000]), 3
        settings = RunSettings(workers, heuristic=heuristic, qst_limit=limit, lp_minimum=draw.choice([1, 9, 30]))
        memory = Memory(bound(of, 10), settings, 1, 0)
        states = []
        for record in memory.operators:
            state = {
                "waiting": draw.choice([0, 0, *range(1, 60)]),
                "working": draw.randint(0, workers - 1),
                **{name: draw.randint(1, 1_000_000) for name in ("inputs", "outputs", "time_ns", "window_time_ns")},
            }
            for name in ("working", "inputs", "outputs", "time_ns", "window_time_ns"):
                record[name] = state[name]
            record["head"], record["tail"], record["next"] = 100, 100 + state["waiting"], 100
            states.append({**state, "most": record["most_workers"], "slice_ns": SLICE_NS})
            states[-1]["minimum"] = settings.lp_minimum
        expected = literal(states, heuristic, limit)
        assert choose(memory.address, HEADER) == expected, seed
        chosen.add((heuristic, expected))
        memory.release()
    assert len(chosen) > 20
