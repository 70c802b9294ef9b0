"""The model of the engine against results known without it."""

import heapq
import itertools

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain
from adapt.core.ordered.chain.mixing import FOLD, MASK, folded, mixed
from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.reference import OperatorTally
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import ModelRun, run_model
from tests.core.ordered.chains import bound, partitioned, stateful, stateless

NONE = Contention()
SOME = Contention(jitter=0.3, contention_us=0.1, send_us=0.05, output_us=0.01, lock_handover_us=0.15)


def model(chain: BoundChain, settings: RunSettings, contention: Contention = NONE, **more: object) -> ModelRun:
    return run_model(chain, settings, contention, np.random.default_rng(1), **more)  # type: ignore[arg-type]


def drawn(what: int, operator: int, serial: int) -> int:
    """The word that the model draws for a tuple: SplitMix64 from the seed, some steps on."""
    seed = int(np.random.default_rng(1).integers(2**62))
    return mixed((seed + 2 * operator + what + (serial + 1) * FOLD) & MASK)


def services_us(chain: BoundChain, cost_us: float, jitter: float) -> list[float]:
    """What each tuple of the first operator takes, in whole nanoseconds."""
    evens = [((drawn(0, 0, serial) >> 11) + 0.5) / 2**53 for serial in range(len(chain.tuples))]
    return [int(cost_us * 1000 * (1 - jitter - jitter * np.log(even)) + 0.5) / 1000 for even in evens]


@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_one_stateless_operator_is_a_queue_whose_servers_take_tuples_in_turn(workers: int, jitter: float) -> None:
    chain = bound([stateless("a", cost=3.0)], 200)
    done = model(chain, RunSettings(workers, mark_every=1), Contention(jitter)).run
    free, ended, left = [0.0] * workers, 0.0, []
    entered = []
    for service in services_us(chain, 3.0, jitter):
        entered.append(heapq.heappop(free))
        heapq.heappush(free, entered[-1] + service)
        ended = max(ended, entered[-1] + service)  # none leaves before those that came before it
        left.append(ended)
    assert done.marks.entered / 1000 == pytest.approx(entered)
    assert done.marks.left / 1000 == pytest.approx(left)
    assert done.elapsed_s * 1e6 == pytest.approx(ended)


@pytest.mark.parametrize(
    "settings", [RunSettings(heuristic=heuristic, ring_buffer=64, queue_capacity=64) for heuristic in Heuristic]
)
def test_one_worker_takes_the_time_of_all_tuples(settings: RunSettings) -> None:
    costs = (1.0, 2.0, 0.5, 4.0)
    chain = bound([stateless("a", 1.5), partitioned("b"), stateless("c", 0.3), stateful("d")], 400)
    done = model(chain, settings, Contention(send_us=0.2, output_us=0.1), costs_us=costs).run
    work = sum(tally.inputs * cost for tally, cost in zip(done.operators, costs, strict=True))
    sending = sum(tally.inputs * 0.2 + tally.outputs * 0.1 for tally in done.operators)
    assert done.elapsed_s * 1e6 == pytest.approx(work + sending, rel=0.01)  # a batch half sent is begun again


def test_tuples_bring_their_own_costs() -> None:
    chain = bound([stateless("a", cost="cost")], 50)
    done = model(chain, RunSettings()).run
    assert done.elapsed_s * 1e9 == chain.tuples[:, 0].sum()


def test_two_stateful_operators_work_side_by_side() -> None:
    chain = bound([stateful("a"), stateful("b")], 100)
    done = model(chain, RunSettings(workers=2), costs_us=(2.0, 2.0)).run
    assert done.elapsed_s * 1e6 == pytest.approx(2.0 * 101)


def test_a_partition_is_worked_on_by_one() -> None:
    chain = bound([partitioned("one", 1)], 100)
    assert model(chain, RunSettings(workers=8), costs_us=(2.0,)).run.elapsed_s * 1e6 == pytest.approx(200)


def test_each_other_worker_on_an_operator_costs_its_share() -> None:
    chain = bound([stateless("a")], 400)
    done = model(chain, RunSettings(workers=4), Contention(contention_us=0.5), costs_us=(2.0,)).run
    assert done.elapsed_s * 1e6 == pytest.approx(100 * (2.0 + 3 * 0.5), rel=0.02)


def test_a_section_of_one_bounds_what_many_workers_can_do() -> None:
    chain = bound([stateless("a")], 1000)
    for reorder, each_us in ((Reorder.CLAIM, 1.0), (Reorder.LOCK, 1.0 + 0.5)):
        settings = RunSettings(workers=16, reorder=reorder)
        done = model(chain, settings, Contention(send_us=1.0, lock_handover_us=0.5), costs_us=(4.0,)).run
        assert done.elapsed_s * 1e6 == pytest.approx(1000 * each_us, rel=0.02)


@pytest.mark.parametrize("gap_us", [0.0, 5.0])
def test_the_egress_is_what_is_drawn_whatever_the_settings(gap_us: float) -> None:
    chain = bound([stateless("a", 1.5), partitioned("b"), stateless("c", 0.4), stateful("d", 2.0)], 300)
    rows = [[word % 2**64 for word in row] for row in chain.tuples.tolist()]
    for operator in chain.operators:
        whole = int(operator.operator.selectivity)
        share = int((operator.operator.selectivity - whole) * 2**64)
        rows = [
            row for serial, row in enumerate(rows) for _ in range(whole + (drawn(1, operator.number, serial) < share))
        ]
    fold = FOLD
    for word in itertools.chain.from_iterable(rows):
        fold = folded(fold, word)
    arrivals_ns = np.arange(300) * int(gap_us * 1000) if gap_us else None
    for workers, reorder, work_queue, ring, chunk in itertools.product(
        (1, 5), Reorder, (WorkQueue.HYBRID, WorkQueue.PARTITIONED), (8, 128), (1, 4)
    ):
        settings = RunSettings(workers, reorder, work_queue, ring_buffer=ring, queue_capacity=64, chunk=chunk)
        done = model(chain, settings, SOME, costs_us=(1.0, 2.0, 1.0, 0.5), arrivals_ns=arrivals_ns).run
        assert (done.egress.tuples, done.egress.hash) == (len(rows), fold), settings
        # With retry, tuples beyond the ring buffer are claimed: workers hold them.
        assert all(tally.fullest <= (64 if reorder is Reorder.RETRY else ring) for tally in done.operators)


def alone(costs_us: list[float], reorder: Reorder, contention: Contention) -> OperatorTally:
    """One stateless operator with two workers, whose ring buffer has four places."""
    columns = {"key": pa.array([0] * len(costs_us)), "cost": pa.array(costs_us)}
    chain = bind(Chain((stateless("a", cost="cost"),)), columns)
    return model(chain, RunSettings(2, reorder, ring_buffer=4), contention).run.operators[0]


def test_who_retries_is_blocked_until_the_tuples_before_have_left() -> None:
    """One worker is busy with the first tuple for 100 us. The other finishes the fifth after 4 us."""
    tally = alone([100.0, *[1.0] * 9], Reorder.RETRY, Contention())
    assert (tally.waited_ns, tally.retries) == (96_000, 1)
    claims = alone([100.0, *[1.0] * 9], Reorder.CLAIM, Contention())
    assert (claims.waited_ns, claims.retries) == (0, 0)


def test_who_needs_the_lock_is_blocked_while_another_sends() -> None:
    """Both finish at once, one sends both tuples for 5 us each, and 1 us later the other has the lock."""
    assert alone([1.0, 1.0], Reorder.LOCK, Contention(send_us=5.0, lock_handover_us=1.0)).waited_ns == 11_000
    assert alone([1.0, 1.0], Reorder.RETRY, Contention(send_us=5.0)).waited_ns == 0


def test_a_worker_asks_the_scheduler_before_each_slice() -> None:
    """A query takes 0.5 us, and 0.125 us for each of two operators.

    The first slice of each has one tuple, since no cost is known. The others of the first have two, and the second of
    the second all others. The last query finds nothing.
    """
    chain = bound([stateful("a"), stateful("b", 0.0)], 9)
    contention = Contention(query_us=0.5, query_operator_us=0.125)
    settings = RunSettings(slice_us=6.0, heuristic=Heuristic.QST, qst_limit=1e6, mark_every=1)
    done = model(chain, settings, contention, costs_us=(3.0, 0.0)).run
    assert [tally.slices for tally in done.operators] == [1 + 4, 2]
    starts_us = [0.75, 4.5, 7.5, 11.25, 14.25, 18.0, 21.0, 24.75, 27.75]
    assert done.marks.entered.tolist() == [1000 * us for us in starts_us]
    assert done.elapsed_s * 1e9 == 1000 * (9 * 3.0 + 8 * 0.75)


def test_workers_that_ask_at_the_same_time_slow_each_other_down() -> None:
    """Both ask for 1.5 us and process a tuple for 3 us, five times, and then find nothing."""
    chain, contention = bound([stateless("a")], 10), Contention(query_us=1.0, query_contention_us=0.5)
    done = model(chain, RunSettings(2, slice_us=3.0), contention, costs_us=(3.0,)).run
    assert done.elapsed_s * 1e9 == 5 * 4500 + 1500


def test_a_row_that_wakes_a_worker_is_processed_after_a_query() -> None:
    chain, arrivals_ns = bound([stateless("a")], 50), np.arange(50) * 10_000
    done = model(
        chain, RunSettings(mark_every=1), Contention(query_us=2.0), costs_us=(3.0,), arrivals_ns=arrivals_ns
    ).run
    assert done.marks.wait_s() * 1e6 == pytest.approx(2.0)


def test_long_slices_save_queries_and_cost_latency() -> None:
    chain, costs = bound([stateless("a"), stateless("b"), stateless("c")], 20_000), (1.0, 2.0, 1.0)

    def ran(slice_us: float, query_us: float) -> tuple[float, float]:
        settings = RunSettings(4, slice_us=slice_us, mark_every=10)
        done = model(chain, settings, Contention(query_us=query_us), costs_us=costs)
        return 20_000 / done.run.elapsed_s, mean_ms(done)

    (short, short_ms), (medium, medium_ms), (long, long_ms) = (ran(slice_us, 0.5) for slice_us in (1.0, 100.0, 3000.0))
    assert short < 0.8 * medium < long
    assert short_ms < medium_ms < long_ms
    assert ran(1.0, 0.0)[0] == pytest.approx(ran(100.0, 0.0)[0], rel=0.02)


def test_with_a_minimum_worklist_lp_waits_for_that_many_tuples() -> None:
    """Both operators take 1 us. With a minimum of 4, the second one starts after 4 tuples of the first.

    From then on they take turns, and a tuple waits for three others, until both have only three left: then as without a
    minimum.
    """
    chain, how = bound([stateful("a"), stateful("b")], 10), {"heuristic": Heuristic.LP, "slice_us": 0.001}
    plain = model(chain, RunSettings(mark_every=1, **how), costs_us=(1.0, 1.0)).run.marks
    assert (plain.left - plain.entered).tolist() == [2000] * 10
    waits = model(chain, RunSettings(mark_every=1, lp_minimum=4, **how), costs_us=(1.0, 1.0)).run.marks
    assert (waits.entered // 1000).tolist() == [0, 1, 2, 3, 5, 7, 9, 14, 16, 18]
    assert (waits.left // 1000).tolist() == [5, 7, 9, 11, 12, 13, 14, 16, 18, 20]


def test_below_its_capacity_a_chain_keeps_up() -> None:
    chain = bound([stateless("a"), stateful("b")], 500)
    settings, arrivals_ns = RunSettings(workers=4, mark_every=1), np.arange(500) * 10_000
    done = model(chain, settings, costs_us=(3.0, 1.0), arrivals_ns=arrivals_ns).run
    assert done.elapsed_s * 1e6 == pytest.approx(499 * 10 + 4)
    assert done.marks.end_to_end_s().max() * 1e6 == pytest.approx(4.0)


def test_the_same_draws_give_the_same_run() -> None:
    chain = bound([stateless("a", 1.5), partitioned("b")], 300)
    first, second = (model(chain, RunSettings(workers=4), SOME, costs_us=(1.0, 2.0)) for _ in range(2))
    assert (first.run.elapsed_s, first.events) == (second.run.elapsed_s, second.events)
    assert first.contention == SOME


@pytest.mark.parametrize(
    ("settings", "more", "told"),
    [
        (RunSettings(), {"costs_us": (1.0, 2.0)}, "costs_us must give each of 1 operators a cost"),
        (RunSettings(), {"costs_us": (-1.0,)}, "costs_us must give each of 1 operators a cost"),
        (RunSettings(), {"arrivals_ns": np.arange(9)}, "arrivals_ns must give each of 10 tuples a time (got 9 times)"),
    ],
)
def test_what_the_model_cannot_run_is_refused(settings: RunSettings, more: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        model(bound([stateless("a")], 10), settings, **more)
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["jitter", "contention_us", "send_us", "output_us", "lock_handover_us"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), 1e9])
def test_a_constant_out_of_its_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name):
        Contention(**{name: value})


def test_timed_tuples_that_are_dropped_are_counted_nowhere() -> None:
    chain = bound([stateless("a", 0.3), partitioned("b", 16), stateful("c")], 2000)
    timed, plain = (model(chain, RunSettings(2, mark_every=every), SOME).run for every in (1, 0))
    for with_marks, without in zip(timed.operators, plain.operators, strict=True):
        assert with_marks.inputs < 2000 or with_marks.name == "a"
        assert (with_marks.inputs, with_marks.outputs) == (without.inputs, without.outputs)
        assert with_marks.partition_loads.tolist() == without.partition_loads.tolist()


def test_measured_selectivities_stand_in_for_those_of_the_chain() -> None:
    chain = bound([stateless("a", 3.0), stateful("b")], 1000)
    done = model(chain, RunSettings(), selectivities=(0.25, 2.0)).run
    assert done.operators[0].outputs == pytest.approx(250, abs=60)
    assert done.operators[1].outputs == 2 * done.operators[0].outputs


@pytest.mark.parametrize("wrong", [(1.0,), (1.0, -0.5), (1.0, float("nan")), (1.0, 65536.0)])
def test_selectivities_that_cannot_be_are_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="selectivities must give each of 2 operators a number"):
        model(bound([stateless("a"), stateful("b")], 10), RunSettings(), selectivities=wrong)


def test_operators_may_bring_costs_by_tuple_beside_given_ones() -> None:
    chain = bound([stateless("a", cost="cost"), stateful("b")], 50)
    done = model(chain, RunSettings(), costs_us=(None, 1.0)).run
    assert done.elapsed_s * 1e9 == chain.tuples[:, 0].sum() + 50 * 1000


def test_rows_that_are_all_there_at_the_start_are_timed_from_when_they_are_taken_in() -> None:
    """Of one worker, whose queue of 16 rows is filled as they leave it, each waits for the 16 before it at most."""
    chain = bound([stateless("a", cost=1.0)], 500)
    marks = model(chain, RunSettings(queue_capacity=16, ring_buffer=16, mark_every=1)).run.marks
    assert marks.end_to_end_s().max() * 1e6 == pytest.approx(17, abs=1.0)
    assert marks.processing_s() * 1e6 == pytest.approx(1.0)


def mean_ms(run: ModelRun) -> float:
    """Latency of the timed tuples."""
    return 1e3 * float(run.run.marks.processing_s().mean())


def test_neither_tuples_that_carry_nothing_nor_a_wrong_guess_keep_workers_from_an_operator() -> None:
    chain = bound([stateless("a", 0.05), partitioned("b", 64)], 100_000, skew=0.0)
    few, many = (
        model(chain, RunSettings(8, mark_every=every, queue_capacity=1 << 16), Contention(0.3), costs_us=(1.0, 40.0))
        for every in (1000, 4)
    )
    # The cost of the second is unknown; 5 of 6 tuples that it reads carry only a mark, and cost nothing.
    assert many.run.elapsed_s == pytest.approx(few.run.elapsed_s, rel=0.05)
    assert mean_ms(many) == pytest.approx(mean_ms(few), rel=0.5)
    assert mean_ms(few) < 1
