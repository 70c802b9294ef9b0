/** A visit: the user, and the bytes sent. Flink serializes it as a POJO. */
public class Visit {
  public String user; // null for nobody
  public long bytes;

  public Visit() {}

  /** A line of a CSV file. */
  public Visit(String line) {
    String[] fields = line.split(",");
    user = fields[0].isEmpty() ? null : fields[0];
    bytes = Long.parseLong(fields[1]);
  }
}
