import java.io.*;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

/** Says for each key its key group, and the number whose hash Flink takes there. Reads what adapt exports for Flink. */
public class FlinkGroups {
  private final PlanReader plan;
  private final Map<String, Integer> explicit = new HashMap<>(); // by the bytes in hex, or null
  private final Map<String, String> fields = new HashMap<>();
  private final int[] routes;
  private final long channels, groups;

  public FlinkGroups(Path folder) throws IOException {
    plan = new PlanReader(folder.resolve("plan.txt"));
    List<String> lines = Files.readAllLines(folder.resolve("groups.txt"));
    if (!lines.get(0).equals("adapt.flink/1") || !lines.contains("end"))
      throw new IOException("no key groups: " + folder);
    for (String line : lines.subList(1, lines.size() - 1)) {
      String[] words = line.split(" ", -1);
      if (words[0].equals("key")) explicit.put(words[2], Integer.valueOf(words[1]));
      else fields.put(words[0], line.substring(words[0].length() + 1));
    }
    routes = Arrays.stream(fields.get("routes").split(" ")).mapToInt(Integer::parseInt).toArray();
    channels = Long.parseLong(fields.get("channels"));
    groups = Long.parseLong(fields.get("max_parallelism"));
  }

  /** A key (String or Long, as the plan has them) as one that Flink puts into its group. */
  public PlacedKey place(Object key) {
    if (key == null) return new PlacedKey(null, routes[group(null, 0)]);
    byte[] bytes = key instanceof Long number ? little(number) : ((String) key).getBytes(StandardCharsets.UTF_8);
    return new PlacedKey(key.toString(), routes[group(bytes, key.hashCode())]);
  }

  /** The key group of a key, by its bytes as plans hash them and by its hash code in Java. */
  int group(byte[] key, int hashCode) {
    Integer known = explicit.get(key == null ? "null" : HexFormat.of().formatHex(key));
    if (known != null) return known;
    long channel = plan.channel(key), start = start(channel), width = start(channel + 1) - start;
    return (int) (start + mix(hashCode) % width); // within the range of the channel, by Flink's own hash
  }

  /** The first group of a subtask. */
  private long start(long subtask) { return (subtask * groups + channels - 1) / channels; }

  private static byte[] little(long number) {
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(number).array();
  }

  private static int mix(int code) { // as MathUtils.murmurHash of Flink
    int h = Integer.rotateLeft(Integer.rotateLeft(code * 0xCC9E2D51, 15) * 0x1B873593, 13) * 5 + 0xE6546B64 ^ 4;
    h = (h ^ h >>> 16) * 0x85EBCA6B;
    h = (h ^ h >>> 13) * 0xC2B2AE35;
    h ^= h >>> 16;
    return h == Integer.MIN_VALUE ? 0 : Math.abs(h);
  }

  public static void main(String[] folder) throws IOException {
    FlinkGroups groups = new FlinkGroups(Path.of(folder[0]));
    boolean numbers = groups.fields.get("key_type").equals("int64");
    for (String line : new BufferedReader(new InputStreamReader(System.in)).lines().toList()) {
      byte[] bytes = line.equals("null") ? null : HexFormat.of().parseHex(line);
      Object key = null;
      if (bytes != null && numbers) key = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong();
      if (bytes != null && !numbers) key = new String(bytes, StandardCharsets.UTF_8);
      System.out.println(groups.group(bytes, Objects.hashCode(key)) + "\t" + groups.place(key).route);
    }
  }
}
