#include "tests/kernels/acceptance.h"

#include <cmath>

#include "kernels/reference/reference.h"
#include "tests/kernels/error_bounds.h"

namespace mpc::test {
namespace {

bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

bool Accepts(DType dtype, double actual, double exact, std::optional<double> error) {
  if (SameValue(actual, reference::RoundTo(dtype, exact))) return true;
  if (!error.has_value() || !std::isfinite(exact)) return false;
  // Within its error the value may round to infinity.
  const double farthest = std::copysign(std::abs(exact) + *error, exact);
  if (std::isinf(actual)) return SameValue(actual, reference::RoundTo(dtype, farthest));
  return std::abs(actual - exact) <= *error + HalfUlp(dtype, std::abs(farthest));
}

}  // namespace mpc::test
