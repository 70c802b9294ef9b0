"""Costs of a stage by a profile."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.costs.profile import CostSource, KeyMean, Profile, Service, ServiceBy, SizeMean, Transport
from adapt.core.errors import BadInput
from adapt.core.stage.conditions.service_times import Service as Stated
from adapt.core.stage.conditions.service_times import Spread, SpreadKind
from adapt.core.stage.input.profiled import row_costs_of, service_of, shifted, transport_of
from adapt.core.stream import KeyType

COLUMNS = ("ts", "key", "bytes", "cost_us")
EVEN = (1.0, 1.0)


def profile(service, **changes):
    return Profile(CostSource.CSV, "", service, **changes)


def costs(of, column, values, columns=COLUMNS):
    made = row_costs_of(of, columns, KeyType.STRING, 80, 0)
    assert made is not None
    assert made.column == column
    return made.reader()(pa.array(values), 0).tolist()


def test_service_by_key_takes_the_mean_of_the_key_and_else_of_all_rows():
    of = profile(
        Service(9, ServiceBy.KEY, 5e-3, None, EVEN),
        keys=(KeyMean("a", 1e-3), KeyMean("b", 2e-3)),
        transport=Transport(1e-4, 1e-6),
    )
    assert costs(of, "key", ["b", "z", None]) == pytest.approx([2.18e-3, 5.18e-3, 5.18e-3])
    whole = pa.array(["b", "z", None]).dictionary_encode()
    made = row_costs_of(of, COLUMNS, KeyType.STRING, 80, 0)
    assert made is not None
    assert made.reader()(whole, 0).tolist() == pytest.approx([2.18e-3, 5.18e-3, 5.18e-3])


def test_service_by_size_takes_the_class_and_transport_the_bytes():
    of = profile(
        Service(9, ServiceBy.SIZE, 5e-3, None, EVEN),
        sizes=(SizeMean(10, 1e-3), SizeMean(100, 2e-3)),
        transport=Transport(1e-4, 1e-6),
    )
    assert costs(of, "bytes", [10, 11, 1000]) == pytest.approx([1.11e-3, 2.111e-3, 3.1e-3])


def test_service_by_cost_takes_a_factor_and_a_fixed_part():
    of = profile(Service(9, ServiceBy.COST, 5e-3, None, EVEN, 2.0, 1e-4), transport=Transport(1e-5))
    assert costs(of, "cost_us", [1000, None]) == pytest.approx([2.11e-3, 1.1e-4])


def test_a_time_per_byte_alone_makes_rows_depend_on_their_bytes():
    of = profile(Service(9, mean_s=1e-3, quantiles_s=(1e-3, 1e-3)), transport=Transport(None, 1e-6))
    assert costs(of, "bytes", [0, 50]) == pytest.approx([1e-3, 1.05e-3])
    assert row_costs_of(of, ("ts", "key"), KeyType.STRING, 80, 0) is None
    assert transport_of(of, 80) == pytest.approx(8e-5)


def test_a_column_that_the_trace_lacks_is_named():
    with pytest.raises(BadInput, match="depend on column 'cost_us', which the trace does not have"):
        costs(profile(Service(9, ServiceBy.COST, 5e-3, None, EVEN, 2.0)), "", [], ("ts", "key"))


def test_service_times_are_drawn_from_the_quantiles_or_assumed():
    found = service_of(profile(Service(9, mean_s=2e-3, quantiles_s=(1e-3, 3e-3))))
    assert found is not None
    assert found.spread is not None
    assert found.spread.kind is SpreadKind.EMPIRICAL
    assumed = service_of(profile(Service(9, mean_s=2e-3)))
    assert assumed is not None
    assert assumed.spread is not None
    assert assumed.spread.assumed
    assert service_of(profile(Service())) is None


@pytest.mark.parametrize(
    "spread", [Spread(SpreadKind.LOGNORMAL, 1.0), Spread(SpreadKind.EMPIRICAL, sample=np.array([1e-3, 3e-3]))]
)
def test_transport_moves_the_distribution_and_keeps_its_width(spread):
    service = Stated(2e-3, spread=spread)
    moved = shifted(service, 1e-3)
    assert moved.mean_s == pytest.approx(3e-3)
    chance = np.random.default_rng
    wide = [one.mean_s * one.spread.factors(100_000, chance(0)).std() for one in (service, moved)]
    assert wide[1] == pytest.approx(wide[0], rel=0.05)
