// A graph compiled once and bound to several sets of tensors, so that a run finds none of its own in the caches.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/executable.h"
#include "tools/mpc-bench/op_graphs.h"

namespace mpc::tools {

/// How many sets of tensors are used in turn.
struct BufferChoice {
  std::int64_t sets = 0;        ///< 0: as many as `footprint` takes, at most 64
  std::size_t footprint = 0;    ///< bytes that all sets together should have
  std::size_t most = SIZE_MAX;  ///< bytes that they may have; one set may have more
};

class OpProgram {
 public:
  /// On the CPU, by the compiler's default pipeline at O0. Instructions that offer `kernel_choice` take it, others what
  /// the rules choose. Errors: those of the graph's operations for this shape and type, and of compiling it.
  static absl::StatusOr<OpProgram> Make(const OpGraph& graph, const Shape& shape, DType dtype, bool fusion,
                                        const BufferChoice& choice, const std::string& kernel_choice = "");

  /// Runs the graph once, on the next set of tensors.
  absl::Status Run();

  /// What a run must at least read and write: each argument once, each result once.
  std::size_t bytes() const { return bytes_; }
  std::size_t instructions() const { return program_->step().instructions.size(); }
  std::size_t sets() const { return steps_.size(); }
  /// The kernels that --tune chooses among, of the first instruction that has several. That of the rules is the first.
  /// Empty where no instruction has several.
  const std::vector<std::string>& kernel_choices() const { return kernel_choices_; }
  /// Bytes of all sets: arguments, results, temporaries.
  std::size_t footprint() const;

 private:
  std::shared_ptr<const runtime::Program> program_;
  std::vector<std::unique_ptr<runtime::Executable>> steps_;
  std::vector<std::string> kernel_choices_;
  std::size_t bytes_ = 0;
  std::size_t next_ = 0;
};

}  // namespace mpc::tools
