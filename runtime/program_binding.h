// Steps of binding a Program that every device shares: kernel specs, state entries by name, checks, messages.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/communicator.h"
#include "kernels/kernel_spec.h"
#include "runtime/executable.h"
#include "runtime/program.h"
#include "runtime/state_store.h"

namespace mpc::runtime {

/// The spec that the kernel of `instruction` is created from. Errors (INVALID_ARGUMENT): an operand that is no value of
/// `program`; attributes of a packed weight that are incomplete.
absl::StatusOr<KernelSpec> MakeKernelSpec(const Program& program, const Instruction& instruction);

/// Whether two values share bytes that a step may write, in one state entry or in the arena.
bool ShareStorage(const Value& a, const Value& b);

/// Whether two values that share storage lie in the same place, element for element.
bool SamePlace(const Value& a, const Value& b);

/// The choice that `program` made for kernels of the key `key`; empty where it made none.
std::string ChoiceFor(const Program& program, const std::string& key);

/// The start of messages about an instruction. In the step it reads "train_step, instruction 7 (conv2d in
/// lenet5/conv1)". In another sequence it reads "train_step, sequence 2 (@cell), instruction 7 (...)".
std::string DescribeInstruction(const Program& program, std::size_t position, std::size_t sequence = 0);

/// The start of messages about a refresh: "train_step, refresh of conv1.weight.f16".
std::string DescribeRefresh(const Program& program, const StateRefresh& refresh);

/// `status` with the place it happened in front of its message.
absl::Status WithPlace(const std::string& place, const absl::Status& status);

using StateEntries = std::vector<std::shared_ptr<StateEntry>>;

/// The entries of Program::state, in order. Errors (NOT_FOUND, INVALID_ARGUMENT) list every entry that does not fit.
absl::StatusOr<StateEntries> BindState(const Program& program, const StateStore& store);

/// Whether a kernel may write an output over an input.
using MayAliasFunction = std::function<bool(std::string_view kernel, std::size_t output, std::size_t input)>;

/// Errors (INVALID_ARGUMENT): `instruction` would overwrite an operand that its kernel still reads. `may_alias` answers
/// for kernels of the device. Instructions whose code the Program carries have an attribute for it. An instruction that
/// runs a sequence may write an output over the input that is this output's first value.
absl::Status CheckOverlaps(const Program& program, const Instruction& instruction, const MayAliasFunction& may_alias);

/// The number of processes that run the collective instructions of `program`; 1 where it has none. Errors
/// (INVALID_ARGUMENT): instructions of different numbers.
absl::StatusOr<std::int64_t> ProcessesOf(const Program& program);

/// Whether `communicator`, which may be null, has the processes of `program`. Errors (FAILED_PRECONDITION): what the
/// program needs and what was given; and those of ProcessesOf.
absl::Status CheckProcesses(const Program& program, const Communicator* communicator);

/// Errors (INVALID_ARGUMENT): a number or size of inputs other than the Program's, with both.
absl::Status CheckInputs(const Program& program, StepInputs inputs);

}  // namespace mpc::runtime
