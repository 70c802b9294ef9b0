import java.nio.file.Path;
import org.apache.flink.api.java.functions.KeySelector;

public class ByPlan implements KeySelector<Visit, PlacedKey> {
  private transient FlinkGroups groups;

  public PlacedKey getKey(Visit visit) throws Exception {
    if (groups == null) groups = new FlinkGroups(Path.of("visits.flink")); // on every worker
    return groups.place(visit.user);
  }
}
