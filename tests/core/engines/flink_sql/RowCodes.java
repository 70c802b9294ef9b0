import java.io.*;
import java.util.HexFormat;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.data.writer.BinaryRowWriter;

/** Prints the hash code of Flink's row of each key on standard input: a number, or STRING and BYTES in hex; or null. */
public class RowCodes {
  public static void main(String[] given) throws IOException {
    BinaryRowData row = new BinaryRowData(1);
    BinaryRowWriter writer = new BinaryRowWriter(row);
    var lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      writer.reset();
      if (line.equals("null")) writer.setNullAt(0);
      else if (given[0].equals("BIGINT")) writer.writeLong(0, Long.parseLong(line));
      else if (given[0].equals("BYTES")) writer.writeBinary(0, HexFormat.of().parseHex(line));
      else writer.writeString(0, StringData.fromBytes(HexFormat.of().parseHex(line)));
      writer.complete();
      System.out.println(row.hashCode());
    }
  }
}
