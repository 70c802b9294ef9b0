"""From a topic of a running broker to the page of its verdict, and brokers that are killed on the way."""

import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from examples.broker import free_port
from tests.kafka_broker import create_topic, running, send
from tests.tiers import soak

pytestmark = soak

ADAPT = Path(sys.executable).with_name("adapt")
KILLS, SEED = 10, 27
FEW, MANY = 300_000, 1_000_000


def filled(address, records):
    create_topic(address, "clicks", 12)
    keys = np.random.default_rng(27).zipf(1.3, records).tolist()
    send(address, "clicks", ({"key": f"user-{key}", "value": b"x" * 100} for key in keys))


def test_a_million_records_from_broker_to_page(tmp_path):
    with running() as broker:
        filled(broker.address, MANY)
        begun = time.monotonic()
        for line in (
            ("ingest", f"kafka://{broker.address}/clicks", "-o", "clicks.trace"),
            ("verdict", "clicks.trace", "--engine", "librdkafka", "--channels", "12"),
            ("report", "clicks.trace", "clicks.recommended.plan", "--html", "clicks.html"),
        ):
            before = time.monotonic()
            done = subprocess.run([ADAPT, *line], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            print(f"{line[0]}: {time.monotonic() - before:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{MANY:,} records, broker to page: {time.monotonic() - begun:.1f} s, largest process {peak:,.0f} MiB")
    assert (tmp_path / "clicks.html").stat().st_size > 10_000


def test_a_broker_killed_at_any_moment_leaves_nothing_half_written(tmp_path):
    """A broker in memory loses its topic, so a second run begins anew."""
    chance, port = random.Random(SEED), free_port()
    line = [ADAPT, "ingest", f"kafka://127.0.0.1:{port}/clicks", "-o", "clicks.trace", "--force"]
    ended = {0: 0, 4: 0}
    for _ in range(KILLS):
        with running(port) as broker:
            filled(broker.address, FEW)
            reader = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(chance.uniform(0.5, 12.0))
            broker.process.kill()
            said = reader.communicate(timeout=120)[1]
        ended[reader.returncode] += 1
        left = {path.name for path in tmp_path.iterdir()} - {".adapt-counts"}
        if reader.returncode:
            assert said.startswith("adapt: kafka://"), said
            assert said.count("\n") == 1, said
            assert left <= {".clicks.trace.topic"}
        else:
            assert left == {"clicks.trace"}
        with running(port) as broker:
            filled(broker.address, FEW)
            done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ("starts over" in done.stderr) == (".clicks.trace.topic" in left)
        assert f"{FEW:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") in done.stdout
        subprocess.run(["rm", "-r", "clicks.trace"], cwd=tmp_path, check=True)
    print(f"killed {KILLS} times: {ended[4]} runs ended with 4, {ended[0]} had read everything")
    assert ended[4] >= KILLS // 3
