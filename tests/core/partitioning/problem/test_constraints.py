"""Constraints: what is refused, what plans record, and pinned and named keys through every scheme that can."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.engines.names import SCHEMES_BY_NAME, Engine
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan_tables import load_table
from adapt.core.partitioning.problem.constraints import Constraint, Constraints, MigrationLimit, honours
from adapt.core.partitioning.schemes.names import Construction, Scheme, UtilityName

COUNTS = 3000 // np.arange(1, 200)
STREAM = frequencies_of(KeyCounts(pa.array([f"k{n}" for n in range(1, 200)]), COUNTS, int(COUNTS.sum())))
LOSSY = Frequencies(
    STREAM.keys, STREAM.count_low, STREAM.count_low + 10, 20_000, 20_000, epsilon=0.001, complete_above=10, distinct=900
)
PINNING = [
    *((Scheme.HYBRID, construction) for construction in Construction),
    (Scheme.BOUNDED, Construction.SCAN),
]
every_pinning = pytest.mark.parametrize(("scheme", "construction"), PINNING)


class TestMigrationLimit:
    @pytest.mark.parametrize(
        ("text", "limit", "state"),
        [("0.5", MigrationLimit(0.5), 50), ("5%", MigrationLimit(0.05, True), 20), ("0", MigrationLimit(0), 0)],
    )
    def test_a_limit_is_a_part_of_an_average_channel_or_of_all_state(self, text, limit, state):
        assert MigrationLimit.parse(text) == limit
        assert limit.state(400, 4) == pytest.approx(state)
        assert MigrationLimit.parse(str(limit)) == limit

    @pytest.mark.parametrize("text", ["", "a", "-1", "nan", "inf", "101%", "%", "1e999", "5 %%"])
    def test_what_is_no_limit_is_refused(self, text):
        with pytest.raises(UsageError, match="takes a number from 0 up"):
            MigrationLimit.parse(text)


class TestCapacities:
    @pytest.mark.parametrize("capacities", [(1, 0), (1, -2), (1, float("nan")), (float("inf"), 1)])
    def test_a_capacity_is_a_number_above_0(self, capacities):
        with pytest.raises(UsageError, match="must be above 0 for each worker"):
            Constraints(capacities=capacities)

    def test_capacities_a_million_apart_are_refused(self):
        with pytest.raises(UsageError, match="too far apart"):
            Constraints(capacities=(1, 3e6))

    @pytest.mark.parametrize(("capacities", "told"), [((1, 1), "got 2"), ((1,), "got 1")])
    def test_there_is_one_for_each_channel(self, capacities, told):
        with pytest.raises(UsageError, match=f"{told} for 3 workers"):
            build_plan(STREAM, Recipe(Scheme.HYBRID, constraints=Constraints(capacities=capacities)), 3)

    def test_they_count_in_relation_to_their_mean(self):
        assert Constraints(capacities=(1, 1, 2)).relative(3).tolist() == [0.75, 0.75, 1.5]

    @given(st.floats(1e-300, 1e300), st.integers(1, 9))
    def test_equal_capacities_are_exactly_one(self, capacity, channels):
        assert Constraints(capacities=(capacity,) * channels).relative(channels).tolist() == [1.0] * channels
        assert Constraints().relative(channels).tolist() == [1.0] * channels


class TestPins:
    @every_pinning
    def test_a_pinned_key_stays_on_its_channel_however_light_and_whatever_was_before(self, scheme, construction):
        pins = {"k1": 2, "k2": 2, "k199": 0}
        previous = build_plan(STREAM, Recipe(scheme, construction), 4)
        for channels in (3, 5):
            plan = build_plan(
                STREAM, Recipe(scheme, construction, constraints=Constraints(pinned=pins)), channels, previous=previous
            )
            assert {key: plan.explicit[key] for key in pins} == pins
            assert plan.parameters["pinned"] == pins
            placed = plan.partitioner().channels_of(STREAM.keys)
            assert plan.predicted_loads["network"] == np.bincount(placed, STREAM.count_low, channels).tolist()

    @every_pinning
    def test_the_other_keys_make_room_for_what_is_pinned(self, scheme, construction):
        """The pinned ones have 3278 of some 5850 a channel, so the heaviest two, of 4500, no longer fit beside them."""
        pinned = dict.fromkeys(["k3", "k4", "k5", "k6", "k7"], 0)
        plan = build_plan(STREAM, Recipe(scheme, construction, constraints=Constraints(pinned=pinned)), 3)
        on_0 = [key for key in ("k1", "k2") if plan.partitioner().channel_of(key) == 0]
        assert len(on_0) < 2

    @pytest.mark.parametrize("scheme", [Scheme.HYBRID, Scheme.BOUNDED])
    def test_pinning_the_first_key_where_it_would_be_placed_anyway_changes_no_placement(self, scheme):
        free = build_plan(STREAM, Recipe(scheme, Construction.SCAN), 3)
        pins = {"k1": free.partitioner().channel_of("k1")}
        plan = build_plan(STREAM, Recipe(scheme, Construction.SCAN, constraints=Constraints(pinned=pins)), 3)
        assert dict(plan.explicit) == {**pins, **free.explicit}

    @every_pinning
    def test_keys_that_a_lossy_counter_did_not_list_can_be_pinned(self, scheme, construction):
        constraints = Constraints(pinned={"nobody": 2, None: 1})
        plan = build_plan(LOSSY, Recipe(scheme, construction, constraints=constraints), 3)
        assert (plan.explicit["nobody"], plan.explicit[None]) == (2, 1)
        assert (plan.parameters["pinned"], plan.parameters["pinned_null"]) == ({"nobody": 2}, 1)
        others = build_plan(LOSSY, Recipe(scheme, construction), 3).explicit
        assert {key: channel for key, channel in plan.explicit.items() if key not in ("nobody", None)} == others

    @pytest.mark.parametrize("channels", [1, 2])
    def test_fewer_channels_than_a_pin_needs_are_refused_with_the_key(self, channels):
        with pytest.raises(UsageError, match="key 'k7' is pinned to worker 2, but "):
            build_plan(STREAM, Recipe(Scheme.HYBRID, constraints=Constraints(pinned={"k1": 0, "k7": 2})), channels)

    def test_one_channel_has_the_pins_that_it_can_have(self):
        plan = build_plan(STREAM, Recipe(Scheme.HYBRID, constraints=Constraints(pinned={"k7": 0})), 1)
        assert dict(plan.explicit) == {"k7": 0}

    def test_a_pinned_key_that_was_not_counted_is_refused_with_one_that_may_be_meant(self):
        with pytest.raises(BadInput, match=r"pinned key 'K33' is not among the 199 counted keys; did you mean 'k33'\?"):
            build_plan(STREAM, Recipe(Scheme.HYBRID, constraints=Constraints(pinned={"K33": 1})), 2)
        with pytest.raises(BadInput, match="pinned key null"):
            build_plan(STREAM, Recipe(Scheme.HYBRID, constraints=Constraints(pinned={None: 1})), 2)

    def test_pins_of_another_type_are_refused(self):
        with pytest.raises(BadInput, match="the pinned keys are int64, but the counted keys are string"):
            build_plan(STREAM, Recipe(Scheme.HYBRID, constraints=Constraints(pinned={7: 1})), 2)


class TestUtilisation:
    CAPACITIES = (1.0, 3.0, 2.0)

    @pytest.mark.parametrize("letters", ["LLL", "QLL"])
    @pytest.mark.parametrize(
        ("scheme", "construction"),
        [
            (Scheme.HYBRID, Construction.LEVEL),
            (Scheme.BOUNDED, Construction.SCAN),
        ],
    )
    def test_metrics_and_tables_are_of_loads_over_capacities(self, scheme, construction, letters):
        """Computed here from the plan's own placement, in plain fractions."""
        resources, capacities = Resources.parse(letters), Constraints(capacities=self.CAPACITIES)
        plan = build_plan(
            STREAM, Recipe(scheme, construction, resources=resources, max_pins=150, constraints=capacities), 3
        )
        placed = plan.partitioner().channels_of(STREAM.keys)
        rows = [np.bincount(placed, function.costs(STREAM.count_low), 3) for function in resources.functions]
        used = np.array(rows) / self.CAPACITIES
        ratios = [plan.metrics[name] for name in ("r_s", "r_c", "r_n")]
        assert ratios == pytest.approx((used.max(axis=1) / used.min(axis=1)).tolist())
        assert plan.metrics["imbalance"] == pytest.approx(used[2].max() / (rows[2].sum() / 6))
        assert plan.metrics["imbalance"] >= plan.metrics["best_possible"]
        assert plan.metrics["r_n"] >= plan.metrics["r_best"]
        assert plan.parameters["capacities"] == [1.0, 3.0, 2.0]
        table = load_table(plan)
        assert table.values("capacity") == [self.CAPACITIES[channel] for channel in table.values("channel")]
        assert table.values("utilization") == pytest.approx(sorted(used[2] * 6 / rows[2].sum(), reverse=True))

    def test_level_fills_channels_in_proportion_where_enough_is_tracked(self):
        plan = build_plan(
            STREAM,
            Recipe(
                Scheme.HYBRID,
                construction=Construction.LEVEL,
                max_pins=150,
                constraints=Constraints(capacities=self.CAPACITIES),
            ),
            3,
        )
        assert plan.metrics["r_n"] < 1.01

    def test_equal_capacities_give_the_plan_that_none_give(self):
        for scheme in (Scheme.HYBRID, Scheme.BOUNDED):
            free, even = (
                build_plan(STREAM, Recipe(scheme, Construction.LEVEL, constraints=Constraints(capacities)), 3)
                for capacities in (None, (0.1, 0.1, 0.1))
            )
            assert (free.explicit, free.metrics) == (even.explicit, even.metrics)

    def test_a_recorded_capacity_that_is_none_is_refused_with_its_field(self):
        plan = build_plan(STREAM, Recipe(Scheme.HYBRID), 3)
        for recorded in (["x", 1, 1], [1, 1], 5, [1, 1, 0]):
            with pytest.raises(BadInput, match=r"plan field 'parameters.capacities'"):
                load_table(replace(plan, parameters={"capacities": recorded}))


EVERY = [
    *((Scheme.HYBRID, construction) for construction in Construction),
    *((scheme, Construction.SCAN) for scheme in SCHEMES_BY_NAME.values() if scheme is not Scheme.HYBRID),
]


class TestRefusals:
    @pytest.mark.parametrize(("scheme", "construction"), EVERY)
    @pytest.mark.parametrize("constraint", Constraint)
    def test_what_is_not_honoured_is_refused_by_name_with_what_can(self, scheme, construction, constraint):
        given = {
            Constraint.CAPACITY: Constraints(capacities=(1, 2, 3)),
            Constraint.PIN: Constraints(pinned={"k9": 1}),
            Constraint.MAX_MIGRATION: Constraints(max_migration=MigrationLimit(0.1)),
        }.get(constraint, Constraints())
        utility = {Constraint.UTILITY: UtilityName.A}.get(constraint)
        recipe = Recipe(scheme, construction, constraints=given, utility=utility)
        previous = build_plan(STREAM, Recipe(scheme, construction), 3)

        def built():
            return build_plan(STREAM, recipe, 3, previous=previous)

        if honours(scheme, construction, recipe.given):
            plan = built()
            capacities = given.relative(3)
            used = [
                evaluate(each.partitioner(), STREAM, Resources(), capacities=capacities) for each in (plan, previous)
            ]
            assert plan.explicit.get("k9") == 1 or constraint is not Constraint.PIN
            assert plan.metrics["m"] <= 0.1 or constraint is not Constraint.MAX_MIGRATION
            assert used[0].r_n < 0.6 * used[1].r_n or constraint is not Constraint.CAPACITY
            return
        name = f"construction {construction}" if scheme is Scheme.HYBRID else f"scheme {scheme}"
        with pytest.raises(UsageError) as refusal:
            built()
        assert str(refusal.value).startswith(f"{name} does not support {constraint}; use hybrid (")
        named = str(refusal.value).partition("; use ")[2]
        assert ("unlocked" if constraint is Constraint.UTILITY else "level") in named

    def test_a_comparison_skips_what_has_no_utility_unless_it_is_named(self):
        compared = compare_schemes(STREAM, [3], Recipe(utility=UtilityName.ATM))
        assert {row.construction for row in compared.rows} == {
            Construction.SCAN,
            Construction.REDIST,
            Construction.READJ,
        }
        refusal = r"construction level does not support utility; use hybrid \(scan, redist, .*unlocked\)"
        with pytest.raises(UsageError, match=refusal):
            compare_schemes(STREAM, [3], Recipe(utility=UtilityName.ATM), constructions=[Construction.LEVEL])

    @pytest.mark.parametrize("construction", [each for each in Construction if each is not Construction.LEVEL])
    def test_a_utility_that_is_honoured_decides(self, construction):
        previous = build_plan(STREAM, Recipe(Scheme.CONSISTENT), 5)
        plans = [
            build_plan(STREAM, Recipe(construction=construction, utility=each, max_pins=60), 6, previous=previous)
            for each in UtilityName
        ]
        assert len({tuple(sorted(plan.explicit.items())) for plan in plans}) > 1

    def test_the_refusal_has_every_scheme_that_can(self):
        with pytest.raises(UsageError) as refusal:
            build_plan(STREAM, Recipe(Scheme.JUMP, constraints=Constraints(pinned={"k9": 1})), 3)
        assert str(refusal.value) == (
            "scheme jump does not support pin; use hybrid (scan, redist, readj, readj-printed, unlocked, level)"
            " or bounded"
        )

    def test_a_limit_to_migration_needs_a_placement_before_it(self):
        limited = Constraints(max_migration=MigrationLimit(0.5))
        with pytest.raises(UsageError, match=r"max_migration 0.5 needs a current plan.*build from"):
            build_plan(STREAM, Recipe(Scheme.HYBRID, Construction.LEVEL, constraints=limited), 3)
        recipe = Recipe(constraints=limited, base=Engine.KAFKA)
        (row,) = compare_schemes(STREAM, [3], recipe, constructions=[Construction.LEVEL]).rows
        assert 0 < row.metrics.m <= 0.5
        with pytest.raises(UsageError, match="no scheme supports capacity and utility together; omit one"):
            compare_schemes(STREAM, [3], Recipe(constraints=Constraints((1, 1, 2)), utility=UtilityName.A))

    def test_constraints_fit_every_channel_count_of_a_comparison_or_it_is_refused_before_it_begins(self):
        with pytest.raises(UsageError, match="got 2 for 3 workers"):
            compare_schemes(
                STREAM, [2, 3], Recipe(constraints=Constraints(capacities=(1, 2))), schemes=[Scheme.BOUNDED]
            )
        with pytest.raises(UsageError, match="key 'k1' is pinned to worker 2, but workers run from 0 to 1"):
            compare_schemes(STREAM, [4, 2], Recipe(constraints=Constraints(pinned={"k1": 2})), schemes=[Scheme.BOUNDED])
