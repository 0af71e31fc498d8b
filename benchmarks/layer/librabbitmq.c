/* rabbitmq-c, as the modules in Python: librabbitmq publish|consume PORT QUEUE COUNT; prints a line of JSON.
 *
 * Publishing keeps a window of confirms, consuming acknowledges each message and compares it.
 */

#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

enum { WINDOW = 128, PREFETCH = 200, FIRST_SECOND = 1763800000, BODY = 256, CHANNEL = 1 };

struct sample {
    char body[BODY];
    char customer[24];
    char id[24];
    amqp_table_entry_t headers[3];
    amqp_basic_properties_t properties;
};

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void make(struct sample *sample, int number)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%08d", number);
    for (int at = 0; at < BODY; at += 8)
        memcpy(sample->body + at, digits, 8);
    snprintf(sample->customer, sizeof sample->customer, "customer-%d", number % 97);
    snprintf(sample->id, sizeof sample->id, "message-%d", number);
    amqp_table_entry_t *headers = sample->headers;
    headers[0].key = amqp_cstring_bytes("number");
    headers[0].value.kind = AMQP_FIELD_KIND_I32;
    headers[0].value.value.i32 = number;
    headers[1].key = amqp_cstring_bytes("customer");
    headers[1].value.kind = AMQP_FIELD_KIND_UTF8;
    headers[1].value.value.bytes = amqp_cstring_bytes(sample->customer);
    headers[2].key = amqp_cstring_bytes("urgent");
    headers[2].value.kind = AMQP_FIELD_KIND_BOOLEAN;
    headers[2].value.value.boolean = number % 3 == 0;
    amqp_basic_properties_t *properties = &sample->properties;
    properties->_flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                         AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TIMESTAMP_FLAG;
    properties->content_type = amqp_cstring_bytes("application/octet-stream");
    properties->headers.num_entries = 3;
    properties->headers.entries = headers;
    properties->delivery_mode = 1;
    properties->message_id = amqp_cstring_bytes(sample->id);
    properties->timestamp = FIRST_SECOND + number / 100;
}

static int equal(amqp_bytes_t one, amqp_bytes_t other)
{
    return one.len == other.len && memcmp(one.bytes, other.bytes, one.len) == 0;
}

/* Waits for one frame of confirms; returns how many messages it confirms. */
static int confirmed(amqp_connection_state_t connection, uint64_t *last)
{
    amqp_frame_t frame;
    amqp_maybe_release_buffers(connection);
    if (amqp_simple_wait_frame(connection, &frame) != AMQP_STATUS_OK)
        fail("no confirm");
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        fail("something else than basic.ack");
    amqp_basic_ack_t *ack = frame.payload.method.decoded;
    if (!ack->multiple) {
        (*last)++;
        return 1;
    }
    int count = (int)(ack->delivery_tag - *last);
    *last = ack->delivery_tag;
    return count;
}

static void publish(amqp_connection_state_t connection, amqp_bytes_t queue, struct sample *samples, int count)
{
    int outstanding = 0;
    uint64_t last = 0;
    for (int number = 0; number < count; number++) {
        struct sample *sample = &samples[number];
        amqp_bytes_t body = {BODY, sample->body};
        while (outstanding >= WINDOW)
            outstanding -= confirmed(connection, &last);
        if (amqp_basic_publish(connection, CHANNEL, amqp_empty_bytes, queue, 1, 0, &sample->properties, body) != 0)
            fail("publish");
        outstanding++;
    }
    while (outstanding > 0)
        outstanding -= confirmed(connection, &last);
}

static void consume(amqp_connection_state_t connection, amqp_bytes_t queue, struct sample *samples, int count)
{
    amqp_basic_consume(connection, CHANNEL, queue, amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    for (int number = 0; number < count; number++) {
        amqp_envelope_t found;
        amqp_maybe_release_buffers(connection);
        if (amqp_consume_message(connection, &found, NULL, 0).reply_type != AMQP_RESPONSE_NORMAL)
            fail("consume");
        struct sample *sample = &samples[number];
        amqp_bytes_t body = {BODY, sample->body};
        amqp_table_t headers = found.message.properties.headers;
        if (!equal(found.message.body, body) || !equal(found.message.properties.message_id, amqp_cstring_bytes(sample->id)) ||
            headers.num_entries != 3 || headers.entries[0].value.value.i32 != number ||
            !equal(headers.entries[1].value.value.bytes, sample->headers[1].value.value.bytes) ||
            headers.entries[2].value.value.boolean != sample->headers[2].value.value.boolean)
            fail("not what was published");
        if (amqp_basic_ack(connection, CHANNEL, found.delivery_tag, 0) != 0)
            fail("ack");
        amqp_destroy_envelope(&found);
    }
}

int main(int argc, char **argv)
{
    if (argc != 5)
        fail("usage: librabbitmq publish|consume PORT QUEUE COUNT");
    int publishing = strcmp(argv[1], "publish") == 0, count = atoi(argv[4]);
    amqp_bytes_t queue = amqp_cstring_bytes(argv[3]);
    struct sample *samples = calloc((size_t)count, sizeof *samples);
    for (int number = 0; number < count; number++)
        make(&samples[number], number);
    amqp_connection_state_t connection = amqp_new_connection();
    if (amqp_socket_open(amqp_tcp_socket_new(connection), "127.0.0.1", atoi(argv[2])) != 0)
        fail("no connection");
    if (amqp_login(connection, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest").reply_type != AMQP_RESPONSE_NORMAL)
        fail("no login");
    amqp_channel_open(connection, CHANNEL);
    if (publishing)
        amqp_confirm_select(connection, CHANNEL);
    else
        amqp_basic_qos(connection, CHANNEL, 0, PREFETCH, 0);
    if (amqp_get_rpc_reply(connection).reply_type != AMQP_RESPONSE_NORMAL)
        fail("no channel");
    double begin = microseconds();
    (publishing ? publish : consume)(connection, queue, samples, count);
    printf("{\"microseconds\": %.4f, \"status\": {}}\n", (microseconds() - begin) / count);
    amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(connection);
    free(samples);
    return 0;
}
