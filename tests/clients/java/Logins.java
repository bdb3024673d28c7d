import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;

/** Describes the cluster with the given properties, and reports the result. */
final class Logins {
    private static final int PATIENCE_MS = 8_000;

    private Logins() {
    }

    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("login", Logins::login);
    }

    private static void login(String bootstrap, Given given, Main.Steps steps) throws Exception {
        Map<String, Object> config = new HashMap<>(given.properties);
        config.put("bootstrap.servers", bootstrap);
        config.put("default.api.timeout.ms", PATIENCE_MS);
        config.put("request.timeout.ms", PATIENCE_MS);
        // One attempt: every further one adds a line to the broker's log.
        config.put("reconnect.backoff.ms", 60_000);
        config.put("reconnect.backoff.max.ms", 60_000);
        config.put("retries", 0);
        try (Admin admin = Admin.create(config)) {
            steps.report("nodes", admin.describeCluster().nodes().get().size());
        } catch (ExecutionException refused) {
            Throwable cause = refused.getCause();
            steps.report("refused", cause.getClass().getSimpleName(), "words", String.valueOf(cause.getMessage()));
        }
    }
}
