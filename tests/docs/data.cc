// The pipeline of several stages of docs/data.md.
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

absl::Status Run() {
  const data::Dataset digits = data::Digits(data::Split::kTrain);
  const auto is_small = [](const Tensor& label) { return label.Item<int>() < 5; };
  const auto swap = [](const data::Row& row) { return data::Row{row[1], row[0]}; };
  const std::vector<data::Dataset> parts = digits.Split({0.9, 0.1}, /*seed=*/1);
  const data::Dataset small_digits =
      parts[0].Filter(is_small, "label").Map({swap, swap}, {"image", "label"}, {.num_parallel_workers = 4}).Batch(32);
  return small_digits.size().status();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
