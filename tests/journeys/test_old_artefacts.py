"""The README's journey on a trace and a plan of the version before."""

import contextlib
import json

import pytest

from adapt.core.units.seals import as_json, sealed
from adapt.traces.read_errors import note_unsealed
from adapt.traces.store.manifest import MANIFEST

SAYS_SO = [
    "verdict old.trace --channels 4",
    "partition build old.trace --channels 4 --from old.plan",
    "partition compare old.trace --channels 4",
    "partition evaluate old.trace old.plan",
    "replay repartition old.trace --channels 4",
]
"""Place keys as an engine does, which depends on their type."""

READS = [
    "partition diff old.trace old.plan old.plan",
    "partition export old.plan --to plan -o export",
    "report old.trace old.plan --verify",
    "lint old.trace",
    "check old.trace --limit keys<=300",
    "advise keys old.trace --parallelism 3",
    "replay flux old.trace --workers 4 --plan old.plan",
]


@pytest.fixture
def old(adapt, tmp_path):
    """A trace of format 1 and a plan without a seal."""
    with contextlib.chdir(tmp_path):
        adapt.done(*"generate zipf --rows 3000 --keys 200 --key-type int64 -o old.trace".split())
        adapt.done(*"partition build old.trace --channels 4 -o old.plan".split())
        path = tmp_path / "old.trace" / MANIFEST
        data = json.loads(path.read_bytes()) | {"format": 1}
        del data["summary"]["key_columns"], data["seal"]
        path.write_bytes(as_json(sealed(data)))
        plan = tmp_path / "old.plan"
        plan.write_bytes(
            as_json({name: value for name, value in json.loads(plan.read_bytes()).items() if name != "seal"})
        )
        yield tmp_path


def test_old_traces_and_plans_read_and_say_what_they_lack(adapt, old):
    first_format = "old.trace is of the first format, which did not keep the type of keys: spark places them as int64"
    for line in SAYS_SO:
        assert first_format in adapt.done(*line.split()).err, line
    for line in READS:
        note_unsealed.cache_clear()
        assert ("old.plan has no seal" in adapt.done(*line.split()).err) is ("old.plan" in line), line
