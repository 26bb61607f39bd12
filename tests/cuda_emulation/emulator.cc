#include "tests/cuda_emulation/emulator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cuda_emulation/block.h"

namespace mpc::emulation {

std::uint64_t threads_that_awaited = 0;
std::uint64_t block_number = 0;

namespace {

constexpr unsigned kMaxBlocksYZ = 65535;

// One block of one launch runs at a time.
std::mutex& LaunchMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

Options& TheOptions() {
  static auto* const options = new Options;
  return *options;
}

Block& TheBlock() {
  static auto* const block = new Block;
  return *block;
}

absl::Status CheckShape(const cuda::LaunchShape& shape) {
  if (shape.threads == 0 || shape.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block of ", shape.threads, " threads; 1 to ", kMaxThreads, " are accepted"));
  }
  if (shape.blocks_x == 0 || shape.blocks_x > static_cast<unsigned>(std::numeric_limits<int>::max()) ||
      shape.blocks_y == 0 || shape.blocks_y > kMaxBlocksYZ || shape.blocks_z == 0 || shape.blocks_z > kMaxBlocksYZ) {
    return absl::InvalidArgumentError(absl::StrCat("a grid of ", shape.blocks_x, " x ", shape.blocks_y, " x ",
                                                   shape.blocks_z,
                                                   " blocks; at most 2147483647 x 65535 x 65535 and "
                                                   "at least 1 are accepted"));
  }
  if (shape.shared_bytes > kMostDynamicSharedBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a launch with ", shape.shared_bytes,
                                                   " bytes of dynamic shared memory; a block has at most ",
                                                   kMostDynamicSharedBytes));
  }
  return absl::OkStatus();
}

// Copies of a launch's arguments: what they pointed to may be gone when a GPU reads them.
class Arguments {
 public:
  explicit Arguments(absl::Span<const cuda::KernelArgument> arguments) {
    for (const cuda::KernelArgument& argument : arguments) {
      // Storage of the largest alignment, of exactly the argument's size for the sanitizer.
      copies_.emplace_back(static_cast<std::byte*>(::operator new(argument.bytes)));
      std::memcpy(copies_.back().get(), argument.data, argument.bytes);
      pointers_.push_back(copies_.back().get());
    }
  }
  const void* const* pointers() const { return pointers_.data(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete(data); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> copies_;
  std::vector<const void*> pointers_;
};

// A permutation of 0 .. count - 1: i -> (step * i + start) mod count, with a step that has no common factor with count.
class BlockOrder {
 public:
  BlockOrder(std::uint64_t count, std::uint64_t seed) : count_(count) {
    if (seed == 0 || count < 2) return;
    Chance chance;
    chance.Seed(seed);
    const auto bound = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, std::uint32_t{1} << 31));
    start_ = chance.Below(bound);
    step_ = chance.Below(bound);
    while (std::gcd(step_, count) != 1) ++step_;
  }
  std::uint64_t operator()(std::uint64_t i) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(step_) * i + start_) % count_);
  }

 private:
  std::uint64_t count_, step_ = 1, start_ = 0;
};

}  // namespace

void SetOptions(const Options& options) {
  const std::lock_guard lock(LaunchMutex());
  TheOptions() = options;
}

absl::Status Run(const cuda::KernelFunction& function, const cuda::LaunchShape& shape,
                 absl::Span<const cuda::KernelArgument> arguments) {
  const absl::Status status = CheckShape(shape);
  if (!status.ok()) return status;
  if (function.call == nullptr) return absl::InvalidArgumentError("the kernel was not compiled for the emulation");
  const std::lock_guard lock(LaunchMutex());
  const Arguments copies(arguments);
  const std::uint64_t seed = TheOptions().seed;
  blockDim = {shape.threads, 1, 1};
  gridDim = {shape.blocks_x, shape.blocks_y, shape.blocks_z};
  Block& block = TheBlock();
  block.BeginLaunch(function.call, function.entry, copies.pointers(), shape.threads, shape.shared_bytes, seed);
  const std::uint64_t plane = std::uint64_t{shape.blocks_x} * shape.blocks_y;
  const std::uint64_t count = plane * shape.blocks_z;
  const BlockOrder order(count, seed);
  threads_that_awaited = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = order(i);
    blockIdx = {static_cast<unsigned>(index % shape.blocks_x), static_cast<unsigned>(index % plane / shape.blocks_x),
                static_cast<unsigned>(index / plane)};
    ++block_number;
    const absl::Status ran = block.Run();
    if (!ran.ok()) return ran;
  }
  if (function.awaits_earlier && threads_that_awaited != count * shape.threads) {
    return absl::InternalError(absl::StrCat(
        "a kernel that is started early does not begin with AwaitEarlierLaunches(): ", threads_that_awaited,
        " waits of ", count * shape.threads, " threads"));
  }
  return absl::OkStatus();
}

absl::Status Queue::Copy(void* to, const void* from, std::size_t bytes) {
  const auto* target = static_cast<const std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (bytes > 0 && target < source + bytes && source < target + bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a copy of ", bytes, " bytes between places that overlap"));
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status Queue::Fill(void* to, std::uint8_t byte, std::size_t bytes) {
  if (bytes > 0) std::memset(to, byte, bytes);
  return absl::OkStatus();
}

bool WaitForBlock(bool value, const Place& place) { return TheBlock().WaitForBlock(value, place); }

std::uint64_t WaitForWarp(WarpAction action, unsigned mask, std::uint64_t value, unsigned source, const Place& place) {
  return TheBlock().WaitForWarp(action, mask, value, source, place);
}

unsigned Lane() { return threadIdx.x % 32; }

void* SharedStorage(std::size_t bytes, const Place& place) {
  SharedMemory& shared = TheBlock().shared_memory();
  void* data = shared.Allocate(bytes, place);
  if (data == nullptr) {
    TheBlock().Fail(absl::StrCat("the array at ", place.file_name(), ":", place.line(), " brings its shared memory to ",
                                 shared.used(), " bytes; a block has ", kSharedBytes));
  }
  return data;
}

void* DynamicSharedStorage() { return TheBlock().shared_memory().dynamic(); }

}  // namespace mpc::emulation
