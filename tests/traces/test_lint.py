"""The lint of traces on disk: by the evidence they carry, or by a pass over those that carry none."""

import json

import pytest

from adapt.core.errors import BadInput
from adapt.core.lint.evidence import LINT
from adapt.core.lint.findings import RULES
from adapt.traces.lint import lint
from adapt.traces.store.manifest import Manifest, read_manifest, write_manifest
from tests.core.lint.synthetic import DAY_US, clean, findings, profile
from tests.traces.small_traces import write_trace


def rows() -> dict:
    """A clean stream of a day, but for three rows dated wrong and many without a key."""
    trace = clean(1, rows=5000, days=1.0, exponent=0.3)
    trace["ts"][-3:] += 9 * DAY_US
    trace["key"][::10] = "unknown"
    return trace


def written(folder, *, with_evidence: bool):
    """Those rows as a trace, as ingest leaves it or as it was left before there was a lint."""
    made = rows()
    write_trace(folder, {**made, "key": list(made["key"]), "stream": list(made["stream"])})
    manifest = read_manifest(folder)
    told = profile(made, blocks=1)
    if not with_evidence:
        del told[LINT]
    summary = {**manifest.summary, "profile": told}
    write_manifest(folder, Manifest("trace", manifest.content_hash, manifest.made, manifest.files, summary))
    return folder


def test_a_trace_without_evidence_is_read_and_judged_the_same(tmp_path):
    carried = lint(written(tmp_path / "new.trace", with_evidence=True))
    read = lint(written(tmp_path / "old.trace", with_evidence=False))
    assert (carried.knows_source, read.knows_source) == (True, False)
    assert {finding.id for finding in read.findings} == {"outlier-dates", "default-key", "short-span"}
    strip = [{**finding.as_data(), "effect": None} for finding in carried.findings if finding.id != "source-order"]
    assert strip == [{**finding.as_data(), "effect": None} for finding in read.findings]


def test_the_evidence_is_not_needed_where_it_is_carried(tmp_path):
    folder = written(tmp_path / "new.trace", with_evidence=True)
    for part in folder.glob("*.parquet"):
        part.write_bytes(bytes(part.stat().st_size))
    assert {finding.id for finding in lint(folder).findings} == set(findings(rows()))


def test_a_missing_trace_is_refused(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        lint(tmp_path / "none.trace")


def test_the_command_prints_findings_in_every_format_and_fits_80_columns(adapt, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = written(tmp_path / "t.trace", with_evidence=True)
    said = adapt.done("lint", folder)
    assert max(map(len, said.out.splitlines())) <= 80
    assert "…" not in said.out
    assert f"{len(RULES)} rules checked" in said.err
    told = json.loads(adapt.done("lint", folder, "--format", "json").out)
    assert told["schema"] == "adapt.lint/1"
    assert {found["id"] for found in told["findings"]} >= {"outlier-dates", "default-key"}
    assert next(found for found in told["findings"] if found["id"] == "outlier-dates")["figures"]["rows"] == 3
    assert adapt.done("lint", folder, "--format", "csv").out.startswith("severity,finding,evidence,effect,fix\n")
    assert "does not exist" in adapt.refused(3, "lint", tmp_path / "none.trace")
