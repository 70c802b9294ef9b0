"""Splitter in Python and Java: keys a CPU second, observed and routed.

Claims, of a skewed stream of texts over 32 channels with a thousand pinned keys: 10 million a CPU second in batches in
Python, 20 million in Java, both ways; and a proposal under 20 ms.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.partitioning.loop.splitter import Splitter
from adapt.traces.deploy.splitters import write_splitter

ROWS, CHANNELS, REPEATS = 4_000_000, 32, 12
JAVA = Path(__file__).parent.parent / "core" / "engines" / "any_language" / "Splitter.java"


def stream() -> pa.Array:
    """Users by a Zipf law, as in `route_hybrid`."""
    drawn = np.random.default_rng(0).zipf(1.2, ROWS) % 10**9
    return pc.binary_join_element_wise("user-", pa.array(drawn).cast(pa.string()), "")


def in_python(splitter: Splitter, keys: pa.Array) -> tuple[float, float, float]:
    """Keys a CPU second observed and routed, and the CPU seconds of a proposal; the best of some runs."""
    observed = routed = 0.0
    proposed = 1.0
    for _ in range(REPEATS):
        times = [process_time()]
        for work in (lambda: splitter.observe(keys), lambda: splitter.route(keys), splitter.propose):
            work()
            times.append(process_time())
        spent = np.diff(times)
        observed, routed = max(observed, ROWS / spent[0]), max(routed, ROWS / spent[1])
        proposed = min(proposed, float(spent[2]))
    return observed, routed, proposed


def in_java(splitter: Splitter, keys: pa.Array) -> tuple[float, float]:
    """Keys a CPU second of the process observed and routed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_splitter(splitter, folder / "splitter.txt")
        (folder / "keys.txt").write_text("\n".join(keys.to_pylist()))
        sources = [JAVA, Path(__file__).with_name("SplitterSpeed.java")]
        subprocess.run(["javac", "-d", folder, *sources], check=True)
        command = ["java", "-XX:+UseSerialGC", "-Xmx3g", "-cp", folder, "SplitterSpeed"]
        command += [folder / "splitter.txt", folder / "keys.txt", str(REPEATS)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    observed, routed = map(float, said.split())
    return observed, routed


def main() -> int:
    """Measure both; 0 if all claims are met."""
    keys, splitter = stream(), Splitter(CHANNELS)
    splitter.observe(keys)
    splitter.adopt(splitter.propose())
    observed, routed, proposed = in_python(splitter, keys)
    met = proposed < 0.02
    print(f"{len(splitter.plan.explicit):,} pinned keys; a proposal takes {1000 * proposed:.1f} ms, claimed under 20")
    for name, rates, least in (("Python", (observed, routed), 10), ("Java", in_java(splitter, keys), 20)):
        for what, rate in zip(("observe", "route"), rates, strict=True):
            met &= rate >= least * 1e6
            print(
                f"{name} {what}: {rate / 1e6:.1f} M keys a CPU s, {rate / least / 1e6:.2f} times the claimed {least} M"
            )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
