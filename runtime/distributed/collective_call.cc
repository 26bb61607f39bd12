#include "runtime/distributed/collective_call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "runtime/distributed/reduction_checks.h"

namespace mpc::distributed {
namespace {

/// FNV-1a over numbers.
class Hash {
 public:
  Hash& Add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) value_ = (value_ ^ (number >> (8 * byte) & 0xffu)) * 0x100000001b3u;
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::string PartsText(const CollectiveCall& call) {
  if (call.parts == 0) return "no parts";
  std::string text;
  const std::size_t kept = std::min<std::size_t>(call.parts, CollectiveCall::kPartsKept);
  for (std::size_t i = 0; i < kept; ++i) {
    const CollectiveCall::Part& part = call.first_parts[i];
    absl::StrAppend(&text, i > 0 ? ", " : "", part.elements, " ", std::string(DTypeName(part.dtype)), " (",
                    std::string(ReductionName(part.reduction)), ")");
  }
  if (call.parts > kept) absl::StrAppend(&text, " and ", call.parts - kept, " more parts");
  return text;
}

}  // namespace

const char* CollectiveName(Collective function) {
  switch (function) {
    case Collective::kNone:
      return "no call";
    case Collective::kAllReduce:
      return "all-reduce";
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kAllGather:
      return "all-gather";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kBarrier:
      return "barrier";
  }
  return "an unknown function";
}

CollectiveCall ReductionCall(Collective function, absl::Span<const ReducedPart> parts) {
  CollectiveCall call;
  call.function = function;
  call.parts = parts.size();
  Hash hash;
  hash.Add(static_cast<std::uint64_t>(function)).Add(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ReducedPart& part = parts[i];
    hash.Add(part.elements).Add(static_cast<std::uint64_t>(part.dtype)).Add(static_cast<std::uint64_t>(part.reduction));
    if (i < CollectiveCall::kPartsKept) call.first_parts[i] = {part.elements, part.dtype, part.reduction};
  }
  call.hash = hash.value();
  return call;
}

CollectiveCall CopyCall(Collective function, std::size_t bytes, int root) {
  CollectiveCall call;
  call.function = function;
  call.root = root;
  call.bytes = bytes;
  call.hash = Hash().Add(static_cast<std::uint64_t>(function)).Add(bytes).Add(static_cast<std::uint64_t>(root)).value();
  return call;
}

std::string CallText(const CollectiveCall& call) {
  const std::string name = CollectiveName(call.function);
  switch (call.function) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
      return absl::StrCat(name, " of ", PartsText(call));
    case Collective::kAllGather:
      return absl::StrCat(name, " of ", call.bytes, " bytes a rank");
    case Collective::kBroadcast:
      return absl::StrCat(name, " of ", call.bytes, " bytes from rank ", call.root);
    default:
      return name;
  }
}

}  // namespace mpc::distributed
