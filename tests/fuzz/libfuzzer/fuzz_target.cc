// A fuzzer of the reader that the build names.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mpc::fuzz::MPC_READER(absl::MakeConstSpan(data, size));
  return 0;
}
