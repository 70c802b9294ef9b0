"""Start-up time of `adapt --help`.

Claim: under half a second, and at most sixteen times the start of a bare Python."""

import shutil
import subprocess
import sys
from pathlib import Path

from ratio import holds, measured

MOST_S = 0.5


def main() -> int:
    """Time both in turns; 0 if the claims are met."""
    beside = Path(sys.executable).with_name("adapt")
    adapt = str(beside) if beside.exists() else shutil.which("adapt")
    assert adapt is not None, "adapt is not installed here"

    def ours() -> None:
        subprocess.run([adapt, "--help"], capture_output=True, check=True)

    def bare() -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)

    ratio = measured(ours, bare, repeats=15)
    met = holds("adapt --help against starting Python", ratio, 1 / 16)
    print(f"  best time {ratio.ours_s:.3f} s, claimed under {MOST_S} s")
    return 0 if met and ratio.ours_s < MOST_S else 1


if __name__ == "__main__":
    sys.exit(main())
