// Runs main methods of Kafka's command line tools in one JVM, with captured streams and exit codes:
// java --add-opens java.base/java.lang=ALL-UNNAMED -cp JARS Commands.java. Its lines of JSON are those of external.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.Exit;

public final class Commands {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final class Exited extends Error {
    }

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();
    private Map<String, Object> result;

    private Map<String, Object> finish(int code) {
        System.out.flush();
        System.err.flush();
        var charset = StandardCharsets.UTF_8;
        return Map.of("code", code, "stdout", out.toString(charset), "stderr", err.toString(charset));
    }

    // Tools catch Throwable around an exit, and print it: only the first call counts, with the output until then.
    private void exit(int code, String message) {
        if (result == null) {
            if (message != null) System.err.println(message);
            result = finish(code);
        }
        throw new Exited();
    }

    private Map<String, Object> run(JsonNode call) throws Exception {
        System.setIn(new ByteArrayInputStream(call.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure(this::exit);
        Exit.setHaltProcedure(this::exit);
        var hooks = shutdownHooks();
        var before = Set.copyOf(hooks.keySet());
        var arguments = JSON.convertValue(call.get("arguments"), String[].class);
        int code = 0;
        try {
            Class.forName(call.get("main").asText()).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (result == null) failure.getCause().printStackTrace();
            code = 1;
        }
        for (var hook : List.copyOf(hooks.keySet())) {
            if (!before.contains(hook)) {
                Runtime.getRuntime().removeShutdownHook(hook);
                hook.start();
                hook.join();
            }
        }
        return result == null ? finish(code) : result;
    }

    @SuppressWarnings("unchecked")
    private static Map<Thread, Thread> shutdownHooks() throws ReflectiveOperationException {
        var field = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        field.setAccessible(true);
        return (Map<Thread, Thread>) field.get(null);
    }

    public static void main(String[] unused) throws Exception {
        var calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var replies = System.out;
        replies.println(JSON.writeValueAsString(Map.of("version", AppInfoParser.getVersion())));
        for (var line = calls.readLine(); line != null; line = calls.readLine()) {
            try {
                replies.println(JSON.writeValueAsString(Map.of("step", new Commands().run(JSON.readTree(line)))));
                replies.println("{\"end\": true}");
            } catch (Exception failure) {
                var trace = new StringWriter();
                failure.printStackTrace(new PrintWriter(trace));
                replies.println(JSON.writeValueAsString(Map.of("failure", trace.toString())));
            }
        }
    }
}
