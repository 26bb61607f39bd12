#include "compiler/lowering/program_data.h"

#include "compiler/dialect/attribute_conversion.h"
#include "runtime/aligned_buffer.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

/// The bytes of each element of \p elements, or of the one that all are. A truth value takes a byte.
static std::vector<std::uint8_t> bytesOf(DenseElementsAttr elements) {
  if (elements.getElementType().isInteger(1)) {
    if (elements.isSplat())
      return {elements.getSplatValue<bool>()};
    auto bits = elements.getValues<bool>();
    return {bits.begin(), bits.end()};
  }
  ArrayRef<char> raw = elements.getRawData();
  return {raw.begin(), raw.end()};
}

/// The position in \p fills of the one with \p element, which may be new, of \p bytes bytes at least.
static size_t fillOf(std::vector<std::uint8_t> element, size_t bytes, std::vector<runtime::ConstantFill> &fills) {
  auto known = llvm::find_if(fills, [&](const runtime::ConstantFill &fill) { return fill.element == element; });
  size_t index = known - fills.begin();
  if (known == fills.end())
    fills.push_back({0, std::move(element)});
  fills[index].bytes = std::max(fills[index].bytes, runtime::AlignedBuffer::Padded(bytes));
  return index;
}

std::vector<size_t> placeConstants(ArrayRef<DenseElementsAttr> constants, runtime::Program &program) {
  std::vector<size_t> offsets(constants.size());
  std::vector<std::pair<size_t, size_t>> filled; // positions in Constants and in the fills
  for (auto [index, elements] : llvm::enumerate(constants)) {
    size_t bytes = toTensorSpec(cast<RankedTensorType>(elements.getType())).bytes();
    std::vector<std::uint8_t> content = bytesOf(elements);
    if (elements.isSplat() && bytes > runtime::AlignedBuffer::kAlignment) {
      filled.emplace_back(index, fillOf(std::move(content), bytes, program.fills));
      continue;
    }
    assert(bytes == 0 || (!content.empty() && bytes % content.size() == 0));
    offsets[index] = program.constants.size();
    program.constants.resize(offsets[index] + runtime::AlignedBuffer::Padded(bytes));
    for (size_t at = 0; at < bytes; at += content.size())
      llvm::copy(content, program.constants.begin() + offsets[index] + at);
  }
  std::vector<size_t> fillOffsets = {program.constants.size()};
  for (const runtime::ConstantFill &fill : program.fills)
    fillOffsets.push_back(fillOffsets.back() + fill.bytes);
  for (auto [index, fill] : filled)
    offsets[index] = fillOffsets[fill];
  return offsets;
}

void addCastRefreshes(ArrayRef<StringRef> owners, const llvm::StringMap<runtime::ValueId> &stateByName,
                      runtime::Program &program) {
  assert(owners.size() <= program.state.size() && "an owner belongs to a state");
  for (auto [index, owner] : llvm::enumerate(owners)) {
    const runtime::StateBinding &derived = program.state[index];
    if (derived.role != Role::kDerived)
      continue;
    runtime::ValueId source = stateByName.at(owner);
    runtime::StateRefresh refresh{static_cast<std::int32_t>(index), program.values[source].index, {}};
    refresh.instruction.kernel = "cast";
    refresh.instruction.inputs = {source};
    refresh.instruction.outputs = {stateByName.lookup(derived.name)};
    refresh.instruction.scope = owner.str();
    program.refreshes.push_back(std::move(refresh));
  }
}

} // namespace mpc::compiler
