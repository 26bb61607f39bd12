// The CPU kernels: created once for fixed shapes, types and attributes, then run on raw pointers in every step.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"
#include "kernels/kernel_spec.h"
#include "kernels/weight_packing.h"

namespace mpc::cpu {

/// Row-major storage, 64-byte aligned. State-update kernels may be given an output equal to the matching input.
struct KernelOperands {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;
  /// The processes that train together. Collective kernels of several processes need it, others do not look at it.
  Communicator* communicator = nullptr;
};

/// Bytes rounded up to whole cache lines, where a part of a workspace may begin.
constexpr std::size_t CacheLines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch memory that `Run` needs; part of the planned peak.
  virtual std::size_t workspace_bytes() const { return 0; }
  /// Allocates nothing, creates nothing, fails never. A collective kernel may find that a process has gone. It leaves
  /// its results undefined then, and operands.communicator->status() says why.
  virtual void Run(const KernelOperands& operands) = 0;
  /// Which of several implementations this is, in the form of KernelOptions::choice; empty where there is only one.
  virtual std::string choice() const { return ""; }
  /// How this kernel packs its weight in every run. A kernel made for a spec with that `weight_layout` is given the
  /// packed weight. Nothing where the kernel takes the weight as it lies.
  virtual std::optional<WeightPacking> packing() const { return std::nullopt; }
};

/// How a kernel is made where its operation has several implementations. By default rules of shape and processor
/// choose.
struct KernelOptions {
  /// The choice of an earlier plan for this very spec. It is used or refused, never replaced. For a packed weight the
  /// spec itself has the choice.
  std::string choice = {};
  bool allow_winograd = false;  ///< rules and tuning may choose "winograd", which rounds more: docs/tuning.md
};

/// Creates the kernel of `spec`. Errors: UNIMPLEMENTED for an operation or type without a CPU kernel, naming both.
/// INTERNAL where a oneDNN primitive would fall back to its reference loop. FAILED_PRECONDITION for a choice or a
/// weight layout that this processor, shape or version of oneDNN does not offer.
absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const KernelSpec& spec, const KernelOptions& options = {});

/// The choices that tuning measures for `spec`, that of the rules first. There is at most one where nothing is to be
/// chosen. `options.choice` is ignored.
std::vector<std::string> CandidateChoices(const KernelSpec& spec, const KernelOptions& options = {});

/// True if several instructions of kernel `name` may become one call. They must follow each other, agree in types and
/// attributes, and be independent. The optimizers do so: one parallel region serves all parameters. Collectives do so
/// with those whose message they may share (kernels/collective.h): one message has all operands.
bool MayGroup(std::string_view name);

/// One kernel for all of `specs`, which agree in name, attributes, types and used results, not in shapes. Those of one
/// message need not agree in name and types. Its operands are those of the first spec, then those of the second, and so
/// on. Its results are bit for bit those of separate calls. It needs no workspace. Errors: INVALID_ARGUMENT without
/// specs; UNIMPLEMENTED where the kernel is not grouped or lacks a type.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupKernel(absl::Span<const KernelSpec> specs);

/// Every mnemonic that has a CPU kernel, sorted.
std::vector<std::string_view> KernelNames();

/// True if output `output` of kernel `name` may share storage with input `input`. This holds for state updates, and for
/// element-wise kernels that read each element before they write it.
bool MayAlias(std::string_view name, std::size_t output, std::size_t input);

/// Threads of loops; bits do not depend on them. Default: OMP_NUM_THREADS, else UsableProcessors().
void SetNumThreads(int threads);
int NumThreads();

}  // namespace mpc::cpu
