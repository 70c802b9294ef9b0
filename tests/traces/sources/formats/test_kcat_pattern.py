"""The patterns of `kcat -f`."""

import pytest

from adapt.core.errors import UsageError
from adapt.traces.sources.formats.kcat_pattern import Kind, Piece, pieces_of


def literals(pattern):
    return [piece.literal for piece in pieces_of(pattern) if piece.kind is Kind.LITERAL]


def test_a_pattern_is_cut_into_fields_and_what_stands_between_them():
    assert pieces_of(r"%T %p:%k\n") == (
        Piece(Kind.NUMBER, "ts"),
        Piece(Kind.LITERAL, literal=b" "),
        Piece(Kind.NUMBER, "partition"),
        Piece(Kind.LITERAL, literal=b":"),
        Piece(Kind.TEXT, "key"),
        Piece(Kind.LITERAL, literal=b"\n"),
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\t", b"\t"),
        (r"\r\n", b"\r\n"),
        (r"\x1e", b"\x1e"),
        (r"\xff", b"\xff"),
        (r"\037", b"\x1f"),
        (r"\30", b"\x1e"),
        (r"\\", b"\\"),
        (r"\q", b"q"),
        ("é", "é".encode()),
        ("%%", b"%"),
        ("a%%b", b"a%b"),
    ],
)
def test_escapes_are_those_of_kcat(written, meant):
    assert literals(f"%k{written}") == [meant]


def test_a_size_before_its_field_tells_where_it_ends():
    assert [piece.column for piece in pieces_of(r"%K %k%R%s") if piece.sized] == ["key", "payload"]
    assert not any(piece.sized for piece in pieces_of(r"%k %K\n"))


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"%q\n", "--kcat-format has an unknown formatter %q; available: %t, %p, "),
        ("%", "--kcat-format has an unknown formatter %;"),
        ("lines", "--kcat-format has no formatter"),
        (r"%k %k\n", "--kcat-format has key twice (%k); give each field once"),
        (r"%S %R %s\n", "--kcat-format has payload_size twice (%R)"),
        (r"%k%s\n", "--kcat-format does not show where key ends"),
        (r"%k %s", "--kcat-format does not show where payload ends"),
        (r"%p%o %s\n", "--kcat-format needs a separator between the numbers partition and offset"),
        (r"%k %p", "--kcat-format ends with a number"),
    ],
)
def test_a_pattern_that_cannot_be_read_back_is_refused(pattern, said):
    with pytest.raises(UsageError) as error:
        pieces_of(pattern)
    assert str(error.value).startswith(said)
