// Instructions whose kernel is code that the Program carries: "generated.<name>".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/program.h"

namespace mpc::runtime {

inline constexpr std::string_view kGeneratedPrefix = "generated.";

// Attributes of such an instruction. Lists have an entry for each stage.
inline constexpr char kBlocksAttribute[] = "blocks";
inline constexpr char kThreadsAttribute[] = "threads";
inline constexpr char kSharedBytesAttribute[] = "shared_bytes";
/// A list of pairs: an output, and the input that it may be written over.
inline constexpr char kAliasesAttribute[] = "aliases";
/// Elements times operations. It decides whether threads are worth starting on the CPU.
inline constexpr char kWorkAttribute[] = "work";
/// What the kernel computes, for reports: "relu_grad, batch_norm_train_grad".
inline constexpr char kOperationsAttribute[] = "operations";

/// True for instructions whose kernel is in a code blob.
bool IsGenerated(std::string_view kernel);

/// One function of a generated kernel: called once a block on the CPU, one launch on a GPU.
struct GeneratedStage {
  std::string function;  ///< "<name>_0", "<name>_1", ...
  std::int64_t blocks = 1;
  std::int64_t threads = 1;       ///< threads of a block
  std::int64_t shared_bytes = 0;  ///< shared memory of a block
};

/// Up to here a stage's shared memory is static in its code. A launch asks for what is more, all of it.
inline constexpr std::int64_t kMostStaticSharedBytes = 48 << 10;

/// The stages of `instruction`, in the order in which they run. Errors (INVALID_ARGUMENT): lists that are missing or
/// differ in length; no positive number of blocks; threads or shared memory beyond what a GPU has.
absl::StatusOr<std::vector<GeneratedStage>> StagesOf(const Instruction& instruction);

/// True if the code of `instruction` may write `output` over `input`.
bool GeneratedMayAlias(const Instruction& instruction, std::size_t output, std::size_t input);

}  // namespace mpc::runtime
