"""One artefact of each kind, as the commands make them."""

from pathlib import Path

import pyarrow as pa
import pytest

from adapt.cli.main import run
from adapt.core.reading import FOLDER
from adapt.traces.ingest.profile import profile_trace
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import Manifest, Provenance, file_entry, write_manifest
from adapt.traces.store.tables import packed
from adapt.traces.store.trace import blocks_of, part_entry
from tests.any_trace import two_halves

LINES = (
    "partition count a.trace -o a.freq",
    "partition compare a.trace --channels 3 -o a.plans",
    "partition build a.trace --channels 3 --scheme hybrid -o a.plan",
    "replay repartition a.trace --channels 3 --period 100s -o a.run",
    "replay fit a.trace --network n.toml --planner c-fit --plans a.drops",
    "partition export a.plan --to plan -o a.out",
    "replay compare a.trace --channels 3 --scenario static-uniform --jobs 1 --seeds 2 -o a.cmp",
)


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory) -> Path:
    """A folder with a trace and an artefact of every kind that is made from it; not to be changed."""
    folder = tmp_path_factory.mktemp("artefacts")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _trace(Path("a.trace"))
        Path("n.toml").write_text(two_halves("60s", 0.001))
        for line in LINES:
            assert run(line.split()) == 0, line
    return folder


def _trace(folder: Path) -> None:
    """A trace with a profile and a rejected row, as an ingest writes it."""
    times = [1_700_000_000_000_000 + at * 1_000_000 for at in range(600)]
    rows = pa.table(
        {"ts": pa.array(times, pa.timestamp("us", "UTC")), "key": [f"k{at % (1 + at % 23)}" for at in range(600)]}
    )
    (folder / FOLDER).mkdir(parents=True)
    (folder / "part-00000.parquet").write_bytes(packed(rows))
    (folder / FOLDER / "part-00000.parquet").write_bytes(packed(pa.table({"text": [",x"]})))
    entries = [part_entry(folder, folder / "part-00000.parquet")]
    span = times[0], times[-1]
    profile = profile_trace(None, blocks_of(folder, entries), rows.schema, span, silent)
    example = {"file": "s.csv", "line": 2, "text": ",x"}
    summary = {
        "rows": rows.num_rows,
        "first_us": span[0],
        "last_us": span[1],
        "key_type": "string",
        "columns": rows.column_names,
        "rejects": {"rows": 1, "reasons": {"no time": 1}, "examples": {"no time": [example]}},
        "profile": profile.data,
    }
    entries.append(file_entry(folder, folder / FOLDER / "part-00000.parquet"))
    write_manifest(folder, Manifest("trace", profile.content_hash, Provenance("a test"), entries, summary))
