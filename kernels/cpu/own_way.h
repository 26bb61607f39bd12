// Loops of our own, beside the library's primitives or each other.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

/// How an operation may be computed by our own loops.
struct OwnWay {
  std::string choice;  ///< its name in choice tables
  bool is_faster;      ///< than the library and the ways behind it, so that the rule takes it
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>()> make;
};

/// The first way of `ways` that is `choice` or, where that is empty, the rule's. Null: the library's primitives are.
inline const OwnWay* ChosenWay(const std::vector<OwnWay>& ways, const std::string& choice) {
  for (const OwnWay& way : ways) {
    if (choice.empty() ? way.is_faster : choice == way.choice) return &way;
  }
  return nullptr;
}

/// The library's choices with those of `ways`. The rule's is the first. Ways alone have no choices of the library.
inline std::vector<std::string> WithOwnWays(const std::vector<OwnWay>& ways, std::vector<std::string> choices = {}) {
  std::size_t faster = 0;
  for (const OwnWay& way : ways) {
    const auto place = way.is_faster ? choices.begin() + static_cast<std::ptrdiff_t>(faster++) : choices.end();
    choices.insert(place, way.choice);
  }
  return choices;
}

}  // namespace mpc::cpu
