#include "frontend/graph/cell_calls.h"

#include <algorithm>

#include "frontend/graph/tensor_node.h"

namespace mpc::internal {

bool CellCall::IsPlainCallOf(const nn::Cell* called, const std::vector<Tensor>& given) const {
  return cell == called && !replaced && std::equal(inputs.begin(), inputs.end(), given.begin(), given.end(), SameValue);
}

std::size_t CellCalls::Begin(const nn::Cell* cell, const std::vector<Tensor>& inputs, std::int64_t first_call_site) {
  const std::size_t number = calls_.size() + 1;
  calls_.push_back({.cell = cell, .inputs = inputs, .first_call_site = first_call_site, .number = number});
  return number;
}

void CellCalls::End(std::size_t number, const std::vector<Tensor>& outputs) {
  CellCall& call = calls_[number - 1];
  call.outputs = outputs;
  call.last = calls_.size();
}

const CellCall* CellCalls::Find(const nn::Cell* cell, const std::vector<Tensor>& inputs) const {
  if (cell == nullptr) return nullptr;
  for (const CellCall& call : calls_) {
    if (call.IsPlainCallOf(cell, inputs)) return &call;
  }
  return nullptr;
}

}  // namespace mpc::internal
