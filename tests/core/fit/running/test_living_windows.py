"""Window Drop in a replay: what an aggregate gives is of windows that have lost nothing."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.fit.network.names import DropPlanner, Drops, Flow, OperatorKind
from adapt.core.fit.network.network import ColumnEquals, Input, Network, Node, Operator, Output, Window
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.direct_planners import Proportional
from adapt.core.fit.planners.program import Program
from adapt.core.fit.registry import planner_of
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import replay_fit
from adapt.core.fit.running.fluid import Offered
from adapt.core.fit.running.tuples import Tuples
from adapt.core.fit.running.window_drop import LivingWindows, WindowAware, windows_at, windows_of_arcs
from adapt.core.random_bits import substream, uniforms
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor
from tests.core.fit.options import fit_options
from tests.core.fit.running.literal_window_drop import WindowDrop

MAP, AGGREGATE, UNION, JOIN = (OperatorKind(kind) for kind in ("map", "aggregate", "union", "join"))
SECOND = 1_000_000
WINDOW = Window(4 * SECOND, 2 * SECOND, timed=True)
SEED = 5
TICKS = 120


def network(window=WINDOW):
    """A map before an aggregate, and a branch beside it that is shed at random."""
    return Network(
        (Node("A"),),
        (Input("in", ColumnEquals("side", 0)),),
        (
            Operator("parse", "A", MAP, ("in",), 0.001),
            Operator("pages", "A", AGGREGATE, ("parse",), 0.002, 0.01, window=window),
            Operator("alarm", "A", MAP, ("parse",), 0.001),
        ),
        (Output("per page", "pages", 400.0), Output("alarms", "alarm")),
    )


def rows():
    """Rates that change every second; none comes near the end of a second, so that its own tick serves it."""
    chance = np.random.default_rng(3)
    at_us = [
        tick * SECOND + np.sort(chance.integers(0, SECOND // 2, chance.integers(100, 900))) for tick in range(TICKS)
    ]
    times = np.concatenate(at_us)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "side": np.zeros(len(times), np.int64)})
    return lambda: table.to_batches(5000)


def replayed(planner, drops, batch=2):
    """Nodes are in truth so fast that nothing waits, but planned for as they are declared."""
    settings = SheddingSettings(lag_ticks=1, headroom=0.0, min_rate_change=0.0, drops=drops, batch=batch)
    options = fit_options((planner,), settings, seed=SEED, cost_scale=1e-6)
    return replay_fit(rows(), Binding(network(), SECOND), options, clock=lambda: 0.0)


def values(run, arc):
    """The number of tuples in every window at an aggregate, from what each tick served."""
    served = np.array([tick.served[arc] for tick in run.outcomes[0].ticks])
    return np.array([served[begin : begin + 4].sum() for begin in range(0, TICKS - 3, 2)])


def test_every_window_that_is_given_has_its_unshed_value_and_random_drop_fails_that() -> None:
    wiring = Wiring.from_network(network())
    names = [arc.name for arc in wiring.arcs]
    arc = names.index("parse -> pages")
    whole = values(replayed(DropPlanner.NONE, Drops.RANDOM), arc)
    shed = replayed(DropPlanner.EXACT, Drops.WINDOW)
    keeps = np.array([decision.keeps for decision in shed.outcomes[0].decisions])
    numbers, before = np.arange(len(whole)), names.index("in -> parse")
    first = numbers // 2 * 2  # of a batch
    both = keeps[2 * first, before] * keeps[2 * first, arc]
    alive = uniforms(substream(SEED, before), numbers // 2) < both
    assert 0.2 < alive.mean() < 0.95
    assert values(shed, arc)[alive].tolist() == whole[alive].tolist()
    assert (values(shed, arc)[~alive] < whole[~alive]).mean() > 0.5
    random = values(replayed(DropPlanner.EXACT, Drops.RANDOM), arc)
    assert (random != whole).mean() > 0.5


def test_an_aggregate_gives_for_windows_that_live_and_for_no_others() -> None:
    shed = replayed(DropPlanner.EXACT, Drops.WINDOW)
    wiring = Wiring.from_network(network())
    names = [arc.name for arc in wiring.arcs]
    windows = LivingWindows(wiring, SEED, 2)
    expected = 0.0
    for tick, decision in zip(shed.outcomes[0].ticks, shed.outcomes[0].decisions, strict=True):
        at = shed.outcomes[0].ticks.index(tick)
        windows.begin((at + 1) * SECOND, decision.keeps)
        lived = windows.lived[windows.given[names.index("parse -> pages")]]
        first = max(at - 3 + 1, 0) // 2 if at >= 3 else 0
        last = at // 2
        share = (lived[last + 1] - lived[first]) / (last - first + 1)
        expected += 0.01 * share * tick.served[names.index("parse -> pages")]
    given = shed.outcomes[0].total("served")[names.index("pages -> per page")]
    assert given == pytest.approx(expected, abs=1)


def test_utilization_by_what_is_kept_is_that_of_the_tuples_kept() -> None:
    outcome = replayed(DropPlanner.EXACT, Drops.WINDOW, batch=100).outcomes[0]
    kept = outcome.total("offered") - outcome.total("dropped")
    wiring = Wiring.from_network(network())
    assert outcome.kept_use.sum(axis=0) == pytest.approx(1e-6 * wiring.use @ kept / wiring.limits)


def nested(inner: Window, outer: Window = WINDOW) -> Network:
    """An aggregate of an aggregate, with a branch between them and one beside."""
    return Network(
        (Node("A"),),
        (Input("in", ColumnEquals("side", 0)),),
        (
            Operator("parse", "A", MAP, ("in",), 0.001),
            Operator("minutes", "A", AGGREGATE, ("parse",), 0.001, 0.01, window=inner),
            Operator("hours", "A", AGGREGATE, ("minutes",), 0.05, 0.5, window=outer),
            Operator("alarm", "A", MAP, ("parse",), 0.001),
        ),
        (Output("per minute", "minutes", 100.0), Output("per hour", "hours", 400.0), Output("alarms", "alarm")),
    )


def hundreds():
    """A multiple of a hundred rows in each first half of a second."""
    chance = np.random.default_rng(4)
    counts = 100 * chance.integers(2, 10, TICKS)
    times = np.concatenate([at * SECOND + np.sort(chance.integers(0, SECOND // 2, n)) for at, n in enumerate(counts)])
    times[0] = 0
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "side": np.zeros(len(times), np.int64)})
    return lambda: table.to_batches(5000)


def replayed_nested(inner, planner, drops):
    settings = SheddingSettings(lag_ticks=1, headroom=0.0, min_rate_change=0.0, drops=drops, batch=2)
    options = fit_options((planner,), settings, seed=SEED, cost_scale=1e-6)
    run = replay_fit(hundreds(), Binding(nested(inner), SECOND), options, clock=lambda: 0.0)
    names = [arc.name for arc in Wiring.from_network(nested(inner)).arcs]
    served = {name: np.array([tick.served[at] for tick in run.outcomes[0].ticks]) for at, name in enumerate(names)}
    return served, {name: [each.keeps[at] for each in run.outcomes[0].decisions] for at, name in enumerate(names)}


@pytest.mark.parametrize("size", [1, 3])
def test_so_has_every_window_of_an_aggregate_of_an_aggregate(size: int) -> None:
    inner = Window(size * SECOND, SECOND, timed=True)
    whole, _ = replayed_nested(inner, DropPlanner.NONE, Drops.RANDOM)
    shed, keeps = replayed_nested(inner, DropPlanner.EXACT, Drops.WINDOW)
    random, _ = replayed_nested(inner, DropPlanner.EXACT, Drops.RANDOM)
    numbers = np.arange((TICKS - 4 - size) // 2)
    way = ("in -> parse", "parse -> minutes", "minutes -> hours")
    shares = np.prod([np.array(keeps[name])[2 * (numbers // 2 * 2)] for name in way], axis=0)
    alive = uniforms(substream(SEED, list(keeps).index(way[0])), numbers // 2) < shares
    assert 0.2 < alive.mean() < 0.95

    def in_windows(served, seconds):
        return np.array([served[2 * number : 2 * number + seconds].sum() for number in numbers])

    needs, results = "parse -> minutes", "minutes -> hours"
    of_all, of_shed = (in_windows(served[needs], 4 + size - 1) for served in (whole, shed))
    assert of_shed[alive].tolist() == of_all[alive].tolist(), "every tuple that it needs"
    assert (of_shed < of_all).any()
    if size == 1:  # then a result comes in the second that it is of
        of_all, of_shed, of_random = (in_windows(served[results], 4) for served in (whole, shed, random))
        assert of_shed[alive].tolist() == of_all[alive].tolist(), "every result that it needs"
        assert (of_shed[~alive] < of_all[~alive]).mean() > 0.5
        assert (of_random != of_all).mean() > 0.5


@pytest.mark.parametrize(("batch", "keep"), [(1, 0.5), (3, 0.6), (20, 0.3)])
def test_what_is_kept_and_given_before_an_aggregate_of_an_aggregate_is_as_planned(batch: int, keep: float) -> None:
    network = nested(Window(3_000, 1_000, timed=True), Window(40_000, 20_000, timed=True))
    wiring = Wiring.from_network(network)
    tuples = Tuples(wiring, 1, 1e-9, windows=LivingWindows(wiring, 1, batch))
    keeps = np.ones((1, len(wiring.arcs)))
    keeps[0, 0] = keep
    aware = WindowAware.for_network(Proportional(Program.from_network(network)), network, batch)
    planned = aware.flows(np.array([[2000.0]]), keeps)[0][0]
    served = np.zeros(len(wiring.arcs))
    seconds = 200
    for tick in range(seconds):
        at_us = np.arange(tick * SECOND, (tick + 1) * SECOND, 500)
        served += tuples.run(
            Offered(tick * SECOND, (tick + 1) * SECOND, at_us, np.zeros(2000, np.int64)), keeps[0]
        ).served
    assert served / seconds == pytest.approx(planned, rel=6 / np.sqrt(25 * seconds / batch))


@pytest.mark.parametrize(
    ("window", "batch"),
    [
        (Window(2 * SECOND, 2 * SECOND, timed=True), 1),  # every batch starts at the low rate
        (Window(SECOND, SECOND, timed=True), 2),
        (Window(3 * SECOND, SECOND, timed=True), 4),
        (Window(SECOND, SECOND // 2, timed=True), 1),  # windows that end in the next tick
        (Window(SECOND // 2, SECOND // 10, timed=True), 1),
        (Window(100, 50, timed=False), 1),
        (Window(300, 300, timed=False), 1),
        (Window(100, 100, timed=False), 3),
    ],
)
def test_batches_longer_than_a_tick_drop_what_their_mean_rate_needs(window: Window, batch: int) -> None:
    ticks = 600
    of = Network(
        (Node("A"),),
        (Input("in", ColumnEquals("side", 0)),),
        (Operator("pages", "A", AGGREGATE, ("in",), 0.01, 0.1, window=window),),
        (Output("per page", "pages"),),
    )
    rates = enumerate([100, 200] * (ticks // 2))
    at_us = np.concatenate([tick * SECOND + np.arange(rate) * (SECOND // rate) for tick, rate in rates])
    table = pa.table({"ts": pa.array(at_us, pa.timestamp("us", "UTC")), "side": np.zeros(len(at_us), np.int64)})
    settings = SheddingSettings(lag_ticks=0, headroom=0.0, min_rate_change=0.0, drops=Drops.WINDOW, batch=batch)
    options = fit_options((DropPlanner.EXACT,), settings, seed=SEED)
    outcome = replay_fit(lambda: table.to_batches(), Binding(of, SECOND), options, clock=lambda: 0.0).outcomes[0]
    # 100 of 150 tuples/s fit; in ticks alone, 0 and 1/2 of the tuples were dropped.
    dropped = outcome.total("dropped")[0] / outcome.total("offered")[0]
    assert dropped == pytest.approx(1 / 3, abs=0.06)  # two batches in three, of 150 to 300: two deviations
    assert outcome.decisions[-1].rates == pytest.approx([150.0])


def merged(costs=(0.001, 0.001), window=WINDOW):
    """Two streams that merge before an aggregate, one of them with a branch beside."""
    nodes = (Node("A"), Node("B"), Node("C"))
    operators = (
        Operator("left", "A", MAP, ("in",), costs[0]),
        Operator("right", "B", MAP, ("on",), costs[1]),
        Operator("both", "C", UNION, ("left", "right"), 0.001),
        Operator("pages", "C", AGGREGATE, ("both",), 0.002, 0.01, window=window),
        Operator("alarm", "A", MAP, ("left",), 0.0005),
    )
    inputs = (Input("in", ColumnEquals("side", 0)), Input("on", ColumnEquals("side", 1)))
    return Network(nodes, inputs, operators, (Output("per page", "pages", 400.0), Output("alarms", "alarm", 0.1)))


@pytest.mark.parametrize("planner", [DropPlanner.EXACT, DropPlanner.GREEDY_LOCAL])
def test_a_window_of_merged_streams_has_all_tuples_of_both_or_none(planner: DropPlanner) -> None:
    chance = np.random.default_rng(6)
    times = np.concatenate([batch["ts"].cast(pa.int64()).to_numpy() for batch in rows()()])
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "side": chance.integers(0, 2, len(times))})
    binding = Binding(merged((0.004, 0.001)), SECOND)
    names = [arc.name for arc in Wiring.from_network(binding.network).arcs]

    def replayed(planner, drops):
        settings = SheddingSettings(lag_ticks=1, headroom=0.0, min_rate_change=0.0, drops=drops, batch=2)
        options = fit_options((planner,), settings, seed=SEED, cost_scale=1e-6)
        return replay_fit(lambda: table.to_batches(5000), binding, options, clock=lambda: 0.0)

    whole, shed = replayed(DropPlanner.NONE, Drops.RANDOM), replayed(planner, Drops.WINDOW)
    keeps = np.array([decision.keeps for decision in shed.outcomes[0].decisions])
    arc = names.index("both -> pages")
    expected, got = values(whole, arc), values(shed, arc)
    at = 2 * (np.arange(len(got)) // 2 * 2)  # where its batch starts
    left, right, after = (
        np.prod([keeps[at, names.index(name)] for name in way], axis=0)
        for way in (("in -> left", "left -> both"), ("on -> right", "right -> both.1"), ("both -> pages",))
    )
    alive = uniforms(substream(SEED, names.index("in -> left")), np.arange(len(got)) // 2) < (
        np.minimum(left, right) * after
    )
    assert 0.05 < alive.mean() < 0.95
    assert got[alive].tolist() == expected[alive].tolist()
    assert (got[~alive] < expected[~alive]).mean() > 0.5
    assert np.allclose(left, right, rtol=1e-12) == (planner is DropPlanner.EXACT), (
        "nodes that plan for themselves keep what they like"
    )
    assert (shed.outcomes[0].kept_use <= 1 + 1e-9).all()


def test_streams_that_merge_keep_the_largest_share_that_overloads_nothing() -> None:
    rates = np.array([[100.0, 100.0], [400.0, 100.0], [1000.0, 200.0], [200.0, 5000.0]])
    network = merged((0.004, 0.001), Window(10, 10, timed=True))
    aware = WindowAware.for_network(planner_of(DropPlanner.EXACT, network), network, 1)
    plans = aware.plan(rates)
    names = [arc.name for arc in aware.wiring.arcs]
    shares = plans.keeps[:, [names.index("in -> left"), names.index("on -> right")]]
    assert (shares[:, 0] == shares[:, 1]).all()
    use = aware.wiring.uses(aware.flows(rates, plans.keeps)[0])
    assert (use <= 1 + 1e-9).all()
    assert plans.keeps[0].tolist() == [1.0] * len(names)
    alarms = plans.keeps[:, names.index("left -> alarm")]
    for point, (left, right) in enumerate(rates):  # by hand: nodes A, B and C
        loads = 0.004 * left + 0.0005 * left * alarms[point], 0.001 * right, 0.003 * (left + right)
        assert shares[point, 0] == pytest.approx(min(1.0, 1 / max(loads)))
    scores = aware.wiring.scores(aware.flows(rates, plans.keeps)[1])
    assert plans.scores == pytest.approx(scores)


def direct(window, between=()):
    """An aggregate that reads an input, perhaps through a union with another stream."""
    read = ("in",) if not between else ("both",)
    pages = Operator("pages", "A", AGGREGATE, read, 0.001, 0.05, window=window)
    inputs = (Input("in"), Input("on")) if between else (Input("in"),)
    return Network((Node("A"), Node("B")), inputs, (*between, pages), (Output("out", "pages", 20.0),))


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("merges", [False, True])
def test_windows_that_lose_a_tuple_to_a_full_queue_are_withdrawn_and_no_others(size: int, merges: bool) -> None:
    window = Window(size * SECOND, max(size // 2, 1) * SECOND, timed=True)
    between = (Operator("both", "B", UNION, ("in", "on"), 0.0001),) if merges else ()
    wiring = Wiring.from_network(direct(window, between))
    arc = [arc.name for arc in wiring.arcs].index("both -> pages" if merges else "in -> pages")
    overload = Overload(ShedFactor(0.5), 300, 1.0)
    living = LivingWindows(wiring, SEED, 2, tallies=True)
    tuples = Tuples(wiring, SEED, overload=overload, windows=living)
    keeps = np.ones(len(wiring.arcs))
    keeps[arc] = 0.7
    chance, ticks = np.random.default_rng(2), []
    for tick in range(TICKS + 10):
        # Most ticks fit, some are far too much; a tuple is processed within its tick or in the next ones.
        count = 0 if tick >= TICKS else int(chance.choice([200, 400, 800, 2500], p=[0.4, 0.3, 0.2, 0.1]))
        at_us = np.sort(chance.integers(tick * SECOND, tick * SECOND + SECOND // 2, count))
        inputs = chance.integers(0, 1 + merges, count)
        ticks.append(tuples.run(Offered(tick * SECOND, (tick + 1) * SECOND, at_us, inputs), keeps))
    refused = np.array([tick.queue_drops[arc] for tick in ticks]) > 0
    slide, count = window.slide // SECOND, TICKS // (window.slide // SECOND)
    kept = uniforms(substream(SEED, 0), np.arange(count) // 2) < 0.7
    spans = [slice(number * slide, number * slide + size) for number in range(count)]
    complete = kept & ~np.array([refused[span].any() for span in spans])
    lived = np.diff(living.lived[living.given[arc]])[:count] > 0
    assert refused.any()
    assert 0 < complete.sum() < kept.sum()
    assert lived.tolist() == complete.tolist()
    assert ticks[-1].queued.sum() == 0
    # The score counts every tuple once for the share of its windows that are complete.
    arrived = np.array([tick.offered[arc] for tick in ticks])[:TICKS]
    holds = np.array([[span.start <= at < span.stop for span in spans] for at in range(TICKS)])
    share = (holds & complete).sum(axis=1) / holds.sum(axis=1)
    assert sum(tick.score for tick in ticks) == pytest.approx(20 * 0.05 * (share @ arrived), abs=20)
    assert sum(tick.withdrawn[arc] for tick in ticks) > 0


def counting(slides=(10,), sizes=(30,)):
    """Aggregates of count windows, one behind the other, after a map."""
    names = ["parse", *(f"level {at}" for at in range(len(slides)))]
    levels = tuple(
        Operator(name, "A", AGGREGATE, (before,), 0.001, 1 / slide, window=Window(size, slide, timed=False))
        for name, before, size, slide in zip(names[1:], names, sizes, slides, strict=False)
    )
    operators = (Operator("parse", "A", MAP, ("in",), 0.001), *levels)
    return Network((Node("A"),), (Input("in"),), operators, (Output("out", names[-1]),))


@pytest.mark.parametrize("levels", [((10,), (30,)), ((3,), (7,)), ((10, 3), (30, 7))])
@pytest.mark.parametrize(("batch", "keep"), [(1, 0.5), (4, 0.3)])
def test_count_windows_have_the_tuples_that_they_would_have_without_drops(levels, batch: int, keep: float) -> None:
    network = counting(*levels)
    wiring = Wiring.from_network(network)
    tuples = Tuples(wiring, SEED, 1e-9, windows=LivingWindows(wiring, SEED, batch))
    keeps = np.ones(len(wiring.arcs))
    keeps[:2] = keep, 0.9
    literal = WindowDrop(tuple(operator.window for operator in network.operators[1:]), 0.9 * keep, SEED, 0, batch)
    chance, so_far = np.random.default_rng(1), 0
    emitted = np.zeros(len(wiring.arcs))
    for tick in range(40):
        count = int(chance.integers(1, 400))
        at_us = np.sort(chance.integers(tick * SECOND, tick * SECOND + SECOND // 2, count))
        done = tuples.run(Offered(tick * SECOND, (tick + 1) * SECOND, at_us, np.zeros(count, np.int64)), keeps)
        assert done.served[1] == literal.keeps(np.arange(so_far, so_far + count)).sum()
        emitted += done.offered
        so_far += count
    inner = literal.windows[0]
    if len(literal.windows) == 1:
        first, last = windows_at(inner, np.arange(so_far))
        opened = [literal.opens(0, np.arange(begin, end + 1)).mean() for begin, end in zip(first, last, strict=True)]
        assert emitted[2] == pytest.approx(sum(opened) / inner.slide, abs=1)
    else:
        complete = (so_far - inner.size) // inner.slide + 1
        assert emitted[2] == literal.opens(0, np.arange(complete)).sum()


def test_what_cannot_be_dropped_by_windows_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="'pages' is an aggregate without a window"):
        windows_of_arcs(Wiring.from_network(network(None)))
    counts = Window(10, 2, timed=False)
    parse, pages, alarm = network(counts).operators
    windows_of_arcs(Wiring.from_network(network(counts)))
    for changed, sentence in (
        (replace(parse, selectivity=0.5), "'parse' emits 0.5 tuples for one before a count window"),
        (replace(parse, kind=UNION, inputs=("in", "on")), "'parse' merges streams before a count window"),
        (
            replace(parse, kind=JOIN, inputs=("in", "on"), join_windows=(5.0, 5.0)),
            "'parse' joins streams before",
        ),
    ):
        inputs = tuple(Input(name) for name in changed.inputs)
        other = replace(network(), inputs=inputs, operators=(changed, pages, alarm))
        with pytest.raises(UsageError, match=sentence):
            windows_of_arcs(Wiring.from_network(other))
    settings = SheddingSettings(drops=Drops.WINDOW)
    with pytest.raises(UsageError, match="drops=window needs flow tuples"):
        fit_options((DropPlanner.EXACT,), settings, flow=Flow.FLUID)
