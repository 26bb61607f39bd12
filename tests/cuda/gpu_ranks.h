// Processes with an emulated GPU each, as threads of one process. When they end, nothing may be left or misused.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/distributed/any_order_communicator.h"
#include "tests/cuda/emulated_api.h"
#include "tests/cuda/emulated_nccl.h"
#include "tests/runtime/on_threads.h"
#include "tests/runtime/thread_communicator.h"

namespace mpc::runtime {

/// What is unlike in the processes of a test.
struct GpuRankOptions {
  std::string id;                  ///< of its GPU
  std::string version = "2.28.9";  ///< of its NCCL
  absl::Status missing = {};       ///< why it has no NCCL
  emulation::Schedule schedule = emulation::Schedule::kLate;
  /// Makes the kernels of its Programs.
  std::function<absl::StatusOr<std::unique_ptr<cuda::Kernel>>(emulation::EmulatedApi& api, const KernelSpec& spec,
                                                              const cuda::KernelContext& context)>
      make_kernel = [](auto&, const auto& spec, const auto& context) { return cuda::CreateKernel(spec, context); };
};

/// One process.
struct GpuRank {
  GpuRank(emulation::NcclNetwork& network, std::unique_ptr<Communicator> group, const GpuRankOptions& options)
      : processes(std::move(group)),
        api({.schedule = options.schedule, .id = options.id, .polls_advance = true}),
        nccl(network, api, processes->rank(), options.version) {
    absl::StatusOr<std::unique_ptr<CudaDevice>> opened = CudaDevice::Open(
        api, {.use_libraries = false,
              .make_kernel = [this, make = options.make_kernel](
                                 const auto& spec, const auto& context) { return make(api, spec, context); },
              .nccl = [this, missing = options.missing]() -> absl::StatusOr<NcclApi*> {
                if (!missing.ok()) return missing;
                return &nccl;
              }});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) device = *std::move(opened);
  }
  ~GpuRank() {
    device.reset();
    EXPECT_EQ(nccl.alive(), 0u);
    EXPECT_THAT(api.Problems(), testing::IsEmpty());
    EXPECT_THAT(api.StrayCalls(), testing::IsEmpty());
    EXPECT_THAT(api.Alive(), testing::IsEmpty());
  }
  GpuRank(const GpuRank&) = delete;
  GpuRank& operator=(const GpuRank&) = delete;

  int rank() const { return processes->rank(); }
  int size() const { return processes->size(); }
  /// Lets sums have NCCL's own order from now on.
  void AddInAnyOrder() { processes = std::make_shared<distributed::AnyOrderCommunicator>(std::move(processes)); }
  /// Says goodbye to the others, as a process that ends does.
  void Leave() { processes.reset(); }

  std::shared_ptr<Communicator> processes;
  emulation::EmulatedApi api;
  emulation::EmulatedNccl nccl;
  std::unique_ptr<CudaDevice> device;
};

/// Runs `body` for each of `size` processes. `options_of` says what is unlike in a rank.
inline void OnGpus(
    int size, const std::function<void(GpuRank&)>& body, std::chrono::milliseconds timeout = std::chrono::seconds(60),
    const std::function<void(int rank, GpuRankOptions& options)>& options_of = [](int, GpuRankOptions&) {}) {
  const auto group = std::make_shared<test::ThreadGroup>(size, timeout);
  emulation::NcclNetwork network(size);
  test::OnThreads(size, [&](int rank) {
    GpuRankOptions options{.id = absl::StrCat("GPU-", rank)};
    options_of(rank, options);
    GpuRank gpu(network, group->Join(rank), options);
    body(gpu);
  });
  EXPECT_THAT(network.Problems(), testing::IsEmpty());
}

}  // namespace mpc::runtime
