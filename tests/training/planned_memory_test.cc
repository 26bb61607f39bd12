// The planned peak is the measured one: a steady step of a network allocates nothing that grows with its tensors, by
// any of the C library's functions, oneDNN's own calls included.
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "models/bnnet.h"
#include "models/lenet5.h"
#include "models/resnet.h"
#include "tests/training/training_support.h"

extern "C" {
void* __libc_malloc(std::size_t bytes);                           // NOLINT
void* __libc_calloc(std::size_t count, std::size_t bytes);        // NOLINT
void* __libc_realloc(void* data, std::size_t bytes);              // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT
void __libc_free(void* data);                                     // NOLINT
}

namespace {

std::atomic<bool> g_counting{false};
std::atomic<std::size_t> g_widest{0};      // the largest piece allocated since counting began
std::atomic<std::ptrdiff_t> g_live{0};     // of these, what is not freed
std::atomic<std::ptrdiff_t> g_largest{0};  // the largest g_live so far

void* CountAllocated(void* data, std::size_t bytes) {
  if (data == nullptr || !g_counting.load(std::memory_order_relaxed)) return data;
  for (std::size_t widest = g_widest; widest < bytes && !g_widest.compare_exchange_weak(widest, bytes);) {
  }
  const auto usable = static_cast<std::ptrdiff_t>(malloc_usable_size(data));
  const std::ptrdiff_t live = g_live += usable;
  std::ptrdiff_t largest = g_largest;
  while (largest < live && !g_largest.compare_exchange_weak(largest, live)) {
  }
  return data;
}

void CountFreed(void* data) {
  if (data != nullptr && g_counting.load(std::memory_order_relaxed)) {
    g_live -= static_cast<std::ptrdiff_t>(malloc_usable_size(data));
  }
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) noexcept { return CountAllocated(__libc_malloc(bytes), bytes); }
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return CountAllocated(__libc_calloc(count, bytes), count * bytes);
}
void* realloc(void* data, std::size_t bytes) noexcept {
  CountFreed(data);
  return CountAllocated(__libc_realloc(data, bytes), bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return CountAllocated(__libc_memalign(alignment, bytes), bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** data, std::size_t alignment, std::size_t bytes) noexcept {
  *data = memalign(alignment, bytes);
  return *data == nullptr ? ENOMEM : 0;
}
void free(void* data) noexcept {
  CountFreed(data);
  __libc_free(data);
}
}

namespace mpc::testing {
namespace {

struct Measured {
  std::size_t planned = 0;  ///< arena
  std::size_t held = 0;     ///< arena of the Executable
  std::size_t widest = 0;   ///< the largest piece allocated during a steady step, whether freed or not
  std::size_t live = 0;     ///< the most that a steady step holds at a time beyond what it began with
};

Measured MeasureStep(Model& model, const std::vector<Tensor>& columns) {
  Measured measured;
  const absl::StatusOr<runtime::Executable*> step = model.LoadTrainStep(columns);
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return measured;
  std::vector<absl::Span<const std::uint8_t>> inputs;
  for (const Tensor& column : columns) inputs.emplace_back(column.bytes().data(), column.bytes().size());
  // The first steps start threads and fill what libraries keep.
  for (int i = 0; i < 2; ++i) MPC_EXPECT_OK((*step)->Run(inputs));
  g_widest = 0;
  g_live = 0;
  g_largest = 0;
  g_counting = true;
  const absl::Status status = (*step)->Run(inputs);
  g_counting = false;
  MPC_EXPECT_OK(status);
  measured.widest = g_widest;
  measured.live = static_cast<std::size_t>(g_largest.load());
  measured.planned = (*step)->program().arena_bytes;
  measured.held = (*step)->memory().arena;
  return measured;
}

Measured MeasureNetwork(const std::string& name, const Level& level, std::int64_t batch) {
  SetSeed(7);
  const auto measure = [&](auto cell, auto loss, std::vector<Tensor> columns) {
    nn::Momentum optimizer(cell.TrainableParams(), {.learning_rate = 0.05});
    Model model(cell, loss, optimizer, {.amp_level = level.level, .amp_dtype = level.dtype});
    return MeasureStep(model, columns);
  };
  const nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  if (name == "lenet5") return measure(models::LeNet5(), loss, MakeBatch({1, 32, 32}, batch, 0, 10));
  if (name == "bnnet") return measure(models::BnNet(), loss, MakeBatch({1, 32, 32}, batch, 0, 10));
  return measure(models::ResNet18({.num_classes = 10, .stem = models::ResNetStem::kCifar, .width = 16}), loss,
                 MakeBatch({3, 16, 16}, batch, 0, 10));
}

class PlannedMemory : public ::testing::TestWithParam<Level> {};

TEST_P(PlannedMemory, IsWhatAStepHoldsAndASteadyStepAllocatesNothingThatGrows) {
  const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  for (const char* network : {"lenet5", "bnnet", "resnet18"}) {
    const Measured small = MeasureNetwork(network, GetParam(), 4);
    const Measured large = MeasureNetwork(network, GetParam(), 32);
    EXPECT_EQ(small.held, small.planned) << network;
    EXPECT_EQ(large.held, large.planned) << network;
    EXPECT_GT(large.planned, small.planned) << network;
    // The results of the first convolutions have more bytes at a batch of 32.
    EXPECT_LT(large.live, 64 * 1024u) << network;
    // Without AVX-512, oneDNN computes some convolutions as one product an image. Each of these products allocates a
    // buffer of 16,640 bytes and frees it.
    if (!has_avx512) continue;
    // oneDNN makes a table of arguments in each call, and a larger batch has more calls: an operation has up to 16
    // parts. No table has a KiB, and none grows with the tensors, which are eight times as large.
    EXPECT_LT(small.widest, 1024u) << network;
    EXPECT_LT(large.widest, 1024u) << network;
  }
  if (!has_avx512) GTEST_SKIP() << "needs AVX-512";
}

INSTANTIATE_TEST_SUITE_P(Levels, PlannedMemory,
                         ::testing::Values(Level{"O0", {}}, Level{"O2", DType::kF16}, Level{"O2", DType::kBF16}),
                         LevelName);

}  // namespace
}  // namespace mpc::testing
