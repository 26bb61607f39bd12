#include "compiler/lowering/program_data.h"

#include "compiler/dialect/attribute_conversion.h"
#include "runtime/aligned_buffer.h"

#include <algorithm>
#include <string>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

/// The bytes of each element of \p Elements, or of the one that all are. A truth value takes a byte.
static std::vector<std::uint8_t> bytesOf(DenseElementsAttr Elements) {
  if (Elements.getElementType().isInteger(1)) {
    if (Elements.isSplat())
      return {Elements.getSplatValue<bool>()};
    auto Bits = Elements.getValues<bool>();
    return {Bits.begin(), Bits.end()};
  }
  ArrayRef<char> Raw = Elements.getRawData();
  return {Raw.begin(), Raw.end()};
}

/// The position in \p Fills of the one with \p Element, which may be new, of \p Bytes bytes at least.
static size_t fillOf(std::vector<std::uint8_t> Element, size_t Bytes, std::vector<runtime::ConstantFill> &Fills) {
  auto Known = llvm::find_if(Fills, [&](const runtime::ConstantFill &Fill) { return Fill.element == Element; });
  size_t Index = Known - Fills.begin();
  if (Known == Fills.end())
    Fills.push_back({0, std::move(Element)});
  Fills[Index].bytes = std::max(Fills[Index].bytes, runtime::AlignedBuffer::Padded(Bytes));
  return Index;
}

std::vector<size_t> placeConstants(ArrayRef<DenseElementsAttr> Constants, runtime::Program &Program) {
  std::vector<size_t> Offsets(Constants.size());
  std::vector<std::pair<size_t, size_t>> Filled; // positions in Constants and in the fills
  for (auto [Index, Elements] : llvm::enumerate(Constants)) {
    size_t Bytes = toTensorSpec(cast<RankedTensorType>(Elements.getType())).bytes();
    std::vector<std::uint8_t> Content = bytesOf(Elements);
    if (Elements.isSplat() && Bytes > runtime::AlignedBuffer::kAlignment) {
      Filled.emplace_back(Index, fillOf(std::move(Content), Bytes, Program.fills));
      continue;
    }
    Offsets[Index] = Program.constants.size();
    Program.constants.resize(Offsets[Index] + runtime::AlignedBuffer::Padded(Bytes));
    for (size_t At = 0; At < Bytes; At += Content.size())
      llvm::copy(Content, Program.constants.begin() + Offsets[Index] + At);
  }
  std::vector<size_t> FillOffsets = {Program.constants.size()};
  for (const runtime::ConstantFill &Fill : Program.fills)
    FillOffsets.push_back(FillOffsets.back() + Fill.bytes);
  for (auto [Index, Fill] : Filled)
    Offsets[Index] = FillOffsets[Fill];
  return Offsets;
}

void addCastRefreshes(ArrayRef<StringRef> Owners, const llvm::StringMap<runtime::ValueId> &StateByName,
                      runtime::Program &Program) {
  for (auto [Index, Owner] : llvm::enumerate(Owners)) {
    const runtime::StateBinding &Derived = Program.state[Index];
    if (Derived.role != Role::kDerived)
      continue;
    runtime::ValueId Source = StateByName.at(Owner);
    runtime::StateRefresh Refresh{static_cast<std::int32_t>(Index), Program.values[Source].index, {}};
    Refresh.instruction.kernel = "cast";
    Refresh.instruction.inputs = {Source};
    Refresh.instruction.outputs = {StateByName.lookup(Derived.name)};
    Refresh.instruction.scope = Owner.str();
    Program.refreshes.push_back(std::move(Refresh));
  }
}

} // namespace mpc::compiler
