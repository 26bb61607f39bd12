#include "compiler/interpreter/process_grid.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"

namespace mpc {

using reference::Tensor;

std::vector<Tensor> ProcessGrid::collect(int64_t rank, const Tensor &own) {
  given[size_t(rank)] = own;
  rendezvous.arrive_and_wait();
  std::vector<Tensor> all = given;
  // Nobody may give the next tensor before everybody has read this one.
  rendezvous.arrive_and_wait();
  return isBroken ? std::vector<Tensor>() : all;
}

void ProcessGrid::leave() {
  isBroken = true;
  rendezvous.arrive_and_drop();
}

// ((0 + 1) + (2 + 3)) + ...
static Tensor sumOf(absl::Span<const Tensor> terms, reference::Rounding rounding) {
  if (terms.size() == 1)
    return terms.front();
  Tensor sum = sumOf(terms.first(terms.size() / 2), rounding);
  Tensor upper = sumOf(terms.subspan(terms.size() / 2), rounding);
  for (auto [total, term] : llvm::zip_equal(sum.values, upper.values))
    total += term;
  reference::Round(sum, rounding);
  return sum;
}

absl::StatusOr<std::vector<double>> runCollective(std::string_view name, int64_t rank, absl::Span<const Tensor> gave,
                                                  reference::Rounding rounding) {
  if (name == "process_rank")
    return std::vector<double>{double(rank)};
  if (name == "all_reduce")
    return sumOf(gave, rounding).values;
  std::vector<double> result = gave.front().values;
  for (const Tensor &other : gave.subspan(1)) {
    if (name == "all_gather")
      llvm::append_range(result, other.values);
    else if (name == "all_reduce_max")
      for (auto [largest, value] : llvm::zip_equal(result, other.values))
        largest = std::max(largest, value);
    else
      return absl::NotFoundError(absl::StrCat("'", std::string(name), "' is no collective operation"));
  }
  return result;
}

} // namespace mpc
