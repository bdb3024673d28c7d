import com.google.gson.Gson;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;

/** The login of all verbs, and a verb that describes the cluster with the given properties and reports the result. */
final class Logins {
    private static final int PATIENCE_MS = 8_000;

    private Logins() {
    }

    /** The fields of SLUICE_TEST_LOGIN. */
    private static final class Login {
        String protocol;
        String ca;
        String mechanism;
        String user;
        String password;
    }

    /** Properties of the login that the environment states; none for plain text. */
    static Map<String, String> properties() {
        String given = System.getenv("SLUICE_TEST_LOGIN");
        if (given == null || given.isEmpty()) {
            return Map.of();
        }
        Login login = new Gson().fromJson(given, Login.class);
        String module = login.mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        return Map.of(
                "security.protocol", login.protocol,
                "ssl.truststore.type", "PEM",
                "ssl.truststore.location", login.ca,
                "sasl.mechanism", login.mechanism,
                "sasl.jaas.config", String.format(
                        "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";",
                        module, login.user, login.password));
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
