import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Ordered parallel streams: the arithmetic of the function `work`, and a hash of the outputs in order.
 *
 * Arguments: KEYS TUPLES STEPS WORKERS SEED REPEATS; KEYS is a file of 64-bit keys, or - for a stateless operator. A
 * keyed operator takes 65,536 rows at a time: the partitions of these in parallel, then the outputs in order. Prints the
 * hash, and the mean CPU and wall nanoseconds of the later half of the repeats, after the compiler has done its work; the
 * clock of CPU time has steps of 10 ms on some systems.
 */
public final class OrderedPeers {
    private static final long FACTOR = 0xD1342543DE82EF95L, FOLD = 0x9E3779B97F4A7C15L;
    private static final int BLOCK = 1 << 16, PARTITIONS = 64;
    private static long hash;
    private static volatile long burnt;

    private static long mixed(long word) {
        word = (word ^ word >>> 30) * 0xBF58476D1CE4E5B9L;
        word = (word ^ word >>> 27) * 0x94D049BB133111EBL;
        return word ^ word >>> 31;
    }

    private static void burn(long steps) {
        long word = steps;
        for (long step = 0; step < steps; step++) word = (word ^ word >>> 7) * FACTOR;
        burnt = word;
    }

    private static void fold(long word) {
        long next = (hash ^ word) * FOLD;
        hash = next ^ next >>> 32;
    }

    private static void stateless(long tuples, long steps, long seed) {
        LongStream.range(0, tuples).parallel().map(value -> {
            if (steps > 0) burn(steps);
            return mixed(value + seed);
        }).forEachOrdered(OrderedPeers::fold);
    }

    private static void keyed(long[] keys, long steps, long seed) {
        long[] states = new long[(int) LongStream.of(keys).max().orElse(0) + 1], outputs = new long[BLOCK];
        int[] rows = new int[BLOCK], starts = new int[PARTITIONS + 1];
        for (int first = 0; first < keys.length; first += BLOCK) {
            int start = first, count = Math.min(BLOCK, keys.length - first);
            java.util.Arrays.fill(starts, 0);
            for (int at = 0; at < count; at++) starts[(int) (keys[start + at] % PARTITIONS) + 1]++;
            for (int part = 0; part < PARTITIONS; part++) starts[part + 1] += starts[part];
            int[] place = starts.clone();
            for (int at = 0; at < count; at++) rows[place[(int) (keys[start + at] % PARTITIONS)]++] = at;
            IntStream.range(0, PARTITIONS).parallel().forEach(part -> {
                for (int at = starts[part]; at < starts[part + 1]; at++) {
                    int row = rows[at], key = (int) keys[start + row];
                    if (steps > 0) burn(steps);
                    states[key] = states[key] * FACTOR + start + row;
                    outputs[row] = mixed(states[key] + seed);
                }
            });
            for (int at = 0; at < count; at++) {
                fold(keys[start + at]);
                fold(outputs[at]);
            }
        }
    }

    public static void main(String[] given) throws Exception {
        int tuples = Integer.parseInt(given[1]);
        long steps = Long.parseLong(given[2]), seed = Long.parseUnsignedLong(given[4]);
        long[] keys = new long[given[0].equals("-") ? 0 : tuples];
        if (keys.length > 0) {
            try (FileChannel file = FileChannel.open(Path.of(given[0]))) {
                file.map(FileChannel.MapMode.READ_ONLY, 0, 8L * tuples).order(ByteOrder.nativeOrder())
                    .asLongBuffer().get(keys);
            }
        }
        ForkJoinPool pool = new ForkJoinPool(Integer.parseInt(given[3]));
        var clock = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        int repeats = Integer.parseInt(given[5]), counted = (repeats + 1) / 2;
        long cpu = 0, wall = 0;
        for (int repeat = 0; repeat < repeats; repeat++) {
            if (repeat == repeats - counted) {
                cpu = clock.getProcessCpuTime();
                wall = System.nanoTime();
            }
            hash = FOLD;
            pool.submit(() -> {
                if (keys.length > 0) keyed(keys, steps, seed);
                else stateless(tuples, steps, seed);
            }).get();
        }
        System.out.println(Long.toUnsignedString(hash) + " " + (clock.getProcessCpuTime() - cpu) / counted + " "
            + (System.nanoTime() - wall) / counted);
    }
}
