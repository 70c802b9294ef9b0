import static java.lang.Long.rotateLeft;
import java.io.*;
import java.math.BigInteger;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.*;
import java.util.*;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
/** Reads plans (docs/plan-format.md): `java PlanReader.java PLAN... < KEYS`, one key per line, in hex or null. */
public class PlanReader {
  private static final int MOST = Integer.MAX_VALUE;
  private static final byte[] NULL = {(byte) 0xF0, -1, -1, -1}; // of RisingWave
  private static final long C1 = 0x87C37B91114253D5L, C2 = 0x4CF5AD432745937FL; // of murmur3
  private static final long P1 = 0x9E3779B185EBCA87L, P2 = 0xC2B2AE3D27D4EB4FL, P3 = 0x165667B19E3779F9L; // of xxhash64
  private static final long P4 = 0x85EBCA77C2B2AE63L, P5 = 0x27D4EB2F165667C5L;
  private final Map<String, String> fields = new HashMap<>();
  private final Map<String, Integer> explicit = new HashMap<>();
  private final TreeMap<BigInteger, Integer> ring = new TreeMap<>(), shards = new TreeMap<>();
  private final TreeMap<Integer, Integer> ranges = new TreeMap<>(Map.of(65536, 0)); // of Pulsar, by their last slots
  private final String hashing; // of the keys that are not pinned
  private final int channels;
  private final int[] maglev;

  public PlanReader(Path plan) throws IOException {
    List<String> lines = Files.readAllLines(plan);
    boolean known = lines.get(0).matches("adapt[.]plan[.]text/[123]");
    if (!known || !lines.contains("end")) throw new IOException("bad plan: " + plan);
    for (String line : lines.subList(1, lines.size() - 1)) {
      String[] words = line.split(" ", -1);
      if (words[0].equals("key")) explicit.put(words[2], Integer.valueOf(words[1])); // in hex, or null
      else fields.put(words[0], line.substring(words[0].length() + 1));
    }
    channels = Integer.parseInt(fields.get("channels"));
    String given = fields.getOrDefault("replicas", "0");
    if (given.contains(" ")) throw new IOException(plan + ": replicas must be one number (got a list); build it again");
    int replicas = Integer.parseInt(given);
    for (int c = 0; c < channels; c++) // of replicas at one position, the lowest channel's counts
      for (int r = 0; r < replicas; r++)
        ring.putIfAbsent(number((c + "#" + r).getBytes()), c);
    hashing = ring.isEmpty() ? fields.getOrDefault("base", fields.get("scheme")) : "consistent";
    maglev = hashing.equals("maglev") ? maglev() : null;
    BigInteger each = BigInteger.ONE.shiftLeft(128).divide(BigInteger.valueOf(channels)); // of even shards
    String[] starts = fields.getOrDefault("shards", "").split(" ");
    for (int c = 0; c < channels; c++)
      shards.put(fields.containsKey("shards") ? new BigInteger(starts[c]) : each.multiply(BigInteger.valueOf(c)), c);
    for (int c = 1; hashing.equals("pulsar") && c < channels; c++) { // halves the first of the widest ranges
      int last = 0, width = 0, before = 0;
      for (int end : ranges.keySet()) {
        if (end - before > width) { width = end - before; last = end; }
        before = end;
      }
      ranges.put(last - width / 2, c);
    }
  }

  /** The channel of a key: text in UTF-8, an integer as 8 bytes little-endian; null is a key of its own. */
  public int channel(byte[] given) {
    int groups = Integer.parseInt(fields.getOrDefault("max_parallelism", "0"));
    Integer known = explicit.get(given == null ? "null" : HexFormat.of().formatHex(given));
    byte[] key = given == null ? new byte[0] : given;
    return known != null ? known : switch (hashing) {
      case "uniform" -> modulo(key, channels);
      case "key-groups" -> (int) ((long) modulo(key, groups) * channels / groups);
      case "maglev" -> maglev[modulo(key, maglev.length)];
      case "jump" -> jump(hash(key)[0]);
      case "rendezvous" -> rendezvous(hash(key)[0]);
      case "spark" -> Math.floorMod(given == null ? 42 : spark(bits() < 64 ? Arrays.copyOf(key, 4) : key), channels);
      case "kafka", "librdkafka:murmur2", "librdkafka:murmur2_random" -> kafka(serialized(key)) % channels;
      case "librdkafka:random", "librdkafka:consistent", "librdkafka:consistent_random" ->
          (int) (crc32(serialized(key)) % channels);
      case "librdkafka:fnv1a", "librdkafka:fnv1a_random", "sarama" -> (int) (fnv1a(serialized(key)) % channels);
      case "kinesis" -> shards.floorEntry(md5(text(key))).getValue();
      case "pulsar" -> range(murmur3x32(given == null ? "NONE_KEY".getBytes() : text(key)) % 65536);
      case "pulsar:java_string_hash" -> (new String(base64(key), StandardCharsets.UTF_8).hashCode() & MOST) % channels;
      case "pulsar:murmur3_32" -> murmur3x32(base64(key)) % channels;
      case "risingwave" -> actor((int) (given == null ? crc32(NULL) : vnodeHash(key)) & 255);
      case "flink" -> (int) ((long) (flink(hashCode(given)) % groups) * channels / groups);
      case "flink-sql" -> (int) ((long) (flink(rowCode(given)) % groups) * channels / groups);
      case "consistent" -> Optional.ofNullable(ring.ceilingEntry(number(key))).orElseGet(ring::firstEntry).getValue();
      default -> throw new UnsupportedOperationException("unknown: " + hashing);
    };
  }
  private BigInteger number(byte[] key) { // on a ring: first word * 2^64 + second word
    return new BigInteger(1, ByteBuffer.allocate(16).putLong(hash(key)[0]).putLong(hash(key)[1]).array());
  }
  private int modulo(byte[] key, int n) { // xxhash64 is signed
    if (fields.get("hash").equals("xxhash64")) return (int) Math.floorMod(hash(key)[0], (long) n);
    return number(key).mod(BigInteger.valueOf(n)).intValue();
  }
  private int[] maglev() {
    int[] table = new int[65537], next = new int[channels];
    Arrays.fill(table, -1);
    for (int c = 0; c < channels; c++) next[c] = modulo((c + "#0").getBytes(), table.length);
    for (int turn = 0, c = 0; turn < table.length; turn++, c = turn % channels) {
      int skip = modulo((c + "#1").getBytes(), table.length - 1) + 1;
      while (table[next[c]] >= 0) next[c] = (next[c] + skip) % table.length;
      table[next[c]] = c;
    }
    return table;
  }
  private int jump(long state) {
    long here = 0, next = 0;
    for (; next < channels; next = (long) ((here + 1) * (0x1p31 / ((state >>> 33) + 1)))) {
      here = next; state = state * 2862933555777941757L + 1;
    }
    return (int) here;
  }
  private int rendezvous(long key) { // ties go to the lowest channel
    var bids = Comparator.comparing((Integer c) -> mixed(key ^ hash(("" + c).getBytes())[0]), Long::compareUnsigned);
    return IntStream.range(0, channels).boxed().max(bids.thenComparing(c -> -c)).get();
  }
  private byte[] serialized(byte[] key) { // for Kafka, where integers are big-endian
    if (bits() < 16 || bits() > 64 || key.length == 0) return text(key);
    return Arrays.copyOfRange(ByteBuffer.allocate(8).putLong(little(key).getLong()).array(), 8 - bits() / 8, 8);
  }
  private int bits() { // of integers in their source; 99 of other keys
    return fields.get("key_type").startsWith("int") ? Integer.parseInt(fields.get("key_type").substring(3)) : 99;
  }
  private int range(int slot) { return ranges.ceilingEntry(slot).getValue(); }
  private byte[] text(byte[] key) { // an integer in decimal
    boolean isNumber = bits() <= 64 && key.length > 0;
    return isNumber ? Long.toString(little(key).getLong()).getBytes() : key;
  }
  private byte[] base64(byte[] key) { // as Pulsar's keyBytes writes bytes
    return fields.get("key_type").equals("binary") ? Base64.getEncoder().encode(key) : text(key);
  }
  private long vnodeHash(byte[] key) { // as Rust hashes text, bytes and integers
    return switch (fields.get("key_type")) {
      case "string" -> crc32(key, new byte[] {-1});
      case "binary" -> crc32(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(key.length).array(), key);
      default -> crc32(Arrays.copyOf(key, Math.min(key.length, bits() / 8)));
    };
  }
  private int actor(int vnode) { // the first of them have one vnode more
    int longer = 256 % channels, within = longer * (256 / channels + 1);
    return vnode < within ? vnode / (256 / channels + 1) : longer + (vnode - within) / (256 / channels);
  }
  private int hashCode(byte[] key) {
    return key == null ? 0 : switch (fields.get("key_type")) {
      case "string" -> new String(key, StandardCharsets.UTF_8).hashCode();
      case "binary" -> Arrays.hashCode(key);
      default -> bits() < 64 ? (int) little(key).getLong() : Long.hashCode(little(key).getLong());
    };
  }
  private int rowCode(byte[] key) { // of Flink SQL's binary row: kind and null bit, the field, what does not fit in it
    boolean fits = key == null || key.length < 8, isNumber = bits() <= 64;
    ByteBuffer row = little(new byte[key == null || fits || isNumber ? 16 : 16 + (key.length + 7) / 8 * 8]);
    if (key == null) row.put(1, (byte) 1);
    else if (!fits && !isNumber) row.putLong(8, 16L << 32 | key.length).put(16, key);
    else row.put(8, Arrays.copyOf(key, Math.min(key.length, bits() / 8)));
    if (fits && key != null && !isNumber) row.put(15, (byte) (0x80 | key.length));
    int h = 42;
    while (row.hasRemaining()) h = with(h, row.getInt());
    return mixed(h ^ row.capacity());
  }
  private static int spark(byte[] key) {
    int h = 42;
    for (var rest = little(key); rest.hasRemaining(); ) h = with(h, rest.remaining() < 4 ? rest.get() : rest.getInt());
    return mixed(h ^ key.length);
  }
  static int flink(int hashCode) { return Math.max(0, Math.abs(mixed(with(0, hashCode) ^ 4))); } // 0 for the least int
  private static int with(int h, int word) { // of murmur3 in 32 bits
    return Integer.rotateLeft(h ^ scrambled(word), 13) * 5 + 0xE6546B64;
  }
  private static int scrambled(int word) { return Integer.rotateLeft(word * 0xCC9E2D51, 15) * 0x1B873593; }
  private static int murmur3x32(byte[] key) { // without its sign bit
    ByteBuffer rest = little(Arrays.copyOf(key, (key.length + 3) / 4 * 4));
    int h = 0;
    for (int at = 4; rest.hasRemaining(); at += 4)
      h = at <= key.length ? with(h, rest.getInt()) : h ^ scrambled(rest.getInt());
    return mixed(h ^ key.length) & MOST;
  }
  private static long crc32(byte[]... parts) {
    CRC32 crc = new CRC32();
    for (byte[] part : parts) crc.update(part);
    return crc.getValue();
  }
  private static long fnv1a(byte[] key) { // without its sign
    int h = 0x811C9DC5;
    for (byte each : key) h = (h ^ each & 0xFF) * 0x01000193;
    return Integer.toUnsignedLong(Math.abs(h));
  }
  private static BigInteger md5(byte[] key) {
    try {
      return new BigInteger(1, MessageDigest.getInstance("MD5").digest(key));
    } catch (GeneralSecurityException error) { throw new IllegalStateException(error); }
  }
  private static int mixed(int h) {
    h = (h ^ h >>> 16) * 0x85EBCA6B;
    return (h = (h ^ h >>> 13) * 0xC2B2AE35) ^ h >>> 16;
  }
  private static int kafka(byte[] key) { // murmur2
    ByteBuffer rest = little(Arrays.copyOf(key, (key.length + 3) / 4 * 4));
    int h = 0x9747B28C ^ key.length;
    for (int at = 4; rest.hasRemaining(); at += 4) {
      int word = rest.getInt(), once = word * 0x5BD1E995;
      h = at <= key.length ? h * 0x5BD1E995 ^ (once ^ once >>> 24) * 0x5BD1E995 : (h ^ word) * 0x5BD1E995;
    }
    return ((h = (h ^ h >>> 13) * 0x5BD1E995) ^ h >>> 15) & MOST;
  }
  private long[] hash(byte[] key) { return fields.get("hash").equals("murmur3") ? murmur3(key) : xxhash64(key); }
  private static long[] murmur3(byte[] key) {
    ByteBuffer rest = little(Arrays.copyOf(key, (key.length + 15) / 16 * 16)); // trailing zeros do not change the hash
    long h1 = 0, h2 = 0;
    for (int at = 16; rest.hasRemaining(); at += 16) {
      h1 ^= rotateLeft(rest.getLong() * C1, 31) * C2;
      if (at <= key.length) h1 = (rotateLeft(h1, 27) + h2) * 5 + 0x52DCE729;
      h2 ^= rotateLeft(rest.getLong() * C2, 33) * C1;
      if (at <= key.length) h2 = (rotateLeft(h2, 31) + h1) * 5 + 0x38495AB5;
    }
    long sum = (h1 ^ key.length) + (h2 ^ key.length), first = mixed(sum), second = mixed(sum + (h2 ^ key.length));
    return new long[] {first + second, first + second + second};
  }
  private static long[] xxhash64(byte[] key) {
    ByteBuffer rest = little(key);
    long[] lanes = {42 + P1 + P2, 42 + P2, 42, 42 - P1};
    while (rest.remaining() >= 32) for (int i = 0; i < 4; i++) lanes[i] = round(lanes[i], rest.getLong());
    long h = rotateLeft(lanes[0], 1) + rotateLeft(lanes[1], 7) + rotateLeft(lanes[2], 12) + rotateLeft(lanes[3], 18);
    for (long lane : lanes) h = (h ^ round(0, lane)) * P1 + P4;
    h = (key.length < 32 ? 42 + P5 : h) + key.length;
    while (rest.remaining() >= 8) h = rotateLeft(h ^ round(0, rest.getLong()), 27) * P1 + P4;
    if (rest.remaining() >= 4) h = rotateLeft(h ^ (rest.getInt() & 0xFFFFFFFFL) * P1, 23) * P2 + P3;
    while (rest.hasRemaining()) h = rotateLeft(h ^ (rest.get() & 0xFF) * P5, 11) * P1;
    h = (h ^ h >>> 33) * P2;
    h = (h ^ h >>> 29) * P3;
    return new long[] {h ^ h >>> 32, 0};
  }
  private static long round(long lane, long word) { return rotateLeft(lane + word * P2, 31) * P1; }
  private static long mixed(long h) {
    h = (h ^ h >>> 33) * 0xFF51AFD7ED558CCDL;
    return (h = (h ^ h >>> 33) * 0xC4CEB9FE1A85EC53L) ^ h >>> 33;
  }
  private static ByteBuffer little(byte[] bytes) { return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN); }
  private static byte[] bytes(String hex) { return hex.equals("null") ? null : HexFormat.of().parseHex(hex); }
  public static void main(String[] plans) throws IOException {
    List<PlanReader> readers = new ArrayList<>();
    for (String plan : plans) readers.add(new PlanReader(Path.of(plan)));
    new BufferedReader(new InputStreamReader(System.in)).lines().map(PlanReader::bytes).forEach(key ->
        System.out.println(String.join("\t", readers.stream().map(each -> "" + each.channel(key)).toList())));
  }
}
