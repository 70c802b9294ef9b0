import java.io.*;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

/** The key group of each key, and a hash code that Flink maps to it. Reads an export of adapt for Flink. */
public class FlinkGroups {
  private final PlanReader plan;
  private final Map<String, Integer> explicit = new HashMap<>(); // by the bytes in hex, or null
  private final Map<String, String> fields = new HashMap<>();
  private final long channels, groups;

  public FlinkGroups(Path folder) throws IOException {
    plan = new PlanReader(folder.resolve("plan.txt"));
    List<String> lines = Files.readAllLines(folder.resolve("groups.txt"));
    if (!lines.get(0).equals("adapt.flink/1") || !lines.contains("end"))
      throw new IOException("not an export for Flink: " + folder);
    for (String line : lines.subList(1, lines.size() - 1)) {
      String[] words = line.split(" ", -1);
      if (words[0].equals("key")) explicit.put(words[2], Integer.valueOf(words[1]));
      else fields.put(words[0], line.substring(words[0].length() + 1));
    }
    channels = Long.parseLong(fields.get("channels"));
    groups = Long.parseLong(fields.get("max_parallelism"));
  }

  /** A key (String, Long or byte[], as in the plan) as one that Flink assigns to its group. */
  public PlacedKey place(Object key) {
    if (key == null) return placed(null, null, 0);
    if (key instanceof byte[] raw) return placed(HexFormat.of().formatHex(raw), raw, Arrays.hashCode(raw));
    if (key instanceof Long number) return placed(number.toString(), little(number), number.hashCode());
    String text = (String) key;
    return placed(text, text.getBytes(StandardCharsets.UTF_8), text.hashCode());
  }

  private PlacedKey placed(String text, byte[] key, int hashCode) {
    return new PlacedKey(text, route(group(key, hashCode), hashCode));
  }

  /** A hash code that Flink's own hash maps to the group; keys spread over codes, as state is looked up by them. */
  private int route(int group, int hashCode) {
    long turns = (Integer.MAX_VALUE - group) / groups + 1; // numbers equal to the group modulo the groups
    return unmix((int) (group + mix(mix(hashCode)) % turns * groups));
  }

  /** The key group of a key, by its hashed bytes and its Java hash code. */
  private int group(byte[] key, int hashCode) {
    Integer known = explicit.get(key == null ? "null" : HexFormat.of().formatHex(key));
    if (known != null) return known;
    if ("flink".equals(fields.get("base"))) return (int) (mix(hashCode) % groups); // as without a plan
    long channel = plan.channel(key), start = start(channel), width = start(channel + 1) - start;
    return (int) (start + mix(hashCode) % width); // within the range of the channel, by Flink's own hash
  }

  /** The first group of a subtask. */
  private long start(long subtask) { return (subtask * groups + channels - 1) / channels; }

  private static byte[] little(long number) {
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(number).array();
  }

  private static int mix(int code) { return PlanReader.flink(code); }

  private static int unmix(int h) { // the inverse of mix for numbers >= 0
    h = (h ^ h >>> 16) * 0x7ED1B41D;
    h = (h ^ h >>> 13 ^ h >>> 26) * 0xA5CB9243;
    h = ((h ^ h >>> 16 ^ 4) - 0xE6546B64) * 0xCCCCCCCD;
    return Integer.rotateRight(Integer.rotateRight(h, 13) * 0x56ED309B, 15) * 0xDEE13BB1;
  }

  public static void main(String[] folder) throws IOException {
    FlinkGroups groups = new FlinkGroups(Path.of(folder[0]));
    String type = groups.fields.get("key_type");
    for (String line : new BufferedReader(new InputStreamReader(System.in)).lines().toList()) {
      byte[] bytes = line.equals("null") ? null : HexFormat.of().parseHex(line);
      Object key = bytes == null ? null : switch (type) {
        case "int64" -> ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong();
        case "string" -> new String(bytes, StandardCharsets.UTF_8);
        default -> bytes;
      };
      int route = groups.place(key).route;
      System.out.println(mix(route) % groups.groups + "\t" + route);
    }
  }
}
