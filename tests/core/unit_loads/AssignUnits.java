import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.common.*;

/** Reads "assignor workers partitions,partitions,..." a line; writes the worker of each partition of topics t00, t01, ... */
class AssignUnits {
  public static void main(String[] none) {
    Scanner lines = new Scanner(System.in);
    while (lines.hasNextLine()) {
      String[] given = lines.nextLine().split(" ");
      int workers = Integer.parseInt(given[1]);
      List<PartitionInfo> parts = new ArrayList<>();
      List<String> topics = new ArrayList<>();
      Node node = new Node(0, "localhost", 1);
      for (String count : given[2].split(",")) {
        String topic = String.format("t%02d", topics.size());
        topics.add(topic);
        for (int each = 0; each < Integer.parseInt(count); each++)
          parts.add(new PartitionInfo(topic, each, node, new Node[] {node}, new Node[] {node}));
      }
      Cluster cluster = new Cluster("c", List.of(node), parts, Set.of(), Set.of());
      Map<String, Subscription> members = new HashMap<>();
      for (int each = 0; each < workers; each++) members.put(String.format("m%04d", each), new Subscription(topics));
      ConsumerPartitionAssignor assignor = switch (given[0]) {
        case "range" -> new RangeAssignor();
        case "round-robin" -> new RoundRobinAssignor();
        case "sticky" -> new StickyAssignor();
        default -> new CooperativeStickyAssignor();
      };
      Map<TopicPartition, Integer> owner = new HashMap<>();
      assignor.assign(cluster, new GroupSubscription(members)).groupAssignment().forEach(
          (member, found) -> found.partitions().forEach(each -> owner.put(each, Integer.parseInt(member.substring(1)))));
      StringBuilder said = new StringBuilder();
      for (PartitionInfo each : parts) said.append(owner.get(new TopicPartition(each.topic(), each.partition()))).append(' ');
      System.out.println(said);
    }
  }
}
