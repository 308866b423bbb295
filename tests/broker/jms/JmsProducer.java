import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Random;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.StreamMessage;
import org.apache.activemq.artemis.cli.Artemis;

/**
 * A JMS client as other houses have it, and the command line of the broker. It is started once: each start takes seconds.
 * Each line of the input is a request, with tabs between its parts; tests/broker/jms/jms_producer.py writes them and knows
 * what each body is. The answer is one line: "done", or what went wrong.
 */
public class JmsProducer {
    private static byte[] noise(int number, int size) {
        byte[] bytes = new byte[size];
        new Random(number).nextBytes(bytes);
        return bytes;
    }

    private static Message message(Session session, String kind, int number, int size) throws Exception {
        switch (kind) {
            case "text":
                return session.createTextMessage(number + " " + "ж".repeat(size));
            case "bytes": {
                BytesMessage message = session.createBytesMessage();
                message.writeInt(number);
                message.writeBytes(new byte[size]);
                return message;
            }
            case "noise": {
                BytesMessage message = session.createBytesMessage();
                message.writeBytes(noise(number, size));
                return message;
            }
            case "map": {
                MapMessage message = session.createMapMessage();
                message.setInt("number", number);
                message.setString("text", "ж".repeat(size));
                message.setBytes("bytes", new byte[] {0, -1});
                return message;
            }
            case "object": {
                ArrayList<String> object = new ArrayList<>();
                object.add(number + " " + "x".repeat(size));
                return session.createObjectMessage(object);
            }
            case "stream":
            case "stream with bytes": {
                StreamMessage message = session.createStreamMessage();
                message.writeInt(number);
                message.writeString("ж".repeat(size));
                message.writeString(null);
                if (kind.endsWith("bytes")) {
                    message.writeBytes(noise(number, size + 2));
                }
                return message;
            }
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    /** Class of the connection factory, URL, user, password; of each message its address, kind, number, size. */
    private static void send(String[] parts) throws Exception {
        ConnectionFactory factory = (ConnectionFactory)
                Class.forName(parts[1]).getConstructor(String.class).newInstance(parts[2]);
        try (Connection connection = factory.createConnection(parts[3], parts[4])) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            for (int at = 5; at < parts.length; at += 4) {
                int number = Integer.parseInt(parts[at + 2]);
                MessageProducer producer = session.createProducer(session.createTopic(parts[at]));
                Message message = message(session, parts[at + 1], number, Integer.parseInt(parts[at + 3]));
                message.setIntProperty("number", number);
                producer.send(message);
                producer.close();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // what the command line prints
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String[] parts = line.split("\t", -1);
            try {
                if (parts[0].equals("send")) {
                    send(parts);
                } else {
                    Artemis.internalExecute(parts);
                }
                answers.println("done");
            } catch (Throwable error) {
                error.printStackTrace();
                answers.println(error.toString().replace('\n', ' '));
            }
        }
    }
}
