"""What every engine has: a folder of its name, a fixed hash and placement, true facts, and an export or none."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adapt.core.engines
from adapt.core.engines.engine import EngineDefinition, WorkUnits
from adapt.core.engines.names import BASES, SCHEMES_BY_NAME, Engine, Target
from adapt.core.engines.registry import definition_of, exporter_of, key_groups_of
from adapt.core.errors import AdaptError, UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from adapt.traces.deploy.export import source_of

TYPES = {
    KeyType.STRING: (st.text(max_size=20), pa.string()),
    KeyType.INT64: (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    KeyType.BINARY: (st.binary(max_size=20), pa.binary()),
}

every_engine = pytest.mark.parametrize("engine", Engine)


@st.composite
def columns(draw):
    """A column of keys of any type, null among them."""
    keys, kind = TYPES[draw(st.sampled_from(COLUMN_TYPES))]
    return pa.array(draw(st.lists(st.none() | keys, max_size=20)), kind)


def test_the_folders_of_engines_are_their_names():
    (root,) = map(Path, adapt.core.engines.__path__)
    assert {path.parent.name for path in root.glob("*/engine.py")} == {engine.folder for engine in Engine}


def test_no_engine_has_the_name_of_a_scheme_of_ours():
    assert len(SCHEMES_BY_NAME) == len(Engine) + len(Scheme)
    assert all(SCHEMES_BY_NAME[name] == name for name in (*Engine, *Scheme))


@every_engine
@settings(deadline=None)
@given(keys=columns(), channels=st.integers(1, 300))
def test_a_key_has_one_hash_and_one_channel(engine, keys, channels):
    known = definition_of(engine)
    channels = min(channels, known.units.most or channels)
    hashes, placed = known.hash(keys), known.placement(channels, None).channels_of(keys)
    assert (hashes.shape, placed.dtype, placed.shape) == ((len(keys),), np.int32, (len(keys),))
    assert hashes.dtype in (np.int32, np.uint32, np.uint64)
    assert ((placed >= 0) & (placed < channels)).all()
    assert placed.tolist() == make_partitioner(engine, channels).channels_of(keys).tolist()
    for row, key in enumerate(keys.to_pylist()):
        alone = pa.array([key], keys.type)
        assert known.hash(alone).tolist() == [hashes[row]]
        scalar = make_partitioner(engine, channels)
        assert scalar.channels_of(alone).tolist() == [placed[row]]
        assert keys.type != pa.string() or scalar.channel_of(key) == placed[row]


@every_engine
def test_the_facts_are_complete(engine):
    known = definition_of(engine)
    for holder, kind in ((known, EngineDefinition), (known.units, WorkUnits)):
        texts = [value for field in fields(kind) if isinstance(value := getattr(holder, field.name), str)]
        assert all(text and text == text.strip() for text in texts)
    assert all(text.endswith(".") for text in (known.null_key, known.empty_key, known.rescale, known.units.note))
    assert known.placement(known.default_channels, None).channels == known.default_channels
    if known.units.default is not None:
        assert 1 <= known.units.default(known.default_channels) <= (known.units.most or np.inf)


@every_engine
def test_key_groups_have_the_limit_that_is_said(engine):
    limits, placement = key_groups_of(engine), definition_of(engine).placement
    if limits is None:
        assert placement(7, 100) == placement(7, None)
    else:
        assert placement(7, limits.default(7)) == placement(7, None) != placement(7, limits.most)
        with pytest.raises(UsageError, match="--max-parallelism must be from"):
            placement(7, limits.most + 1)


def test_targets_are_the_engines_with_an_export_any_hash_and_any_language():
    assert set(Target) == {*(engine for engine in Engine if definition_of(engine).export), "rekey", "plan"}


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize(
    ("scheme", "base"),
    [*((each, Scheme.CONSISTENT) for each in SCHEMES_BY_NAME.values()), *((Scheme.HYBRID, base) for base in BASES)],
)
def test_every_plan_is_exported_or_refused_in_a_sentence(target, scheme, base):
    explicit = {"user": 1} if scheme in MAPPED_SCHEMES else {}
    plan = Plan(scheme, 3, KeyType.STRING, hash=HashName.XXHASH64, replicas=10, explicit=explicit, base=base)
    exported = exported_or_refused(target, plan)
    if isinstance(exported, str):
        assert f"scheme {scheme}" in exported
    else:
        assert exported.use
        assert all(source_of(program) and program.about for program in exported.programs.values())


def exported_or_refused(target, plan):
    """The files of a plan, or the sentence of its refusal."""
    try:
        return exporter_of(target)(plan, None)
    except AdaptError as refusal:
        return str(refusal)
