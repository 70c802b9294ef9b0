import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends a record for each key of a file, in hex or null; its value is the number of the line. More settings: NAME=VALUE. */
public class Produce {
  public static void main(String[] given) throws Exception {
    Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", given[0], "enable.idempotence", false));
    for (int at = 3; at < given.length; at++)
      settings.put(given[at].split("=", 2)[0], given[at].split("=", 2)[1]);
    try (var sender = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      int row = 0;
      for (String line : Files.readAllLines(Path.of(given[2]))) {
        byte[] key = line.equals("null") ? null : HexFormat.of().parseHex(line);
        sender.send(new ProducerRecord<>(given[1], key, ("" + row++).getBytes()));
      }
    }
  }
}
