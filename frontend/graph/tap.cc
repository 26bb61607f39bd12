#include "frontend/graph/tap.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "frontend/graph/step_results.h"
#include "frontend/graph/trace.h"

namespace mpc {

Tensor Tap(const std::string& name, const Tensor& tensor) {
  auto* trace = internal::Trace::Current();
  if (trace != nullptr && !tensor.concrete()) trace->Tap(absl::StrCat(internal::kTapPrefix, name), tensor);
  return tensor;
}

namespace ops {

Tensor Print(const Tensor& tensor, const std::string& message) {
  auto* trace = mpc::internal::Trace::Current();
  if (trace != nullptr && !tensor.concrete()) {
    trace->Tap(absl::StrCat(mpc::internal::kPrintPrefix, message), tensor);
  } else {
    std::cout << message << tensor << std::endl;
  }
  return tensor;
}

}  // namespace ops
}  // namespace mpc
