import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/**
 * The Java driver. It prints its version first; then each line of standard input is a call, answered with a line for each
 * step and one for the end.
 */
public final class Main {
    /** One verb, which reports its steps. */
    interface Verb {
        void run(String bootstrap, Given given, Steps steps) throws Exception;
    }

    /** Reports a step of names and values. */
    interface Steps {
        void report(Object... pairs);
    }

    /** A line of standard input. */
    static final class Call {
        String bootstrap;
        String verb;
        Given given;
    }

    private static final Gson JSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        Map<String, Verb> verbs = new HashMap<>();
        Records.register(verbs);
        Transactions.register(verbs);
        Groups.register(verbs);
        Admins.register(verbs);
        GroupAdmins.register(verbs);
        Logins.register(verbs);
        Jobs.register(verbs);
        registerShares(verbs);
        say("version", version());
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            Call call = JSON.fromJson(line, Call.class);
            try {
                verbs.get(call.verb).run(call.bootstrap, call.given, Main::step);
                say("end", true);
            } catch (Throwable failure) {
                StringWriter trace = new StringWriter();
                failure.printStackTrace(new PrintWriter(trace));
                say("failure", trace.toString());
            }
        }
    }

    /** Its class is compiled only with clients that have share consumers. */
    private static void registerShares(Map<String, Verb> verbs) throws ReflectiveOperationException {
        Class<?> shares;
        try {
            shares = Class.forName("Shares");
        } catch (ClassNotFoundException e) {
            return;
        }
        shares.getDeclaredMethod("register", Map.class).invoke(null, verbs);
    }

    private static String version() throws Exception {
        Properties properties = new Properties();
        try (InputStream file = Main.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            properties.load(file);
        }
        return properties.getProperty("version");
    }

    private static void step(Object... pairs) {
        Map<String, Object> step = new HashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            step.put((String) pairs[i], pairs[i + 1]);
        }
        say("step", step);
    }

    private static void say(String name, Object value) {
        Map<String, Object> line = new HashMap<>();
        line.put(name, value);
        OUT.println(JSON.toJson(line));
    }
}
