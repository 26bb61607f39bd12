// A Program bound to a StateStore on a device, ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/program.h"
#include "runtime/state_store.h"

namespace mpc::runtime {

/// Runs one Program. Not thread-safe. Holds its state entries alive.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Runs one step, after rebuilding derived state whose source changed without it: a write by the host, a Program that
  /// updates the source alone. `inputs` are in the order of Program::inputs, each of exactly its size; they are copied
  /// before the step begins. Inside the step nothing is allocated, looked up by name or created. Errors
  /// (INVALID_ARGUMENT): a wrong number or size of inputs.
  virtual absl::Status Run(absl::Span<const absl::Span<const std::uint8_t>> inputs) = 0;

  /// Output `index` of the last run (order of Program::outputs). Valid until the next run.
  virtual absl::Span<const std::uint8_t> output(std::size_t index) const = 0;

  virtual const Program& program() const = 0;
};

/// What the compiler asks of a device while it plans, and how a Program becomes runnable.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  /// Scratch bytes of one instruction. Errors: the device has no such kernel.
  virtual absl::StatusOr<std::size_t> WorkspaceBytes(const Program& program, const Instruction& instruction) const = 0;
  /// True if the kernel may write `output` over `input`.
  virtual bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const = 0;
  /// Creates kernels, allocates the arena, binds state entries by name. Errors: NOT_FOUND or INVALID_ARGUMENT for a
  /// missing, misshapen or uninitialised entry (all are listed); FAILED_PRECONDITION for a missing processor feature;
  /// RESOURCE_EXHAUSTED with the planned peak where memory cannot be had.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program> program,
                                                           const StateStore& state) const = 0;
};

/// The device called `name`: "cpu". Errors (NOT_FOUND or UNAVAILABLE): what was given, what exists, why it is missing.
absl::StatusOr<const Device*> GetDevice(std::string_view name);

}  // namespace mpc::runtime
