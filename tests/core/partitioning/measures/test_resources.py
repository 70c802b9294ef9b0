"""Resource functions and how users write them."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.resources import Measured, ResourceFunction, Resources


def test_functions_of_a_count():
    counts = np.array([0, 1, 3])
    assert ResourceFunction.CONSTANT.costs(counts).tolist() == [1, 1, 1]
    assert ResourceFunction.LINEAR.costs(counts).tolist() == [0, 1, 3]
    assert ResourceFunction.QUADRATIC.costs(counts).tolist() == [0, 1, 9]


def test_large_counts_do_not_wrap_when_squared():
    assert ResourceFunction.QUADRATIC.costs(np.array([2**40])).tolist() == [2.0**80]


def test_three_letters_in_the_order_state_computation_network():
    resources = Resources.parse("cql")
    assert resources.text == "CQL"
    assert resources.state is ResourceFunction.CONSTANT
    assert resources.network is ResourceFunction.LINEAR


@pytest.mark.parametrize(
    ("written", "meant"),
    [(1.2, (1.2, 1.2, 1.2)), ("1.2", (1.2, 1.2, 1.2)), ("1.2,1.5,1", (1.2, 1.5, 1)), ([1, 2, 3], (1, 2, 3))],
)
def test_one_tolerance_or_three(written, meant):
    assert Resources.parse("LLL", written).tolerance == meant


@pytest.mark.parametrize("letters", ["LX", "LLX", "LLLL", "", "L L", "state=n"])
def test_other_letters_are_refused_with_an_example(letters):
    with pytest.raises(UsageError, match=f"resources takes three letters of C, L, Q .*'{letters}'"):
        Resources.parse(letters)


@pytest.mark.parametrize("tolerance", ["1.2,1.3", "much", [], "0.9", "nan", "inf", 0.5])
def test_other_tolerances_are_refused(tolerance):
    with pytest.raises(UsageError, match=r"tolerance .* such as 1\.2"):
        Resources.parse("LLL", tolerance)


@pytest.mark.parametrize("sigma", [0, -1, 1.1, float("nan")])
def test_sigma_outside_its_range_is_refused(sigma):
    with pytest.raises(UsageError, match=r"sigma must be above 0 and at most 1"):
        Resources.parse("LLL", 1.2, sigma)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["state=bytes"], ("bytes", None, None)),
        (["state=bytes,computation=cost"], ("bytes", "cost", None)),
        (["network = state_bytes", "state=count"], ("count", None, "state_bytes")),
        (["state=bytes", "state=bytes"], ("bytes", None, None)),
        ([], (None, None, None)),
    ],
)
def test_resources_are_measured_by_columns(written, meant):
    assert Resources.parse(measure=written).measured == meant


def test_what_is_measured_takes_the_place_of_a_letter():
    resources = Resources.parse("CQL", measure=["computation=cost"])
    assert resources.loads == (ResourceFunction.CONSTANT, Measured("cost"), ResourceFunction.LINEAR)
    assert resources.text == "CQL"
    assert resources.sources == ("cost",)
    assert resources.by_count == Resources.parse("CQL")
    assert resources.as_data() == {
        "resources": "CQL",
        "tolerance": [1.2, 1.2, 1.2],
        "measured": {"computation": "cost"},
    }
    assert Resources.parse("CQL").as_data() == {"resources": "CQL", "tolerance": [1.2, 1.2, 1.2]}


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("bytes", "measure takes RESOURCE=COLUMN, such as state=bytes"),
        ("state=", "measure takes RESOURCE=COLUMN.*'state='"),
        ("", "measure takes RESOURCE=COLUMN.*''"),
        ("stat=bytes", r"unknown resource 'stat'; did you mean 'state'\? Available: computation, network, state"),
        ("state=bytes,state=cost", "state is measured by 'bytes' already; give one column"),
    ],
)
def test_other_measures_are_refused(written, told):
    with pytest.raises(UsageError, match=told):
        Resources.parse(measure=[written])
