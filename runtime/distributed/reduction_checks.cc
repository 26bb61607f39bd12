#include "runtime/distributed/reduction_checks.h"

#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/dtype.h"

namespace mpc::distributed {
namespace {

absl::string_view Text(std::string_view text) { return {text.data(), text.size()}; }

absl::Status CheckSize(absl::string_view call, int size) {
  if (size > 0 && std::has_single_bit(static_cast<unsigned>(size))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(call, " is over a power of two of ranks: there are ", size));
}

bool Takes(Reduction reduction, DType dtype) {
  if (dtype == DType::kI32 || dtype == DType::kI64) return true;
  return reduction == Reduction::kSum && (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16);
}

absl::Status CheckTypes(absl::string_view call, absl::string_view place, const ReducedPart& part) {
  if (part.reduction > Reduction::kMin) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": ", place, " has the unknown reduction ", static_cast<int>(part.reduction)));
  }
  if (Takes(part.reduction, part.dtype)) return absl::OkStatus();
  const absl::string_view accepted = part.reduction == Reduction::kSum ? "f32, f16, bf16, i32 and i64" : "i32 and i64";
  return absl::InvalidArgumentError(absl::StrCat(call, ": ", place, " is ", Text(DTypeName(part.dtype)), "; ",
                                                 Text(ReductionName(part.reduction)), " takes ", accepted));
}

/// `output_elements`: of `part.elements`, those that the output has.
absl::Status CheckOperands(absl::string_view call, absl::string_view place, const ReducedPart& part,
                           std::size_t output_elements) {
  if (part.elements == 0) return absl::OkStatus();
  if (part.input == nullptr || part.output == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": ", place, " has no ", part.input == nullptr ? "input" : "output"));
  }
  if (part.input == part.output) return absl::OkStatus();
  const auto input = reinterpret_cast<std::uintptr_t>(part.input);
  const auto output = reinterpret_cast<std::uintptr_t>(part.output);
  const std::size_t size = ElementSize(part.dtype);
  if (input < output + output_elements * size && output < input + part.elements * size) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": input and output of ", place, " overlap, and do not begin at the same address"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view ReductionName(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMax:
      return "max";
    case Reduction::kMin:
      return "min";
  }
  return "unknown";
}

absl::Status CheckAllReduce(absl::Span<const ReducedPart> parts, int size) {
  constexpr absl::string_view kCall = "all-reduce";
  if (absl::Status status = CheckSize(kCall, size); !status.ok()) return status;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // A text for each part would be made in every step, so it is made where there is something to say.
    const auto check = [&](absl::string_view place) {
      if (absl::Status status = CheckTypes(kCall, place, parts[i]); !status.ok()) return status;
      return CheckOperands(kCall, place, parts[i], parts[i].elements);
    };
    if (!check("").ok()) return check(absl::StrCat("part ", i));
  }
  return absl::OkStatus();
}

absl::Status CheckReduceScatter(const ReducedPart& part, int size) {
  constexpr absl::string_view kCall = "reduce-scatter";
  if (absl::Status status = CheckSize(kCall, size); !status.ok()) return status;
  if (absl::Status status = CheckTypes(kCall, "its part", part); !status.ok()) return status;
  if (part.elements % static_cast<std::size_t>(size) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCall, ": ", part.elements, " elements do not divide by ", size, " ranks"));
  }
  return CheckOperands(kCall, "its part", part, part.elements / static_cast<std::size_t>(size));
}

absl::Status CheckAllGather(const void* input, const void* output, std::size_t bytes) {
  if (bytes == 0 || (input != nullptr && output != nullptr)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("all-gather has no ", input == nullptr ? "input" : "output"));
}

absl::Status CheckBroadcast(const void* data, std::size_t bytes, int root, int size) {
  if (root < 0 || root >= size) {
    return absl::InvalidArgumentError(absl::StrCat("broadcast: the root ", root, " is no rank of ", size));
  }
  if (bytes == 0 || data != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError("broadcast has no data");
}

}  // namespace mpc::distributed
