import adapt.Rekey;
import java.util.*;

/** Prints replacement 0, replacement 1 and the natural key of replacement 1 for each key of standard input. */
public class Replace {
  public static void main(String[] given) {
    Rekey table = Rekey.of(given[0]);
    Scanner lines = new Scanner(System.in, "UTF-8");
    while (lines.hasNextLine()) {
      Object key = keyOf(table, lines.nextLine());
      Object second = table.replaced(key, 1);
      System.out.println(shown(table.replaced(key, 0)) + "\t" + shown(second) + "\t" + shown(table.natural(second)));
    }
  }

  static Object keyOf(Rekey table, String text) {
    if (table.keyType.equals("int64")) return Long.valueOf(text);
    return table.keyType.equals("binary") ? HexFormat.of().parseHex(text) : text;
  }

  static String shown(Object key) { return key instanceof byte[] ? HexFormat.of().formatHex((byte[]) key) : key.toString(); }
}
