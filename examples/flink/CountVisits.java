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
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Counts the visits of each user on its planned subtask, and prints SUBTASK,USER,COUNT for each.
 *
 *     java CountVisits PARALLELISM HALT [SAVEPOINT]
 *
 * Reads visits.csv and visits.flink, the exported plan. Continues from SAVEPOINT if given. With HALT above 0, reads that
 * many visits, waits for a line on standard input, and stops with a savepoint in the folder `savepoints`.
 */
public class CountVisits {
  static final int MAX_PARALLELISM = 128; // as in the export

  public static void main(String[] given) throws Exception {
    int parallelism = Integer.parseInt(given[0]), halt = Integer.parseInt(given[1]);
    Configuration settings = new Configuration();
    if (given.length > 2) settings.setString("execution.state-recovery.path", given[2]);
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(settings);
    env.setParallelism(parallelism);
    env.setMaxParallelism(MAX_PARALLELISM);
    visits(env, halt).keyBy(new ByPlan()).process(new Count()).uid("count").print();
    JobClient job = env.executeAsync("visits by user");
    if (halt > 0) {
      CompletableFuture<Void> line = CompletableFuture.runAsync(() -> new Scanner(System.in).nextLine());
      CompletableFuture.anyOf(line, job.getJobExecutionResult()).get(); // or the job fails
      job.stopWithSavepoint(false, Path.of("savepoints").toUri().toString(), SavepointFormatType.CANONICAL).get();
    }
    job.getJobExecutionResult().get();
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

    @Override public Visit map(Long line) { return new Visit(lines.get(line.intValue())); }
  }

  /** Counts per user; on a rescale, the state moves with the key group of the user. */
  public static class Count extends KeyedProcessFunction<PlacedKey, Visit, String> {
    private transient ValueState<Long> count;

    @Override public void open(OpenContext context) {
      count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
    }

    @Override public void processElement(Visit visit, Context context, Collector<String> out) throws IOException {
      long before = count.value() == null ? 0 : count.value();
      count.update(before + 1);
      int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
      out.collect(subtask + "," + (visit.user == null ? "" : visit.user) + "," + (before + 1));
    }
  }
}
