// The sources and the pipeline of several stages of docs/data.md.
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

absl::Status RunSources() {
  const data::Dataset shard = data::Digits(data::Split::kTrain, {.sampling = {.num_shards = 4, .shard_id = 1}});
  const auto square = [](std::int64_t i) { return data::Row{Tensor::Scalar(static_cast<float>(i * i))}; };
  const data::Dataset squares =
      data::GeneratorDataset(square, 100, {"x"}, {.sampler = data::RandomSampler(/*seed=*/1)});
  return shard.Zip({squares}).size().status();
}

absl::Status RunShare(const data::Dataset& train_set) {
  const data::ShareOfUpdates share{.micro_batches = 4, .rank = 1, .ranks = 2};
  absl::StatusOr<std::unique_ptr<data::ShareIterator>> batches = train_set.NewShareIterator(/*epoch=*/0, share);
  return batches.status();
}

absl::Status Run() {
  const data::Dataset digits = data::Digits(data::Split::kTrain);
  const auto is_small = [](const Tensor& label) { return label.Item<int>() < 5; };
  const auto swap = [](const data::Row& row) { return data::Row{row[1], row[0]}; };
  const std::vector<data::Dataset> parts = digits.Split({0.9, 0.1}, /*seed=*/1);
  const data::Dataset small_digits =
      parts[0].Filter(is_small, "label").Map({swap, swap}, {"image", "label"}, {.num_parallel_workers = 4}).Batch(32);
  if (absl::Status status = small_digits.size().status(); !status.ok()) return status;
  if (absl::Status status = RunShare(small_digits); !status.ok()) return status;
  return RunSources();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
