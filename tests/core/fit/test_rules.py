"""Rules: the exact planner's score at any rates, prices that hold, and a shedder that applies them alone."""

import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapt.core.fit.network.names import DropPlanner
from adapt.core.fit.network.network_file import read_network
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.program import Program
from adapt.core.fit.regimes import regimes_of
from adapt.core.fit.registry import planner_of
from adapt.core.fit.rules import UNKNOWN, UNSHED, Rules, capacities_table, rules_table
from adapt.traces.replay import shedder
from adapt.traces.replay.rules import write_rules
from tests.core.fit.networks import FIGURE_1, FIGURE_7, any_network, random_rates
from tests.core.fit.options import planner_options

EXAMPLE = read_network((Path(__file__).parents[3] / "examples" / "fx-ticks.toml").read_text()).network
SEEDS = range(300 if os.environ.get("ADAPT_SOAK") else 8)


def best(network, rates, headroom=0.0):
    """The exact planner's score."""
    return planner_of(DropPlanner.EXACT, network, planner_options(headroom=headroom)).plan(rates).scores


def scores(network, rates, keeps):
    """What shares really give; no node or link is overloaded."""
    wiring = Wiring.from_network(network)
    flows = wiring.flows(rates, keeps)
    assert (wiring.uses(flows) <= 1 + 1e-8).all()
    return wiring.scores(flows)


def test_the_rules_of_the_example_score_as_the_exact_planner_at_10_000_random_rates() -> None:
    known = np.random.default_rng(0).uniform(0, 60, (500, 5))
    rules = Rules.from_network(EXAMPLE, known, 0.0, 0)
    assert len(rules.parts[0].regimes) < 20
    rates = np.random.default_rng(1).uniform(0, 100, (10_000, 5))
    assert scores(EXAMPLE, rates, rules.keeps(rates)) == pytest.approx(best(EXAMPLE, rates), rel=1e-6)


def test_rules_of_any_network_score_as_the_exact_planner_and_so_does_the_shedder_alone(tmp_path) -> None:
    for seed in SEEDS:
        network = any_network(seed)
        unit = 1000.0 if max(operator.cost for operator in network.operators) > 100 else 1.0
        known = random_rates(seed, len(network.inputs), 40) / unit
        rules = Rules.from_network(network, known, 0.1, seed)
        rates = np.random.default_rng(seed).uniform(0, 2, (300, known.shape[1])) * known.max(axis=0)
        keeps, wanted = rules.keeps(rates), best(network, rates, 0.1)
        assert scores(network, rates, keeps) == pytest.approx(wanted, rel=1e-6, abs=1e-9 / unit), seed
        write_rules(rules, tmp_path / str(seed))
        read = shedder.read_rules(tmp_path / str(seed) / "rules.toml")
        names = [entering.name for entering in network.inputs]
        arcs = [arc.name for arc in Wiring.from_network(network).arcs]
        for point, expected in zip(rates[:40], keeps[:40], strict=True):
            shares = shedder.shares(read, dict(zip(names, point.tolist(), strict=True)))
            assert [shares.get(arc, 1.0) for arc in arcs] == pytest.approx(expected, rel=1e-9, abs=1e-12), seed


def test_the_folder_runs_without_the_package(tmp_path) -> None:
    rules = Rules.from_network(FIGURE_1, np.ones((1, 2)), 0.0, 0)
    write_rules(rules, tmp_path / "rules")
    line = [sys.executable, "-I", str(tmp_path / "rules" / "shedder.py"), "in0=1", "in1=1"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert said == "in0 -> A0\t0.2000\nin1 -> A1\t0.4000\n"
    text = (tmp_path / "rules" / "rules.toml").read_text()
    (part,) = tomllib.loads(text)["part"]
    assert "Keep 0.2 tuples/s of in0 while more arrives; keep 0.4 tuples/s of in1 while more arrives" in text
    assert part["regime"][0]["bottleneck"] == "A, then B"


def test_figure_1_in_words() -> None:
    rules = Rules.from_network(FIGURE_1, np.array([[0.1, 0.1], [1.0, 1.0], [1.0, 1.0]]), 0.0, 0)
    calm, busy = rules_table(rules).records()
    assert (calm["ticks"], calm["growth"], calm["change"]) == (1, pytest.approx(1.5), "B becomes a bottleneck")
    assert busy["keep"] == (
        "Keep 0.2 tuples/s of in0 while more arrives (20%); keep 0.4 tuples/s of in1 while more arrives (40%)"
    )
    assert (busy["bottleneck"], busy["growth"]) == ("A, then B", None)
    a, b = capacities_table(rules).records()
    assert (a["needed"], b["needed"]) == (3.0, 4.0)
    assert (a["price"], b["price"]) == pytest.approx((0.4, 0.2))
    assert (a["gain"], b["gain"]) == pytest.approx((0.04 / 0.6, 0.02 / 0.6))


def test_prices_are_the_slopes_of_the_best_score() -> None:
    rates = np.random.default_rng(3).uniform(10, 80, (30, 5))
    rules = Rules.from_network(EXAMPLE, rates, 0.0, 0)
    before, step = best(EXAMPLE, rates), 1e-6
    for at, node in enumerate(EXAMPLE.nodes):
        more = (*EXAMPLE.nodes[:at], replace(node, capacity=node.capacity + step), *EXAMPLE.nodes[at + 1 :])
        slope = (best(replace(EXAMPLE, nodes=more), rates) - before) / step
        assert rules.prices()[node.name] == pytest.approx(slope[rules.overloaded], rel=1e-4, abs=1e-3)


def test_what_changes_first_does_change_there() -> None:
    rates = np.random.default_rng(3).uniform(5, 60, (40, 5))
    rules = Rules.from_network(EXAMPLE, rates, 0.0, 0)
    (part,) = rules.parts
    for tick in rules.overloaded:
        regime = part.regimes[part.of_tick[tick]]
        factor, event = regime.growth(rates[tick])
        assert event
        inside = factor * (1 - 1e-6) if np.isfinite(factor) else 1e3
        assert regime.holds(rates[tick : tick + 1] * inside).all()
        assert np.isinf(factor) or not regime.holds(rates[tick : tick + 1] * factor * (1 + 1e-6)).any()


def test_where_no_regime_holds_rates_are_scaled_down_until_one_does(tmp_path) -> None:
    rates = np.random.default_rng(1).uniform(0, 100, (300, 5))
    rules = Rules.from_network(EXAMPLE, rates, 0.0, 0)
    (part,) = rules.parts
    for gone in range(len(part.regimes)):
        regimes = part.regimes[:gone] + part.regimes[gone + 1 :]
        less = replace(rules, parts=(replace(part, regimes=regimes),))
        keeps = less.keeps(rates)
        even = 1 / np.maximum(rates @ part.loads().T, 1.0).max(axis=1)
        wiring = Wiring.from_network(EXAMPLE)
        shares = np.where(wiring.source < 5, even[:, None], 1.0)
        assert (scores(EXAMPLE, rates, keeps) >= scores(EXAMPLE, rates, shares) * (1 - 1e-9)).all()
        write_rules(less, tmp_path / str(gone))
        read = shedder.read_rules(tmp_path / str(gone) / "rules.toml")
        for point, kept in zip(rates[:60], keeps[:60], strict=True):
            told = shedder.shares(read, {each.name: rate for each, rate in zip(EXAMPLE.inputs, point, strict=True)})
            assert [told.get(arc.name, 1.0) for arc in wiring.arcs] == pytest.approx(kept, rel=1e-6, abs=1e-9)


def test_rules_hold_where_some_inputs_are_quiet() -> None:
    # Rates of some streams are a hundredth of the others, at which the rates known do not say what to do.
    for seed in SEEDS:
        network, random = any_network(seed), np.random.default_rng(seed)
        known = random_rates(seed, len(network.inputs), 40)
        rules = Rules.from_network(network, known, 0.0, seed)
        rates = random.uniform(0, 1, (2000, known.shape[1])) ** random.choice([1, 4, 8], (2000, 1)) * known.max(axis=0)
        wanted, reached = best(network, rates), scores(network, rates, rules.keeps(rates))
        assert (reached >= 0.9 * wanted).all(), seed
        assert np.isclose(reached, wanted, rtol=1e-6, atol=1e-9).mean() > 0.999, seed


def test_where_no_regime_is_known_every_input_keeps_the_same_share(monkeypatch) -> None:
    monkeypatch.setattr("adapt.core.fit.rules.regimes_of", lambda *_: ())
    rules = Rules.from_network(FIGURE_7, np.array([[0.05], [0.2]]), 0.0, 0)
    assert rules.parts[0].of_tick.tolist() == [UNSHED, UNKNOWN]
    assert rules.keeps(np.array([[0.2]]))[0, 0] == pytest.approx(0.625)


def test_the_same_seed_finds_the_same_rules() -> None:
    program, rates = Program.from_network(EXAMPLE), np.full((1, 5), 40.0)
    one, other = (regimes_of(program, rates, np.random.default_rng(4)) for _ in range(2))
    assert [each.when.tobytes() for each in one] == [each.when.tobytes() for each in other]
