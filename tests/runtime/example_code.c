/* A shared object as code generation makes them, for tests of loading. */
#include <stdint.h>

static int64_t calls;

/* Leaves the sum of 4 numbers of x in the workspace. */
void example_0(void *const *operands, void *workspace, int64_t block) {
  const float *x = (const float *)operands[0] + 4 * block;
  ++calls;
  ((float *)workspace)[block] = x[0] + x[1] + x[2] + x[3];
}

/* y = x + the first sum. */
void example_1(void *const *operands, void *workspace, int64_t block) {
  const float *x = (const float *)operands[0] + 4 * block;
  float *y = (float *)operands[1] + 4 * block;
  for (int i = 0; i < 4; ++i) y[i] = x[i] + ((const float *)workspace)[0];
}

int64_t example_calls(void) { return calls; }
