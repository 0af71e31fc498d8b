// The session of every client (README.md beside this folder), by rabbitmq-client: URL, name of the queue.
const {Connection} = require('rabbitmq-client')
const {isDeepStrictEqual} = require('util')

const MESSAGES = 20
const HEADERS = {text: 'h\u00e9llo', number: 7, large: 2 ** 40, yes: true, nested: {list: [1, 'b']}}

async function main(url, name) {
  const connection = new Connection(url)
  const channel = await connection.acquire()
  await channel.confirmSelect()
  await channel.exchangeDeclare({exchange: name, type: 'direct'})
  await channel.queueDeclare({queue: name})
  await channel.queueBind({queue: name, exchange: name, routingKey: 'key'})

  const properties = {contentType: 'text/plain', durable: true, correlationId: 'c', headers: HEADERS}
  const bodies = Array.from({length: MESSAGES}, (_, number) => Buffer.from(`message ${number}`))
  bodies.push(Buffer.alloc(1 << 20, 'x'))
  let confirmed = 0
  for (const body of bodies) {
    await channel.basicPublish({exchange: name, routingKey: 'key', ...properties}, body)
    confirmed += 1
  }
  const gone = new Promise(resolve => channel.once('basic.return', resolve))
  await channel.basicPublish({exchange: name, routingKey: 'nowhere', mandatory: true, ...properties}, Buffer.from('lost'))
  const returned = (await gone).replyCode

  await channel.basicQos({prefetchCount: 5})
  const seen = {consumed: 0, redelivered: 0, headers: 0, largest: 0}
  await new Promise(resolve => channel.basicConsume({queue: name, consumerTag: 'tag'}, message => {
    const {deliveryTag, redelivered} = message
    const body = Buffer.from(message.body)
    if (body.equals(bodies[0]) && !redelivered) return channel.basicNack({deliveryTag, requeue: true})
    seen.consumed += 1
    seen.redelivered += redelivered
    seen.headers += isDeepStrictEqual({...message.headers}, HEADERS)
    seen.largest = Math.max(seen.largest, body.length)
    channel.basicAck({deliveryTag})
    if (seen.consumed === bodies.length) resolve()
  }))
  await channel.basicCancel({consumerTag: 'tag'})
  const empty = await channel.basicGet({queue: name}) === undefined
  const other = await connection.acquire()
  other.on('error', () => {})
  const closed = await other.queueDeclare({queue: 'nonesuch', passive: true}).catch(error => error.code === 'NOT_FOUND' ? 404 : 0)
  await channel.queueDelete({queue: name})
  await channel.exchangeDelete({exchange: name})
  await channel.close()
  await connection.close()
  console.log(JSON.stringify({confirmed, returned, ...seen, empty, closed}))
}

main(...process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
