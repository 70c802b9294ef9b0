"""The serial run, the reference of every other run."""

from dataclasses import replace

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.mixing import FOLD, folded
from adapt.core.ordered.engine.reference import run_serially
from adapt.core.ordered.functions.registry import FUNCTIONS
from tests.core.ordered.chains import bound, counting, partitioned, stateful, stateless


def in_stages(chain: BoundChain) -> list[tuple[int, ...]]:
    """The same result, one operator at a time over its whole input."""
    rows = [tuple(word % 2**64 for word in row) for row in chain.tuples.tolist()]
    for operator in chain.operators:
        step = FUNCTIONS[operator.operator.function].step(operator)
        rows = [given for row in rows for given in step(row)]
    return rows


def test_a_chain_gives_what_its_operators_give_one_after_the_other() -> None:
    chain = bound([stateless("a", 1.5), partitioned("b"), stateless("c", 0.4), stateful("d", 2.0)], 500)
    run = run_serially(chain, keep=10_000)
    assert list(run.kept) == in_stages(chain)
    assert run.egress.tuples == len(run.kept)
    assert run_serially(chain, keep=7) == replace(run, kept=run.kept[:7])
    assert run.inputs[0] == 500
    assert run.inputs[3] * 2 == len(run.kept)


def test_counts_are_those_of_the_keys() -> None:
    chain = bound([counting("count")], 300, keys=7)
    seen: dict[int, int] = {}
    for (key, row), (of, count) in zip(chain.tuples.tolist(), run_serially(chain, keep=300).kept, strict=True):
        seen[key] = seen.get(key, 0) + 1
        assert (of, count) == (key, seen[key]), row


def test_the_hash_of_the_egress_folds_its_words_in_order() -> None:
    chain = bound([stateless("a")], 3)
    run = run_serially(chain, keep=3)
    fold = FOLD
    for word in (run.kept[0][0], run.kept[1][0], run.kept[2][0]):
        fold = folded(fold, word)
    assert run.egress.hash == fold


def test_tuples_that_change_places_change_the_hash() -> None:
    chain = bound([stateless("a"), partitioned("b"), stateful("c")], 200, keys=20)
    serial = run_serially(chain).egress
    turned = chain.tuples.copy()
    turned[[10, 11]] = turned[[11, 10]]
    assert run_serially(replace(chain, tuples=turned)).egress.hash != serial.hash


def test_nothing_in_is_nothing_out() -> None:
    assert run_serially(bound([stateful("a")], 0)).egress.tuples == 0
