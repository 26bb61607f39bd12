// The flags of text: what a language model of bytes is trained with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "tools/mpc-train/options.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {

/// As the flags give them, before they are checked against the data.
struct GivenText {
  std::string path, prompt;
  std::optional<std::int64_t> layers, width, heads;
  std::optional<std::int64_t> warmup_steps, validate_every, sample_bytes;
  std::optional<double> temperature;
};

void AddTextFlags(FlagSet& flags, GivenText& given);

/// Fills in the defaults of training on text where no flag says otherwise. Steps, epochs and tokens of `options` are
/// set already; 0 tokens: the default. Errors: a warm-up that leaves no step after it; a temperature or prompt without
/// a sample.
absl::Status ResolveText(const GivenText& given, TrainOptions& options);

/// Sets the default of a warm-up for the number of steps that `options` ask for. Errors: it leaves no step after it.
absl::Status ResolveWarmup(TrainOptions& options);

/// Sets the default of TrainOptions::validate_every for the steps of an epoch that `options` ask for.
void ResolveValidation(TrainOptions& options);

}  // namespace mpc::tools
