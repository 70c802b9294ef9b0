import java.nio.file.Path;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.*;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.co.BroadcastProcessFunction;
import org.apache.flink.util.*;

/**
 * Routes visits by a plan in broadcast state, which follows the stream, and prints SUBTASK,USER,PLAN for each.
 *
 *     java RouteVisits PARALLELISM PLAN_EVERY
 *
 * Reads visits.csv and visits.splitter (adapt.write_splitter). One operator counts the visits, and after every PLAN_EVERY
 * broadcasts a new plan; the others keep it in broadcast state, so a restart has it too. The state of a user does not
 * move with the plan: use this before an operator without state, or one whose partial results are merged by user.
 */
public class RouteVisits {
  static final Path SAVED = Path.of("visits.splitter");
  static final OutputTag<String> PLANS = new OutputTag<>("plans", Types.STRING);
  static final MapStateDescriptor<Void, String> IN_FORCE = new MapStateDescriptor<>("plan", Types.VOID, Types.STRING);

  public static void main(String[] given) throws Exception {
    int parallelism = Integer.parseInt(given[0]), every = Integer.parseInt(given[1]);
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
    env.setParallelism(parallelism);
    SingleOutputStreamOperator<Visit> visits =
        CountVisits.visits(env, 0).process(new Count(every)).setParallelism(1).uid("splitter");
    visits.connect(visits.getSideOutput(PLANS).broadcast(IN_FORCE)).process(new Route())
        .partitionCustom((channel, subtasks) -> channel, routed -> routed.f0)
        .map(new OnSubtask()).print();
    env.execute("visits by plan");
  }

  /** Counts visits, and proposes plans. */
  public static class Count extends ProcessFunction<Visit, Visit> {
    private final int every;
    private transient Splitter splitter;
    private transient int seen;

    Count(int every) { this.every = every; }

    @Override public void processElement(Visit visit, Context context, Collector<Visit> out) throws Exception {
      if (splitter == null) splitter = Splitter.load(SAVED);
      splitter.observe(splitter.bytes(visit.user));
      out.collect(visit);
      if (++seen % every > 0) return;
      splitter.adopt(splitter.propose());
      context.output(PLANS, splitter.plan());
    }
  }

  /** The channel of each visit, its user, and the plan that it followed. */
  public static class Route extends BroadcastProcessFunction<Visit, String, Tuple3<Integer, String, String>> {
    private transient Splitter splitter;
    private transient String followed;

    @Override public void processBroadcastElement(
        String plan, Context context, Collector<Tuple3<Integer, String, String>> out) throws Exception {
      context.getBroadcastState(IN_FORCE).put(null, plan);
    }

    @Override public void processElement(
        Visit visit, ReadOnlyContext context, Collector<Tuple3<Integer, String, String>> out) throws Exception {
      if (splitter == null) splitter = Splitter.load(SAVED);
      String plan = context.getBroadcastState(IN_FORCE).get(null);
      if (plan != followed) splitter.follow(followed = plan);
      int channel = splitter.route(splitter.bytes(visit.user));
      out.collect(Tuple3.of(channel, visit.user == null ? "" : visit.user, splitter.contentHash()));
    }
  }

  /** What arrived, with the subtask where it did. */
  public static class OnSubtask extends RichMapFunction<Tuple3<Integer, String, String>, String> {
    @Override public String map(Tuple3<Integer, String, String> routed) {
      return getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() + "," + routed.f1 + "," + routed.f2;
    }
  }
}
