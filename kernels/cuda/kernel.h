// The CUDA kernels: created once for fixed shapes, types and attributes, then enqueued on raw device pointers in every
// step. No CUDA header: the runtime, the libraries and the emulation all speak this language.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel_spec.h"

namespace mpc::cuda {

/// The properties of a device that choices depend on. The defaults are an H200's.
struct Target {
  int compute_capability = 90;  ///< 80 for sm_80
  int multiprocessors = 132;
};

/// A kernel that a queue can start. `call` is set where the kernel is host code (the emulation): it runs one thread.
struct KernelFunction {
  const void* entry = nullptr;
  void (*call)(const void* entry, const void* const* arguments) = nullptr;
  /// Whether each of its threads waits by itself for what was enqueued before, before it touches memory. It may then be
  /// started early (programmatic dependent launch; nothing before compute capability 9.0).
  bool awaits_earlier = false;
};

/// Threads are one-dimensional inside a block; `shared_bytes` is what dynamic_shared<T>() returns room for.
struct LaunchShape {
  unsigned blocks_x = 1;
  unsigned blocks_y = 1;
  unsigned blocks_z = 1;
  unsigned threads = 256;
  std::size_t shared_bytes = 0;
};

/// One argument by value, in the order of the kernel's parameters.
struct KernelArgument {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// The queue that kernels are enqueued on: a stream, a stream that records a graph, or the emulation. Work runs in the
/// order it was enqueued. Arguments are copied before the call returns. Pointers are to device memory and stay valid
/// for every replay.
class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  virtual absl::Status Launch(const KernelFunction& function, const LaunchShape& shape,
                              absl::Span<const KernelArgument> arguments) = 0;
  /// Copies within device memory. The ranges do not overlap.
  virtual absl::Status Copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual absl::Status Fill(void* to, std::uint8_t byte, std::size_t bytes) = 0;
  /// The cudaStream_t of library calls; null in the emulation.
  virtual void* stream() = 0;
};

/// Row-major storage, 64-byte aligned (allocations are 256-byte aligned, tensors in the arena 64). An output that
/// MayAlias an input may be given its address; an unused output is null.
struct KernelOperands {
  const void* const* inputs;
  void* const* outputs;
  void* workspace;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch device memory that `Enqueue` needs; part of the planned peak.
  virtual std::size_t workspace_bytes() const { return 0; }
  /// Starts the kernel's work. Allocates nothing, creates nothing, reads nothing back, waits for nothing: it may be
  /// recorded once and replayed. Whatever changes from step to step is read from device memory by the kernel itself.
  virtual absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) = 0;
  /// Which of several implementations or algorithms this is, in the form that CreateKernel accepts; empty where there
  /// is only one.
  virtual std::string choice() const { return ""; }
};

/// The vendor's libraries on one device; null fields where there is no device (a Program is only being planned).
struct LibraryHandles {
  void* cublas_lt = nullptr;  ///< cublasLtHandle_t
  void* cudnn = nullptr;      ///< cudnnHandle_t
};

/// The device, limits and choice that a kernel is created for.
struct KernelContext {
  Target target;
  bool use_libraries = true;  ///< false: own kernels only (the emulation, or a debugging aid)
  bool allow_tf32 = false;
  std::size_t workspace_cap = std::size_t{256} << 20;  ///< most bytes of one instruction's workspace
  LibraryHandles handles;
  std::string choice;  ///< an earlier plan's choice for this very spec: it is used or refused, never replaced
};

/// Creates the kernel of `spec`. Errors: UNIMPLEMENTED for an operation or type without a CUDA kernel, naming both.
/// FAILED_PRECONDITION for a choice that these libraries or this device do not offer.
absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const KernelSpec& spec, const KernelContext& context);

/// True if several instructions of kernel `name` may become one launch. They must follow each other, agree in types and
/// attributes, and be independent. The optimizers do so: one launch serves all parameters.
bool MayGroup(std::string_view name);

/// One kernel for all of `specs`, which agree in name, attributes, types and used results, not in shapes. Its operands
/// are those of the first spec, then those of the second, and so on.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupKernel(absl::Span<const KernelSpec> specs,
                                                          const KernelContext& context);

/// The choices that tuning measures for `spec`, the heuristic one first; empty where there is one implementation only.
absl::StatusOr<std::vector<std::string>> CandidateChoices(const KernelSpec& spec, const KernelContext& context);

/// The key of `spec` in a choice table: "conv2d(tensor<..>,tensor<..>)->(tensor<..>){strides=[1,1],...}".
std::string ChoiceKey(const KernelSpec& spec);

/// Every mnemonic that has a CUDA kernel, sorted.
std::vector<std::string_view> KernelNames();

/// True if output `output` of kernel `name` may share storage with input `input`.
bool MayAlias(std::string_view name, std::size_t output, std::size_t input);

}  // namespace mpc::cuda
