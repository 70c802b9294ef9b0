"""`adapt report`, nearly all of it over artefacts made without Spark."""

import json

import pytest

from adapt.cli.report import DETAIL_ROWS


@pytest.fixture
def plans(adapt, tmp_path, monkeypatch):
    """Two plans in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("".join(f"k{number},{2000 // number}\n" for number in range(1, 200)))
    for channels in (2, 60):
        adapt.done("partition", "build", "counts.csv", "--channels", channels, "-o", f"{channels}.plan")
    return tmp_path


def test_every_format_shows_the_same_plan(adapt, plans):
    read = json.loads(adapt.done("report", "2.plan", "--format", "json").out)
    assert read["schema"] == "adapt.report/1"
    (plan,) = read["artefacts"]
    assert (plan["kind"], plan["name"]) == ("plan", "2.plan")
    assert {table["title"] for table in plan["tables"]} >= {"Plan", "Foreseen load of each channel"}
    assert adapt.done("report", "2.plan", "--format", "csv").out.startswith("# Plan\nscheme,")
    assert plan["verdict"]["channels"] == 2
    headline = f"Verdict: {plan['verdict']['class']} (2 channels, limit 1.2)\n"
    assert adapt.done("report", "2.plan", "--format", "md").out.startswith(f"### {headline}")
    assert adapt.done("report", "2.plan").out.startswith(headline)


def test_several_artefacts_are_told_apart(adapt, plans):
    said = adapt.done("report", "2.plan", "60.plan")
    assert "2.plan: Plan\n" in said.out
    assert "60.plan: Plan\n" in said.out
    assert [line.split(":")[0] for line in said.err.splitlines()] == ["2.plan", "60.plan"]
    assert adapt.done("-q", "report", "2.plan", "60.plan").err == ""


def test_long_tables_are_cut_for_people_and_whole_for_programs(adapt, plans):
    assert f"and {60 - DETAIL_ROWS} more rows" in adapt.done("report", "60.plan", "--all").out
    assert "more rows" not in adapt.done("report", "60.plan", "--format", "csv").out


def test_a_page_is_written_whole_and_not_over_another(adapt, plans):
    adapt.done("report", "2.plan", "--html", "page.html", "--title", "<Mine>")
    page = (plans / "page.html").read_text()
    assert "&lt;Mine&gt;" in page
    assert "page.html exists; add --force" in adapt.refused(4, "report", "60.plan", "--html", "page.html")
    assert (plans / "page.html").read_text() == page
    adapt.done("report", "60.plan", "--html", "page.html", "--force")
    assert (plans / "page.html").read_text() != page


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("none.plan", "does not exist; give what `adapt ingest`"),
        ("counts.csv", "is no plan"),
        (".", "no artefact of adapt"),
    ],
)
def test_what_is_no_artefact_is_refused(adapt, plans, path, told):
    before = sorted(plans.iterdir())
    assert told in adapt.refused(3, "report", path, "--html", "page.html")
    assert sorted(plans.iterdir()) == before


def test_a_page_needs_a_place_before_it_is_made(adapt, plans):
    assert "does not exist" in adapt.refused(4, "report", "2.plan", "--html", "none/page.html")
    assert "is a folder" in adapt.refused(4, "report", "2.plan", "--html", str(plans))


@pytest.mark.usefixtures("spark")
def test_every_byte_is_checked_if_asked(adapt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("ts,key\n" + "".join(f"17{at:08d},k{at}\n" for at in range(2_000)))
    adapt.done("ingest", "rows.csv", "--key", "key", "-o", "x.trace")
    adapt.done("report", "x.trace", "--verify")
    part = tmp_path / "x.trace" / "part-00000.parquet"
    damaged = bytearray(part.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    part.write_bytes(damaged)
    assert "part-00000.parquet is damaged: its SHA-256" in adapt.refused(3, "report", "x.trace", "--verify")
