import java.io.*;
import java.nio.file.*;

/**
 * Continues a saved splitter as a Python test does: `java Follow.java SPLITTER KEYS BATCH CHANNELS... > PLANS`.
 *
 * Observes the keys (a length, -1 for null, and bytes) by batches, once row by row; after each it proposes for the next
 * number of channels, adopts, writes the plan, and the moves; then it routes all keys, and saves itself as SPLITTER.java.
 */
public class Follow {
  public static void main(String[] given) throws IOException {
    Splitter splitter = Splitter.load(Path.of(given[0]));
    byte[][] keys = new byte[(int) Files.size(Path.of(given[1]))][];
    int size = 0;
    try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(given[1]))))) {
      for (; in.available() > 0; size++) {
        int length = in.readInt();
        keys[size] = length < 0 ? null : in.readNBytes(length);
      }
    }
    int batch = Integer.parseInt(given[2]), at = 0;
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
    for (String channels : java.util.List.of(given).subList(3, given.length)) {
      int end = Math.min(at + batch, size);
      if (at == 0) while (at < end) splitter.observe(keys[at++]);
      splitter.observe(keys, at, end);
      at = end;
      Splitter.Proposal proposal = splitter.propose(Integer.parseInt(channels));
      splitter.adopt(proposal);
      out.print(splitter.plan());
      for (int row = 0; row < proposal.keys.length; row++)
        out.println("move " + proposal.from[row] + " " + proposal.to[row] + " " + proposal.state[row]);
      long sum = 0;
      for (int row = 0; row < end; row++) sum = sum * 31 + splitter.route(keys[row]);
      out.println("routes " + sum);
    }
    splitter.save(Path.of(given[0] + ".java"));
    out.flush();
  }
}
