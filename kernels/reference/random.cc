// Random tensors: the draws of kernels/scalar/philox.h, which every device shares.
#include "kernels/attribute_words.h"
#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/scalar/philox.h"

namespace mpc::reference {
namespace {

void Random(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const auto seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(Scalar(inputs[0])));
  const auto stream = static_cast<std::uint32_t>(attributes.GetInt("stream"));
  const auto a = static_cast<float>(attributes.GetDouble("a"));
  const auto b = attributes.Get(attribute::kUpper);
  const Distribution distribution = ReadWord(attributes, attribute::kDistribution).value();
  const auto draw = distribution == Distribution::kUniform  ? RandomUniform
                    : distribution == Distribution::kNormal ? RandomNormal
                                                            : RandomTruncatedNormal;
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = static_cast<double>(draw(seed, stream, i, a, b));
  }
}

constexpr NamedFunction kTable[] = {{"random", Random}};

}  // namespace

FunctionTable RandomFunctions() { return kTable; }

}  // namespace mpc::reference
