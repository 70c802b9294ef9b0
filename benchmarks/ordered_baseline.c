/* The ordered engine with one stateless operator, in C.

   Tuples of one field are taken in 1024 at a time, claimed one by one from a shared queue within the window of the ring,
   changed, and sent in order without locks (Prasaad, Ramalingam, Rajan, Figure 4). Memory is laid out, and
   each word is made atomic, as core/ordered/engine has it; what is fixed here that the engine reads at run time is
   the operator, its fields and the length of the chain. */

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define ON_A_LINE _Alignas(64)
#define FACTOR 0xD1342543DE82EF95u
#define FOLD 0x9E3779B97F4A7C15u

enum { FEED = 1024, WORDS = 2, SLICE_NS = 100000 };

typedef _Atomic int64_t shared;

struct slot {
    shared ticket;
    int64_t covered, held, unused;
};

struct run {
    ON_A_LINE shared stop;
    ON_A_LINE shared fed;
    ON_A_LINE shared feeding;
    ON_A_LINE const int64_t *rows;
    int64_t count, size, steps;
    uint64_t seed;
    int64_t *queue, *outputs;
    struct slot *slots;
    ON_A_LINE shared head;
    ON_A_LINE shared tail;
    int64_t seen_next;
    ON_A_LINE shared next;
    ON_A_LINE shared flag;
    ON_A_LINE shared working;
    ON_A_LINE shared inputs, given, time_ns;
    ON_A_LINE uint64_t hash;
    int64_t left;
    ON_A_LINE int64_t done, made, fullest, in_use[32];
};

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t mixed(uint64_t word) {
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 27) * 0x94D049BB133111EBu;
    return word ^ word >> 31;
}

/* The operator. */
static void operate(struct run *run, const int64_t *given, int64_t *output) {
    if (run->steps > 0) {
        uint64_t word = (uint64_t)run->steps;
        for (int64_t step = 0; step < run->steps; step++) word = (word ^ word >> 7) * FACTOR;
        *(volatile int64_t *)output = (int64_t)word;
    }
    output[0] = (int64_t)mixed((uint64_t)given[0] + run->seed);
}

static int feed(struct run *run, int64_t least) {
    if (atomic_load(&run->fed) >= run->count || atomic_exchange(&run->feeding, 1)) return 0;
    int64_t fed = atomic_load_explicit(&run->fed, memory_order_relaxed);
    int64_t tail = atomic_load_explicit(&run->tail, memory_order_relaxed);
    if (run->seen_next + run->size - tail < (least > FEED ? least : FEED)) run->seen_next = atomic_load(&run->next);
    int64_t room = run->seen_next + run->size - tail, rest = run->count - fed;
    int fits = room >= (least < rest ? least : rest);
    if (room > rest) room = rest;
    if (room > FEED) room = FEED;
    fits = fits && room > 0;
    if (fits) {
        for (int64_t more = 0; more < room; more++) {
            int64_t *place = run->queue + WORDS * ((tail + more) & (run->size - 1));
            place[0] = 0;
            place[1] = run->rows[fed + more];
        }
        atomic_store_explicit(&run->tail, tail + room, memory_order_release);
        atomic_store_explicit(&run->fed, fed + room, memory_order_release);
    }
    atomic_exchange(&run->feeding, 0);
    return fits;
}

static void leave(struct run *run, const int64_t *outputs, int64_t count) {
    for (int64_t output = 0; output < count; output++) {
        uint64_t fold = (run->hash ^ (uint64_t)outputs[WORDS * output + 1]) * FOLD;
        run->hash = fold ^ fold >> 32;
    }
    run->left += count;
}

static void drain(struct run *run) {
    struct slot *slot;
    int64_t serial;
    do {
        if (atomic_exchange(&run->flag, 1)) return;
        for (;;) {
            serial = atomic_load_explicit(&run->next, memory_order_relaxed);
            slot = run->slots + (serial & (run->size - 1));
            if (atomic_load(&slot->ticket) != serial + 1) break;
            leave(run, run->outputs + WORDS * (serial & (run->size - 1)), slot->held);
            int64_t covered = slot->covered;
            atomic_store_explicit(&slot->ticket, 0, memory_order_relaxed);
            atomic_store_explicit(&run->next, serial + covered, memory_order_release);
        }
        atomic_exchange(&run->flag, 0);
        serial = atomic_load(&run->next);
        slot = run->slots + (serial & (run->size - 1));
    } while (atomic_load(&slot->ticket) == serial + 1);
}

static int64_t may_claim_before(struct run *run) {
    int64_t end = atomic_load(&run->tail), window = atomic_load(&run->next) + run->size;
    return end < window ? end : window;
}

static void process(struct run *run, int64_t serial) {
    int64_t ahead = serial + 1 - atomic_load(&run->next);
    if (ahead > run->fullest) run->fullest = ahead;
    run->in_use[64 - __builtin_clzll((uint64_t)ahead)]++;
    int64_t *output = run->outputs + WORDS * (serial & (run->size - 1));
    operate(run, run->queue + WORDS * (serial & (run->size - 1)) + 1, output + 1);
    output[0] = 0;
    run->done++;
    run->made++;
    struct slot *slot = run->slots + (serial & (run->size - 1));
    slot->covered = slot->held = 1;
    atomic_store_explicit(&slot->ticket, serial + 1, memory_order_release);
    drain(run);
}

static int64_t slice(struct run *run) {
    int64_t start = now_ns(), inputs = atomic_load(&run->inputs), done = 0;
    int64_t quota = inputs ? (int64_t)(SLICE_NS / ((double)atomic_load(&run->time_ns) / (double)inputs)) : FEED;
    while (done < quota && !atomic_load(&run->stop)) {
        int64_t head = atomic_load(&run->head);
        if (may_claim_before(run) <= head) break;
        if (!atomic_compare_exchange_strong(&run->head, &head, head + 1)) continue;
        process(run, head);
        done++;
    }
    if (done) {
        atomic_fetch_add(&run->time_ns, now_ns() - start + 1);
        atomic_fetch_add(&run->given, done);
        atomic_fetch_add(&run->inputs, done);
    }
    return done;
}

/* Run all rows with one worker; returns the count and the hash of the output. Queue and ring sizes are powers of two. */
int64_t run_rows(const int64_t *rows, int64_t count, int64_t size, uint64_t seed, int64_t steps, uint64_t *hash) {
    struct run *run = aligned_alloc(64, sizeof *run);
    if (!run) return -1;
    *run = (struct run){.rows = rows, .count = count, .size = size, .seed = seed, .steps = steps, .hash = FOLD};
    run->queue = malloc(sizeof(int64_t) * WORDS * (size_t)size);
    run->outputs = malloc(sizeof(int64_t) * WORDS * (size_t)size);
    run->slots = calloc((size_t)size, sizeof *run->slots);
    int64_t left = -1;
    if (run->queue && run->outputs && run->slots) {
        while (!atomic_load(&run->stop)) {
            feed(run, size / 2);
            if (atomic_load(&run->head) < may_claim_before(run)) {
                atomic_fetch_add(&run->working, 1);
                slice(run);
                atomic_fetch_add(&run->working, -1);
            } else if (!feed(run, 1) && atomic_load(&run->fed) == count && atomic_load(&run->next) == count) {
                atomic_store(&run->stop, 1);
            }
        }
        left = run->left;
        *hash = run->hash;
    }
    free(run->queue);
    free(run->outputs);
    free(run->slots);
    free(run);
    return left;
}
