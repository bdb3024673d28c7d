import java.util.List;
import java.util.Map;

/** The arguments of a verb; each verb uses some of them. */
final class Given {
    /** One record; bytes are in base64. */
    static final class Row {
        String key;
        String value;
        List<List<String>> headers;
        long timestamp;
    }

    /** One transaction. */
    static final class Round {
        List<Row> rows;
        String end;
    }

    String topic;
    String output;
    int partitions;
    String group;
    String transactional_id;
    List<Row> rows;
    List<Round> rounds;
    long count;
    int size;
    String acks;
    String compression;
    boolean idempotent;
    String isolation;
    String protocol;
    String assignor;
    Map<String, String> entity;
    String key;
    String acknowledge;
    int members;
    Map<String, String> properties;
    Jobs.Job job;
}
