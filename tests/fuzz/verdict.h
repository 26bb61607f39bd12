// How a fuzzer says that a reader is wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mpc::fuzz {

/// What the readers are told that their input is called.
inline constexpr char kOrigin[] = "fuzzed-input";

/// Ends the process, so that libFuzzer keeps the input.
inline void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "fuzzer: %s\n", what.c_str());
  std::abort();
}

/// A refusal says what is wrong with which source.
inline void RequireRefusal(const absl::Status& status, absl::string_view origin = kOrigin) {
  Require(absl::IsInvalidArgument(status), "the refusal is not INVALID_ARGUMENT: " + status.ToString());
  Require(absl::StrContains(status.message(), origin), "the refusal does not name its source: " + status.ToString());
}

/// Reads every byte, so that a sanitizer sees those that are not there.
inline void RequireReadable(absl::Span<const std::uint8_t> bytes) {
  std::uint8_t sum = 0;
  for (const std::uint8_t byte : bytes) sum ^= byte;
  [[maybe_unused]] const volatile std::uint8_t kept = sum;
}

}  // namespace mpc::fuzz
