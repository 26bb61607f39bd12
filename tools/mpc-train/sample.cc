#include "tools/mpc-train/sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "kernels/scalar/philox.h"

namespace mpc::tools {
namespace {

/// Keeps samples apart from everything else that draws from the seed of a training.
constexpr std::uint32_t kSampleStream = 0x73616d70;

/// Uniform in [0, 1), 53 bits.
double Draw(std::uint64_t seed, std::int64_t position) {
  const std::array<std::uint32_t, 4> words = PhiloxBlock(seed, 0, kSampleStream, static_cast<std::uint64_t>(position));
  return static_cast<double>((static_cast<std::uint64_t>(words[0]) << 32 | words[1]) >> 11) * 0x1p-53;
}

/// The class at `draw` in [0, 1) of the cumulative distribution softmax(logits / temperature).
std::size_t Choose(absl::Span<const float> logits, double temperature, double draw) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  const auto likeliest = static_cast<std::size_t>(largest - logits.begin());
  if (temperature == 0) return likeliest;
  std::vector<double> weights;
  double sum = 0;
  for (float logit : logits) {
    weights.push_back(std::exp((static_cast<double>(logit) - static_cast<double>(*largest)) / temperature));
    sum += weights.back();
  }
  double left = draw * sum;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return likeliest;  // what the subtractions rounded away
}

/// The bytes of the well-formed UTF-8 character that `text` begins with; 0 if it begins with none.
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xC2 ? 0 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (length == 0 || byte(0) > 0xF4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  // Overlong forms, surrogates, what lies beyond the last character.
  const bool refused = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) > 0x9F) ||
                       (byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) > 0x8F);
  return refused ? 0 : length;
}

}  // namespace

absl::StatusOr<std::string> SampleText(Model& model, const SampleOptions& options) {
  if (options.prompt.empty()) return absl::InvalidArgumentError("the prompt is empty: a sample goes on from something");
  std::string text = options.prompt;
  const auto context = static_cast<std::size_t>(options.context);
  for (std::int64_t written = 0; written < options.bytes; ++written) {
    const std::size_t read = std::min(text.size(), context);
    // What stands behind the last byte is not read: attention is causal.
    std::vector<std::int32_t> ids(context, 0);
    std::transform(text.end() - static_cast<std::ptrdiff_t>(read), text.end(), ids.begin(),
                   [](char byte) { return static_cast<unsigned char>(byte); });
    const absl::StatusOr<Tensor> logits = model.Predict(Tensor::From(ids, {1, options.context}));
    if (!logits.ok()) return logits.status();
    const std::vector<float> values = logits->To(DType::kF32).ToFloats();
    const std::size_t classes = values.size() / context;
    const absl::Span<const float> last = absl::MakeConstSpan(values).subspan((read - 1) * classes, classes);
    if (!std::all_of(last.begin(), last.end(), [](float logit) { return std::isfinite(logit); })) {
      return absl::FailedPreconditionError("the network's logits are not finite: there is nothing to sample from");
    }
    text.push_back(static_cast<char>(Choose(last, options.temperature, Draw(options.seed, written))));
  }
  return text;
}

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t length = CharacterLength(text);
    const bool control = first == 0x7F || (first < 0x20 && first != '\n' && first != '\t');
    if (length == 0 || control) {
      absl::StrAppendFormat(&printable, "\\x%02x", first);
      text.remove_prefix(1);
      continue;
    }
    printable.append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return printable;
}

}  // namespace mpc::tools
