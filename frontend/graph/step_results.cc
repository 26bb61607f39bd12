#include "frontend/graph/step_results.h"

#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "frontend/graph/compiled_step.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/state_record.h"

namespace mpc::internal {

absl::Status StepResults::status() const {
  // The error of a step without outputs is known when all steps have ended.
  if (step_->program().outputs.empty()) return step_->executable_->Wait();
  return step_->executable_->OutputOfStep(number_, 0).status();
}

Tensor StepResults::Output(std::size_t index) const {
  const runtime::NamedValue& output = step_->program().outputs[index];
  const absl::StatusOr<absl::Span<const std::uint8_t>> bytes = step_->executable_->OutputOfStep(number_, index);
  if (!bytes.ok()) return MakeInvalid(bytes.status());
  return Tensor::FromBytes(step_->program().values[output.value].spec, bytes->data(), bytes->size());
}

Tensor StepResults::Tap(std::string_view name) const {
  const std::string record = absl::StrCat(kTapPrefix, std::string(name));
  const std::vector<runtime::NamedValue>& outputs = step_->program().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == record) return Output(i);
  }
  return {};
}

std::optional<double> StepResults::Record(std::string_view name) const {
  const std::vector<runtime::NamedValue>& outputs = step_->program().outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name != name) continue;
    const absl::StatusOr<double> value = Output(i).TryItem<double>();
    return value.ok() ? std::optional<double>(*value) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> StepResults::StateHash() const {
  const std::vector<runtime::NamedValue>& outputs = step_->program().outputs;
  // AddStateHash puts it behind all others.
  if (outputs.empty() || outputs.back().name != runtime::kStateHashOutput) return std::nullopt;
  const Tensor hash = Output(outputs.size() - 1);
  if (!hash.concrete()) return std::nullopt;
  std::uint64_t bits = 0;
  std::memcpy(&bits, hash.bytes().data(), sizeof(bits));
  return bits;
}

void StepResults::Print() const {
  if (!step_->prints()) return;
  for (const std::size_t index : step_->printed_) {
    std::cout << absl::StripPrefix(step_->program().outputs[index].name, kPrintPrefix) << Output(index) << "\n";
  }
  std::cout << std::flush;
}

}  // namespace mpc::internal
