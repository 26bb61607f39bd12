// The CUDA runtime on an emulated GPU, for tests: when it goes, nothing may be left or have been misused.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "runtime/cuda/cuda_device.h"
#include "tests/cuda/emulated_api.h"

namespace mpc::runtime {

/// Declared before the stores and executables that use it.
struct EmulatedDevice {
  explicit EmulatedDevice(emulation::EmulatedGpu gpu = {}) : api(std::move(gpu)) {
    absl::StatusOr<std::unique_ptr<CudaDevice>> opened = CudaDevice::Open(api, {.use_libraries = false});
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) device = *std::move(opened);
  }
  ~EmulatedDevice() {
    device.reset();
    EXPECT_THAT(api.Problems(), testing::IsEmpty());
    EXPECT_THAT(api.StrayCalls(), testing::IsEmpty());
    EXPECT_THAT(api.Alive(), testing::IsEmpty());
  }
  const CudaDevice& operator*() const { return *device; }
  const CudaDevice* operator->() const { return device.get(); }

  emulation::EmulatedApi api;
  std::unique_ptr<CudaDevice> device;
};

}  // namespace mpc::runtime
