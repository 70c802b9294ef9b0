/* Ordered pipelines in C++: serially, by threads that take chunks, and by oneTBB's parallel_pipeline (with -DTBB).

   ENGINE KEYS TUPLES STEPS WORKERS CHUNK SEED: KEYS is a file of 64-bit keys, or - for a stateless operator. Row number
   i has the value i. Prints the hash of the outputs, CPU nanoseconds, and wall nanoseconds. The arithmetic is that of
   the function `work`. A keyed operator updates its state in the order of the stream: in a serial stage, since neither
   oneTBB nor the threads here keep the order of a key in a parallel one. */

#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>
#ifdef TBB
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>
#endif

namespace {
constexpr uint64_t FACTOR = 0xD1342543DE82EF95u, FOLD = 0x9E3779B97F4A7C15u;

uint64_t mixed(uint64_t word) {
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 27) * 0x94D049BB133111EBu;
    return word ^ word >> 31;
}

struct Chunk {
    int64_t first = 0, count = 0;
    std::vector<uint64_t> values;
};

struct Stream {
    std::vector<int64_t> keys;
    std::vector<uint64_t> values, states;
    int64_t tuples = 0, steps = 0, chunk = 0;
    uint64_t seed = 0, hash = FOLD;
    volatile uint64_t burnt = 0;

    void burn() {
        uint64_t word = (uint64_t)steps;
        for (int64_t step = 0; step < steps; step++) word = (word ^ word >> 7) * FACTOR;
        burnt = word;
    }
    void parallel_part(Chunk &chunk) {
        for (int64_t at = 0; at < chunk.count; at++) {
            if (steps) burn();
            if (keys.empty()) chunk.values[at] = mixed(values[chunk.first + at] + seed);
        }
    }
    void state_part(Chunk &chunk) {
        for (int64_t at = 0; at < chunk.count; at++) {
            uint64_t &state = states[keys[chunk.first + at]];
            state = state * FACTOR + values[chunk.first + at];
            chunk.values[at] = mixed(state + seed);
        }
    }
    void fold(uint64_t word) {
        hash = (hash ^ word) * FOLD;
        hash ^= hash >> 32;
    }
    void leave(const Chunk &chunk) {
        for (int64_t at = 0; at < chunk.count; at++) {
            if (!keys.empty()) fold((uint64_t)keys[chunk.first + at]);
            fold(chunk.values[at]);
        }
    }
    void ordered_part(Chunk &chunk) {
        if (!keys.empty()) state_part(chunk);
        leave(chunk);
    }
};

void run_serially(Stream &stream) {
    for (int64_t row = 0; row < stream.tuples; row++) {
        uint64_t value = stream.values[row];
        if (stream.steps) stream.burn();
        if (!stream.keys.empty()) {
            uint64_t &state = stream.states[stream.keys[row]];
            value = state = state * FACTOR + value;
            stream.fold((uint64_t)stream.keys[row]);
        }
        stream.fold(mixed(value + stream.seed));
    }
}

/* Workers take chunks by a counter, and put them back in order under a lock. */
void run_threads(Stream &stream, int workers) {
    size_t size = 8 * (size_t)workers;
    std::vector<Chunk> ring(size);
    std::vector<char> ready(size, 0);
    for (auto &chunk : ring) chunk.values.resize(stream.chunk);
    std::atomic<int64_t> taken{0}, left{0};
    std::mutex lock;
    int64_t chunks = (stream.tuples + stream.chunk - 1) / stream.chunk;
    auto work = [&] {
        for (int64_t number = taken++; number < chunks; number = taken++) {
            while (number >= left.load(std::memory_order_acquire) + (int64_t)size) std::this_thread::yield();
            Chunk &chunk = ring[number % size];
            chunk.first = number * stream.chunk;
            chunk.count = std::min(stream.chunk, stream.tuples - chunk.first);
            stream.parallel_part(chunk);
            std::lock_guard<std::mutex> held(lock);
            ready[number % size] = 1;
            for (int64_t next = left; ready[next % size]; next = left) {
                stream.ordered_part(ring[next % size]);
                ready[next % size] = 0;
                left.store(next + 1, std::memory_order_release);
            }
        }
    };
    std::vector<std::thread> threads;
    for (int worker = 1; worker < workers; worker++) threads.emplace_back(work);
    work();
    for (auto &thread : threads) thread.join();
}

#ifdef TBB
void run_tbb(Stream &stream, int workers) {
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, workers);
    size_t tokens = 4 * (size_t)workers, number = 0;
    std::vector<Chunk> ring(tokens);
    for (auto &chunk : ring) chunk.values.resize(stream.chunk);
    int64_t next = 0;
    auto ordered = tbb::filter_mode::serial_in_order;
    auto source = tbb::make_filter<void, Chunk *>(ordered, [&](tbb::flow_control &control) -> Chunk * {
        if (next >= stream.tuples) {
            control.stop();
            return nullptr;
        }
        Chunk &chunk = ring[number++ % tokens];
        chunk.first = next;
        chunk.count = std::min(stream.chunk, stream.tuples - next);
        next += chunk.count;
        return &chunk;
    });
    auto parallel = tbb::make_filter<Chunk *, Chunk *>(tbb::filter_mode::parallel, [&](Chunk *chunk) {
        stream.parallel_part(*chunk);
        return chunk;
    });
    auto sink = tbb::make_filter<Chunk *, void>(ordered, [&](Chunk *chunk) { stream.ordered_part(*chunk); });
    tbb::task_arena arena(workers);
    arena.execute([&] { tbb::parallel_pipeline(tokens, source & parallel & sink); });
}
#endif

int64_t now_ns(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}
}  // namespace

int main(int count, char **given) {
    if (count != 8) return 2;
    Stream stream;
    stream.tuples = atoll(given[3]);
    stream.steps = atoll(given[4]);
    int workers = atoi(given[5]);
    stream.chunk = atoll(given[6]);
    stream.seed = strtoull(given[7], nullptr, 10);
    if (strcmp(given[2], "-") != 0) {
        FILE *file = fopen(given[2], "rb");
        stream.keys.resize(stream.tuples);
        if (!file || fread(stream.keys.data(), 8, stream.tuples, file) != (size_t)stream.tuples) return 3;
        fclose(file);
        int64_t most = 0;
        for (int64_t key : stream.keys) most = std::max(most, key);
        stream.states.resize(most + 1);
    }
    stream.values.resize(stream.tuples);
    for (int64_t row = 0; row < stream.tuples; row++) stream.values[row] = (uint64_t)row;
    int64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), wall = now_ns(CLOCK_MONOTONIC);
    if (!strcmp(given[1], "serial")) run_serially(stream);
    else if (!strcmp(given[1], "threads")) run_threads(stream, workers);
#ifdef TBB
    else if (!strcmp(given[1], "tbb")) run_tbb(stream, workers);
#endif
    else return 2;
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = now_ns(CLOCK_MONOTONIC) - wall;
    printf("%llu %lld %lld\n", (unsigned long long)stream.hash, (long long)cpu, (long long)wall);
    return 0;
}
