import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Starts DynamoDB Local on the loopback address alone; its own main listens on every address and can't be told. */
public class Loopback {
    public static void main(String[] arguments) throws Exception {
        var engine = ServerRunner.createServerFromCommandLineArgs(arguments);
        var field = engine.getClass().getDeclaredField("server");
        field.setAccessible(true);
        for (Connector connector : ((Server) field.get(engine)).getConnectors()) {
            ((ServerConnector) connector).setHost("127.0.0.1");
        }
        engine.start();
        engine.join();
    }
}
