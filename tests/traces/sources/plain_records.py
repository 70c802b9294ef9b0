"""Where records begin and end, byte by byte: the reference."""

from adapt.traces.sources.reading.records import OPEN_QUOTE


def end_of_line(text, at):
    """The end of the line that holds `at`, and where the next one begins."""
    while at < len(text) and text[at] not in b"\r\n":
        at += 1
    return at, at + (2 if text[at : at + 2] == b"\r\n" else 1) if at < len(text) else at


def plain_record(text, start):
    """One record, byte by byte: its end, where the next begins, fields and line ends; None if a quote stays open."""
    at, fields, breaks, field_start, quoted = start, 1, 0, True, False
    while at < len(text):
        byte = text[at : at + 1]
        if quoted:
            if byte == b'"' and text[at + 1 : at + 2] == b'"':
                at += 1
            elif byte == b'"':
                quoted = False
            elif byte == b"\n" or (byte == b"\r" and text[at + 1 : at + 2] != b"\n"):
                breaks += 1
        elif byte == b'"' and field_start:
            quoted = True
        elif byte in (b"\r", b"\n"):
            return at, end_of_line(text, at)[1], fields, breaks + 1
        elif byte == b",":
            fields += 1
        field_start = byte == b"," and not quoted
        at += 1
    return None if quoted else (at, at, fields, breaks)


def plain_records(text):
    """The whole of it, byte by byte: the reference."""
    at, line, records = 0, 0, []
    while at < len(text):
        record = plain_record(text, at)
        if record is None:
            end, following = end_of_line(text, at)
            record = end, following, OPEN_QUOTE, int(following > end)
        end, following, fields, breaks = record
        if end > at:
            records.append((at, end, line, fields))
        at, line = following, line + breaks
    return records


def plain_lines(text):
    """Lines ended by LF or CRLF, blank ones left out."""
    at, records = 0, []
    for number, line in enumerate(text.split(b"\n")):
        bare = line.removesuffix(b"\r")
        if bare:
            records.append((at, at + len(bare), number, 1))
        at += len(line) + 1
    return records
