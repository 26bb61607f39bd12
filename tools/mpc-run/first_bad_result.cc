#include "tools/mpc-run/first_bad_result.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

/// Elements whose exponent has every bit set, which are infinities and NaN.
template <typename Bits>
std::int64_t CountWithExponent(absl::Span<const std::uint8_t> bytes, Bits exponent) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i + sizeof(Bits) <= bytes.size(); i += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i, sizeof(bits));
    if ((bits & exponent) == exponent) ++count;
  }
  return count;
}

std::int64_t CountNotFinite(DType dtype, absl::Span<const std::uint8_t> bytes) {
  switch (dtype) {
    case DType::kF16:
      return CountWithExponent<std::uint16_t>(bytes, 0x7c00);
    case DType::kBF16:
      return CountWithExponent<std::uint16_t>(bytes, 0x7f80);
    case DType::kF32:
      return CountWithExponent<std::uint32_t>(bytes, 0x7f800000);
    case DType::kF64:
      return CountWithExponent<std::uint64_t>(bytes, 0x7ff0000000000000);
    default:
      return 0;
  }
}

std::string CountOf(std::int64_t not_finite, const TensorSpec& spec) {
  const std::int64_t elements = spec.num_elements();
  return absl::StrCat(not_finite, " of ", elements, elements == 1 ? " element" : " elements");
}

void AppendNotFinite(const std::string& what, const StepCapsule::NamedTensors& tensors, std::string& text) {
  for (const auto& [name, tensor] : tensors) {
    const std::int64_t not_finite = CountNotFinite(tensor.spec().dtype, tensor.bytes());
    if (not_finite == 0) continue;
    absl::StrAppend(&text, what, " \"", name, "\" is not finite before the step: ", CountOf(not_finite, tensor.spec()),
                    "\n");
  }
}

}  // namespace

void FirstBadResult::See(std::int64_t run, const runtime::ObservedResult& seen) {
  if (place_.has_value()) return;
  const ResultPlace place = {seen.sequence, seen.instruction, seen.result, run};
  not_finite_ = CountNotFinite(ValueAt(ProgramOfRun(capsule_, run), place).spec.dtype, seen.bytes);
  if (not_finite_ > 0) place_ = place;
}

std::string FirstBadResult::Describe() const {
  std::string text;
  AppendNotFinite("state", capsule_.state, text);
  for (std::size_t i = 0; i < capsule_.other_ranks.size(); ++i) {
    AppendNotFinite(absl::StrCat("rank ", i + 1, ": state"), capsule_.other_ranks[i].state, text);
  }
  AppendNotFinite("input", capsule_.batch, text);
  if (!place_.has_value()) {
    return absl::StrCat(text,
                        "every result of an operation is finite: what is not lies within a fused one, or comes of "
                        "dividing by the loss scale\n");
  }
  const runtime::Program& program = ProgramOfRun(capsule_, place_->run);
  const std::string in_run = capsule_.runs > 1 ? ", " + DescribeRun(capsule_, place_->run) : "";
  return absl::StrCat(text, "first operation whose result is not finite: ", DescribeOperation(program, *place_), in_run,
                      "\n  ", DescribeResult(program, *place_), ": ",
                      CountOf(not_finite_, ValueAt(program, *place_).spec), "\n");
}

}  // namespace mpc::tools
