// Optimizer updates over flat buffers: tensors of one kind are laid out behind each other and updated as one.
//
// The layout of an update gives the distances between its tensors. Gradients that the step computes lie at these
// distances in the arena. Parameters, slots and low copies lie at them in memory that entries of the StateStore share.
// Between two tensors there may be padding, whose content does not matter: an element-wise update of it changes nothing
// but padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// Tensors of a flat buffer begin at multiples of this many elements: at least a cache line, as in the arena.
inline constexpr std::int64_t kFlatAlignment = 32;

/// `elements` and the padding behind them.
constexpr std::int64_t PaddedElements(std::int64_t elements) {
  return (elements + kFlatAlignment - 1) / kFlatAlignment * kFlatAlignment;
}

/// Whether kernel `name` updates each element by itself: sgd, momentum, adam, adam_weight_decay, adamw. lamb does not,
/// since it needs norms of each parameter.
bool IsElementwiseUpdate(std::string_view name);

/// Gives each temporary a number. Temporaries that will lie in one place have equal numbers.
using PlaceOf = std::function<std::int32_t(ValueId)>;

/// The group that the compiler has put an instruction into; below 0 for none.
using GroupOf = std::function<std::int64_t(std::size_t instruction)>;

/// The updates of `program` that may be flat. Such an update is two instructions or more that follow each other and are
/// of one group. They agree in kernel, attributes and types, update state in place and share their scalars. No tensor
/// belongs to two of them. Their tensors are laid out in the order of the instructions. Offsets in the arena need not
/// be planned yet.
std::vector<FlatUpdate> FindFlatUpdates(
    const Program& program, const PlaceOf& place_of, const GroupOf& group_of = [](std::size_t) { return 0; });

/// Lays the tensors of `update` out in `order`, a permutation of its instructions.
void LayOut(const Program& program, const std::vector<std::size_t>& order, FlatUpdate& update);

/// Checks a flat update. Errors (INVALID_ARGUMENT): FindFlatUpdates could not have found `update`; its tensors overlap
/// or are not aligned; those in the arena lie otherwise.
absl::Status CheckFlatUpdate(const Program& program, const FlatUpdate& update);

/// The tensors that an update reads or writes at one position of its operands or results, one for each instruction.
/// They have one type.
struct FlatTensors {
  Storage storage;  ///< kState or kTemporary
  DType dtype;
  std::vector<ValueId> values;
};

/// Every buffer of `update`: those of its operands, then those of low copies, which are only results.
std::vector<FlatTensors> FlatTensorsOf(const Program& program, const FlatUpdate& update);

/// Where a value lies in memory.
using AddressOf = std::function<const void*(const Value&)>;

/// Whether `address` gives every tensor the place where `update` lays it out. State that another Program was bound to
/// first may lie elsewhere. The instructions then run as a group of tensors.
bool LiesFlat(const Program& program, const FlatUpdate& update, const AddressOf& address);

/// The instruction whose tensors are the first ones of the buffers: its operands are those of the whole update.
const Instruction& FirstOfFlat(const Program& program, const FlatUpdate& update);

/// The spec of the kernel of the whole update.
absl::StatusOr<KernelSpec> FlatSpec(const Program& program, const FlatUpdate& update);

/// State entries that share memory.
struct FlatStateBuffer {
  std::vector<std::int32_t> state;   ///< indices into Program::state
  std::vector<std::size_t> offsets;  ///< offset of each entry, in bytes
  std::size_t bytes = 0;
};

std::vector<FlatStateBuffer> FlatStateBuffers(const Program& program);

}  // namespace mpc::runtime
