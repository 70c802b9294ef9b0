import java.io.*;
import java.lang.management.ManagementFactory;
import java.nio.file.*;

/** `java SplitterSpeed SPLITTER KEYS REPEATS`: keys a CPU second of the process that the splitter observes and routes. */
public class SplitterSpeed {
  public static void main(String[] given) throws IOException {
    Splitter splitter = Splitter.load(Path.of(given[0]));
    byte[][] keys = new BufferedReader(new FileReader(given[1])).lines().map(String::getBytes).toArray(byte[][]::new);
    double observed = 0, routed = 0;
    for (int repeat = 0; repeat < Integer.parseInt(given[2]); repeat++) {
      long begin = cpuNs();
      splitter.observe(keys, 0, keys.length);
      long middle = cpuNs(), sum = 0;
      for (byte[] key : keys) sum += splitter.route(key);
      long end = cpuNs();
      if (sum < 0) throw new IllegalStateException();
      observed = Math.max(observed, keys.length * 1e9 / (middle - begin));
      routed = Math.max(routed, keys.length * 1e9 / (end - middle));
    }
    System.out.printf("%.0f %.0f%n", observed, routed);
  }

  private static long cpuNs() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }
}
