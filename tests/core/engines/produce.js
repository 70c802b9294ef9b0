// Sends a record for each key of a file, in hex or null; its value is the number of the line.
const { readFileSync } = require('fs')
const { Kafka, logLevel } = require('kafkajs')

async function main([broker, topic, file]) {
  const sender = new Kafka({ brokers: [broker], logLevel: logLevel.ERROR }).producer()
  const lines = readFileSync(file, 'ascii').trimEnd().split('\n')
  const messages = lines.map((line, row) => ({ key: line === 'null' ? null : Buffer.from(line, 'hex'), value: `${row}` }))
  await sender.connect()
  for (let first = 0; first < messages.length; first += 500)
    await sender.send({ topic, messages: messages.slice(first, first + 500) })
  await sender.disconnect()
}

main(process.argv.slice(2)).catch(error => { console.error(error); process.exit(1) })
