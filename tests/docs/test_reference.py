"""The committed reference is what the program says now, and says all of it."""

from adapt.cli.failures import EXIT_CODES
from adapt.core.metrics import METRICS
from tools.reference import PAGE, reference


def test_the_committed_page_is_what_the_program_gives():
    assert PAGE.read_text() == reference(), "run: python -m tools.reference"


def test_every_metric_exit_code_and_help_page_is_in_it(adapt):
    page = PAGE.read_text().replace("\\|", "|")
    assert all(f"- `{name}`: " in page for name in METRICS)
    assert all(f"| {code} | {why} |" in page for code, why in EXIT_CODES.items())
    for line in adapt.done("partition", "build", "--help").out.splitlines():
        if line.startswith("  -"):
            assert f"- `{line.strip().partition('  ')[0]}" in page
