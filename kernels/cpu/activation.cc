// Element-wise functions and their derivatives, for any floating storage type. They are abs, floor, square, log1p, sin,
// cos, silu, gelu, leaky_relu, pow and clamp. Their gradient operations have the operands (dy, x).
#include "kernels/scalar/activation.h"

#include "kernels/cpu/elementwise_loops.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

bool IsTanhForm(const KernelSpec& spec) { return spec.attributes.Get(attribute::kApproximate) == Approximation::kTanh; }

absl::StatusOr<std::unique_ptr<Kernel>> CreateGelu(const KernelSpec& spec) {
  return IsTanhForm(spec) ? CreateUnary<scalar::GeluTanhOp>(spec) : CreateUnary<scalar::GeluOp>(spec);
}
absl::StatusOr<std::unique_ptr<Kernel>> CreateGeluGrad(const KernelSpec& spec) {
  return IsTanhForm(spec) ? CreateUnaryGrad<scalar::GeluTanhGradOp>(spec) : CreateUnaryGrad<scalar::GeluGradOp>(spec);
}

struct Entry {
  const char* name;
  Factory factory;
};
constexpr Entry kForward[] = {
    {"abs", CreateUnary<scalar::AbsOp>},
    {"floor", CreateUnary<scalar::FloorOp>},
    {"square", CreateUnary<scalar::SquareOp>},
    {"log1p", CreateUnary<scalar::Log1pOp>},
    {"sin", CreateUnary<scalar::SinOp>},
    {"cos", CreateUnary<scalar::CosOp>},
    {"silu", CreateUnary<scalar::SiluOp>},
    {"gelu", CreateGelu},
    {"leaky_relu", CreateUnary<scalar::LeakyReluOp>},
    {"pow", CreateUnary<scalar::PowOp>},
    {"clamp", CreateUnary<scalar::ClampOp>},
};
constexpr Entry kGradients[] = {
    {"abs_grad", CreateUnaryGrad<scalar::AbsGradOp>},
    {"square_grad", CreateUnaryGrad<scalar::SquareGradOp>},
    {"log1p_grad", CreateUnaryGrad<scalar::Log1pGradOp>},
    {"sin_grad", CreateUnaryGrad<scalar::SinGradOp>},
    {"cos_grad", CreateUnaryGrad<scalar::CosGradOp>},
    {"silu_grad", CreateUnaryGrad<scalar::SiluGradOp>},
    {"gelu_grad", CreateGeluGrad},
    {"leaky_relu_grad", CreateUnaryGrad<scalar::LeakyReluOp>},
    {"pow_grad", CreateUnaryGrad<scalar::PowGradOp>},
    {"clamp_grad", CreateUnaryGrad<scalar::ClampOp>},
};

}  // namespace

void RegisterActivation(Registry& registry) {
  for (const Entry& entry : kForward) registry.Add(entry.name, entry.factory, {{0, 0}});
  for (const Entry& entry : kGradients) registry.Add(entry.name, entry.factory, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cpu
