package adapt;

import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;

/**
 * The table of `adapt partition export --to rekey`: replacements of pinned and split keys; all other keys stay as they are.
 *
 * Keys are `String`, `Long` or `byte[]`, as the table says. It never changes, and may be sent to other JVMs.
 */
public final class Rekey implements Serializable {
  private static final long serialVersionUID = 1;
  private static final String SCHEMA = "adapt.rekey/1", ON_CLASS_PATH = "classpath:";

  public final String engine, keyType, plan;
  public final int channels;
  private final HashMap<String, String[]> replacements = new HashMap<>();
  private final HashMap<String, String> naturals = new HashMap<>();

  private Rekey(Map<?, ?> data) {
    if (!SCHEMA.equals(data.get("schema")))
      throw new IllegalArgumentException("field 'schema' must be " + SCHEMA + " (got " + data.get("schema") + ")");
    engine = (String) data.get("engine");
    keyType = (String) data.get("key_type");
    plan = (String) data.get("plan");
    channels = Integer.parseInt(data.get("channels").toString());
    ((Map<?, ?>) data.get("keys")).forEach((key, found) -> {
      String[] each = ((List<?>) found).stream().map(Object::toString).toArray(String[]::new);
      replacements.put(key.toString(), each);
      for (String one : each) naturals.put(one, key.toString());
    });
  }

  /** Reads a table: JSON that begins with `{`, `classpath:NAME`, or a file. */
  public static Rekey of(String where) {
    try {
      return new Rekey((Map<?, ?>) new Json(text(where)).whole());
    } catch (IOException | RuntimeException wrong) {
      String shown = where.startsWith("{") ? "the string" : where;
      throw new IllegalArgumentException("no rekey table in " + shown + ": " + wrong.getMessage(), wrong);
    }
  }

  private static String text(String where) throws IOException {
    if (where.startsWith("{")) return where;
    if (!where.startsWith(ON_CLASS_PATH)) return Files.readString(Path.of(where));
    String name = where.substring(ON_CLASS_PATH.length());
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    try (InputStream found = (loader == null ? Rekey.class.getClassLoader() : loader).getResourceAsStream(name)) {
      if (found == null) throw new IOException("the class path has no " + name);
      return new String(found.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  /** How many replacements a key has: 0 stays as it is, 1 is pinned, more is split. */
  public int count(Object key) {
    String[] found = key == null ? null : replacements.get(textOf(key));
    return found == null ? 0 : found.length;
  }

  /** The replacement of a key, the key itself if it has none; of a split key, number `choice` modulo their count. */
  public <K> K replaced(K key, int choice) {
    String[] found = key == null ? null : replacements.get(textOf(key));
    return found == null ? key : keyOf(found[Math.floorMod(choice, found.length)], key);
  }

  /** The key that a replacement stands for; any other key itself. */
  public <K> K natural(K key) {
    String found = key == null ? null : naturals.get(textOf(key));
    return found == null ? key : keyOf(found, key);
  }

  /** Whether a key is the replacement of another one. */
  public boolean replaces(Object key) {
    String found = key == null ? null : naturals.get(textOf(key));
    return found != null && !found.equals(textOf(key));
  }

  /** The keys with replacements, as texts. */
  public Set<String> keys() { return Collections.unmodifiableSet(replacements.keySet()); }

  /** The replacements of such a key, as texts. */
  public List<String> replacements(String key) { return List.of(replacements.get(key)); }

  private static String textOf(Object key) {
    if (!(key instanceof byte[])) return key.toString();
    StringBuilder hex = new StringBuilder();
    for (byte each : (byte[]) key) hex.append(String.format("%02x", each));
    return hex.toString();
  }

  /** A key of the class of another one. */
  @SuppressWarnings("unchecked")
  private static <K> K keyOf(String text, K like) {
    if (like instanceof Long) return (K) Long.valueOf(text);
    if (!(like instanceof byte[])) return (K) text;
    byte[] bytes = new byte[text.length() / 2];
    for (int at = 0; at < bytes.length; at++) bytes[at] = (byte) Integer.parseInt(text.substring(2 * at, 2 * at + 2), 16);
    return (K) bytes;
  }

  /** Reads JSON; the JDK has no reader of its own. */
  private static final class Json {
    private final String text;
    private int at;

    Json(String text) { this.text = text; }

    Object whole() {
      Object found = value();
      if (next() != 0) throw wrong();
      return found;
    }

    private Object value() {
      char first = next();
      if (first == '{') return object();
      if (first == '[') return array();
      if (first == '"') return string();
      int begin = at;
      while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at++;
      if (at == begin) throw wrong();
      String word = text.substring(begin, at);
      return word.equals("null") ? null : word;
    }

    private Map<String, Object> object() {
      Map<String, Object> found = new LinkedHashMap<>();
      for (at++; next() != '}'; separated('}')) {
        String name = string();
        if (next() != ':') throw wrong();
        at++;
        found.put(name, value());
      }
      at++;
      return found;
    }

    private List<Object> array() {
      List<Object> found = new ArrayList<>();
      for (at++; next() != ']'; separated(']')) found.add(value());
      at++;
      return found;
    }

    /** A comma and something after it, or the end. */
    private void separated(char end) {
      if (next() == ',') {
        at++;
        if (next() == end) throw wrong();
      } else if (next() != end) throw wrong();
    }

    private String string() {
      if (next() != '"') throw wrong();
      StringBuilder found = new StringBuilder();
      for (at++; ; at++) {
        if (at >= text.length()) throw wrong();
        char letter = text.charAt(at);
        if (letter == '"') break;
        if (letter != '\\') found.append(letter);
        else found.append(escaped());
      }
      at++;
      return found.toString();
    }

    private char escaped() {
      if (++at >= text.length()) throw wrong();
      char letter = text.charAt(at);
      int plain = "\"\\/bfnrt".indexOf(letter);
      if (plain >= 0) return "\"\\/\b\f\n\r\t".charAt(plain);
      if (letter != 'u' || at + 4 >= text.length()) throw wrong();
      at += 4;
      return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
    }

    /** The next letter that is no space; 0 at the end. */
    private char next() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
      return at < text.length() ? text.charAt(at) : 0;
    }

    private RuntimeException wrong() { return new IllegalArgumentException("no JSON at character " + (at + 1)); }
  }
}
