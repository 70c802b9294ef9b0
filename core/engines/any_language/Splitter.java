import static java.lang.Long.rotateLeft;
import java.io.IOException;
import java.lang.invoke.*;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.*;
import java.util.*;
import java.util.function.IntToLongFunction;
import java.util.stream.*;

/**
 * Counts the keys of a stream, routes them, and plans anew, bit for bit as adapt.Splitter in Python does.
 *
 * Starts from a file of adapt.write_splitter. Plans are hybrid over the ring, by the level
 * construction; load refuses others. Keys are bytes as hashed: text in UTF-8, integers in 8 bytes little-endian
 * ({@link #bytes}); null is a key. All methods are safe from several threads; route takes no lock.
 */
public final class Splitter {
  private static final String HEADER = "adapt.splitter/1", SEAL = "seal ";
  private static final long LOW = 0xFFFFFFFFL;

  private final Map<String, String> fields = new LinkedHashMap<>(); // of the file, without those that change
  private final String keyType;
  private final double epsilon;
  private final long size, bucket, flushRows; // of the window, of lossy counting, between purges
  private final int counters;
  private final boolean inRows, weighed, integers;

  private final Object lock = new Object();
  private final TreeMap<Long, Counter> counting = new TreeMap<>(); // by the pane in which they started
  private Keys known = new Keys(1 << 12); // the keys of all counters; their counts are the rows that no counter has yet
  private final Numbers met = new Numbers(); // the slots of these
  private final ArrayDeque<Rows> handedOut = new ArrayDeque<>(); // rows by key that some counter has not purged yet
  private long[] sums = filled(1 << 12); // of each key, while a counter adds its rows up; -1 without any
  private long heldRows, handedOuts, blackHole, due, pane, paneEnd, next, origin = -1, last;
  private final long[] firsts = new long[64], seconds = new long[64]; // words of the next keys
  private final int[] places = new int[64];
  private volatile Plan plan;

  private Splitter(List<String> lines) {
    if (!lines.get(0).equals(HEADER)) throw new IllegalArgumentException("not a saved splitter of version 1");
    if (!lines.get(lines.size() - 1).equals("end")) throw new IllegalArgumentException("cut off: save it again");
    String seal = lines.get(1).startsWith(SEAL) ? lines.remove(1) : null;
    if (seal == null) System.getLogger(Splitter.class.getName()).log(System.Logger.Level.WARNING, "a saved splitter has no"
        + " seal, as those of earlier versions: whether its numbers are as they were cannot be checked; save it again");
    else if (!seal.equals(SEAL + sha256(String.join("\n", lines.subList(1, lines.size())) + "\n")))
      throw new IllegalArgumentException("changed after it was saved: it does not match its seal; save it again");
    Map<String, String> placed = new HashMap<>();
    List<String[]> rows = new ArrayList<>();
    for (String line : lines.subList(1, lines.size() - 1)) {
      String[] words = line.split(" ", -1);
      String value = line.substring(Math.min(words[0].length() + 1, line.length()));
      switch (words[0]) {
        case "counter", "sketch", "kept", "new", "key" -> rows.add(words);
        case "scheme", "base", "channels", "key_type", "hash", "replicas", "content_hash" ->
            placed.put(words[0], value);
        case "pin", "only", "pin_only", "capacities", "max_migration", "measure", "max_moves", "groups" ->
            throw new IllegalArgumentException("saved with " + words[0] + ", which Java does not plan by; use Python");
        case "adapt.plan.text/1" -> { }
        default -> fields.put(words[0], value);
      }
    }
    require("weight", fields, "count", "bytes");
    require("recipe", fields, "hybrid");
    require("construction", fields, "level");
    require("key_type", placed, "string", "int64", "binary");
    if (!fields.get("resources").matches("[CL]{3}"))
      throw new IllegalArgumentException("saved with loads " + fields.get("resources") + ", which Java does not plan by;"
          + " use Python");
    keyType = placed.get("key_type");
    String[] window = fields.get("window").split(" ");
    size = Long.parseLong(window[0]);
    inRows = window[1].equals("rows");
    weighed = fields.get("weight").equals("bytes");
    integers = keyType.equals("int64");
    counters = Integer.parseInt(fields.get("counters"));
    epsilon = Double.parseDouble(fields.get("epsilon"));
    bucket = (long) Math.ceil(1 / epsilon);
    flushRows = Math.max(1 << 18, weighed ? 1 : bucket);
    next = Long.parseLong(fields.remove("next"));
    if (fields.containsKey("origin")) origin = Long.parseLong(fields.remove("origin"));
    last = Long.parseLong(fields.containsKey("last") ? fields.remove("last") : "0");
    Keys pinned = new Keys(1 << 10);
    Counter counter = null;
    for (String[] words : rows)
      switch (words[0]) {
        case "counter" -> counting.put(Long.valueOf(words[1]), counter = new Counter(words));
        case "sketch" -> counter.left.sketch =
            Stream.of(words).skip(1).mapToLong(each -> Long.parseUnsignedLong(each, 16) ^ Long.MIN_VALUE).toArray();
        case "kept" -> counter.left.add(number(key(words[3])), Long.parseLong(words[1]), Long.parseLong(words[2]));
        case "new" -> counter.loaded.add(number(key(words[2])), Long.parseLong(words[1]));
        default -> pin(pinned, words);
      }
    plan = plan(placed, pinned, fields.remove("plan"), null);
    enter(Long.parseLong(fields.remove("pane")));
  }

  /** Continues a saved splitter; IllegalArgumentException says why a file is refused. */
  public static Splitter load(Path file) throws IOException {
    try {
      return new Splitter(Files.readAllLines(file, StandardCharsets.US_ASCII));
    } catch (IndexOutOfBoundsException | NullPointerException error) {
      throw new IllegalArgumentException(file + ": a damaged splitter; save it again", error);
    } catch (IllegalArgumentException error) {
      throw new IllegalArgumentException(file + ": " + error.getMessage(), error);
    }
  }

  /** Saves the splitter atomically, for Java and Python. */
  public void save(Path file) throws IOException {
    StringBuilder text = new StringBuilder();
    Plan now;
    synchronized (lock) {
      if (plan.json() == null) throw new IllegalStateException("a splitter that follows a plan is not saved");
      handOut();
      now = plan;
      fields.forEach((name, value) -> text.append(name).append(' ').append(value).append('\n'));
      text.append("pane ").append(pane).append("\nnext ").append(next).append('\n');
      if (origin >= 0) text.append("origin ").append(origin).append("\nlast ").append(last).append('\n');
      text.append("plan ").append(now.json()).append('\n');
      counting.forEach((start, counter) -> counter.write(start, text));
    }
    Path part = file.resolveSibling("." + file.getFileName() + ".part");
    text.append(now.text());
    Files.writeString(part, HEADER + "\n" + SEAL + sha256(text.toString()) + "\n" + text);
    try (FileChannel written = FileChannel.open(part, StandardOpenOption.WRITE)) { written.force(true); }
    Files.move(part, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }

  /** The hashed bytes of a key: of a String, a Long or a byte[], as the splitter was made for. */
  public byte[] bytes(Object key) {
    if (key == null) return null;
    if (key instanceof String text && keyType.equals("string")) return text.getBytes(StandardCharsets.UTF_8);
    if (key instanceof byte[] raw && keyType.equals("binary")) return raw;
    if (key instanceof Long number && keyType.equals("int64")) return littleEndian(number);
    throw new IllegalArgumentException("the splitter was made for " + keyType + " keys (got "
        + key.getClass().getSimpleName() + "); make another one for them");
  }

  /** Counts a row. */
  public void observe(byte[] key) { observe(key, 1, 0); }

  /** Counts a row with a weight, at a time in microseconds for a window in time. */
  public void observe(byte[] key, long weight, long timeUs) {
    synchronized (lock) { count(key, weight, timeUs); }
  }

  /** Counts rows of weight 1, for a window in rows; the fastest way. */
  public void observe(byte[][] keys, int from, int to) {
    if (!inRows) throw new IllegalArgumentException("a window in time needs the times of the rows");
    synchronized (lock) {
      for (int row = from; row < to; ) {
        long before = Math.min(due - heldRows, paneEnd - next);
        int begin = row, end = (int) Math.min(Math.min(to, row + firsts.length), row + before);
        long touched = 0;
        for (int each = row; each < end; each++) { // the memory of many slots is fetched at once
          long one = firsts[each - row] = Keys.first(keys[each]), two = seconds[each - row] = Keys.second(keys[each]);
          touched += known.slots[places[each - row] = known.place(Keys.quick(keys[each], one, two))];
        }
        blackHole = touched;
        for (; row < end; row++) {
          byte[] key = keys[row];
          int slot = known.slot(key, places[row - begin], firsts[row - begin], seconds[row - begin]);
          if (slot < 0) {
            if (known.isFull() || isWrong(key)) break;
            slot = known.fill(~slot, copy(key), hash(key));
          }
          countAt(slot, 1);
        }
        next += row - begin;
        heldRows += row - begin;
        if (heldRows == due) handOut();
        else if (row < end || row == begin) count(keys[row++], 1, 0); // makes room, or begins a pane
      }
    }
  }

  /** The channel of a key by the plan in force. */
  public int route(byte[] key) { return plan.channel(key); }

  /** N of the plan in force. */
  public int channels() { return plan.channels; }

  /** The content hash of the plan in force. */
  public String contentHash() { return plan.contentHash; }

  /** The plan in force as lines of text (docs/plan-format.md). */
  public String plan() { return plan.text(); }

  /** Keys of the window by falling count, then key bytes; unlisted ones weigh at most `completeAbove` each. */
  public record Counted(
      byte[][] keys, long[] low, long[] high, long total, long rows, double completeAbove, long distinct) {}

  /** The keys of the window, as counted so far. */
  public Counted counted() {
    synchronized (lock) {
      handOut();
      Counter used = counting.get(Math.max(pane - (counters - 1), 0));
      return used.purged().counted();
    }
  }

  /** A plan to adopt, and the pinned keys that it moves, most state first. */
  public final class Proposal {
    public final byte[][] keys;
    public final int[] from, to;
    public final double[] state;
    private final Plan proposed;

    private Proposal(Plan before, Plan proposed, Counted counted) {
      this.proposed = proposed;
      Keys rows = rows(counted), both = new Keys(1 << 10);
      for (Plan each : List.of(before, proposed)) each.inOrder().forEach(key -> both.place(key));
      boolean constant = fields.get("resources").charAt(0) == 'C';
      int[] moved = IntStream.range(0, both.size)
          .filter(row -> before.channel(both.keys[row]) != proposed.channel(both.keys[row])).toArray();
      double[] weights =
          IntStream.of(moved).mapToDouble(row -> constant ? 1 : low(counted, rows, both.keys[row])).toArray();
      int[] order = IntStream.range(0, moved.length).boxed()
          .sorted(Comparator.comparing(at -> -weights[at])).mapToInt(at -> at).toArray();
      keys = IntStream.of(order).mapToObj(at -> both.keys[moved[at]]).toArray(byte[][]::new);
      from = Stream.of(keys).mapToInt(before::channel).toArray();
      to = Stream.of(keys).mapToInt(proposed::channel).toArray();
      state = IntStream.of(order).mapToDouble(at -> weights[at]).toArray();
    }

    /** The plan as lines of text (docs/plan-format.md). */
    public String plan() { return proposed.text(); }
  }

  /** A plan from the window, starting from the plan in force, for this number of channels. */
  public Proposal propose(int channels) {
    Plan before = plan;
    if (before.json() == null) throw new IllegalStateException("a splitter that follows a plan does not propose");
    Counted counted = counted();
    if (counted.total == 0) throw new IllegalStateException("a plan is built from counted rows; observe some first");
    if (channels < 1)
      throw new IllegalArgumentException("the number of channels must be at least 1 (got " + channels + ")");
    Rest rest = new Rest(counted);
    Plan base = new Plan(channels, before.hash, before.replicas, new Keys(1 << 10), null, null, before);
    int[] tracked = tracked(counted, before, base);
    double[] loads = IntStream.of(tracked).mapToDouble(row -> counted.low[row]).toArray();
    int[] placed = IntStream.of(tracked).map(row -> before.channel(counted.keys[row])).toArray();
    for (int at = 0; at < placed.length; at++)
      if (placed[at] >= channels) placed[at] = base.channel(counted.keys[tracked[at]]);
    long balanced = fields.get("resources").chars().filter(letter -> letter == 'L').count();
    if (balanced > 0 && channels > 1 && tracked.length > 0)
      placed = level(loads, residual(counted, rest, tracked, base), balanced / 3.0, placed);
    Keys pinned = new Keys(1 << 10);
    for (int at = 0; at < tracked.length; at++) pinned.set(counted.keys[tracked[at]], placed[at]);
    return new Proposal(before, new Plan(pinned, base, before, parameters(counted, rest)), counted);
  }

  /** As propose, for the channels of the plan in force. */
  public Proposal propose() { return propose(plan.channels); }

  /** Puts a proposed plan in force; IllegalStateException if another was adopted since. */
  public void adopt(Proposal proposal) {
    synchronized (lock) {
      if (!plan.contentHash.equals(proposal.proposed.parent))
        throw new IllegalStateException("the proposal follows another plan than the one in force; propose again, and"
            + " adopt in order");
      plan = proposal.proposed;
    }
  }

  /** Puts a plan of another splitter in force, as lines of text, to route by it; a splitter that proposes adopts. */
  public void follow(String text) {
    Map<String, String> placed = new HashMap<>();
    Keys pinned = new Keys(1 << 10);
    for (String line : text.split("\n"))
      if (line.startsWith("key ")) pin(pinned, line.split(" ", -1));
      else placed.put(line.split(" ")[0], line.substring(line.indexOf(' ') + 1));
    synchronized (lock) { plan = plan(placed, pinned, null, plan); }
  }

  private static void pin(Keys pinned, String[] words) { pinned.set(key(words[2]), Long.parseLong(words[1])); }

  private Plan plan(Map<String, String> placed, Keys pinned, String json, Plan before) {
    require("scheme", placed, "hybrid", "consistent");
    require("hash", placed, before == null ? new String[] {"murmur3", "xxhash64"} : new String[] {before.hash});
    require("key_type", placed, keyType);
    if (placed.containsKey("base")) require("base", placed, "consistent");
    require("replicas", placed, fields.get("each_replicas"));
    return new Plan(Integer.parseInt(placed.get("channels")), placed.get("hash"),
        Integer.parseInt(placed.get("replicas")), pinned, json, placed.get("content_hash"), before);
  }

  // Counting: panes, and lossy counters that start one pane apart.

  private void count(byte[] key, long weight, long timeUs) {
    if (weight < 0) throw new IllegalArgumentException("a weight must be at least 0 (got " + weight + ")");
    if (weight != 1 && !weighed) throw new IllegalArgumentException("a splitter by count takes no weights");
    if (isWrong(key)) throw new IllegalArgumentException("the splitter was made for int64 keys of 8 bytes (got "
        + key.length + "); make another one for them");
    long at = next;
    if (inRows) next++;
    else {
      if (origin >= 0 && timeUs < last) throw new IllegalArgumentException("a row is earlier than the one before it");
      if (origin < 0) origin = timeUs;
      at = (last = timeUs) - origin;
    }
    if (at >= paneEnd) enter((Math.multiplyExact(at + 1, (long) counters - 1) - 1) / size);
    int slot = known.slot(key);
    if (slot < 0) slot = slotOfNew(key, ~slot);
    countAt(slot, weight);
    if (++heldRows == due) handOut();
  }

  private void countAt(int slot, long weight) {
    if (known.slots[slot + Keys.COUNT] == 0) {
      met.add(slot);
      known.slots[slot + Keys.COUNT] = 1; // one more, as a row may have no weight
    }
    known.slots[slot + Keys.COUNT] += weight;
  }

  private boolean isWrong(byte[] key) { return integers && key != null && key.length != 8; }

  /** The slot of a new key, which may take the place of one that no counter holds. */
  private int slotOfNew(byte[] key, int slot) {
    if (!known.isFull()) return known.fill(slot, copy(key), hash(key));
    makeRoom();
    return known.fill(~known.slot(key), copy(key), hash(key));
  }

  private int number(byte[] key) {
    int slot = known.slot(key);
    if (slot < 0) slot = slotOfNew(key, ~slot); // may replace `known`
    return known.row(slot);
  }

  private void makeRoom() {
    handOut();
    boolean[] holds = new boolean[known.size];
    List<int[]> lists = new ArrayList<>();
    handedOut.forEach(rows -> lists.add(rows.numbers.all()));
    for (Counter counter : counting.values())
      Collections.addAll(lists, counter.left.numbers.all(), counter.loaded.numbers.all());
    for (int[] list : lists) for (int number : list) holds[number] = true;
    int live = 0;
    for (boolean each : holds) if (each) live++;
    Keys left = new Keys(live > known.size / 8 * 5 || known.size < flushRows / 2 ? 2 * known.size : known.size);
    int[] to = new int[known.size];
    for (int number = 0; number < known.size; number++) {
      to[number] = left.size;
      if (holds[number]) left.insert(known.keys[number], known.hashes[number]);
    }
    known = left;
    sums = filled(left.keys.length);
    handedOut.forEach(rows -> rows.numbers.move(to));
    for (Counter counter : counting.values()) {
      counter.left.numbers.move(to);
      counter.loaded.numbers.move(to);
    }
  }

  private void enter(long number) {
    if (number > pane) handOut();
    long oldest = Math.max(number - (counters - 1), 0);
    counting.headMap(oldest).clear();
    for (long start = oldest; start <= number; start++) counting.computeIfAbsent(start, each -> new Counter());
    pane = number;
    paneEnd = Math.multiplyExact(number + 1, size) / (counters - 1);
    begin();
  }

  private void handOut() {
    Rows rows = new Rows();
    rows.order = handedOuts++;
    for (int at = 0; at < met.size; at++) {
      int slot = met.at[at];
      rows.add(known.row(slot), known.slots[slot + Keys.COUNT] - 1);
      known.slots[slot + Keys.COUNT] = 0;
    }
    met.size = 0;
    handedOut.add(rows);
    for (Counter counter : counting.values()) {
      counter.rows += heldRows;
      if (counter.rows >= flushRows) counter.purge();
    }
    begin();
  }

  private void begin() {
    heldRows = 0;
    due = counting.values().stream().mapToLong(counter -> flushRows - counter.rows).min().orElse(flushRows);
    long needed = counting.values().stream().mapToLong(counter -> counter.first).min().orElse(0);
    while (!handedOut.isEmpty() && handedOut.peek().order < needed) handedOut.remove();
  }

  /** Rows by key. */
  private static final class Rows {
    final Numbers numbers = new Numbers();
    long[] weights = new long[64];
    long order, total;

    void add(int number, long weight) {
      total = Math.addExact(total, weight);
      if (numbers.size == weights.length) weights = Arrays.copyOf(weights, 2 * numbers.size);
      weights[numbers.size] = weight;
      numbers.add(number);
    }
  }

  /** A lossy counter: what the last purge left, and the rows since. */
  private final class Counter {
    Left left = new Left();
    Rows loaded = new Rows(); // rows since the last purge, from a file
    long first = handedOuts, rows, peakEntries, peakBuffer; // the first rows handed out, how many

    Counter() {}

    Counter(String[] words) {
      long[] given = Stream.of(words).skip(2).mapToLong(Long::parseLong).toArray();
      left.rows = given[0]; left.total = given[1]; left.missed = given[2];
      rows = given[3]; peakEntries = given[4]; peakBuffer = given[5];
    }

    /** The keys of the rows since the last purge, with their sums in `sums`. */
    private Numbers waiting() {
      Numbers found = new Numbers();
      addTo(found, loaded);
      for (Rows each : handedOut) if (each.order >= first) addTo(found, each);
      return found;
    }

    private void addTo(Numbers found, Rows rows) { // without branches, which nothing predicts
      int size = found.size;
      int more = rows.numbers.size;
      if (size + more >= found.at.length) found.at = Arrays.copyOf(found.at, 2 * (size + more));
      for (int at = 0; at < more; at++) {
        int number = rows.numbers.at[at];
        long sum = sums[number];
        found.at[size] = number;
        size += (int) (sum >>> 63);
        sums[number] = (sum & ~(sum >> 63)) + rows.weights[at];
      }
      found.size = size;
    }

    /** What a purge leaves. */
    Left purged() {
      Left next = new Left();
      Numbers waiting = waiting();
      next.total = Math.addExact(left.total, loaded.total);
      for (Rows each : handedOut) if (each.order >= first) next.total = Math.addExact(next.total, each.total);
      next.missed = next.total / bucket;
      next.rows = left.rows + rows;
      next.held = left.numbers.size + waiting.size;
      next.sketch = left.sketch;
      long most = next.sketch.length < 4096 ? Long.MAX_VALUE : next.sketch[4095];
      long[] hashes = new long[waiting.size];
      int smaller = 0;
      for (int at = 0; at < left.numbers.size; at++) {
        int number = left.numbers.at[at];
        long more = sums[number];
        if (more >= 0) next.held--;
        next.add(number, left.counts[at] + Math.max(more, 0), left.errors[at]);
        sums[number] = -1;
      }
      for (int at = 0; at < waiting.size; at++) {
        int number = waiting.at[at];
        long sum = sums[number];
        if (sum + left.missed > next.missed && sum >= 0) next.add(number, sum, left.missed);
        sums[number] = -1;
        hashes[smaller] = known.hashes[number] ^ Long.MIN_VALUE;
        if (hashes[smaller] <= most) smaller++;
      }
      if (smaller > 0) next.sketch = smallest(Arrays.copyOf(hashes, smaller));
      return next;
    }

    /** The smallest hashes of the sketch and of more, each once. */
    private long[] smallest(long[] more) {
      long[] known = left.sketch, merged = new long[Math.min(known.length + more.length, 4096)];
      Arrays.sort(more);
      int size = 0, one = 0, other = 0;
      while (size < merged.length && (one < known.length || other < more.length)) {
        boolean first = other == more.length || one < known.length && known[one] <= more[other];
        long next = first ? known[one++] : more[other++];
        if (size == 0 || merged[size - 1] != next) merged[size++] = next;
      }
      return Arrays.copyOf(merged, size);
    }

    void purge() {
      left = purged();
      loaded = new Rows();
      first = handedOuts;
      rows = 0;
      peakEntries = Math.max(peakEntries, left.numbers.size);
      peakBuffer = Math.max(peakBuffer, left.held);
    }

    void write(long start, StringBuilder text) {
      text.append("counter ").append(Stream.of(start, left.rows, left.total, left.missed, rows, peakEntries, peakBuffer)
          .map(String::valueOf).collect(Collectors.joining(" "))).append("\nsketch");
      for (long hash : left.sketch) text.append(' ').append(Long.toHexString(hash ^ Long.MIN_VALUE));
      text.append('\n');
      for (int row : left.byCount())
        text.append("kept ").append(left.counts[row]).append(' ').append(left.errors[row]).append(' ')
            .append(hex(known.keys[left.numbers.at[row]])).append('\n');
      Left more = new Left();
      Numbers waiting = waiting();
      for (int number : waiting.all()) {
        more.add(number, sums[number], 1);
        sums[number] = -1;
      }
      for (int row : more.byCount())
        text.append("new ").append(more.counts[row]).append(' ')
            .append(hex(known.keys[more.numbers.at[row]])).append('\n');
    }
  }

  /** What a purge leaves of a counter: keys whose count and error together are above what it may miss. */
  private final class Left {
    final Numbers numbers = new Numbers();
    long[] counts = new long[64], errors = new long[64], sketch = {}; // the smallest hashes, with their sign turned
    long rows, total, missed;
    int held; // keys before the purge

    void add(int number, long count, long error) {
      if (count + error <= missed) return;
      int row = numbers.size;
      if (row == counts.length) {
        counts = Arrays.copyOf(counts, 2 * row);
        errors = Arrays.copyOf(errors, 2 * row);
      }
      counts[row] = count;
      errors[row] = error;
      numbers.add(number);
    }

    /** Rows by falling count, then key bytes, null first. */
    int[] byCount() {
      Comparator<Integer> order = Comparator.comparingLong(row -> -counts[row]);
      return IntStream.range(0, numbers.size).boxed()
          .sorted(order.thenComparing(
              row -> known.keys[numbers.at[row]], Comparator.nullsFirst(Arrays::compareUnsigned)))
          .mapToInt(row -> row).toArray();
    }

    Counted counted() {
      int[] order = byCount();
      byte[][] keys = IntStream.of(order).mapToObj(row -> known.keys[numbers.at[row]]).toArray(byte[][]::new);
      long[] low = IntStream.of(order).mapToLong(row -> counts[row]).toArray();
      long[] high = IntStream.of(order).mapToLong(row -> counts[row] + errors[row]).toArray();
      double complete = missed;
      if ((long) complete < missed) complete = Math.nextUp(complete);
      long distinct = missed == 0 && !weighed ? keys.length : Math.max(keys.length, estimate());
      return new Counted(keys, low, high, total, rows, complete, distinct);
    }

    private long estimate() {
      if (sketch.length < 4096) return sketch.length;
      double largest = new BigInteger(Long.toUnsignedString(sketch[4095] ^ Long.MIN_VALUE)).doubleValue();
      return Math.max(4096, (long) Math.rint(4095 * 0x1p64 / (largest + 1)));
    }
  }

  /** A list of numbers of keys. */
  private static final class Numbers {
    int[] at = new int[64];
    int size;

    void add(int number) {
      if (size == at.length) at = Arrays.copyOf(at, 2 * size);
      at[size++] = number;
    }

    void move(int[] to) {
      for (int place = 0; place < size; place++) at[place] = to[at[place]];
    }

    int[] all() { return Arrays.copyOf(at, size); }
  }

  private static long[] filled(int size) {
    long[] none = new long[size];
    Arrays.fill(none, -1);
    return none;
  }

  // Planning: the keys to pin, and the level construction.

  /** The keys that are not listed: how many, their weight, and their mean weight. */
  private final class Rest {
    final long keys;
    final double weight, mean;

    Rest(Counted counted) {
      double rest = (double) counted.total - (double) LongStream.of(counted.low).sum();
      weight = rest > 1e-9 * counted.total ? rest : 0;
      long estimated = Math.max(counted.distinct - counted.keys.length, 0);
      if (!weighed) estimated = Math.min(estimated, (long) weight);
      long fewest = weight == 0 ? 0 : counted.completeAbove > 0 ? (long) Math.ceil(weight / counted.completeAbove) : 1;
      keys = counted.completeAbove == 0 && weight == 0 ? 0 : Math.max(estimated, fewest);
      mean = keys == 0 ? 0 : weight / keys;
    }
  }

  private double number(String field, int at) { return Double.parseDouble(fields.get(field).split(" ")[at]); }

  /** The rows of the keys to pin: those that reach delta, the hottest, and those that leaving would move. */
  private int[] tracked(Counted counted, Plan before, Plan base) {
    int listed = counted.keys.length, channels = base.channels;
    if (channels == 1) return new int[0];
    if (fields.containsKey("max_pins"))
      return IntStream.range(0, (int) Math.min(listed, Long.parseLong(fields.get("max_pins")))).toArray();
    double delta = 1;
    for (int k = 0; k < 3; k++)
      if (fields.get("resources").charAt(k) == 'L') {
        double alpha = number("tolerance", k), theta = (alpha - 1) / (1 + alpha / (channels - 1));
        delta = Math.min(delta, number("sigma", 0) * theta / channels);
      }
    boolean[] reached = new boolean[listed];
    double total = counted.total;
    for (int row = 0; row < listed; row++) reached[row] = counted.high[row] / total >= delta;
    Arrays.fill(reached, 0, Math.min(enough(counted, channels), listed), true);
    int most = 10_000;
    for (boolean each : reached) if (each) most--;
    Keys rows = rows(counted);
    int[] staying = before.inOrder().stream().filter(key -> before.channel(key) != base.channel(key))
        .mapToInt(key -> rows.find(key)).filter(row -> row >= 0 && !reached[row]).sorted().toArray();
    for (int at = 0; at < Math.min(Math.max(most, 0), staying.length); at++) reached[staying[at]] = true;
    return IntStream.range(0, listed).filter(row -> reached[row]).toArray();
  }

  /** How many keys to pin so that the ring adds little to the hottest one. */
  private int enough(Counted counted, int channels) {
    int most = Math.min(counted.keys.length, 10_000), above = 0;
    if (fields.get("resources").charAt(2) != 'L' || most == 0) return 1000;
    double total = counted.total, alone = channels * (counted.low[0] / total), alpha = number("tolerance", 2), sum = 0;
    if (alone > alpha) return 1000;
    for (int row = 0; row < most; row++) {
      sum += counted.low[row] / total;
      if (alone + 1.05 * (1 - sum) > alpha) above++;
    }
    return Math.max(1000, Math.min(above + 1, 10_000));
  }

  /** The load of hashed keys on each channel: of listed ones, and of made-up ones for the others. */
  private double[] residual(Counted counted, Rest rest, int[] tracked, Plan base) {
    double[] loads = new double[base.channels];
    int at = 0;
    for (int row = 0; row < counted.keys.length; row++)
      if (at < tracked.length && tracked[at] == row) at++;
      else loads[base.channel(counted.keys[row])] += counted.low[row];
    int standIns = (int) Math.min(rest.keys, 1 << 20);
    double each = (double) rest.keys / Math.max(standIns, 1) * rest.mean;
    byte[] letters = "\u001astand-in\u001a0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    for (long number = 0; number < standIns; number++) {
      long word = number + 0x243F6A8885A308D3L;
      word = (word ^ word >>> 30) * 0xBF58476D1CE4E5B9L;
      word = (word ^ word >>> 27) * 0x94D049BB133111EBL;
      word ^= word >>> 31;
      for (int digit = 0; digit < 16; digit++)
        letters[10 + digit] = (byte) Character.forDigit((int) (word >>> 60 - 4 * digit) & 15, 16);
      loads[base.channel(keyType.equals("int64") ? littleEndian(word) : letters)] += each;
    }
    return loads;
  }

  /** Levels the channels, again while that lowers b by half a percent; loads fall, ties go to the lowest channel. */
  private static int[] level(double[] loads, double[] residual, double exponent, int[] placed) {
    for (double stands = logB(loads, residual, exponent, placed); ; ) {
      int[] tried = placed.clone();
      fillToLevel(loads, residual, tried);
      double reached = logB(loads, residual, exponent, tried);
      if (!(reached < stands - 0.005)) return placed;
      stands = reached;
      placed = tried;
    }
  }

  private static double[] filled(double[] loads, double[] residual, int[] placed) {
    double[] on = residual.clone();
    for (int key = 0; key < loads.length; key++) on[placed[key]] += loads[key];
    return on;
  }

  private static double logB(double[] loads, double[] residual, double exponent, int[] placed) {
    double[] on = filled(loads, residual, placed);
    double sum = sum(on), most = most(on);
    double least = on[lightest(on)];
    return most > 0 ? exponent * StrictMath.log(most / Math.max(least, 0.001 * (sum / on.length))) : 0;
  }

  private static void fillToLevel(double[] loads, double[] residual, int[] placed) {
    int keys = loads.length;
    double[] full = filled(loads, residual, placed), on = new double[full.length];
    boolean[] given = new boolean[keys];
    int[] kept = new int[full.length];
    double total = sum(full), low = 0, high = total / full.length;
    for (int turn = 0; turn < 50; turn++) {
      double middle = (low + high) / 2, sum = 0;
      give(loads, full, placed, middle, given, on, kept);
      for (double each : on) sum += Math.max(each, middle);
      if (sum > total) high = middle;
      else low = middle;
    }
    give(loads, full, placed, high, given, on, kept);
    double hottest = most(loads), least = hottest + residual[emptiest(residual, hottest)];
    double ceiling = Math.max(high, Math.max(most(residual), least));
    for (int key = keys - 1; key >= 0; key--) {
      int channel = placed[key];
      if (given[key] || on[channel] <= ceiling || kept[channel] < 2 || loads[key] >= 2 * (on[channel] - high)) continue;
      on[channel] -= loads[key];
      kept[channel]--;
      given[key] = true;
    }
    for (int key = 0; key < keys; key++)
      if (given[key]) on[placed[key] = lightest(on)] += loads[key];
    for (int turn = 0; turn < on.length; turn++) { // then the key of most gain, at most once per channel
      int to = lightest(on), chosen = -1;
      double best = 0;
      for (int key = 0; key < keys; key++) {
        double gap = on[placed[key]] - on[to], gain = loads[key] * (gap - loads[key]);
        if (loads[key] <= gap / 2 && gain > best) { best = gain; chosen = key; }
      }
      if (chosen < 0) return;
      on[placed[chosen]] -= loads[chosen];
      on[placed[chosen] = to] += loads[chosen];
    }
  }

  /** Chooses keys to give away, hottest first, none that would bring its channel below the level. */
  private static void give(
      double[] loads, double[] full, int[] placed, double level, boolean[] given, double[] on, int[] kept) {
    System.arraycopy(full, 0, on, 0, on.length);
    Arrays.fill(kept, 0);
    for (int key = 0; key < loads.length; key++) {
      given[key] = on[placed[key]] - loads[key] >= level;
      if (given[key]) on[placed[key]] -= loads[key];
      else kept[placed[key]]++;
    }
  }

  private static int lightest(double[] on) {
    int least = 0;
    for (int channel = 0; channel < on.length; channel++) if (on[channel] < on[least]) least = channel;
    return least;
  }

  private static int emptiest(double[] on, double load) { // within rounding, the lowest
    double least = Double.POSITIVE_INFINITY;
    int lightest = 0;
    for (int channel = 0; channel < on.length; channel++)
      if (on[channel] + load < least * (1 - 1e-12)) { least = on[channel] + load; lightest = channel; }
    return lightest;
  }

  private static double sum(double[] values) { // in order
    double sum = 0;
    for (double each : values) sum += each;
    return sum;
  }

  private static double most(double[] values) { return DoubleStream.of(values).max().getAsDouble(); }

  /** How the plan was built, as the JSON that its content hash covers. */
  private String parameters(Counted counted, Rest rest) {
    double complete = counted.completeAbove;
    if (complete >= 1e16) throw new ArithmeticException("a weight of " + complete + " is too large; use a larger unit");
    String utility = fields.getOrDefault("utility", "APM");
    return "{\"complete_above\":" + (long) complete + ".0,\"counts\":\"lossy\",\"epsilon\":" + fields.get("epsilon")
        + (rest.keys > 0 ? ",\"estimate\":true" : "") + ",\"max_pins\":" + fields.getOrDefault("max_pins", "null")
        + ",\"resources\":\"" + fields.get("resources") + "\",\"sigma\":" + fields.get("sigma") + ",\"tolerance\":["
        + fields.get("tolerance").replace(' ', ',') + "],\"utility\":\"" + utility + "\",\"weight\":\""
        + fields.get("weight") + "\"}";
  }

  private static Keys rows(Counted counted) {
    Keys rows = new Keys(1 << 10);
    for (byte[] key : counted.keys) rows.place(key);
    return rows;
  }

  private static double low(Counted counted, Keys rows, byte[] key) {
    int row = rows.find(key);
    return row < 0 ? 0 : counted.low[row];
  }

  /** Pinned keys with their channels, over a ring; never changes. */
  private final class Plan {
    final int channels, replicas, shift;
    final boolean murmur;
    final String hash, contentHash, parent;
    final Keys pinned;
    private final String json; // without pinned keys
    private final long[] high, low; // of the replicas, in order of signed numbers
    private final int[] owners, first; // of each replica; the first replica of each part of the ring

    Plan(int channels, String hash, int replicas, Keys pinned, String json, String contentHash, Plan other) {
      this.channels = channels;
      this.hash = hash;
      murmur = hash.equals("murmur3");
      this.replicas = replicas;
      this.pinned = pinned;
      this.json = json;
      this.contentHash = contentHash;
      parent = null;
      if (other != null && other.channels == channels) {
        high = other.high; low = other.low; owners = other.owners; first = other.first; shift = other.shift;
        return;
      }
      int size = Math.multiplyExact(channels, replicas), bits = 2 + Integer.SIZE - Integer.numberOfLeadingZeros(size);
      long[][] places = new long[size][];
      for (int at = 0; at < size; at++) {
        long[] words = words(ascii(at / replicas + "#" + at % replicas));
        places[at] = new long[] {words[0] ^ Long.MIN_VALUE, words[1] ^ Long.MIN_VALUE, at / replicas};
      }
      Arrays.sort(places, Comparator.<long[]>comparingLong(each -> each[0]).thenComparingLong(each -> each[1]));
      high = Stream.of(places).mapToLong(each -> each[0]).toArray();
      low = Stream.of(places).mapToLong(each -> each[1]).toArray();
      owners = Stream.of(places).mapToInt(each -> (int) each[2]).toArray();
      shift = Long.SIZE - bits;
      first = new int[1 << bits];
      for (int part = 0, at = 0; part < first.length; part++) {
        while (at < size && (high[at] ^ Long.MIN_VALUE) >>> shift < part) at++;
        first[part] = at;
      }
    }

    Plan(Keys pinned, Plan base, Plan before, String parameters) {
      channels = base.channels; hash = base.hash; replicas = base.replicas; shift = base.shift; murmur = base.murmur;
      high = base.high; low = base.low; owners = base.owners; first = base.first;
      this.pinned = pinned;
      int seed = hash.equals("murmur3") ? 0 : 42, none = pinned.find(null);
      String head = "\"channels\":" + channels + ",\"construction\":\"level\",\"explicit\":";
      String tail = ",\"hash\":{\"name\":\"" + hash + "\",\"seed\":" + seed + "},\"key_type\":\"" + keyType
          + "\",\"parameters\":" + parameters;
      String end = ",\"replicas\":" + replicas + ",\"scheme\":\"hybrid\"}";
      String ofNull = ",\"explicit_null\":" + (none < 0 ? "null" : pinned.count(none));
      parent = before.contentHash;
      json = "{" + head + "null,\"explicit_null\":null" + tail
          + ",\"parent\":\"" + parent + "\",\"schema\":\"adapt.plan/1\"" + end;
      contentHash = sha256("{" + head + explicitJson() + ofNull + tail + end);
    }

    String json() { return json; }

    int channel(byte[] key) {
      int slot = pinned.slot(key);
      if (slot >= 0) return (int) pinned.slots[slot + Keys.COUNT];
      long[] words = words(key == null ? NOTHING : key);
      return hashed(words[0], words[1]);
    }

    private int hashed(long one, long two) {
      int at = first[(int) (one >>> shift)];
      one ^= Long.MIN_VALUE;
      two ^= Long.MIN_VALUE;
      while (at < high.length && (high[at] < one || high[at] == one && low[at] < two)) at++;
      return owners[at == high.length ? 0 : at];
    }

    private long[] words(byte[] key) { return murmur ? murmur3(key) : new long[] {xxhash64(key), 0}; }

    /** The pinned keys, null first, then texts and bytes in byte order, integers by size. */
    List<byte[]> inOrder() {
      Comparator<byte[]> order =
          keyType.equals("int64") ? Comparator.comparingLong(Splitter::integer) : Arrays::compareUnsigned;
      return Stream.of(pinned.keys).limit(pinned.size).sorted(Comparator.nullsFirst(order)).toList();
    }

    String text() {
      StringBuilder text = new StringBuilder("adapt.plan.text/1\nscheme hybrid\nchannels " + channels
          + "\nkey_type " + keyType + "\nhash " + hash + "\nreplicas " + replicas
          + "\ncontent_hash " + contentHash + "\n");
      for (byte[] key : inOrder())
        text.append("key ").append(channel(key)).append(' ').append(hex(key)).append('\n');
      return text + "end\n";
    }

    private String explicitJson() {
      TreeMap<byte[], Integer> texts = new TreeMap<>(Arrays::compareUnsigned);
      for (int row = 0; row < pinned.size; row++)
        if (pinned.keys[row] != null) texts.put(textOf(pinned.keys[row]), (int) pinned.count(row));
      return texts.entrySet().stream().map(each -> quoted(each.getKey()) + ":" + each.getValue())
          .collect(Collectors.joining(",", "{", "}"));
    }

    private byte[] textOf(byte[] key) {
      return keyType.equals("string") ? key : ascii(keyType.equals("binary") ? hex(key) : "" + integer(key));
    }
  }

  /**
   * Distinct keys with counts, by open addressing. A slot is the row plus 1, or 0; two words of the key, which are all
   * of it with its length if it has fewer than 16 bytes; and a count.
   */
  private static final class Keys {
    static final int WIDTH = 4, COUNT = 3;
    byte[][] keys;
    long[] hashes, slots; // hashes as sketches take them
    int size;

    Keys(int room) {
      keys = new byte[room][];
      hashes = new long[room];
      slots = new long[WIDTH * 2 * room];
    }

    int place(long hash) { return (int) (hash >>> 32) * WIDTH & slots.length - 1; }

    /** The slot of a key, or the complement of a free one. */
    int slot(byte[] key) {
      long one = first(key), two = second(key);
      return slot(key, place(quick(key, one, two)), one, two);
    }

    int slot(byte[] key, int at, long one, long two) {
      for (long slot; (slot = slots[at]) != 0; at = at + WIDTH & slots.length - 1)
        if (slots[at + 1] == one && slots[at + 2] == two && (two >>> 56 < 16 || same(keys[(int) slot - 1], key)))
          return at;
      return ~at;
    }

    int slotOf(int row) { return slot(keys[row]); }

    int row(int slot) { return (int) slots[slot] - 1; }

    /** The row of a key, or -1. */
    int find(byte[] key) {
      int slot = slot(key);
      return slot < 0 ? -1 : row(slot);
    }

    boolean isFull() { return size == keys.length; }

    /** The row of a key, which is copied if new. */
    int place(byte[] key) {
      int row = find(key);
      return row >= 0 ? row : insert(copy(key), hash(key));
    }

    int insert(byte[] key, long hash) {
      if (isFull()) {
        long[] before = slots;
        keys = Arrays.copyOf(keys, 2 * size);
        hashes = Arrays.copyOf(hashes, 2 * size);
        slots = new long[2 * before.length];
        for (int at = 0; at < before.length; at += WIDTH)
          if (before[at] != 0) System.arraycopy(before, at, slots, ~slotOf((int) before[at] - 1), WIDTH);
      }
      return row(fill(~slot(key), key, hash));
    }

    /** Puts a new key into a free slot, unless full. */
    int fill(int slot, byte[] key, long hash) {
      keys[size] = key;
      hashes[size] = hash;
      slots[slot] = ++size;
      slots[slot + 1] = first(key);
      slots[slot + 2] = second(key);
      return slot;
    }

    /** Sets the count of a key, which may be new. */
    void set(byte[] key, long count) {
      int row = place(key);
      slots[slotOf(row) + COUNT] = count;
    }

    long count(int row) { return slots[slotOf(row) + COUNT]; }

    /** A hash of the two words if they are the whole key. */
    static long quick(byte[] key, long one, long two) {
      return two >>> 56 < 16 ? mixed((two ^ P3) * P1 ^ one) : hash(key);
    }

    static long first(byte[] key) { return key == null ? 0 : word(key, 0); }

    /** The second 8 bytes, but for the last, which is the length, or above 15 if there may be more; of null, 254. */
    static long second(byte[] key) {
      if (key == null) return 254L << 56;
      return word(key, 8) & -1L >>> 8 | (key.length < 16 ? (long) key.length : 255) << 56;
    }

    private static boolean same(byte[] one, byte[] other) {
      return one == null || other == null ? one == other : Arrays.equals(one, other);
    }
  }

  // Hashes and texts. PlanReader has the hashes in a form for readers; here they are fast.

  private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle HALF = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final byte[] NOTHING = {};
  private static final long OF_NULL = 42; // null and the empty key differ
  private static final long C1 = 0x87C37B91114253D5L, C2 = 0x4CF5AD432745937FL; // of murmur3
  private static final long P1 = 0x9E3779B185EBCA87L, P2 = 0xC2B2AE3D27D4EB4FL, P3 = 0x165667B19E3779F9L; // of xxhash64
  private static final long P4 = 0x85EBCA77C2B2AE63L, P5 = 0x27D4EB2F165667C5L;

  private static long hash(byte[] key) { return key == null ? OF_NULL : xxhash64(key); }

  private static long word(byte[] key, int at) { // the next 8 bytes, or those that are left
    int left = key.length - at;
    if (left >= 8) return (long) WORD.get(key, at);
    if (left <= 0) return 0;
    if (key.length >= 8) return (long) WORD.get(key, key.length - 8) >>> 64 - 8 * left;
    if (left >= 4) return (int) HALF.get(key, 0) & LOW | ((int) HALF.get(key, left - 4) & LOW) << 8 * (left - 4);
    return key[0] & 0xFF | (key[left / 2] & 0xFF) << 8 * (left / 2) | (key[left - 1] & 0xFF) << 8 * (left - 1);
  }

  private static long[] murmur3(byte[] key) {
    long h1 = 0, h2 = 0;
    for (int at = 0; at < key.length; at += 16) { // trailing zeros do not change the hash
      h1 ^= rotateLeft(word(key, at) * C1, 31) * C2;
      if (at + 16 <= key.length) h1 = (rotateLeft(h1, 27) + h2) * 5 + 0x52DCE729;
      h2 ^= rotateLeft(word(key, at + 8) * C2, 33) * C1;
      if (at + 16 <= key.length) h2 = (rotateLeft(h2, 31) + h1) * 5 + 0x38495AB5;
    }
    long sum = (h1 ^ key.length) + (h2 ^ key.length), one = mixed(sum), two = mixed(sum + (h2 ^ key.length));
    return new long[] {one + two, one + two + two};
  }

  private static long xxhash64(byte[] key) {
    int at = key.length & ~31, length = key.length;
    long h = (at == 0 ? 42 + P5 : lanes(key)) + length;
    for (; length - at >= 8; at += 8) h = rotateLeft(h ^ round(0, word(key, at)), 27) * P1 + P4;
    if (at == length) return finished(h);
    long rest = word(key, at);
    if ((length & 4) > 0) {
      h = rotateLeft(h ^ (rest & LOW) * P1, 23) * P2 + P3;
      rest >>>= 32;
    }
    for (int left = length & 3; left-- > 0; rest >>>= 8) h = rotateLeft(h ^ (rest & 0xFF) * P5, 11) * P1;
    return finished(h);
  }

  private static long lanes(byte[] key) {
    long[] lanes = {42 + P1 + P2, 42 + P2, 42, 42 - P1};
    for (int at = 0; at < (key.length & ~31); at += 8) lanes[at / 8 & 3] = round(lanes[at / 8 & 3], word(key, at));
    long h = rotateLeft(lanes[0], 1) + rotateLeft(lanes[1], 7) + rotateLeft(lanes[2], 12) + rotateLeft(lanes[3], 18);
    for (long lane : lanes) h = (h ^ round(0, lane)) * P1 + P4;
    return h;
  }

  private static long round(long lane, long word) { return rotateLeft(lane + word * P2, 31) * P1; }

  private static long finished(long h) {
    h = (h ^ h >>> 33) * P2;
    h = (h ^ h >>> 29) * P3;
    return h ^ h >>> 32;
  }

  private static long mixed(long h) {
    h = (h ^ h >>> 33) * 0xFF51AFD7ED558CCDL;
    return (h = (h ^ h >>> 33) * 0xC4CEB9FE1A85EC53L) ^ h >>> 33;
  }

  private static byte[] copy(byte[] key) { return key == null ? null : key.clone(); }

  private static long integer(byte[] key) { return (long) WORD.get(key, 0); }

  private static byte[] littleEndian(long number) {
    byte[] bytes = new byte[8];
    WORD.set(bytes, 0, number);
    return bytes;
  }

  private static byte[] ascii(String text) { return text.getBytes(StandardCharsets.US_ASCII); }

  private static String hex(byte[] key) { return key == null ? "null" : HexFormat.of().formatHex(key); }

  private static byte[] key(String hex) { return hex.equals("null") ? null : HexFormat.of().parseHex(hex); }

  private static String quoted(byte[] text) { // as in JSON
    StringBuilder quoted = new StringBuilder("\"");
    for (char letter : new String(text, StandardCharsets.UTF_8).toCharArray()) {
      int place = "\"\\\n\r\t\b\f".indexOf(letter);
      if (place >= 0) quoted.append('\\').append("\"\\nrtbf".charAt(place));
      else if (letter < 32) quoted.append(String.format("\\u%04x", (int) letter));
      else quoted.append(letter);
    }
    return quoted.append('"').toString();
  }

  private static String sha256(String text) {
    try {
      return hex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
    } catch (NoSuchAlgorithmException error) { throw new IllegalStateException(error); }
  }

  private static void require(String name, Map<String, String> in, String... known) {
    if (!List.of(known).contains(in.get(name)))
      throw new IllegalArgumentException("saved with " + name + " " + in.get(name) + ", but Java's splitter knows "
          + String.join(", ", known) + "; use Python");
  }
}
