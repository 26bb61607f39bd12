// The device memory of one Program: its arena, its constants, and the copies of its state entries. The copies are
// shared with the other Programs of the Model, the arena with all Programs of the GPU.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/device_step.h"
#include "runtime/program.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {

class ProgramMemory {
 public:
  /// Allocates what is missing. `staging_bytes` will be asked for later and must be free too. Errors:
  /// RESOURCE_EXHAUSTED with what is planned and what is free; FAILED_PRECONDITION for an entry that lives on another
  /// device.
  static absl::StatusOr<ProgramMemory> Create(const std::shared_ptr<CudaContext>& context, const Program& program,
                                              const StateEntries& entries, std::size_t staging_bytes);

  const DeviceAddresses& addresses() const { return addresses_; }

 private:
  std::shared_ptr<DeviceMemory> arena_;
  DeviceMemory constants_;
  DeviceAddresses addresses_;
};

/// The error for memory that cannot be had. It says what `program` plans, what is free and what arenas of other
/// Programs hold, and `reason` where CUDA gave one.
absl::Status MemoryExhausted(CudaContext& context, const Program& program, std::size_t staging_bytes,
                             std::string_view reason);

}  // namespace mpc::runtime
