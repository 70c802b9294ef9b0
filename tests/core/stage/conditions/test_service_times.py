"""Service times against their formulas."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.service_times import LEAST_MEANS, UNKNOWN, Service, Spread, SpreadKind
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups, even_owners
from adapt.core.stage.engine.initial_arrays import service_times

COUNT = 2**16


def drawn(kind, shape=0.0, **more):
    return Spread(kind, shape, **more).factors(COUNT, np.random.default_rng(7))


def test_a_mean_alone_has_an_unknown_spread():
    assert Service.parse("45us") == Service(mean_s=45e-6, spread=UNKNOWN)
    assert UNKNOWN.described() == {"kind": "lognormal", "assumed": True, "coefficient_of_variation": 1.0}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("constant(1ms)", {"mean_s": 1e-3, "sd_s": 0.0}),
        ("normal(45us, 3us)", {"mean_s": 45e-6, "sd_s": 3e-6}),
        ("cost_us", {"column": "cost_us"}),
        ("keys:k.csv", {"key_file": "k.csv"}),
        ("empirical:a.parquet", {"sample_file": "a.parquet"}),
        ("lognormal(keys:k.csv,0.5)", {"key_file": "k.csv"}),
        (" pareto( cost_us , 2.5 )", {"column": "cost_us"}),
    ],
)
def test_a_text_names_a_mean_and_a_spread(text, named):
    service = Service.parse(text)
    assert {name: getattr(service, name) for name in named} == named


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weibull(1ms, 2)", "'weibull' is not a distribution; choose normal, constant, exponential, lognormal, pareto"),
        ("lognormal(1ms)", "lognormal takes a mean and the coefficient of variation, such as lognormal"),
        ("lognormal(1ms, wide)", "'wide' does not fit: lognormal takes"),
        ("lognormal(1ms, -1)", "a coefficient of variation of at least 0 (got -1)"),
        ("pareto(1ms, 1)", "an exponent above 1, so that there is a mean (got 1)"),
        ("normal(cost_us, 3us)", "'normal(cost_us, 3us)' has no fixed mean"),
        ("normal(45us, 45us)", "at most 0.5 of its mean; for a wider spread, choose lognormal(45us, 1)"),
        ("normal(45us, 500us)", "choose lognormal(45us, 11.1)"),
        ("normal(0s, 1us)", "'normal(0s, 1us)' has no service time"),
        ("45", "45 needs a unit: 45s or 45h?"),
        ("3MB", "'3MB' has an unknown unit"),
    ],
)
def test_what_is_wrong_with_a_text_is_one_sentence(text, message):
    with pytest.raises(UsageError) as error:
        Service.parse(text)
    assert message in str(error.value)


@pytest.mark.parametrize("sd_s", [0.0, 3e-6, 45e-6 / LEAST_MEANS])
def test_a_normal_distribution_has_its_mean(sd_s):
    settings = StageSettings(2, even_owners(2, 2), even_groups(4, 4), costs=Costs(service_s=45e-6, service_sd_s=sd_s))
    assert service_times(settings).mean() == pytest.approx(45e-6, rel=0.015)


@pytest.mark.parametrize("variation", [0.0, 0.5, 1.0, 2.0])
def test_a_lognormal_has_its_variation_and_median(variation):
    factors = drawn(SpreadKind.LOGNORMAL, variation)
    assert factors.mean() == pytest.approx(1.0)
    assert factors.std() == pytest.approx(variation, rel=0.05)
    assert np.median(factors) == pytest.approx(1 / np.sqrt(1 + variation**2), rel=0.02)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 0.999])
def test_tails_are_those_of_the_formulas(share):
    exponential = np.quantile(drawn(SpreadKind.EXPONENTIAL), share)
    assert exponential == pytest.approx(-np.log(1 - share), rel=0.01)
    exponent = 2.5
    pareto = np.quantile(drawn(SpreadKind.PARETO, exponent), share)
    assert pareto == pytest.approx((1 - share) ** (-1 / exponent) * (exponent - 1) / exponent, rel=0.01)


def test_measurements_are_drawn_as_often_as_they_are_there():
    sample = np.sort(np.array([1.0, 1.0, 2.0, 12.0]))
    values, counts = np.unique(drawn(SpreadKind.EMPIRICAL, sample=sample) * sample.mean(), return_counts=True)
    assert values == pytest.approx([1.0, 2.0, 12.0])
    assert (counts / COUNT).tolist() == [0.5, 0.25, 0.25]
    assert (drawn(SpreadKind.CONSTANT) == 1).all()


def test_a_sample_needs_a_time_above_0():
    with pytest.raises(UsageError, match="needs a service time above 0"):
        Spread(SpreadKind.EMPIRICAL, sample=np.zeros(3))
