import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.*;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.*;

/**
 * Runs SQL over a table `stream` of the lines of a file, and prints SUBTASK,FIELD,... of every result and update.
 *
 *     java GroupSql FILE PARALLELISM MAX_PARALLELISM SQL [batch]
 *
 * The table has `key`, the line, a STRING, or a BIGINT if SQL begins with a comment `-- numbers`; and x, the number of the
 * line from 0 modulo 50. SQL is a file of statements; the last one is the query.
 */
public class GroupSql {
  public static void main(String[] given) throws Exception {
    List<String> sql = List.of(Files.readString(Path.of(given[3])).split(";\\s*"));
    boolean numbers = sql.get(0).startsWith("-- numbers");
    int lines = Files.readAllLines(Path.of(given[0])).size();
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration());
    env.setParallelism(Integer.parseInt(given[1]));
    env.setMaxParallelism(Integer.parseInt(given[2]));
    if (given.length > 4) env.setRuntimeMode(RuntimeExecutionMode.BATCH);
    TypeInformation<Row> type = Types.ROW_NAMED(
        new String[] {"key", "x"}, numbers ? Types.LONG : Types.STRING, Types.LONG);
    var source = new DataGeneratorSource<>(new Line(given[0], numbers), (long) lines, type);
    var stream = env.fromSource(source, WatermarkStrategy.noWatermarks(), "keys").setParallelism(1);
    StreamTableEnvironment tables = StreamTableEnvironment.create(env);
    tables.createTemporaryView("`stream`", stream);
    for (String statement : sql.subList(0, sql.size() - 1)) tables.executeSql(statement);
    tables.toChangelogStream(tables.sqlQuery(sql.get(sql.size() - 1))).map(new Said()).returns(Types.STRING).print();
    env.execute("rows by key");
  }

  public record Line(String file, boolean isNumber) implements GeneratorFunction<Long, Row> {
    private static List<String> lines;

    @Override public Row map(Long row) throws Exception {
      if (lines == null) lines = Files.readAllLines(Path.of(file));
      String line = lines.get(row.intValue());
      return Row.of(isNumber ? (Object) Long.valueOf(line) : line, row % 50);
    }
  }

  /** A result with the subtask that it comes from; nothing of one that is taken back. */
  public static class Said extends RichMapFunction<Row, String> {
    @Override public String map(Row row) {
      boolean gone = row.getKind() == RowKind.UPDATE_BEFORE || row.getKind() == RowKind.DELETE;
      if (gone) return "";
      return getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() + "," + IntStream.range(0, row.getArity())
          .mapToObj(at -> String.valueOf(row.getField(at))).collect(Collectors.joining(","));
    }
  }
}
