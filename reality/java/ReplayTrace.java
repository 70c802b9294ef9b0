import java.io.*;
import java.net.*;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.*;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Replays rows at their times through a keyed, stateful operator whose rows wait for a loopback service.
 *
 *     ReplayTrace INPUT OUTPUT PARALLELISM PORT SPEEDUP STATE_BYTES CHECKPOINT_MS [PLAN]
 *
 * INPUT has lines of arrival in seconds, cost in seconds and key, separated by tabs. SPEEDUP 0 replays as fast as the
 * operator accepts rows. Each subtask writes a file to OUTPUT with a record of each row: its number, the subtask, and
 * when it was due, sent, taken and done, in nanoseconds of the monotonic clock. PLAN is an export of adapt for Flink.
 */
public class ReplayTrace {
  static final int MAX_PARALLELISM = 128; // as in the plan and in the prediction

  public static void main(String[] given) throws Exception {
    String input = given[0], output = given[1], plan = given.length > 7 ? given[7] : "";
    int parallelism = Integer.parseInt(given[2]), port = Integer.parseInt(given[3]);
    double speedup = Double.parseDouble(given[4]);
    int stateBytes = Integer.parseInt(given[5]);
    long checkpointMs = Long.parseLong(given[6]);
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
    env.setMaxParallelism(MAX_PARALLELISM);
    env.setBufferTimeout(0); // each row is sent at once
    if (checkpointMs > 0) env.enableCheckpointing(checkpointMs);
    long rows;
    try (var lines = Files.lines(Path.of(input))) { rows = lines.count(); }
    var sent = env.fromSource(
            new org.apache.flink.api.connector.source.lib.NumberSequenceSource(0, rows - 1),
            WatermarkStrategy.noWatermarks(), "numbers")
        .setParallelism(1)
        .map(new Replay(input, output, speedup)).returns(Types.POJO(Row.class)).name("replay").setParallelism(1);
    var done = plan.isEmpty()
        ? sent.keyBy(row -> row.key).process(new Process<String>(output, port, stateBytes))
        : sent.keyBy(new ByPlan(plan)).process(new Process<PlacedKey>(output, port, stateBytes));
    done.uid("process").name("process").setParallelism(parallelism)
        .sinkTo(new DiscardingSink<>()).setParallelism(parallelism);
    env.executeAsync("replay");
  }

  /** A row of the trace, with the time at which it was due and sent. */
  public static class Row {
    public String key;
    public int number;
    public double costS;
    public long dueNs, sentNs;
  }

  /** The key that Flink assigns to the subtask of the plan. */
  public static class ByPlan implements KeySelector<Row, PlacedKey> {
    private final String plan;
    private transient FlinkGroups groups;

    ByPlan(String plan) { this.plan = plan; }

    @Override public PlacedKey getKey(Row row) throws IOException {
      if (groups == null) groups = new FlinkGroups(Path.of(plan));
      return groups.place(row.key);
    }
  }

  /** Waits until a row is due. The time of the first row is kept in a file, for the source that goes on after a restart. */
  public static class Replay extends RichMapFunction<Long, Row> {
    private final String input, output;
    private final double speedup;
    private transient List<String> lines;
    private transient long firstNs;

    Replay(String input, String output, double speedup) {
      this.input = input;
      this.output = output;
      this.speedup = speedup;
    }

    @Override public void open(OpenContext context) throws IOException {
      lines = Files.readAllLines(Path.of(input));
      Path first = Path.of(output, "first");
      if (!Files.exists(first)) Files.writeString(first, Long.toString(System.nanoTime()));
      firstNs = Long.parseLong(Files.readString(first));
    }

    @Override public Row map(Long number) throws InterruptedException {
      String[] fields = lines.get(number.intValue()).split("\t", 3);
      Row row = new Row();
      row.number = number.intValue();
      row.costS = Double.parseDouble(fields[1]);
      row.key = fields[2];
      if (speedup > 0) {
        row.dueNs = firstNs + (long) (Double.parseDouble(fields[0]) / speedup * 1e9);
        for (long left; (left = row.dueNs - System.nanoTime()) > 0; ) Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
      }
      row.sentNs = System.nanoTime();
      if (speedup == 0) row.dueNs = row.sentNs;
      return row;
    }
  }

  /** Counts the rows of each key, and waits for the service for the cost of each row. */
  public static class Process<K> extends KeyedProcessFunction<K, Row, Void> {
    private final String output;
    private final int port, stateBytes;
    private transient ValueState<Long> count;
    private transient ValueState<byte[]> payload;
    private transient Socket service;
    private transient DataOutputStream log;
    private transient ByteBuffer request;

    Process(String output, int port, int stateBytes) {
      this.output = output;
      this.port = port;
      this.stateBytes = stateBytes;
    }

    @Override public void open(OpenContext context) throws IOException {
      count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
      payload = getRuntimeContext().getState(new ValueStateDescriptor<>("payload", byte[].class));
      service = new Socket("127.0.0.1", port);
      service.setTcpNoDelay(true);
      request = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
      String name = String.format("%020d-%d.rows", System.nanoTime(), subtask());
      log = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Path.of(output, name)), 1 << 16));
    }

    @Override public void processElement(Row row, Context context, Collector<Void> out) throws IOException {
      long takenNs = System.nanoTime();
      Long before = count.value();
      count.update(before == null ? 1 : before + 1);
      if (before == null && stateBytes > 0) payload.update(new byte[stateBytes]);
      service.getOutputStream().write(request.putDouble(0, row.costS).array());
      if (service.getInputStream().read() < 0) throw new EOFException("the service has ended");
      log.writeInt(row.number);
      log.writeInt(subtask());
      log.writeLong(row.dueNs);
      log.writeLong(row.sentNs);
      log.writeLong(takenNs);
      log.writeLong(System.nanoTime());
      log.writeLong(before == null ? 1 : before + 1);
    }

    @Override public void close() throws IOException {
      if (log != null) log.close();
      if (service != null) service.close();
    }

    private int subtask() { return getRuntimeContext().getTaskInfo().getIndexOfThisSubtask(); }
  }
}
