import java.io.Serializable;
import java.sql.Timestamp;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.api.java.function.FilterFunction;
import org.apache.spark.api.java.function.FlatMapGroupsWithStateFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.GroupState;
import org.apache.spark.sql.streaming.GroupStateTimeout;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.Trigger;

/**
 * A rival on the JVM: Spark's own API, no Python. Seven fields of each request line are cut out by hand, and the sessions of each member are
 * counted, with a state for each group. No model of the coordinator, no server.log, no evidence, no order of lines.
 *
 * <p>Arguments: input, output, number of shuffle partitions.
 */
public final class Sessions {
    private static final long SESSION_MS = 45_000;

    /** What is read of a line. */
    public static final class Request implements Serializable {
        public String groupId, memberId, api, connection;
        public int generation, error;
        public double totalMs;
        public long at;
    }

    /** A member so far. */
    public static final class Row implements Serializable {
        private String groupId, memberId;
        private long sessions, requests, errors, lastAt;

        public String getGroupId() { return groupId; }
        public void setGroupId(String value) { groupId = value; }
        public String getMemberId() { return memberId; }
        public void setMemberId(String value) { memberId = value; }
        public long getSessions() { return sessions; }
        public void setSessions(long value) { sessions = value; }
        public long getRequests() { return requests; }
        public void setRequests(long value) { requests = value; }
        public long getErrors() { return errors; }
        public void setErrors(long value) { errors = value; }
        public long getLastAt() { return lastAt; }
        public void setLastAt(long value) { lastAt = value; }
    }

    private static String text(String line, String name, int from) {
        int begin = line.indexOf(name, from);
        if (begin < 0) return "";
        begin += name.length();
        return line.substring(begin, line.indexOf('"', begin));
    }

    private static double number(String line, String name, int from) {
        int begin = line.indexOf(name, from);
        if (begin < 0) return -1;
        begin += name.length();
        int end = begin;
        while ("0123456789.-E".indexOf(line.charAt(end)) >= 0) end++;
        return Double.parseDouble(line.substring(begin, end));
    }

    static Request parse(String line) {
        Request found = new Request();
        found.at = Timestamp.valueOf(line.substring(1, 20) + "." + line.substring(21, 24)).getTime();
        int response = Math.max(line.indexOf("\"response\":{"), 0);
        found.api = text(line, "\"requestApiKeyName\":\"", 0);
        found.groupId = text(line, "\"groupId\":\"", 0);
        found.memberId = text(line, "\"memberId\":\"", 0);
        found.generation = (int) number(line, "\"generationId\":", 0);
        found.error = (int) number(line, "\"errorCode\":", response);
        found.connection = text(line, "\"connection\":\"", response);
        found.totalMs = number(line, "\"totalTimeMs\":", response);
        return found;
    }

    @SuppressWarnings("unchecked")
    static Iterator<Row> sessions(String group, Iterator<Request> requests, GroupState<HashMap> state) {
        Map<String, long[]> members = state.exists() ? (HashMap<String, long[]>) state.get() : new HashMap<>();
        Map<String, Row> rows = new HashMap<>();
        while (requests.hasNext()) {
            Request request = requests.next();
            long[] member = members.computeIfAbsent(request.memberId, name -> new long[] {0, 0, 0, Long.MIN_VALUE / 2});
            if (request.at - member[3] > SESSION_MS) member[0]++;
            member[1]++;
            if (request.error != 0) member[2]++;
            member[3] = Math.max(member[3], request.at);
            rows.computeIfAbsent(request.memberId, name -> new Row());
        }
        rows.forEach((name, row) -> {
            long[] member = members.get(name);
            row.setGroupId(group);
            row.setMemberId(name);
            row.setSessions(member[0]);
            row.setRequests(member[1]);
            row.setErrors(member[2]);
            row.setLastAt(member[3]);
        });
        state.update((HashMap) members);
        return rows.values().iterator();
    }

    public static void main(String[] arguments) throws Exception {
        SparkSession spark = SparkSession.builder()
                .master("local[*]")
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.ui.enabled", "false")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.shuffle.partitions", arguments[2])
                .config("spark.sql.streaming.stateStore.providerClass",
                        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
                .getOrCreate();
        Dataset<String> lines = spark.readStream().textFile(arguments[0] + "/*/*/kafka-request.log");
        Dataset<Request> requests = lines
                .filter((FilterFunction<String>) line -> line.contains("_GROUP\"") || line.contains("HEARTBEAT\"") || line.contains("OFFSET_COMMIT\""))
                .map((MapFunction<String, Request>) Sessions::parse, Encoders.kryo(Request.class));
        requests.groupByKey((MapFunction<Request, String>) request -> request.groupId, Encoders.STRING())
                .flatMapGroupsWithState(
                        (FlatMapGroupsWithStateFunction<String, Request, HashMap, Row>) Sessions::sessions,
                        OutputMode.Append(), Encoders.kryo(HashMap.class), Encoders.bean(Row.class), GroupStateTimeout.NoTimeout())
                .writeStream()
                .format("parquet")
                .outputMode("append")
                .option("checkpointLocation", arguments[1] + "/_checkpoint")
                .trigger(Trigger.AvailableNow())
                .start(arguments[1] + "/sessions")
                .awaitTermination();
        spark.stop();
    }
}
