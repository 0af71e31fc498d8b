// The session of every client (README.md beside this folder), by lapin: URL, name of the queue.
use futures_lite::StreamExt;
use lapin::options::*;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use lapin::{BasicProperties, Confirmation, Connection, ConnectionProperties, ExchangeKind};

const MESSAGES: usize = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let name = arguments[2].as_str();
    let connection = Connection::connect(&arguments[1], ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    channel.exchange_declare(name.into(), ExchangeKind::Direct, ExchangeDeclareOptions::default(), FieldTable::default()).await?;
    channel.queue_declare(name.into(), QueueDeclareOptions::default(), FieldTable::default()).await?;
    channel.queue_bind(name.into(), name.into(), "key".into(), QueueBindOptions::default(), FieldTable::default()).await?;

    let mut nested = FieldTable::default();
    nested.insert("list".into(), AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::LongInt(1), AMQPValue::LongString("b".into())])));
    let mut headers = FieldTable::default();
    headers.insert("text".into(), AMQPValue::LongString("h\u{e9}llo".into()));
    headers.insert("number".into(), AMQPValue::LongInt(7));
    headers.insert("large".into(), AMQPValue::LongLongInt(1 << 40));
    headers.insert("yes".into(), AMQPValue::Boolean(true));
    headers.insert("nested".into(), AMQPValue::FieldTable(nested));
    let properties = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_delivery_mode(2)
        .with_correlation_id("c".into())
        .with_headers(headers.clone());
    let mut bodies: Vec<Vec<u8>> = (0..MESSAGES).map(|number| format!("message {number}").into_bytes()).collect();
    bodies.push(vec![b'x'; 1 << 20]);
    let mut confirmed = 0;
    for body in &bodies {
        let confirmation = channel.basic_publish(name.into(), "key".into(), BasicPublishOptions::default(), body, properties.clone()).await?.await?;
        confirmed += matches!(confirmation, Confirmation::Ack(None)) as usize;
    }
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let returned = match channel.basic_publish(name.into(), "nowhere".into(), options, b"lost", properties.clone()).await?.await? {
        Confirmation::Ack(Some(message)) => message.reply_code,
        _ => 0,
    };

    channel.basic_qos(5, BasicQosOptions::default()).await?;
    let mut consumer = channel.basic_consume(name.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default()).await?;
    let (mut consumed, mut redelivered, mut equal, mut largest) = (0, 0, 0, 0);
    while consumed < bodies.len() {
        let delivery = consumer.next().await.ok_or("the consumer has ended")??;
        if delivery.data == bodies[0] && !delivery.redelivered {
            delivery.nack(BasicNackOptions { requeue: true, ..Default::default() }).await?;
            continue;
        }
        consumed += 1;
        redelivered += delivery.redelivered as usize;
        equal += (delivery.properties.headers().as_ref() == Some(&headers)) as usize;
        largest = largest.max(delivery.data.len());
        delivery.ack(BasicAckOptions::default()).await?;
    }
    channel.basic_cancel(consumer.tag(), BasicCancelOptions::default()).await?;
    let empty = channel.basic_get(name.into(), BasicGetOptions::default()).await?.is_none();
    let other = connection.create_channel().await?;
    let passive = QueueDeclareOptions { passive: true, ..Default::default() };
    let closed = match other.queue_declare("nonesuch".into(), passive, FieldTable::default()).await {
        Err(error) => match error.kind() {
            lapin::ErrorKind::ProtocolError(error) => error.get_id(),
            _ => 1,
        },
        Ok(_) => 0,
    };
    channel.queue_delete(name.into(), QueueDeleteOptions::default()).await?;
    channel.exchange_delete(name.into(), ExchangeDeleteOptions::default()).await?;
    connection.close(200, "done".into()).await?;
    println!(
        "{{\"confirmed\": {confirmed}, \"returned\": {returned}, \"consumed\": {consumed}, \"redelivered\": {redelivered}, \
         \"headers\": {equal}, \"largest\": {largest}, \"empty\": {empty}, \"closed\": {closed}}}"
    );
    Ok(())
}
