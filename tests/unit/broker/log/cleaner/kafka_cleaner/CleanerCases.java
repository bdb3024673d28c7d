/*
 * Writes cases.json: the results of Apache Kafka's Cleaner on logs that this program generates.
 *
 *     java -cp 'KAFKA/libs/*' CleanerCases.java > cases.json        (Kafka 4.4, JDK 17 or later)
 *
 * Each case is a list of cleanings of one log, each with the states of the log before and after it.
 */

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class CleanerCases {
    static final int LEADER_EPOCH = 3;
    static long nowMs = 1_000_000;

    static class FixedTime implements Time {
        public long milliseconds() { return nowMs; }
        public long nanoseconds() { return nowMs * 1_000_000; }
        public void sleep(long ms) { }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
    }

    static class NoScheduler implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) { return null; }
        public void resizeThreadPool(int size) { }
    }

    static class Log {
        final UnifiedLog log;
        final int slots;
        final List<String> cleanings = new ArrayList<>();
        final List<String> batches = new ArrayList<>(); // all batches; log states contain their indexes
        final StringBuilder head = new StringBuilder();
        long firstDirty = 0;

        Log(String name, long deleteRetentionMs, int segmentBytes, int slots, boolean logAppendTime) throws Exception {
            Properties p = new Properties();
            p.put("cleanup.policy", "delete"); // so that records without keys can be appended
            p.put("delete.retention.ms", Long.toString(deleteRetentionMs));
            p.put("internal.segment.bytes", Integer.toString(segmentBytes));
            p.put("message.timestamp.type", logAppendTime ? "LogAppendTime" : "CreateTime");
            p.put("message.timestamp.after.max.ms", Long.toString(Long.MAX_VALUE));
            p.put("segment.ms", Long.toString(Long.MAX_VALUE));
            this.slots = slots;
            File dir = Files.createTempDirectory("cleaner").resolve("t-0").toFile();
            log = UnifiedLog.create(dir, new LogConfig(p), 0, 0, new NoScheduler(), new BrokerTopicStats(),
                new FixedTime(), 900_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
                new LogDirFailureChannel(1), true, Optional.of(Uuid.randomUuid()));
            head.append("{\"name\":\"").append(name).append("\",\"delete_retention_ms\":").append(deleteRetentionMs)
                .append(",\"segment_bytes\":").append(segmentBytes).append(",\"most_keys\":").append(slots);
        }

        void append(MemoryRecords records) throws Exception {
            log.appendAsLeader(records, LEADER_EPOCH);
            log.updateHighWatermark(log.logEndOffset());
        }

        Log plain(CompressionType codec, SimpleRecord... records) throws Exception {
            append(MemoryRecords.withRecords(Compression.of(codec).build(), records));
            return this;
        }

        Log plain(SimpleRecord... records) throws Exception { return plain(CompressionType.NONE, records); }

        Log idempotent(long pid, int epoch, int sequence, SimpleRecord... records) throws Exception {
            append(MemoryRecords.withIdempotentRecords(Compression.NONE, pid, (short) epoch, sequence, records));
            return this;
        }

        Log transactional(long pid, int epoch, int sequence, SimpleRecord... records) throws Exception {
            append(MemoryRecords.withTransactionalRecords(Compression.NONE, pid, (short) epoch, sequence, records));
            return this;
        }

        Log end(ControlRecordType type, long pid, int epoch) throws Exception {
            log.appendAsLeader(MemoryRecords.withEndTransactionMarker(nowMs, pid, (short) epoch,
                new EndTransactionMarker(type, 0)), LEADER_EPOCH, AppendOrigin.COORDINATOR,
                org.apache.kafka.server.common.RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 1);
            log.updateHighWatermark(log.logEndOffset());
            return this;
        }

        Log commit(long pid, int epoch) throws Exception { return end(ControlRecordType.COMMIT, pid, epoch); }

        Log abort(long pid, int epoch) throws Exception { return end(ControlRecordType.ABORT, pid, epoch); }

        Log roll() throws Exception {
            log.roll();
            return this;
        }

        Log at(long ms) {
            nowMs = ms;
            return this;
        }

        Log clean() throws Exception {
            long uncleanable = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
            LogToClean toClean = new LogToClean(log, firstDirty, Math.max(firstDirty, uncleanable), false);
            if (toClean.cleanableBytes() == 0)
                return this; // LogCleanerManager would not select it
            StringBuilder out = new StringBuilder("{\"now_ms\":").append(nowMs)
                .append(",\"first_dirty_offset\":").append(firstDirty)
                .append(",\"first_uncleanable_offset\":").append(toClean.firstUncleanableOffset())
                .append(",\"high_watermark\":").append(log.highWatermark())
                .append(",\"producers\":").append(producers())
                .append(",\"before\":").append(state());
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(slots * 24), 1 << 20, 1 << 20, 1.0,
                new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "throttler", "entries", new FixedTime()),
                new FixedTime(), partition -> { });
            Map.Entry<Long, CleanerStats> result = cleaner.doClean(toClean, nowMs);
            firstDirty = result.getKey();
            out.append(",\"end_offset\":").append(firstDirty).append(",\"after\":").append(state()).append("}");
            cleanings.add(out.toString());
            return this;
        }

        String producers() {
            return log.lastRecordsOfActiveProducers().entrySet().stream().sorted(Map.Entry.comparingByKey())
                .map(e -> "[" + e.getKey() + "," + e.getValue().lastDataOffset().orElse(-1) + ","
                    + e.getValue().producerEpoch() + "]")
                .collect(Collectors.joining(",", "[", "]"));
        }

        String state() throws Exception {
            List<String> segments = new ArrayList<>();
            for (LogSegment segment : log.logSegments()) {
                ByteBuffer bytes = ByteBuffer.allocate(segment.size());
                segment.log().readInto(bytes, 0);
                List<Integer> places = new ArrayList<>();
                for (RecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
                    ByteBuffer one = ByteBuffer.allocate(batch.sizeInBytes());
                    ((org.apache.kafka.common.record.internal.MutableRecordBatch) batch)
                        .writeTo(new org.apache.kafka.common.utils.internals.ByteBufferOutputStream(one));
                    String hex = "\"" + HexFormat.of().formatHex(one.array()) + "\"";
                    if (!batches.contains(hex))
                        batches.add(hex);
                    places.add(batches.indexOf(hex));
                }
                segments.add("{\"base_offset\":" + segment.baseOffset() + ",\"batches\":" + places + "}");
            }
            String aborted = log.collectAbortedTransactions(0, log.logEndOffset()).stream()
                .map(t -> "[" + t.producerId() + "," + t.firstOffset() + "," + t.lastOffset() + ","
                    + t.lastStableOffset() + "]")
                .collect(Collectors.joining(",", "[", "]"));
            return "{\"segments\":" + segments + ",\"aborted\":" + aborted + "}";
        }

        void done(List<String> cases) {
            cases.add(head + ",\"batches\":[\n" + String.join(",\n", batches) + "],\"cleanings\":[\n" + String.join(",\n", cleanings) + "]}");
        }
    }

    static SimpleRecord r(long timestamp, String key, String value) {
        return new SimpleRecord(timestamp, key == null ? null : key.getBytes(), value == null ? null : value.getBytes());
    }

    static Log log(String name) throws Exception { return new Log(name, 1000, 1 << 20, 1000, false).at(1_000_000); }

    public static void main(String[] arguments) throws Exception {
        List<String> cases = new ArrayList<>();
        log("the last value of each key is kept")
            .plain(r(1, "a", "1"), r(2, "b", "1"), r(3, "a", "2")).plain(r(4, "c", "1"), r(5, "b", "2")).roll()
            .plain(r(6, "a", "9")).clean().done(cases);
        log("a batch without remaining records is removed")
            .plain(r(1, "a", "1")).plain(r(2, "a", "2")).plain(r(3, "b", "1")).roll().plain(r(4, "b", "2")).clean().done(cases);
        log("there is nothing to clean").plain(r(1, "a", "1")).plain(r(2, "b", "1")).roll().plain(r(2, "b", "1")).clean()
            .done(cases);
        log("a record without a key is removed").plain(r(1, null, "1"), r(2, "b", "1")).plain(r(2, null, "1")).roll()
            .plain(r(3, "c", "1")).clean().done(cases);
        log("an empty key is a key").plain(r(1, "", "1"), r(2, "", "2")).roll().plain(r(3, "c", "1")).clean().done(cases);
        log("tombstones are removed by the second cleaning after delete.retention.ms")
            .plain(r(1, "a", "1"), r(2, "b", "1")).plain(r(3, "a", null)).roll().plain(r(4, "c", "1")).clean()
            .roll().plain(r(5, "c", "2")).at(1_000_999).clean()
            .roll().plain(r(6, "c", "3")).at(1_001_000).clean().done(cases);
        log("a tombstone and a value in one batch")
            .plain(r(1, "a", null), r(2, "b", "1"), r(7, "c", "1")).roll().plain(r(4, "d", "1")).clean()
            .roll().plain(r(5, "c", "2")).at(1_000_500).clean()
            .roll().plain(r(5, "c", "2")).at(1_002_000).clean().done(cases);
        log("a value after a tombstone is kept")
            .plain(r(1, "a", null)).roll().plain(r(2, "b", "1")).clean()
            .plain(r(3, "a", "2")).roll().plain(r(4, "b", "2")).clean().at(1_009_000).clean().done(cases);
        log("the last batch of an idempotent producer is kept even if empty")
            .idempotent(7, 0, 0, r(1, "a", "1"), r(2, "b", "1")).idempotent(7, 0, 2, r(3, "a", "2"), r(4, "b", "2"))
            .idempotent(8, 1, 0, r(3, "a", "3"), r(4, "b", "3")).plain(r(5, "a", "4"), r(6, "b", "4")).roll()
            .plain(r(7, "c", "1")).clean().idempotent(7, 0, 4, r(8, "c", "1")).roll().plain(r(9, "a", "5"), r(9, "c", "5"))
            .clean().done(cases);
        log("aborted records are removed before their marker")
            .transactional(7, 0, 0, r(1, "a", "1")).abort(7, 0).plain(r(2, "b", "1")).roll().plain(r(3, "b", "1")).clean()
            .transactional(7, 0, 1, r(1, "a", "1")).commit(7, 0).roll().plain(r(5, "c", "1")).clean()
            .roll().plain(r(6, "d", "1")).at(1_001_000).clean().roll().plain(r(7, "d", "1")).at(1_002_001).clean()
            .roll().plain(r(8, "d", "1")).at(1_004_001).clean().done(cases);
        log("the marker of committed records is removed after the last of them")
            .transactional(7, 0, 0, r(1, "a", "1"), r(1, "b", "1")).commit(7, 0).plain(r(2, "a", "2"), r(2, "b", "2")).roll()
            .plain(r(3, "c", "1")).clean().roll().plain(r(4, "c", "1")).at(1_000_500).clean()
            .transactional(7, 1, 0, r(5, "d", "1")).commit(7, 1).roll().plain(r(4, "c", "1")).at(1_001_500).clean()
            .roll().plain(r(4, "c", "1")).at(1_003_000).clean().done(cases);
        log("an aborted value does not replace an earlier value")
            .plain(r(1, "a", "1")).transactional(7, 0, 0, r(2, "a", "2")).abort(7, 0).roll().plain(r(3, "b", "1")).clean().done(cases);
        log("an aborted transaction over several segments")
            .transactional(7, 0, 0, r(1, "a", "1")).roll().transactional(7, 0, 1, r(2, "b", "1")).plain(r(2, "x", "1")).roll()
            .transactional(8, 0, 0, r(3, "c", "1")).abort(7, 0).roll().commit(8, 0).plain(r(4, "d", "1")).roll()
            .plain(r(5, "e", "1")).clean().roll().plain(r(5, "e", "1")).at(1_005_000).clean()
            .roll().plain(r(5, "e", "1")).at(1_010_000).clean().done(cases);
        log("cleaning stops at an open transaction")
            .plain(r(1, "a", "1")).plain(r(2, "a", "2")).roll().transactional(7, 0, 0, r(3, "a", "3")).roll()
            .plain(r(4, "a", "4")).roll().plain(r(5, "a", "5")).clean().commit(7, 0).clean().done(cases);
        log("a marker of a transaction without records")
            .commit(7, 0).plain(r(1, "a", "1")).abort(8, 2).roll().plain(r(2, "a", "2")).clean()
            .roll().plain(r(3, "a", "3")).at(1_003_000).clean().roll().plain(r(4, "a", "3")).at(1_006_000).clean().done(cases);
        for (CompressionType codec : CompressionType.values()) {
            log("batches of codec " + codec.name)
                .plain(codec, r(1, "a", "1"), r(2, "b", "1"), r(3, "c", null)).plain(codec, r(4, "a", "2")).roll()
                .plain(r(5, "c", "1")).clean().roll().plain(r(6, "d", "1")).at(1_002_000).clean().done(cases);
        }
        new Log("batches with log append time", 1000, 1 << 20, 1000, true).at(1_000_000)
            .plain(r(1, "a", "1"), r(2, "b", "1"), r(3, "c", null)).at(1_000_010).plain(r(4, "a", "2")).roll()
            .plain(r(5, "c", "1")).clean().roll().plain(r(6, "d", "1")).at(1_003_000).clean().done(cases);
        log("records without timestamps").plain(r(-1, "a", "1"), r(-1, "b", "1")).plain(r(-1, "a", "2")).roll()
            .plain(r(-1, "c", "1")).clean().done(cases);
        log("decreasing timestamps").plain(r(900, "a", "1"), r(800, "b", "1"), r(850, "c", "1"), r(70, "d", "1")).plain(r(5, "a", "2"))
            .roll().plain(r(1, "c", "1")).clean().done(cases);
        new Log("more keys than the offset map accepts", 1000, 1 << 20, 3, false).at(1_000_000)
            .plain(r(1, "a", "1"), r(1, "b", "1")).plain(r(1, "a", "2"), r(1, "c", "1"), r(1, "d", "1"), r(1, "a", "3")).roll()
            .plain(r(2, "b", "2"), r(2, "d", "2")).roll().plain(r(3, "e", "1")).clean().clean().clean().done(cases);
        new Log("segments are grouped by size", 1000, 300, 1000, false).at(1_000_000)
            .plain(r(1, "a", "1")).roll().plain(r(1, "b", "1")).roll().plain(r(1, "c", "1")).roll().plain(r(1, "d", "1")).roll()
            .plain(r(1, "a", "2")).roll().plain(r(1, "b", "2")).clean().clean().done(cases);
        log("the last batch before the high watermark is kept even if empty")
            .plain(r(1, "a", "1")).plain(r(1, null, "2")).roll().clean().done(cases);
        log("headers and large numbers")
            .plain(new SimpleRecord(9_000_000_000L, "a".getBytes(), "1".getBytes(), new org.apache.kafka.common.header.Header[] {
                new org.apache.kafka.common.header.internals.RecordHeader("h", null),
                new org.apache.kafka.common.header.internals.RecordHeader("ü", new byte[200])}),
                r(1, "b", "1"), r(9_000_000_001L, "a", "2"), r(9_000_000_000L, "c", "x".repeat(300))).roll()
            .plain(r(1, "b", "2")).roll().plain(r(2, "c", null)).clean().done(cases);
        for (int seed = 0; seed < 20; seed++)
            random(seed).done(cases);
        System.out.println(("[\n" + String.join(",\n", cases) + "\n]").replace(", ", ","));
        System.exit(0);
    }

    static Log random(int seed) throws Exception {
        Random random = new Random(seed);
        Log log = new Log("random " + seed, 500, 200 + random.nextInt(2000), 2 + random.nextInt(40),
            random.nextInt(4) == 0).at(1_000_000);
        int[] sequence = new int[3];
        boolean[] open = new boolean[3];
        for (int step = 0; step < 40; step++) {
            SimpleRecord[] records = new SimpleRecord[1 + random.nextInt(4)];
            for (int i = 0; i < records.length; i++) {
                String key = random.nextInt(20) == 0 ? null : "k" + random.nextInt(8);
                String value = random.nextInt(4) == 0 ? null : "v" + step;
                records[i] = r(random.nextInt(10) == 0 ? -1 : nowMs + random.nextInt(200), key, value);
            }
            int producer = random.nextInt(3);
            switch (random.nextInt(10)) {
                case 0, 1 -> log.plain(CompressionType.values()[random.nextInt(5)], records);
                case 2, 3, 4 -> {
                    // Producer 0 is idempotent, the others have transactions.
                    if (producer == 0)
                        log.idempotent(100, 0, sequence[0], records);
                    else {
                        log.transactional(100 + producer, 0, sequence[producer], records);
                        open[producer] = true;
                    }
                    sequence[producer] += records.length;
                }
                case 5, 6 -> {
                    if (producer > 0 && open[producer]) {
                        if (random.nextBoolean()) log.commit(100 + producer, 0); else log.abort(100 + producer, 0);
                        open[producer] = false;
                    }
                }
                case 7 -> log.at(nowMs + random.nextInt(400));
                case 8 -> log.roll();
                default -> log.clean();
            }
        }
        return log.roll().plain(r(1, "end", "1")).clean().at(nowMs + 5000).clean();
    }
}
