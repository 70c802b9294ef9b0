"""Envelopes of kcat are known by their first bytes."""

import json

from adapt.traces.sources.formats.console import ENVELOPE
from tests.traces.sources.kcat_printing import Message, envelope


def test_envelopes_are_known_by_what_they_begin_with():
    assert ENVELOPE.match(envelope(Message(b"k", b"p")))
    assert ENVELOPE.match(envelope(Message(None, None, ts=-1, headers=[("a", "b")])))
    assert ENVELOPE.match(json.dumps({"topic": "t", "partition": 0, "offset": 1, "key": None}))
    assert not ENVELOPE.match(json.dumps({"topic": "t", "time": 0, "offset": 1, "key": None}))
