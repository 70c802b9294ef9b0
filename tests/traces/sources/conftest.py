"""What tests of sources on Spark share."""

from pathlib import Path

import pytest

from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.sniff import ReadOptions, recognize
from adapt.traces.sources.source import Source
from adapt.traces.spark.progress import silent
from adapt.traces.spark.session import session_in_zone


@pytest.fixture
def opened(spark, tmp_path_factory):
    """Opens files as a source, as an ingest does."""

    def open_source(*paths: Path, **reading) -> Source:
        files = source_files([str(path) for path in paths])
        found = recognize(files, ReadOptions(**reading))
        staging = tmp_path_factory.mktemp("staging") / "rows"
        return Source(session_in_zone(spark, "UTC"), files, found.form, staging, silent, found.by_file)

    return open_source
