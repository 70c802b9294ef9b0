"""Key groups of a plan: at its own parallelism the plan, at any other what Flink makes of the same groups."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.engines.flink.planned_groups import group_plan, group_starts
from adapt.core.engines.flink.routes import flink_routes
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.names import BASES, Engine
from adapt.core.errors import BadInput
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme
from adapt.core.stream import KeyType

KEYS = {KeyType.STRING: st.text(max_size=9), KeyType.INT64: st.integers(-(2**63), 2**63 - 1)}
SCHEMES = list(Scheme)


@st.composite
def grouped(draw):
    key_type = draw(st.sampled_from(sorted(KEYS)))
    channels = draw(st.integers(1, 9))
    scheme = draw(st.sampled_from(SCHEMES))
    keys = st.none() | KEYS[key_type]
    explicit = draw(st.dictionaries(keys, st.integers(0, channels - 1), max_size=9)) if scheme in MAPPED_SCHEMES else {}
    base = draw(st.sampled_from(BASES))
    plan = Plan(scheme, channels, key_type, replicas=20 if explicit else 1000, explicit=explicit, base=base)
    rows = draw(st.lists(keys | st.sampled_from([None, *explicit]), max_size=20))
    groups = None if plan.max_parallelism else draw(st.none() | st.integers(channels, 300))
    return group_plan(plan, groups), pa.array(rows, plan.explicit.column.type)


@settings(max_examples=settings().max_examples // 2)
@given(grouped())
def test_at_its_own_parallelism_each_subtask_has_the_keys_of_its_channel(made):
    found, keys = made
    placed = found.plan.partitioner().channels_of(keys)
    assert found.subtasks_of(keys, found.plan.channels).tolist() == placed.tolist()


@settings(max_examples=settings().max_examples // 2)
@given(grouped(), st.integers(1, 40))
def test_at_any_other_flink_puts_the_routes_where_the_groups_are(made, parallelism):
    found, keys = made
    parallelism = min(parallelism, found.groups)
    groups = found.groups_of(keys)
    routes = pa.array(flink_routes(found.groups)[groups].astype(np.int64))
    theirs = FlinkPartitioner(parallelism, found.groups).channels_of(routes)
    assert found.subtasks_of(keys, parallelism).tolist() == theirs.tolist()
    assert [found.group_of(key) for key in keys.to_pylist()] == groups.tolist()


@given(st.integers(1, 200), st.integers(0, 400))
def test_ranges_are_contiguous_and_as_flink_cuts_them(channels, more):
    groups = channels + more
    starts = group_starts(channels, groups)
    owners = [group * channels // groups for group in range(groups)]
    assert [owners.index(channel) for channel in range(channels)] == starts[:-1].tolist()
    assert starts[-1] == groups


def test_what_flink_does_by_itself_needs_no_export():
    with pytest.raises(BadInput, match="needs no export"):
        group_plan(Plan(Engine.FLINK, 4, KeyType.STRING))


@given(st.lists(st.none() | st.text(max_size=9)), st.integers(1, 9), st.integers(9, 300))
def test_over_flink_s_own_base_every_key_but_the_pinned_keeps_its_group(keys, channels, groups):
    column = pa.array(keys, pa.string())
    plan = Plan(Scheme.HYBRID, channels, KeyType.STRING, explicit={"hot": 0}, max_parallelism=groups, base=Engine.FLINK)
    theirs = FlinkPartitioner(groups, groups).channels_of(column)
    free = np.array([key != "hot" for key in keys], bool)
    assert group_plan(plan).groups_of(column)[free].tolist() == theirs[free].tolist()
