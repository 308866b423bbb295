import java.io.BufferedReader;
import java.io.InputStreamReader;
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

/**
 * A JMS client as other houses have it. Arguments: class of the connection factory, URL, user, password.
 * Each line of the input is a message: address, kind, number, size, with tabs; tests/broker/jms/jms_producer.py writes them
 * and knows what each body is.
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

    public static void main(String[] arguments) throws Exception {
        ConnectionFactory factory = (ConnectionFactory)
                Class.forName(arguments[0]).getConstructor(String.class).newInstance(arguments[1]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Connection connection = factory.createConnection(arguments[2], arguments[3])) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            for (String line; (line = input.readLine()) != null; ) {
                String[] fields = line.split("\t");
                MessageProducer producer = session.createProducer(session.createTopic(fields[0]));
                Message message =
                        message(session, fields[1], Integer.parseInt(fields[2]), Integer.parseInt(fields[3]));
                message.setIntProperty("number", Integer.parseInt(fields[2]));
                producer.send(message);
                producer.close();
            }
        }
    }
}
