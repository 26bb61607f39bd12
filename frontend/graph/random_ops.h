// Random numbers inside a training step. They depend on the seed of the network's generator, on its counter and on the
// place of the call alone, as those of dropout do. So equal seeds give equal bits, and a resumed run goes on with the
// same numbers. Each step, micro-batch and process has its own, and each call in a step.
#pragma once

#include "frontend/graph/tensor.h"

namespace mpc::ops {

/// f32 of `shape` from the normal distribution of mean 0 and deviation 1. No derivative goes through it, and no AMP
/// level changes it. Errors: outside a step that trains, where dropout does nothing, and `training()` is false; an
/// extent below 1.
Tensor StandardNormal(const Shape& shape);
/// f32 of `shape` from the uniform distribution on [0, 1). The rest is as in StandardNormal.
Tensor UniformReal(const Shape& shape);

}  // namespace mpc::ops
