"""Files of pins: what is read, and the line of what is not."""

import pytest

from adapt.core.errors import BadInput
from adapt.core.partitioning.problem.named_keys import NamedKey, Pin
from adapt.traces.named_keys import read_pins


@pytest.mark.parametrize("head", ["", "key,channel\n", "Key, Channel\n\n", "\ufeffkey,channel\n"])
def test_pins_are_read_with_their_lines(tmp_path, head):
    path = tmp_path / "pins.csv"
    path.write_text(f'{head}a,3\n\n"b,""c""", 0\na,3\n,1\n')
    first = head.count("\n") + 1
    assert read_pins(path) == [
        Pin(NamedKey("a", f"{path} line {first}"), 3),
        Pin(NamedKey('b,"c"', f"{path} line {first + 2}"), 0),
        Pin(NamedKey("", f"{path} line {first + 4}"), 1),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,1\nb\n", "line 2: expected 2 fields: key, channel (got 1)"),
        ("a,1\nb,1,2\n", "line 2: expected 2 fields: key, channel (got 3)"),
        ("key,channel\na,x\n", "line 2: the channel must be a whole number, at least 0 (got 'x')"),
        ("a,-1\n", "line 1: the channel must be a whole number, at least 0 (got '-1')"),
        ("a,1.5\n", "line 1: the channel must be a whole number, at least 0 (got '1.5')"),
        ("a,1\nb,2\na,2\n", "line 3: key 'a' is pinned to channel 2, but line 1 pins it to 1; remove one"),
        ('a,1\n"b,2\n', "line 2"),
        ("", "has no pins; write one key,channel per line"),
        ("key,channel\n", "has no pins"),
    ],
)
def test_what_is_no_pin_is_refused_with_its_line(tmp_path, text, told):
    path = tmp_path / "pins.csv"
    path.write_text(text)
    with pytest.raises(BadInput) as refusal:
        read_pins(path)
    assert str(refusal.value).startswith(f"{path}")
    assert told in str(refusal.value)
