#include "compiler/lowering/program_data.h"

#include "absl/strings/str_cat.h"
#include "runtime/aligned_buffer.h"

#include <cstring>
#include <string>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

size_t appendConstant(DenseElementsAttr Elements, const TensorSpec &Spec, std::vector<std::uint8_t> &Constants) {
  size_t Offset = Constants.size(), Width = ElementSize(Spec.dtype);
  Constants.resize(Offset + runtime::AlignedBuffer::Padded(Spec.bytes()));
  std::uint8_t *Out = Constants.data() + Offset;
  if (Spec.dtype == DType::kBool) {
    for (bool Bit : Elements.getValues<bool>())
      *Out++ = Bit;
    return Offset;
  }
  ArrayRef<char> Raw = Elements.getRawData();
  for (int64_t Index = 0, End = Spec.num_elements(); Index < End; ++Index)
    std::memcpy(Out + Index * Width, Raw.data() + (Elements.isSplat() ? 0 : Index * Width), Width);
  return Offset;
}

absl::Status addCastRefreshes(size_t Arguments, const llvm::StringMap<runtime::ValueId> &StateByName,
                              runtime::Program &Program) {
  for (size_t Index = 0; Index < Arguments; ++Index) {
    const runtime::StateBinding &Derived = Program.state[Index];
    if (Derived.role != runtime::kDerivedRole)
      continue;
    std::string Suffix = absl::StrCat(".", std::string(DTypeName(Derived.spec.dtype)));
    StringRef Source = Derived.name;
    auto Found = Source.consume_back(Suffix) ? StateByName.find(Source) : StateByName.end();
    if (Found == StateByName.end() || Program.values[Found->second].spec.shape != Derived.spec.shape)
      return absl::InvalidArgumentError(
          absl::StrCat("derived state '", Derived.name, "' of type ", Derived.spec.ToString(),
                       " is not named after a state argument of its shape and its own element type"));
    runtime::StateRefresh Refresh{static_cast<std::int32_t>(Index), Program.values[Found->second].index, {}};
    Refresh.instruction.kernel = "cast";
    Refresh.instruction.inputs = {Found->second};
    Refresh.instruction.outputs = {StateByName.lookup(Derived.name)};
    Refresh.instruction.scope = Source.str();
    Program.refreshes.push_back(std::move(Refresh));
  }
  return absl::OkStatus();
}

} // namespace mpc::compiler
