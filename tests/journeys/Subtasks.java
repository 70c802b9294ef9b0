import java.nio.file.*;
import java.util.*;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;

/** Prints the subtask of each key of files, by Flink's own class: java Subtasks FILE PARALLELISM MAX_PARALLELISM ... */
public class Subtasks {
  public static void main(String[] given) throws Exception {
    for (int at = 0; at < given.length; at += 3) {
      int parallelism = Integer.parseInt(given[at + 1]), most = Integer.parseInt(given[at + 2]);
      StringBuilder said = new StringBuilder();
      for (String key : Files.readAllLines(Path.of(given[at])))
        said.append(KeyGroupRangeAssignment.assignKeyToParallelOperator(key, most, parallelism)).append('\n');
      System.out.print(said);
    }
  }
}
