/** A key that Flink assigns to its planned key group: its hash code is the route; equal keys are equal. */
public class PlacedKey {
  public String key; // text, an integer in decimal, or bytes in hex; null is a key of its own
  public int route;

  public PlacedKey() {} // for Flink

  public PlacedKey(String key, int route) {
    this.key = key;
    this.route = route;
  }

  @Override public int hashCode() { return route; }

  @Override public boolean equals(Object other) {
    return other instanceof PlacedKey placed && java.util.Objects.equals(key, placed.key);
  }

  @Override public String toString() { return key; }
}
