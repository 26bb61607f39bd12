// Named constants of an operation, in the form that every layer shares. The tracer writes them, the IR carries them, a
// Program stores them, and kernels read them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/attribute_enums.h"

namespace mpc {

using AttributeValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

/// An attribute and its value where it is left out. T is an enum of words, bool, std::int64_t, float (a double as
/// kernels compute with it), or an array of std::int64_t. kernels/known_attributes.h lists them.
template <typename T>
struct KnownAttribute {
  std::string_view name;
  T fallback;
};

/// An attribute that is never left out.
template <typename T>
struct RequiredAttribute {
  std::string_view name;
};

/// A small map in the order of insertion. Lookups are linear and happen when kernels are created, never inside a step.
class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) Set(entry.first, entry.second);
  }

  /// Replaces the value of `name`, or appends it.
  void Set(std::string_view name, AttributeValue value) {
    for (Entry& entry : entries_) {
      if (entry.first == name) {
        entry.second = std::move(value);
        return;
      }
    }
    entries_.emplace_back(std::string(name), std::move(value));
  }

  void Erase(std::string_view name) {
    std::erase_if(entries_, [name](const Entry& entry) { return entry.first == name; });
  }

  /// The value of `name`, or null. The pointer holds until the next change.
  const AttributeValue* Find(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.first == name) return &entry.second;
    }
    return nullptr;
  }

  /// The value of `name`; `fallback` where it is left out or has another type.
  bool GetBool(std::string_view name, bool fallback = false) const { return Get<bool>(name, fallback); }
  std::int64_t GetInt(std::string_view name, std::int64_t fallback = 0) const {
    return Get<std::int64_t>(name, fallback);
  }
  double GetDouble(std::string_view name, double fallback = 0) const { return Get<double>(name, fallback); }
  std::string GetString(std::string_view name, std::string fallback = "") const {
    return Get<std::string>(name, std::move(fallback));
  }
  std::vector<std::int64_t> GetInts(std::string_view name, std::vector<std::int64_t> fallback = {}) const {
    return Get<std::vector<std::int64_t>>(name, std::move(fallback));
  }

  /// The value of a known attribute. A word that the enum lacks reads as no word: CheckWords (attribute_words.h)
  /// refuses it before.
  template <typename T>
  auto Get(const KnownAttribute<T>& known) const {
    if constexpr (std::is_enum_v<T>) {
      return ParseEnum<T>(GetString(known.name)).value_or(known.fallback);
    } else if constexpr (std::is_same_v<T, float>) {
      return static_cast<float>(GetDouble(known.name, static_cast<double>(known.fallback)));
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int64_t>) {
      return Get<T>(known.name, known.fallback);
    } else {
      return GetInts(known.name, {known.fallback.begin(), known.fallback.end()});
    }
  }

  /// In the order in which they were first set.
  const std::vector<Entry>& entries() const { return entries_; }
  /// The same entries in the same order.
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  template <typename T>
  T Get(std::string_view name, T fallback) const {
    const AttributeValue* value = Find(name);
    const T* typed = value == nullptr ? nullptr : std::get_if<T>(value);
    return typed == nullptr ? fallback : *typed;
  }

  std::vector<Entry> entries_;
};

}  // namespace mpc
