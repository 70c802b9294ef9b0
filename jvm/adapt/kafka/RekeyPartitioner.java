package adapt.kafka;

import adapt.Rekey;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.utils.Utils;

/**
 * Sends a record where its replacement key would go, and leaves the key as it is.
 *
 * Settings of the producer: `partitioner.class` is this class, `adapt.rekey` a table (JSON, `classpath:NAME` or a file).
 * All other keys go where Kafka's own partitioner sends them; records without a key are spread over the partitions in turn,
 * as are those of a split key over its own.
 */
public class RekeyPartitioner implements Partitioner {
  public static final String TABLE = "adapt.rekey";

  private Rekey table;
  private final AtomicInteger turns = new AtomicInteger();
  private final ThreadLocal<Integer> repeated = new ThreadLocal<>(), last = ThreadLocal.withInitial(() -> 0);

  @Override public void configure(Map<String, ?> settings) {
    Object where = settings.get(TABLE);
    if (where == null) throw new IllegalArgumentException(TABLE + " is required: a rekey table, as a file or as text");
    table = Rekey.of(where.toString());
    if (!table.engine.equals("kafka"))
      throw new IllegalArgumentException(TABLE + " must be a table for the engine kafka (got " + table.engine + ")");
  }

  @Override public int partition(String topic, Object key, byte[] bytes, Object value, byte[] content, Cluster cluster) {
    int partitions = cluster.partitionCountForTopic(topic);
    if (partitions != table.channels)
      throw new IllegalStateException(
          "topic " + topic + " has " + partitions + " partitions; the table is for " + table.channels);
    Integer again = repeated.get();
    repeated.remove();
    if (bytes == null) return Math.floorMod(turn(again), partitions);
    return Utils.toPositive(Utils.murmur2(placed(bytes, again))) % partitions;
  }

  /** Before Kafka 4 a producer asks again for the same record if it needs a new batch, which must not take another turn. */
  @SuppressWarnings({"deprecation", "removal"})
  public void onNewBatch(String topic, Cluster cluster, int partition) { repeated.set(last.get()); }

  private int turn(Integer again) {
    last.set(again == null ? turns.getAndIncrement() : again);
    return last.get();
  }

  /** The bytes that Kafka's hash sees. */
  private byte[] placed(byte[] bytes, Integer again) {
    Object key = keyOf(bytes);
    int count = table.count(key);
    if (count == 0) return bytes;
    Object found = table.replaced(key, count == 1 ? 0 : turn(again));
    if (found instanceof Long) return ByteBuffer.allocate(Long.BYTES).putLong((Long) found).array();
    return found instanceof String ? ((String) found).getBytes(StandardCharsets.UTF_8) : (byte[]) found;
  }

  /** The key as the table has it: text is UTF-8, an integer 8 bytes, big-endian. */
  private Object keyOf(byte[] bytes) {
    if (table.keyType.equals("string")) return new String(bytes, StandardCharsets.UTF_8);
    if (!table.keyType.equals("int64")) return bytes;
    if (bytes.length != Long.BYTES)
      throw new IllegalArgumentException("an integer key must have 8 bytes (got " + bytes.length + ")");
    return ByteBuffer.wrap(bytes).getLong();
  }

  @Override public void close() {}
}
