// The session of every client (README.md beside this folder), by RabbitMQ's Java client: URL, name of the queue.
import com.rabbitmq.client.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;

public class Session {
    static final int MESSAGES = 20;

    public static void main(String[] arguments) throws Exception {
        String name = arguments[1];
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(arguments[0]);
        Connection connection = factory.newConnection();
        Channel channel = connection.createChannel();
        channel.confirmSelect();
        channel.exchangeDeclare(name, "direct");
        channel.queueDeclare(name, false, false, false, null);
        channel.queueBind(name, name, "key");

        Map<String, Object> headers = new HashMap<>();
        headers.put("text", "h\u00e9llo");
        headers.put("number", 7);
        headers.put("large", 1L << 40);
        headers.put("yes", true);
        headers.put("nested", Map.of("list", List.of(1, "b")));
        AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder()
            .contentType("text/plain").deliveryMode(2).correlationId("c").headers(headers).build();
        List<byte[]> bodies = new ArrayList<>();
        for (int number = 0; number < MESSAGES; number++) bodies.add(("message " + number).getBytes());
        byte[] large = new byte[1 << 20];
        Arrays.fill(large, (byte) 'x');
        bodies.add(large);
        int confirmed = 0;
        for (byte[] body : bodies) {
            channel.basicPublish(name, "key", properties, body);
            if (channel.waitForConfirms(20000)) confirmed++;
        }
        BlockingQueue<Integer> returns = new LinkedBlockingQueue<>();
        channel.addReturnListener(message -> returns.add(message.getReplyCode()));
        channel.basicPublish(name, "nowhere", true, properties, "lost".getBytes());
        int returned = returns.poll(20, TimeUnit.SECONDS);

        channel.basicQos(5);
        BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
        String tag = channel.basicConsume(name, false, (each, delivery) -> deliveries.add(delivery), each -> { });
        int consumed = 0, redelivered = 0, equal = 0, largest = 0;
        while (consumed < bodies.size()) {
            Delivery delivery = deliveries.poll(20, TimeUnit.SECONDS);
            Envelope envelope = delivery.getEnvelope();
            if (Arrays.equals(delivery.getBody(), bodies.get(0)) && !envelope.isRedeliver()) {
                channel.basicNack(envelope.getDeliveryTag(), false, true);
                continue;
            }
            consumed++;
            if (envelope.isRedeliver()) redelivered++;
            if (plain(delivery.getProperties().getHeaders()).equals(headers)) equal++;
            largest = Math.max(largest, delivery.getBody().length);
            channel.basicAck(envelope.getDeliveryTag(), false);
        }
        channel.basicCancel(tag);
        boolean empty = channel.basicGet(name, false) == null;
        int closed = 0;
        try {
            connection.createChannel().queueDeclarePassive("nonesuch");
        } catch (java.io.IOException error) {
            ShutdownSignalException signal = (ShutdownSignalException) error.getCause();
            closed = ((AMQP.Channel.Close) signal.getReason()).getReplyCode();
        }
        channel.queueDelete(name);
        channel.exchangeDelete(name);
        connection.close();
        System.out.printf("{\"confirmed\": %d, \"returned\": %d, \"consumed\": %d, \"redelivered\": %d, \"headers\": %d,"
            + " \"largest\": %d, \"empty\": %b, \"closed\": %d}%n",
            confirmed, returned, consumed, redelivered, equal, largest, empty, closed);
    }

    // Long strings come as a class of the client.
    static Object plain(Object value) {
        if (value instanceof LongString) return value.toString();
        if (value instanceof List<?> list) return list.stream().map(Session::plain).toList();
        if (value instanceof Map<?, ?> map) {
            Map<Object, Object> found = new HashMap<>();
            map.forEach((key, each) -> found.put(key, plain(each)));
            return found;
        }
        return value;
    }
}
