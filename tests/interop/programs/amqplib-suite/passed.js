// Prints a line for each test that has passed: its file, and the names of its suites and its own.
'use strict';
const { basename } = require('node:path');

module.exports = async function* passed(events) {
  const names = [];
  for await (const { type, data } of events) {
    if (type === 'test:start') names[data.nesting] = data.name;
    if (type !== 'test:pass' || data.details.type === 'suite' || data.skip) continue;
    if (data.name !== data.file) // a file without failures is one as well
      yield `${basename(data.file)}: ${names.slice(0, data.nesting + 1).join(' > ')}\n`;
  }
};
