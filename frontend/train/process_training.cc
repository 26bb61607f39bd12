#include "frontend/train/process_training.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::internal {

absl::Status ProcessTraining::SendNumber(std::int64_t& number) const {
  return size() == 1 ? absl::OkStatus() : processes_->Broadcast(&number, sizeof(number), 0);
}

absl::Status ProcessTraining::CompareSettings(const std::vector<std::string>& settings) const {
  if (size() == 1) return absl::OkStatus();
  const auto ranks = static_cast<std::size_t>(size());
  // Texts of all ranks have the length of the longest.
  std::string own = absl::StrJoin(settings, "\n");
  std::vector<std::int64_t> lengths(ranks);
  const auto length = static_cast<std::int64_t>(own.size());
  if (absl::Status status = processes_->AllGather(&length, lengths.data(), sizeof(length)); !status.ok()) return status;
  own.resize(static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end())), '\n');
  std::string all(own.size() * ranks, '\0');
  if (absl::Status status = processes_->AllGather(own.data(), all.data(), own.size()); !status.ok()) return status;
  const auto lines = [&](std::size_t rank) {
    std::vector<std::string> text;
    std::string line;
    for (char character : all.substr(rank * own.size(), own.size())) {
      if (character != '\n') {
        line += character;
        continue;
      }
      text.push_back(line);
      line.clear();
    }
    text.push_back(line);
    return text;
  };
  const std::vector<std::string> first = lines(0);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    const std::vector<std::string> other = lines(rank);
    for (std::size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
      const std::string of_first = i < first.size() ? first[i] : "";
      const std::string of_other = i < other.size() ? other[i] : "";
      if (of_first == of_other) continue;
      return absl::InvalidArgumentError(absl::StrCat("processes that train together differ: rank 0 has \"", of_first,
                                                     "\", rank ", rank, " has \"", of_other, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status ProcessTraining::SendState(const std::vector<Parameter>& state) const {
  if (size() == 1) return absl::OkStatus();
  for (Parameter entry : state) {
    const absl::StatusOr<Tensor> value = entry.Value();
    if (!value.ok()) return value.status();
    std::vector<std::uint8_t> bytes(value->bytes().begin(), value->bytes().end());
    if (absl::Status status = processes_->Broadcast(bytes.data(), bytes.size(), 0); !status.ok()) return status;
    if (is_first()) continue;
    const Tensor sent = Tensor::FromBytes(value->spec(), bytes.data(), bytes.size());
    if (absl::Status status = entry.SetData(sent); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ProcessTraining::AgreeOnStop(RunContext& context) const {
  if (size() == 1) return absl::OkStatus();
  std::int32_t wish = context.interrupted() ? 2 : context.stop_requested() ? 1 : 0;
  ReducedPart part;
  part.input = part.output = &wish;
  part.elements = 1;
  part.dtype = DType::kI32;
  part.reduction = Reduction::kMax;
  if (absl::Status status = processes_->AllReduce({&part, 1}); !status.ok()) return status;
  if (wish >= 1) context.RequestStop();
  if (wish >= 2) context.Interrupt();
  return absl::OkStatus();
}

absl::Status ProcessTraining::SendLearningRates(TrainedModel& model) const {
  if (size() == 1) return absl::OkStatus();
  const absl::StatusOr<std::vector<TrainedModel::RateGroup>> groups = model.LearningRates();
  if (!groups.ok()) return groups.status();
  std::vector<double> rates;
  for (const TrainedModel::RateGroup& group : *groups) rates.push_back(group.learning_rate.value_or(0));
  absl::Status status = processes_->Broadcast(rates.data(), rates.size() * sizeof(double), 0);
  for (std::size_t i = 0; status.ok() && i < rates.size() && !is_first(); ++i) {
    if ((*groups)[i].learning_rate.has_value()) status = model.SetLearningRate(i, rates[i]);
  }
  return status;
}

}  // namespace mpc::internal
