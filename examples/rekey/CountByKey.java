import adapt.Rekey;
import adapt.flink.RekeyedKey;
import java.io.IOException;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.*;
import org.apache.flink.core.execution.*;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Counts visits by user, first by natural keys, then by those of a rekey table, with all state: docs/runbook-flink.md.
 *
 *     java CountByKey natural  PARALLELISM HALT                     stops with a savepoint after HALT visits
 *     java CountByKey handover PARALLELISM SAVEPOINT TABLE          prints KEY,COUNT of each replaced key
 *     java CountByKey rekeyed  PARALLELISM SAVEPOINT TABLE HALT     reads handover.csv; stops after HALT visits if not 0
 *     java CountByKey back     PARALLELISM SAVEPOINT TABLE          prints KEY,COUNT of each replacement
 *     java CountByKey undone   PARALLELISM SAVEPOINT TABLE          reads handover.csv; natural keys again
 *
 * Jobs that count print SUBTASK,KEY,COUNT for each visit in visits.csv, whose lines are users.
 */
public class CountByKey {
  static final ValueStateDescriptor<Long> COUNT = new ValueStateDescriptor<>("count", Types.LONG);

  public static void main(String[] given) throws Exception {
    String step = given[0];
    Configuration settings = new Configuration();
    if (!step.equals("natural")) settings.setString("execution.state-recovery.path", given[2]);
    // The one-off jobs have no source of visits, and a job may have no handover: that state stays in the savepoint.
    settings.setString("execution.state-recovery.ignore-unclaimed-state", "true");
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(settings);
    env.setParallelism(Integer.parseInt(given[1]));
    env.setMaxParallelism(128); // as in the table; Flink can never change it
    Rekey table = given.length > 3 ? Rekey.of(given[3]) : null;
    int halt = step.equals("natural") ? Integer.parseInt(given[2]) : given.length > 4 ? Integer.parseInt(given[4]) : 0;
    switch (step) {
      case "natural" -> visits(env, halt).keyBy(visit -> visit.user).process(new Count()).uid("count").print();
      case "handover" -> read(env, new ArrayList<>(table.keys()));
      case "back" -> read(env, table.keys().stream().flatMap(key -> table.replacements(key).stream()).toList());
      case "rekeyed" -> {
        var rows = visits(env, halt).keyBy(new RekeyedKey<>(table, visit -> visit.user, visit -> visit.number));
        continued(env, rows, to(table), new CountOn(table, false));
      }
      case "undone" -> continued(env, visits(env, halt).keyBy(visit -> visit.user), from(table), new CountOn(table, true));
      default -> throw new IllegalArgumentException(step);
    }
    JobClient job = env.executeAsync(step);
    if (halt > 0) {
      CompletableFuture<Void> line = CompletableFuture.runAsync(() -> new Scanner(System.in).nextLine());
      CompletableFuture.anyOf(line, job.getJobExecutionResult()).get(); // or the job fails
      job.stopWithSavepoint(false, Path.of("savepoints").toUri().toString(), SavepointFormatType.CANONICAL).get();
    }
    job.getJobExecutionResult().get();
  }

  /** The one-off job: the operator's own uid, fed with nothing but the keys whose state is wanted. */
  static void read(StreamExecutionEnvironment env, List<String> keys) {
    env.fromData(keys).keyBy(key -> key).process(new Read()).uid("count").print();
  }

  static void continued(
      StreamExecutionEnvironment env, KeyedStream<Visit, String> rows, List<HandOver> handovers, CountOn count) {
    // A uid for each move: a source of the same uid would go on from the savepoint, where it had ended.
    DataStream<HandOver> states = env.fromData(handovers, Types.POJO(HandOver.class)).uid("handover " + count.move());
    rows.connect(states.keyBy(each -> each.key)).process(count).uid("count").print();
  }

  /** What the one-off job printed. */
  static Map<String, Long> counts() throws IOException {
    Map<String, Long> found = new HashMap<>();
    for (String line : Files.readAllLines(Path.of("handover.csv")))
      found.put(line.substring(0, line.lastIndexOf(',')), Long.valueOf(line.substring(line.lastIndexOf(',') + 1)));
    return found;
  }

  /** The count of a key goes to its first replacement, 0 to the others; the key itself, if it is none of them, forgets it. */
  static List<HandOver> to(Rekey table) throws IOException {
    Map<String, Long> found = counts();
    List<HandOver> made = new ArrayList<>();
    for (String key : table.keys()) {
      List<String> each = table.replacements(key);
      long left = each.contains(key) ? 0 : found.getOrDefault(key, 0L);
      if (!each.contains(key)) made.add(new HandOver(key, HandOver.FORGET));
      for (String one : each) {
        if (!one.equals(key)) made.add(new HandOver(one, left));
        left = 0;
      }
    }
    return made;
  }

  /** The counts of all replacements of a key, merged, go to the key. */
  static List<HandOver> from(Rekey table) throws IOException {
    Map<String, Long> found = counts();
    List<HandOver> made = new ArrayList<>();
    for (String key : table.keys()) {
      long whole = 0;
      for (String one : table.replacements(key)) {
        whole += found.getOrDefault(one, 0L);
        if (!one.equals(key)) made.add(new HandOver(one, HandOver.FORGET));
      }
      made.add(new HandOver(key, whole));
    }
    return made;
  }

  /** The stream, which pauses after `halt` visits; replace it by your own source. */
  static DataStream<Visit> visits(StreamExecutionEnvironment env, int halt) throws IOException {
    RateLimiterStrategy rate = halt > 0 ? RateLimiterStrategy.perCheckpoint(halt) : RateLimiterStrategy.noOp();
    var source = new DataGeneratorSource<>(new ReadVisits(), lines().size(), rate, Types.POJO(Visit.class));
    return env.fromSource(source, WatermarkStrategy.noWatermarks(), "visits").setParallelism(1).uid("visits");
  }

  static List<String> lines() throws IOException { return Files.readAllLines(Path.of("visits.csv")); }

  public static class ReadVisits implements GeneratorFunction<Long, Visit> {
    private transient List<String> lines;

    @Override public void open(SourceReaderContext context) throws IOException { lines = lines(); }

    @Override public Visit map(Long line) { return new Visit(lines.get(line.intValue()), line); }
  }

  public static class Visit {
    public String user;
    public long number; // of the visit: tells a split key's replacement

    public Visit() {}

    Visit(String user, long number) {
      this.user = user;
      this.number = number;
    }
  }

  /** The state of a key. */
  public static class HandOver {
    static final long FORGET = -1;
    public String key;
    public long count;

    public HandOver() {}

    HandOver(String key, long count) {
      this.key = key;
      this.count = count;
    }
  }

  /** The job before: counts per user. */
  public static class Count extends KeyedProcessFunction<String, Visit, String> {
    private transient ValueState<Long> count;

    @Override public void open(OpenContext context) { count = getRuntimeContext().getState(COUNT); }

    @Override public void processElement(Visit visit, Context context, Collector<String> out) throws IOException {
      long now = (count.value() == null ? 0 : count.value()) + 1;
      count.update(now);
      out.collect(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() + "," + context.getCurrentKey() + "," + now);
    }
  }

  /** Reads the state of the keys asked for, and changes none. */
  public static class Read extends KeyedProcessFunction<String, String, String> {
    private transient ValueState<Long> count;

    @Override public void open(OpenContext context) { count = getRuntimeContext().getState(COUNT); }

    @Override public void processElement(String key, Context context, Collector<String> out) throws IOException {
      if (count.value() != null) out.collect(key + "," + count.value());
    }
  }

  /** The job after: the same state, and rows of a moved key wait until its state is here. */
  public static class CountOn extends KeyedCoProcessFunction<String, Visit, HandOver, String> {
    private final Rekey table;
    private final boolean back;
    private transient ValueState<Long> count;
    private transient ValueState<Boolean> arrived;
    private transient ListState<Visit> held;

    CountOn(Rekey table, boolean back) {
      this.table = table;
      this.back = back;
    }

    @Override public void open(OpenContext context) {
      count = getRuntimeContext().getState(COUNT);
      arrived = getRuntimeContext().getState(new ValueStateDescriptor<>("arrived " + move(), Types.BOOLEAN));
      held = getRuntimeContext().getListState(new ListStateDescriptor<>("held " + move(), Types.POJO(Visit.class)));
    }

    /** A later move waits anew. */
    String move() { return (back ? "back from " : "to ") + table.plan; }

    private boolean moves(String key) { return back ? table.count(key) > 0 : table.replaces(key); }

    @Override public void processElement1(Visit visit, Context context, Collector<String> out) throws Exception {
      if (moves(context.getCurrentKey()) && arrived.value() == null) held.add(visit);
      else count(context.getCurrentKey(), out);
    }

    @Override public void processElement2(HandOver state, Context context, Collector<String> out) throws Exception {
      if (state.count == HandOver.FORGET) {
        count.clear();
        return;
      }
      count.update(state.count);
      arrived.update(true);
      for (Visit ignored : held.get()) count(state.key, out);
      held.clear();
    }

    private void count(String key, Collector<String> out) throws IOException {
      long now = (count.value() == null ? 0 : count.value()) + 1;
      count.update(now);
      out.collect(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() + "," + key + "," + now);
    }
  }
}
