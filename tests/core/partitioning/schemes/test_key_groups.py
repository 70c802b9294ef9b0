import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.errors import UsageError
from adapt.core.partitioning.schemes.key_groups import KeyGroups, channels_of_groups, default_max_parallelism
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

KEYS = pa.array([f"key-{number}" for number in range(20_000)])


@pytest.mark.parametrize(
    ("channels", "groups"),
    [(1, 128), (48, 128), (85, 128), (86, 256), (96, 256), (120, 256), (170, 256), (171, 256), (172, 512), (255, 512),
     (511, 1024), (21845, 32768), (32768, 32768)],
)  # fmt: skip
def test_the_default_groups_are_those_of_flink(channels, groups):
    assert default_max_parallelism(channels) == groups
    assert KeyGroups(channels).groups == FlinkPartitioner(channels).groups == groups


@given(st.integers(1, 5000).flatmap(lambda groups: st.tuples(st.integers(1, groups), st.just(groups))))
def test_channels_have_ranges_of_groups_that_differ_by_one_at_most(both):
    channels, groups = both
    owners = channels_of_groups(np.arange(groups, dtype=np.int32), channels, groups)
    assert (np.diff(owners) >= 0).all()
    sizes = np.bincount(owners, minlength=channels)
    assert len(sizes) == channels
    assert sizes.max() - sizes.min() <= 1


def test_as_many_groups_as_channels_are_the_uniform_scheme():
    assert (KeyGroups(9, max_parallelism=9).channels_of(KEYS) == UniformPartitioner(9).channels_of(KEYS)).all()


def test_a_group_moves_whole():
    groups = KeyGroups(128, max_parallelism=128).channels_of(KEYS)
    before, after = (KeyGroups(n, max_parallelism=128).channels_of(KEYS) for n in (8, 12))
    for group in range(128):
        assert len(set(before[groups == group].tolist())) == len(set(after[groups == group].tolist())) == 1


@pytest.mark.parametrize("make", [lambda n, groups: KeyGroups(n, max_parallelism=groups), FlinkPartitioner])
def test_groups_that_do_not_go_with_the_channels_are_refused(make):
    with pytest.raises(UsageError, match="--max-parallelism must be from 8"):
        make(8, 7)
    with pytest.raises(UsageError, match="--max-parallelism must be from 8"):
        make(8, 0)


def test_flink_has_32768_groups_at_most():
    assert KeyGroups(8, max_parallelism=32769).groups == 32769
    with pytest.raises(UsageError, match="to 32768"):
        FlinkPartitioner(8, 32769)
    with pytest.raises(UsageError, match="32769"):
        FlinkPartitioner(32769)
