// What a step tells beside its outputs. Not part of the public API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/module/graph_builder.h"
#include "frontend/graph/tensor.h"
#include "frontend/graph/traced_graph.h"

namespace mpc::internal {

/// An input of a step that holds class indices, which lie in [0, classes) or are `ignored`.
struct LabelInput {
  std::size_t input;
  std::int64_t classes;
  std::optional<std::int64_t> ignored;
};

/// Records and taps are results of the step. Label inputs are known once it is traced.
class StepReport {
 public:
  /// `requested` are the records that are made on request.
  StepReport(TracedGraph& graph, std::vector<std::string> requested)
      : graph_(graph), requested_(std::move(requested)) {}

  /// A scalar that the step reports under `name` ("gradient_norm", "finite"); of two records with one name the last
  /// counts. Fails in a function that is differentiated.
  void Record(std::string_view name, const Tensor& value);
  /// Whether this record, which is made on request only, was asked for.
  bool wants(std::string_view record) const;
  /// Returns `value`, which belongs to the step, under `name`. A name that is taken gets a number: "name#2".
  void AddTap(const std::string& name, const Tensor& value);
  /// Notes that `labels` are class indices of a loss, which has no value where one is outside [0, classes). If they are
  /// an input of the step, as it came in or reshaped, each batch can be checked before it runs. The loss leaves out
  /// labels that are `ignored`.
  void ExpectLabels(const Tensor& labels, std::int64_t classes, std::optional<std::int64_t> ignored = std::nullopt);

  const std::vector<LabelInput>& labels() const { return labels_; }
  /// Appends records, then taps.
  void AppendTo(std::vector<compiler::NamedResult>& results) const;

 private:
  TracedGraph& graph_;
  std::vector<std::string> requested_;
  std::vector<std::pair<std::string, Tensor>> records_;
  std::vector<std::pair<std::string, Tensor>> taps_;
  std::vector<LabelInput> labels_;
};

}  // namespace mpc::internal
