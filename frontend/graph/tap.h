// Looking at values of a running step.
#pragma once

#include <string>

#include "frontend/graph/tensor.h"

namespace mpc {

/// Returns `tensor`. A traced step also returns its value beside its outputs, in f32 or the type the user gave it.
/// RunContext::Tap(name) holds the value at the end of each training step. Works in networks, losses and steps; a low
/// value is read back exactly. A name used again in one step gets "#2", "#3", ... On a concrete tensor nothing else
/// happens.
Tensor Tap(const std::string& name, const Tensor& tensor);

namespace ops {

/// Returns `tensor` and prints it to std::cout after `message`: after each run of a traced step, at once for a concrete
/// one. Steps that print wait for their device.
Tensor Print(const Tensor& tensor, const std::string& message = "");

}  // namespace ops
}  // namespace mpc
