// The session of every client (README.md beside this folder), by amqplib: URL, name of the queue.
const amqplib = require('amqplib')
const {isDeepStrictEqual} = require('util')

const MESSAGES = 20
const HEADERS = {text: 'h\u00e9llo', number: 7, large: 2 ** 40, yes: true, nested: {list: [1, 'b']}}

async function main(url, name) {
  const connection = await amqplib.connect(url)
  const channel = await connection.createConfirmChannel()
  await channel.assertExchange(name, 'direct', {durable: false})
  await channel.assertQueue(name, {durable: false})
  await channel.bindQueue(name, name, 'key')

  const properties = {contentType: 'text/plain', persistent: true, correlationId: 'c', headers: HEADERS}
  const publish = (key, body, options) => new Promise((resolve, reject) => channel.publish(
    name, key, body, {...properties, ...options}, error => error ? reject(error) : resolve(1)))
  const bodies = Array.from({length: MESSAGES}, (_, number) => Buffer.from(`message ${number}`))
  bodies.push(Buffer.alloc(1 << 20, 'x'))
  let confirmed = 0
  for (const body of bodies) confirmed += await publish('key', body)
  const gone = new Promise(resolve => channel.once('return', resolve))
  await publish('nowhere', Buffer.from('lost'), {mandatory: true})
  const returned = (await gone).fields.replyCode

  await channel.prefetch(5)
  const seen = {consumed: 0, redelivered: 0, headers: 0, largest: 0}
  await new Promise(resolve => channel.consume(name, message => {
    if (message.content.equals(bodies[0]) && !message.fields.redelivered) return channel.nack(message)
    seen.consumed += 1
    seen.redelivered += message.fields.redelivered
    seen.headers += isDeepStrictEqual(message.properties.headers, HEADERS)
    seen.largest = Math.max(seen.largest, message.content.length)
    channel.ack(message)
    if (seen.consumed === bodies.length) resolve()
  }, {consumerTag: 'tag'}))
  await channel.cancel('tag')
  const empty = await channel.get(name) === false
  const other = await connection.createChannel()
  other.on('error', () => {})
  const closed = await other.checkQueue('nonesuch').catch(error => error.code)
  await channel.deleteQueue(name)
  await channel.deleteExchange(name)
  await connection.close()
  console.log(JSON.stringify({confirmed, returned, ...seen, empty, closed}))
}

main(...process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
