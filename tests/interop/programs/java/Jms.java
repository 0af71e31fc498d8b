// A client of JMS by Qpid's client of 0-8, 0-9 and 0-9-1: port, destination. The version is qpid.amqp.version.
import java.util.Arrays;
import java.util.Random;
import javax.jms.*;
import org.apache.qpid.client.AMQConnectionFactory;

public class Jms {
    static final int MESSAGES = 20;

    public static void main(String[] arguments) throws Exception {
        String broker = "brokerlist='tcp://127.0.0.1:" + arguments[0] + "?retries='0''";
        Connection connection = new AMQConnectionFactory("amqp://guest:guest@interop/default?" + broker).createConnection();
        connection.start();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue(arguments[1]);
        MessageConsumer consumer = session.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < MESSAGES; number++) {
            TextMessage message = session.createTextMessage("message " + number);
            message.setStringProperty("text", "h\u00e9llo");
            message.setBooleanProperty("yes", true);
            message.setByteProperty("octet", (byte) -2);
            message.setShortProperty("short", (short) -300);
            message.setIntProperty("number", 7);
            message.setLongProperty("large", 1L << 40);
            message.setFloatProperty("float", 1.5f);
            message.setDoubleProperty("double", -2.5);
            message.setJMSCorrelationID("c");
            message.setJMSType("order");
            producer.send(message);
        }
        int consumed = 0, equal = 0;
        Message last = null;
        while (consumed < MESSAGES) {
            TextMessage message = (TextMessage) consumer.receive(20000);
            if (message.getStringProperty("text").equals("h\u00e9llo") && message.getBooleanProperty("yes")
                && message.getByteProperty("octet") == -2 && message.getShortProperty("short") == -300
                && message.getIntProperty("number") == 7 && message.getLongProperty("large") == 1L << 40
                && message.getFloatProperty("float") == 1.5f && message.getDoubleProperty("double") == -2.5
                && message.getJMSCorrelationID().equals("c") && message.getJMSType().equals("order")
                && message.getText().equals("message " + consumed)) equal++;
            consumed++;
            last = message;
        }
        last.acknowledge();

        producer.send(session.createTextMessage("again"));
        last = consumer.receive(20000);
        if (!System.getProperty("qpid.amqp.version").equals("0-9")) {  // where it sends what 0-9 has not
            session.recover();
            last = consumer.receive(20000);
        }
        boolean redelivered = last.getJMSRedelivered();
        last.acknowledge();

        BytesMessage large = session.createBytesMessage();
        byte[] body = new byte[1 << 20];
        new Random(1).nextBytes(body);
        large.writeBytes(body);
        producer.send(large);
        BytesMessage received = (BytesMessage) consumer.receive(20000);
        byte[] found = new byte[(int) received.getBodyLength()];
        received.readBytes(found);
        received.acknowledge();
        MapMessage map = session.createMapMessage();
        map.setString("key", "value");
        map.setLong("number", 5);
        producer.send(map);
        MapMessage back = (MapMessage) consumer.receive(20000);
        boolean mapped = back.getString("key").equals("value") && back.getLong("number") == 5;
        back.acknowledge();
        session.close();

        Session transacted = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer sender = transacted.createProducer(queue);
        MessageConsumer receiver = transacted.createConsumer(queue);
        sender.send(transacted.createTextMessage("undone"));
        transacted.rollback();
        sender.send(transacted.createTextMessage("done"));
        transacted.commit();
        String text = ((TextMessage) receiver.receive(20000)).getText();
        transacted.commit();
        boolean empty = receiver.receive(300) == null;
        connection.close();
        System.out.printf("{\"consumed\": %d, \"equal\": %d, \"redelivered\": %b, \"large\": %b, \"map\": %b, \"committed\": \"%s\", \"empty\": %b}%n",
            consumed, equal, redelivered, Arrays.equals(body, found), mapped, text, empty);
    }
}
