#include "kernels/attribute_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc {

namespace internal {

absl::Status WordError(std::string_view attribute, absl::Span<const std::string_view> names,
                       const AttributeValue* value) {
  const auto quote = [](std::string* out, std::string_view name) {
    absl::StrAppend(out, "\"", std::string(name), "\"");
  };
  const std::string* word = value == nullptr ? nullptr : std::get_if<std::string>(value);
  const std::string given = word != nullptr    ? absl::StrCat("\"", *word, "\"")
                            : value != nullptr ? "what is no word"
                                               : "nothing";
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(attribute), " is one of ", absl::StrJoin(names, ", ", quote), "; got ", given));
}

}  // namespace internal

absl::Status CheckWords(std::string_view operation, const Attributes& attributes) {
  absl::Status status;
  const auto check = [&](const auto& word) {
    if (status.ok() && attributes.Find(word.name) != nullptr) status = ReadWord(attributes, word).status();
  };
  check(attribute::kDataFormat);
  check(attribute::kPadMode);
  check(attribute::kReduction);
  check(attribute::kActivation);
  check(attribute::kApproximate);
  check(attribute::kInterpolation);
  check(attribute::kCoordinates);
  check(attribute::kLowCopy);
  check(attribute::kDistribution);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("mpc.", std::string(operation), ": ", status.message()));
}

}  // namespace mpc
