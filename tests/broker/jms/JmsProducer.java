import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.Random;
import java.util.TreeMap;
import java.util.regex.Pattern;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageEOFException;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
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

    /** What the broker adds to a message that it moved, by the beginning of its name. */
    private static final Pattern BROKERS = Pattern.compile("_AMQ_ORIG|JMSX|JMS_AMQP_MA_x-opt-(ORIG|routing-type)");

    /**
     * What a client gets: its headers, its properties without the broker's own, its body. The broker makes an id anew each time
     * that it converts an AMQP message; the sender's is a property then.
     */
    private static String described(Message message) throws Exception {
        StringBuilder line = new StringBuilder(message.getStringProperty("number"));
        String id = message.propertyExists("NATIVE_MESSAGE_ID") ? "native" : message.getJMSMessageID();
        line.append('\t').append(id).append(' ').append(message.getJMSPriority());
        line.append(' ').append(message.getJMSDeliveryMode()).append(' ').append(message.getJMSTimestamp());
        TreeMap<String, Object> properties = new TreeMap<>();
        for (Object name : Collections.list(message.getPropertyNames())) {
            String text = name.toString();
            if (!BROKERS.matcher(text).lookingAt()) {
                properties.put(text, typed(message.getObjectProperty(text)));
            }
        }
        return line.append('\t').append(properties).append('\t').append(body(message)).toString();
    }

    private static String typed(Object value) {
        String text = value instanceof byte[] ? HexFormat.of().formatHex((byte[]) value) : String.valueOf(value);
        return (value == null ? "null" : value.getClass().getSimpleName()) + ":" + text;
    }

    private static String body(Message message) throws Exception {
        if (message instanceof TextMessage) {
            return "text " + ((TextMessage) message).getText();
        } else if (message instanceof ObjectMessage) {
            return "object " + ((ObjectMessage) message).getObject();
        } else if (message instanceof BytesMessage) {
            byte[] bytes = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(bytes);
            return "bytes " + typed(bytes);
        } else if (message instanceof MapMessage) {
            TreeMap<String, Object> map = new TreeMap<>();
            for (Object name : Collections.list(((MapMessage) message).getMapNames())) {
                map.put(name.toString(), typed(((MapMessage) message).getObject(name.toString())));
            }
            return "map " + map;
        } else if (message instanceof StreamMessage) {
            StringBuilder values = new StringBuilder("stream");
            try {
                while (true) {
                    values.append(' ').append(typed(((StreamMessage) message).readObject()));
                }
            } catch (MessageEOFException end) {
                return values.toString();
            }
        }
        return message.getClass().getSimpleName();
    }

    /** Class of the connection factory, URL, user, password, queue, how many, selector, and the file for what came. */
    private static void receive(String[] parts) throws Exception {
        ConnectionFactory factory = (ConnectionFactory)
                Class.forName(parts[1]).getConstructor(String.class).newInstance(parts[2]);
        ArrayList<String> lines = new ArrayList<>();
        try (Connection connection = factory.createConnection(parts[3], parts[4])) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(parts[5]), parts[7]);
            connection.start();
            for (int left = Integer.parseInt(parts[6]); left > 0; left--) {
                Message message = consumer.receive(20_000);
                if (message == null) {
                    throw new IllegalStateException(left + " did not come");
                }
                lines.add(described(message).replace('\n', ' '));
            }
        }
        Files.write(Path.of(parts[8]), lines, StandardCharsets.UTF_8);
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
                } else if (parts[0].equals("receive")) {
                    receive(parts);
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
