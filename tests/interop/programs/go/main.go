// The session of every client (README.md beside this folder), by amqp091-go: URL, name of the queue.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	amqp "github.com/rabbitmq/amqp091-go"
)

const messages = 20

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	name := os.Args[2]
	connection, err := amqp.Dial(os.Args[1])
	check(err)
	channel, err := connection.Channel()
	check(err)
	check(channel.Confirm(false))
	check(channel.ExchangeDeclare(name, "direct", false, false, false, false, nil))
	_, err = channel.QueueDeclare(name, false, false, false, false, nil)
	check(err)
	check(channel.QueueBind(name, "key", name, false, nil))
	returns := channel.NotifyReturn(make(chan amqp.Return, 1))

	headers := amqp.Table{
		"text": "h\u00e9llo", "number": int32(7), "large": int64(1 << 40), "yes": true,
		"nested": amqp.Table{"list": []interface{}{int32(1), "b"}},
	}
	publish := func(key string, mandatory bool, body []byte) bool {
		message := amqp.Publishing{
			ContentType: "text/plain", DeliveryMode: 2, CorrelationId: "c", Headers: headers, Body: body,
		}
		confirmation, err := channel.PublishWithDeferredConfirm(name, key, mandatory, false, message)
		check(err)
		ok, err := confirmation.WaitContext(context.Background())
		check(err)
		return ok
	}
	bodies := [][]byte{}
	for number := 0; number < messages; number++ {
		bodies = append(bodies, []byte(fmt.Sprintf("message %d", number)))
	}
	bodies = append(bodies, bytes.Repeat([]byte("x"), 1<<20))
	confirmed := 0
	for _, body := range bodies {
		if publish("key", false, body) {
			confirmed++
		}
	}
	publish("nowhere", true, []byte("lost"))
	returned := <-returns

	check(channel.Qos(5, 0, false))
	deliveries, err := channel.Consume(name, "tag", false, false, false, false, nil)
	check(err)
	consumed, redelivered, equal, largest := 0, 0, 0, 0
	for consumed < len(bodies) {
		delivery := <-deliveries
		if bytes.Equal(delivery.Body, bodies[0]) && !delivery.Redelivered {
			check(delivery.Nack(false, true))
			continue
		}
		consumed++
		if delivery.Redelivered {
			redelivered++
		}
		if reflect.DeepEqual(delivery.Headers, headers) {
			equal++
		}
		largest = max(largest, len(delivery.Body))
		check(delivery.Ack(false))
	}
	check(channel.Cancel("tag", false))
	_, found, err := channel.Get(name, false)
	check(err)
	other, err := connection.Channel()
	check(err)
	_, err = other.QueueDeclarePassive("nonesuch", false, false, false, false, nil)
	closed := err.(*amqp.Error).Code
	_, err = channel.QueueDelete(name, false, false, false)
	check(err)
	check(channel.ExchangeDelete(name, false, false))
	check(connection.Close())
	check(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"confirmed": confirmed, "returned": returned.ReplyCode, "consumed": consumed, "redelivered": redelivered,
		"headers": equal, "largest": largest, "empty": !found, "closed": closed,
	}))
}
