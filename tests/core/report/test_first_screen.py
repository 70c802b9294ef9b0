"""The first screen of a page says what the verdict says."""

import pytest

from adapt.core.lint.finding import Finding, Severity
from adapt.core.out_of_sample.outcome import KEPT, REBUILT, TODAY, OutOfSample, Track
from adapt.core.report.first_screen import Tone, first_screen
from adapt.core.report.page import Page, Section, render_page
from adapt.core.stream import Weight
from adapt.core.verdict.answer import Answer
from adapt.core.verdict.hot_keys import HotKeys
from adapt.core.verdict.verdict import Verdict
from adapt.core.verdict.verdict_class import VerdictClass

TESTED = OutOfSample(
    6,
    tuple(at * 3_600_000_000 for at in range(3)),
    (100, 100, 100),
    (1.0, 1.1, 1.2),
    {
        TODAY: Track((1.5, 1.6, 1.7), 0.0),
        KEPT: Track((1.1, 1.15, 1.3), 0.1234, 3),
        REBUILT: Track((1.05, 1.12, 1.2), 0.07, 3),
    },
    (1.05, 1.35),
)


def answer_of(verdict_class, tested=TESTED, **others):
    pins = {"keys_to_pin": 3, "state_to_move": 0.1234, "imbalance_after": 1.01} if "pinning" in verdict_class else {}
    verdict = Verdict(
        *(verdict_class, 8, "kafka", 1.2, 1.55, 1.0, "hot", 0.08, 900),
        out_of_sample=tested,
        **{**pins, **others},
    )
    return Answer(verdict, HotKeys((), Weight.COUNT, 0.0, 0))


SPLIT = {"keys_to_split": ("hot", "warm"), "number_to_split": 2, "split_share": 0.3}

STATUSES = [
    (VerdictClass.BALANCED, {}, Tone.GOOD, "Nothing to do"),
    (VerdictClass.PINNING, {}, Tone.ACT, "Pin 3 keys"),
    (VerdictClass.SPLITTING, SPLIT, Tone.BAD, "Split 2 keys"),
    (VerdictClass.UNKNOWN, {}, Tone.UNKNOWN, "Cannot tell: change nothing yet"),
]


@pytest.mark.parametrize(("verdict_class", "others", "tone", "status"), STATUSES)
def test_the_status_is_a_word_and_a_color(verdict_class, others, tone, status):
    answer = answer_of(verdict_class, **others)
    first = first_screen(answer, "a.trace")
    assert (first.tone, first.status) == (tone, status)
    html = render_page(Page("p", [Section(f"Verdict on a.plans: {status}", ["Evidence."], first=first)]))
    assert f'<div class="first {tone}">' in html
    assert f"<b>{status}</b>" in html
    assert "<small>Verdict on a.plans</small>" in html


def test_the_numbers_are_those_of_the_verdict():
    answer = answer_of(VerdictClass.PINNING)
    first = first_screen(answer, "a.trace", "a.plan")
    tested = answer.as_data()["verdict"]["out_of_sample"]
    medians = {row["placement"]: row["median_imbalance"] for row in tested["placements"]}
    today, after, moved = first.numbers
    assert (today.value, after.value) == (f"{medians[TODAY]:.3f}", f"{medians[KEPT]:.3f}")
    assert (today.tone, after.tone) == (Tone.BAD, Tone.GOOD)
    assert moved.value == f"{100 * answer.as_data()['verdict']['state_to_move']:.3g} %"
    assert "3 later windows" in first.about


def test_without_later_windows_the_numbers_say_that_they_are_in_sample():
    today, after, _ = first_screen(answer_of(VerdictClass.PINNING, None), "a.trace").numbers
    assert (today.value, after.value) == ("1.550", "1.010")
    assert "in-sample" in today.note


@pytest.mark.parametrize(
    ("verdict_class", "plan", "command"),
    [
        (VerdictClass.PINNING, "a b.plan", "adapt partition export 'a b.plan' --to kafka -o a.kafka"),
        (VerdictClass.PINNING, "", "adapt verdict a.trace --engine kafka --channels 8 --max-imbalance 1.2"),
        (VerdictClass.UNKNOWN, "", "adapt lint a.trace"),
        (VerdictClass.BALANCED, "", 'adapt check a.trace --engine kafka --channels 8 --limit "imbalance <= 1.2"'),
    ],
)
def test_the_next_command_fits_the_class(verdict_class, plan, command):
    assert first_screen(answer_of(verdict_class), "a.trace", plan).command == command


def test_findings_have_a_line_each_and_hostile_ones_are_text():
    finding = Finding("drift", Severity.WARNING, "<img src=x>", "A plan may miss.", "Pin few keys.")
    first = first_screen(answer_of(VerdictClass.PINNING), "<b>.trace")
    html = render_page(Page("p", [Section("Verdict", first=first, findings=[finding])]))
    assert '<span class="badge act">warning</span> <b>drift</b>' in html
    assert "&lt;img src=x&gt;" in html
    assert "<img" not in html
    assert "&#39;&lt;b&gt;.trace&#39;" in html
