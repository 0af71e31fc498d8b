// Has the suite, which is for a broker at 5672, connect to that of the environment.
'use strict';
const net = require('node:net');
const connect = net.connect;

net.connect = (options, ...rest) =>
  connect(options.port === 5672 ? { ...options, port: Number(process.env.AMQP_PORT) } : options, ...rest);
