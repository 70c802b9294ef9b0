"""The library of charts: bundled once, kept, and made again where it cannot be read."""

import pytest

from adapt.core.report import interactive
from adapt.core.report.interactive import Library
from adapt.traces.reports import chart_library
from adapt.traces.reports.chart_library import kept_library


@pytest.fixture
def made(tmp_path, monkeypatch):
    """How often the library was bundled."""
    times = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    script = "window.vega = 1;"
    library = Library(interactive._packed(script), interactive._digest(script))
    monkeypatch.setattr(chart_library, "bundled", lambda: times.append(1) or library)
    return times


def test_the_library_is_bundled_once(made, tmp_path):
    assert kept_library() == kept_library()
    assert len(made) == 1
    assert len(list((tmp_path / "cache").rglob("vega-*"))) == 1


@pytest.mark.parametrize("spoil", [b"", b"x", b"abc\ndef", "\u00e9".encode()])
def test_a_damaged_library_is_made_again(made, tmp_path, spoil):
    first = kept_library()
    (path,) = (tmp_path / "cache").rglob("vega-*")
    path.write_bytes(spoil)
    assert kept_library() == kept_library() == first
    assert len(made) == 2


def test_without_a_cache_folder_a_page_has_its_library(made, tmp_path):
    for name in ("cache", "home"):
        (tmp_path / name).write_text("a file where a folder should be")
    assert kept_library() == kept_library()
    assert len(made) == 2
