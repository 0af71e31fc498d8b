// Node's amqplib, as the modules in Python: node amqplib.js publish|consume URL QUEUE COUNT; prints a line of JSON.
"use strict";
const amqplib = require("amqplib/callback_api");

const WINDOW = 128;
const PREFETCH = 200;
const FIRST_SECOND = 1763800000;
const [action, url, queue, text] = process.argv.slice(2);
const count = Number(text);

function sample(number) {
  return {
    body: Buffer.from(String(number).padStart(8, "0").repeat(32)),
    headers: { number, customer: `customer-${number % 97}`, urgent: number % 3 === 0 },
    messageId: `message-${number}`,
    timestamp: FIRST_SECOND + Math.floor(number / 100),
  };
}

const samples = Array.from({ length: count }, (_, number) => sample(number));

function failing(then) {
  return (error, value) => {
    if (error) throw error;
    then(value);
  };
}

function report(begin, connection) {
  const { user, system } = process.cpuUsage(begin);
  console.log(JSON.stringify({ microseconds: (user + system) / count, status: {} }));
  connection.close();
}

function publish(connection, channel) {
  let sent = 0;
  let confirmed = 0;
  const begin = process.cpuUsage();
  const taken = failing(() => {
    confirmed++;
    if (sent < count) next();
    if (confirmed === count) report(begin, connection);
  });
  function next() {
    const { body, headers, messageId, timestamp } = samples[sent++];
    const options = {
      contentType: "application/octet-stream", headers, deliveryMode: 1, messageId, timestamp, mandatory: true,
    };
    channel.publish("", queue, body, options, taken);
  }
  while (sent < WINDOW && sent < count) next();
}

function consume(connection, channel) {
  let arrived = 0;
  const begin = process.cpuUsage();
  channel.consume(queue, (message) => {
    const { body, headers, messageId } = samples[arrived++];
    const found = message.properties;
    const same = found.headers.number === headers.number && found.headers.customer === headers.customer &&
      found.headers.urgent === headers.urgent && found.messageId === messageId && body.equals(message.content);
    if (!same) throw new Error(`not what was published: ${JSON.stringify(found)}`);
    channel.ack(message);
    if (arrived === count) report(begin, connection);
  });
}

amqplib.connect(url, failing((connection) => {
  const open = action === "publish" ? "createConfirmChannel" : "createChannel";
  connection[open](failing((channel) => {
    if (action === "publish") publish(connection, channel);
    else channel.prefetch(PREFETCH, false, failing(() => consume(connection, channel)));
  }));
}));
