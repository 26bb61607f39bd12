#include "frontend/graph/cell_calls.h"

#include <algorithm>
#include <utility>

#include "frontend/graph/tensor_node.h"

namespace mpc::internal {

bool operator==(const CallRequest& a, const CallRequest& b) {
  return a.cell == b.cell && a.settings == b.settings && a.precision == b.precision &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), SameValue);
}

std::size_t CellCalls::Begin(CallRequest request, std::int64_t first_call_site, std::size_t first_state_use) {
  const std::size_t number = calls_.size() + 1;
  calls_.push_back({.request = std::move(request),
                    .first_call_site = first_call_site,
                    .first_state_use = first_state_use,
                    .number = number});
  return number;
}

void CellCalls::End(std::size_t number, const std::vector<Tensor>& outputs, std::size_t end_state_use) {
  CellCall& call = calls_[number - 1];
  call.outputs = outputs;
  call.end_state_use = end_state_use;
  call.last = calls_.size();
}

std::vector<CellCall*> CellCalls::Find(const CallRequest& request) {
  std::vector<CellCall*> found;
  for (CellCall& call : calls_) {
    if (!call.replaced && call.request == request) found.push_back(&call);
  }
  return found;
}

}  // namespace mpc::internal
