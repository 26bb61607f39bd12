// Reshape, transpose, broadcast, the sum over one process, and the index arithmetic of broadcasting.
#include "kernels/reference/functions.h"

namespace mpc::reference {

std::vector<std::size_t> BroadcastIndices(const Shape& from, const Shape& to) {
  const Shape from_strides = RowMajorStrides(from);
  const Shape to_strides = RowMajorStrides(to);
  const std::size_t missing = to.size() - from.size();
  std::vector<std::size_t> indices(static_cast<std::size_t>(NumElements(to)));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::int64_t index = 0;
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
      const std::size_t to_axis = axis + missing;
      const std::int64_t position = static_cast<std::int64_t>(i) / to_strides[to_axis] % to[to_axis];
      if (from[axis] != 1) index += position * from_strides[axis];
    }
    indices[i] = static_cast<std::size_t>(index);
  }
  return indices;
}

namespace {

void SameElements(const Attributes&, Inputs inputs, Outputs outputs) { outputs[0].values = inputs[0].values; }

void Transpose(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<std::int64_t> permutation = attributes.GetInts("permutation");
  const Shape& to = outputs[0].spec.shape;
  const Shape to_strides = RowMajorStrides(to);
  const Shape from_strides = RowMajorStrides(inputs[0].spec.shape);
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    std::int64_t index = 0;
    for (std::size_t axis = 0; axis < to.size(); ++axis) {
      const std::int64_t position = static_cast<std::int64_t>(i) / to_strides[axis] % to[axis];
      index += position * from_strides[static_cast<std::size_t>(permutation[axis])];
    }
    outputs[0].values[i] = inputs[0].values[static_cast<std::size_t>(index)];
  }
}

void BroadcastTo(const Attributes&, Inputs inputs, Outputs outputs) {
  const std::vector<std::size_t> indices = BroadcastIndices(inputs[0].spec.shape, outputs[0].spec.shape);
  for (std::size_t i = 0; i < indices.size(); ++i) outputs[0].values[i] = inputs[0].values[indices[i]];
}

constexpr NamedFunction kTable[] = {
    {"reshape", SameElements},
    {"transpose", Transpose},
    {"broadcast_to", BroadcastTo},
    // Of one process; mpc::interpretProcesses runs several.
    {"all_gather", SameElements},
    {"all_reduce", SameElements},
    {"all_reduce_max", SameElements},
};

}  // namespace

FunctionTable DataMovementFunctions() { return kTable; }

}  // namespace mpc::reference
