#include "frontend/graph/random_ops.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/trace.h"

namespace mpc::ops {
namespace {

// 2^64 divided by the golden ratio, an odd number whose multiples are far apart.
constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;

Tensor Draw(const char* name, const char* distribution, const Shape& shape) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr || !trace->training()) {
    return internal::FailWith(absl::StrCat(name,
                                           " draws in a step that trains alone; elsewhere take numbers from the "
                                           "data set, or ask training() first"),
                              shape);
  }
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 1; })) {
    return internal::FailWith(absl::StrCat(name, " takes extents of 1 or more, got ", ShapeToString(shape)), {});
  }
  const internal::RandomUses::Use use = trace->random().Next();
  // A key of its own for each step. Without the 1 the first one would be that of initial values and of dropout.
  const Tensor spread = Tensor::Scalar(static_cast<std::int64_t>(kSpread));
  const Tensor step = internal::EmitAll("cast", {use.step}, {}, DType::kI64)[0];
  const Tensor key = use.seed + (step * spread + spread);
  return internal::Emit("random", {key},
                        {{"distribution", std::string(distribution)},
                         {"a", 0.0},
                         {"b", 1.0},
                         {"stream", use.call_site},
                         {"shape", shape}});
}

}  // namespace

Tensor StandardNormal(const Shape& shape) { return Draw("StandardNormal", "normal", shape); }
Tensor UniformReal(const Shape& shape) { return Draw("UniformReal", "uniform", shape); }

}  // namespace mpc::ops
