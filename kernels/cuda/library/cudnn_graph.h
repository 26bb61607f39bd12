// A cuDNN operation graph and the engine that runs it. Engines are named as cuDNN's own tools name them:
// "eng51_k2=1_k13=0" is engine 51 with two knobs. With a handle the engine is built for the device behind it. Without
// one it is chosen for the architecture in the context and cannot run.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/kernel.h"
#include "kernels/tensor_spec.h"

namespace cudnn_frontend {
enum class DataType_t;  // NOLINT(readability-identifier-naming): the name is cuDNN's
namespace graph {
class Graph;
}  // namespace graph
}  // namespace cudnn_frontend

namespace mpc::cuda {

/// cuDNN's name of f32, f16 or bf16. Other types have none here and give FLOAT.
cudnn_frontend::DataType_t CudnnType(DType dtype);

class CudnnGraph {
 public:
  /// Adds tensors and operations to an empty graph whose data type, f32 intermediates and f32 arithmetic are set.
  /// Tensors in memory have the identifiers 1, 2, ... without gaps.
  using Operations = std::function<void(cudnn_frontend::graph::Graph&)>;

  /// Errors: UNIMPLEMENTED where cuDNN cannot express this graph, with its reason; INTERNAL for gaps in the
  /// identifiers. Without a handle, those of describing the architecture.
  static absl::StatusOr<std::unique_ptr<CudnnGraph>> Create(const KernelContext& context, DType dtype,
                                                            const Operations& operations);
  ~CudnnGraph();

  /// At most `limit` engines, in the order of the heuristic. They keep the numerics contract (f32 sums, equal bits in
  /// every run, no TF32 unless allowed) and the context's cap on workspace. Empty where no engine keeps them. Errors
  /// (UNIMPLEMENTED): cuDNN's heuristic fails for this graph.
  absl::StatusOr<std::vector<std::string>> Engines(std::size_t limit);

  /// Takes `engine`, or the heuristic's best where it is empty. Errors: UNIMPLEMENTED if no engine is left;
  /// FAILED_PRECONDITION for an engine that is not offered here, breaks the contract or needs more workspace. After an
  /// error the graph may hold the refused engine until another Choose.
  absl::Status Choose(std::string_view engine);

  /// Finalises the plan of the last Choose where Choose did not. That is so without a handle, for an engine that is
  /// compiled at run time. workspace_bytes() may grow, and no cap is checked. Errors (UNIMPLEMENTED): cuDNN refuses it,
  /// or the driver's library takes no code.
  absl::Status Build();

  const std::string& engine() const;    ///< the engine of the last Choose; empty before it
  std::size_t workspace_bytes() const;  ///< workspace of that engine, with room to align it; 0 before it
  /// Valid after Choose. Numerical notes of the chosen engine, as cuDNN spells them without prefix: "TENSOR_CORE".
  std::vector<std::string> notes() const;

  /// Enqueues the graph on the queue's stream; valid after Choose. `tensors`: device pointers in the order of their
  /// identifiers. `workspace` has workspace_bytes() bytes of any alignment. Errors: FAILED_PRECONDITION without a
  /// handle; INTERNAL where cuDNN refuses.
  absl::Status Run(absl::Span<void* const> tensors, void* workspace, LaunchQueue& queue) const;

 private:
  struct State;
  explicit CudnnGraph(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mpc::cuda
