"""Keys as text for people and for JSON."""

from adapt.core.stream import Key


def key_text(key: Key, most: int | None = None) -> str | None:
    """A key as text: numbers in decimal, binary in hex; null stays null. A key longer than `most` is cut and says so."""
    if key is None:
        return None
    text = key.hex() if isinstance(key, bytes) else str(key)
    if most is not None and len(text) > most:
        return f"{text[:most]}… ({len(text)} characters)"
    return text
