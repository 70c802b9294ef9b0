package adapt.flink;

import adapt.Rekey;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;

/**
 * Keys a stream by the replacement of its key, and all other keys by themselves.
 *
 *     rows.keyBy(new RekeyedKey<>(Rekey.of("web.rekey.json"), row -> row.user))
 *
 * The job must run at the table's parallelism and max parallelism. A selector has to find the same key for a row each time, so
 * a split key needs something of the row that tells its replacement, such as the row's number or its second key.
 */
public class RekeyedKey<T, K> implements KeySelector<T, K>, ResultTypeQueryable<K> {
  private static final long serialVersionUID = 1;

  private final Rekey table;
  private final KeySelector<T, K> natural;
  private final KeySelector<T, ?> choice;

  /** For tables without split keys. */
  public RekeyedKey(Rekey table, KeySelector<T, K> natural) { this(table, natural, null); }

  /** The hash code of `choice` tells which replacement of a split key a row takes. */
  public RekeyedKey(Rekey table, KeySelector<T, K> natural, KeySelector<T, ?> choice) {
    if (!table.engine.equals("flink"))
      throw new IllegalArgumentException("the table must be for the engine flink (got " + table.engine + ")");
    this.table = table;
    this.natural = natural;
    this.choice = choice;
  }

  @Override public K getKey(T row) throws Exception {
    K key = natural.getKey(row);
    int count = table.count(key);
    if (count < 2) return table.replaced(key, 0);
    if (choice == null) throw new IllegalStateException("key " + key + " is split; give RekeyedKey a choice");
    return table.replaced(key, choice.getKey(row).hashCode());
  }

  @Override @SuppressWarnings("unchecked") public TypeInformation<K> getProducedType() {
    return (TypeInformation<K>) (table.keyType.equals("int64") ? Types.LONG : Types.STRING);
  }
}
