import adapt.Rekey;
import adapt.flink.RekeyedKey;
import java.io.*;
import java.net.*;
import java.nio.*;
import java.nio.file.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.*;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.*;

/**
 * Aggregates the rows of each key in windows, as `ReplayTrace` replays them: each waits for the loopback service.
 *
 *     AggregateTrace INPUT OUTPUT PARALLELISM PORT WINDOW_ROWS [TABLE [MERGE_S]]
 *
 * With TABLE, a rekey table of adapt, the stream is keyed by replacement keys; of a split key, the row's number chooses. With
 * MERGE_S, partial results are merged by the original key, and each waits so long for the service. Each subtask writes a
 * file to OUTPUT: `.rows` with the records of `ReplayTrace`, `.results` with window, key, count, sum and maximum of the
 * stated latencies in nanoseconds, and `.merged` with the time at which a message was merged, in nanoseconds.
 */
public class AggregateTrace {
  static final OutputTag<Part> PARTS = new OutputTag<>("parts", Types.POJO(Part.class));

  public static void main(String[] given) throws Exception {
    String input = given[0], output = given[1];
    int parallelism = Integer.parseInt(given[2]), port = Integer.parseInt(given[3]);
    long window = Long.parseLong(given[4]);
    Rekey table = given.length > 5 ? Rekey.of(given[5]) : null;
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
    env.setMaxParallelism(ReplayTrace.MAX_PARALLELISM);
    env.setBufferTimeout(0); // each row is sent at once
    long rows;
    try (var lines = Files.lines(Path.of(input))) { rows = lines.count(); }
    KeySelector<ReplayTrace.Row, String> key = row -> row.key;
    if (table != null) key = new RekeyedKey<>(table, key, row -> row.number);
    DataStream<Part> parts = env.fromSource(
            new org.apache.flink.api.connector.source.lib.NumberSequenceSource(0, rows - 1),
            WatermarkStrategy.noWatermarks(), "numbers")
        .setParallelism(1)
        .map(new ReplayTrace.Replay(input, output, 0)).returns(Types.POJO(ReplayTrace.Row.class))
        .name("replay").setParallelism(1)
        .assignTimestampsAndWatermarks(
            WatermarkStrategy.<ReplayTrace.Row>forMonotonousTimestamps()
                .withTimestampAssigner((row, before) -> row.number))
        .setParallelism(1)
        .keyBy(key, Types.STRING)
        .process(new Aggregate(output, port, window)).name("aggregate").setParallelism(parallelism)
        .getSideOutput(PARTS);
    if (table != null) parts = parts.map(new Original(table)).returns(Types.POJO(Part.class)).setParallelism(parallelism);
    if (given.length > 6)
      parts = parts.keyBy(part -> part.key, Types.STRING)
          .process(new Merge(output, port, Double.parseDouble(given[6]))).returns(Types.POJO(Part.class))
          .name("merge").setParallelism(parallelism);
    parts.map(new Write(output)).returns(Types.POJO(Part.class)).name("write").setParallelism(parallelism)
        .sinkTo(new DiscardingSink<>()).setParallelism(parallelism);
    env.executeAsync("aggregate");
  }

  /** Aggregates of a key in a window, or of a part of its rows. */
  public static class Part {
    public String key;
    public long window, count, total, most;

    void add(Part other) {
      count += other.count;
      total += other.total;
      most = Math.max(most, other.most);
    }
  }

  /** Waits for each row as the job without windows does; at the end of a window, sends the aggregates of its key. */
  public static class Aggregate extends ReplayTrace.Process<String> {
    private final long window;
    private transient MapState<Long, Part> parts;

    Aggregate(String output, int port, long window) {
      super(output, port, 0);
      this.window = window;
    }

    @Override public void open(OpenContext context) throws IOException {
      super.open(context);
      parts = getRuntimeContext().getMapState(new MapStateDescriptor<>("parts", Types.LONG, Types.POJO(Part.class)));
    }

    @Override public void processElement(ReplayTrace.Row row, Context context, Collector<Void> out) throws IOException {
      super.processElement(row, context, out);
      Part one = new Part();
      one.window = row.number / window;
      one.count = 1;
      one.total = one.most = Math.round(row.costS * 1e9);
      try {
        Part part = parts.get(one.window);
        if (part != null) one.add(part);
        parts.put(one.window, one);
      } catch (Exception wrong) {
        throw new IOException(wrong);
      }
      context.timerService().registerEventTimeTimer((one.window + 1) * window - 1);
    }

    @Override public void onTimer(long end, OnTimerContext context, Collector<Void> out) throws Exception {
      Part part = parts.get(end / window);
      part.key = context.getCurrentKey();
      parts.remove(part.window);
      context.output(PARTS, part);
    }
  }

  /** The key of the trace in place of its replacement. */
  public static class Original implements MapFunction<Part, Part> {
    private final Rekey table;

    Original(Rekey table) { this.table = table; }

    @Override public Part map(Part part) {
      part.key = table.natural(part.key);
      return part;
    }
  }

  /** Waits for each partial result; when all of a window are there, sends the whole. */
  public static class Merge extends KeyedProcessFunction<String, Part, Part> {
    private final String output;
    private final int port;
    private final double mergeS;
    private transient MapState<Long, Part> parts;
    private transient Socket service;
    private transient PrintWriter log;

    Merge(String output, int port, double mergeS) {
      this.output = output;
      this.port = port;
      this.mergeS = mergeS;
    }

    @Override public void open(OpenContext context) throws IOException {
      parts = getRuntimeContext().getMapState(new MapStateDescriptor<>("parts", Types.LONG, Types.POJO(Part.class)));
      service = new Socket("127.0.0.1", port);
      service.setTcpNoDelay(true);
      log = writer(output, getRuntimeContext(), "merged");
    }

    @Override public void processElement(Part one, Context context, Collector<Part> out) throws Exception {
      byte[] request = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putDouble(mergeS).array();
      service.getOutputStream().write(request);
      if (service.getInputStream().read() < 0) throw new EOFException("the service has ended");
      log.println(System.nanoTime());
      long end = context.timestamp(); // of the window, at which all its parts come
      Part part = parts.get(end);
      if (part != null) one.add(part);
      parts.put(end, one);
      context.timerService().registerEventTimeTimer(end);
    }

    @Override public void onTimer(long end, OnTimerContext context, Collector<Part> out) throws Exception {
      out.collect(parts.get(end));
      parts.remove(end);
    }

    @Override public void close() throws IOException {
      if (log != null) log.close();
      if (service != null) service.close();
    }
  }

  /** Writes results. */
  public static class Write extends RichMapFunction<Part, Part> {
    private final String output;
    private transient PrintWriter file;

    Write(String output) { this.output = output; }

    @Override public void open(OpenContext context) throws IOException { file = writer(output, getRuntimeContext(), "results"); }

    @Override public Part map(Part part) {
      file.printf("%d\t%s\t%d\t%d\t%d%n", part.window, part.key, part.count, part.total, part.most);
      return part;
    }

    @Override public void close() { if (file != null) file.close(); }
  }

  static PrintWriter writer(String output, RuntimeContext context, String what) throws IOException {
    String name = context.getTaskInfo().getIndexOfThisSubtask() + "." + what;
    return new PrintWriter(Files.newBufferedWriter(Path.of(output, name)));
  }
}
