import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.uniform import UniformPartitioner


@pytest.mark.parametrize("hash", HashName)
def test_many_keys_are_spread_evenly(hash):
    placed = UniformPartitioner(10, hash).channels_of(pa.array(range(100_000)))
    counts = [(placed == channel).sum() for channel in range(10)]
    # Four and a half standard deviations of a binomial share of 1/10.
    assert all(abs(count - 10_000) < 430 for count in counts)


@pytest.mark.parametrize("channels", [0, -1, 2**31])
def test_an_impossible_number_of_channels_is_refused(channels):
    with pytest.raises(UsageError, match="from 1 to"):
        UniformPartitioner(channels)


def test_partitioners_of_equal_parameters_are_equal():
    assert UniformPartitioner(4) == UniformPartitioner(4) != UniformPartitioner(5)
