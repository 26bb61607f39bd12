#include "frontend/graph/emit.h"

#include "frontend/graph/eager.h"
#include "frontend/graph/trace.h"

namespace mpc::internal {

std::vector<Tensor> EmitAll(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes,
                            std::optional<DType> result_dtype) {
  if (Trace* trace = Trace::Current()) return trace->Emit(op, operands, attributes, result_dtype);
  return RunOperation(op, operands, attributes, result_dtype);
}

Tensor Emit(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes) {
  return EmitAll(op, operands, attributes)[0];
}

Tensor FailWith(const std::string& message, const Shape& shape) {
  if (Trace* trace = Trace::Current()) {
    trace->Fail(message);
    return trace->Poison(shape);
  }
  return ErrorTensor(absl::InvalidArgumentError(message));
}

}  // namespace mpc::internal
