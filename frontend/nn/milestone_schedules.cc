#include "frontend/nn/milestone_schedules.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/nn/finite_numbers.h"

namespace mpc::nn {
namespace {

absl::Status CheckMilestones(const std::string& schedule, const std::vector<std::int64_t>& milestones) {
  std::int64_t last = 0;
  for (std::int64_t milestone : milestones) {
    if (milestone <= last) {
      last = 0;
      break;
    }
    last = milestone;
  }
  if (last > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(schedule,
                                                 ": milestones must be positive, increasing and at least one, got [",
                                                 absl::StrJoin(milestones, ", "), "]"));
}

// There must be `count` of `field`, `wanted` says why.
absl::Status CheckCount(const std::string& field, std::size_t given, std::size_t wanted, const char* why) {
  if (given == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " must be ", wanted, ", ", why, ", got ", given));
}

// rates[i] from milestones[i - 1] on and before milestones[i]. A choice among constants rounds nothing.
Tensor RateAt(const Tensor& step, const std::vector<std::int64_t>& milestones, const std::vector<double>& rates) {
  Tensor rate = ops::FullLike(step, rates.back());
  for (std::size_t i = rates.size() - 1; i-- > 0;) {
    rate = where(less(step, static_cast<double>(milestones[i])), rates[i], rate);
  }
  return rate;
}

}  // namespace

std::vector<double> MultiStep::Rates() const {
  std::vector<double> rates = {options_.learning_rate};
  for (std::size_t i = 0; i < options_.milestones.size(); ++i) rates.push_back(rates.back() * options_.decay_rate);
  return rates;
}

absl::Status MultiStep::Validate() const {
  if (absl::Status status = CheckMilestones("MultiStep", options_.milestones); !status.ok()) return status;
  if (absl::Status status = internal::CheckNotNegative("MultiStep: learning_rate", options_.learning_rate);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = internal::CheckPositive("MultiStep: decay_rate", options_.decay_rate); !status.ok()) {
    return status;
  }
  const std::vector<double> rates = Rates();
  for (std::size_t i = 1; i < rates.size(); ++i) {
    const std::string field = absl::StrCat("MultiStep: the rate from milestone ", options_.milestones[i - 1], " on");
    if (absl::Status status = internal::CheckNotNegative(field, rates[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

Tensor MultiStep::Construct(const Tensor& step) const { return RateAt(step, options_.milestones, Rates()); }

absl::Status PiecewiseConstant::Validate() const {
  const std::vector<double>& rates = options_.learning_rates;
  if (absl::Status status = CheckMilestones("PiecewiseConstant", options_.milestones); !status.ok()) return status;
  if (absl::Status status = CheckCount("PiecewiseConstant: the number of learning_rates", rates.size(),
                                       options_.milestones.size(), "one for each milestone");
      !status.ok()) {
    return status;
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const std::string field = absl::StrCat("PiecewiseConstant: learning_rates[", i, "]");
    if (absl::Status status = internal::CheckNotNegative(field, rates[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

Tensor PiecewiseConstant::Construct(const Tensor& step) const {
  return RateAt(step, options_.milestones, options_.learning_rates);
}

absl::Status SequentialSchedule::Validate() const {
  if (absl::Status status = CheckMilestones("SequentialSchedule", options_.milestones); !status.ok()) return status;
  if (absl::Status status = CheckCount("SequentialSchedule: the number of schedules", options_.schedules.size(),
                                       options_.milestones.size() + 1, "one more than milestones");
      !status.ok()) {
    return status;
  }
  for (const LearningRate& schedule : options_.schedules) {
    if (!schedule.status().ok()) return schedule.status();
  }
  return absl::OkStatus();
}

Tensor SequentialSchedule::Construct(const Tensor& step) const {
  const std::vector<std::int64_t>& milestones = options_.milestones;
  Tensor rate = options_.schedules[0].ValueAt(step);
  for (std::size_t i = 0; i < milestones.size(); ++i) {
    const auto begin = static_cast<double>(milestones[i]);
    // A schedule that has not begun sees its step 0.
    const Tensor next = options_.schedules[i + 1].ValueAt(maximum(step - begin, 0));
    rate = where(less(step, begin), rate, next);
  }
  return rate;
}

}  // namespace mpc::nn
