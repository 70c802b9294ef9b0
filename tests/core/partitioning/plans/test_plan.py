import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.names import BASES, SCHEMES_BY_NAME, Engine, hashing_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Construction, Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType

PLAN = Plan(
    scheme=Scheme.HYBRID,
    channels=8,
    key_type=KeyType.STRING,
    construction=Construction.SCAN,
    replicas=10,
    explicit=ExplicitMap.from_mapping({"b": 7, "a": 1, None: 3}),
    trace="f00d",
    parent="beef",
    predicted_loads={"network": [0.5, 0.25]},
    metrics={"imbalance": 1.25, "r_s": None},
    parameters={"sigma": 0.1, "resources": "LLL"},
)
DATA = plan_to_data(PLAN)

KEYS = {KeyType.STRING: st.text(), KeyType.INT64: st.integers(-(2**63), 2**63 - 1), KeyType.BINARY: st.binary()}


@st.composite
def plans(draw):
    key_type = draw(st.sampled_from(COLUMN_TYPES))
    scheme = draw(st.sampled_from(list(SCHEMES_BY_NAME.values())))
    base = draw(st.sampled_from(BASES))
    channels = draw(st.integers(1, 20))
    entries = st.dictionaries(st.none() | KEYS[key_type], st.integers(0, channels - 1))
    return Plan(
        scheme=scheme,
        channels=channels,
        key_type=key_type,
        hash=draw(st.sampled_from(HashName)),
        replicas=draw(st.integers(1, 2000)) if hashing_of(scheme, base) is Scheme.CONSISTENT else 1000,
        explicit=ExplicitMap.from_mapping(draw(entries) if scheme in MAPPED_SCHEMES else {}, key_type),
        max_parallelism=draw(st.none() | st.integers(channels, 2**15)),
        base=base,
    )


def test_the_data_is_the_json_of_the_design():
    assert DATA == {
        "schema": "adapt.plan/1",
        "scheme": "hybrid",
        "construction": "scan",
        "channels": 8,
        "key_type": "string",
        "hash": {"name": "murmur3", "seed": 0},
        "replicas": 10,
        "explicit": {"a": 1, "b": 7},
        "explicit_null": 3,
        "trace": "f00d",
        "parent": "beef",
        "predicted_loads": {"network": [0.5, 0.25]},
        "metrics": {"imbalance": 1.25, "r_s": None},
        "parameters": {"sigma": 0.1, "resources": "LLL"},
    }


@pytest.mark.parametrize("base", BASES)
def test_a_base_other_than_the_ring_is_written_in_a_version_that_old_readers_refuse(base):
    data = plan_to_data(replace(PLAN, base=base, max_parallelism=120))
    if base is Scheme.CONSISTENT:
        assert data == DATA
    else:
        assert (data["schema"], data["base"], data["replicas"]) == ("adapt.plan/2", base, None)
        assert (data["hash"] is None) is isinstance(base, Engine)
        assert data.get("max_parallelism") == (120 if base in ("flink", "flink-sql", "key-groups") else None)


@pytest.mark.parametrize("scheme", [each for each in SCHEMES_BY_NAME.values() if each is not Scheme.HYBRID])
def test_only_a_hybrid_plan_has_a_base(scheme):
    plan = Plan(scheme, 4, KeyType.STRING, base=Engine.SPARK)
    assert (plan.base, plan.hashing) == (Scheme.CONSISTENT, hashing_of(scheme, Engine.SPARK))
    with pytest.raises(BadInput, match=f"'base': given, but scheme {scheme} has no choice of base"):
        plan_from_data(plan_to_data(plan) | {"base": "spark"})


def test_a_plan_survives_json():
    assert plan_from_data(json.loads(json.dumps(DATA))) == PLAN


@given(plans())
def test_any_plan_survives_json_with_its_hash(plan):
    again = plan_from_data(json.loads(json.dumps(plan_to_data(plan))))
    assert again == plan
    assert again.content_hash() == plan.content_hash()


@given(plans())
def test_explicit_entries_may_travel_in_a_table(plan):
    data = json.loads(json.dumps(plan_to_data(plan, with_explicit=False)))
    assert data["explicit"] is None
    assert data["explicit_null"] is None
    assert plan_from_data(data, plan.to_arrow()) == plan


def test_the_table_has_key_and_channel_in_key_order():
    assert PLAN.to_arrow().to_pydict() == {"key": [None, "a", "b"], "channel": [3, 1, 7]}
    assert PLAN.to_arrow().schema == pa.schema({"key": pa.string(), "channel": pa.int32()})


def test_the_partitioner_places_as_the_plan_says():
    built = PLAN.partitioner()
    assert isinstance(built, HybridPartitioner)
    assert built.explicit == {"a": 1, "b": 7, None: 3}
    assert (built.base.channels, built.base.replicas, built.base.hash) == (8, 10, HashName.MURMUR3)


def test_predictions_and_origins_do_not_count_in_the_content_hash():
    told = {"metrics": {}, "predicted_loads": {}, "trace": None, "parent": None}
    assert replace(PLAN, **told).content_hash() == PLAN.content_hash()


@pytest.mark.parametrize(
    "change",
    [
        {"channels": 9},
        {"key_type": KeyType.BINARY, "explicit": ExplicitMap.from_mapping({b"a": 1, b"b": 7, None: 3})},
        {"hash": HashName.XXHASH64},
        {"replicas": 11},
        {"explicit": ExplicitMap.from_mapping({"a": 2, "b": 7, None: 3})},
        {"explicit": ExplicitMap.from_mapping({"a": 1, "b": 7})},
        {"construction": None},
        {"base": Engine.SPARK},
        {"parameters": {"sigma": 0.2, "resources": "LLL"}},
    ],
)
def test_what_decides_the_mapping_counts_in_the_content_hash(change):
    assert replace(PLAN, **change).content_hash() != PLAN.content_hash()


def test_replicas_mean_nothing_in_a_uniform_plan():
    plans = [Plan(Scheme.UNIFORM, 8, KeyType.STRING, replicas=replicas) for replicas in (10, 1000)]
    assert plans[0].content_hash() == plans[1].content_hash()
    assert plan_to_data(plans[0])["replicas"] is None


def test_the_order_of_parameters_and_entries_does_not_count():
    turned = replace(
        PLAN,
        explicit=ExplicitMap.from_mapping({None: 3, "a": 1, "b": 7}),
        parameters={"resources": "LLL", "sigma": 0.1},
    )
    assert turned.content_hash() == PLAN.content_hash()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": "adapt.plan/4"},
            r"'schema': must be 'adapt.plan/1', 'adapt.plan/2' or 'adapt.plan/3' \(got 'adapt.plan/4'\)",
        ),
        ({"schema": "adapt.run/2"}, r"'schema'"),
        ({"schema": None}, r"'schema': missing"),
        ({"base": "sprak"}, r"'base': unknown 'sprak'; did you mean 'spark'"),
        ({"base": "bounded"}, r"'base': unknown 'bounded'"),
        ({"scheme": "greedy"}, r"'scheme': unknown 'greedy'"),
        ({"scheme": "hybird"}, r"'scheme': unknown 'hybird'; did you mean 'hybrid'"),
        ({"scheme": "uniform"}, r"'explicit': pins 3 keys, but scheme uniform pins no keys"),
        ({"construction": "scam"}, r"'construction': unknown 'scam'; did you mean 'scan'"),
        ({"channels": 7}, r"'explicit': key 'b' is pinned to worker 7, but workers run from 0 to 6"),
        ({"channels": 0}, r"'channels': must be from 1 .*got 0"),
        ({"channels": 2**31}, r"'channels': must be from 1 .*got 2147483648"),
        ({"channels": True}, r"'channels': must be a whole number \(got True"),
        ({"channels": 8.0}, r"'channels': must be a whole number \(got 8.0"),
        ({"channels": None}, r"'channels': missing"),
        ({"key_type": "int46"}, r"'key_type': unknown 'int46'; did you mean 'int64'"),
        ({"key_type": "int64"}, r"'explicit': int64 keys must be 64-bit integers in decimal"),
        ({"hash": {"name": "murmur", "seed": 0}}, r"'hash.name': unknown 'murmur'; did you mean 'murmur3'"),
        ({"hash": {"name": "murmur3", "seed": 7}}, r"'hash.seed': must be 0, the seed of murmur3 \(got 7"),
        ({"hash": "murmur3"}, r"'hash': must be an object"),
        ({"replicas": -5}, r"'replicas': must be from 1 .*got -5"),
        ({"explicit": None}, r"'explicit': missing"),
        ({"explicit": {"a": "x"}}, r"'explicit': key 'a' must have a whole number as worker .*'x'"),
        ({"explicit": {"a": True}}, r"'explicit': key 'a' must have a whole number as worker .*True"),
        ({"explicit": {"a": 2**70}}, r"'explicit': key 'a' is pinned to worker 1180591620717411303424"),
        ({"explicit_null": 8}, r"'explicit_null': key None is pinned to worker 8, but workers run from 0 to 7"),
        ({"metrics": []}, r"'metrics': must be an object"),
        ({"trace": 5}, r"'trace': must be text"),
    ],
)
def test_a_wrong_field_is_named(change, message):
    with pytest.raises(BadInput, match=message):
        plan_from_data(DATA | change)


def test_fields_of_later_writers_are_passed_over():
    assert plan_from_data(DATA | {"schema": "adapt.plan/1.1", "colour": "green"}) == PLAN


def test_hex_keys_that_are_the_same_bytes_are_refused():
    with pytest.raises(BadInput, match="'explicit': key b'\\\\xff' is pinned to two workers"):
        plan_from_data(DATA | {"key_type": "binary", "explicit": {"ff": 0, "FF": 1}})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"key": ["a"]}, r"its table needs columns 'key' and 'channel'"),
        ({"key": [1], "channel": [1]}, "its table has int64 keys, but the plan has string keys"),
        ({"key": [1.5], "channel": [1]}, "got double"),
        ({"key": ["a"], "channel": ["x"]}, "string with 0 nulls"),
        ({"key": ["a", "b"], "channel": [1, None]}, "int64 with 1 nulls"),
        ({"key": ["a"], "channel": [8]}, "key 'a' is pinned to worker 8, but workers run from 0 to 7"),
        ({"key": ["a", "a"], "channel": [1, 1]}, "key 'a' is pinned to two workers"),
    ],
)
def test_a_wrong_table_is_refused_by_field(table, message):
    with pytest.raises(BadInput, match=f"plan field 'explicit': .*{message}"):
        plan_from_data(DATA, pa.table(table))


def test_a_plan_refuses_entries_that_do_not_fit_it():
    with pytest.raises(BadInput, match="workers run from 0 to 6"):
        replace(PLAN, channels=7)
    with pytest.raises(UsageError, match="one type"):
        replace(PLAN, key_type=KeyType.INT64)
