"""What all tests share: one Spark session, the real traces, and the command line run in process."""

import gc
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import settings

from tests.trust.promises import Keeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from examples.object_store import Store
    from tests.fault_proxy import Proxy

# The first example of a kernel compiles it, so none has a deadline.
settings.register_profile("short", deadline=None, max_examples=30)
settings.register_profile("soak", deadline=None, max_examples=1000)
settings.load_profile("soak" if os.environ.get("ADAPT_SOAK") else "short")

# A Java process of the tests lives for minutes at most, too short for what the optimising compiler costs to pay.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

REPOSITORY = Path(__file__).parent.parent


FIRST = ("core/ordered", "core/partitioning", "core/fit", "core/stage", "claims", "journeys", "contracts", "paper")
"""Folders of long groups of tests, which begin before the others."""

SOAK = ("claims", "paper")
"""Folders whose tests run in `make soak` and `make paper`, or when they are named: what papers claim."""


def pytest_configure(config: pytest.Config) -> None:
    """Tests say which promise they check."""
    config.pluginmanager.register(Keeper())


gc.disable()  # collecting tests makes no garbage, and each search for it passes over all that was collected


def pytest_collection_finish() -> None:
    """No later search for garbage passes over what was collected."""
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the folders of the long tier to `make soak`, unless they are named on the command line."""
    if os.environ.get("ADAPT_SOAK") or collection_path not in [REPOSITORY / "tests" / name for name in SOAK]:
        return None
    return None if any(path.is_relative_to(collection_path) for path in _named(config)) else True


def _named(config: pytest.Config) -> list[Path]:
    """The files and folders that are to be tested."""
    return [Path(argument.split("::")[0]).resolve() for argument in config.args]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests are spread over processes, one begins with those on Spark, and others with long groups.

    So all end at about the same time.
    """
    whole = _named(config) == [REPOSITORY / "tests"]
    for item in items:
        item.add_marker(pytest.mark.xdist_group("spark" if on_spark(item) else _group(item, whole)))
    items.sort(key=lambda item: (not on_spark(item), _turn(item)))


def _group(item: pytest.Item, whole: bool) -> str:
    """Tests that share a process: those of a file or, in a run of all, of a part of the core, with its kernels."""
    folder = _folder(item)
    return folder if whole and folder.startswith("core/") else str(item.path)


def _turn(item: pytest.Item) -> int:
    return next((turn for turn, folder in enumerate(FIRST) if _folder(item).startswith(folder)), len(FIRST))


def _folder(item: pytest.Item) -> str:
    """The folder of a test below `tests`, to a depth of two."""
    return "/".join(item.path.relative_to(REPOSITORY / "tests").parts[:2])


def on_spark(item: pytest.Item) -> bool:
    """Whether a test has the Spark session, by itself or through another fixture."""
    return "spark" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that has not asked for Spark has none: it would be a second one, in another process."""
    with pytest.MonkeyPatch.context() as patched:
        if not on_spark(item):
            patched.setattr("adapt.traces.spark.session._running", lambda: None)
            patched.setattr("adapt.traces.spark.session._started", unasked)
        return (yield)


def unasked(_: object) -> None:
    """Stands in the place of starting Spark."""
    raise AssertionError("this test starts Spark: it needs the fixture `spark`")


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The one Spark session of the test run."""
    from adapt.traces.spark.session import SparkOptions, spark_session

    session = spark_session(SparkOptions(master="local[2]"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def real_traces() -> Callable[[str], Path]:
    """Finds a real raw stream by its path under ADAPT_DATA; skips the test, and says so, where it is absent."""
    folder = Path(os.environ.get("ADAPT_DATA", REPOSITORY.parent / "shared" / "data"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"the real trace {name} is not there; set ADAPT_DATA to the folder that holds it")
        return path

    return find


@dataclass(frozen=True, slots=True)
class Said:
    """What a command line left behind: its exit code and what it said."""

    code: int
    out: str
    err: str


class InProcess:
    """The command line, run in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Said:
        """Run one command line."""
        from adapt.cli.main import run

        self._capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Said(code, *self._capsys.readouterr())

    def done(self, *arguments: object) -> Said:
        """Run one that is to end well."""
        said = self(*arguments)
        assert said.code == 0, said.err
        return said

    def json(self, *arguments: object) -> Any:
        """The document of a command line that is to end well, without numbers that JSON does not have."""
        said = self.done(*arguments, "--format", "json").out
        return json.loads(said, parse_constant=lambda name: pytest.fail(name))

    def refused(self, code: int, *arguments: object) -> str:
        """Run one that is to fail with this code, nothing on stdout and one line on stderr, which is returned.

        Lines before it say what a trace lost when its source was read.
        """
        said = self(*arguments)
        assert said.code == code, said
        assert said.out == ""
        *before, sentence = said.err.splitlines()
        assert sentence.startswith("adapt: ")
        assert all("rows were rejected" in line for line in before), said.err
        return sentence


@pytest.fixture
def adapt(capsys: pytest.CaptureFixture[str]) -> Iterator[InProcess]:
    """Runs command lines in this process; work on Spark needs the fixture `spark` beside it."""
    from adapt.cli.terminal.output import Verbosity, set_verbosity

    yield InProcess(capsys)
    set_verbosity(Verbosity.NORMAL)  # what a `-q` has set


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """The address of a Kafka broker in memory."""
    from tests.kafka_broker import running

    with running() as found:
        yield found.address


@pytest.fixture(scope="session")
def s3_server() -> "Iterator[Store]":
    """An S3 server in memory."""
    from examples import object_store

    if not object_store.is_there():
        pytest.skip(object_store.MISSING)
    with object_store.running() as found:
        yield found


@pytest.fixture
def bucket(s3_server: "Store", monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty bucket of a name of its own, with the variables that lead there."""
    from adapt.traces.locations.location import location

    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{uuid4().hex[:8]}"
    s3_server.create(name)
    return location(f"s3://{name}")


@pytest.fixture
def proxy(s3_server: "Store", bucket: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Proxy]":
    """A proxy between the program and the server, which counts requests and makes some fail."""
    from examples.object_store import reached_at
    from tests.fault_proxy import running

    with running(s3_server.port) as found:
        for name, value in reached_at(found.port).items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture(scope="session")
def flink_jar() -> Path:
    """Flink's jar: that which the environment names, or that of an installed package; nothing is ever fetched."""
    if named := os.environ.get("ADAPT_FLINK_JAR"):
        assert Path(named).is_file(), f"ADAPT_FLINK_JAR names {named}, which is no file"
        return Path(named).absolute()
    package = find_spec("pyflink")
    folders = [Path(folder) / "lib" for folder in package.submodule_search_locations or ()] if package else []
    found = next((jar for folder in folders for jar in sorted(folder.glob("flink-dist*.jar"))), None)
    return found or pytest.skip(
        "Flink's jar is not there; set ADAPT_FLINK_JAR to the flink-dist jar that PyPI's apache-flink-libraries carries"
        " (some 330 MB: pip download --no-deps apache-flink-libraries, then unzip pyflink/lib/flink-dist-*.jar of it)"
    )


@pytest.fixture(scope="session")
def table_path(flink_jar: Path) -> str:
    """Class path of Flink with its table jars, which lie next to its jar."""
    names = ("flink-table-api-java-uber", "flink-table-runtime", "flink-table-planner-loader", "flink-cep")
    found = [jar for name in names for jar in sorted(flink_jar.parent.glob(f"{name}-*.jar"))]
    if len(found) < len(names):
        pytest.skip(f"no {', '.join(names)} next to {flink_jar}; unzip them from PyPI's apache-flink-libraries, too")
    return os.pathsep.join(map(str, (flink_jar, *found)))
