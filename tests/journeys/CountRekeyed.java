import java.nio.file.*;
import java.util.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.datagen.source.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Prints SUBTASK,KEY,ROWS of each key of a file that is read several times, natural or rekeyed.
 *
 *     java CountRekeyed FILE TIMES PARALLELISM MAX_PARALLELISM natural|rekeyed
 */
public class CountRekeyed {
  public static void main(String[] given) throws Exception {
    Path file = Path.of(given[0]);
    int times = Integer.parseInt(given[1]);
    boolean rekeyed = given[4].equals("rekeyed");
    int lines = Files.readAllLines(file).size();
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
    env.setParallelism(Integer.parseInt(given[2]));
    env.setMaxParallelism(Integer.parseInt(given[3]));
    var source = new DataGeneratorSource<>(new Line(given[0]), (long) lines * times, Types.STRING);
    env.fromSource(source, WatermarkStrategy.noWatermarks(), "keys").setParallelism(1)
        .map(key -> rekeyed ? Rekey.key(key) : key).returns(Types.STRING).setParallelism(1)
        .keyBy(key -> key).process(new Count()).print();
    env.execute("rows by key");
  }

  public record Line(String file) implements GeneratorFunction<Long, String> {
    private static List<String> lines;

    @Override public String map(Long row) throws Exception {
      if (lines == null) lines = Files.readAllLines(Path.of(file));
      return lines.get((int) (row % lines.size()));
    }
  }

  /** Prints each key with the rows so far. */
  public static class Count extends KeyedProcessFunction<String, String, String> {
    private transient ValueState<Long> count;

    @Override public void open(OpenContext context) {
      count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
    }

    @Override public void processElement(String key, Context context, Collector<String> out) throws Exception {
      long rows = (count.value() == null ? 0 : count.value()) + 1;
      count.update(rows);
      out.collect(getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() + "," + key + "," + rows);
    }
  }
}
