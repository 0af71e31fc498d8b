// A session of RabbitMQ's client for .NET, of the time of 0-8 and 0-9: port, protocol.
using System;
using System.Collections;
using System.Text;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;

class Session
{
    const int Messages = 20, Wait = 20000;

    static void Main(string[] arguments)
    {
        var factory = new ConnectionFactory
        {
            HostName = "127.0.0.1", Port = int.Parse(arguments[0]), Protocol = Protocols.SafeLookup(arguments[1])
        };
        IConnection connection = factory.CreateConnection();
        IModel channel = connection.CreateModel();
        channel.ExchangeDeclare("interop", "direct");
        string queue = channel.QueueDeclare();
        channel.QueueBind(queue, "interop", "key", false, null);
        channel.BasicQos(0, 500, false);
        for (int number = 0; number < Messages; number++)
            channel.BasicPublish("interop", "key", Properties(channel), Encoding.UTF8.GetBytes("message " + number));
        var consumer = new QueueingBasicConsumer(channel);
        string tag = channel.BasicConsume(queue, false, null, consumer);
        int consumed = 0, equal = 0;
        for (; consumed < Messages; consumed++)
        {
            BasicDeliverEventArgs delivery = Next(consumer, Wait);
            if (IsAsSent(delivery, "message " + consumed)) equal++;
            channel.BasicAck(delivery.DeliveryTag, false);
        }
        var large = new byte[1 << 20];
        new Random(1).NextBytes(large);
        channel.BasicPublish("interop", "key", null, large);
        BasicDeliverEventArgs whole = Next(consumer, Wait);
        channel.BasicAck(whole.DeliveryTag, false);
        channel.BasicCancel(tag);
        channel.Close();

        channel = connection.CreateModel();
        channel.TxSelect();
        channel.BasicPublish("interop", "key", null, Encoding.UTF8.GetBytes("undone"));
        channel.TxRollback();
        channel.BasicPublish("interop", "key", null, Encoding.UTF8.GetBytes("done"));
        channel.TxCommit();
        consumer = new QueueingBasicConsumer(channel);
        channel.BasicConsume(queue, false, null, consumer);
        string committed = Encoding.UTF8.GetString(Next(consumer, Wait).Body);
        bool empty = Next(consumer, 300) == null;
        connection.Close();
        Console.WriteLine("{{\"consumed\": {0}, \"equal\": {1}, \"large\": {2}, \"committed\": \"{3}\", \"empty\": {4}}}",
            consumed, equal, Json(AreEqual(whole.Body, large)), committed, Json(empty));
    }

    static IBasicProperties Properties(IModel channel)
    {
        IBasicProperties properties = channel.CreateBasicProperties();
        properties.ContentType = "text/plain";
        properties.DeliveryMode = 2;
        properties.CorrelationId = "c";
        properties.Timestamp = new AmqpTimestamp(1700000000);
        properties.Headers = new Hashtable
        {
            { "text", "h\u00e9llo" }, { "number", 7 }, { "time", new AmqpTimestamp(5) }, { "amount", 1.25m },
            { "nested", new Hashtable { { "key", "value" } } }
        };
        return properties;
    }

    static bool IsAsSent(BasicDeliverEventArgs delivery, string text)
    {
        IBasicProperties found = delivery.BasicProperties;
        IDictionary headers = found.Headers;
        return Text(delivery.Body) == text && found.ContentType == "text/plain" && found.DeliveryMode == 2
            && found.CorrelationId == "c" && found.Timestamp.UnixTime == 1700000000 && headers.Count == 5
            && Text(headers["text"]) == "h\u00e9llo" && (int)headers["number"] == 7
            && ((AmqpTimestamp)headers["time"]).UnixTime == 5 && (decimal)headers["amount"] == 1.25m
            && Text(((IDictionary)headers["nested"])["key"]) == "value";
    }

    static BasicDeliverEventArgs Next(QueueingBasicConsumer consumer, int milliseconds)
    {
        object found;
        consumer.Queue.Dequeue(milliseconds, out found);
        return (BasicDeliverEventArgs)found;
    }

    static string Text(object octets) { return Encoding.UTF8.GetString((byte[])octets); }

    static string Json(bool value) { return value ? "true" : "false"; }

    static bool AreEqual(byte[] one, byte[] other)
    {
        if (one.Length != other.Length) return false;
        for (int at = 0; at < one.Length; at++) if (one[at] != other[at]) return false;
        return true;
    }
}
