// Another choice of kernels for a Program that has been compiled.
#pragma once

#include "absl/status/status.h"
#include "runtime/executable.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// Forgets the choices for the instructions of `program` and lets `device` choose again as `options` say. For example,
/// by measuring on the machine where the Program will run, or from a cache. Everything else stays as it was planned, so
/// that results change only as far as implementations differ. Where a kernel wants more scratch than before, it gets
/// room behind the arena that all such kernels share, and the peak grows by it. Weights are packed anew. Errors: those
/// of Device::Plan, with the instruction, and of Device::EndPlanning; `program` is then as it was.
absl::Status ChooseKernels(const Device& device, const PlanOptions& options, Program& program);

/// Gives every kernel the workspace that it wants on this machine. A workspace whose place is too small moves behind
/// the arena. This is for a Program that was compiled for another processor or by another version. Everything else
/// stays. Errors: those of Device::Plan, with the instruction. One cause is a kernel that wants its packed weight in
/// another layout. `program` is then as it was.
absl::Status EnlargeWorkspaces(const Device& device, Program& program);

/// Packs weights as the kernels of this machine want them, in every run. The choices of `program` are kept. This is for
/// a Program that was compiled for another processor. Errors: as above.
absl::Status RepackWeights(const Device& device, Program& program);

}  // namespace mpc::runtime
