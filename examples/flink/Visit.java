/** A visit: who came, and how many bytes were sent. Flink serialises it as a POJO. */
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
