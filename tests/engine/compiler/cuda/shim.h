// CUDA C as C++ of the host: threads of a block are fibers, which wait for each other where
// __syncthreads and shuffles have them wait.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static

struct Dims { unsigned x, y, z; };
static Dims threadIdx, blockIdx, blockDim, gridDim;

static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }

enum State { READY, AT_BLOCK, AT_WARP, DONE };
const int MOST = 1024, STACK = 1 << 16;
static ucontext_t scheduler, contexts[MOST];
static char* stacks;
static State states[MOST];
static uint32_t slots[MOST];
static int current;
typedef void (*Call)(const long long*);
static Call called;
static const long long* given;

static Dims place_of(int thread) {
  return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}
static void fiber() {
  called(given);
  states[current] = DONE;
}
static void wait(State state) {
  const int own = current;
  states[own] = state;
  swapcontext(&contexts[own], &scheduler);
}
static inline void __syncthreads() { wait(AT_BLOCK); }
static inline void __syncwarp() { wait(AT_WARP); }
static inline uint32_t from_lane(uint32_t x, int lane) {
  const int warp = current & ~31;
  slots[current] = x;
  wait(AT_WARP);
  const uint32_t found = slots[warp | lane];
  wait(AT_WARP);
  return found;
}
static inline uint32_t __shfl_xor_sync(unsigned, uint32_t x, int other) {
  return from_lane(x, (current ^ other) & 31);
}
static inline uint32_t __shfl_sync(unsigned, uint32_t x, int lane) { return from_lane(x, lane); }

// Runs a block whose threads wait for each other; 1 where some wait for what never comes.
static int run_fibers(int count, int reverse) {
  if (!stacks) stacks = (char*)malloc((size_t)MOST * STACK);
  for (int t = 0; t < count; t++) {
    states[t] = READY;
    getcontext(&contexts[t]);
    contexts[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
    contexts[t].uc_stack.ss_size = STACK;
    contexts[t].uc_link = &scheduler;
    makecontext(&contexts[t], fiber, 0);
  }
  for (;;) {
    int done = 0, at_block = 0, freed = 0;
    for (int i = 0; i < count; i++) {
      const int t = reverse ? count - 1 - i : i;
      if (states[t] == READY) {
        current = t;
        threadIdx = place_of(t);
        swapcontext(&scheduler, &contexts[t]);
      }
      done += states[t] == DONE;
      at_block += states[t] == AT_BLOCK;
    }
    if (done == count) return 0;
    if (done + at_block == count) {
      for (int t = 0; t < count; t++)
        if (states[t] == AT_BLOCK) states[t] = READY;
      continue;
    }
    for (int first = 0; first < count; first += 32) {
      int waiting = 0, live = 0;
      for (int t = first; t < count && t < first + 32; t++) {
        waiting += states[t] == AT_WARP;
        live += states[t] != DONE;
      }
      if (waiting && waiting == live) {
        for (int t = first; t < count && t < first + 32; t++)
          if (states[t] == AT_WARP) states[t] = READY;
        freed = 1;
      }
    }
    if (!freed) return 1;
  }
}

static int launch(Call call, int waits, int reverse, const unsigned* dims, const long long* args) {
  gridDim = {dims[0], dims[1], dims[2]};
  blockDim = {dims[3], dims[4], dims[5]};
  called = call;
  given = args;
  const int count = blockDim.x * blockDim.y * blockDim.z;
  const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
  for (unsigned i = 0; i < blocks; i++) {
    const unsigned b = reverse ? blocks - 1 - i : i;
    blockIdx = {b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y};
    if (waits) {
      if (run_fibers(count, reverse)) return 1;
      continue;
    }
    for (int j = 0; j < count; j++) {
      const int t = reverse ? count - 1 - j : j;
      threadIdx = place_of(t);
      call(args);
    }
  }
  return 0;
}
