#include "tools/mpc-train/text_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "models/gpt2.h"
#include "tools/support/text_data.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kMostOfASize = 1 << 20;

/// Trains on a processor in about a minute.
constexpr models::Gpt2Config kSmall = {.context = 64, .width = 128, .layers = 4, .heads = 4};

}  // namespace

void AddTextFlags(FlagSet& flags, GivenText& given) {
  flags.Text("text-file", "FILE", kTextFileHelp, &given.path);
  flags.Integer("layers", 1, kMostOfASize, "Of bert and gpt2. Default: the network's, 4 for gpt2 on text.",
                &given.layers);
  flags.Integer("width", 1, kMostOfASize, "Of bert and gpt2. Default: the network's, 128 for gpt2 on text.",
                &given.width);
  flags.Integer("heads", 1, kMostOfASize, "Of bert and gpt2. Default: the network's, 4 for gpt2 on text.",
                &given.heads);
  flags.Integer("validate-every", 0, kNoLimit,
                "Text: steps between two validations; 0: only after epochs. Default: a fifth of an epoch.",
                &given.validate_every);
  flags.Integer("sample", 0, kMostOfASize, "Text: bytes to be written by the trained network. Default: 256.",
                &given.sample_bytes);
  flags.Number("temperature", 0, "Text: of the sample; 0 takes the likeliest byte each time. Default: 0.8.",
               &given.temperature);
  flags.Text("prompt", "TEXT", "Text: what the sample goes on from. Default: a line break.", &given.prompt);
}

absl::Status ResolveWarmup(TrainOptions& options) {
  const std::int64_t all_steps = TotalSteps(options);
  if (options.default_warmup) options.warmup_steps = all_steps / 10;
  if (options.warmup_steps < all_steps) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--warmup-steps=", options.warmup_steps, " leaves none of the ",
                                                 all_steps, " steps; give fewer of them"));
}

void ResolveValidation(TrainOptions& options) {
  const std::int64_t steps_of_epoch = options.steps / (options.ranks * options.accumulation);
  if (options.default_validation) options.validate_every = std::max<std::int64_t>(steps_of_epoch / 5, 1);
}

absl::Status ResolveText(const GivenText& given, TrainOptions& options) {
  const models::Gpt2Config sizes = options.model == "gpt2" ? kSmall : models::Gpt2Config::Tiny();
  options.layers = given.layers.value_or(sizes.layers);
  options.width = given.width.value_or(sizes.width);
  options.heads = given.heads.value_or(sizes.heads);
  if (options.tokens == 0) options.tokens = sizes.context;
  options.text_path = given.path;
  const bool rises = options.schedule != "constant" && options.schedule != "one-cycle";
  options.default_warmup = rises && !given.warmup_steps.has_value();
  options.warmup_steps = given.warmup_steps.value_or(0);
  if (absl::Status status = ResolveWarmup(options); !status.ok()) return status;
  options.default_validation = !given.validate_every.has_value();
  options.validate_every = given.validate_every.value_or(0);
  ResolveValidation(options);
  options.sample_bytes = given.sample_bytes.value_or(256);
  if (options.sample_bytes == 0 && (given.temperature.has_value() || !given.prompt.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(given.prompt.empty() ? "--temperature" : "--prompt",
                                                   " and --sample=0 contradict each other: nothing is written"));
  }
  options.temperature = given.temperature.value_or(0.8);
  if (!given.prompt.empty()) options.prompt = given.prompt;
  return absl::OkStatus();
}

}  // namespace mpc::tools
