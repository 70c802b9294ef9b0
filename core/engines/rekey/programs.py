"""Rekeying in Python and Java: programs with the table inside, without dependencies."""

from collections.abc import Iterator

from adapt.core.engines.rekey.marks import HighBits
from adapt.core.engines.rekey.table import RekeyTable
from adapt.core.stream import Key, KeyType

_PYTHON = '''\
"""Replacement keys for {engine}, {channels} channels. Plan {plan}.

Every other key stays as it is. Needs no other package.
"""

from itertools import count

KEYS = {{
{rows}}}
"""Key: its replacements."""

_TURNS = {{key: count() for key, new in KEYS.items() if len(new) > 1}}


def rekey(key, turn=None):
    """The key to send instead.

    Records of a split key take turns, unless `turn` is given: a random number, or a hash of a second key.
    """
    new = KEYS.get(key)
    if new is None:
        return key
    return new[0] if len(new) == 1 else new[(next(_TURNS[key]) if turn is None else turn) % len(new)]


def original(key):
    """The key that a replacement stands for."""
    return {original}
'''

_JAVA = """\
import java.util.HashMap;
{imports}import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Replacement keys for {engine}, {channels} channels; every other key stays as it is.
 *
 * Plan {plan}.
 */
public final class Rekey {{
  private static final class Replacements {{
    final {boxed}[] keys;
    final AtomicInteger turn = new AtomicInteger();

    Replacements({boxed}[] keys) {{
      this.keys = keys;
    }}
  }}

  private static final Map<{boxed}, Replacements> KEYS = new HashMap<>();

  static {{
{parts}  }}

  private Rekey() {{}}

  /** The key to send instead; records of a split key take turns. */
  public static {type} key({type} key) {{
    Replacements found = KEYS.get({packed});
    return found == null ? key : chosen(found, found.keys.length == 1 ? 0 : found.turn.getAndIncrement());
  }}

  /** The same, chosen by a number: a random one, or the hash code of a second key. */
  public static {type} key({type} key, int turn) {{
    Replacements found = KEYS.get({packed});
    return found == null ? key : chosen(found, turn);
  }}

  /** The key that a replacement stands for. */
  public static {type} original({type} key) {{
    {original}
  }}

  private static {type} chosen(Replacements found, int turn) {{
    {boxed} chosen = found.keys[Math.floorMod(turn, found.keys.length)];
    return {unpacked};
  }}

  private static void put({boxed}[][] rows) {{
    for ({boxed}[] row : rows) KEYS.put(row[0], new Replacements(java.util.Arrays.copyOfRange(row, 1, row.length)));
  }}
{classes}}}
"""

_PART = """
  private static final class Part{number} {{
    static final {boxed}[][] ROWS = {{
{rows}    }};
  }}
"""

_KEYS_OF_A_PART = 3_000
"""Keys and replacements of a nested class; Java limits the code of each."""

_OF_BYTES = """\
byte[] mark = "{mark}".getBytes(java.nio.charset.StandardCharsets.UTF_8);
    for (int at = 0; at + mark.length <= key.length; at++)
      if (java.util.Arrays.equals(key, at, at + mark.length, mark, 0, mark.length))
        return java.util.Arrays.copyOf(key, at);
    return key;"""


def python_file(table: RekeyTable) -> bytes:
    """A module with `rekey(key)` and `original(key)`."""
    rows = "".join(f"    {key!r}: {new!r},\n" for key, new in table.as_mapping().items())
    if isinstance(table.mark, HighBits):
        whole = table.mark.modulus
        original = f"key % {whole} if key >= 0 else -(-key % {whole})"
    else:
        text = table.mark.text
        original = (
            f"key.partition({text!r})[0]"
            if table.key_type is KeyType.STRING
            else f"key.partition({text.encode()!r})[0]"
        )
    facts = {"engine": table.job.engine, "channels": table.job.channels, "plan": table.plan}
    return _PYTHON.format(**facts, rows=rows, original=original).encode()


def java_file(table: RekeyTable) -> bytes:
    """A class with `Rekey.key(key)` and `Rekey.original(key)`, for Java 17 or later."""
    match table.key_type:
        case KeyType.STRING:
            words = {"type": "String", "boxed": "String", "packed": "key", "unpacked": "chosen", "imports": ""}
        case KeyType.INT64:
            words = {"type": "long", "boxed": "Long", "packed": "key", "unpacked": "chosen", "imports": ""}
        case KeyType.BINARY:
            words = {"type": "byte[]", "boxed": "String", "imports": "import java.util.HexFormat;\n"}
            words |= {"packed": "HexFormat.of().formatHex(key)", "unpacked": "HexFormat.of().parseHex(chosen)"}
    if isinstance(table.mark, HighBits):
        original = f"return key % {table.mark.modulus}L;"
    elif table.key_type is KeyType.STRING:
        original = f'int end = key.indexOf("{table.mark.text}");\n    return end < 0 ? key : key.substring(0, end);'
    else:
        original = _OF_BYTES.format(mark=table.mark.text)
    classes = [
        _PART.format(number=number, boxed=words["boxed"], rows="".join(rows))
        for number, rows in enumerate(_parts(table))
    ]
    return _JAVA.format(
        **words,
        engine=table.job.engine,
        channels=table.job.channels,
        plan=table.plan,
        original=original,
        parts="".join(f"    put(Part{number}.ROWS);\n" for number in range(len(classes))),
        classes="".join(classes),
    ).encode()


def _parts(table: RekeyTable) -> Iterator[list[str]]:
    """Rows of key and replacements as Java, in parts."""
    rows: list[str] = []
    size = 0
    for key, new in table.as_mapping().items():
        if size + len(new) >= _KEYS_OF_A_PART and rows:
            yield rows
            rows, size = [], 0
        rows.append(f"      {{{', '.join(map(_in_java, (key, *new)))}}},\n")
        size += 1 + len(new)
    if rows:
        yield rows


def _in_java(key: Key) -> str:
    """A key as a Java literal, bytes in hex."""
    if isinstance(key, int):
        return f"{key}L"
    if isinstance(key, bytes):
        return f'"{key.hex()}"'
    units = str(key).encode("utf-16-be")
    return f'"{"".join(_unit(int.from_bytes(units[at : at + 2])) for at in range(0, len(units), 2))}"'


def _unit(unit: int) -> str:
    """A UTF-16 unit within a literal; Java reads \\u before it reads literals, so not for control characters."""
    if chr(unit) in '"\\':
        return f"\\{unit:c}"
    if unit < 0x20:
        return f"\\{unit:03o}"
    return chr(unit) if unit < 0x7F else f"\\u{unit:04x}"
