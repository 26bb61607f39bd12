// Reading the words of an operation's attributes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/known_attributes.h"

namespace mpc {

namespace internal {

/// INVALID_ARGUMENT: the attribute takes one of `names`, and has `value` or is missing.
absl::Status WordError(std::string_view attribute, absl::Span<const std::string_view> names,
                       const AttributeValue* value);

}  // namespace internal

/// The word of an attribute that an operation must have. Errors (INVALID_ARGUMENT): it is missing or has another value.
template <typename E>
absl::StatusOr<E> ReadWord(const Attributes& attributes, const RequiredAttribute<E>& required) {
  const AttributeValue* value = attributes.Find(required.name);
  const std::string* word = value == nullptr ? nullptr : std::get_if<std::string>(value);
  const std::optional<E> read = word == nullptr ? std::nullopt : ParseEnum<E>(*word);
  if (!read) return internal::WordError(required.name, NamesOf<E>(), value);
  return *read;
}

/// The word of an attribute, or its default. Errors (INVALID_ARGUMENT): it has another value.
template <typename E>
absl::StatusOr<E> ReadWord(const Attributes& attributes, const KnownAttribute<E>& known) {
  if (attributes.Find(known.name) == nullptr) return known.fallback;
  return ReadWord(attributes, RequiredAttribute<E>{known.name});
}

/// Whether every word of an operation is one that its attribute takes. A device asks before it makes a kernel. The
/// kernel then reads words with Attributes::Get. Errors (INVALID_ARGUMENT): the operation, what it has and what is
/// accepted.
absl::Status CheckWords(std::string_view operation, const Attributes& attributes);

}  // namespace mpc
