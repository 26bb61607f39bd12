// Where the time of a training step goes: its instructions, timed one by one.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/phase.h"
#include "tools/mpc-bench/options.h"
#include "tools/support/json_file.h"
#include "tools/support/percentiles.h"

namespace mpc::tools {

/// Instructions of one phase under one name. Times are sums over them, in seconds a step.
struct ProfileRow {
  Phase phase = Phase::kForward;
  std::string name;         ///< the kernel, or the operations of a fused region: "relu_grad, batch_norm_train_grad"
  std::size_t kernels = 0;  ///< kernels that run for it in a step: instructions that run as one count once
  Percentiles seconds;
  double share = 0;  ///< share of the time of the step's instructions, by medians
  double flops = 0;  ///< floating-point operations of matrix work in a step, two a multiply-add
};

/// Products, convolutions and attention of a step beside what the processor can do.
struct MatrixWork {
  double flops = 0;           ///< floating-point operations in a step
  double seconds = 0;         ///< time of the kernels that do it, by medians
  double flops_a_second = 0;  ///< on the CPU: of multiply-adds on registers, in the type that the products compute in
  std::string instructions;   ///< instructions that those multiply-adds use: "avx512f"
};

struct StepProfile {
  std::int64_t steps = 0;
  Percentiles seconds;             ///< time of all instructions of a step
  std::vector<ProfileRow> rows;    ///< by kernel and phase, the longest first
  std::vector<ProfileRow> phases;  ///< the phases that the step has, in order, without a name
  ProfileRow loss_scaling;         ///< scale, check, skip and unscale together
  MatrixWork matrix_work;
};

/// Compiles the step of `row` and runs it instruction by instruction on made-up batches, in this process. Steps are
/// limited as in a benchmark's run.
absl::StatusOr<StepProfile> ProfileSteps(const BenchOptions& row);

/// Two tables, of phases and of kernels, the share of loss scaling, and matrix work beside the processor's rate.
std::string FormatProfile(const BenchOptions& row, const StepProfile& profile);
/// `model`, `batch`, `mode`, `steps`, `step`, `loss_scaling`, `matrix_work`, `phases`, `kernels`; times in seconds.
Json ProfileToJson(const BenchOptions& row, const StepProfile& profile);

}  // namespace mpc::tools
