/* Decodes a file of AMQP frames with rabbitmq-c, over and over, and prints what each round took.
 *
 * Usage: anchor FILE ROUNDS [CHUNK]
 * The library is passed at most CHUNK octets at once, as a socket would give them; without it, the whole file.
 * Prints one JSON object: the library's version, nanoseconds of each round, frames in the file.
 * Only functions of the library's public header are called. A delivery's memory is given back after its
 * body, as the library's own clients do.
 */

#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <amqp.h>
#include <amqp_framing.h>

static long long nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static unsigned char *read_whole(const char *path, size_t *size)
{
    unsigned char *octets = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        return NULL;
    long end = ftell(file);
    rewind(file);
    if (end > 0)
        octets = malloc((size_t)end);
    if (octets != NULL && fread(octets, 1, (size_t)end, file) != (size_t)end) {
        free(octets);
        octets = NULL;
    }
    fclose(file);
    *size = (size_t)end;
    return octets;
}

/* Frames decoded, or -1. `checked` sums what was decoded, so that no call can be left out as unused. */
static long decode(amqp_connection_state_t state, unsigned char *octets, size_t size, size_t most, uint64_t *checked)
{
    amqp_bytes_t rest = {0, octets};
    long frames = 0;
    while (rest.len > 0 || size > 0) {
        amqp_frame_t frame;
        if (rest.len == 0) {
            rest.len = size < most ? size : most;
            size -= rest.len;
        }
        int used = amqp_handle_input(state, rest, &frame);
        if (used <= 0)
            return -1;
        rest.bytes = (char *)rest.bytes + used;
        rest.len -= (size_t)used;
        if (frame.frame_type == 0)
            continue;
        frames++;
        if (frame.frame_type == AMQP_FRAME_METHOD) {
            if (frame.payload.method.id == AMQP_BASIC_DELIVER_METHOD)
                *checked += ((amqp_basic_deliver_t *)frame.payload.method.decoded)->delivery_tag;
        } else if (frame.frame_type == AMQP_FRAME_HEADER) {
            amqp_basic_properties_t *properties = frame.payload.properties.decoded;
            *checked += properties->timestamp + (uint64_t)properties->headers.num_entries;
        } else {
            *checked += frame.payload.body_fragment.len;
            amqp_maybe_release_buffers(state);
        }
    }
    return frames;
}

int main(int argc, char **argv)
{
    size_t size = 0;
    uint64_t checked = 0;
    long frames = 0;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: anchor FILE ROUNDS [CHUNK]\n");
        return 2;
    }
    unsigned char *octets = read_whole(argv[1], &size);
    amqp_connection_state_t state = amqp_new_connection();
    if (octets == NULL || state == NULL) {
        fprintf(stderr, "anchor: cannot read %s or set up the library\n", argv[1]);
        return 1;
    }
    printf("{\"version\": \"%s\", \"nanoseconds\": [", amqp_version());
    long rounds = atol(argv[2]);
    size_t most = argc == 4 ? (size_t)atol(argv[3]) : size;
    for (long round = 0; round <= rounds; round++) {
        long long begin = nanoseconds();
        frames = decode(state, octets, size, most, &checked);
        long long taken = nanoseconds() - begin;
        if (frames < 0) {
            fprintf(stderr, "anchor: the library refused the stream\n");
            return 1;
        }
        if (round > 0) /* the first round only warms up */
            printf("%s%lld", round > 1 ? ", " : "", taken);
    }
    printf("], \"frames\": %ld, \"checked\": %llu}\n", frames, (unsigned long long)(checked / (uint64_t)(rounds + 1)));
    amqp_destroy_connection(state);
    free(octets);
    return 0;
}
